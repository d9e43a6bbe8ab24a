"""The coordinators of a cluster's brokers: what each sees of the cluster and hears of its broker's life."""

from collections.abc import Callable, Iterator

from kview.simulate.cluster import Cluster
from kview.simulate.codes import ErrorCode
from kview.simulate.groups.coordinator import GroupCoordinator
from kview.simulate.groups.host import GroupSettings
from kview.simulate.kernel import Timer
from kview.simulate.metadata import NO_LEADER
from kview.simulate.nodes import ProcessState
from kview.simulate.world import OFFSETS_TOPIC

APPEND_TIMEOUT_MS = 60_000
"""How long a coordinator waits for its append to be committed: longer than outages that end by fencing."""


class BrokerHost:
    """A broker and the cluster as its coordinator sees them."""

    def __init__(self, cluster: Cluster, broker: int) -> None:
        self._cluster = cluster
        self._broker = broker
        self._random = cluster.kernel.random(f"coordinator/{broker}")

    def now_us(self) -> int:
        """The engine's time."""
        return self._cluster.kernel.now_us

    def after(self, delay_us: int, fn: Callable[[], None]) -> Timer:
        """Calls fn later."""
        return self._cluster.kernel.after(delay_us, fn)

    def cancel(self, timer: Timer) -> None:
        """Makes a timer never fire."""
        self._cluster.kernel.cancel(timer)

    def is_running(self) -> bool:
        """Whether the broker's process works."""
        return self._cluster.process(self._broker) is ProcessState.RUNNING

    def offsets_leader(self, partition: int) -> int:
        """The leader in the broker's own metadata."""
        found = self._cluster.image(self._broker).partition(OFFSETS_TOPIC, partition)
        return NO_LEADER if found is None else found.leader

    def has_partition(self, topic: str, partition: int) -> bool:
        """Whether the broker's metadata knows the partition."""
        return self._cluster.image(self._broker).partition(topic, partition) is not None

    def append(self, partition: int, batch: bytes, done: Callable[[ErrorCode], None]) -> None:
        """Appends with acks=all."""
        self._cluster.produce(
            self._broker,
            OFFSETS_TOPIC,
            partition,
            batch,
            -1,
            APPEND_TIMEOUT_MS,
            lambda result: done(result.error_code),
        )

    def batches(self, partition: int) -> Iterator[bytes]:
        """The batches in the broker's own log."""
        for _, batch in self._cluster.client_batches(self._broker, OFFSETS_TOPIC, partition):
            yield batch

    def random_id(self) -> str:
        """A new id in the form of a UUID."""
        digits = f"{self._random.getrandbits(128):032x}"
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"


class Coordinators:
    """One coordinator per broker."""

    def __init__(self, cluster: Cluster, settings: GroupSettings) -> None:
        self._cluster = cluster
        self._of = {b: GroupCoordinator(b, BrokerHost(cluster, b), settings) for b in cluster.broker_ids()}

    def of(self, broker: int) -> GroupCoordinator:
        """The coordinator of this broker."""
        return self._of[broker]

    def load(self) -> None:
        """Loads at once what every broker leads: the warm start."""
        for broker, coordinator in self._of.items():
            topic = self._cluster.image(broker).topics.get(OFFSETS_TOPIC)
            for number, partition in enumerate(topic.partitions if topic is not None else ()):
                if partition.leader == broker:
                    coordinator.elected(number, load_ms=0)
