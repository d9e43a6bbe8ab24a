"""4 Partitions: all partitions of the cluster, which can be narrowed to those in one kind of trouble, and the
log of the selected one."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType

from kview.derive.partitions.log import partition_log
from kview.derive.partitions.topic_health import ALWAYS_COUNTED, Trouble, troubles
from kview.derive.view import View
from kview.language.topics import NONE_IN_TROUBLE, TROUBLES
from kview.tui.actions import Where, bindings
from kview.tui.faults import Target, leader_of
from kview.tui.keys import ACTIONS
from kview.tui.options import Options
from kview.tui.rows import partitions
from kview.tui.rows.log_lines import Zoom
from kview.tui.screens.base import KviewScreen
from kview.tui.text import Role
from kview.tui.widgets.choice_line import Choice, ChoiceLine
from kview.tui.widgets.panel import Panel
from kview.tui.widgets.partition_log import LogDrawn, LogPanel
from kview.tui.widgets.table import Table

_ROLES = {
    Trouble.SILENT_LEADER: Role.RISK,
    Trouble.FROZEN: Role.RISK,
    Trouble.NO_LEADER: Role.RISK,
    Trouble.UNDER_MIN_ISR: Role.RISK,
    Trouble.AT_MIN_ISR: Role.WARN,
    Trouble.UNDER_REPLICATED: Role.WARN,
    Trouble.UNREAD: Role.WARN,
}


CHIPS_AND_HEAD = 2
LEAST_LOG = 8
"""The fewest lines for the log of the selected partition, without its panel's edges."""
ROOMY_LOG, BOTH_LOGS = 14, 19
"""With so many lines the log's panel leaves out nothing, and shows the end of the log below the whole one."""

Flagged = Mapping[Trouble, NDArray[np.bool_]]
"""Which partitions have which trouble."""


def chips(view: View, options: Options, current: Trouble, having: Flagged) -> Sequence[Choice]:
    """Return what the list can be narrowed to, with the number of partitions that pass the filter."""
    among = partitions.passing(view, options)
    counts = {trouble: int((flags & among).sum()) for trouble, flags in having.items()}
    shown = [t for t in Trouble if counts[t] or t in ALWAYS_COUNTED or t is current]
    return [
        Choice(t, TROUBLES[t], f"{counts[t]:,}", _role(t, counts[t]), optional=not counts[t]) for t in shown
    ]


def _role(trouble: Trouble, number: int) -> Role:
    return _ROLES.get(trouble, Role.TEXT) if number else Role.DIM


class PartitionsScreen(KviewScreen):
    """The list of all partitions."""

    AUTO_FOCUS = "#partitions"
    CSS = "PartitionsScreen #list_side { height: 1fr; } PartitionsScreen #log_side { height: 1fr; }"
    has_targets = True
    partition_panels: ClassVar[frozenset[str]] = frozenset({"partitions"})
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(ACTIONS, Where.PARTITIONS)]

    _trouble = Trouble.ALL
    _log_lines = 0
    """The lines of the log's panel, 0 if it is not shown."""

    _flagged: tuple[View, Flagged] | None = None
    """The troubles of the partitions in the view drawn last, which a key does not change."""

    def body(self) -> ComposeResult:
        with Panel(id="list_side"):
            yield ChoiceLine(id="chips")
            yield Table(id="partitions")
        with Panel(id="log_side"):
            yield LogPanel(id="log")

    def draw(self, view: View) -> None:
        options, trouble = self.dashboard.options, self._trouble
        chosen = self.query_one(ChoiceLine)
        chosen.fill(lambda: chips(view, options, trouble, self._having(view)), trouble)

        def rows() -> partitions.PartitionRows:
            among = None if trouble is Trouble.ALL else self._having(view)[trouble]
            partition_rows = partitions.PartitionRows(view, options, among=among)
            if trouble is not Trouble.ALL and partition_rows.empty:
                partition_rows.empty = options.keys.said(NONE_IN_TROUBLE)
            return partition_rows

        self.query_one("#partitions", Table).fill(rows)
        wanted = CHIPS_AND_HEAD + int(np.count_nonzero(options.internal | ~view.snapshot.partitions.internal))
        self._log_lines = self.split(self.room, "list_side", "log_side", wanted, LEAST_LOG)
        self._show_log()

    def _show_log(self) -> None:
        """Draw the log of the selected partition, if the list leaves lines for it."""
        selected, view = self.query_one("#partitions", Table).selected, self.view
        if not self._log_lines or view is None or not isinstance(selected, tuple):
            return
        options, (topic, partition) = self.dashboard.options, selected
        zoom = Zoom.BOTH if self._log_lines >= BOTH_LOGS else Zoom.WHOLE

        def drawn() -> LogDrawn:
            log = partition_log(view, topic, partition)
            return LogDrawn(view, topic, partition, log, options, zoom, self._log_lines < ROOMY_LOG)

        self.query_one(LogPanel).fill(drawn, self.inner_width)

    @on(Table.Moved)
    def _another(self) -> None:
        self._show_log()
        self.query_one(LogPanel).redraw()

    def let_go(self) -> None:
        """Drop the view with what was found in it."""
        super().let_go()
        self._flagged = None

    def _having(self, view: View) -> Flagged:
        """Return which partitions of a view have which trouble."""
        if self._flagged is None or self._flagged[0] is not view:
            self._flagged = view, troubles(view)
        return self._flagged[1]

    def action_narrow(self, by: int) -> None:
        """Narrow the list to another kind of trouble."""
        self._narrow(self.query_one(ChoiceLine).after(by))

    @on(ChoiceLine.Chosen)
    def _chosen(self, event: ChoiceLine.Chosen) -> None:
        self._narrow(event.key)

    def _narrow(self, to: object) -> None:
        self._trouble = Trouble(str(to))
        self.update()

    def target(self) -> Target | None:
        """Return the leader of the selected partition."""
        selected = self.query_one("#partitions", Table).aimed
        return leader_of(self.view, *selected) if self.view and isinstance(selected, tuple) else None

    @on(Table.Opened)
    def _open(self, event: Table.Opened) -> None:
        if isinstance(event.key, tuple):
            self.dashboard.go.partition(*event.key)
