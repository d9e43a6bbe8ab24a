"""Which message the status line shows, and for how long."""

from kview.tui.widgets.bottom import StatusMessage

SHOWN_MS = 12_000
"""How long the status line shows a message, so that there is time to read it and to try the undo it
mentions."""


class Status:
    """Remembers the latest message."""

    def __init__(self) -> None:
        self.message = StatusMessage()
        self._until_ms: int | None = None

    @property
    def is_kept(self) -> bool:
        """Whether the message stays until the next one."""
        return bool(self.message.text) and self._until_ms is None

    def say(self, message: StatusMessage, now_ms: int, keep: bool) -> None:
        """Show a message from `now_ms` on. With `keep`, the message stays until the next one."""
        self.message = message
        self._until_ms = None if keep else now_ms + SHOWN_MS

    def expire(self, now_ms: int) -> bool:
        """Forget a message that has been shown for long enough. Returns whether it did."""
        if not self.message.text or self._until_ms is None or now_ms <= self._until_ms:
            return False
        self.message, self._until_ms = StatusMessage(), None
        return True
