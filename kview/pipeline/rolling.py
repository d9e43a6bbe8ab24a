"""Rolls up what is new in recordings, and keeps it."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from kview.errors import ClusterUnreachable, ErrorKind, ErrorValue, KviewError
from kview.model.report import Note, NoteKind
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
    place_of,
    read_kept,
    runs,
)
from kview.pipeline.kernel.summing import Scope
from kview.pipeline.kernel.walking import RollUp, Segment, Unreadable, roll_up
from kview.pipeline.sources import (
    DELTA_PARTS,
    Moments,
    OpenSegment,
    Source,
    check_files,
    closed_moments,
    joined,
    read_open,
    set_backs_of,
)
from kview.recording.damage import damaged
from kview.recording.fact_schema import FACTS
from kview.recording.manifest import SegmentEntry
from kview.recording.places import Place
from kview.recording.schema import PARTS
from kview.recording.upload import reason_of

if TYPE_CHECKING:
    from pyspark import SparkContext

MOST_BYTES = 4 << 30
"""The size of the segments in one batch, and in one job. If a report is cancelled, the batches before
stay."""

TASK_BYTES = 32 << 20
"""The size of the segments in one task, about four million rows. A larger segment is a task of its own."""

TASKS_PER_CORE = 4
"""Tasks are smaller if there would be fewer than this, so that all cores have work until the end."""

LEAST_TASK_BYTES = 2 << 20
"""The least: a task takes some time to start."""

BATCH_BYTES = 64 << 10
"""What writing a batch costs, as if it were so much to read."""

DELTAS = {part: PARTS[part] for part in DELTA_PARTS}
DELTAS["observations"] = pa.schema([PARTS["observations"].field(name) for name in ("sequence", "ended_ms")])
"""The columns that are read of each part of a segment that is rolled up."""

T = TypeVar("T")


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
        return next((batch.about.cluster for batch in self.batches if batch.about.cluster), self.source.name)


@dataclass(slots=True)
class _New:
    """A batch that is to be made. `sizes` are those of its segments in bytes; `is_open` if its segment grows,
    so that it is not kept."""

    rolled: RolledUp
    place: Path
    about: About
    moments: Moments
    segments: list[Segment]
    sizes: list[int]
    is_open: bool = False
    unreadable: list[Unreadable] = field(default_factory=list)

    @property
    def size(self) -> int:
        return sum(self.sizes)


class Rolling:
    """Rolls up recordings. `scratch` is for what cannot be kept, and `on_segments` is called with the number
    of segments that are done, and of all."""

    def __init__(
        self,
        context: "SparkContext",
        scratch: Path,
        cache: Path | None = None,
        on_segments: Callable[[int, int], None] | None = None,
    ) -> None:
        self._context = context
        self._scratch = scratch
        self._cache = cache
        self._on_segments = on_segments or (lambda done, total: None)

    def roll_up(self, sources: Sequence[Source]) -> list[RolledUp]:
        """Return the roll-ups of recordings, after rolling up what was not.

        Damaged segments are left out, with a note. Raises KviewError if a store does not answer, and whatever
        Spark raises.
        """
        rolled = [RolledUp(source) for source in sources]
        waiting = rolled
        while waiting:
            new = [batch for recording in waiting for batch in self._planned(recording)]
            self._make(new)
            # What is damaged changes what the recording's other batches are of.
            waiting = [
                recording for recording in waiting if any(b.unreadable for b in new if b.rolled is recording)
            ]
        return rolled

    def _planned(self, rolled: RolledUp) -> list[_New]:
        """Take the batches that a recording has, and return those that it lacks."""
        source = rolled.source
        place = place_of(source, self._cache)
        kept = read_kept(place, source)
        moments: dict[int, Moments] = {}
        clusters: dict[int, str] = {}
        self._add_moments(source, chosen(kept), moments, clusters)
        opened = self._open(source)
        everything = self._in_order(chosen(kept), moments, joined([]) if opened is None else opened.moments)
        # What was rolled up before the clock was set back into its time counts differently now.
        kept = chosen(
            [batch for batch in kept if batch.about.set_backs == affecting(batch.moments, everything)]
        )
        self._add_moments(source, kept, moments, clusters)
        _note_rolled_up_only(source, kept)
        rolled.batches = list(kept)
        new = []
        for run in runs(source.closed, kept, MOST_BYTES):
            of_run = joined([moments[entry.number] for entry in run])
            is_first = of_run.sequences[0] == everything.sequences[0]
            cluster = next((clusters[e.number] for e in run if clusters.get(e.number)), "")
            about = about_of(segments_of(run), of_run, everything, cluster, is_first)
            segments = [_segment(source, entry) for entry in run]
            new.append(_New(rolled, place, about, of_run, segments, [entry.size_bytes for entry in run]))
        if opened is not None:
            new.append(self._opened(rolled, opened, everything))
        with suppress(OSError):
            clean(place, kept)
        if backs := set_backs_of(everything):
            source.note(Note(NoteKind.CLOCK_SET_BACK, {"recording": source.name, "times": len(backs)}))
        return new

    def _add_moments(
        self, source: Source, kept: Sequence[Kept], moments: dict[int, Moments], clusters: dict[int, str]
    ) -> None:
        """Add the observations and the cluster of each segment that is in no batch. Leave out those that are
        damaged or gone."""
        known = {number for batch in kept for number, _ in batch.about.segments}
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

    def _open(self, source: Source) -> OpenSegment | None:
        try:
            return read_open(source)
        except FileNotFoundError:
            return None  # it was closed after the manifest was read: the next report has it
        except KviewError as error:
            assert source.open is not None
            source.leave_out(source.open, error)
            return None

    def _in_order(self, kept: Sequence[Kept], moments: dict[int, Moments], current: Moments) -> Moments:
        parts = [*(batch.moments for batch in kept), *moments.values()]
        parts = sorted((part for part in parts if len(part)), key=lambda part: int(part.sequences[0]))
        return joined([*parts, current])

    def _opened(self, rolled: RolledUp, opened: OpenSegment, everything: Moments) -> _New:
        """Return the batch of an open segment, which this process has read, and writes as a closed one."""
        source = rolled.source
        assert source.open is not None
        number, folder = source.open.number, begin(self._scratch / "open", f"read-{source.place.identity}")
        paths = {}
        for part, rows in opened.parts.items():
            if len(rows):
                paths[part] = str(folder / f"{part}.parquet")
                pq.write_table(rows, paths[part], compression="lz4")
        about = about_of(
            ((number, -1),),
            opened.moments,
            everything,
            opened.cluster,
            len(everything) == len(opened.moments),
        )
        segment = Segment(number, f"{source.address}/{source.open.folder}", Place.of(folder).system, paths)
        size = sum(Path(path).stat().st_size for path in paths.values())
        return _New(rolled, self._scratch / "open", about, opened.moments, [segment], [size], is_open=True)

    def _make(self, new: Sequence[_New]) -> None:
        """Make batches, in jobs that are not too large, and give them to their recordings."""
        total = sum(len(batch.segments) for batch in new if not batch.is_open)
        done = 0
        self._on_segments(done, total)
        for batches in _cut(new, MOST_BYTES, lambda batch: batch.size):
            folders = [self._folder(batch) for batch in batches]
            try:
                self._run(batches, folders)
                for batch, folder in zip(batches, folders, strict=True):
                    self._finish(batch, folder)
            except BaseException:
                for folder in folders:
                    shutil.rmtree(folder, ignore_errors=True)
                raise
            done += sum(len(batch.segments) for batch in batches if not batch.is_open)
            self._on_segments(done, total)

    def _folder(self, batch: _New) -> Path:
        """Create a folder for a batch that is being written: in its place, or else in `scratch`, with a
        note."""
        source, number = batch.rolled.source, str(batch.about.segments[0][0])
        if batch.is_open:
            return begin(batch.place, f"{source.place.identity}-{number}")
        try:
            return begin(batch.place, number)
        except OSError as error:
            reason = error.strerror or str(error)
            source.note(Note(NoteKind.NOT_KEPT, {"folder": str(batch.place), "reason": reason}))
            return begin(place_of(source, self._scratch / "rollups"), number)

    def _run(self, batches: Sequence[_New], folders: Sequence[Path]) -> None:
        """Run a job that makes batches in their folders, and note what cannot be read."""
        whole = sum(batch.size + BATCH_BYTES for batch in batches)
        most = whole // (self._context.defaultParallelism * TASKS_PER_CORE)
        most = max(LEAST_TASK_BYTES, min(TASK_BYTES, most))
        work: list[tuple[RollUp, int]] = []
        for number, (batch, folder) in enumerate(zip(batches, folders, strict=True)):
            scope = Scope(batch.about.head_s, batch.about.tail_s, batch.about.set_backs)
            sized = list(zip(batch.segments, batch.sizes, strict=True))
            for part, some in enumerate(_cut(sized, most, lambda segment: segment[1])):
                segments = [segment for segment, _ in some]
                of_part = RollUp(number, part, folder, scope, DELTAS, dict(FACTS), segments)
                work.append((of_part, sum(size for _, size in some) + BATCH_BYTES))
        tasks = [[rollup for rollup, _ in some] for some in _cut(work, most, lambda part: part[1])]
        if tasks:
            for unreadable in self._context.parallelize(tasks, len(tasks)).flatMap(roll_up).collect():
                batches[unreadable.batch].unreadable.append(unreadable)

    def _finish(self, batch: _New, folder: Path) -> None:
        """Give a batch to its recording, or leave out of the recording what cannot be read."""
        source = batch.rolled.source
        for unreadable in batch.unreadable:
            if unreadable.is_store:
                reason = reason_of(OSError(unreadable.reason))
                raise ClusterUnreachable(ErrorKind.STORE_UNREACHABLE, url=unreadable.file, reason=reason)
            error: KviewError = KviewError(ErrorKind.FILE_MISSING, file=unreadable.file)
            if unreadable.reason is not None:
                error = damaged(unreadable.file, unreadable.reason)
            if batch.is_open:
                raise error  # this process has just written it
            for entry in [entry for entry in source.closed if entry.number == unreadable.number]:
                source.leave_out(entry, error)
        if batch.unreadable:
            shutil.rmtree(folder, ignore_errors=True)
            return
        kept = finish(folder, batch.about, batch.moments)
        batch.rolled.batches.append(kept)
        batch.rolled.batches.sort(
            key=lambda batch: int(batch.moments.sequences[0]) if len(batch.moments) else -1
        )
        if not batch.is_open:
            batch.rolled.rolled_segments += len(batch.segments)


def _segment(source: Source, entry: SegmentEntry) -> Segment:
    folder = source.place / entry.folder
    names = {name.removesuffix(".parquet"): name for name in folder.files()}
    paths = {part: f"{folder.path}/{names[part]}" for part in source.parts if part in names}
    return Segment(entry.number, folder.address, folder.system, paths)


def _note_rolled_up_only(source: Source, kept: Sequence[Kept]) -> None:
    """Note the segments that are missing or damaged, but whose roll-ups were kept."""
    known = {number for batch in kept for number, _ in batch.about.segments}
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
    moments: Moments,
    everything: Moments,
    cluster: str,
    is_first: bool,
) -> About:
    """Return what a batch of these segments is of."""
    return About(
        cluster=cluster,
        segments=segments,
        set_backs=affecting(moments, everything),
        files={},
        head_s=known_head_s(moments) if is_first else 0,
        tail_s=known_tail_s(moments),
    )


def _cut(items: Sequence[T], most: int, size_of: Callable[[T], int]) -> Iterator[list[T]]:
    """Yield runs of items of at most this size together; an item that is larger is a run of its own."""
    run: list[T] = []
    size = 0
    for item in items:
        if run and size + size_of(item) > most:
            yield run
            run, size = [], 0
        run.append(item)
        size += size_of(item)
    if run:
        yield run
