"""What an observer would know of the transactions that hold last stable offsets."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kview.model.states import TransactionState
from kview.model.units import NO_BROKER, UNKNOWN
from kview.school.camera.readings import PartitionSeen
from kview.simulate.cluster import Cluster
from kview.simulate.codes import ErrorCode
from kview.simulate.metadata import MetadataImage, TopicPartition
from kview.simulate.transactions.results import DescribedTransaction
from kview.simulate.world import TRANSACTIONS_TOPIC

HELD_MS = 3_000
"""A last stable offset that did not move for so long is asked about."""
ASKED_MS = 5_000
"""How often to ask who holds last stable offsets, while something does."""

Row = tuple[Any, ...]


class SeenTransactions:
    """The rows of `Transactions`: what leaders and coordinators say of the partitions that are held."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._rows: dict[TopicPartition, list[Row]] = {}
        self._asked_ms: dict[TopicPartition, int] = {}

    def rows(self) -> list[Row]:
        """Return the rows, in the order of the partitions."""
        return [row for key in sorted(self._rows) for row in self._rows[key]]

    def ask(
        self,
        image: MetadataImage,
        seen: Mapping[TopicPartition, PartitionSeen],
        answering: frozenset[int],
        now_ms: int,
    ) -> None:
        """Ask the leaders of partitions that are held, and all coordinators, if that is due."""
        held = [key for key, partition in seen.items() if partition.held_ms >= HELD_MS]
        for key in self._rows.keys() - set(held):
            del self._rows[key], self._asked_ms[key]
        due = [key for key in held if now_ms - self._asked_ms.get(key, UNKNOWN) >= ASKED_MS]
        if not due:
            return
        by_producer, all_answer = self._coordinated(image, answering)
        for key in due:
            partition = image.partition(*key)
            if partition is None or partition.leader not in answering:
                continue
            code, producers = self._cluster.descriptions.active_producers(partition.leader, *key)
            if code is not ErrorCode.NONE:
                continue
            self._asked_ms[key] = now_ms
            self._rows[key] = [
                (
                    *key,
                    producer.producer_id,
                    producer.epoch,
                    producer.txn_start,
                    producer.last_time_ms,
                    *_said(key, by_producer.get(producer.producer_id), all_answer),
                    0,
                    now_ms,
                )
                for producer in sorted(producers, key=lambda producer: producer.txn_start)
                if producer.txn_start >= 0
            ]

    def _coordinated(
        self, image: MetadataImage, answering: Iterable[int]
    ) -> tuple[dict[int, tuple[int, DescribedTransaction]], bool]:
        """Return each producer's coordinator and transaction, and whether every coordinator has answered."""
        by_producer: dict[int, tuple[int, DescribedTransaction]] = {}
        answered = set()
        for broker in answering:
            code, transactions = self._cluster.transactions(broker).listed()
            if code is ErrorCode.NONE:
                answered.add(broker)
                by_producer |= {each.producer_id: (broker, each) for each in transactions}
        topic = image.topics.get(TRANSACTIONS_TOPIC)
        leaders = {partition.leader for partition in topic.partitions} if topic is not None else set()
        return by_producer, bool(leaders) and leaders <= answered


def _said(
    key: TopicPartition, known: tuple[int, DescribedTransaction] | None, all_answer: bool
) -> Sequence[Any]:
    """Return what the coordinators say of a producer: name, coordinator, state, beginning and timeout."""
    if known is None:
        state = TransactionState.HANGING if all_answer else TransactionState.UNKNOWN
        return ("", NO_BROKER, state.value, UNKNOWN, UNKNOWN)
    broker, transaction = known
    state = TransactionState(transaction.state) if key in transaction.partitions else TransactionState.HANGING
    began_ms = transaction.began_ms if transaction.began_ms >= 0 else UNKNOWN
    return (transaction.transactional_id, broker, state.value, began_ms, transaction.timeout_ms)
