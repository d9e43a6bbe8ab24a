"""Publishes views and notices to the screen, one at a time."""

import threading
import time
from collections.abc import Callable

from msgspec.structs import replace

from kview.derive.view import NO_AGGREGATES, View
from kview.model.aggregates import Aggregates
from kview.model.notices import Notice
from kview.model.ports import Moment, TimeMark
from kview.model.units import UNKNOWN

STOP_WITHIN_S = 0.25
"""How long `stop` waits for a callback in progress."""


class Publisher:
    """Publishes views and notices from any thread, one at a time, and publishes nothing after `stop`.

    Every view includes the latest aggregates and marks of the time bar. When the aggregates change, the last
    view is published again.
    """

    def __init__(self, wall_ms: Callable[[], int], clock_s: Callable[[], float] = time.monotonic) -> None:
        self._wall_ms = wall_ms
        self._clock_s = clock_s
        self._calling = threading.RLock()
        self._on_view: Callable[[View], None] | None = None
        self._on_notice: Callable[[Notice], None] | None = None
        self._aggregates: Aggregates = NO_AGGREGATES
        self._marks: tuple[TimeMark, ...] = ()
        self._last: tuple[View, float] | None = None

    def start(self, on_view: Callable[[View], None], on_notice: Callable[[Notice], None]) -> None:
        """Publish to these callbacks from now on. Earlier views and notices are lost."""
        with self._calling:
            self._on_view, self._on_notice = on_view, on_notice

    def stop(self) -> None:
        """Stop publishing. No callback starts after this returns."""
        taken = self._calling.acquire(timeout=STOP_WITHIN_S)
        self._on_view = self._on_notice = None
        if taken:
            self._calling.release()

    def publish(self, view: View | None, moment: Moment, wanted: Callable[[], bool] = lambda: True) -> None:
        """Publish a view at `moment` if it is still `wanted` when its turn comes.

        None stands for the last view, of which only the moment is another one.
        """
        with self._calling:
            if view is None and self._last is not None:
                view = self._last[0]
            if view is not None and self._on_view is not None and wanted():
                view = replace(view, aggregates=self._aggregates, moment=replace(moment, marks=self._marks))
                self._last = view, self._clock_s()
                self._on_view(view)

    @property
    def marks(self) -> tuple[TimeMark, ...]:
        """The marks of the time bar."""
        return self._marks

    def set_marks(self, marks: tuple[TimeMark, ...], again: bool = False) -> None:
        """Add these marks of the time bar to every view from now on, and with `again` to the last one."""
        with self._calling:
            self._marks = marks
            if again and self._last is not None and self._on_view is not None:
                view, at_s = self._last
                self._last = replace(view, moment=replace(view.moment, marks=marks)), at_s
                self._on_view(self._last[0])

    def notify(self, notice: Notice) -> None:
        """Publish a notice."""
        with self._calling:
            if self._on_notice is not None:
                self._on_notice(notice)

    def set_aggregates(self, aggregates: Aggregates) -> None:
        """Add these aggregates to every view from now on, and publish the last view again with them."""
        with self._calling:
            self._aggregates = aggregates
            if self._last is not None and self._on_view is not None:
                view, at_s = self._last
                self._last = replace(view, aggregates=aggregates), at_s
                self._on_view(self._last[0])

    def clock_ms(self) -> int:
        """Return the time that belongs to the last view, in epoch ms.

        For a live view, this is the wall clock's time. While paused, it is the moment shown. While a
        recording plays, it advances at the chosen speed, up to the end of what is recorded.
        """
        last = self._last
        if last is None or last[0].moment.live:
            return self._wall_ms()
        view, at_s = last
        moment, at_ms = view.moment, view.snapshot.observation.ended_ms
        if not moment.playing or moment.reading_ms != UNKNOWN:
            return at_ms
        return min(at_ms + int((self._clock_s() - at_s) * 1000 * moment.speed), max(at_ms, moment.last_ms))
