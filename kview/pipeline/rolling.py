"""Rolls up what is new in recordings, and keeps it."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from msgspec.structs import replace
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from kview.errors import ErrorKind, ErrorValue, KviewError
from kview.model.report import Note, NoteKind
from kview.pipeline.batch import closed_deltas, rolled_tables
from kview.pipeline.kept import (
    About,
    Kept,
    affecting,
    begin,
    chosen,
    clean,
    finish,
    known_head_s,
    known_tail_s,
    new_id,
    place_of,
    read_kept,
    runs,
)
from kview.pipeline.schemas import MINUTES_TABLE, SECONDS_TABLE, schema_of_part
from kview.pipeline.session import interpreted, is_local
from kview.pipeline.sources import (
    DELTA_PARTS,
    Moments,
    OpenSegment,
    Source,
    check_files,
    check_pages,
    closed_moments,
    joined,
    read_open,
    readable,
    set_backs_of,
)
from kview.pipeline.summing import put_facts, roll_up_tables
from kview.pipeline.tasks import DamagedSegments, Segment, Work, roll_up
from kview.recording.fact_schema import FACTS
from kview.recording.manifest import SegmentEntry

LITTLE_BYTES = 256 << 10
"""With less to roll up than this, compiling the queries does not pay off."""

MOST_BYTES_HERE = 32 << 20
"""With less to roll up than this, about four million rows, Spark's Python workers are not faster than this
process alone: their start takes two seconds."""

MOST_BYTES = 4 << 30
"""The size of the segments in one batch. If a report is cancelled, the batches before stay."""


class Engine(StrEnum):
    """What rolls up closed segments. All of them make the same roll-ups."""

    EXPRESSIONS = "expressions"
    """Spark's own expressions, which workers on other machines understand."""
    TASKS = "tasks"
    """numpy in Spark's tasks on this machine."""
    NUMPY = "numpy"
    """numpy in this process if there is little to do, or else in Spark's tasks."""


@dataclass(slots=True)
class RolledUp:
    """A recording as batches of roll-ups."""

    source: Source
    batches: list[Kept] = field(default_factory=list)
    rolled_segments: int = 0
    """Segments that had to be rolled up."""

    @property
    def moments(self) -> Moments:
        """All observations that the batches are of."""
        return joined([kept.moments for kept in self.batches])

    @property
    def cluster(self) -> str:
        """The cluster's id, or the recording's name if it is not known."""
        return next((one.about.cluster for one in self.batches if one.about.cluster), self.source.name)


@dataclass(slots=True)
class Ready:
    """What was rolled up of a recording before its turn: batches of closed segments, the number of these
    segments, and the batch of the open one."""

    closed: list[Kept] = field(default_factory=list)
    segments: int = 0
    opened: Kept | None = None


class Rolling:
    """Rolls up recordings. `scratch` is for what cannot be kept, and `on_segments` is called with the number
    of segments that are done, and of all."""

    def __init__(
        self,
        spark: SparkSession,
        scratch: Path,
        cache: Path | None = None,
        on_segments: Callable[[int, int], None] | None = None,
        ready: Mapping[str, Ready] | None = None,
        engine: Engine = Engine.EXPRESSIONS,
    ) -> None:
        self._spark = spark
        self._scratch = scratch
        self._cache = cache
        # The driver of a cluster cannot copy a month of a fleet for its workers.
        self._in_place = not is_local(spark)
        self._on_segments = on_segments or (lambda done, total: None)
        self._ready = ready or {}
        self._engine = engine
        self._ids: set[int] = set()

    def roll_up(self, source: Source) -> RolledUp:
        """Return a recording's roll-ups, after rolling up what was not.

        Damaged segments are left out, with a note. Raises whatever Spark raises.
        """
        while True:
            try:
                return self._roll_up(source)
            except DamagedSegments as damaged:
                for entry in [one for one in source.closed if one.number in damaged.found]:
                    source.leave_out(entry, damaged.found[entry.number])

    def _roll_up(self, source: Source) -> RolledUp:
        done = RolledUp(source)
        place = place_of(source, self._cache)
        ready = self._ready.get(source.place.identity, Ready())
        elsewhere = [one for one in ready.closed if one.folder.parent != place]
        # A copy of a recording has batches with the same ids as the recording itself.
        kept = [one for one in (*read_kept(place, source), *elsewhere) if one.about.id not in self._ids]
        moments: dict[int, Moments] = {}
        clusters: dict[int, str] = {}
        self._add_moments(source, chosen(kept), moments, clusters)
        current, opened = self._open(source) if ready.opened is None else (ready.opened.moments, None)
        everything = self._in_order(chosen(kept), moments, current)
        # What was rolled up before the clock was set back into its time counts differently now.
        kept = chosen([one for one in kept if one.about.set_backs == affecting(one.moments, everything)])
        self._add_moments(source, kept, moments, clusters)
        known = {number for one in kept for number, _ in one.about.segments}
        size = sum(entry.size_bytes for entry in source.closed if entry.number not in known)
        engine = self._engine
        if engine is Engine.NUMPY and size > MOST_BYTES_HERE:
            engine = Engine.TASKS
        new = runs(source.closed, kept, MOST_BYTES)
        total = sum(map(len, new))
        batches = list(kept)
        if ready.opened is not None:
            batches.append(ready.opened)
        done.rolled_segments = ready.segments
        _note_rolled_up_only(source, kept)
        self._on_segments(0, total)
        with interpreted(self._spark, engine is Engine.EXPRESSIONS and size < LITTLE_BYTES):
            for run in new:
                its = joined([moments[entry.number] for entry in run])
                is_first = its.sequences[0] == everything.sequences[0]
                cluster = next((clusters[e.number] for e in run if clusters.get(e.number)), "")
                about = about_of(segments_of(run), its, everything, cluster, is_first)
                before = done.rolled_segments - ready.segments

                def on_rows(number: int, before: int = before) -> None:
                    self._on_segments(before + number, total)

                batches.append(self._closed_batch(source, place, run, its, about, engine, on_rows))
                done.rolled_segments += len(run)
                self._on_segments(done.rolled_segments - ready.segments, total)
        if opened is not None:
            is_first = len(everything) == len(opened.moments)
            batches.append(self._open_batch(source, opened, everything, is_first))
        with suppress(OSError):
            clean(place, batches)
        batches.sort(key=lambda one: int(one.moments.sequences[0]) if len(one.moments) else -1)
        done.batches = batches
        self._ids |= {one.about.id for one in batches}
        backs = set_backs_of(everything)
        if backs:
            source.note(Note(NoteKind.CLOCK_SET_BACK, {"recording": source.name, "times": len(backs)}))
        return done

    def _add_moments(
        self, source: Source, kept: Sequence[Kept], moments: dict[int, Moments], clusters: dict[int, str]
    ) -> None:
        """Add the observations and the cluster of each segment that is in no batch. Leave out those that are
        damaged or gone."""
        known = {number for one in kept for number, _ in one.about.segments}
        for entry in list(source.closed):
            if entry.number in known or entry.number in moments:
                continue
            try:
                check_files(source, entry)
                moments[entry.number], clusters[entry.number] = closed_moments(source, entry)
            except FileNotFoundError:
                source.closed.remove(entry)
                source.note(Note(NoteKind.SEGMENT_GONE, {"recording": source.name, "segment": entry.number}))
            except KviewError as error:
                source.leave_out(entry, error)

    def _open(self, source: Source) -> tuple[Moments, OpenSegment | None]:
        try:
            opened = read_open(source)
        except FileNotFoundError:
            opened = None  # it was closed after the manifest was read: the next report has it
        except KviewError as error:
            assert source.open is not None
            source.leave_out(source.open, error)
            opened = None
        return (opened.moments if opened is not None else joined([])), opened

    def _in_order(self, kept: Sequence[Kept], moments: dict[int, Moments], current: Moments) -> Moments:
        parts = [*(one.moments for one in kept), *moments.values()]
        parts = sorted((part for part in parts if len(part)), key=lambda part: int(part.sequences[0]))
        return joined([*parts, current])

    def _closed_batch(
        self,
        source: Source,
        place: Path,
        run: Sequence[SegmentEntry],
        its: Moments,
        about: About,
        engine: Engine,
        on_rows: Callable[[int], None],
    ) -> Kept:
        folder = begin_or_note(source, place, self._scratch, str(run[0].number))
        try:
            with readable(source, run, self._scratch, self._in_place) as files:
                if engine is Engine.EXPRESSIONS:
                    self._roll_up_by_expressions(source, files, about, folder)
                else:
                    segments = [
                        Segment(entry, f"{source.address}/{entry.folder}", paths)
                        for entry, paths in zip(run, files, strict=True)
                    ]
                    facts = {name: FACTS[name] for name in sorted(FACTS)}
                    work = Work(about, folder, facts)
                    here = engine is Engine.NUMPY
                    about = replace(about, parts=roll_up(self._spark, segments, work, here, on_rows))
            return finish(folder, about, its)
        except BaseException as error:
            shutil.rmtree(folder, ignore_errors=True)
            if isinstance(error, FileNotFoundError) or (
                engine is Engine.EXPRESSIONS and isinstance(error, PySparkException | Py4JJavaError)
            ):
                self._look_for_damage(source, run, error)
            raise

    def _roll_up_by_expressions(
        self, source: Source, files: Sequence[Mapping[str, str]], about: About, folder: Path
    ) -> None:
        def paths(part: str) -> list[str]:
            return [its[part] for its in files if part in its]

        deltas = closed_deltas(self._spark, {part: paths(part) for part in DELTA_PARTS})
        by_second, by_minute = rolled_tables(deltas, about.id, about.head_s, about.tail_s, about.set_backs)
        by_second.write.parquet(str(folder / SECONDS_TABLE))
        by_minute.write.parquet(str(folder / MINUTES_TABLE))
        for part in sorted(FACTS):
            if paths(part):
                table = self._spark.read.schema(schema_of_part(part)).parquet(*paths(part))
                of_batch = f.lit(about.id).cast(t.LongType()).alias("batch")
                table.select(of_batch, "*").coalesce(4).write.parquet(str(folder / part))

    def _look_for_damage(self, source: Source, run: Sequence[SegmentEntry], error: BaseException) -> None:
        """Raise DamagedSegments if damage within files has made the job fail, which only a reader
        of all their pages finds."""
        found = {}
        for number, entry in enumerate(run):
            self._on_segments(number, len(run))  # raises if the report was cancelled
            try:
                check_pages(source, entry)
            except KviewError as damage:
                found[entry.number] = damage
            except FileNotFoundError:
                gone = KviewError(ErrorKind.FILE_MISSING, file=f"{source.address}/{entry.folder}")
                found[entry.number] = gone
        if found:
            raise DamagedSegments(found) from error

    def _open_batch(self, source: Source, opened: OpenSegment, everything: Moments, is_first: bool) -> Kept:
        """Roll up an open segment, which this process has read. Its roll-ups are not kept, because it
        grows."""
        assert source.open is not None
        segments = ((source.open.number, -1),)
        about = about_of(segments, opened.moments, everything, opened.cluster, is_first)
        folder = begin(self._scratch / "open", f"{about.id:x}")
        roll_up_tables([opened.parts[part] for part in DELTA_PARTS], about, folder)
        for part in sorted(FACTS):
            put_facts(opened.parts[part], part, about, folder)
        return finish(folder, about, opened.moments)


def begin_or_note(source: Source, place: Path, scratch: Path, name: str) -> Path:
    """Create a folder for a batch that is being written: in `place`, or else in `scratch`, with a note."""
    try:
        return begin(place, name)
    except OSError as error:
        note = Note(
            NoteKind.NOT_KEPT,
            {"folder": str(place), "reason": error.strerror or str(error)},
        )
        source.note(note)
        return begin(place_of(source, scratch / "rollups"), name)


def _note_rolled_up_only(source: Source, kept: Sequence[Kept]) -> None:
    """Note the segments that are missing or damaged, but whose roll-ups were kept."""
    known = {number for one in kept for number, _ in one.about.segments}
    for entry in source.closed:
        if entry.number not in known:
            continue
        try:
            check_files(source, entry)
        except FileNotFoundError:
            reason = "missing"
        except KviewError:
            reason = "damaged"
        else:
            continue
        values: dict[str, ErrorValue] = {
            "recording": source.name,
            "segment": entry.number,
            "reason": reason,
        }
        source.note(Note(NoteKind.ROLLED_UP_ONLY, values))


def segments_of(run: Sequence[SegmentEntry]) -> tuple[tuple[int, int], ...]:
    """Return the number and the size of each segment."""
    return tuple((entry.number, entry.size_bytes) for entry in run)


def about_of(
    segments: tuple[tuple[int, int], ...],
    its: Moments,
    everything: Moments,
    cluster: str,
    is_first: bool,
) -> About:
    """Return what a batch of these segments is of."""
    return About(
        id=new_id(),
        cluster=cluster,
        segments=segments,
        set_backs=affecting(its, everything),
        files={},
        head_s=known_head_s(its) if is_first else 0,
        tail_s=known_tail_s(its),
    )
