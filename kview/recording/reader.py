"""Reads moments, snapshots and deltas of a recording, which may still be in progress.

Moments are in the order in which they were recorded, even if the clock was set back in between.
"""

import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa

from kview.errors import ErrorKind, KviewError
from kview.model.failures import FailureKind, Part
from kview.model.snapshot import Failure, Ids, Longs, Observation, Snapshot, Strings
from kview.recording.columns import Array, Codec, Encoded
from kview.recording.damage import damage_in
from kview.recording.manifest import read_manifest
from kview.recording.moments import Moments, fell
from kview.recording.segment import STREAM_FILE
from kview.recording.segment_reader import DeltaBatches, Segment

SEGMENTS_HELD = 2
"""Segments whose cells stay in memory: the one being played, and the one before it for stepping back."""

GROWS_WITHIN_S = 10.0
"""A recording without a write for this long counts as finished. Intervals between observations are
shorter."""

EVENTFUL = (
    "brokers.state",
    "partitions.topic",
    "partitions.leader",
    "partitions.leader_epoch",
    "partitions.isr",
    "groups.group",
    "groups.state",
    "groups.coordinator",
    "members.member_id",
    "offsets.owner",
    "partitions.log_start",
)
"""Columns whose changes matter to a person who looks for an incident."""

FALLING = "offsets.committed"
"""A column that matters to such a person if one of its values falls."""


class AnswerTimes(NamedTuple):
    """The columns of a snapshot's brokers that tell how long they take to answer."""

    id: Ids
    state: Strings
    latency_us: Longs


class Recording:
    """A recording to read. If it is still in progress, `refresh` finds what was added."""

    def __init__(
        self, folder: Path, grows_within_s: float = GROWS_WITHIN_S, leaves_out_damaged: bool = False
    ) -> None:
        self.folder = folder
        self.damaged: dict[int, KviewError] = {}
        """What is wrong with the closed segments that are left out, by their numbers."""
        self._leaves_out_damaged = leaves_out_damaged
        self._grows_within_s = grows_within_s
        self._segments: list[Segment] = []
        self._held: dict[int, Moments] = {}
        self._codec = Codec()
        self._at: tuple[Segment, Encoded] | None = None
        self.refresh()

    @classmethod
    def open(cls, folder: Path | str) -> Self:
        """Open the recording in `folder`.

        Raises KviewError if there is no recording, or if its format is another one.
        """
        return cls(Path(folder))

    @classmethod
    def open_readable(cls, folder: Path | str) -> Self:
        """Open the recording in `folder` without the closed segments that are damaged, of which all are read.

        Raises KviewError like `open`, or if nothing else is left.
        """
        recording = cls(Path(folder), leaves_out_damaged=True)
        for segment in recording._segments:
            if not segment.closed:
                continue
            try:
                recording._hold(segment, segment.tables())
            except FileNotFoundError:
                continue  # the ring dropped it
            except KviewError as error:
                recording.damaged[segment.number] = error
        recording.refresh()
        if recording.damaged and not len(recording.moments()):
            raise next(iter(recording.damaged.values()))
        return recording

    def refresh(self) -> None:
        """Update the list of segments and observations."""
        manifest = read_manifest(self.folder)
        self._names = manifest.columns
        known = {(segment.number, segment.closed): segment for segment in self._segments}
        self._segments = [
            known.get((entry.number, entry.closed)) or Segment(self.folder, entry)
            for entry in manifest.segments
            if entry.number not in self.damaged
        ]
        closed = {segment.number for segment in self._segments if segment.closed}
        self._held = {number: held for number, held in self._held.items() if number in closed}
        sequences, times, owners = ([np.empty(0, np.int64)] for _ in range(3))
        for place, segment in enumerate(self._segments):
            try:
                with damage_in(segment.folder):
                    if not segment.closed:
                        with suppress(FileNotFoundError):  # it was closed after the manifest was read
                            segment.read_new()
                    sequence, ended_ms = segment.times
            except FileNotFoundError:
                continue  # the ring dropped it after the manifest was read
            except KviewError as error:
                if not (segment.closed and self._leaves_out_damaged):
                    raise
                self.damaged[segment.number] = error
                continue
            sequences.append(sequence)
            times.append(ended_ms)
            owners.append(np.full(len(sequence), place))
        self._sequences, self._ended_ms = np.concatenate(sequences), np.concatenate(times)
        self._owners = np.concatenate(owners)

    def grows(self) -> bool:
        """Return whether the recording is still in progress.

        An open segment is not enough, because the last segment also stays open after a kill. Its file must
        have grown recently, too.
        """
        if not self._segments or self._segments[-1].closed:
            return False
        try:
            written_s = (self._segments[-1].folder / STREAM_FILE).stat().st_mtime
        except FileNotFoundError:
            return True  # The segment is being closed.
        return time.time() - written_s < self._grows_within_s

    def segments(self) -> list[Segment]:
        """Return the recording's segments, oldest first."""
        return list(self._segments)

    def sequences(self) -> Longs:
        """Return the recording's own numbers of its observations.

        The numbers ascend, without gaps except where a ring has dropped its oldest segments.
        """
        return self._sequences

    def moments(self) -> Longs:
        """Return when each observation ended, in epoch ms, in the order of recording."""
        return self._ended_ms

    def place_of(self, ms: int) -> int:
        """Return the index in `moments` of the last observation at or before `ms`, or 0 if all are later.

        Raises KviewError if there are no observations.
        """
        if not len(self._ended_ms):
            raise KviewError(ErrorKind.NOTHING_RECORDED, folder=str(self.folder))
        before = np.flatnonzero(self._ended_ms <= ms)
        return int(before[-1]) if len(before) else 0

    def at_place(self, place: int) -> Snapshot:
        """Return the snapshot at an index of `moments`.

        Reading in order is fast, and snapshots read in order share the arrays that did not change. Raises
        KviewError if a ring has dropped the snapshot since `refresh`.
        """
        segment = self._segments[int(self._owners[place])]
        sequence = int(self._sequences[place])
        like = self._at[1] if self._at is not None and self._at[0] is not segment else None
        with damage_in(segment.folder):
            cells = self._cells_of(segment)
            encoded = cells.at(sequence, like)
            self._at = (segment, encoded)
            return self._codec.decode(encoded, cells.observation(sequence))

    def stretch(self, first: int, last: int) -> Iterator[Snapshot]:
        """Yield the snapshots between two indices of `moments`, both included.

        The files of the next segment are read ahead, while the snapshots of the current segment are used.
        Raises KviewError if a ring has dropped a snapshot since `refresh`.
        """
        owners = np.unique(self._owners[first : last + 1]).tolist()
        with ThreadPoolExecutor(1, "kview-reader") as pool:
            ahead: Future[list[pa.Table]] | None = None
            for owner, following in zip_longest(owners, owners[1:]):
                if ahead is not None:
                    with suppress(FileNotFoundError):  # `at_place` will raise the error
                        self._hold(self._segments[owner], ahead.result())
                ahead = pool.submit(self._segments[following].tables) if following is not None else None
                begin, end = np.searchsorted(self._owners, [owner, owner + 1]).tolist()
                for place in range(max(first, begin), min(last + 1, end)):
                    yield self.at_place(place)

    def delta_batches(self, after_sequence: int = -1) -> Iterator[DeltaBatches]:
        """Yield what was recorded after `after_sequence`, segment by segment.

        Segments that have nothing after it are left out.
        """
        for segment in self._segments:
            sequences = segment.times[0]
            if not len(sequences) or sequences[-1] <= after_sequence:
                continue
            try:
                batches = segment.delta_batches(after_sequence)
            except FileNotFoundError:
                continue  # the ring dropped it after `refresh`
            yield batches

    def facts(self, part: str, after_sequence: int = -1) -> Iterator[pa.Table]:
        """Yield the rows of a part with facts that were written after `after_sequence`, segment by segment.

        `part` is one of `kview.recording.fact_schema.FACTS`. Segments without such rows are left out.
        """
        for segment in self._segments:
            try:
                table = segment.facts(part, after_sequence)
            except FileNotFoundError:
                continue  # the ring dropped it after `refresh`
            if len(table):
                yield table

    def changes(self, from_place: int, direction: int) -> Iterator[int]:
        """Yield the indices of `moments` with a change after (direction 1) or before (−1) `from_place`,
        nearest first.

        A change is a difference from the previous moment in brokers, leaders, ISRs, log starts, groups or the
        controller, or a committed offset that fell.
        """
        place = from_place + direction
        while 0 < place < len(self._sequences):
            owner = self._owners[place]
            first = int(np.searchsorted(self._owners, owner, "left"))
            last = int(np.searchsorted(self._owners, owner, "right")) - 1
            segment = self._segments[int(owner)]
            with damage_in(segment.folder):
                cells = self._cells_of(segment)
                sequences = np.union1d(cells.changes(EVENTFUL), cells.falls(FALLING))
            seen = [
                at for at in range(first + 1, last + 1) if self._controller(at) != self._controller(at - 1)
            ]
            places = {*(np.searchsorted(self._sequences, sequences).tolist()), *seen} - {first}
            if first and self._differ(first - 1, first):
                places.add(first)
            for at in sorted(places, reverse=direction < 0):
                if (at - place) * direction >= 0:
                    yield at
            place = last + 1 if direction > 0 else first - 1

    def columns(self, names: tuple[str, ...]) -> Iterator[list[tuple[int, list[Array]]]]:
        """Yield for each segment, the newest first, its observations at which one of these columns changed.

        An observation is when it ended, and the columns then. Observations are in the order of recording, and
        the first one of a segment is always among them. Raises KviewError like `stretch`.
        """
        for owner in reversed(range(len(self._segments))):
            segment = self._segments[owner]
            mine = np.flatnonzero(self._owners == owner)
            if not len(mine):
                continue
            with damage_in(segment.folder):
                cells = self._cells_of(segment)
                changed = np.union1d(cells.changes(names), self._sequences[mine[:1]])
                places = np.searchsorted(self._sequences, changed)
                yield [
                    (int(self._ended_ms[place]), [cells.column(name, int(sequence)) for name in names])
                    for place, sequence in zip(places, changed, strict=True)
                    if place < len(self._sequences) and self._sequences[place] == sequence
                ]

    def answer_times(self, first: int, last: int) -> Iterator[tuple[int, AnswerTimes]]:
        """Yield when each observation between two indices of `moments` ended, and how long its brokers took.

        Much faster than reading snapshots. Raises KviewError like `stretch`.
        """
        names = [f"brokers.{name}" for name in AnswerTimes._fields]
        for place in range(first, last + 1):
            segment, sequence = self._segments[int(self._owners[place])], int(self._sequences[place])
            with damage_in(segment.folder):
                cells = self._cells_of(segment)
                columns = [cells.column(name, sequence) for name in names]
            yield int(self._ended_ms[place]), AnswerTimes(*columns)

    def changed_columns(
        self, names: tuple[str, ...], other: str
    ) -> Iterator[tuple[int, tuple[Array, ...], Array]]:
        """Yield when one of these columns changed (epoch ms), their values from then on, and that of `other`.

        The beginning of each segment counts as a change. Much faster than reading snapshots. Raises
        KviewError like `stretch`.
        """
        times = dict(zip(self._sequences.tolist(), self._ended_ms.tolist(), strict=True))
        for segment in self._segments:
            with damage_in(segment.folder):
                cells = self._cells_of(segment)
                for sequence in cells.changes(names).tolist():
                    if sequence in times:
                        columns = tuple(cells.column(name, sequence) for name in names)
                        yield times[sequence], columns, cells.column(other, sequence)

    def _controller(self, place: int) -> int:
        segment = self._segments[int(self._owners[place])]
        with damage_in(segment.folder):
            return self._cells_of(segment).observation(int(self._sequences[place])).controller_id

    def _differ(self, before: int, now: int) -> bool:
        """Return whether two observations differ in an eventful column or in the controller, or whether a
        committed offset fell."""
        if self._controller(before) != self._controller(now):
            return True
        tables = self.at_place(before), self.at_place(now)
        for name in EVENTFUL:
            table, _, column = name.partition(".")
            a, b = (getattr(getattr(snapshot, table), column) for snapshot in tables)
            if a is not b and (a.shape != b.shape or not np.array_equal(a, b)):
                return True
        before_, now_ = (snapshot.offsets.committed for snapshot in tables)
        return fell(before_, now_)

    def _cells_of(self, segment: Segment) -> Moments:
        held = self._held.get(segment.number)
        try:
            return held or self._hold(segment, segment.tables())
        except FileNotFoundError as error:
            raise KviewError(ErrorKind.MOMENT_FORGOTTEN, folder=str(self.folder)) from error

    def _hold(self, segment: Segment, tables: list[pa.Table]) -> Moments:
        numbers, words, seen = tables
        with damage_in(segment.folder):
            self._held[segment.number] = held = Moments(
                numbers, words, _observations(seen.to_pylist()), self._names
            )
        while len(self._held) > SEGMENTS_HELD:
            del self._held[next(iter(self._held))]
        return held


def _observations(rows: Iterable[dict[str, Any]]) -> dict[int, Observation]:
    """Return the observations in rows of OBSERVATIONS, keyed by the recording's own sequence."""
    out = {}
    for row in rows:
        number, row["sequence"] = row["sequence"], row.pop("observed_sequence")
        row["failures"] = tuple(map(_failure, row["failures"]))
        row["asked"], row["capabilities"] = tuple(map(Part, row["asked"])), frozenset(row["capabilities"])
        out[number] = Observation(**row)
    return out


def _failure(row: dict[str, Any]) -> Failure:
    return Failure(**row | {"part": Part(row["part"]), "kind": FailureKind(row["kind"])})
