"""A clock that only a test moves."""


class SetClock:
    """Returns what a test has set, in seconds."""

    def __init__(self, now_s: float = 1000.0) -> None:
        self.now_s = now_s

    def __call__(self) -> float:
        return self.now_s
