"""The course of a topic or of groups over hours, as recordings of one cluster have it.

Lags are those of the facts, records in and out are shared out over seconds by the kernel, as in every other
figure per second. What a closed segment has is kept as one value per second, so that only what is new is read
again while a screen is open.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct, field

from kview.derive.deltas import MAX_INTERVAL_MS, MAX_SPREAD_MS
from kview.derive.groups.findings import are_old
from kview.derive.view import Floats
from kview.derive.windows import OUT_SETTLES_S
from kview.errors import KviewError
from kview.model.findings import FindingKind
from kview.model.history import MOST_GROUPS, Course, CourseOf, Peak
from kview.model.snapshot import Flags, Ids, Longs
from kview.model.units import UNKNOWN
from kview.pipeline.kernel.pieces import Rows, Split
from kview.pipeline.kernel.words import Words
from kview.recording.damage import damage_in
from kview.recording.group_lags import EVERY_MS
from kview.recording.reader import Recording
from kview.recording.segment_reader import Segment
from kview.recording.writer import LONGEST_SEGMENT_S

MOST_S = 7 * 86_400
"""The longest course, in seconds. A week of two recordings takes about 90 MB while it is read."""

MOST_KEPT_S = 2 * MOST_S
"""The most seconds of segments that are kept, which take about 80 MB. They are more than in a course, because
each segment's figures reach back before it."""

MOST_STEPS = 720
"""The most steps of a course, and one more if it begins within a step: several for each cell of a wide
terminal."""

STEPS_S = (1, 2, 5, 10, 30, 60, 120, 300, 600, 1800)

UNSURE = (FindingKind.NO_BROKER_ANSWERS, FindingKind.NOTHING_KNOWN)
"""While these stand, all figures are old ones."""

_IN = ("sequence", "observed_ms", "topic", "partition", "topic_partitions", "began_ms", "ended_ms")
_IN_FIGURES = ("records_in", "state_ms", "silent")
_OUT = ("sequence", "observed_ms", "topic", "partition", "since_ms", "ended_ms", "records_out")

_log = logging.getLogger(__name__)


class _Newest(NamedTuple):
    """What a group's newest row says."""

    observed_ms: int
    lag: float
    is_bound: bool
    behind_s: float
    behind_is_bound: bool


class _Seconds(Struct):
    """One value per second from `first_s` (epoch) on. Lags are NaN where they are not known."""

    first_s: int
    records_in: Floats
    records_out: Floats
    silent: Floats
    """The share of the topic's partitions whose leader was silent."""
    lag: Floats
    behind_s: Floats
    is_bound: Flags
    behind_is_bound: Flags
    group: Ids
    """The group whose lag it is, as an index into the groups that were asked for."""
    old_ms: Floats
    """For how many ms of the second all figures were old ones."""
    newest: dict[int, _Newest] = field(default_factory=dict)

    @classmethod
    def empty(cls, first_s: int, count: int) -> "_Seconds":
        """Return `count` seconds of which nothing is known."""
        records_in, records_out, silent, old_ms = np.zeros((4, count))
        lag, behind_s = np.full((2, count), np.nan)
        is_bound, behind_is_bound = np.zeros((2, count), np.bool_)
        group = np.full(count, -1, np.int32)
        return cls(
            first_s, records_in, records_out, silent, lag, behind_s, is_bound, behind_is_bound, group, old_ms
        )

    def __len__(self) -> int:
        return len(self.lag)

    def note(
        self, group: int, lag: Floats, is_bound: Flags, behind_s: Floats, behind_is_bound: Flags
    ) -> None:
        """Note a group's lag, where it is the greatest."""
        more = _is_more(lag, self.lag)
        self.lag[more], self.group[more], self.is_bound[more] = lag[more], group, is_bound[more]
        more = _is_more(behind_s, self.behind_s)
        self.behind_s[more], self.behind_is_bound[more] = behind_s[more], behind_is_bound[more]

    def add(self, other: "_Seconds") -> None:
        """Add what a part of the same recording has of these seconds."""
        begin = max(self.first_s, other.first_s)
        end = min(self.first_s + len(self), other.first_s + len(other))
        if begin >= end:
            return
        here, there = (slice(begin - each.first_s, end - each.first_s) for each in (self, other))
        for name in ("records_in", "records_out", "silent", "old_ms"):
            getattr(self, name)[here] += getattr(other, name)[there]
        for names in _GREATEST:
            more = _is_more(getattr(other, names[0])[there], getattr(self, names[0])[here])
            for name in names:
                getattr(self, name)[here][more] = getattr(other, name)[there][more]


_GREATEST = (("lag", "is_bound", "group"), ("behind_s", "behind_is_bound"))
"""Figures of which the greatest counts, each with what is said of it."""


def _is_more(values: Floats, than: Floats) -> Flags:
    return np.asarray(~(values <= than) & np.isfinite(values), np.bool_)


class Courses:
    """Reads courses from the recordings of one cluster. Its methods may be called from any thread."""

    def __init__(self, folders: Callable[[], Sequence[Path]]) -> None:
        """`folders` returns the folders of recordings. Where two have the same second, the first counts."""
        self._folders = folders
        self._reading = threading.Lock()
        self._newest: CourseOf | None = None
        """The newest question."""
        self._opened: dict[Path, Recording] = {}
        self._kept: dict[tuple[Path, int], _Seconds] = {}
        """What closed segments have of `_about`."""
        self._about: tuple[str, tuple[str, ...]] = ("", ())

    def read(self, asked: CourseOf) -> Course | None:
        """Return a course. It is empty if nothing is recorded, and None if another one was asked for before
        this one's turn came. Raises KviewError and OSError."""
        self._newest = asked
        with self._reading:
            if self._newest is not asked:
                return None
            about = (asked.topic, asked.groups[:MOST_GROUPS])
            if about != self._about:
                self._about, self._kept = about, {}
            folders = self._folders()
            recordings = [(folder, self._open(folder)) for folder in folders[:1]]
            for folder in folders[1:]:
                with suppress(KviewError, OSError):  # another run removes it
                    recordings.append((folder, self._open(folder)))
            self._forget(recordings)
            some = [(folder, recording) for folder, recording in recordings if len(recording.moments())]
            return self._course(asked, some) if some else Course()

    def _open(self, folder: Path) -> Recording:
        if (recording := self._opened.get(folder)) is not None:
            recording.refresh()
        else:
            recording = self._opened[folder] = Recording(folder, leaves_out_damaged=True)
        return recording

    def _forget(self, recordings: Sequence[tuple[Path, Recording]]) -> None:
        """Forget recordings that are gone, and segments that a ring has dropped."""
        self._opened = dict(recordings)
        there = {(folder, segment.number) for folder, each in recordings for segment in each.segments()}
        self._kept = {key: kept for key, kept in self._kept.items() if key in there}

    def _course(self, asked: CourseOf, recordings: Sequence[tuple[Path, Recording]]) -> Course:
        # The clock may have been set back: the first moment is not always the earliest one.
        last_ms = max(int(recording.moments().max()) for _, recording in recordings)
        since_ms = min(int(recording.moments().min()) for _, recording in recordings)
        # What has just been observed may not be written yet: the course ends before it, without a gap.
        end_ms = asked.until_ms if asked.until_ms - last_ms > EVERY_MS else min(asked.until_ms, last_ms)
        # A second's records are complete a second later, because readings are spread over an observation.
        end_s = end_ms // 1000 + (-1 if asked.topic else 1)
        span_s = end_s - since_ms // 1000 if asked.span_ms == UNKNOWN else asked.span_ms // 1000
        span_s = min(max(1, span_s), MOST_S)
        step_s = next((step for step in STEPS_S if span_s <= step * MOST_STEPS), STEPS_S[-1])
        begin = (end_s - span_s) // step_s
        count, from_s = -(-end_s // step_s) - begin, begin * step_s
        known: _Seconds | None = None
        for folder, recording in recordings:
            part = self._seconds(folder, recording, from_s, end_s)
            known = part if known is None else _filled(known, part)
        assert known is not None, "there are recordings"

        def steps(values: Floats) -> tuple[float, ...]:
            whole = np.full(count * step_s, np.nan)
            whole[: len(values)] = values
            return tuple(np.fmax.reduce(whole.reshape(count, step_s), axis=1).tolist())

        is_topic = bool(asked.topic)
        return Course(
            from_ms=from_s * 1000,
            step_ms=step_s * 1000,
            lag=steps(known.lag),
            behind_s=steps(known.behind_s),
            records_in=steps(known.records_in) if is_topic else (),
            records_out=steps(known.records_out) if is_topic else (),
            peak=_peak(known, asked.groups),
            since_ms=since_ms,
            behind_is_bound=bool((known.behind_is_bound & np.isfinite(known.behind_s)).any()),
        )

    def _seconds(self, folder: Path, recording: Recording, from_s: int, until_s: int) -> _Seconds:
        """Return what a recording has of these seconds; NaN for what is not known."""
        out = _Seconds.empty(from_s, max(0, until_s - from_s))
        for segment in recording.segments():
            found = self._kept.get((folder, segment.number))
            if found is None:
                try:
                    found = self._of_segment(folder, segment, from_s, until_s)
                except FileNotFoundError:
                    continue  # the ring dropped it
                except KviewError as error:
                    _log.warning("a segment is left out of a course: %s", error)
                    found = _Seconds.empty(from_s, 0)
                    self._keep(folder, segment, found)
            out.add(found)
            out.newest |= found.newest
        moments = recording.moments()
        last_ms = int(moments[-1])
        _hold_newest(out, last_ms)
        whole_ms = np.full(len(out), 1000)
        if from_s <= last_ms // 1000 < until_s:
            whole_ms[last_ms // 1000 - from_s] = max(1, last_ms % 1000)
        old = out.old_ms >= whole_ms
        out.lag[old] = out.behind_s[old] = np.nan
        unknown = ~_observed(moments, from_s, len(out)) | old | ((out.silent >= 1) & (out.records_in == 0))
        out.records_in[unknown] = out.records_out[unknown] = np.nan
        out.records_out[max(0, int(moments.max()) // 1000 - 1 - OUT_SETTLES_S - from_s) :] = np.nan
        return out

    def _of_segment(self, folder: Path, segment: Segment, from_s: int, until_s: int) -> _Seconds:
        """Return what a segment has, at least of these seconds. Raises FileNotFoundError and KviewError."""
        with damage_in(segment.folder):
            times = segment.times[1]
        if not len(times):
            return _Seconds.empty(from_s, 0)
        # How far back its figures may reach, and where its last second ends.
        first_s, end_s = int(times.min()) // 1000 - _BACK_S, int(times.max()) // 1000 + 1
        begin_s, stop_s = max(first_s, from_s), min(end_s, until_s)
        if begin_s >= stop_s:
            return _Seconds.empty(from_s, 0)
        if end_s - first_s > _LONGEST_KEPT_S:  # no writer makes such a segment, unless it slept
            return _read_segment(segment, begin_s, stop_s, *self._about)
        found = _read_segment(segment, first_s, end_s, *self._about)
        self._keep(folder, segment, found)
        return found

    def _keep(self, folder: Path, segment: Segment, found: _Seconds) -> None:
        """Keep what a closed segment has, and no more than MOST_KEPT_S of all of them."""
        if segment.closed:
            self._kept[folder, segment.number] = found
            while sum(map(len, self._kept.values())) > MOST_KEPT_S:
                del self._kept[next(iter(self._kept))]


_BACK_S = MAX_INTERVAL_MS // 1000
"""How far before a segment's first observation its figures may reach."""


_LONGEST_KEPT_S = LONGEST_SEGMENT_S + 2 * _BACK_S
"""The longest segment of which all is read and kept: a damaged one may name any times."""


def _read_segment(
    segment: Segment, first_s: int, end_s: int, topic: str, groups: tuple[str, ...]
) -> _Seconds:
    """Return what a segment has of these seconds. Raises FileNotFoundError and KviewError."""
    out = _Seconds.empty(first_s, end_s - first_s)
    if topic:
        _add_records(out, segment, topic)
    findings = segment.facts("findings").select(["observed_ms", "interval_ms", "kind"])
    _add_old(out.old_ms, findings.filter(pc.is_in(findings["kind"], pa.array(map(str, UNSURE)))), first_s)
    table = segment.facts("group_lags")
    whose = pc.fill_null(pc.index_in(table["group"], pa.array(groups, pa.string())), -1).to_numpy()
    order = np.argsort(whose, kind="stable")
    bounds = np.searchsorted(whose[order], np.arange(len(groups) + 1))
    observed_ms, interval_ms = (table[name].to_numpy() for name in ("observed_ms", "interval_ms"))
    each_lag, each_behind_s = _floats(table["lag"]), _floats(table["behind_ms"]) / 1000
    each_is_bound, each_behind_is_bound = (
        table[name].fill_null(False).to_numpy() for name in ("lag_is_bound", "behind_is_bound")
    )
    old = are_old(*(table[name].to_numpy() for name in ("verdict", "severity")))
    each_lag[old] = each_behind_s[old] = np.nan
    for number, (begin, end) in enumerate(pairwise(bounds.tolist())):
        if begin == end:
            continue
        mine = order[begin:end]
        ended_ms = observed_ms[mine]
        began_ms = ended_ms - np.minimum(interval_ms[mine], MAX_INTERVAL_MS + EVERY_MS)
        seconds, rows = _touched(began_ms, ended_ms, first_s, len(out))
        lags, is_bound = _greatest(each_lag[mine], each_is_bound[mine], seconds, rows, len(out))
        behinds, behind_is_bound = _greatest(
            each_behind_s[mine], each_behind_is_bound[mine], seconds, rows, len(out)
        )
        out.note(number, lags, is_bound, behinds, behind_is_bound)
        at = mine[int(np.argmax(ended_ms))]
        out.newest[number] = _Newest(
            int(observed_ms[at]),
            float(each_lag[at]),
            bool(each_is_bound[at]),
            float(each_behind_s[at]),
            bool(each_behind_is_bound[at]),
        )
    return out


def _greatest(values: Floats, bounds: Flags, seconds: Longs, rows: Longs, count: int) -> tuple[Floats, Flags]:
    """Return the greatest value of the rows that touch each of `count` seconds, and whether it is a bound."""
    out, is_bound = np.full(count, np.nan), np.zeros(count, np.bool_)
    np.fmax.at(out, seconds, values[rows])
    is_bound[seconds[bounds[rows] & (values[rows] == out[seconds])]] = True
    return out, is_bound


def _add_records(out: _Seconds, segment: Segment, topic: str) -> None:
    """Add the records of a topic in each second, and the share of its partitions that were silent."""
    partitions = segment.deltas_of("partition_deltas", topic, (*_IN, *_IN_FIGURES))
    offsets = segment.deltas_of("offset_deltas", topic, _OUT)
    if len(partitions):
        count = max(1, pc.max(partitions["topic_partitions"]).as_py() or 1)
        _add_shares(partitions, out.first_s, {"records": out.records_in, "silent_ms": out.silent})
        out.silent /= count * 1000
    if len(offsets):
        _add_shares(offsets, out.first_s, {"records": out.records_out})


def _add_shares(table: pa.Table, first_s: int, sums: dict[str, Floats]) -> None:
    began = "began_ms" if "began_ms" in table.schema.names else "since_ms"
    # Longer ones are in damaged files alone, and would take memory for each of their seconds.
    is_short = pc.less_equal(
        pc.subtract(table["ended_ms"], table[began]), max(MAX_INTERVAL_MS, MAX_SPREAD_MS)
    )
    if "state_ms" in table.schema.names:
        is_short = pc.and_(is_short, pc.less_equal(table["state_ms"], MAX_INTERVAL_MS))
    table = table.filter(is_short)
    if not len(table):
        return
    (batch,) = table.combine_chunks().to_batches()
    split = Split(Rows.of(batch, Words()), first_s, ())
    for shares in (split.first, split.last, split.rest):
        for name, out in sums.items():
            if (values := shares.sums.get(name)) is not None:
                at = shares.second - first_s
                inside = (at >= 0) & (at < len(out))
                np.add.at(out, at[inside], values[inside])


def _add_old(out: Floats, findings: pa.Table, first_s: int) -> None:
    """Add for how many ms of each second these findings stood."""
    ended_ms = findings["observed_ms"].to_numpy()
    began_ms = ended_ms - np.minimum(findings["interval_ms"].to_numpy(), MAX_INTERVAL_MS)
    seconds, rows = _touched(began_ms, ended_ms, first_s, len(out))
    begins_ms = (seconds + first_s) * 1000
    held_ms = np.minimum(ended_ms[rows], begins_ms + 1000) - np.maximum(began_ms[rows], begins_ms)
    np.add.at(out, seconds, np.maximum(held_ms, 0))


def _touched(began_ms: Longs, ended_ms: Longs, first_s: int, count: int) -> tuple[Longs, Longs]:
    """Return the seconds from `first_s` on that intervals touch, as indices, and the interval of each."""
    begins = np.maximum(began_ms // 1000 - first_s, 0)
    ends = np.minimum(np.maximum(ended_ms - 1, began_ms) // 1000 - first_s, count - 1)
    counts = np.maximum(ends - begins + 1, 0)
    rows = np.repeat(np.arange(len(counts)), counts)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    return begins[rows] + within, rows


def _floats(column: pa.ChunkedArray) -> Floats:
    """Return numbers, NaN for null."""
    return np.array(column.cast(pa.float64()).to_numpy(), np.float64)


def _hold_newest(out: _Seconds, last_ms: int) -> None:
    """Hold the newest row of each group until the last observation: a row that still holds is written only
    every few seconds."""
    for group, newest in out.newest.items():
        if last_ms - newest.observed_ms <= EVERY_MS:
            begin = max(0, newest.observed_ms // 1000 - out.first_s)
            end = max(0, last_ms // 1000 + 1 - out.first_s)
            lag, behind_s = np.full((2, len(out)), np.nan)
            lag[begin:end], behind_s[begin:end] = newest.lag, newest.behind_s
            is_bound, behind_is_bound = (
                np.full(len(out), each) for each in (newest.is_bound, newest.behind_is_bound)
            )
            out.note(group, lag, is_bound, behind_s, behind_is_bound)


def _observed(moments: Longs, first_s: int, count: int) -> Flags:
    """Return which seconds lie wholly between observations that are close enough for a rate."""
    known = np.zeros(count, np.bool_)
    between_ms = np.diff(moments)
    breaks = np.flatnonzero((between_ms <= 0) | (between_ms > MAX_INTERVAL_MS))
    starts, stops = np.r_[0, breaks + 1], np.r_[breaks, len(moments) - 1]
    for begin_ms, end_ms in zip(moments[starts].tolist(), moments[stops].tolist(), strict=True):
        first, last = -(-begin_ms // 1000) - first_s, end_ms // 1000 - 1 - first_s
        known[max(0, first) : max(0, last)] = True
    return known


def _filled(known: _Seconds, other: _Seconds) -> _Seconds:
    """Fill what is not known with what another recording has of the same seconds."""
    for names in (("records_in",), ("records_out",), *_GREATEST):
        gaps = np.isnan(getattr(known, names[0]))
        for name in names:
            getattr(known, name)[gaps] = getattr(other, name)[gaps]
    return known


def _peak(known: _Seconds, groups: Sequence[str]) -> Peak | None:
    if not np.isfinite(known.lag).any():
        return None
    at = int(np.nanargmax(known.lag))
    return Peak(
        int(known.lag[at]), bool(known.is_bound[at]), groups[known.group[at]], (known.first_s + at) * 1000
    )
