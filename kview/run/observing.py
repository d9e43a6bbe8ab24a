"""Sources of snapshots, one of which is an existing cluster. They are observed at a steady pace and their
snapshots are folded into views, which a dashboard does on a thread."""

import ctypes
import gc
import logging
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from kview.config.security import PLAINTEXT, Security
from kview.derive.view import View
from kview.errors import ErrorFacts, KviewError
from kview.model.address import Address
from kview.model.backoff import Backoff
from kview.model.inspection import A, Question
from kview.model.notices import Notice, NoticeKind, NoticeValue
from kview.model.ports import Attention, Inspector
from kview.model.snapshot import Snapshot
from kview.run import inspecting

if TYPE_CHECKING:
    from kview.observe.observer import Observer

STOP_WITHIN_S = 0.25
"""How long `stop` waits, at most twice, for an observation in progress. The thread is a daemon, so a longer
observation does not keep kview from ending."""

FIRST_BACK_OFF_S = 1.0
MAX_BACK_OFF_S = 30.0
"""Limits of the wait between attempts to get a lost source back. Somebody is watching, and will not wait
longer than about a minute."""

FROZEN_AFTER = frozenset({2, 10, 60})
"""After these numbers of views and notices, the garbage collector stops looking at what exists by then: first
the modules, then most screens and what records. A collection of all of it would stop the screen for 25 ms.
The first view may come while the screen's modules are still being imported."""

ARENA_MAX = -8
"""M_ARENA_MAX of glibc's malloc.h, the limit of its arenas. Each thread would get one of its own, and keep
what is freed in it from the others: 80 MB with 39,000 partitions. Python threads rarely allocate at once."""

V = TypeVar("V")

_log = logging.getLogger(__name__)


def share_memory() -> None:
    """Let all threads use the memory that one of them has freed, if the C library is glibc."""
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).mallopt(ARENA_MAX, 1)


def trim_memory() -> None:
    """Give free memory back to the system, if the C library is glibc, which would keep it: 90 MB with 39,000
    partitions. That takes 8 ms then, and 0.2 ms if there is nothing to give back."""
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


class SourceEnded(Exception):
    """The cluster behind a source has ended for good.

    `error` says how it ended; `connect` starts another cluster.
    """

    def __init__(self, error: ErrorFacts) -> None:
        super().__init__(error)
        self.error = error


class SourceReplaced(Exception):
    """Another cluster takes the place of the one behind a source, because the user asked for it.

    `connect` starts it.
    """


class Source(Protocol):
    """A source of snapshots."""

    def connect(self) -> None:
        """Connect to the cluster, for the first time or again. Raises KviewError if that fails."""
        ...

    def observe(self) -> Snapshot:
        """Observe the cluster once. Failures are part of the snapshot. Raises SourceEnded or
        SourceReplaced."""
        ...

    def close(self) -> None:
        """Close the connections and end any child processes."""
        ...


class AttentiveSource(Source, Attention, Inspector, Protocol):
    """A source that takes directions and questions from the screen: which partitions to read, which broker to
    drop, which records to show."""


class ConnectedSource:
    """An existing cluster. Implements `AttentiveSource`.

    The observer is imported and created in `connect`, so that the first frame does not have to wait for it.
    """

    def __init__(
        self,
        bootstrap_servers: Sequence[Address],
        interval_s: float,
        security: Security = PLAINTEXT,
        reread: Callable[[], Security] | None = None,
        with_records: bool = True,
        lags_first: bool = False,
    ) -> None:
        """`reread` returns the security settings as their files have them now.

        Without `with_records`, no record is ever fetched. `lags_first` is that of `ObserveSettings`.
        """
        self._lags_first = lags_first
        self._with_records = with_records
        self._security = security
        self._reread = reread
        self._bootstrap_servers = tuple(bootstrap_servers)
        self._interval_s = interval_s
        self._observer: Observer | None = None
        self._preferred: frozenset[tuple[str, int]] = frozenset()
        self._asked_for = self._preferred
        """The preferred partitions that the observer already knows."""

    def connect(self) -> None:
        """Find the cluster. Raises ClusterUnreachable, or BadUse if a certificate cannot be used.

        An earlier connection is closed first.
        """
        from kview.observe.observer import Observer, ObserveSettings

        self.close()
        settings = ObserveSettings(interval_s=self._interval_s, lags_first=self._lags_first)
        observer = Observer(
            self._bootstrap_servers,
            settings,
            security=self._security,
            reread=self._reread,
            with_records=self._with_records,
        )
        observer.connect()
        self._observer, self._asked_for = observer, frozenset()

    def observe(self) -> Snapshot:
        """Observe the cluster once. Failures are part of the snapshot."""
        assert self._observer is not None
        preferred = self._preferred
        if preferred is not self._asked_for:
            self._observer.prefer(preferred)
            self._asked_for = preferred
        return self._observer.observe()

    def dismiss(self, broker: int) -> None:
        """Remove the row of a broker that the cluster no longer lists."""
        observer = self._observer
        if observer is not None:
            observer.dismiss(broker)

    def read_again(self, topic: str) -> None:
        """Read a topic's settings in the next observation: somebody has changed them."""
        observer = self._observer
        if observer is not None:
            observer.read_again(topic)

    def prefer(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Read these partitions in every observation, from the next one on."""
        self._preferred = frozenset(partitions)

    @property
    def reads_records(self) -> bool:
        """Whether records may be read at all."""
        return self._with_records

    async def ask(self, question: Question[A]) -> A:
        """Return the cluster's answer. Never raises."""
        return await inspecting.ask(self._observer, question)

    def close(self) -> None:
        """Close the connections."""
        observer, self._observer = self._observer, None
        if observer is not None:
            observer.close()


Fold = Callable[[Snapshot], V]
"""Takes snapshots in order and returns a view of each, calculated from the snapshot and its predecessors."""

Taker = Callable[[Snapshot, View | None], None]
"""Takes each snapshot and its view, on the thread that folds. One that could not be folded has no view: it
shows the bug."""


def new_fold(ignore: tuple[str, ...] = (), takers: Sequence[Taker] = ()) -> Fold[View]:
    """Return a fold that has not seen a snapshot yet. `ignore` has patterns of groups that count nowhere.

    The calculations are imported only here, so that this happens on the observer's thread.
    """
    from kview.derive.fold import State, step

    state = State(ignore)

    def fold(snapshot: Snapshot) -> View:
        nonlocal state
        view = None
        try:
            state, view = step(state, snapshot)
            return view
        finally:
            for take in takers:
                take(snapshot, view)

    return fold


class Pace:
    """Moments one interval apart on a monotonic clock. Missed moments are skipped, not made up for."""

    def __init__(self, interval_s: float, now_s: float) -> None:
        self._interval_s = interval_s
        self._began_s = now_s
        self._moment = 0

    def wait_s(self, now_s: float) -> float:
        """Return the seconds until the next moment, which is always in the future."""
        self._moment = max(self._moment, int((now_s - self._began_s) / self._interval_s)) + 1
        return max(0.0, self._began_s + self._moment * self._interval_s - now_s)


def observing_failed(bug: BaseException) -> Notice:
    """Return the notice that an observation has failed by a bug."""
    return Notice(NoticeKind.OBSERVING_FAILED, {"bug": f"{type(bug).__name__}: {bug}"})


def views(
    source: Source,
    new_fold: Callable[[], Fold[V]],
    interval_s: float,
    wait: Callable[[float], bool],
    clock_s: Callable[[], float] = time.monotonic,
    patient: bool = False,
) -> Iterator[V | Notice]:
    """Yield a view of `source` every interval, and notices about the source, until `wait` ends it.

    `wait` sleeps for the given seconds and returns True when the run should end. Before the first view, this
    raises KviewError or any other error that occurs; if `patient`, a KviewError at connecting becomes a
    notice, and there is another attempt. After the first view, a failure becomes a notice, and the next
    interval is another attempt.
    """
    if not (yield from _connect(source, wait, patient)):
        return
    fold = new_fold()
    pace = Pace(interval_s, clock_s())
    seen, failed = False, False
    while True:
        try:
            view = fold(source.observe())
        except SourceEnded as end:
            again = _connect_again(source, end.error, wait)
            if not (yield from again):
                return
            fold, failed = new_fold(), False
            continue
        except SourceReplaced:
            try:
                source.connect()
            except KviewError as error:
                if not (yield from _connect_again(source, error.facts, wait)):
                    return
            fold, failed = new_fold(), False
            continue
        except Exception as error:
            if not seen:
                raise
            if not failed:
                _log.exception("an observation failed")
            failed = True
            yield observing_failed(error)
        else:
            if failed:
                yield Notice(NoticeKind.OBSERVING_AGAIN)
            seen, failed = True, False
            yield view
        if wait(pace.wait_s(clock_s())):
            return


def _connect(source: Source, wait: Callable[[float], bool], patient: bool) -> Generator[Notice, None, bool]:
    """Connect for the first time, if `patient` until an attempt succeeds. Returns False if the run ended."""
    back_off = Backoff(FIRST_BACK_OFF_S, MAX_BACK_OFF_S)
    while True:
        try:
            source.connect()
        except KviewError as error:
            if not patient:
                raise
            yield Notice(NoticeKind.SOURCE_NOT_REACHED, {"error": error.facts, "wait_s": back_off.pause_s})
        else:
            return True
        if wait(back_off.pause_s):
            return False
        back_off.failed()


def _connect_again(
    source: Source, lost: ErrorFacts, wait: Callable[[float], bool]
) -> Generator[Notice, None, bool]:
    """Try to connect until an attempt succeeds. Returns False if the run ended first."""
    back_off = Backoff(FIRST_BACK_OFF_S, MAX_BACK_OFF_S)
    yield Notice(NoticeKind.SOURCE_LOST, {"lost": lost})
    while not wait(back_off.pause_s):
        try:
            source.connect()
        except KviewError as error:
            back_off.failed()
            values: dict[str, NoticeValue] = {"lost": lost, "error": error.facts, "wait_s": back_off.pause_s}
            yield Notice(NoticeKind.SOURCE_NOT_RESTARTED, values)
        else:
            yield Notice(NoticeKind.SOURCE_RESTARTED, {"lost": lost})
            return True
    return False


class ObservingFeed(Generic[V]):
    """Observes a source, folds and calls back, all on a daemon thread. Implements `kview.model.ports.Feed`.

    If an error ends the thread, which can only happen before the first view and not if `patient`, `error` is
    set and then `on_end` is called once, on that thread.
    """

    def __init__(
        self, source: Source, new_fold: Callable[[], Fold[V]], interval_s: float, patient: bool = False
    ) -> None:
        """`patient`: after a failure before the first view there is another attempt, also after a bug."""
        self._patient = patient
        self._source = source
        self._new_fold = new_fold
        self._interval_s = interval_s
        self._ending = threading.Event()
        self._calling = threading.Lock()
        self._thread: threading.Thread | None = None
        self._shown, self._failed = 0, False
        self._back_off = Backoff(FIRST_BACK_OFF_S, MAX_BACK_OFF_S)
        self.error: BaseException | None = None
        self.on_end: Callable[[], None] = lambda: None

    def start(self, on_view: Callable[[V], None], on_notice: Callable[[Notice], None]) -> None:
        """Start the thread. Returns at once."""
        share_memory()
        self._thread = threading.Thread(
            target=self._run, args=(on_view, on_notice), name="observer", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """End within a second. No callback starts after this returns. The thread itself closes the source."""
        if self._ending.is_set():
            return
        self._ending.set()
        if self._calling.acquire(timeout=STOP_WITHIN_S):
            self._calling.release()
        if self._thread is not None:
            self._thread.join(STOP_WITHIN_S)

    def _run(self, on_view: Callable[[V], None], on_notice: Callable[[Notice], None]) -> None:
        try:
            while True:
                try:
                    self._observe(on_view, on_notice)
                    return
                except Exception as error:
                    with self._calling:
                        if self._ending.is_set():
                            return
                        if not self._patient:
                            self.error = error
                            self.on_end()
                            return
                        if not self._failed:
                            _log.exception("observing failed, and begins again")
                        self._failed = True
                        on_notice(observing_failed(error))
                if self._ending.wait(self._back_off.pause_s):
                    return
                self._back_off.failed()
        finally:
            self._source.close()

    def _observe(self, on_view: Callable[[V], None], on_notice: Callable[[Notice], None]) -> None:
        for item in views(
            self._source, self._new_fold, self._interval_s, self._ending.wait, patient=self._patient
        ):
            with self._calling:
                if self._ending.is_set():
                    return
                if isinstance(item, Notice):
                    on_notice(item)
                else:
                    if self._failed:
                        on_notice(Notice(NoticeKind.OBSERVING_AGAIN))
                        self._failed = False
                        self._back_off.reset()
                    on_view(item)
            self._shown += 1
            if self._shown in FROZEN_AFTER:
                gc.freeze()
                gc.collect(0)  # of what is left, nothing: the first collection ends the rare ones of a start
            trim_memory()
