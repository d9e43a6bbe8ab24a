"""Views and notices that arrive from the feed's thread, and the choice of which views to show.

That another moment is being read is shown only if that takes a while.
"""

from collections.abc import Callable

from textual.message import Message
from textual.timer import Timer

from kview.derive.view import View
from kview.model.notices import Notice
from kview.model.units import UNKNOWN

READING_AFTER_S = 0.08
"""After this time it is said that another moment is being read, so that the head does not flicker at every
step."""


class ViewArrived(Message):
    """A view. The latest view replaces earlier ones."""

    def __init__(self, view: View) -> None:
        super().__init__()
        self.view = view

    def can_replace(self, message: Message) -> bool:
        """Return whether `message` is a view, because a newer view replaces one that has not been drawn
        yet."""
        return isinstance(message, ViewArrived)


class NoticeArrived(Message):
    """A notice about kview itself."""

    def __init__(self, notice: Notice) -> None:
        super().__init__()
        self.notice = notice


class Arrivals:
    """Calls `show` with the latest views: at once, or, if a view says that another moment is being read, if
    that one does not follow within `wait_s`."""

    def __init__(
        self, show: Callable[[View], None], set_timer: Callable[[float, Callable[[], None]], Timer]
    ) -> None:
        self.wait_s = READING_AFTER_S
        self._show = show
        self._set_timer = set_timer
        self._waiting: View | None = None
        self._timer: Timer | None = None

    @property
    def waits(self) -> bool:
        """Whether the view that arrived last has not been shown yet."""
        return self._waiting is not None

    def take(self, view: View) -> None:
        """Show a view that has arrived, either now or after the wait."""
        if view.moment.reading_ms == UNKNOWN:
            self._done()
            self._show(view)
        else:
            self._waiting = view
            if self._timer is None:  # a key held down produces many views
                self._timer = self._set_timer(self.wait_s, self._late)

    def _late(self) -> None:
        view = self._waiting
        self._done()
        if view is not None:
            self._show(view)

    def _done(self) -> None:
        self._waiting = None
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
