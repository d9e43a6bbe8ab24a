"""Helpers for all rows: severities as signs and roles, replicas with their state, widths of figures."""

import math
from collections.abc import Hashable, Iterable, Sequence
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from kview.derive.view import PartitionStatus, Verdict, View
from kview.language import brokers, glyphs, verdicts, words
from kview.language import replicas as replica_words
from kview.language.brokers import BrokerWords
from kview.model.events import Severity
from kview.model.snapshot import Flags, Strings
from kview.model.units import NO_BROKER, UNKNOWN, UNKNOWN_ID
from kview.tui.rows.figures import Figure, known, state_figure
from kview.tui.rows.row import Rows
from kview.tui.text import Line, Role, Span, line

FRESH_MS = 3_000
"""A row that changed within this time is drawn brighter."""

ROLES: dict[str, Role] = {
    Severity.RISK: Role.RISK,
    Severity.WARN: Role.WARN,
    Severity.GOOD: Role.GOOD,
    Severity.CALM: Role.DIM,
}
SIGNS = glyphs.SIGNS

STATUS_SIGNS: dict[str, str] = {
    PartitionStatus.NO_LEADER: glyphs.DEAD,
    PartitionStatus.SILENT_LEADER: glyphs.DEAD,
    PartitionStatus.FROZEN: glyphs.FROZEN,
    PartitionStatus.UNDER_MIN_ISR: glyphs.OUT_OF_SYNC,
    PartitionStatus.AT_MIN_ISR: glyphs.OUT_OF_SYNC,
    PartitionStatus.UNDER_REPLICATED: glyphs.OUT_OF_SYNC,
    PartitionStatus.UNREAD: words.UNSEEN,
    PartitionStatus.REASSIGNING: glyphs.ARROW,
    PartitionStatus.NOT_PREFERRED: glyphs.UP,
    PartitionStatus.OK: glyphs.OK,
    PartitionStatus.UNKNOWN: words.UNSEEN,
}

Key = TypeVar("Key", bound=Hashable)


def needing_attention(severities: NDArray[np.object_]) -> Flags:
    """Return which rows need attention."""
    in_trouble: Flags = (severities == Severity.RISK) | (severities == Severity.WARN)
    return in_trouble


def troubled(severities: NDArray[np.object_]) -> int:
    """Return the number of rows that need attention."""
    return int(needing_attention(severities).sum())


class Keyed(Rows, Generic[Key]):
    """Finds rows by key, with an index that is built on first use."""

    severities: Strings = np.zeros(0, object)
    """The severity of each row, if rows have one."""

    def __init__(self, keys: Sequence[Key]) -> None:
        self.keys = keys
        self._index_by_key: dict[Hashable, int] | None = None

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def in_trouble(self) -> Flags:
        return needing_attention(self.severities)

    def key(self, index: int) -> Hashable:
        return self.keys[index]

    def find(self, key: Hashable) -> int | None:
        if self._index_by_key is None:
            self._index_by_key = {key: index for index, key in enumerate(self.keys)}
        return self._index_by_key.get(key)


def title(name: str, *notes: str) -> Line:
    """Return a panel's title: its name, and dim notes, such as the order of its rows."""
    return line(Span(name, Role.HEAD), *(Span(f" {note}", Role.DIM) for note in notes if note))


REASON_CELLS = 27
"""The cells of the longest usual verdict with its reason: `✕ blocked: watermark frozen`."""


def count_width(values: NDArray[np.int64], least: int, extra: int = 0) -> int:
    """Return the width that the widest of these counts needs."""
    if not len(values):
        return least
    low = values.min()
    if low == UNKNOWN:
        low = values.min(where=values != UNKNOWN, initial=0)
    return max(least, max(len(words.count(int(end))) for end in (low, values.max())) + extra)


def rate_width(values: NDArray[np.float64], least: int, is_bound: Flags | None = None) -> int:
    """Return the width in cells that the highest rate needs, at least `least`.

    `is_bound` says which of the rates are lower bounds, None if none is.
    """
    highest = float(np.fmax.reduce(values, initial=-np.inf))
    has_bound = is_bound is not None and bool(is_bound.any())
    return max(least, len(words.rate(highest, has_bound))) if math.isfinite(highest) else least


def name_width(names: Iterable[str], least: int, most: int) -> int:
    """Return the width that these names need, within bounds."""
    return max(least, min(most, max(map(len, names), default=0)))


def fresh(changed_ms: int, now_ms: int) -> bool:
    """Return whether a change happened within the last seconds."""
    return changed_ms != UNKNOWN and now_ms - changed_ms < FRESH_MS


def broker_state(view: View, row: int, now_ms: int) -> Figure:
    """Return what a broker is doing, with its sign: `✕ silent 4 s`."""
    said = brokers.state(view.snapshot.brokers, view.brokers, row, now_ms)
    return state_cell(said, ROLES[view.brokers.severity[row]])


def state_cell(said: BrokerWords, role: Role) -> Figure:
    """Return what a broker or a controller is doing, in `role` if it is not as usual."""
    if said.fine:
        return state_figure(said, line(Span(f"{said.sign} ", Role.GOOD), Span(said.text, Role.DIM)))
    return state_figure(said, line(Span(f"{said.sign} {said.text}", role)))


def leader_epoch(view: View, row: int) -> Figure:
    """Return a partition's leader and its epoch: `4✕·6`, `none·7`."""
    leader, epoch = int(view.snapshot.partitions.leader[row]), int(view.snapshot.partitions.leader_epoch[row])
    return Figure(_leader_epoch(view, row, leader, epoch), known(leader), known(epoch))


def _leader_epoch(view: View, row: int, leader: int, epoch: int) -> Line:
    table, figures = view.snapshot.partitions, view.partitions
    after = f"{glyphs.DOT}{epoch}" if epoch != UNKNOWN_ID else ""
    if leader == NO_BROKER:
        return line(Span("none", Role.RISK), Span(after, Role.DIM))
    if leader == UNKNOWN_ID:
        return line(Span(words.NONE, Role.DIM), Span(after, Role.DIM))
    if sign := replica_words.leader_sign(table, figures, row):
        return line(Span(f"{leader}{sign}", replica_role(sign, in_isr=True)), Span(after, Role.DIM))
    return line(f"{leader}", Span(after, Role.DIM))


def replicas(view: View, row: int) -> Line:
    """Return a partition's replicas in the order of its list, each with its sign: `4✕ 2○ 5○`."""
    table, figures = view.snapshot.partitions, view.partitions
    spans: list[Span] = []
    for position, broker in enumerate(table.replicas[row].tolist()):
        if broker == NO_BROKER:
            continue
        sign = replica_words.sign(table, figures, row, position)
        role = replica_role(sign, bool(figures.in_isr[row, position]))
        spans.append(Span(f"{' ' if spans else ''}{broker}{sign}", role))
    return tuple(spans)


_REPLICA_ROLES: dict[str, Role] = {
    glyphs.LEADER: Role.TEXT,
    glyphs.FOLLOWER: Role.DIM,
    glyphs.OUT_OF_SYNC: Role.WARN,
    glyphs.ADDED: Role.TEXT,
    glyphs.REMOVED: Role.TEXT,
    words.UNSEEN: Role.WARN,
}


def replica_role(sign: str, in_isr: bool) -> Role:
    """Return how a replica with that sign is drawn. A silent one is a risk while it is in the ISR."""
    if sign == glyphs.DEAD:
        return Role.RISK if in_isr else Role.WARN
    return _REPLICA_ROLES[sign]


def isr(view: View, row: int) -> Figure:
    """Return the number of replicas that are in sync, out of all: `2/3`."""
    table, figures = view.snapshot.partitions, view.partitions
    size, all_of = int(figures.isr_count[row]), int((table.replicas[row] != NO_BROKER).sum())
    return Figure((Span(f"{size}/{all_of}", Role.DIM if size == all_of else Role.WARN),), size, all_of)


def replicas_width(view: View) -> int:
    """Return the width that the longest replica list needs."""
    matrix = view.snapshot.partitions.replicas
    if not matrix.size:
        return 8
    digits = len(str(int(matrix.max())))
    return max(8, int(matrix.shape[1]) * (digits + 2) - 1)


def verdict(kind: str, reason: str, severity: str, age_ms: int = UNKNOWN, lost: int = 0) -> Line:
    """Return a `Verdict` with its sign and its reason: `✕ blocked: 10 partitions`.

    Without a verdict, return `…` alone. If the verdict is old (`age_ms`), its words are dim. `lost` is the
    number of records that were deleted before they were read.
    """
    text = verdicts.name(kind, age_ms, lost)
    if kind == Verdict.UNDECIDED and text != verdicts.LOST:
        undecided = Span(f"{text} {reason}".rstrip(), Role.DIM)
        calm = severity == Severity.CALM
        return (undecided,) if calm else (Span(f"{SIGNS[severity]} ", ROLES[severity]), undecided)
    words_ = f"{text}: {reason}" if reason else text
    sign = "?" if kind == Verdict.UNKNOWN and text != verdicts.LOST else SIGNS[severity]
    if age_ms != UNKNOWN:
        return (Span(f"{sign} ", ROLES[severity]), Span(words_, Role.DIM))
    return (Span(f"{sign} {words_}", ROLES[severity]),)
