"""The coordinators of a cluster, which react to changes of their brokers' metadata and processes."""

from collections.abc import Callable, Iterator, Mapping
from typing import Generic, Protocol, TypeVar

from kview.simulate.brokers.broker import Broker
from kview.simulate.brokers.cleaner import Cleaner
from kview.simulate.codes import ErrorCode
from kview.simulate.coordination.host import Host
from kview.simulate.kernel import Timer
from kview.simulate.metadata import NO_LEADER, MetadataImage, TopicImage
from kview.simulate.nodes import Nodes, ProcessState
from kview.simulate.requests.records import RecordRequests
from kview.simulate.uuids import in_base64, random_id, without_dash

LOAD_MS = 50
"""Time in ms that a new coordinator takes to read a partition of its topic before it answers."""


class Coordinator(Protocol):
    """One broker's coordinator."""

    def elected(self, partition: int, epoch: int, load_ms: int) -> None:
        """Load the state of a partition that the broker now leads, after `load_ms`."""

    def resigned(self, partition: int) -> None:
        """Release the state of a partition that the broker no longer leads."""

    def topics_changed(self) -> None:
        """React to topics that were created or deleted."""

    def process_ended(self) -> None:
        """Drop all state and waiting clients, because the process has ended."""


C = TypeVar("C", bound=Coordinator)


class BrokerHost:
    """Connects a coordinator of `topic` to its broker in the simulated cluster (implements `Host`)."""

    def __init__(self, topic: str, broker: Broker, records: RecordRequests, cleaner: Cleaner) -> None:
        self._topic = topic
        self._broker = broker
        self._kernel = broker.kernel
        self._records = records
        self._cleaner = cleaner
        self._random = broker.kernel.random(f"coordinator/{broker.id}")

    def now_us(self) -> int:
        return self._kernel.now_us

    def after(self, delay_us: int, fn: Callable[[], None]) -> Timer:
        return self._kernel.after(delay_us, fn)

    def tick(self, delay_us: int, fn: Callable[[], None]) -> Timer:
        return self._kernel.tick(delay_us, fn)

    def cancel(self, timer: Timer) -> None:
        self._kernel.cancel(timer)

    def is_running(self) -> bool:
        return self._broker.node.running

    def leader(self, partition: int) -> int:
        partition_image = self._broker.image.partition(self._topic, partition)
        return NO_LEADER if partition_image is None else partition_image.leader

    def metadata(self) -> MetadataImage:
        """Return the broker's metadata."""
        return self._broker.image

    def topic_id(self, topic: str, partition: int) -> bytes | None:
        topic_image = self._broker.image.topics.get(topic)
        if topic_image is None or not 0 <= partition < len(topic_image.partitions):
            return None
        return topic_image.topic_id

    def append(self, partition: int, batch: bytes, done: Callable[[ErrorCode, int], None]) -> None:
        """Append a batch to a partition of the topic with acks=all."""
        self._records.append_own(
            self._broker.id,
            (self._topic, partition),
            batch,
            lambda result: done(result.error_code, result.base_offset),
        )

    def clean(self, partition: int) -> None:
        """Have the log cleaner clean a partition of the topic soon."""
        replica = self._broker.replicas.get((self._topic, partition))
        if replica is not None:
            self._cleaner.clean_now(self._broker, replica)

    def delete_before(self, partition: int, offset: int) -> None:
        """Delete the records of a partition of the topic before an offset."""
        self._records.delete_own(self._broker.id, (self._topic, partition), offset)

    def batches(self, partition: int) -> Iterator[bytes]:
        """Yield the batches in the broker's own log of a partition of the topic."""
        for _, batch in self._records.client_batches(self._broker.id, self._topic, partition):
            yield batch

    def random_id(self) -> str:
        """Return an id in the form of a UUID, from the engine's randomness."""
        return random_id(self._random)

    def random_uuid(self) -> str:
        """Return an id in base64."""
        return in_base64(without_dash(bytes.fromhex(self.random_id().replace("-", ""))))


class Coordinators(Generic[C]):
    """The coordinators of one kind, one per broker, each made by `make`.

    Each coordinates the partitions of `topic` that its broker leads according to the broker's metadata.
    """

    def __init__(
        self,
        topic: str,
        nodes: Nodes,
        brokers: Mapping[int, Broker],
        records: RecordRequests,
        cleaner: Cleaner,
        make: Callable[[int, Host], C],
    ) -> None:
        self._topic = topic
        self._brokers = brokers
        self._of = {b: make(b, BrokerHost(topic, broker, records, cleaner)) for b, broker in brokers.items()}
        self._topics: dict[int, TopicImage | None] = dict.fromkeys(self._of)
        self._names: dict[int, Mapping[bytes, str]] = {b: {} for b in self._of}
        """Broker → the topics (id → name) in the metadata that its coordinator saw last."""
        self._led: dict[int, dict[int, tuple[bytes, int]]] = {b: {} for b in self._of}
        """Broker → partition of the topic that it leads → (id of the topic, leader epoch)."""
        for broker in brokers.values():
            broker.on_metadata(self.metadata_changed)
        nodes.on_process_change(self._process_changed)

    def of(self, broker: int) -> C:
        return self._of[broker]

    def load(self) -> None:
        """Load all states from the logs without a delay, for a warm start."""
        for broker in self._of:
            self._topics[broker] = None
            self._led[broker].clear()
            self.metadata_changed(broker, load_ms=0)

    def metadata_changed(self, broker: int, load_ms: int = LOAD_MS) -> None:
        """React to a broker's new metadata.

        The coordinator loads the partitions that the broker newly leads, and releases those that it no longer
        leads.
        """
        image = self._brokers[broker].image
        if image.topic_names is not self._names[broker]:
            self._names[broker] = image.topic_names
            self._of[broker].topics_changed()
        topic = image.topics.get(self._topic)
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
                coordinator.elected(number, term[1], load_ms)

    def _process_changed(self, node: int, state: ProcessState) -> None:
        if node in self._of and state in (ProcessState.CRASHED, ProcessState.STOPPED):
            self._of[node].process_ended()
            self._led[node].clear()
            self._topics[node] = None
