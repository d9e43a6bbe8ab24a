"""Observing at a steady pace: a source of snapshots and the fold make pictures, on a thread of their own for
a dashboard."""

import gc
import logging
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator
from typing import Generic, Protocol, TypeVar

from kview.errors import ErrorFacts, KviewError
from kview.model.notices import Notice, NoticeKind, NoticeValue
from kview.model.ports import Attention
from kview.model.snapshot import Snapshot

SWITCH_INTERVAL_S = 0.001
"""How long a thread may keep the interpreter: decoding 100,000 partitions must not make the screen
stutter."""

STOP_WITHIN_S = 0.25
"""How long `stop` waits, twice at most, for an observation under way; the thread is a daemon, so that a
later one hinders nobody."""

FIRST_BACK_OFF_S = 1.0
MAX_BACK_OFF_S = 30.0
"""Bounds of the wait between attempts to get a lost source back: a person is watching, and may have a
minute's patience."""

V = TypeVar("V")

_log = logging.getLogger(__name__)


class SourceEnded(Exception):
    """The cluster behind a source is gone for good; `connect` finds another one. `error` is what happened."""

    def __init__(self, error: ErrorFacts) -> None:
        super().__init__(error)
        self.error = error


class Source(Protocol):
    """Where snapshots come from."""

    def connect(self) -> None:
        """Find the cluster, at the first time or anew. Raises KviewError where it cannot."""
        ...

    def observe(self) -> Snapshot:
        """Look once; what fails is in the snapshot. Raises SourceEnded."""
        ...

    def close(self) -> None:
        """End the connections, and children with them."""
        ...


class AttentiveSource(Source, Attention, Protocol):
    """A source that hears from the screen what is in sight."""


Fold = Callable[[Snapshot], V]
"""Takes the snapshots in their order and makes each into a picture, with its predecessors in mind."""


class Pace:
    """Moments one interval apart from the first, on a clock that only rises. What is late is left out, never
    made up for."""

    def __init__(self, interval_s: float, now_s: float) -> None:
        self._interval_s = interval_s
        self._began_s = now_s
        self._moment = 0

    def wait_s(self, now_s: float) -> float:
        """Seconds until the next moment, which lies in the future."""
        self._moment = max(self._moment, int((now_s - self._began_s) / self._interval_s)) + 1
        return max(0.0, self._began_s + self._moment * self._interval_s - now_s)


def pictures(
    source: Source,
    new_fold: Callable[[], Fold[V]],
    interval_s: float,
    wait: Callable[[float], bool],
    clock_s: Callable[[], float] = time.monotonic,
) -> Iterator[V | Notice]:
    """Pictures of `source`, one an interval, and notices about the source, until `wait` says that it is time
    to end.

    `wait` sleeps that many seconds and is true when the run is to end. Raises KviewError, or whatever else
    went wrong, only before the first picture; after it a failure is a notice, and the next interval brings
    another attempt.
    """
    source.connect()
    fold = new_fold()
    pace = Pace(interval_s, clock_s())
    seen, failed = False, False
    while True:
        try:
            picture = fold(source.observe())
        except SourceEnded as end:
            again = _connect_again(source, end.error, wait)
            if not (yield from again):
                return
            fold, failed = new_fold(), False
            continue
        except Exception as error:
            if not seen:
                raise
            if not failed:
                _log.exception("an observation failed")
            failed = True
            yield Notice(NoticeKind.OBSERVING_FAILED, {"bug": f"{type(error).__name__}: {error}"})
        else:
            if failed:
                yield Notice(NoticeKind.OBSERVING_AGAIN)
            seen, failed = True, False
            yield picture
        if wait(pace.wait_s(clock_s())):
            return


def _connect_again(
    source: Source, lost: ErrorFacts, wait: Callable[[float], bool]
) -> Generator[Notice, None, bool]:
    """Connect until it works; returns whether it did before the end of the run."""
    back_off_s = FIRST_BACK_OFF_S
    yield Notice(NoticeKind.SOURCE_LOST, {"lost": lost})
    while not wait(back_off_s):
        try:
            source.connect()
        except KviewError as error:
            back_off_s = min(back_off_s * 2, MAX_BACK_OFF_S)
            values: dict[str, NoticeValue] = {"lost": lost, "error": error.facts, "wait_s": back_off_s}
            yield Notice(NoticeKind.SOURCE_NOT_RESTARTED, values)
        else:
            yield Notice(NoticeKind.SOURCE_RESTARTED, {"lost": lost})
            return True
    return False


class ObservingFeed(Generic[V]):
    """`kview.model.ports.Feed` of a source: a daemon thread observes, folds and calls back.

    `on_end` is called once on that thread where it ends by an error, which is before the first picture;
    `error` holds it.
    """

    def __init__(self, source: Source, new_fold: Callable[[], Fold[V]], interval_s: float) -> None:
        self._source = source
        self._new_fold = new_fold
        self._interval_s = interval_s
        self._ending = threading.Event()
        self._calling = threading.Lock()
        self._thread: threading.Thread | None = None
        self.error: BaseException | None = None
        self.on_end: Callable[[], None] = lambda: None

    def start(self, on_view: Callable[[V], None], on_notice: Callable[[Notice], None]) -> None:
        """Begin; returns at once."""
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        self._thread = threading.Thread(
            target=self._run, args=(on_view, on_notice), name="observer", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """End within a second; no call back after it returns. The thread closes the source itself."""
        if self._ending.is_set():
            return
        self._ending.set()
        if self._calling.acquire(timeout=STOP_WITHIN_S):
            self._calling.release()
        if self._thread is not None:
            self._thread.join(STOP_WITHIN_S)

    def _run(self, on_view: Callable[[V], None], on_notice: Callable[[Notice], None]) -> None:
        frozen = False
        try:
            for picture in pictures(self._source, self._new_fold, self._interval_s, self._ending.wait):
                with self._calling:
                    if self._ending.is_set():
                        return
                    if isinstance(picture, Notice):
                        on_notice(picture)
                    else:
                        on_view(picture)
                if not frozen:
                    gc.freeze()
                    frozen = True
        except Exception as error:
            with self._calling:
                if not self._ending.is_set():
                    self.error = error
                    self.on_end()
        finally:
            self._source.close()
