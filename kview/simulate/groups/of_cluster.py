"""The coordinators of a cluster's brokers, which follow the brokers' metadata and processes."""

from collections.abc import Callable, Iterator, Mapping

from kview.simulate.cluster import Cluster
from kview.simulate.codes import ErrorCode
from kview.simulate.groups.coordinator import LOAD_MS, GroupCoordinator
from kview.simulate.groups.host import GroupSettings
from kview.simulate.kernel import Timer
from kview.simulate.metadata import NO_LEADER, TopicImage
from kview.simulate.nodes import ProcessState
from kview.simulate.retention import move_start
from kview.simulate.world import OFFSETS_TOPIC

APPEND_TIMEOUT_MS = 60_000
"""Longest time a coordinator waits for its append to be committed. Longer than an outage that ends by
fencing."""


class BrokerHost:
    """A broker and the cluster as the broker's coordinator sees them."""

    def __init__(self, cluster: Cluster, broker: int) -> None:
        self._cluster = cluster
        self._broker = broker
        self._random = cluster.kernel.random(f"coordinator/{broker}")

    def now_us(self) -> int:
        """Return the engine's time in µs."""
        return self._cluster.kernel.now_us

    def after(self, delay_us: int, fn: Callable[[], None]) -> Timer:
        """Call `fn` after `delay_us`."""
        return self._cluster.kernel.after(delay_us, fn)

    def cancel(self, timer: Timer) -> None:
        """Keep a timer from firing."""
        self._cluster.kernel.cancel(timer)

    def is_running(self) -> bool:
        """Return whether the broker's process works."""
        return self._cluster.process(self._broker) is ProcessState.RUNNING

    def offsets_leader(self, partition: int) -> int:
        """Return the leader of an offsets partition by the broker's own metadata."""
        found = self._cluster.image(self._broker).partition(OFFSETS_TOPIC, partition)
        return NO_LEADER if found is None else found.leader

    def topic_id(self, topic: str, partition: int) -> bytes | None:
        """Return the topic's id, or None if the broker's metadata has no such partition."""
        found = self._cluster.image(self._broker).topics.get(topic)
        return found.topic_id if found is not None and 0 <= partition < len(found.partitions) else None

    def append(self, partition: int, batch: bytes, done: Callable[[ErrorCode, int], None]) -> None:
        """Append a batch to an offsets partition with acks=all."""
        self._cluster.produce(
            self._broker,
            OFFSETS_TOPIC,
            partition,
            batch,
            -1,
            APPEND_TIMEOUT_MS,
            lambda result: done(result.error_code, result.base_offset),
        )

    def forget_before(self, partition: int, offset: int) -> None:
        """Advance the log start, as a client's DeleteRecords would."""
        replica = self._cluster.brokers[self._broker].replicas.get((OFFSETS_TOPIC, partition))
        if replica is not None and replica.leading:
            move_start(self._cluster, replica, offset)

    def batches(self, partition: int) -> Iterator[bytes]:
        """Return the batches in the broker's own log."""
        for _, batch in self._cluster.client_batches(self._broker, OFFSETS_TOPIC, partition):
            yield batch

    def random_id(self) -> str:
        """Return a new id in the form of a UUID."""
        digits = f"{self._random.getrandbits(128):032x}"
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"


class Coordinators:
    """One coordinator per broker. Each follows what its broker's metadata says about `__consumer_offsets`."""

    def __init__(self, cluster: Cluster, settings: GroupSettings) -> None:
        self._cluster = cluster
        self._of = {b: GroupCoordinator(b, BrokerHost(cluster, b), settings) for b in cluster.broker_ids()}
        self._topics: dict[int, TopicImage | None] = dict.fromkeys(self._of)
        self._names: dict[int, Mapping[bytes, str]] = {b: {} for b in self._of}
        """Broker → the topics in the latest metadata it had."""
        self._led: dict[int, dict[int, tuple[bytes, int]]] = {b: {} for b in self._of}
        """Broker → offsets partition that it leads → (id of the offsets topic, leader epoch)."""
        cluster.on_process_change(self._process_changed)

    def of(self, broker: int) -> GroupCoordinator:
        """Return the coordinator of this broker."""
        return self._of[broker]

    def load(self) -> None:
        """Immediately load from the logs what every broker leads, as after the warm start."""
        for broker in self._of:
            self._topics[broker] = None
            self._led[broker].clear()
            self.metadata_changed(broker, load_ms=0)

    def metadata_changed(self, broker: int, load_ms: int = LOAD_MS) -> None:
        """Follow a broker's new metadata.

        Load the partitions that the broker newly leads, and release those it no longer leads.
        """
        image = self._cluster.image(broker)
        if image.topic_names is not self._names[broker]:
            self._names[broker] = image.topic_names
            self._of[broker].topics_changed()
        topic = image.topics.get(OFFSETS_TOPIC)
        if topic is self._topics[broker]:
            return
        self._topics[broker] = topic
        topic_id = topic.topic_id if topic is not None else b""
        coordinator, led = self._of[broker], self._led[broker]
        leads = {
            number: (topic_id, partition.leader_epoch)
            for number, partition in enumerate(topic.partitions if topic is not None else ())
            if partition.leader == broker
        }
        for number in [number for number in led if number not in leads]:
            del led[number]
            coordinator.resigned(number)
        for number, term in leads.items():
            if led.get(number) != term:
                led[number] = term
                coordinator.elected(number, load_ms)

    def _process_changed(self, node: int, state: ProcessState) -> None:
        if node in self._of and state in (ProcessState.CRASHED, ProcessState.STOPPED):
            self._of[node].process_ended()
            self._led[node].clear()
            self._topics[node] = None
