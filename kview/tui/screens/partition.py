"""Enter on a partition: its log with every replica's end and every group's position, and its history."""

from functools import partial
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from kview.derive.lookup import partition_row, topic_partitions
from kview.derive.partitions.log import events_of_partition, partition_log, unnamed_events
from kview.derive.view import View
from kview.language import history
from kview.model.history import PartitionHistory
from kview.tui.actions import Where, bindings
from kview.tui.faults import Target, leader_of
from kview.tui.keys import ACTIONS
from kview.tui.rows.log_lines import Zoom
from kview.tui.screens.base import KviewScreen
from kview.tui.widgets.first_record import FirstRecord
from kview.tui.widgets.panel import Panel
from kview.tui.widgets.partition_log import History, LogDrawn, LogPanel
from kview.tui.widgets.recorded import Recorded

LOW = 20
"""If the page is lower than this, the drawing leaves out what it can."""

BOTH_FROM_HEIGHT = 36
"""From this height on, the end of the log is drawn below the whole log."""

AGAIN_MS = 10_000
"""How soon the recording is read again, so that what has happened since is in the list."""

ENDS = frozenset({"end", "behind", "uncommitted"})
"""Columns of figures near the end of a log. If a demo marks one, the end is drawn large."""


class PartitionScreen(KviewScreen):
    """The screen of a single partition."""

    AUTO_FOCUS = ""
    CSS = "PartitionScreen #log_side { height: auto; }"
    is_filtered = False
    has_targets = True
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(ACTIONS, Where.PARTITION)]

    def __init__(self, topic: str, partition: int) -> None:
        super().__init__()
        self.topic = topic
        self.partition = partition
        self._is_zoomed = False
        self._first = FirstRecord(self)
        self._recorded = Recorded[PartitionHistory](self, self.update, "history")

    def body(self) -> ComposeResult:
        with Panel(id="log_side"):
            yield LogPanel(id="log")
        with Panel():
            yield History(id="history")

    def draw(self, view: View) -> None:
        topic, partition, options = self.topic, self.partition, self.dashboard.options

        def drawn() -> LogDrawn:
            log = partition_log(view, topic, partition)
            first_ms = self._first.timestamp_ms(view, topic, partition, log)
            return LogDrawn(
                view, topic, partition, log, options, self._zoom(), self.page_height < LOW, first_ms
            )

        self.query_one(LogPanel).fill(drawn, self.inner_width)
        recorded = self._history()
        self.query_one(History).fill(
            history.TITLE_OF_PARTITION,
            lambda: (
                events_of_partition(view.events, topic, partition),
                history.unnamed(unnamed_events(view.events, topic, partition)),
            ),
            history.NOTHING_OF_PARTITION,
            recorded.led,
        )

    def _history(self) -> PartitionHistory:
        """Return the leaders and ISRs from the recording, which is read again every few seconds."""
        timeline, now_ms = self.dashboard.timeline, self.dashboard.wall_ms()
        if timeline is None:
            return PartitionHistory()
        about = (self.topic, self.partition)
        found = self._recorded.of(about, now_ms // AGAIN_MS, partial(timeline.history, *about), now_ms)
        return found or PartitionHistory()

    def _zoom(self) -> Zoom:
        has_both = self.page_height >= BOTH_FROM_HEIGHT
        is_end = any(look.column in ENDS for look in self.dashboard.teaching.looks if look.column)
        if self._is_zoomed != (is_end and not has_both):
            return Zoom.END
        return Zoom.BOTH if has_both else Zoom.WHOLE

    def action_zoom(self) -> None:
        """Draw the whole log, or only its end."""
        self._is_zoomed = not self._is_zoomed
        self.update()

    def action_leader(self) -> None:
        """Show the broker that leads the partition."""
        if (target := self.target()) is not None:
            self.dashboard.go.broker(target.broker)

    def action_records(self) -> None:
        self.dashboard.go.records(self.topic, self.partition)

    def action_next(self, by: int) -> None:
        """Show another partition of the topic. The last is followed by the first."""
        if self.view is None:
            return
        rows = topic_partitions(self.view.topics, self.topic)
        at = partition_row(self.view, self.topic, self.partition)
        if len(rows) and at is not None:
            row = int(rows[(at - int(rows[0]) + by) % len(rows)])
            self.partition = int(self.view.snapshot.partitions.partition[row])
            self.update()
            self.say()

    def partitions_in_sight(self) -> frozenset[tuple[str, int]]:
        """Return the partition shown."""
        return frozenset({(self.topic, self.partition)})

    def target(self) -> Target | None:
        """Return the partition's leader."""
        return leader_of(self.view, self.topic, self.partition) if self.view else None
