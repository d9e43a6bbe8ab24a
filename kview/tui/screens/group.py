"""Enter on a group: its members with their partitions, and every partition with its lag and verdict."""

from collections.abc import Hashable
from functools import cache
from typing import ClassVar

import numpy as np
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widget import Widget

from kview.derive.view import View
from kview.language import failures, glyphs, verdicts, words
from kview.language.curves import sparkline
from kview.model.events import EventKind
from kview.model.inspection import QuotasAnswer, QuotasRequest
from kview.model.ports import Inspector
from kview.model.states import REBALANCING, GroupType
from kview.model.units import NO_BROKER, UNKNOWN_ID
from kview.tui.actions import Where, bindings
from kview.tui.app_of import app_of
from kview.tui.keys import ACTIONS
from kview.tui.layout import CHROME
from kview.tui.plot import LEAST_PLOT
from kview.tui.rows import group as rows
from kview.tui.rows.common import verdict
from kview.tui.rows.connectors import ConnectorRows
from kview.tui.rows.group import MEMBERS_PANEL, OffsetRows
from kview.tui.rows.groups import behind, members
from kview.tui.screens.base import KviewScreen
from kview.tui.text import EMPTY, TITLE_MARGIN, Line, Role, Span, Title, cut, joined, line, line_width, middle
from kview.tui.widgets.drawn import Headed, Lines
from kview.tui.widgets.over_time import OverTime
from kview.tui.widgets.panel import Panel
from kview.tui.widgets.table import Table

LOW = 18
"""Below this height there are no members, and no line about the selected partition."""

HEADING_ROWS = 2
"""The lines about the group, below its name."""

LEAST_OFFSETS = 2
"""The fewest lines (head, one row) for which the partitions are shown below members that a demo
marks."""

MOST_NAMED = 3
"""The most members by name that a group waits for."""

QUOTAS_AGAIN_MS = 30_000
"""How often the quotas are read again while the screen is open."""

SPARK_CELLS = 60
LEAST_SPARK_CELLS = 12
"""A shorter curve would show nothing."""


def group_lines(view: View, name: str, cells: int) -> list[Line]:
    """Return a title and two lines about a group: its state, its verdict with the reason, and its lag."""
    table, figures = view.snapshot.groups, view.groups
    matching = np.flatnonzero(table.group == name)
    if not len(matching):
        return [line(Span(name, Role.BRIGHT), Span(" is no longer listed", Role.WARN))]
    at = int(matching[0])
    coordinator = int(table.coordinator[at])
    facts = [members(view, at), *rebalancing(view, at), *epochs(view, at)]
    facts += [f"assignor {table.assignment_strategy[at]}"] if table.assignment_strategy[at] else []
    facts += [f"coordinator {coordinator}"] if coordinator > NO_BROKER else []
    error = failures.of_group(table.error[at], int(table.error_code[at]), coordinator)
    facts += [f"old figures: {error}"] if error else []
    lag = words.at_least(words.count(int(figures.lag[at])), bool(figures.lag_is_bound[at]))
    read = words.rate_at(figures.read_rate, figures.read_is_bound, at)
    written = words.rate_at(figures.write_rate, figures.write_is_bound, at)
    rates = f"reads {read}/s, producers write {written}/s"
    age_ms, lost = int(figures.verdict_age_ms[at]), int(figures.lost[at])
    why = verdicts.of_group(figures, at, beside_figures=True)
    lines = [
        joined(
            [
                line(Span(middle(name, max(8, cells - 30)), Role.BRIGHT), Span(f"  {facts[0]}", Role.DIM)),
                *(line(Span(fact, Role.DIM)) for fact in facts[1:]),
            ],
            Span(f" {glyphs.DOT} ", Role.DIM),
            cells - TITLE_MARGIN,
        ),
        line("  ", *verdict(figures.verdict[at], why, figures.severity[at], age_ms, lost)),
        line(
            "  ",
            Span("lag ", Role.DIM),
            lag,
            Span("   behind ", Role.DIM),
            behind(view, at).rstrip(),
        ),
    ]
    last = lines.pop()
    commits = table.type[at] not in (GroupType.SHARE, GroupType.CONNECT)
    for text in (f"   {rates}", f"   reads {read}/s, writes {written}/s"):
        if commits and line_width(last) + len(text) <= cells:
            last += (Span(text, Role.DIM),)
            break
    title = "   lag, last minute "
    room = min(SPARK_CELLS, cells - line_width(last) - len(title) - 1)
    if room >= LEAST_SPARK_CELLS:
        last += (Span(title + sparkline(figures.lag_series[at], room).lstrip(), Role.DIM),)
    lines.append(last)
    return [cut(spans, cells) for spans in lines]


def rebalancing(view: View, row: int) -> list[str]:
    """Return for how long a group has been giving partitions to its members, if its beginning was seen."""
    table, now_ms = view.snapshot.groups, view.snapshot.observation.ended_ms
    if table.state[row] not in REBALANCING:
        return []
    began_ms = [
        event.at_ms
        for event in view.events
        if event.group == table.group[row] and event.kind is EventKind.REBALANCE_STARTED
    ]
    return [f"rebalancing for {words.duration(now_ms - began_ms[-1], tenths=False)}"] if began_ms else []


def epochs(view: View, row: int) -> list[str]:
    """Return the epochs of a group of the new protocols, and for whom it waits: `epoch 12, waits for app-2`.

    The epoch of its assignment is named while there is none for the group's epoch yet. A member is waited for
    until it has the partitions that the assignment gives it, and no others.
    """
    table, members = view.snapshot.groups, view.snapshot.members
    epoch, assignment_epoch = int(table.epoch[row]), int(table.assignment_epoch[row])
    if epoch == UNKNOWN_ID:
        return []
    own = np.flatnonzero(members.group == table.group[row])
    moves = (members.to_get[own] > 0) | (members.to_give_back[own] > 0)
    late = own[moves | (members.epoch[own] != assignment_epoch)]
    names = [str(members.client_id[at]) for at in late[:MOST_NAMED]]
    more = f" and {len(late) - MOST_NAMED} more" if len(late) > MOST_NAMED else ""
    topology_epoch = int(table.topology_epoch[row])
    return [
        f"epoch {epoch}"
        + (f", assignment of epoch {assignment_epoch}" if len(own) and assignment_epoch != epoch else "")
        + (f", topology epoch {topology_epoch}" if topology_epoch != UNKNOWN_ID else "")
        + (f", waits for {', '.join(names)}{more}" if names else "")
    ]


class GroupHeading(Headed):
    """The lines about the group."""

    DEFAULT_CSS = f"GroupHeading {{ height: {HEADING_ROWS}; }}"

    def __init__(self, name: str) -> None:
        super().__init__(id="heading")
        self.group_name = name
        self.view: View | None = None

    def headed(self, width: int, height: int) -> tuple[Title, list[Line]]:
        if self.view is None:
            return Title(), []
        first, *rest = group_lines(self.view, self.group_name, width)
        return Title(first), rest


class SelectedOffset(Lines):
    """The selected partition's verdict with its complete reason, which may be cut off in its row. Of a
    connector or a task that failed, the first line of its trace."""

    DEFAULT_CSS = "SelectedOffset { height: 1; }"

    rows: OffsetRows | ConnectorRows | None = None
    key: Hashable = None

    def let_go(self) -> None:
        """Drop the rows, which have the view."""
        super().let_go()
        self.rows = None

    def select(self, rows: OffsetRows | ConnectorRows, key: Hashable) -> None:
        """Show the row of `rows` with that key."""
        self.rows, self.key = rows, key

    def lines(self, width: int, height: int) -> list[Line]:
        """Return the line with the verdict."""
        index = self.rows.find(self.key) if self.rows else None
        if self.rows is None or index is None:
            return [EMPTY]
        if isinstance(self.rows, ConnectorRows):
            name, trace = self.rows.keys[index], self.rows.trace(index)
            return [cut(line("  ", Span(f"{name}  ", Role.DIM), trace), width) if trace else EMPTY]
        topic, partition = self.rows.keys[index]
        row = self.rows.row(index, app_of(self).now_ms())
        return [cut(line("  ", Span(f"{topic}-{partition}  ", Role.DIM), *row.cells[-1]), width)]


class GroupScreen(KviewScreen):
    """The screen of a single group."""

    AUTO_FOCUS = "#offsets"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(ACTIONS, Where.GROUP)]
    CSS = "GroupScreen #about { height: auto; }"
    partition_panels: ClassVar[frozenset[str]] = frozenset({"offsets"})

    def __init__(self, group: str) -> None:
        super().__init__()
        self.group = group
        self._quotas: QuotasAnswer | None = None
        self._quotas_due_ms = 0
        self._has_plots_alone = False
        """Whether the lag over time is in place of members and partitions, which leave it no room."""
        self._focused_list: Widget | None = None
        """The list that had the focus before that."""

    def body(self) -> ComposeResult:
        with Panel(id="about"):
            yield GroupHeading(self.group)
        with Panel(id="members_side"):
            yield Table(id="members", opens=False)
        with Panel(id="offsets_side"):
            yield Table(id="offsets")
            yield SelectedOffset(id="selected")
        with Panel(id="over_time_side"):
            yield OverTime(group=self.group)

    def _lay_out(self, members: int) -> None:
        """Leave a small screen to the partitions: they are what is behind. If a demo marks the members, they
        come first."""
        is_low = self.page_height < LOW
        asked = any(MEMBERS_PANEL in look.ids for look in self.dashboard.teaching.looks)
        self.query_one("#selected").display = not is_low
        listed, offsets = self.query_one(f"#{MEMBERS_PANEL}_side"), self.query_one("#offsets_side")
        listed.display = asked or not is_low
        edges = self.edge_lines
        wanted, room = max(1, members) + 1 + edges, max(2 + edges, (self.page_height - 14) // 3)
        if asked:
            room = self.page_height - CHROME - HEADING_ROWS - edges
        listed.styles.height = min(wanted, room)
        offsets.display = not asked or room - wanted >= LEAST_OFFSETS + edges + (not is_low)
        self._lay_out_plots(listed, offsets, asked)

    def _lay_out_plots(self, listed: Widget, offsets: Widget, asked: bool) -> None:
        """Draw the lag over time in the lines that the partitions leave free, or in place of both lists."""
        plots = self.query_one("#over_time_side")
        plots.display = self._has_plots_alone and not asked
        if plots.display:
            listed.display = offsets.display = False
            return
        above = CHROME + HEADING_ROWS + self.edge_lines
        above += int(listed.styles.height.value) if listed.display and listed.styles.height else 0
        wanted = len(self.query_one("#offsets", Table).rows) + 1 + self.query_one("#selected").display
        free = self.page_height - above - wanted - 2 * self.edge_lines
        plots.display = offsets.display and not asked and free >= LEAST_PLOT
        offsets.styles.height = wanted + self.edge_lines if plots.display else "1fr"

    def draw(self, view: View) -> None:
        self.query_one(GroupHeading).view = view
        members_table = self.query_one("#members", Table)
        host = app_of(self)
        quotas = self._quotas if view.moment.live else None
        members_table.fill(
            lambda: rows.MemberRows(view, self.group, self.dashboard.options, quotas, host.zone)
        )
        if view.moment.live and host.inspector is not None and host.wall_ms() >= self._quotas_due_ms:
            self._quotas_due_ms = host.wall_ms() + QUOTAS_AGAIN_MS
            self.run_worker(self._ask_quotas(host.inspector), exclusive=True, group="quotas")
        self._fill_offsets(view)
        self._lay_out(len(members_table.rows))
        if self.query_one("#over_time_side").display:
            self.query_one(OverTime).show(view, self.dashboard.options)
        else:
            self.query_one(OverTime).let_go()

    def _fill_offsets(self, view: View) -> None:
        offsets = self.query_one("#offsets", Table)
        selected = self.query_one(SelectedOffset)
        types = view.snapshot.groups.type[view.snapshot.groups.group == self.group]
        if GroupType.SHARE in types:
            offsets.fill(lambda: rows.ShareRows(view, self.group))
            selected.rows = None
            return

        @cache
        def listed() -> OffsetRows | ConnectorRows:
            if GroupType.CONNECT in types:
                return ConnectorRows(view, self.group)
            return OffsetRows(view, self.group, self.dashboard.options)

        offsets.fill(listed)
        selected.attempt(lambda: selected.select(listed(), offsets.selected))

    def _selected(self) -> tuple[str, int] | None:
        key = self.query_one("#offsets", Table).selected
        return key if isinstance(key, tuple) else None

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether an action works: records may be switched off, and not every row has an offset."""
        if action in ("records", "log") and self._selected() is None:
            return False
        if action == "records":
            rows = self.query_one("#offsets", Table).rows
            return (
                self.dashboard.reads_records
                and isinstance(rows, OffsetRows)
                and rows.has_commit(self._selected())
            )
        return super().check_action(action, parameters)

    def action_records(self) -> None:
        """Show the record at the committed offset of the selected partition."""
        if (key := self._selected()) is not None:
            self.dashboard.go.position(self.group, *key)

    def action_log(self) -> None:
        """Show the log of the selected partition."""
        if (key := self._selected()) is not None:
            self.dashboard.go.partition(*key)

    def action_stretch(self) -> None:
        """Go further back in time.

        Where the plots have no room, they take the place of the lists, until after the longest reach.
        """
        plots = self.query_one(OverTime)
        if not plots.is_shown:
            plots.begin()
            self._has_plots_alone, self._focused_list = True, self.focused
            self.update()
            return
        was_alone = self._has_plots_alone
        if plots.action_stretch():
            self._has_plots_alone = False
        self.update()
        if was_alone and not self._has_plots_alone:
            self.set_focus(self._focused_list)

    async def _ask_quotas(self, inspector: Inspector) -> None:
        answer = await inspector.ask(QuotasRequest())
        if not (answer.failure and self._quotas is not None and not self._quotas.failure):
            self._quotas = answer
        if self.is_attached:
            self.update()

    @on(Table.Moved, "#offsets")
    def _another_partition(self, event: Table.Moved) -> None:
        selected = self.query_one(SelectedOffset)
        selected.key = event.key
        selected.redraw()

    @on(Table.Opened, "#offsets")
    def _open(self, event: Table.Opened) -> None:
        listed = event.table.rows
        if isinstance(event.key, tuple):
            if (
                isinstance(listed, OffsetRows)
                and listed.leads_to_record(event.key)
                and self.dashboard.reads_records
            ):
                self.dashboard.go.position(self.group, *event.key)
            else:
                self.dashboard.go.partition(*event.key)
        elif isinstance(listed, ConnectorRows) and (group := listed.group_of(event.key)):
            self.dashboard.go.group(group)
