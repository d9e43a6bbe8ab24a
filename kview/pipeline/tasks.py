"""Rolls up closed segments in Spark's tasks on this machine, with numpy.

Each task walks some segments and writes their roll-ups, so no row passes through Java. Workers on other
machines have neither kview nor numpy: there, Spark's own expressions do the work (`kview.pipeline.batch`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from kview.errors import ErrorKind, KviewError
from kview.pipeline.kept import About
from kview.pipeline.schemas import schema_of_part
from kview.pipeline.sources import DELTA_PARTS
from kview.pipeline.summing import ROWS_AT_ONCE, Summing, put_facts
from kview.recording.damage import damage_in, damaged
from kview.recording.manifest import SegmentEntry

TASK_BYTES = 32 << 20
"""The size of the segments in one task, about four million rows. A larger segment is a task of its own."""

TASKS_PER_CORE = 4
"""Tasks are smaller if there would be fewer than this, so that all cores have work until the end."""

LEAST_TASK_BYTES = 2 << 20
"""The least: a task takes some time to start."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A closed segment: the folder by which people know it, and the paths of its files by part."""

    entry: SegmentEntry
    folder: str
    paths: Mapping[str, str]

    def address(self, part: str) -> str:
        """Return a file as people know it."""
        return f"{self.folder}/{part}.parquet"


@dataclass(frozen=True, slots=True)
class Work:
    """What all tasks of a batch have in common: the batch, the folder that it is written to, and the Arrow
    schemas of the parts with facts."""

    about: About
    folder: Path
    facts: Mapping[str, pa.Schema]


class DamagedSegments(Exception):
    """Segments that turned out to be damaged or gone: their numbers, each with what is wrong with it."""

    def __init__(self, found: Mapping[int, KviewError]) -> None:
        super().__init__(found)
        self.found = found


def roll_up(
    spark: SparkSession,
    segments: Sequence[Segment],
    work: Work,
    here: bool,
    on_rows: Callable[[int], None],
) -> int:
    """Roll up segments into the folder of a batch: in this process if `here` is set, or else in tasks.
    Return the number of parts that its tables have.

    In this process, `on_rows` is called often, with the number of segments that are done, and may raise.
    Raises DamagedSegments, OSError, and whatever Spark raises.
    """
    tasks = [list(segments)]
    if here:
        found = list(_walk(segments, work, 0, on_rows))
    else:
        tasks = _tasks(segments, spark.sparkContext.defaultParallelism)
        of_batch = spark.sparkContext.parallelize(list(enumerate(tasks)), len(tasks))
        # A DataFrame's function over Arrow would be the same, but requires pandas.
        found = of_batch.flatMap(lambda task: _walk(task[1], work, task[0], _nothing)).collect()
    if found:
        raise DamagedSegments({number: _error(file, reason) for number, file, reason in found})
    return len(tasks)


def _nothing(done: int) -> None:
    """Workers have nobody to tell."""


def _error(file: str, reason: str | None) -> KviewError:
    if reason is None:
        return KviewError(ErrorKind.FILE_MISSING, file=file)
    return damaged(file, reason)


def _tasks(segments: Sequence[Segment], cores: int) -> list[list[Segment]]:
    """Return runs of segments of about equal size."""
    whole = sum(one.entry.size_bytes for one in segments)
    most = max(LEAST_TASK_BYTES, min(TASK_BYTES, whole // (cores * TASKS_PER_CORE)))
    found: list[list[Segment]] = []
    size = most
    for one in segments:
        if size + one.entry.size_bytes > most:
            found.append([])
            size = 0
        found[-1].append(one)
        size += one.entry.size_bytes
    return found


def _walk(
    segments: Sequence[Segment], work: Work, part: int, on_rows: Callable[[int], None]
) -> Iterator[tuple[int, str, str | None]]:
    """Roll up segments into a part of a batch's tables. Yield the number, the file and the reason (None if it
    is gone) of each segment that is damaged, in which case nothing is written. Raises OSError."""
    about = work.about
    summing = Summing(about.head_s, about.tail_s, about.set_backs)
    facts: dict[str, list[pa.Table]] = {name: [] for name in work.facts}
    is_whole = True
    for done, one in enumerate(segments):
        try:
            for batch in _batches(one):
                on_rows(done)
                summing.add(batch)
            for name, schema in work.facts.items():
                if name in one.paths:
                    with damage_in(one.address(name)):
                        file = pq.ParquetFile(one.paths[name], page_checksum_verification=True)
                        facts[name].append(file.read().cast(schema))
        except KviewError as error:
            if error.kind is not ErrorKind.FILE_DAMAGED:
                raise
            is_whole = False
            yield one.entry.number, str(error.values["file"]), str(error.values["reason"])
        except FileNotFoundError:
            is_whole = False
            yield one.entry.number, one.folder, None
    if is_whole:
        summing.write(about, work.folder, part)
        for name, tables in facts.items():
            if tables:
                put_facts(pa.concat_tables(tables), name, about, work.folder, part)


def _batches(segment: Segment) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a segment's deltas. Raises KviewError if they are damaged, FileNotFoundError if they
    are gone."""
    for part in DELTA_PARTS:
        if part not in segment.paths:
            continue
        with damage_in(segment.address(part)):
            wanted = schema_of_part(part)
            words = [one.name for one in wanted if one.dataType.typeName() == "string"]
            path = segment.paths[part]
            end = pq.read_metadata(path)
            columns = end.schema.to_arrow_schema().names
            # Older versions recorded fewer columns.
            words = [word for word in words if word in columns]
            file = pq.ParquetFile(path, metadata=end, read_dictionary=words, page_checksum_verification=True)
            names = [one for one in columns if one in wanted.names]
            found = file.iter_batches(ROWS_AT_ONCE, columns=names, use_threads=False)
        while True:
            with damage_in(segment.address(part)):
                batch = next(found, None)
            if batch is None:
                break
            yield batch
