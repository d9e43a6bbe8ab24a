"""A source with scripted observations, and a clock that advances when the caller waits."""

import queue
from collections.abc import Callable, Iterable, Iterator

from kview.derive.view import View
from kview.errors import ErrorKind, KviewError
from kview.language.notices import text
from kview.model.notices import Notice
from kview.model.snapshot import Observation, Snapshot
from kview.run.observing import SourceEnded

Step = Snapshot | Exception


def snapshot(sequence: int) -> Snapshot:
    """Return a snapshot without any brokers or partitions."""
    return Snapshot(Observation(sequence, began_ms=sequence * 1000, ended_ms=sequence * 1000 + 10))


class ScriptedSource:
    """A `Source` whose `observe` returns or raises the next of `steps`, and whose `connect` raises the next
    of `connections`."""

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
    """A clock whose seconds pass during `wait`, which returns True once `ends_s` is reached."""

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


class HeldSource:
    """A `Source` whose `observe` waits until the test supplies a snapshot."""

    def __init__(self) -> None:
        self._held: queue.Queue[Snapshot | None] = queue.Queue()
        self.observed = 0

    def let(self, *snapshots: Snapshot) -> None:
        """Supply these snapshots, one for each observation."""
        for one in snapshots:
            self._held.put(one)

    def connect(self) -> None:
        """Do nothing, because there is no cluster."""

    def observe(self) -> Snapshot:
        held = self._held.get()
        if held is None:
            raise SourceEnded(KviewError(ErrorKind.CLUSTER_ENDED).facts)
        self.observed += 1
        return held

    def release(self) -> None:
        """End the source, so that `observe` no longer waits."""
        self._held.put(None)

    def close(self) -> None:
        """Do nothing, because there are no connections."""


class Shown:
    """The views and notices that a feed has published, in order."""

    def __init__(self) -> None:
        self.views: list[View] = []
        self.notices: list[Notice] = []

    @property
    def last(self) -> View:
        """The last view published."""
        return self.views[-1]

    def at(self, sequence: int, **moment: object) -> bool:
        """Return whether the last view shows that observation, with these fields of its moment."""
        if not self.views or self.last.snapshot.observation.sequence != sequence:
            return False
        return all(getattr(self.last.moment, name) == value for name, value in moment.items())

    def said(self, words: str) -> bool:
        """Return whether any notice contains these words."""
        return any(words in text(notice) for notice in self.notices)
