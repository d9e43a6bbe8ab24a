"""One broker's transaction coordinator, which answers for the transactional ids of the partitions of
`__transaction_state` that the broker leads.

Sources: TransactionCoordinator, TransactionMetadata and TransactionStateManager. Clients of version 2
(KIP-890) have a new epoch after each transaction; those of version 0 only with InitProducerId, or if a
time-out ends one.
A `done` callback is called once, immediately or from a later event, but never if the broker's process dies
first.
"""

from collections.abc import Callable, Iterator, Sequence

from kview.simulate.codes import ErrorCode
from kview.simulate.coordination.host import Host
from kview.simulate.coordination.of_cluster import LOAD_MS
from kview.simulate.coordination.placement import partition_of
from kview.simulate.coordination.shard import Shard
from kview.simulate.features import TRANSACTION_VERSION
from kview.simulate.metadata import TopicPartition
from kview.simulate.records import Marker
from kview.simulate.requests.records import EndedTransaction
from kview.simulate.results import ProducerIdResult
from kview.simulate.transactions.records import (
    EPOCH_MAX,
    NO_EPOCH,
    NO_PRODUCER_ID,
    NO_TIME,
    TransactionState,
    TransactionValue,
    decode_batch,
    encode_batch,
)
from kview.simulate.transactions.results import (
    CodeDone,
    DescribedTransaction,
    EndDone,
    EndResult,
    InitDone,
)
from kview.simulate.transactions.settings import TransactionSettings
from kview.wire.primitives import MalformedBytes

S = TransactionState
WRITE_MS = 60_000
BUMPS_FROM = 2
"""The first version of clients whose epoch changes with each transaction."""
RETRY_MS = 100

SendMarkers = Callable[
    [Sequence[TopicPartition], EndedTransaction, Callable[[], bool], Callable[[], None]], None
]
"""(partitions, the end, whether it is still needed, what to do once all have it): see `Markers.send`."""


class Transaction:
    """A transactional id as its coordinator knows it. `pending` is the state that is being written.

    `last_epoch` is the epoch that a client may have if it has not heard of the newer one it was given.
    """

    __slots__ = ("last_epoch", "pending", "value")

    def __init__(self, value: TransactionValue) -> None:
        self.value = value
        self.last_epoch = NO_EPOCH
        self.pending: TransactionState | None = None


class TransactionShard(Shard):
    """The transactional ids of one partition of `__transaction_state`, led in `epoch`."""

    def __init__(self, host: Host, partition: int, epoch: int) -> None:
        super().__init__(host, partition, WRITE_MS)
        self.epoch = epoch
        self.transactions: dict[str, Transaction] = {}

    @property
    def version(self) -> int:
        """The transaction.version that is in force."""
        return self.host.metadata().features.get(TRANSACTION_VERSION, 0)

    def load(self) -> None:
        """Load the transactional ids from the partition's log."""
        values: dict[str, TransactionValue] = {}
        for batch in self.host.batches(self.partition):
            self.batches += 1
            try:
                changes = decode_batch(batch)
            except MalformedBytes:
                continue  # A client wrote records of its own. A coordinator skips what it cannot read.
            for name, value in changes:
                values.pop(name, None)
                if value is not None:
                    values[name] = value
        self.transactions = {name: Transaction(value) for name, value in values.items()}
        self.loading = False

    def change(
        self, name: str, value: TransactionValue, answer: CodeDone, then: Callable[[], None] = lambda: None
    ) -> None:
        """Write a transactional id's new state, which is in force once that is committed.

        `then` is called at that moment, which may be long after `answer` has given up waiting for it.
        """
        known = self.transactions.get(name)
        if known is None:
            known = self.transactions[name] = Transaction(value._replace(producer_epoch=NO_EPOCH))
        known.pending = value.state
        value = value._replace(updated_ms=self.now_ms, previous_producer_id=known.value.producer_id)

        def apply(offset: int) -> None:
            known.value, known.pending = value, None
            then()

        def answered(code: ErrorCode) -> None:
            if code is not ErrorCode.NONE:
                known.pending = None
            answer(code)

        self.append(encode_batch((name, value), self.now_ms, self.version > 0), apply, answered)

    def forget(self, name: str) -> None:
        """Write that a transactional id has expired."""
        known = self.transactions[name]
        known.pending = S.DEAD

        def apply(offset: int) -> None:
            self.transactions.pop(name, None)

        def answered(code: ErrorCode) -> None:
            known.pending = None

        self.append(encode_batch((name, None), self.now_ms), apply, answered)


class TransactionCoordinator:
    """One broker's coordinator.

    `new_producer_id` returns an id that was never given before, or why there is none. `send` sends markers.
    """

    def __init__(
        self,
        host: Host,
        settings: TransactionSettings,
        new_producer_id: Callable[[], ProducerIdResult],
        send: SendMarkers,
    ) -> None:
        self._host = host
        self._settings = settings
        self._new_producer_id = new_producer_id
        self._send = send
        self._shards: dict[int, TransactionShard] = {}

    # --- changes at the broker

    def elected(self, partition: int, epoch: int, load_ms: int = LOAD_MS) -> None:
        """Load the transactional ids of a partition that the broker now leads, after `load_ms`."""
        self.resigned(partition)
        shard = self._shards[partition] = TransactionShard(self._host, partition, epoch)

        def load() -> None:
            shard.load()
            for name, known in shard.transactions.items():
                if known.value.state in (S.PREPARE_COMMIT, S.PREPARE_ABORT):
                    self._complete(shard, name)
            settings = self._settings
            shard.every(
                settings.abort_timed_out_transaction_cleanup_interval_ms, lambda: self._abort_late(shard)
            )
            shard.every(settings.remove_expired_transaction_cleanup_interval_ms, lambda: self._expire(shard))

        shard.load_after(load_ms, load)

    def resigned(self, partition: int) -> None:
        """Release the transactional ids of a partition that the broker no longer leads."""
        shard = self._shards.pop(partition, None)
        if shard is not None:
            shard.close(answer=True)

    def topics_changed(self) -> None:
        """Do nothing: markers to topics that are gone are not sent any more."""

    def process_ended(self) -> None:
        """Drop all state and waiting clients, because the process has ended."""
        for shard in self._shards.values():
            shard.close(answer=False)
        self._shards.clear()

    def _abort_late(self, shard: TransactionShard) -> None:
        """Abort the transactions that have taken longer than their timeout."""
        for name, known in list(shard.transactions.items()):
            value = known.value
            ends_ms = value.began_ms + value.timeout_ms
            if value.state is S.ONGOING and known.pending is None and ends_ms < shard.now_ms:
                self._fence(shard, name)

    def _expire(self, shard: TransactionShard) -> None:
        """Forget the transactional ids that nobody has used for transactional.id.expiration.ms."""
        before_ms = shard.now_ms - self._settings.id_expiration_ms
        for name, known in list(shard.transactions.items()):
            idle = known.value.state in (S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT)
            if idle and known.pending is None and known.value.updated_ms <= before_ms:
                shard.forget(name)

    # --- finding the coordinator

    def find(self, name: str) -> int:
        """Return the broker that coordinates this transactional id according to this broker's metadata, or
        −1."""
        return self._host.leader(self._partition(name))

    def _partition(self, name: str) -> int:
        return partition_of(name, self._settings.state_log_num_partitions)

    def _shard(self, name: str) -> TransactionShard | ErrorCode:
        """Return the shard of a transactional id, or why this coordinator cannot answer for it."""
        shard = self._shards.get(self._partition(name))
        if shard is None:
            return ErrorCode.NOT_COORDINATOR
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if shard.loading else shard

    # --- producers

    def init_producer_id(self, name: str, timeout_ms: int, expected: tuple[int, int], done: InitDone) -> None:
        """Give a producer its id and a new epoch, which fences everybody who had it before.

        An open transaction is aborted first, and the client is told to ask again. `expected` is the id and
        epoch the client thinks it has, NO_PRODUCER_ID and NO_EPOCH if it has just started.
        """

        def refuse(code: ErrorCode) -> None:
            done(ProducerIdResult(code))

        if not name or (expected[0] < 0) != (expected[1] < 0):
            return refuse(ErrorCode.INVALID_REQUEST)
        if not 0 < timeout_ms <= self._settings.max_timeout_ms:
            return refuse(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
        shard = self._shard(name)
        if isinstance(shard, ErrorCode):
            return refuse(shard)
        known, again = shard.transactions.get(name), False
        if known is None:
            given = self._new_producer_id()
            if given.error_code is not ErrorCode.NONE:
                return refuse(given.error_code)
            before = TransactionValue(given.producer_id, NO_EPOCH, timeout_ms, S.EMPTY)
        else:
            before = known.value
            if known.pending is not None or before.state in (S.PREPARE_COMMIT, S.PREPARE_ABORT):
                return refuse(ErrorCode.CONCURRENT_TRANSACTIONS)
            is_exhausted = expected[0] == before.previous_producer_id and expected[1] >= EPOCH_MAX
            if expected[0] not in (NO_PRODUCER_ID, before.producer_id) and not is_exhausted:
                return refuse(ErrorCode.PRODUCER_FENCED)
            if before.state is S.ONGOING:
                self._fence(shard, name)
                return refuse(ErrorCode.CONCURRENT_TRANSACTIONS)
            again = expected[0] == before.producer_id and expected[1] != before.producer_epoch
            if again and expected[1] != known.last_epoch:
                return refuse(ErrorCode.PRODUCER_FENCED)
        after = before._replace(
            producer_epoch=before.producer_epoch + (not again),
            timeout_ms=timeout_ms,
            state=S.EMPTY,
            partitions=(),
            began_ms=NO_TIME if self._settings.version >= BUMPS_FROM else before.began_ms,
        )
        if after.producer_epoch > EPOCH_MAX:
            given = self._new_producer_id()
            if given.error_code is not ErrorCode.NONE:
                return refuse(given.error_code)
            after = after._replace(producer_id=given.producer_id, producer_epoch=0)

        def written(code: ErrorCode) -> None:
            if code is not ErrorCode.NONE:
                return refuse(code)
            shard.transactions[name].last_epoch = expected[1]
            done(ProducerIdResult(code, after.producer_id, after.producer_epoch))

        shard.change(name, after, written)

    def _known(
        self, name: str, producer_id: int, producer_epoch: int
    ) -> tuple[TransactionShard, Transaction] | ErrorCode:
        """Return a transactional id that this producer has, or why it has not."""
        if not name:
            return ErrorCode.INVALID_REQUEST
        shard = self._shard(name)
        if isinstance(shard, ErrorCode):
            return shard
        known = shard.transactions.get(name)
        if known is None:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        if known.pending is not None:  # Who asks may know an id and an epoch that are being written.
            return ErrorCode.CONCURRENT_TRANSACTIONS
        if producer_id not in (NO_PRODUCER_ID, known.value.producer_id) and (
            producer_id == known.value.next_producer_id
        ):
            return ErrorCode.CONCURRENT_TRANSACTIONS  # The markers are on their way.
        if known.value.producer_id != producer_id:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        if known.value.producer_epoch != producer_epoch:
            return ErrorCode.PRODUCER_FENCED
        return shard, known

    # --- transactions

    def add_partitions(
        self,
        name: str,
        producer: tuple[int, int],
        partitions: Sequence[TopicPartition],
        version: int,
        done: CodeDone,
    ) -> None:
        """Add partitions to the producer's transaction, which begins with the first."""
        version = min(version, self._settings.version)
        found = self._known(name, *producer)
        if isinstance(found, ErrorCode):
            return done(found)
        shard, known = found
        value = known.value
        if value.state in (S.PREPARE_COMMIT, S.PREPARE_ABORT):
            return done(ErrorCode.CONCURRENT_TRANSACTIONS)
        is_open = value.state is S.ONGOING
        already = value.partitions if is_open else ()
        if is_open and set(partitions) <= set(already):
            return done(ErrorCode.NONE)
        shard.change(
            name,
            value._replace(
                state=S.ONGOING,
                partitions=tuple(dict.fromkeys((*already, *partitions))),
                began_ms=value.began_ms if is_open else shard.now_ms,
                version=version,
            ),
            done,
        )

    def verify(
        self, name: str, producer: tuple[int, int], partitions: Sequence[TopicPartition]
    ) -> list[ErrorCode]:
        """Return for each partition whether it is part of the producer's transaction: NONE, or why not."""
        found = self._known(name, *producer)
        if isinstance(found, ErrorCode):
            return [found] * len(partitions)
        _, known = found
        if known.value.state in (S.PREPARE_COMMIT, S.PREPARE_ABORT):
            return [ErrorCode.CONCURRENT_TRANSACTIONS] * len(partitions)
        added = set(known.value.partitions) if known.value.state is S.ONGOING else set()
        return [ErrorCode.NONE if key in added else ErrorCode.TRANSACTION_ABORTABLE for key in partitions]

    def end(self, name: str, producer: tuple[int, int], is_commit: bool, version: int, done: EndDone) -> None:
        """Commit or abort the producer's transaction. The answer comes when the decision is committed; the
        markers follow."""
        found = self._known(name, *producer)
        bumps = min(version, self._settings.version) >= BUMPS_FROM
        if found in (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_ID_MAPPING) and bumps:
            return done(self._ended_again(name, producer, is_commit) or EndResult(found))
        if isinstance(found, ErrorCode):
            return done(EndResult(found))
        shard, known = found
        value = known.value
        match value.state:
            case S.ONGOING:
                pass
            case S.PREPARE_COMMIT | S.PREPARE_ABORT:
                same = is_commit == (value.state is S.PREPARE_COMMIT)
                code = ErrorCode.CONCURRENT_TRANSACTIONS if same else ErrorCode.INVALID_TXN_STATE
                return done(EndResult(code))
            case S.EMPTY | S.COMPLETE_COMMIT | S.COMPLETE_ABORT if bumps and not is_commit:
                pass  # An abort of nothing gives a new epoch, too.
            case S.COMPLETE_COMMIT | S.COMPLETE_ABORT if not bumps:
                same = is_commit == (value.state is S.COMPLETE_COMMIT)
                return done(EndResult(ErrorCode.NONE if same else ErrorCode.INVALID_TXN_STATE))
            case _:
                return done(EndResult(ErrorCode.INVALID_TXN_STATE))
        self._prepare(shard, name, is_commit, bumps, done)

    def _ended_again(self, name: str, producer: tuple[int, int], is_commit: bool) -> EndResult | None:
        """Answer a client that asks again because it has not had the answer with its new epoch, or with the
        new id that comes after the last epoch. Return None for others."""
        shard = self._shard(name)
        known = None if isinstance(shard, ErrorCode) else shard.transactions.get(name)
        if known is None:
            return None
        value = known.value
        asked = [(value.producer_id, value.producer_epoch - 1)]
        if value.producer_epoch == 0 and value.state in (S.COMPLETE_COMMIT, S.COMPLETE_ABORT):
            asked.append((value.previous_producer_id, EPOCH_MAX))
        if producer not in asked or value.state in (S.EMPTY, S.ONGOING):
            return None
        if is_commit is not (value.state in (S.PREPARE_COMMIT, S.COMPLETE_COMMIT)):
            return EndResult(ErrorCode.INVALID_TXN_STATE)
        if value.state in (S.PREPARE_COMMIT, S.PREPARE_ABORT):
            return EndResult(ErrorCode.CONCURRENT_TRANSACTIONS)
        return EndResult(ErrorCode.NONE, value.producer_id, value.producer_epoch)

    def _fence(self, shard: TransactionShard, name: str) -> None:
        """Abort a transaction with the next epoch, so that its producer cannot commit it.

        As in Kafka, a producer that asks again, with its old epoch, for an abort or for an epoch gets the new
        one, until a successor has asked for one.
        """
        self._prepare(shard, name, is_commit=False, bumps=True, done=lambda result: None, fences=True)

    def _prepare(
        self,
        shard: TransactionShard,
        name: str,
        is_commit: bool,
        bumps: bool,
        done: EndDone,
        fences: bool = False,
    ) -> None:
        """Write the decision, in the next epoch if it `bumps` that, answer, and send the markers.

        A client at the last epoch gets a new producer id, one that is fenced does not.
        """
        value = shard.transactions[name].value
        after = value._replace(
            state=S.PREPARE_COMMIT if is_commit else S.PREPARE_ABORT,
            producer_epoch=min(value.producer_epoch + bumps, EPOCH_MAX + 1),
            partitions=value.partitions if value.state is S.ONGOING else (),
            began_ms=value.began_ms if value.state is S.ONGOING else shard.now_ms,
            version=BUMPS_FROM if bumps and shard.version >= BUMPS_FROM else value.version,
        )
        if after.producer_epoch > EPOCH_MAX and bumps and not fences:
            given = self._new_producer_id()
            if given.error_code is not ErrorCode.NONE:
                return done(EndResult(given.error_code))
            after = after._replace(next_producer_id=given.producer_id)

        def decided() -> None:
            if bumps:  # Before KIP-890, a producer that is fenced cannot go on with the next epoch.
                known = self._settings.version >= BUMPS_FROM
                shard.transactions[name].last_epoch = after.producer_epoch - 1 if known else NO_EPOCH
            self._complete(shard, name)

        def written(code: ErrorCode) -> None:
            is_new = bumps and code is ErrorCode.NONE
            done(EndResult(code, *_next(after)) if is_new else EndResult(code))

        shard.change(name, after, written, decided)

    def _complete(self, shard: TransactionShard, name: str) -> None:
        """Send the markers of a decision, and write that the transaction is complete once all have them."""
        value = shard.transactions[name].value
        is_commit = value.state is S.PREPARE_COMMIT
        ended = EndedTransaction(value.producer_id, value.producer_epoch, Marker(is_commit, shard.epoch))

        def complete() -> None:
            producer_id, epoch = _next(value)
            shard.change(
                name,
                value._replace(
                    state=S.COMPLETE_COMMIT if is_commit else S.COMPLETE_ABORT,
                    producer_id=producer_id,
                    producer_epoch=epoch,
                    next_producer_id=NO_PRODUCER_ID,
                    partitions=(),
                ),
                completed,
            )

        def completed(code: ErrorCode) -> None:
            if code is not ErrorCode.NONE and not shard.closed:
                shard.after(RETRY_MS, complete)

        self._send(value.partitions, ended, lambda: not shard.closed, complete)

    # --- descriptions

    def describe(self, name: str) -> DescribedTransaction:
        """Describe a transactional id."""
        if not name:
            return DescribedTransaction(ErrorCode.INVALID_REQUEST, name)
        shard = self._shard(name)
        if isinstance(shard, ErrorCode):
            return DescribedTransaction(shard, name)
        known = shard.transactions.get(name)
        if known is None:
            return DescribedTransaction(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, name)
        return _described(name, known.value)

    def listed(self) -> tuple[ErrorCode, tuple[DescribedTransaction, ...]]:
        """Return all transactional ids that this broker coordinates, by name."""
        loading = any(shard.loading for shard in self._shards.values())
        code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if loading else ErrorCode.NONE
        return code, tuple(sorted(self._all(), key=lambda each: each.transactional_id))

    def _all(self) -> Iterator[DescribedTransaction]:
        for shard in self._shards.values():
            for name, known in shard.transactions.items():
                yield _described(name, known.value)


def _described(name: str, value: TransactionValue) -> DescribedTransaction:
    return DescribedTransaction(
        ErrorCode.NONE,
        name,
        value.state.called,
        value.timeout_ms,
        value.began_ms,
        value.producer_id,
        value.producer_epoch,
        value.partitions,
    )


def _next(value: TransactionValue) -> tuple[int, int]:
    """Return the id and epoch that a producer has after the transaction."""
    if value.next_producer_id != NO_PRODUCER_ID:
        return value.next_producer_id, 0
    return value.producer_id, value.producer_epoch
