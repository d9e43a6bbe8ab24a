"""The markers that coordinators send to the leaders of a transaction's partitions.

Source: TransactionMarkerChannelManager.
"""

from collections.abc import Callable, Iterable, Mapping

from kview.simulate.brokers.broker import Broker
from kview.simulate.codes import ErrorCode
from kview.simulate.kernel import Kernel
from kview.simulate.metadata import NO_LEADER, TopicPartition
from kview.simulate.network import Connection, Network
from kview.simulate.requests.records import EndedTransaction, RecordRequests

RETRY_US = 100_000
"""Interval after which a marker is sent again (requestTimeout and backoff in Kafka)."""

GIVES_UP = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED})
"""Errors of a leader that has seen a newer epoch. Somebody else coordinates the transaction: none is sent."""


class Markers:
    """Sends markers from one broker to the others, over the simulated network."""

    def __init__(
        self, kernel: Kernel, network: Network, brokers: Mapping[int, Broker], records: RecordRequests
    ) -> None:
        self._kernel = kernel
        self._network = network
        self._brokers = brokers
        self._records = records

    def send(
        self,
        b: int,
        partitions: Iterable[TopicPartition],
        ended: EndedTransaction,
        is_needed: Callable[[], bool],
        done: Callable[[], None],
    ) -> None:
        """Write the marker to all of these partitions, however long that takes, and then call `done`.

        Broker b sends it as long as `is_needed`. A partition of a topic that was deleted needs none.
        """
        waiting = dict.fromkeys(partitions)

        def written(key: TopicPartition) -> None:
            waiting.pop(key, None)
            if not waiting and is_needed():
                done()

        if not waiting:
            done()
        for key in list(waiting):
            self._send(b, key, ended, is_needed, written)

    def _send(
        self,
        b: int,
        key: TopicPartition,
        ended: EndedTransaction,
        is_needed: Callable[[], bool],
        written: Callable[[TopicPartition], None],
    ) -> None:
        broker = self._brokers[b]

        def again() -> None:
            self._send(b, key, ended, is_needed, written)

        if not is_needed():
            return
        if not broker.node.running:
            self._kernel.after(RETRY_US, again)
            return
        topic, partition = broker.image.topics.get(key[0]), broker.image.partition(*key)
        if topic is None or partition is None:
            written(key)
            return
        leader = self._brokers.get(partition.leader) if partition.leader != NO_LEADER else None
        if leader is None:
            self._kernel.after(RETRY_US, again)
            return
        way_us = broker.latency_us + broker.node.slow_us + leader.node.slow_us if leader is not broker else 0

        def arrived() -> None:
            delivered = self._network.send(b, leader.id, Connection.COORDINATION)
            if not delivered or not leader.node.running:
                self._kernel.after(RETRY_US, again)
                return
            self._records.write_marker(leader.id, key, ended, answered)

        def answered(code: ErrorCode) -> None:
            if not self._network.carries(leader.id, b):
                self._kernel.after(RETRY_US, again)
            elif code is ErrorCode.NONE:
                broker.process.after(way_us, written, key)
            elif code not in GIVES_UP:
                self._kernel.after(RETRY_US, again)

        self._kernel.after(way_us, arrived)
