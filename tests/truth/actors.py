"""Members of groups of the kinds that have no `Reader`, and transactions, with books of their own."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress

from confluent_kafka import Producer

from kview.model.states import GroupType
from tests.observe.group_members import RUNS, share_consumer, simple_job
from tests.observe.protocol_members import StreamsMember, join_as_worker
from tests.real_kafka.cluster import RealKafka
from tests.truth.clients import QUIET, now_ms
from tests.truth.group_truth import COMMITTED_AT_ONCE
from tests.truth.log import Held, Track, TruthLog
from tests.truth.schedule import BALANCE, ENRICHER, INVOICE, JOB, LEDGER, TASKS, WORKERS

BEAT_S = 2.0
TIMEOUT_MS = 600_000
"""The transactions' own timeout. It is never reached, nor half of it."""


class Member:
    """A member of a group, or what commits under its name, from `start` to `stop`."""

    def __init__(
        self, group: str, kind: GroupType, joined: Callable[[], AbstractContextManager[None]], log: TruthLog
    ) -> None:
        self._group, self._joined, self._log = group, joined, log
        self._is_there: AbstractContextManager[None] | None = None
        log.kinds[group] = kind
        log.members[group] = Track()
        log.read.setdefault(group, Track())

    def start(self) -> None:
        """Join."""
        self._is_there = self._joined()
        self._is_there.__enter__()
        self._log.members[self._group].add(now_ms(), 1)

    def stop(self) -> None:
        """Leave."""
        if self._is_there is not None:
            self._is_there.__exit__(None, None, None)
            self._is_there = None
            self._log.members[self._group].add(now_ms(), 0)


def members_of_other_kinds(kafka: RealKafka, partitions: int, log: TruthLog) -> Mapping[str, Member]:
    """Return a member for each group that is neither of the classic nor of the consumer kind."""
    given: dict[str, int] = {}

    def read(group: str, records: int) -> None:
        if records:
            given[group] = given.get(group, 0) + records
            log.read[group].add(now_ms(), given[group])

    def committed(partition: int, offset: int) -> None:
        key = (JOB, (INVOICE, partition))
        track = log.committed.setdefault(key, Track())
        read(JOB, offset - (track.values[-1] if track.values else 0))
        track.add(now_ms(), offset)

    kinds: Mapping[str, tuple[GroupType, Callable[[], AbstractContextManager[None]]]] = {
        JOB: (
            GroupType.SIMPLE,
            lambda: simple_job(kafka, JOB, INVOICE, partitions, committed, COMMITTED_AT_ONCE),
        ),
        TASKS: (
            GroupType.SHARE,
            lambda: share_consumer(kafka, TASKS, INVOICE, lambda records: read(TASKS, records)),
        ),
        ENRICHER: (GroupType.STREAMS, lambda: _application(kafka)),
        WORKERS: (GroupType.CONNECT, lambda: _worker(kafka)),
    }
    return {group: Member(group, kind, joined, log) for group, (kind, joined) in kinds.items()}


@contextmanager
def _application(kafka: RealKafka) -> Iterator[None]:
    """A member of a streams group, which reads nothing and commits nothing."""
    member, over = StreamsMember(kafka, ENRICHER, INVOICE), threading.Event()
    member.beat()

    def beat() -> None:
        while not over.wait(BEAT_S):
            with suppress(OSError, AssertionError):  # its coordinator moves: the next beat finds it
                member.beat()

    thread = threading.Thread(target=beat, name=ENRICHER)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextmanager
def _worker(kafka: RealKafka) -> Iterator[None]:
    """A worker of Kafka Connect. Its session outlives every schedule."""
    join_as_worker(kafka, WORKERS, RUNS)
    yield


class Transactions:
    """Transactions that write to `ledger`, one after another."""

    def __init__(self, servers: str, log: TruthLog) -> None:
        self._log = log
        self._producer: Producer | None = None
        self._servers = servers

    def begin(self) -> None:
        """Begin one, and write a record in it."""
        name = f"{BALANCE}-{len(self._log.transactions)}"
        self._producer = Producer({
            **QUIET,
            "bootstrap.servers": self._servers,
            "transactional.id": name,
            "transaction.timeout.ms": TIMEOUT_MS,
        })  # fmt: skip
        self._producer.init_transactions(60)
        self._producer.begin_transaction()
        self._log.transactions.append(Held(name, (LEDGER, 0), TIMEOUT_MS, now_ms()))
        self._producer.produce(LEDGER, b"x", partition=0)
        self._producer.flush(30)

    def commit(self) -> None:
        """End it."""
        if self._producer is not None:
            self._producer.commit_transaction(60)
            self._log.transactions[-1].ended_ms = now_ms()
            self._producer = None
