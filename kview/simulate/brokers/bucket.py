"""The byte budget of a link, a disk or a throttle."""


class Bucket:
    """A byte budget of a link or a disk.

    The budget refills at `rate` bytes a second, is limited to half a second's worth, and may go negative.
    """

    __slots__ = ("_at_us", "_tokens", "rate")

    def __init__(self, rate: int, now_us: int) -> None:
        self.rate = rate
        self._tokens = rate // 2
        self._at_us = now_us

    def available(self, now_us: int) -> int:
        """Return the number of bytes that may pass at `now_us`. At 0 or less, none may pass."""
        passed = now_us - self._at_us
        if passed > 0:
            self._tokens = min(self.rate // 2, self._tokens + self.rate * passed // 1_000_000)
            self._at_us = now_us
        return self._tokens

    def take(self, size: int) -> None:
        """Take `size` bytes out of the budget."""
        self._tokens -= size
