"""What the status line says, and for how long."""

from kview.tui.widgets.bottom import Said

SAID_MS = 12_000
"""How long the status line keeps what was done: time to read it, and to try the undo it names."""


class Status:
    """Holds the latest sentence."""

    def __init__(self) -> None:
        self.said = Said()
        self._until_ms: int | None = None

    def say(self, said: Said, now_ms: int, keep: bool) -> None:
        """Say something from `now_ms` on; `keep` until the next sentence."""
        self.said = said
        self._until_ms = None if keep else now_ms + SAID_MS

    def expire(self, now_ms: int) -> bool:
        """Forget a sentence that has been there for long enough; returns whether it did."""
        if not self.said.text or self._until_ms is None or now_ms <= self._until_ms:
            return False
        self.said, self._until_ms = Said(), None
        return True
