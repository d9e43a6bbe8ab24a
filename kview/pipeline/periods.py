"""Which seconds a report counts from which recording."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kview.derive.deltas import MAX_INTERVAL_MS
from kview.derive.windows import OUT_SETTLES_S
from kview.errors import ErrorValue
from kview.model.report import Note, NoteKind
from kview.model.snapshot import Longs
from kview.model.sums import BLOCK_S
from kview.pipeline.rolling import RolledUp

FOREVER_S = 1 << 40
"""After every second."""


class Seconds(NamedTuple):
    """Epoch seconds from `from_s` to before `until_s`."""

    from_s: int
    until_s: int

    def within(self, other: "Seconds") -> "Seconds":
        """Return those that are in `other`, too."""
        first = max(self.from_s, other.from_s)
        return Seconds(first, max(first, min(self.until_s, other.until_s)))

    @property
    def length_s(self) -> int:
        """Their number."""
        return self.until_s - self.from_s


ALWAYS = Seconds(0, FOREVER_S)


@dataclass(frozen=True, slots=True)
class Share:
    """What a report counts of a recording."""

    rolled: RolledUp
    seconds: Seconds
    out: Seconds
    """The seconds whose records out are settled."""
    gaps: tuple[Seconds, ...]
    """Seconds among these of which nothing is known."""
    gap_count: int
    gap_ms: int

    @property
    def cluster(self) -> str:
        """The cluster's id, or the recording's name."""
        return self.rolled.cluster

    def known_s(self, within: Seconds = ALWAYS) -> int:
        """Return the number of seconds in `within` that no gap covers."""
        return _without(self.seconds.within(within), self.gaps)

    def out_known_s(self, within: Seconds = ALWAYS) -> int:
        """Return the number of known seconds whose records out are settled."""
        return _without(self.out.within(within), self.gaps)


def _without(seconds: Seconds, gaps: Iterable[Seconds]) -> int:
    return seconds.length_s - sum(gap.within(seconds).length_s for gap in gaps)


def whole_minutes(since_ms: int | None, until_ms: int | None) -> Seconds:
    """Return the whole minutes from a moment to another one (epoch ms), None for no limit.

    Partitions have roll-ups by the minute.
    """
    since_s = 0 if since_ms is None else since_ms // 1000 // BLOCK_S * BLOCK_S
    until_s = FOREVER_S if until_ms is None else -(-until_ms // 1000 // BLOCK_S) * BLOCK_S
    return Seconds(since_s, max(since_s, until_s))


def widened(since_ms: int | None, until_ms: int | None, seconds: Seconds) -> list[Note]:
    """Note by how many seconds `whole_minutes` made a period longer, if it did."""
    earlier_s = 0 if since_ms is None else since_ms // 1000 - seconds.from_s
    later_s = 0 if until_ms is None else seconds.until_s - -(-until_ms // 1000)
    values: dict[str, ErrorValue] = {"earlier_s": earlier_s, "later_s": later_s}
    return [Note(NoteKind.WHOLE_MINUTES, values)] if earlier_s or later_s else []


def shares(recordings: Sequence[RolledUp], period: Seconds) -> tuple[list[Share], list[Note]]:
    """Return what counts of each recording, so that each second of a cluster counts once.

    Of recordings of one cluster that overlap, the one that began first counts until it ends.
    """
    known = [(rolled, whole) for rolled in recordings if (whole := _known(rolled)) is not None]
    notes = [
        Note(NoteKind.EMPTY, {"recording": rolled.source.name})
        for rolled in recordings
        if all(rolled is not other for other, _ in known)
    ]
    known.sort(key=lambda pair: (pair[0].cluster, pair[1], pair[0].source.address))
    counted: list[Share] = []
    taken: dict[str, tuple[int, RolledUp]] = {}
    for rolled, whole in known:
        seconds = whole
        before = taken.get(rolled.cluster)
        if before is not None and whole.from_s < before[0]:
            # A recording has partitions by the minute, so it takes over at the beginning of a minute.
            seconds = Seconds(-(-before[0] // BLOCK_S) * BLOCK_S, whole.until_s)
            lost = whole.length_s - max(seconds.length_s, 0)
            other = before[1].source.name
            notes.append(
                Note(NoteKind.OVERLAP, {"recording": rolled.source.name, "other": other, "seconds": lost})
            )
            if seconds.length_s <= 0:
                continue
        taken[rolled.cluster] = (seconds.until_s, rolled)
        inside = seconds.within(period)
        if not inside.length_s:
            notes.append(Note(NoteKind.OUTSIDE, {"recording": rolled.source.name}))
            continue
        settled = Seconds(
            inside.from_s, max(inside.from_s, min(inside.until_s, whole.until_s - OUT_SETTLES_S))
        )
        gaps, pauses_ms = _gaps(rolled.moments.ended_ms, inside)
        if gaps:
            length_s = round(sum(pauses_ms) / 1000)
            notes.append(
                Note(
                    NoteKind.GAP,
                    {"recording": rolled.source.name, "gaps": len(gaps), "seconds": length_s},
                )
            )
        counted.append(Share(rolled, inside, settled, gaps, len(gaps), sum(pauses_ms)))
    return counted, notes


def _known(rolled: RolledUp) -> Seconds | None:
    """Return the complete seconds of a recording, as `kview.derive.windows` counts them; None without any."""
    ended_ms = rolled.moments.ended_ms
    if not len(ended_ms):
        return None
    first, until = -(-int(ended_ms.min()) // 1000), int(ended_ms[-1]) // 1000 - 1
    return Seconds(first, until) if first < until else None


def _gaps(ended_ms: Longs, inside: Seconds) -> tuple[tuple[Seconds, ...], list[int]]:
    """Return the seconds of the pauses that are too long for a rate, and the lengths of the pauses."""
    gaps, lengths_ms = [], []
    for at in np.flatnonzero(np.diff(ended_ms) > MAX_INTERVAL_MS).tolist():
        before_ms, after_ms = int(ended_ms[at]), int(ended_ms[at + 1])
        gap = Seconds(before_ms // 1000, -(-after_ms // 1000)).within(inside)
        if gap.length_s:
            gaps.append(gap)
            lengths_ms.append(after_ms - before_ms)
    return tuple(gaps), lengths_ms
