"""Views and notices that arrive from the feed's thread, and which of the views are shown: an incomplete one
only if its past takes long to read."""

from collections.abc import Callable

from textual.message import Message
from textual.timer import Timer

from kview.derive.pending import pending
from kview.derive.view import View
from kview.model.notices import Notice

INCOMPLETE_AFTER_S = 0.08
"""How long an incomplete view waits for the complete one: figures must not flicker at every step. Together
with reading and folding a snapshot of 10,000 partitions this stays below 300 ms, which feels like waiting."""


class ViewArrived(Message):
    """A view; the latest one wins."""

    def __init__(self, view: View) -> None:
        super().__init__()
        self.view = view

    def can_replace(self, message: Message) -> bool:
        """A newer view replaces one that was not drawn yet."""
        return isinstance(message, ViewArrived)


class NoticeArrived(Message):
    """A notice about kview itself."""

    def __init__(self, notice: Notice) -> None:
        super().__init__()
        self.notice = notice


class Arrivals:
    """Calls `show` with complete views, and with an incomplete one if no complete one follows within
    `wait_s`; the latest wins."""

    def __init__(
        self, show: Callable[[View], None], set_timer: Callable[[float, Callable[[], None]], Timer]
    ) -> None:
        self.wait_s = INCOMPLETE_AFTER_S
        self._show = show
        self._set_timer = set_timer
        self._is_first = True
        self._waiting: View | None = None
        self._timer: Timer | None = None

    @property
    def waits(self) -> bool:
        """Whether the view that arrived last is not shown yet."""
        return self._waiting is not None

    def take(self, view: View) -> None:
        """Show a view that has arrived, now or after the wait."""
        is_first, self._is_first = self._is_first, False
        if view.moment.complete:
            self._done()
            self._show(view)
        elif is_first:
            self._show(pending(view))
        else:
            self._waiting = view
            if self._timer is None:  # a key held down brings many: each may replace one, none may delay one
                self._timer = self._set_timer(self.wait_s, self._late)

    def _late(self) -> None:
        view = self._waiting
        self._done()
        if view is not None:
            self._show(pending(view))

    def _done(self) -> None:
        self._waiting = None
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
