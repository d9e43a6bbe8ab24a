"""When the first record of a partition was written, asked for while the partition is on the screen."""

import logging
from typing import Any

from textual.screen import Screen

from kview.derive.partitions.log import PartitionLog
from kview.derive.view import View
from kview.model.inspection import FirstRecordRequest
from kview.model.ports import Inspector
from kview.model.units import UNKNOWN
from kview.tui.app_of import app_of

_log = logging.getLogger(__name__)

AGAIN_MS = 30_000
"""How often a partition is asked again, whether its first record is another one or there was no answer."""


class FirstRecord:
    """Asks for the first record of the partition shown, on behalf of a screen, which is drawn again then.

    The record's timestamp stays the same until the log starts elsewhere, so it is asked for once for each log
    start. Nothing is asked while another moment than the live one is shown, or of a partition without a
    leader that answers.
    """

    def __init__(self, screen: Screen[Any]) -> None:
        self._screen = screen
        self._about: tuple[str, int, int] | None = None
        """Topic, partition and log start that the answer is about."""
        self._timestamp_ms = UNKNOWN
        self._asked_ms = UNKNOWN

    def timestamp_ms(self, view: View, topic: str, partition: int, log: PartitionLog | None) -> int:
        """Return the first record's timestamp, epoch ms, UNKNOWN while it is not known. Asks if need be."""
        host = app_of(self._screen)
        if log is None or host.inspector is None or not view.moment.live:
            return UNKNOWN
        about = topic, partition, log.log_start
        if about != self._about:
            self._about, self._timestamp_ms, self._asked_ms = about, UNKNOWN, UNKNOWN
        is_due = self._asked_ms == UNKNOWN or host.wall_ms() - self._asked_ms >= AGAIN_MS
        answers = any(each.is_leader and each.answers for each in log.replicas)
        if self._timestamp_ms == UNKNOWN and is_due and answers and log.log_start != UNKNOWN:
            self._asked_ms = host.wall_ms()
            self._screen.run_worker(self._ask(host.inspector, about), exclusive=True, group="first record")
        return self._timestamp_ms

    async def _ask(self, inspector: Inspector, about: tuple[str, int, int]) -> None:
        try:
            answer = await inspector.ask(FirstRecordRequest(about[0], about[1]))
        except Exception:
            _log.exception("the first record of a partition could not be asked for")
            return
        if about == self._about:
            self._timestamp_ms = answer.timestamp_ms
            if self._screen.is_attached:
                self._screen.refresh()
