"""The first screen of several clusters: each of them in a frame, the worst first when something is wrong."""

from collections.abc import Sequence

from textual import on
from textual.app import ComposeResult
from textual.geometry import Size

from kview.derive.view import View
from kview.tui.app_of import app_of
from kview.tui.screens.base import KviewScreen
from kview.tui.text import Line
from kview.tui.widgets.fleet import FleetRows, Frames, HeldOrder, head_line, worst_line
from kview.tui.widgets.header import Header, Member
from kview.tui.widgets.headline import Headline
from kview.tui.widgets.panel import Panel
from kview.tui.widgets.table import Table


class FleetHeader(Header):
    """Line 1: how many clusters there are, and how many are current."""

    def lines(self, width: int, height: int) -> list[Line]:
        at = app_of(self)
        return [head_line(at.members(), at.wall_ms(), width)]


class FleetHeadline(Headline):
    """Line 2: the worst cluster."""

    def lines(self, width: int, height: int) -> list[Line]:
        at = app_of(self)
        return [worst_line(at.members(), at.wall_ms(), width)]


class FleetScreen(KviewScreen):
    """The clusters of a fleet."""

    AUTO_FOCUS = "#fleet"

    _order: HeldOrder
    _selected: str
    _drawn: Sequence[Member] = ()

    def head(self) -> ComposeResult:
        dashboard = self.dashboard
        yield FleetHeader(dashboard.source, False, dashboard.started_ms)
        yield FleetHeadline(dashboard.source, False)

    def body(self) -> ComposeResult:
        self._order, self._selected = HeldOrder(), self.dashboard.session.selected
        with Panel(id="fleet_side"):
            yield Frames(id="fleet")

    def lay_out_panels(self) -> None:
        frames = self.query_one(Frames)
        frames.has_edges = self.is_framed
        room = Size(self.app.size.width, self.room)
        self.query_one("#fleet_side", Panel).bare(frames.fits(len(self._drawn), room))

    def draw(self, view: View) -> None:
        """There is no view of all clusters."""

    def update(self) -> None:
        """Draw the clusters as they are now."""
        if not self._is_complete:
            return
        members, now_ms = self.dashboard.members(), self.dashboard.wall_ms()
        is_other = len(members) != len(self._drawn)
        self._drawn = members
        if is_other:
            self.lay_out_panels()
        ordered = self._order.of(members, now_ms)
        frames = self.query_one(Frames)
        frames.fill(lambda: FleetRows(ordered, self.dashboard.options, now_ms))
        selected, self._selected = self._selected, ""
        if selected:
            frames.select(selected)
        super().update()

    def tick(self, whole_second: bool) -> None:
        """Draw what has changed since, and every second the ages."""
        members = self.dashboard.members()
        pairs = zip(members, self._drawn, strict=False)
        if whole_second or any(a.view is not b.view or a.notice != b.notice for a, b in pairs):
            self.update()

    @on(Table.Opened)
    def _open(self, event: Table.Opened) -> None:
        self.dashboard.open_cluster(str(event.key))
