"""Pauses between attempts."""


class Backoff:
    """A pause that doubles with each attempt that fails, up to a limit. Times are in seconds."""

    def __init__(self, first_s: float, most_s: float) -> None:
        self._first_s, self._most_s = first_s, most_s
        self.pause_s = first_s
        """The pause before the next attempt."""

    def failed(self) -> None:
        """Double the pause, because the attempt after it has failed, too."""
        self.pause_s = min(2 * self.pause_s, self._most_s)

    def reset(self) -> None:
        """Begin with the first pause again."""
        self.pause_s = self._first_s
