"""1 Overview: what is wrong, on which brokers and partitions, which groups suffer, and what happened."""

from collections import Counter
from collections.abc import Hashable
from functools import partial
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical

from kview.derive.brokers.controllers import controllers, is_troubled
from kview.derive.groups.alike import Alike
from kview.derive.view import View
from kview.tui import layout
from kview.tui.faults import Target, leader_of
from kview.tui.options import OWN_ORDER, Options
from kview.tui.rows import brokers, groups, partitions
from kview.tui.rows.sorting import by_number
from kview.tui.rows.topic_list import passing
from kview.tui.screens.folding import FoldingScreen
from kview.tui.widgets.bottom import StatusMessage
from kview.tui.widgets.events import EventsPanel
from kview.tui.widgets.groups_line import GroupsLine
from kview.tui.widgets.minute_plot import GROUP_LAG, MinutePlot
from kview.tui.widgets.panel import Panel
from kview.tui.widgets.rack_strips import RackStrips
from kview.tui.widgets.racks import Racks
from kview.tui.widgets.table import Table
from kview.tui.widgets.throughput import ThroughputPanel
from kview.tui.widgets.topic_strips import TopicStrips


class OverviewScreen(FoldingScreen):
    """The first screen."""

    CSS = """
    OverviewScreen #upper, OverviewScreen #lower { height: 1fr; }
    """

    AUTO_FOCUS = "#brokers"
    has_targets = True
    has_live_figures = True
    _shared = layout.overview(layout.MIN_WIDTH, layout.MIN_HEIGHT, layout.Contents((), 0))

    partition_panels: ClassVar[frozenset[str]] = frozenset({"partitions"})

    def body(self) -> ComposeResult:
        with Horizontal(id="upper"):
            with Panel(id="brokers_side"):
                yield RackStrips(id="strips")
                yield Racks(id="brokers")
            with Panel(id="throughput_side"):
                yield ThroughputPanel()
        with Horizontal(id="lower"):
            with Panel(id="partitions_side"):
                yield TopicStrips()
                yield Table(id="partitions")
            with Vertical(id="groups_column"):
                with Panel(id="groups_side"):
                    yield Table(id="groups")
                with Panel(id="lag_side"):
                    yield MinutePlot(GROUP_LAG, id="lag")
        with Panel(id="groups_below_side"):
            yield Table(id="groups_below")
        yield GroupsLine()
        with Panel(id="events_side"):
            yield EventsPanel()

    def lay_out_panels(self) -> None:
        shared = self._shared = self._share(self.view)
        is_stacked = shared.throughput > 0
        cells = self.inner_width - (0 if is_stacked else shared.throughput_width)
        self.query_one(RackStrips).fit(self.view, cells, shared.strips)
        self.query_one(Racks).wants_boxes = shared.boxes
        upper = self.query_one("#upper")
        upper.styles.layout = "vertical" if is_stacked else "horizontal"
        upper.styles.height = shared.brokers + shared.throughput
        self.query_one("#brokers_side").styles.height = shared.brokers
        self.query_one("#throughput_side").styles.height = shared.throughput or shared.brokers
        topics = self.query_one(TopicStrips)
        topics.display, topics.styles.height = shared.topics > 0, shared.topics
        widths = {"throughput_side": shared.throughput_width, "groups_column": shared.groups_width}
        for id, width in widths.items():
            side = self.query_one(f"#{id}")
            side.display, side.styles.width = shared.side_by_side, width
        self.query_one("#groups_side").styles.height = shared.groups - shared.lag
        self.query_one("#lag_side").display = shared.lag > 0
        below, in_a_line = self.query_one("#groups_below_side"), self.query_one(GroupsLine)
        below.display = not shared.side_by_side and shared.groups > 1
        below.styles.height = shared.groups
        in_a_line.display = not shared.side_by_side and shared.groups == 1
        events = self.query_one("#events_side")
        events.display = shared.events > 0
        events.styles.height = shared.events

    def _share(self, view: View | None) -> layout.Overview:
        """Divide the screen among the panels."""
        size, contents = self.app.size, layout.Contents((("R1", 3), ("R2", 3)), 3, 3, 3)
        if view is not None:
            table = view.snapshot.brokers
            racks = Counter(table.rack.tolist())
            contents = layout.Contents(
                tuple((str(rack), racks[rack]) for rack in sorted(racks, key=by_number)),
                len(view.snapshot.groups),
                *_contents(view, self.dashboard.options),
                is_sorted=self.dashboard.options.sort(brokers.PANEL) != OWN_ORDER,
            )
        captioned = self.dashboard.teaching.caption is not None
        return layout.overview(size.width, self.page_height, contents, self.is_framed, captioned)

    def _brokers(self, view: View) -> brokers.BrokerRows:
        """Return the rows of brokers, with those of controllers if they have rows."""
        others = []
        if self._shared.controllers:
            others = [controller for controller in controllers(view) if not controller.is_broker]
        caption = self.dashboard.teaching.caption
        is_short = self._shared.strips > 0 and (caption is None or not caption.keeps_order)
        return brokers.BrokerRows(view, self.dashboard.options, others, is_short)

    def draw(self, view: View) -> None:
        options = self.dashboard.options
        if self._share(view) != self._shared or self._shared.strips:
            self.lay_out_panels()
        racks = self.query_one(Racks)
        racks.fill(lambda: self._brokers(view))
        self.query_one("#brokers_side", Panel).bare(self._shared.boxes and racks.has_racks)
        self.query_one("#partitions", Table).fill(lambda: partitions.PartitionRows(view, options))
        for id in ("groups", "groups_below"):
            table = self.query_one(f"#{id}", Table)
            if table.is_shown:
                table.fill(partial(self._groups, view, table.chosen))
            else:
                table.let_go()
        self._aim_lag()
        topics = self.query_one(TopicStrips)
        topics.view, topics.options = view, options
        in_a_line = self.query_one(GroupsLine)
        in_a_line.view, in_a_line.options = view, options
        panel = self.query_one(ThroughputPanel)
        panel.view, panel.options = view, options
        self.query_one(EventsPanel).view = view

    def _groups(self, view: View, chosen: Hashable) -> groups.GroupRows:
        """Return the rows of groups, folded if they do not fit."""
        room = self._shared.groups - self._shared.lag - self.edge_lines - 1
        return groups.GroupRows(view, self.dashboard.options, self.unfolding(room, chosen))

    def target(self) -> Target | None:
        """Return the selected broker, or the leader of the selected partition."""
        if (broker := self.selected_broker()) is not None:
            return Target(broker)
        table = self.focused
        aimed = table.aimed if isinstance(table, Table) else None
        if isinstance(aimed, brokers.ControllerKey):
            return Target(aimed.node)
        if table is self.query_one("#partitions") and isinstance(aimed, tuple) and self.view is not None:
            return leader_of(self.view, *aimed)
        return None

    def selected_broker(self) -> int | None:
        """Return the broker whose row is selected, if the brokers panel is focused."""
        table = self.query_one("#brokers", Table)
        return table.aimed if table.has_focus and isinstance(table.aimed, int) else None

    @on(Table.Moved, "#groups")
    def _another_group(self) -> None:
        self._aim_lag()
        self.query_one(MinutePlot).redraw()

    def _aim_lag(self) -> None:
        plot = self.query_one(MinutePlot)
        plot.view, plot.about = self.view, self.selected_group()

    @on(Table.Opened)
    def _open(self, event: Table.Opened) -> None:
        if event.table.id == "brokers" and isinstance(event.key, int):
            self.dashboard.go.broker(event.key)
        elif isinstance(event.key, brokers.ControllerKey):
            self.dashboard.say(StatusMessage(f"controller {event.key.node} has no screen of its own"))
        elif isinstance(event.key, Alike):
            self.unfold(event.key)
        elif event.table.id == "partitions" and isinstance(event.key, tuple):
            self.dashboard.go.partition(*event.key)
        elif isinstance(event.key, str):
            self.dashboard.go.group(event.key)


def _contents(view: View, options: Options) -> tuple[int, int, bool]:
    """Return the number of topics, that of controllers that are not brokers, and whether anything is wrong
    with these.

    Nothing is laid out for them if that cannot be calculated: a bug there must not cost the other panels. The
    headline, which is made of the same findings, then says that it could not be drawn, and logs why.
    """
    try:
        only = sum(not controller.is_broker for controller in controllers(view))
        return int(passing(view, options).sum()), only, bool(only) and is_troubled(view)
    except Exception:
        return 0, 0, False
