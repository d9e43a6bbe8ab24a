"""Transactions that a partition has and no coordinator knows of: how one comes to be, and how it is ended.

Before KIP-890 a leader did not ask the coordinator whether a partition is part of a transaction. So a late
write of a client whose transaction had ended began another one there, which nobody would ever end.
"""

from collections.abc import Mapping

from kview.simulate.brokers.broker import Broker
from kview.simulate.codes import ErrorCode
from kview.simulate.coordination.of_cluster import Coordinators
from kview.simulate.metadata import TopicPartition
from kview.simulate.producer_snapshots import NO_OFFSET
from kview.simulate.records import TRANSACTIONAL, Marker, encode_batch
from kview.simulate.requests.records import Acks, EndedTransaction, RecordRequests
from kview.simulate.requests.topics import TopicRequests
from kview.simulate.results import ActiveProducer, ProduceResult
from kview.simulate.transactions.coordinator import TransactionCoordinator
from kview.simulate.transactions.results import CodeDone
from kview.simulate.world import TRANSACTIONS_TOPIC

TIMEOUT_MS = 30_000
LATE_RECORD = (b"late", b"a late write")
NO_COORDINATOR_EPOCH = 0
"""The coordinator's epoch in the marker of an admin, if no coordinator has ever written one."""


class Hanging:
    """Makes and ends hanging transactions, at the partitions' leaders."""

    def __init__(
        self,
        brokers: Mapping[int, Broker],
        records: RecordRequests,
        coordinators: Coordinators[TransactionCoordinator],
        topics: TopicRequests,
    ) -> None:
        self._brokers = brokers
        self._records = records
        self._coordinators = coordinators
        self._topics = topics

    def begin(self, leader: int, key: TopicPartition) -> ErrorCode:
        """Append a late write to the leader's log, for which nobody asks a coordinator.

        Its client has looked for a coordinator before, and so there is a topic of coordinators.
        """
        self._topics.create_internal_topic(leader, TRANSACTIONS_TOPIC)
        given = self._records.init_producer_id(leader)
        if given.error_code is not ErrorCode.NONE:
            return given.error_code
        time_ms = self._brokers[leader].kernel.now_us // 1000
        batch = encode_batch(
            [(*LATE_RECORD, time_ms)],
            producer_id=given.producer_id,
            producer_epoch=given.producer_epoch,
            base_sequence=0,
            attributes=TRANSACTIONAL,
        )

        def admit(producer_id: int, epoch: int, then: CodeDone) -> None:
            then(ErrorCode.NONE)

        results: list[ProduceResult] = []
        self._records.produce(leader, *key, batch, Acks(1, TIMEOUT_MS, results.append), admit)
        return results[0].error_code

    def find(self, leader: int, key: TopicPartition) -> list[ActiveProducer]:
        """Return the producers with an open transaction in a partition of which no coordinator knows
        (`kafka-transactions find-hanging`)."""
        replica = self._brokers[leader].replicas.get(key)
        if replica is None or not replica.leading:
            return []
        known = {
            transaction.producer_id
            for b in self._brokers
            for transaction in self._coordinators.of(b).listed()[1]
            if key in transaction.partitions
        }
        return [
            producer
            for producer in replica.producer_states().active()
            if producer.txn_start != NO_OFFSET and producer.producer_id not in known
        ]

    def _all_coordinators_answer(self, b: int) -> bool:
        """Return whether the coordinators that broker b knows run, and have loaded what they lead."""
        topic = self._brokers[b].image.topics.get(TRANSACTIONS_TOPIC)
        leaders = {partition.leader for partition in topic.partitions} if topic is not None else set()
        return all(
            leader in self._brokers
            and self._brokers[leader].node.running
            and self._coordinators.of(leader).listed()[0] is ErrorCode.NONE
            for leader in leaders
        )

    def abort(self, leader: int, key: TopicPartition) -> ErrorCode:
        """Write the markers that abort a partition's hanging transactions (`kafka-transactions abort`).

        Unless every coordinator answers, nobody can say which transactions hang.
        """
        if not self._all_coordinators_answer(leader):
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        codes: list[ErrorCode] = []
        for producer in self.find(leader, key):
            marker = Marker(False, max(producer.coordinator_epoch, NO_COORDINATOR_EPOCH))
            ended = EndedTransaction(producer.producer_id, producer.epoch, marker)
            self._records.write_marker(leader, key, ended, codes.append)
        return next((code for code in codes if code is not ErrorCode.NONE), ErrorCode.NONE)
