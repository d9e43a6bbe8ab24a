"""Who holds a last stable offset: DescribeProducers (61), ListTransactions (66), DescribeTransactions (65).

A partition's leader knows the producers with an open transaction and where it begins. Which transaction that
is, how long it may take and whether it still exists is known to its coordinator alone, and which broker that
is depends on a name that nobody knows yet. So every broker is asked for the transactions of these producers.
Kafka leaves out transactions that kview may not see. Only if it may see one of any name does a transaction
that no coordinator has count as hanging.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from kafka.protocol.admin.transactions import (
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    ListTransactionsRequest,
)
from msgspec import Struct, field
from msgspec.structs import replace

from kview.model.failures import NO_TRANSACTIONAL_ID, NOT_AUTHORIZED, refused
from kview.model.inspection import Producer
from kview.model.snapshot import Longs, Transactions, columns, empty
from kview.model.states import TransactionState
from kview.model.units import NO_BROKER, UNKNOWN, UNKNOWN_ID
from kview.observe.causes import Refused
from kview.observe.clock import Jump
from kview.observe.layout import Layout, Rows, strings

NO_SUCH_TRANSACTION = "kview.no-such-transaction"
STATES_TOPIC = "__transaction_state"
"""Its leaders are the coordinators."""
MOST_PARTITIONS = 500
"""Limit of the partitions in a request. All of them wait for few producers."""
MOST_PRODUCERS = 1_000
"""Limit of the producers that are asked about."""

Key = tuple[str, int]


class OpenProducer(Struct, frozen=True):
    """A producer with an open transaction in a partition, as the partition's leader says."""

    id: int
    epoch: int
    start_offset: int
    written_ms: int


class Described(Struct, frozen=True):
    """A transaction as its coordinator says."""

    transactional_id: str
    coordinator: int
    state: str
    began_ms: int
    timeout_ms: int
    partitions: frozenset[Key]
    error_code: int = 0


class Coordinated(Struct, frozen=True):
    """A broker's answer about the transactions of producers."""

    producers: frozenset[int]
    """The producers that were asked about."""
    by_producer: Mapping[int, Described]
    sees_all: bool
    """Whether kview may see transactions of any name."""
    leaders: tuple[int, ...]
    """The leader of each partition of STATES_TOPIC when the broker was asked. When they change, it may
    coordinate other transactions."""
    at_ms: int


class HeldPartition(Struct, frozen=True):
    """The answer of a partition's leader."""

    producers: tuple[OpenProducer, ...]
    error_code: int
    received_ms: int


class OpenTransactions(Struct):
    """What leaders and coordinators have answered about the transactions that hold last stable offsets."""

    held: dict[Key, HeldPartition] = field(default_factory=dict)
    coordinated: dict[int, Coordinated] = field(default_factory=dict)
    """Broker → its last answer."""
    _read_ms: dict[Key, int] = field(default_factory=dict)
    """When the last stable offsets were last read, which transactions hold."""
    _hanging: set[tuple[Key, int]] = field(default_factory=set)
    """The partitions and producers of which that was said when the last stable offset was read again."""
    _rows: list[tuple[Any, ...]] = field(default_factory=list)
    _table: Transactions = field(default_factory=lambda: empty(Transactions))

    def producers(self) -> list[int]:
        """Return the ids of the producers that hold a partition, at most MOST_PRODUCERS."""
        ids = {producer.id for held in self.held.values() for producer in held.producers}
        return sorted(ids)[:MOST_PRODUCERS]

    def settle(self, layout: Layout, held: Rows, read_ms: Longs) -> None:
        """Forget partitions that nothing holds any more.

        `held` are the rows that are held, and `read_ms` is when their last stable offsets were last read.
        """
        keys = zip(layout.topic[held].tolist(), layout.partition[held].tolist(), strict=True)
        self._read_ms = dict(zip(keys, read_ms.tolist(), strict=True))
        for key in self.held.keys() - self._read_ms.keys():
            del self.held[key]
        if not self.held:
            self.coordinated.clear()
            self._hanging.clear()

    def clock_set(self, jump: Jump) -> None:
        """Move the times of the answers to the new clock."""
        self.held = {
            key: replace(held, received_ms=jump.time(held.received_ms)) for key, held in self.held.items()
        }
        self.coordinated = {
            broker: replace(answer, at_ms=jump.time(answer.at_ms))
            for broker, answer in self.coordinated.items()
        }
        self._read_ms = {key: jump.time(at_ms) for key, at_ms in self._read_ms.items()}

    def table(self, layout: Layout) -> Transactions:
        """Return what is known as a table, the same one until something changes."""
        rows, leaders = [], coordinators(layout)
        for key in sorted(self.held):
            partition = self.held[key]
            if partition.error_code:
                nothing = (UNKNOWN, UNKNOWN_ID, UNKNOWN, UNKNOWN, *_NOBODY)
                rows.append((*key, *nothing, partition.error_code, partition.received_ms))
            for producer in partition.producers:
                facts = (producer.id, producer.epoch, producer.start_offset, producer.written_ms)
                said = self._said(key, producer, leaders)
                rows.append((*key, *facts, *said, partition.received_ms))
        if rows != self._rows:
            self._rows, self._table = rows, _table(rows)
        return self._table

    def _said(self, key: Key, producer: OpenProducer, leaders: tuple[int, ...]) -> tuple[Any, ...]:
        """Return what the coordinators say about a partition's producer, as the columns of `Transactions`.

        A transaction that has just ended is not hanging: it no longer holds the partition afterwards.
        """
        said, at_ms = _of(key, producer, self.coordinated, leaders)
        if said[2] != TransactionState.HANGING:
            self._hanging.discard((key, producer.id))
        elif self._read_ms.get(key, UNKNOWN) > at_ms:
            self._hanging.add((key, producer.id))
        elif (key, producer.id) not in self._hanging:
            return (*_NOBODY, 0)
        return said


def coordinators(layout: Layout) -> tuple[int, ...]:
    """Return the leader of each partition of STATES_TOPIC, () if it cannot be seen."""
    first, end = layout.first.get(STATES_TOPIC, (0, 0))
    return tuple(layout.leader[first:end].tolist())


def producers_request(layout: Layout, rows: Rows, most: int = MOST_PARTITIONS) -> Any:
    """Build the request for the producers of these partitions, which must have the same leader."""
    topic = DescribeProducersRequest.TopicRequest
    chosen = layout.by_topic(rows[:most])
    return DescribeProducersRequest(
        topics=[topic(name=name, partition_indexes=partitions.tolist()) for name, partitions in chosen]
    )


def all_producers(answer: Any) -> tuple[list[Producer], dict[int, int]]:
    """Return the producers of a topic's partitions, and Kafka's error numbers of those that were refused."""
    parts = [part for topic in answer.topics for part in topic.partitions]
    producers = [
        Producer(
            part.partition_index,
            each.producer_id,
            each.producer_epoch,
            each.last_sequence,
            each.last_timestamp if each.last_timestamp >= 0 else UNKNOWN,
            each.current_txn_start_offset if each.current_txn_start_offset >= 0 else UNKNOWN,
        )
        for part in parts
        for each in part.active_producers or ()
    ]
    return producers, {part.partition_index: part.error_code for part in parts if part.error_code}


def read_producers(answer: Any, held: dict[Key, HeldPartition], at_ms: int) -> None:
    """Store the answer of a leader. Another broker that leads by now will be asked the next time."""
    for topic in answer.topics:
        for part in topic.partitions:
            if part.error_code and part.error_code not in NOT_AUTHORIZED:
                continue
            producers = tuple(
                OpenProducer(p.producer_id, p.producer_epoch, p.current_txn_start_offset, p.last_timestamp)
                for p in sorted(part.active_producers or (), key=lambda p: p.current_txn_start_offset)
                if p.current_txn_start_offset >= 0
            )
            held[topic.name, part.partition_index] = HeldPartition(producers, part.error_code, at_ms)


def list_request(producers: Iterable[int]) -> Any:
    """Build the request for the transactions of these producers that a broker coordinates."""
    return ListTransactionsRequest(state_filters=[], producer_id_filters=list(producers))


def listed(answer: Any) -> Mapping[int, str]:
    """Return the name of each producer's transaction. Raises Refused."""
    if answer.error_code:
        raise Refused(refused(answer.error_code))
    return {state.producer_id: state.transactional_id for state in answer.transaction_states}


def describe_request(names: Iterable[str]) -> Any:
    """Build the request for these transactions, and for one that does not exist."""
    return DescribeTransactionsRequest(transactional_ids=[*names, NO_SUCH_TRANSACTION])


def coordinated(
    asked: Sequence[int],
    names: Mapping[int, str],
    answer: Any,
    broker: int,
    leaders: tuple[int, ...],
    at_ms: int,
) -> Coordinated:
    """Return what a broker says about the producers `asked`, of which `names` are the transactions."""
    by_name = {state.transactional_id: state for state in answer.transaction_states}
    probe = by_name.pop(NO_SUCH_TRANSACTION, None)
    described = {
        producer: _described(by_name[name], broker) for producer, name in names.items() if name in by_name
    }
    sees_all = probe is not None and probe.error_code not in NOT_AUTHORIZED
    return Coordinated(frozenset(asked), described, sees_all, leaders, at_ms)


def _described(state: Any, broker: int) -> Described:
    return Described(
        state.transactional_id,
        broker,
        state.transaction_state or TransactionState.UNKNOWN.value,
        state.transaction_start_time_ms if state.transaction_start_time_ms >= 0 else UNKNOWN,
        state.transaction_timeout_ms if state.transaction_timeout_ms > 0 else UNKNOWN,
        frozenset((topic.topic, partition) for topic in state.topics or () for partition in topic.partitions),
        state.error_code,
    )


def _table(rows: Sequence[tuple[Any, ...]]) -> Transactions:
    if not rows:
        return empty(Transactions)
    kinds = columns(Transactions).values()
    values = zip(*rows, strict=True)
    return Transactions(*(_column(column, kind.dtype) for column, kind in zip(values, kinds, strict=True)))


_NOBODY = ("", NO_BROKER, TransactionState.UNKNOWN.value, UNKNOWN, UNKNOWN)


def _column(values: Sequence[Any], dtype: Any) -> Any:
    return strings(list(values)) if dtype is np.object_ else np.array(values, dtype)


def _of(
    key: Key, producer: OpenProducer, answers: Mapping[int, Coordinated], leaders: tuple[int, ...]
) -> tuple[tuple[Any, ...], int]:
    """Return what the coordinators say about a partition's producer, as the columns of `Transactions`, and
    when the last of them answered."""
    for answer in answers.values():
        described = answer.by_producer.get(producer.id)
        if described is not None:
            belongs = key in described.partitions or described.error_code
            state = described.state if belongs else TransactionState.HANGING
            facts = (described.transactional_id, described.coordinator, str(state))
            return (*facts, described.began_ms, described.timeout_ms, described.error_code), answer.at_ms
    telling = {
        broker: answer.at_ms
        for broker, answer in answers.items()
        if producer.id in answer.producers and answer.sees_all and answer.leaders == leaders
    }
    if leaders and telling.keys() >= set(leaders):
        hanging = ("", NO_BROKER, TransactionState.HANGING.value, UNKNOWN, UNKNOWN, 0)
        return hanging, max(telling.values())
    hidden = any(producer.id in answer.producers and not answer.sees_all for answer in answers.values())
    return (*_NOBODY, NO_TRANSACTIONAL_ID if hidden else 0), UNKNOWN
