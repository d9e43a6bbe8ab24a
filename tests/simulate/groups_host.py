"""Coordinators in a cluster that consists only of what they can see: metadata and logs."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kview.simulate.codes import ErrorCode
from kview.simulate.compaction import Cleaning, OffsetMap, finished
from kview.simulate.groups.consumer_protocol import CONSUMER
from kview.simulate.groups.coordinator import GroupCoordinator
from kview.simulate.groups.results import (
    CommitRequest,
    CommitResult,
    GroupProtocol,
    JoinRequest,
    JoinResult,
    OffsetToCommit,
    SyncRequest,
    SyncResult,
)
from kview.simulate.groups.settings import GroupSettings
from kview.simulate.kernel import Kernel, Timer
from kview.simulate.metadata import MetadataImage, PartitionImage, TopicImage

S = 1_000_000

OFFSETS_PER_BATCH, DELETE_RETENTION_MS = 1_000, 86_400_000


@dataclass
class Offsets:
    """One log for all offsets partitions, led by one broker. Commits wait while `frozen` is set."""

    kernel: Kernel = field(default_factory=lambda: Kernel(1, 1_700_000_000 * S))
    leader: int = 0
    frozen: bool = False
    hung: set[int] = field(default_factory=set)
    topics: dict[str, bytes] = field(default_factory=lambda: {"t": b"t" * 16})
    partitions: dict[str, int] = field(default_factory=dict)
    """Topic → its number of partitions, if that is not 10."""
    image: MetadataImage | None = None
    images: int = 0
    """How often the topics have changed, which is also the offset of the metadata."""
    batches: list[tuple[int, bytes]] = field(default_factory=list)
    waiting: list[tuple[Callable[[ErrorCode, int], None], int]] = field(default_factory=list)
    coordinators: dict[int, GroupCoordinator] = field(default_factory=dict)

    def coordinator(self, broker: int = 0, **settings: Any) -> GroupCoordinator:
        made = GroupCoordinator(broker, BrokerHost(self, broker), GroupSettings(**settings))
        self.coordinators[broker] = made
        if self.leader == broker:
            for partition in range(50):
                made.elected(partition, load_ms=0)
        return made

    def run(self, seconds: float) -> None:
        self.kernel.run_until(self.kernel.now_us + int(seconds * S))

    def move(self, leader: int) -> None:
        self.leader = leader
        for broker, coordinator in self.coordinators.items():
            for partition in range(50):
                if broker == leader:
                    coordinator.elected(partition)
                else:
                    coordinator.resigned(partition)

    def set_topic(self, name: str, partitions: int) -> None:
        """Create a topic, or change its number of partitions. Of none, it is deleted."""
        self.image, self.images = None, self.images + 1
        if partitions:
            self.topics.setdefault(name, name.encode().ljust(16, b"-"))
            self.partitions[name] = partitions
        else:
            del self.topics[name]

    def thaw(self) -> None:
        self.frozen = False
        waiting, self.waiting = self.waiting, []
        for done, offset in waiting:
            done(ErrorCode.NONE, offset)


def image_of(topics: Mapping[str, bytes], partitions: Mapping[str, int], offset: int) -> MetadataImage:
    """Return metadata with these topics and no brokers."""
    partition = PartitionImage(0, 0, 0, (0,), (0,))
    images = {
        name: TopicImage(name, topic_id, (partition,) * partitions.get(name, 10))
        for name, topic_id in topics.items()
    }
    return MetadataImage("", offset, {}, images, {topic_id: name for name, topic_id in topics.items()})


class BrokerHost:
    """The host of one broker's coordinator in this cluster."""

    def __init__(self, offsets: Offsets, broker: int) -> None:
        self._offsets = offsets
        self._broker = broker
        self._ids = 0

    def now_us(self) -> int:
        return self._offsets.kernel.now_us

    def after(self, delay_us: int, fn: Callable[[], None]) -> Timer:
        return self._offsets.kernel.after(delay_us, fn)

    def tick(self, delay_us: int, fn: Callable[[], None]) -> Timer:
        return self._offsets.kernel.tick(delay_us, fn)

    def cancel(self, timer: Timer) -> None:
        self._offsets.kernel.cancel(timer)

    def is_running(self) -> bool:
        return self._broker not in self._offsets.hung

    def leader(self, partition: int) -> int:
        return self._offsets.leader

    def metadata(self) -> MetadataImage:
        if self._offsets.image is None:
            self._offsets.image = image_of(
                self._offsets.topics, self._offsets.partitions, self._offsets.images
            )
        return self._offsets.image

    def topic_id(self, topic: str, partition: int) -> bytes | None:
        return self._offsets.topics.get(topic) if partition < 10 else None

    def append(self, partition: int, batch: bytes, done: Callable[[ErrorCode, int], None]) -> None:
        if self._offsets.leader != self._broker:
            done(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
            return
        offset = len(self._offsets.batches)  # one offset per batch is enough here
        self._offsets.batches.append((partition, batch))
        if self._offsets.frozen:
            self._offsets.waiting.append((done, offset))
        else:
            self._offsets.kernel.after(1000, done, ErrorCode.NONE, offset)

    def clean(self, partition: int) -> None:
        """Clean the log as the log cleaner does, with room for the records of a batch between two numbers."""
        batches = self._offsets.batches
        mine = [at for at, (number, batch) in enumerate(batches) if number == partition and batch]
        latest = OffsetMap((), 0)
        for at in mine:
            finished(latest.add(at * OFFSETS_PER_BATCH, batches[at][1]))
        cleaning = Cleaning(latest, (), {}, self._offsets.kernel.now_us // 1000, DELETE_RETENTION_MS)
        for at in mine:
            batches[at] = partition, finished(cleaning.clean(at * OFFSETS_PER_BATCH, batches[at][1]))

    def delete_before(self, partition: int, offset: int) -> None:
        raise AssertionError("only share coordinators delete records")

    def batches(self, partition: int) -> Iterable[bytes]:
        return [batch for number, batch in self._offsets.batches if number == partition and batch]

    def random_id(self) -> str:
        self._ids += 1
        return f"{self._broker}{self._ids}"

    def random_uuid(self) -> str:
        return self.random_id()


@dataclass
class Client:
    """A group member that a test controls step by step. It stores all answers."""

    coordinator: GroupCoordinator
    group: str = "g"
    name: str = "c"
    instance: str | None = None
    member_id: str = ""
    session_timeout_ms: int = 45_000
    rebalance_timeout_ms: int = 60_000
    protocols: tuple[GroupProtocol, ...] = (GroupProtocol("range", b"sub"),)
    supports_skipping_assignment: bool = True
    joined: list[JoinResult] = field(default_factory=list)
    synced: list[SyncResult] = field(default_factory=list)
    committed: list[CommitResult] = field(default_factory=list)

    def join(self, require_known_member_id: bool = True) -> None:
        """Join the group. A member without an id joins again with the id that it receives."""
        for _ in range(2):
            before = len(self.joined)
            self.coordinator.join(
                JoinRequest(
                    self.group,
                    self.member_id,
                    self.name,
                    "/127.0.0.1",
                    CONSUMER,
                    self.protocols,
                    self.session_timeout_ms,
                    self.rebalance_timeout_ms,
                    self.instance,
                    require_known_member_id,
                    self.supports_skipping_assignment,
                ),
                self.joined.append,
            )
            if len(self.joined) == before or self.joined[-1].error_code is not ErrorCode.MEMBER_ID_REQUIRED:
                break
            self.member_id = self.joined.pop().member_id

    @property
    def result(self) -> JoinResult:
        """The latest answer to JoinGroup. Reading it also sets the member's id."""
        result = self.joined[-1]
        self.member_id = result.member_id
        return result

    def sync(self, assignments: tuple[tuple[str, bytes], ...] = ()) -> None:
        request = SyncRequest(
            self.group, self.result.generation, self.member_id, self.instance, assignments=assignments
        )
        self.coordinator.sync(request, self.synced.append)

    def heartbeat(self) -> ErrorCode:
        return self.coordinator.heartbeat(self.group, self.result.generation, self.member_id, self.instance)

    def commit(self, offset: int, generation: int | None = None) -> None:
        own = self.joined[-1].generation if self.joined else -1
        request = CommitRequest(
            self.group,
            (OffsetToCommit("t", 0, offset),),
            own if generation is None else generation,
            self.member_id,
            self.instance,
        )
        self.coordinator.commit(request, self.committed.append)


def stable(offsets: Offsets, coordinator: GroupCoordinator, *clients: Client) -> None:
    """Bring the clients' group to Stable, with each client's name as its assignment. The first client is the
    leader."""
    for client in clients:
        client.join()
    offsets.run(10)
    leader = clients[0].result.leader
    for client in clients:
        assert client.result.error_code is ErrorCode.NONE
    assigned = tuple((client.member_id, client.name.encode()) for client in clients)
    for client in clients:
        client.sync(assigned if client.member_id == leader else ())
    offsets.run(0.1)
    for client in clients:
        assert client.synced[-1].assignment == client.name.encode()
    assert coordinator.describe(clients[0].group).state == "Stable"


def pair(offsets: Offsets, coordinator: GroupCoordinator) -> tuple[Client, Client]:
    """Return two members of a stable group."""
    a, b = Client(coordinator, name="a"), Client(coordinator, name="b")
    stable(offsets, coordinator, a, b)
    return a, b
