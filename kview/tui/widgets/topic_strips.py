"""The strips of topics, above the list of partitions."""

from kview.derive.view import View
from kview.tui.options import Options
from kview.tui.rows.topic_strips import topic_strips
from kview.tui.text import Line
from kview.tui.widgets.drawn import Lines


class TopicStrips(Lines):
    """Topics with a sign for each partition."""

    DEFAULT_CSS = "TopicStrips { height: 0; }"

    def __init__(self) -> None:
        super().__init__(id="topic_strips")
        self.view: View | None = None
        self.options = Options()

    def lines(self, width: int, height: int) -> list[Line]:
        return [] if self.view is None else topic_strips(self.view, self.options, width, height)
