"""What the screen was handed last: one place from which pictures, whoever made them, go to it."""

import threading
import time
from collections.abc import Callable
from dataclasses import replace

from kview.derive.view import NO_AGGREGATES, View
from kview.model.aggregates import Aggregates
from kview.model.notices import Notice

STOP_WITHIN_S = 0.25
"""How long `stop` waits for a call back under way."""


class Handing:
    """Hands pictures and notices on, one at a time, from any thread; nothing after `stop`.

    Every picture carries the latest aggregates; when they change, the last picture is handed on again.
    """

    def __init__(self, wall_ms: Callable[[], int], clock_s: Callable[[], float] = time.monotonic) -> None:
        self._wall_ms = wall_ms
        self._clock_s = clock_s
        self._calling = threading.RLock()
        self._on_view: Callable[[View], None] | None = None
        self._on_notice: Callable[[Notice], None] | None = None
        self._aggregates: Aggregates = NO_AGGREGATES
        self._last: tuple[View, float] | None = None

    def start(self, on_view: Callable[[View], None], on_notice: Callable[[Notice], None]) -> None:
        """From now on there is somebody to hand to."""
        with self._calling:
            self._on_view, self._on_notice = on_view, on_notice

    def stop(self) -> None:
        """No call back after it returns."""
        taken = self._calling.acquire(timeout=STOP_WITHIN_S)
        self._on_view = self._on_notice = None
        if taken:
            self._calling.release()

    def view(self, view: View, wanted: Callable[[], bool] = lambda: True) -> None:
        """Hand a picture on, if it is still `wanted` when its turn comes."""
        with self._calling:
            if self._on_view is not None and wanted():
                view = replace(view, aggregates=self._aggregates)
                self._last = view, self._clock_s()
                self._on_view(view)

    def notice(self, notice: Notice) -> None:
        """Hand a notice on."""
        with self._calling:
            if self._on_notice is not None:
                self._on_notice(notice)

    def set_aggregates(self, aggregates: Aggregates) -> None:
        """From now on pictures carry these, beginning with the last one again."""
        with self._calling:
            self._aggregates = aggregates
            if self._last is not None and self._on_view is not None:
                view, at_s = self._last
                self._last = replace(view, aggregates=aggregates), at_s
                self._on_view(self._last[0])

    def clock_ms(self) -> int:
        """The time at the picture handed last, epoch ms: a live one's is the wall clock's, a paused one's
        stands still, a playing one's runs at its speed, not beyond what is recorded."""
        last = self._last
        if last is None or last[0].moment.live:
            return self._wall_ms()
        view, at_s = last
        moment, at_ms = view.moment, view.snapshot.observation.ended_ms
        if not moment.playing:
            return at_ms
        return min(at_ms + int((self._clock_s() - at_s) * 1000 * moment.speed), max(at_ms, moment.last_ms))
