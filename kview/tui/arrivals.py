"""What arrives from the feed's thread, and which of the pictures are shown: an incomplete one only where its
past takes long to read."""

from collections.abc import Callable

from textual.message import Message
from textual.timer import Timer

from kview.derive.pending import pending
from kview.derive.view import View
from kview.model.notices import Notice

INCOMPLETE_AFTER_S = 0.08
"""A past that is read sooner comes with its picture: figures must not flicker at every step. Together with
reading and folding a snapshot of 10,000 partitions it stays below what feels like waiting, 300 ms."""


class ViewArrived(Message):
    """A picture; the latest one wins."""

    def __init__(self, view: View) -> None:
        super().__init__()
        self.view = view

    def can_replace(self, message: Message) -> bool:
        """A newer picture takes the place of one that was not drawn yet."""
        return isinstance(message, ViewArrived)


class NoticeArrived(Message):
    """A sentence about kview itself."""

    def __init__(self, notice: Notice) -> None:
        super().__init__()
        self.notice = notice


class Arrivals:
    """Calls `show` with complete pictures, and with incomplete ones that are not followed by a complete one
    within `wait_s`; the latest wins."""

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
        """Whether another picture than the one shown was handed last."""
        return self._waiting is not None

    def take(self, view: View) -> None:
        """A picture has arrived."""
        is_first, self._is_first = self._is_first, False
        if view.moment.complete:
            self._done()
            self._show(view)
        elif is_first:
            self._show(pending(view))
        else:
            self._waiting = view
            if self._timer is None:  # a key held down brings many: each may replace one, none may delay it
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
