"""A group in a partition: the record at its committed offset, what follows, and what is known to hold it."""

from textual import on
from textual.app import ComposeResult

from kview.derive.view import View
from kview.model.decoded import NOT_DECODED
from kview.model.inspection import Isolation, RecordsRequest, Start, StartKind
from kview.tui.rows.position import committed, heading, is_held_at
from kview.tui.screens.base import KviewScreen
from kview.tui.text import Line, Title
from kview.tui.widgets.drawn import Headed
from kview.tui.widgets.panel import Panel
from kview.tui.widgets.records import RecordsPanel

MOST_LINES = 5
"""The most lines about the position."""
LOW = 20
"""Below this height there are LOW_LINES of them."""
LOW_LINES = 2


class PositionHeading(Headed):
    """The lines about the position."""

    view: View | None = None

    def __init__(self, group: str, offset: int, panel: RecordsPanel) -> None:
        super().__init__(id="heading")
        self._group, self._offset, self._panel = group, offset, panel

    def all_lines(self, width: int) -> tuple[Title, list[Line]]:
        """Return the title and the lines, as many as there are."""
        if self.view is None:
            return Title(), []
        answer = self._panel.answer
        decoded = NOT_DECODED
        if answer is not None and answer.records:
            decoded = self._panel.decoded_at(answer.records[0].offset)
        return heading(
            self.view,
            self._group,
            self._panel.topic,
            self._panel.partition,
            self._offset,
            answer,
            decoded,
            width,
        )

    def headed(self, width: int, height: int) -> tuple[Title, list[Line]]:
        return self.all_lines(width)


class PositionScreen(KviewScreen):
    """The screen of a group's position in a partition."""

    AUTO_FOCUS = "#records"
    CSS = "PositionScreen #about { height: auto; }"
    is_filtered = False

    def __init__(self, group: str, topic: str, partition: int) -> None:
        super().__init__()
        self._group, self._topic, self._partition = group, topic, partition

    def body(self) -> ComposeResult:
        view = self.dashboard.view
        offset = committed(view, self._group, self._topic, self._partition)
        # Only then a reader with read_committed would see nothing, and here is the reason.
        is_held = view is not None and is_held_at(view, self._topic, self._partition, offset)
        request = RecordsRequest(
            self._topic,
            self._partition,
            Start(StartKind.OFFSET, max(0, offset)),
            isolation=Isolation.READ_UNCOMMITTED if is_held else Isolation.READ_COMMITTED,
        )
        panel = RecordsPanel(self._topic, self._partition, first=request)
        with Panel(id="about"):
            yield PositionHeading(self._group, offset, panel)
        with Panel():
            yield panel

    def draw(self, view: View) -> None:
        about, panel = self.query_one(PositionHeading), self.query_one(RecordsPanel)
        about.view = view
        _, lines = about.all_lines(max(20, self.inner_width))
        most = LOW_LINES if self.page_height < LOW else MOST_LINES
        about.styles.height = max(1, min(most, len(lines)))
        panel.show(view, self.dashboard.options)

    @on(RecordsPanel.Read)
    def _read(self) -> None:
        self.update()
