"""The leaders and ISRs of a partition from the recording, which are read while its screen is open."""

import logging
from collections.abc import Callable
from typing import Any

from textual.screen import Screen

from kview.model.history import PartitionHistory
from kview.model.ports import Timeline
from kview.model.units import UNKNOWN
from kview.tui.app_of import app_of

_log = logging.getLogger(__name__)

AGAIN_MS = 10_000
"""How soon the recording is read again, so that what has happened since is in the list."""
SHARE = 20
"""Reading takes at most one part in so many of the time, however large the recording is."""


class RecordedHistory:
    """Reads the history of the partition shown, on behalf of a screen. `on_read` is called each time."""

    def __init__(self, screen: Screen[Any], on_read: Callable[[], None]) -> None:
        self._screen = screen
        self._on_read = on_read
        self._about: tuple[str, int] | None = None
        self._history = PartitionHistory()
        self._next_ms = UNKNOWN

    def of(self, timeline: Timeline | None, topic: str, partition: int, wall_ms: int) -> PartitionHistory:
        """Return what has been read about a partition, and read it again if it is time to."""
        if timeline is None:
            return PartitionHistory()
        if self._about != (topic, partition):
            self._about, self._history, self._next_ms = (topic, partition), PartitionHistory(), UNKNOWN
        if wall_ms >= self._next_ms:
            self._next_ms = wall_ms + AGAIN_MS
            work = self._read(timeline, topic, partition, wall_ms)
            self._screen.run_worker(work, exclusive=True, group="history")
        return self._history

    async def _read(self, timeline: Timeline, topic: str, partition: int, began_ms: int) -> None:
        try:
            history = await timeline.history(topic, partition)
        except Exception:
            _log.exception("the history of a partition could not be shown")
            return
        if self._about == (topic, partition) and self._screen.is_attached:
            self._history = history
            took_ms = app_of(self._screen).wall_ms() - began_ms
            self._next_ms = max(self._next_ms, began_ms + SHARE * took_ms)
            self._on_read()
