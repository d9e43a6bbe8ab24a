"""Rows of a group's detail: its members with the partitions that each owns, and its partitions."""

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Sequence
from datetime import tzinfo

import numpy as np

from kview.derive.groups.verdicts import ORDER, severity
from kview.derive.passing import Listed, Passing
from kview.derive.view import Floats, Verdict, View
from kview.language import glyphs, verdicts, words
from kview.language import quotas as said
from kview.language.lists import Order, order_name
from kview.model.events import Severity
from kview.model.inspection import QuotasAnswer
from kview.model.snapshot import Flags, Longs
from kview.model.states import REBALANCING, GroupState, GroupType
from kview.model.units import NEVER, NO_OFFSET, UNKNOWN, UNKNOWN_ID
from kview.tui.options import Options
from kview.tui.rows.columns import EXTRA, Column, with_bound
from kview.tui.rows.common import (
    REASON_CELLS,
    ROLES,
    SIGNS,
    Keyed,
    count_width,
    name_width,
    rate_width,
    title,
    verdict,
)
from kview.tui.rows.figures import (
    ABOUT,
    Figure,
    behind_figure,
    count_figure,
    duration_figure,
    known,
    number_figure,
    rate_figure,
    text_figure,
)
from kview.tui.rows.groups import is_stale
from kview.tui.rows.row import Row, Rows
from kview.tui.rows.sorting import Values, codes, figures, ids, order_note, ranks, sorted_rows
from kview.tui.text import Line, Role, Span, line

PANEL = "offsets"
MEMBERS_PANEL = "members"

DAY_MS = 86_400_000
HALTED = frozenset({Verdict.STUCK, Verdict.BLOCKED, Verdict.HELD, Verdict.FALLING_BEHIND})
"""The verdicts about readers that do not go on, or too slowly."""
_ALL = slice(None)

MEMBER_SORTS: Values = {
    "client": lambda view: codes(view.snapshot.members.client_id),
    "host": lambda view: codes(view.snapshot.members.host),
    "assigned": lambda view: ids(view.snapshot.members.assigned),
    "partitions": lambda view: ids(view.snapshot.members.assigned),
    "epoch": lambda view: ids(view.snapshot.members.epoch),
    "member": lambda view: codes(view.snapshot.members.member_id),
}


def _worst(view: View, rows: Longs | slice = _ALL) -> Floats:
    """Return the place of the verdicts of these offsets, the worst first, records lost before all."""
    figures = view.offsets
    return np.where(figures.lost[rows] > 0, -1.0, ranks(figures.verdict[rows], reversed(ORDER)))


SORTS: Values = {
    "topic": lambda view: np.arange(len(view.snapshot.offsets), dtype=np.float64),
    "p": lambda view: figures(view.snapshot.offsets.partition),
    "committed": lambda view: ids(view.snapshot.offsets.committed),
    "end": lambda view: figures(view.offsets.log_end_offset),
    "lag": lambda view: figures(view.offsets.lag),
    "behind": lambda view: figures(view.offsets.behind_ms),
    "read": lambda view: figures(view.offsets.read_rate),
    "write": lambda view: figures(view.offsets.write_rate),
    "catch": lambda view: figures(view.offsets.catch_up_ms),
    "owner": lambda view: codes(view.snapshot.offsets.owner),
    "verdict": _worst,
}


def _offset_keys(view: View) -> object:
    table = view.snapshot.offsets
    return table.group, table.topic, table.partition


def ranges(numbers: Iterable[int]) -> str:
    """Return partition numbers, with runs as ranges: `0–3, 7`."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}–{b}" for a, b in runs)


WORK: dict[str, str] = {GroupType.CONNECT: "connectors and tasks", GroupType.STREAMS: "tasks"}
"""What members have, if it is not partitions."""


def without_work(kind: str, state: str) -> Span:
    """Return why a member of a group of that kind and state has nothing to do, with its role.

    A worker of Kafka Connect is never idle, as it waits for connectors, and a share group's member has no
    partitions of its own: several read the same one.
    """
    if state in REBALANCING:
        return Span("waits for the rebalance", Role.WARN)
    if state != GroupState.STABLE:
        return Span("")
    match kind:
        case GroupType.CONNECT:
            return Span("no connectors or tasks", Role.DIM)
        case GroupType.SHARE:
            return Span("no partition now", Role.DIM)
        case GroupType.STREAMS:
            return Span("idle: no task", Role.WARN)
    return Span("idle: no partition", Role.WARN)


def _nobody(view: View, group: str) -> str:
    """Return what a list without members says: whether there are none, or nobody knows."""
    table = view.snapshot.groups
    (row,) = np.flatnonzero(table.group == group)[:1].tolist() or [None]
    if row is None or table.members[row] == UNKNOWN_ID:
        return "its members are not known"
    if table.type[row] == GroupType.SIMPLE:
        return "it has no members: something commits under its name"
    if table.type[row] == GroupType.CONNECT:
        return "no workers"
    return "no members: nobody is reading"


MOST_NUMBERS = 12
"""A member that owns more partitions than this has them as ranges."""


class MemberRows(Keyed[str]):
    """The rows of a group's members. The key is the member's id."""

    def __init__(
        self,
        view: View,
        group: str,
        options: Options,
        quotas: QuotasAnswer | None = None,
        zone: tzinfo | None = None,
    ) -> None:
        """Take the members of a group, and what was answered about quotas, None if nothing was."""
        table, offsets = view.snapshot.members, view.snapshot.offsets
        self._table = table
        own = np.flatnonzero(table.group == group)
        self._rows = sorted_rows(
            own, options, MEMBERS_PANEL, view, MEMBER_SORTS, lambda view: (view.snapshot.members.member_id,)
        )
        self.panel, self.sorts = MEMBERS_PANEL, MEMBER_SORTS
        groups = view.snapshot.groups
        (at,) = np.flatnonzero(groups.group == group)[:1].tolist() or [None]
        kind, state = ("", "") if at is None else (str(groups.type[at]), str(groups.state[at]))
        subtopologies = "" if at is None else str(groups.subtopologies[at])
        self._without = without_work(kind, state)
        super().__init__([str(table.member_id[row]) for row in self._rows])
        self._offsets, self._view = offsets, view
        self._of_group = np.flatnonzero(offsets.group == group)
        self._owners = offsets.owner[self._of_group]
        self.empty = _nobody(view, group)
        self.columns: Sequence[Column] = (
            Column(
                "client",
                "client id",
                name_width(table.client_id[self._rows], 9, 24),
                flex=1,
                most=40,
                name=True,
            ),
            Column("host", "host", name_width(table.host[self._rows], 10, 20), name=True, rank=1),
            Column(
                "assigned",
                "owns",
                max([4, *(len(self._owns(row)) for row in self._rows.tolist())]),
                right=True,
                exported=("owns", "is to own", "to give back", "to get"),
            ),
            Column("partitions", WORK.get(kind, "partitions"), 20, flex=3, most=80),
            *self._quota_column(quotas),
            *self._epoch_column(kind),
            Column("member", "consumer id", 20, flex=1, most=60, rank=2, name=True),
        )
        note = said.of_members(quotas, zone) if quotas is not None and len(self._rows) else ""
        tasks_of = f"subtopologies {subtopologies}" if subtopologies else ""
        self.title: Line = title(
            "MEMBERS", order_note(options, MEMBERS_PANEL, self.columns, ""), note, tasks_of
        )

    def _quota_column(self, answer: QuotasAnswer | None) -> list[Column]:
        """Return the column of quotas, if there are any."""
        ids = sorted(set(self._table.client_id[self._rows].tolist()))
        self._quotas: dict[str, str] = {}
        if answer is not None and answer.quotas:
            self._quotas = {id: said.of_member(answer.quotas, id) for id in ids}
        width = max((len(text) for text in self._quotas.values()), default=0)
        return [Column("quota", "quota", min(width, 26), flex=2, most=width)] if self._quotas else []

    def _epoch_column(self, kind: str) -> list[Column]:
        """Return the column of the members' epochs, in a group whose members have their own."""
        self._has_epochs = kind in (GroupType.CONSUMER, GroupType.STREAMS)
        if not self._has_epochs:
            return []
        highest = int(self._table.epoch[self._rows].max(initial=0))
        return [Column("epoch", "epoch", max(5, len(str(highest))), right=True, rank=EXTRA)]

    def _owns(self, row: int) -> str:
        """Return how many partitions a member owns, and how many it is to give back and to get: `3 −1 +2`."""
        moves = (glyphs.MINUS, int(self._table.to_give_back[row])), ("+", int(self._table.to_get[row]))
        signed = (f" {sign}{number:,}" for sign, number in moves if number > 0)
        return words.count(int(self._table.assigned[row])) + "".join(signed)

    def _owned(self, member: str) -> Line:
        """Return the partitions that a member owns: `──▶ invoice 0 1✕ 2`, or, of many, `──▶ invoice 0–20`."""
        rows = self._of_group[self._owners == member]
        if not len(rows):
            return ()
        owned: dict[str, list[int]] = defaultdict(list)
        for topic, row in zip(self._offsets.topic[rows].tolist(), rows.tolist(), strict=True):
            owned[topic].append(row)
        spans = [Span(f"{glyphs.POINTS_AT} ", Role.KEY)]
        for place, (topic, own) in enumerate(sorted(owned.items())):
            spans.append(Span(f"{f' {glyphs.DOT} ' if place else ''}{topic}", Role.DIM))
            if len(rows) > MOST_NUMBERS:
                spans.append(Span(f" {ranges(self._offsets.partition[own].tolist())}"))
            else:
                spans += [self._number(row) for row in own]
        return tuple(spans)

    def _number(self, row: int) -> Span:
        """Return a partition's number, with a sign if its reader is in trouble."""
        shown, kind = self._view.offsets, Verdict(str(self._view.offsets.verdict[row]))
        level = severity(kind, int(shown.lost[row]), is_old=False)
        is_wrong = level in (Severity.RISK, Severity.WARN)
        sign = SIGNS[level] if is_wrong else ""
        return Span(f" {int(self._offsets.partition[row])}{sign}", ROLES[level] if is_wrong else Role.TEXT)

    def row(self, index: int, now_ms: int) -> Row:
        at, table = int(self._rows[index]), self._table
        member = str(table.member_id[at])
        count, runs = int(table.assigned[at]), str(table.runs[at])
        owns = line(Span(f"{glyphs.POINTS_AT} ", Role.KEY), runs) if runs else self._owned(member)
        moves = (int(each[at]) for each in (table.target, table.to_give_back, table.to_get))
        rack = str(table.rack[at])
        return Row(
            (
                line(str(table.client_id[at])),
                line(Span(f"{table.host[at]} {rack}".rstrip(), Role.DIM)),
                Figure(text_figure(self._owns(at)), known(count), *map(known, moves)),
                owns or line("" if count else self._without),
                *([line(Span(self._quotas[str(table.client_id[at])], Role.DIM))] if self._quotas else []),
                *([number_figure(int(table.epoch[at]))] if self._has_epochs else []),
                line(Span(member, Role.DIM)),
            )
        )


class ShareRows(Keyed[tuple[str, int]]):
    """The rows of a share group's partitions. The key is (topic, partition)."""

    def __init__(self, view: View, group: str) -> None:
        table = view.snapshot.share_offsets
        self._table, self._rows = table, np.flatnonzero(table.group == group)
        topics, numbers = table.topic[self._rows].tolist(), table.partition[self._rows].tolist()
        super().__init__(list(zip(topics, numbers, strict=True)))
        self.panel = PANEL
        self.empty = "it has read nothing yet"
        start, lag = table.start_offset[self._rows], table.lag[self._rows]
        self.columns: Sequence[Column] = (
            Column("topic", "topic", name_width(set(topics), 6, 20), flex=1, most=40, name=True),
            Column("p", "p", max(2, len(str(max(numbers, default=0)))), right=True),
            Column("start", "START-OFFSET", count_width(start, 12), right=True),
            Column("lag", "LAG", count_width(lag, 7), right=True),
        )
        self.title: Line = title("PARTITIONS")

    def row(self, index: int, now_ms: int) -> Row:
        at, table = int(self._rows[index]), self._table
        return Row(
            (
                line(str(table.topic[at])),
                number_figure(int(table.partition[at])),
                count_figure(int(table.start_offset[at])),
                count_figure(int(table.lag[at])),
            )
        )


class OffsetRows(Rows):
    """The rows of a group's partitions. The key is (topic, partition). Keys are made when they are asked
    for."""

    panel = PANEL
    sorts: Collection[str] = SORTS

    def __init__(self, view: View, group: str, options: Options) -> None:
        table, shown = view.snapshot.offsets, view.offsets
        own = np.flatnonzero(Passing(view, options.wanted).offsets(group))
        own = own[np.argsort(_worst(view, own), kind="stable")]
        rows = sorted_rows(own, options, PANEL, view, SORTS, _offset_keys)
        self._rows = rows
        self._view = view
        self._options = options
        ages_ms = view.groups.verdict_age_ms[view.snapshot.groups.group == group]
        self._is_old = bool((ages_ms != UNKNOWN).any())
        members = view.snapshot.members
        self._clients = {
            str(members.member_id[row]): str(members.client_id[row])
            for row in np.flatnonzero(members.group == group)
        }
        self.empty = (
            f"no partition matches {options.filter_of(Listed.PARTITIONS)}"
            if options.filter_of(Listed.PARTITIONS)
            else "no committed or assigned partitions"
        )
        topics, numbers = set(table.topic[rows].tolist()), table.partition[rows]
        self.columns: Sequence[Column] = (
            Column("topic", "topic", name_width(topics, 6, 20), flex=1, most=40, name=True),
            Column("p", "p", max(2, len(str(int(numbers.max(initial=0))))), right=True),
            Column(
                "committed",
                "CURRENT-OFFSET",
                count_width(table.committed[rows], 14),
                right=True,
                rank=2,
                exported=with_bound("CURRENT-OFFSET"),
            ),
            Column(
                "end",
                "LOG-END-OFFSET",
                count_width(shown.log_end_offset[rows], 14),
                right=True,
                rank=2,
                exported=with_bound("LOG-END-OFFSET"),
            ),
            Column("lag", "LAG", count_width(shown.lag[rows], 7, 1), right=True, exported=with_bound("LAG")),
            Column("behind", "behind", self._behind_width(), right=True, exported=with_bound("behind", "s")),
            Column(
                "read",
                "read/s",
                rate_width(shown.read_rate[rows], 7),
                right=True,
                rank=1,
                exported=with_bound("read/s"),
            ),
            Column(
                "write",
                "write/s",
                rate_width(shown.write_rate[rows], 7),
                right=True,
                rank=1,
                exported=with_bound("write/s"),
            ),
            Column("catch", "caught up in", 12, right=True, rank=3, exported=with_bound("caught up in", "s")),
            Column(
                "owner",
                "owner",
                name_width(self._clients.values(), 6, 16),
                flex=1,
                most=30,
                rank=4,
                name=True,
            ),
            Column("verdict", "verdict", REASON_CELLS, flex=3, most=70),
        )
        note = order_note(options, PANEL, self.columns, order_name(Order.WORST_FIRST))
        self.title: Line = title("PARTITIONS", note, options.filter_of(Listed.PARTITIONS))

    @property
    def in_trouble(self) -> Flags:
        figures, rows = self._view.offsets, self._rows
        verdicts_ = figures.verdict[rows]
        needing = [
            kind for kind in ORDER if severity(kind, 0, is_old=False) in (Severity.RISK, Severity.WARN)
        ]
        in_trouble = (figures.lost[rows] > 0) & (verdicts_ != Verdict.ABANDONED)
        for kind in needing:
            in_trouble |= np.asarray(verdicts_ == kind, bool)
        return np.asarray(in_trouble, bool)

    @property
    def keys(self) -> list[tuple[str, int]]:
        table = self._view.snapshot.offsets
        topics, numbers = table.topic[self._rows].tolist(), table.partition[self._rows].tolist()
        return list(zip(topics, numbers, strict=True))

    def __len__(self) -> int:
        return len(self._rows)

    def key(self, index: int) -> tuple[str, int]:
        """Return the topic and the number of the partition in a row."""
        table, at = self._view.snapshot.offsets, self._rows[index]
        return str(table.topic[at]), int(table.partition[at])

    def find(self, key: Hashable) -> int | None:
        if not isinstance(key, tuple):
            return None
        table, (topic, number) = self._view.snapshot.offsets, key
        for index in np.flatnonzero(table.partition[self._rows] == number).tolist():
            if table.topic[self._rows[index]] == topic:
                return int(index)
        return None

    def leads_to_record(self, key: tuple[str, int]) -> bool:
        """Return whether the record at a committed offset is what to look at, as reading stands there."""
        index = self.find(key)
        return (
            index is not None
            and self.has_commit(key)
            and self._view.offsets.verdict[self._rows[index]] in HALTED
        )

    def has_commit(self, key: Hashable) -> bool:
        """Return whether the group has committed an offset in a partition."""
        index = self.find(key)
        return index is not None and int(self._view.snapshot.offsets.committed[self._rows[index]]) >= 0

    def _behind_width(self) -> int:
        """Return a width for every lag in time with its mark, because none of its digits may be cut.

        Only lags of a hundred days or more are longer than `≥59 m 59 s`.
        """
        lags_ms = self._view.offsets.behind_ms[self._rows]
        longest_ms = int(lags_ms[lags_ms < NEVER].max(initial=0))
        whole_days_ms = longest_ms - longest_ms % DAY_MS
        return max(10, 1 + len(words.duration(whole_days_ms + DAY_MS - 1)))

    def row(self, index: int, now_ms: int) -> Row:
        at = int(self._rows[index])
        table, figures = self._view.snapshot.offsets, self._view.offsets
        received_ms = int(table.received_ms[at])
        old = is_stale(self._view, received_ms, self._options, now_ms)
        committed = int(table.committed[at])
        kind = Verdict(str(figures.verdict[at]))
        lost = int(figures.lost[at])
        is_bound = bool(figures.lag_is_bound[at])
        notes = [verdicts.of_offset(figures, at)]
        if is_bound and not old:
            notes.append(f"log end {words.age(int(figures.log_end_ms[at]), now_ms)} old")
        if old:
            notes.append(f"{words.age(received_ms, now_ms)} old")
        after = ", ".join(note for note in notes if note)
        catch_up_ms = int(figures.catch_up_ms[at])
        catch_up = words.duration(catch_up_ms, tenths=False)
        return Row(
            (
                line(str(table.topic[at])),
                number_figure(int(table.partition[at])),
                count_figure(UNKNOWN if committed == NO_OFFSET else committed, old=old),
                count_figure(int(figures.log_end_offset[at]), old=old),
                count_figure(
                    int(figures.lag[at]), Role.DIM if is_bound else Role.TEXT, is_bound=is_bound, old=old
                ),
                behind_figure(figures, at, old=old),
                rate_figure(float(figures.read_rate[at]), old=old),
                rate_figure(float(figures.write_rate[at]), old=old),
                duration_figure(
                    catch_up if catch_up in ("never", words.NONE) else f"{glyphs.ABOUT} {catch_up}",
                    catch_up_ms,
                    ABOUT,
                    old=old,
                ),
                line(Span(self._clients.get(str(table.owner[at]), "") or words.NONE, Role.DIM)),
                verdict(kind, after, severity(kind, lost, self._is_old), lost=lost),
            )
        )
