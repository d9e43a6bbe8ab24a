"""Rolls up what is new in many small recordings at once, because a job for each takes half a second.

This process packs the rows of some recordings into one file per part. Every unit that becomes a batch gets a
frame of time of its own: its times are shifted, so that the queries, which group by second, tell the units
apart without knowing about them. Afterwards the times are shifted back.
"""

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from kview.errors import KviewError
from kview.pipeline.batch import closed_deltas, seconds
from kview.pipeline.kept import About, Kept, begin, chosen, finish, place_of, read_kept, runs
from kview.pipeline.minutes import minutes
from kview.pipeline.rolling import Ready, about_of, begin_or_note, segments_of
from kview.pipeline.schemas import MINUTES, MINUTES_TABLE, SECONDS, SECONDS_TABLE
from kview.pipeline.session import interpreted
from kview.pipeline.sources import (
    DELTA_PARTS,
    Moments,
    Source,
    check_files,
    closed_moments,
    joined,
    read_open,
    read_parts,
    set_backs_of,
)
from kview.pipeline.summing import put_facts
from kview.recording.fact_schema import FACTS
from kview.recording.schema import PARTS

SMALL_BYTES = 4 << 20
"""A recording with more to read than this is rolled up by a job of its own, in which its rows do not pass
through this process."""

LEAST = 3
"""With fewer small recordings than this, nothing is gained."""

MOST_ROWS = 400_000
"""The rows that are packed for one job: about 100 MB in this process."""

MOST_UNITS = 400
"""The units in one job: each has folders of its own in what the job writes."""

FRAME_S = 1_048_560
"""The length of a frame in whole minutes: twelve days. A unit that is longer is left to a job of its own."""

SEQUENCE_BITS = 40
"""Sequences of a recording are below two to this power."""

LITTLE_ROWS = 20_000
"""With fewer rows than this, compiling the queries does not pay off."""

_TIMES = ("observed_ms", "began_ms", "since_ms", "ended_ms")


@dataclass(slots=True)
class _Unit:
    """What becomes a batch: some new segments of a recording, or its open segment."""

    source: Source
    place: Path
    about: About
    moments: Moments
    parts: dict[str, pa.Table]
    is_open: bool
    from_s: int = 0
    """The beginning of its frame, a whole minute before all of its times."""

    @property
    def rows(self) -> int:
        """The number of rows to roll up."""
        return sum(len(self.parts[part]) for part in DELTA_PARTS)

    def fits(self) -> bool:
        """Find the beginning of the frame, and return whether the times fit into it."""
        times = [
            pc.min_max(self.parts[part][name]).as_py()
            for part in DELTA_PARTS
            for name in _TIMES
            if name in self.parts[part].column_names
        ]
        states = self.parts["partition_deltas"]
        held = pc.min(pc.subtract(states["observed_ms"], states["state_ms"].cast(pa.int64()))).as_py()
        first = min(value for value in [held, *(one["min"] for one in times)] if value is not None)
        last = max(one["max"] for one in times if one["max"] is not None)
        self.from_s = first // 1000 // 60 * 60 - 60
        return self.from_s >= 0 and last // 1000 - self.from_s < FRAME_S - 60

    def shift_s(self, number: int) -> int:
        """Return what is added to its times to bring them into a frame."""
        return number * FRAME_S - self.from_s


@dataclass(slots=True)
class Together:
    """Rolls up small recordings together. `on_recordings` is called with the number of recordings that have
    been read, and of all."""

    spark: SparkSession
    scratch: Path
    cache: Path | None
    on_recordings: Callable[[int, int], None]
    ready: dict[str, Ready] = field(default_factory=dict)
    """What has been rolled up, by the identities of the recordings' places."""

    def roll_up(self, sources: Sequence[Source]) -> Mapping[str, Ready]:
        """Return what was rolled up of the small ones of some recordings.

        Recordings that are damaged, and those whose clock was set back, are left to jobs of their own. Raises
        whatever Spark raises.
        """
        small = [source for source in sources if self._is_small(source)]
        if len(small) < LEAST:
            return {}
        waiting: list[_Unit] = []
        for number, source in enumerate(small):
            self.on_recordings(number, len(small))
            with suppress(KviewError, FileNotFoundError):
                waiting += self._units(source)
            rows = sum(unit.rows for unit in waiting)
            if rows >= MOST_ROWS or len(waiting) >= MOST_UNITS:
                self._job(waiting)
                waiting = []
        if waiting:
            self._job(waiting)
        return self.ready

    def _is_small(self, source: Source) -> bool:
        known = {n for kept in self._kept(source) for n, _ in kept.about.segments}
        new = sum(entry.size_bytes for entry in source.closed if entry.number not in known)
        return new <= SMALL_BYTES and (source.open is not None or new > 0)

    def _kept(self, source: Source) -> list[Kept]:
        return chosen(read_kept(place_of(source, self.cache), source))

    def _units(self, source: Source) -> Iterator[_Unit]:
        """Yield what is new in a recording. Raises KviewError if it is damaged,
        FileNotFoundError if a part of it is gone."""
        place, kept = place_of(source, self.cache), self._kept(source)
        new = runs(source.closed, kept, SMALL_BYTES)
        moments, clusters = {}, {}
        for entry in (entry for run in new for entry in run):
            check_files(source, entry)
            moments[entry.number], clusters[entry.number] = closed_moments(source, entry)
        opened = read_open(source) if source.open is not None else None
        known = [*(one.moments for one in kept), *moments.values()]
        known.sort(key=lambda some: int(some.sequences[0]) if len(some) else -1)
        everything = joined([*known, *([opened.moments] if opened is not None else [])])
        if set_backs_of(everything) or not len(everything):
            return
        first = everything.sequences[0]
        found = []
        for run in new:
            its = joined([moments[entry.number] for entry in run])
            cluster = next((clusters[e.number] for e in run if clusters[e.number]), "")
            about = about_of(segments_of(run), its, everything, cluster, its.sequences[0] == first)
            found.append(_Unit(source, place, about, its, read_parts(source, run), is_open=False))
        if opened is not None and source.open is not None:
            its = opened.moments
            segments = ((source.open.number, -1),)
            about = about_of(segments, its, everything, opened.cluster, its.sequences[0] == first)
            found.append(_Unit(source, place, about, its, opened.parts, is_open=True))
        if all(unit.fits() for unit in found):
            yield from found

    def _job(self, units: Sequence[_Unit]) -> None:
        packed = begin(self.scratch, "together")
        try:
            with interpreted(self.spark, sum(unit.rows for unit in units) < LITTLE_ROWS):
                self._roll_up(units, packed)
            for number, unit in enumerate(units, 1):
                self._keep(unit, packed, number)
        finally:
            shutil.rmtree(packed, ignore_errors=True)

    def _roll_up(self, units: Sequence[_Unit], packed: Path) -> None:
        paths = {}
        for part in DELTA_PARTS:
            tables = (_shifted(unit, part, number) for number, unit in enumerate(units, 1))
            file = packed / f"{part}.parquet"
            pq.write_table(pa.concat_tables(tables), file, compression="zstd")
            paths[part] = [str(file)]
        deltas = closed_deltas(self.spark, paths)
        shifts = [(unit.shift_s(number), unit) for number, unit in enumerate(units, 1)]
        heads = _by_unit(unit.about.head_s + shift if unit.about.head_s else 0 for shift, unit in shifts)
        tails = _by_unit(unit.about.tail_s + shift for shift, unit in shifts)
        _write(seconds(deltas, []), "second", SECONDS.names, units, packed / SECONDS_TABLE)
        _write(minutes(deltas, heads, tails), "slot", MINUTES.names, units, packed / MINUTES_TABLE)

    def _keep(self, unit: _Unit, packed: Path, number: int) -> None:
        name = f"{unit.about.segments[0][0]}"
        if unit.is_open:
            folder = begin(self.scratch / "open", f"{unit.about.id:x}")
        else:
            folder = begin_or_note(unit.source, unit.place, self.scratch, name)
        try:
            self._fill(unit, packed, number, folder)
            made = finish(folder, unit.about, unit.moments)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        ready = self.ready.setdefault(unit.source.place.identity, Ready())
        if unit.is_open:
            ready.opened = made
        else:
            ready.closed.append(made)
            ready.segments += len(unit.about.segments)

    def _fill(self, unit: _Unit, packed: Path, number: int, folder: Path) -> None:
        for table in (SECONDS_TABLE, MINUTES_TABLE):
            written = packed / table / f"{_FRAME}={number}"
            if written.is_dir():
                shutil.move(written, folder / table)
            else:
                (folder / table).mkdir()
        for part in sorted(FACTS):
            put_facts(unit.parts[part], part, unit.about, folder)


_FRAME = "frame"
"""The column with the number of a unit."""


def _shifted(unit: _Unit, part: str, number: int) -> pa.Table:
    """Return the rows of a part with times and sequences in the unit's frame, as columns of PARTS."""
    table, columns = unit.parts[part], []
    schema = PARTS[part]
    if part == "observations":
        schema = pa.schema([schema.field(name) for name in ("sequence", "ended_ms")])
    for one in schema:
        if one.name not in table.column_names:
            columns.append(pa.nulls(len(table), one.type))
            continue
        column = table[one.name].cast(one.type)
        if one.name == "sequence":
            column = pc.add(column, number << SEQUENCE_BITS)
        elif one.name in _TIMES:
            column = pc.add(column, unit.shift_s(number) * 1000)
        columns.append(column)
    return pa.Table.from_arrays(columns, schema=schema)


def _by_unit(values: Iterable[int]) -> str:
    """Return SQL for a value that depends on a row's sequence, and so on its unit."""
    return f"{_listed([0, *values])}[cast(shiftright(sequence, {SEQUENCE_BITS}) as int)]"


def _listed(values: Iterable[int]) -> str:
    return f"array({', '.join(f'{value}L' for value in values)})"


def _write(rolled: DataFrame, time: str, names: Sequence[str], units: Sequence[_Unit], folder: Path) -> None:
    """Write roll-ups to a folder for each unit, with their true times and their batches."""
    ids = _listed([0, *(unit.about.id for unit in units)])
    shifts = _listed([0, *(unit.shift_s(number) for number, unit in enumerate(units, 1))])
    framed = rolled.withColumn(_FRAME, f.expr(f"cast({time} div {FRAME_S} as int)"))
    framed = framed.withColumn("batch", f.expr(f"{ids}[{_FRAME}]"))
    shift = f.expr(f"{shifts}[{_FRAME}]")
    columns: list[Column] = []
    for name in names:
        # A peak has its second in its lowest bits.
        is_time = name in (time, "peak")
        columns.append((f.col(name) - shift).alias(name) if is_time else f.col(name))
    framed.select(*columns, _FRAME).repartition(_FRAME).sortWithinPartitions(_FRAME).write.partitionBy(
        _FRAME
    ).parquet(str(folder))
