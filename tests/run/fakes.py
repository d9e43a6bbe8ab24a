"""A source whose observations are scripted, and a clock that moves when somebody waits."""

from collections.abc import Callable, Iterable, Iterator

from kview.model.snapshot import Observation, Snapshot

Step = Snapshot | Exception


def snapshot(sequence: int) -> Snapshot:
    """An observation of nothing."""
    return Snapshot(Observation(sequence, began_ms=sequence * 1000, ended_ms=sequence * 1000 + 10))


class ScriptedSource:
    """A `Source`: `observe` gives or raises the steps in turn; `connect` raises the connections' errors in
    turn."""

    def __init__(self, steps: Iterable[Step], connections: Iterable[Exception | None] = ()) -> None:
        self._steps: Iterator[Step] = iter(steps)
        self._connections = iter(connections)
        self.connects = 0
        self.closes = 0
        self.on_observe: Callable[[], None] = lambda: None

    def connect(self) -> None:
        self.connects += 1
        error = next(self._connections, None)
        if error is not None:
            raise error

    def observe(self) -> Snapshot:
        self.on_observe()
        step = next(self._steps)
        if isinstance(step, Exception):
            raise step
        return step

    def close(self) -> None:
        self.closes += 1


class Clock:
    """Seconds that pass while somebody waits; `wait` is true, the end, once `ends_s` is reached."""

    def __init__(self, ends_s: float) -> None:
        self.now_s = 0.0
        self.waits: list[float] = []
        self._ends_s = ends_s

    def __call__(self) -> float:
        return self.now_s

    def wait(self, seconds: float) -> bool:
        self.waits.append(seconds)
        self.now_s += seconds
        return self.now_s >= self._ends_s
