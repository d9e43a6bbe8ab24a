"""A run of mutated requests against a simulated cluster, while its time passes and its nodes fail."""

import random
import time
from dataclasses import dataclass, field

from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest

from kview.serve.call import Api
from kview.simulate.cluster import build
from kview.simulate.groups.group import Group
from kview.simulate.nodes import ProcessState
from kview.simulate.world import GroupSpec, ProducerSpec, TopicSpec, World, racked_brokers
from tests.serve.examples import Examples, with_checksum
from tests.serve.unwired import Unwired, UnwiredClient
from tests.simulate.engine import START_MS, go
from tests.simulate.invariants import Checker

CLIENTS = 12
GROUPS = ("g", "stopped", "of-the-world", "shared")
SHARE_GROUP = "shared"
SETTINGS = {
    "group.initial.rebalance.delay.ms": "300",
    "leader.imbalance.check.interval.seconds": "20",
    "log.retention.check.interval.ms": "3000",
    "offsets.commit.timeout.ms": "1000",
    "offsets.retention.check.interval.ms": "20000",
    "offsets.retention.minutes": "1",
    "offsets.topic.num.partitions": "3",
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "replica.lag.time.max.ms": "4000",
}
TOPICS = (
    TopicSpec("t", 2, 3, {"retention.ms": "10000"}),
    TopicSpec("small", 1, 3, {"retention.bytes": "4000", "max.message.bytes": "2000"}),
    TopicSpec("compacted", 1, 2, {"cleanup.policy": "compact"}),
)
OFTEN = (0, 0, 0, 0, 1, 8, 11, 11, 12, 14, 14, 68, 68, 68, 76, 76, 78, 78, 78, 78, 79, 79)
"""APIs with a state behind them, which get more of the frames."""

OTHERS_WAIT_MS = 100
"""Longest simulated time after which another client must have its answer."""
FRAMES_PER_ROUND = 250
TOPICS_MAX = 60
CLIENT_BYTES_MAX = 300_000
"""So little that logs are evicted all the time."""


@dataclass
class Outcome:
    """What a run has seen. `slowest` is the longest wall-clock time of one frame in s, and which it was."""

    frames: int = 0
    answered: int = 0
    refused: int = 0
    failures: list[str] = field(default_factory=list)
    slowest: tuple[float, str] = (0.0, "")


CONSUMER_GROUP_HEARTBEAT = 68
SHARE_APIS = range(76, 93)


class Fuzz:
    """One run, whose every decision depends on the seed."""

    def __init__(self, seed: int) -> None:
        world = World(
            brokers=racked_brokers(3, 1),
            topics=TOPICS,
            producers=(ProducerSpec("producer", "t", 5.0),),
            groups=(GroupSpec("of-the-world", ("t",), 2),),
            settings=SETTINGS,
            warm_ms=10_000,
            client_bytes_max=CLIENT_BYTES_MAX,
        )
        self.cluster = build(world, seed, START_MS)
        self.wire = Unwired(self.cluster)
        self.outcome = Outcome()
        self._random = random.Random(seed)
        self._checker = Checker(self.cluster)
        self._clients: list[UnwiredClient] = []
        self._keys = [*self.wire.apis, *OFTEN]
        self._last: list[bytes] = [b"\0" * 10]

    def run(self, frames: int) -> Outcome:
        """Send so many frames, let an hour pass, and check that the cluster still works."""
        while self.outcome.frames < frames:
            for _ in range(min(FRAMES_PER_ROUND, frames - self.outcome.frames)):
                self._one_frame()
            self._others_are_served()
            self._disturb()
        self.cluster.faults.undo()
        go(self.cluster, 60)
        self._others_are_served()
        self._checker.check_all()
        return self.outcome

    # --- frames

    def _one_frame(self) -> None:
        source, outcome = self._random, self.outcome
        client = self._client()
        api = self.wire.apis[source.choice(self._keys)]
        version = source.randint(*api.versions)
        frame = self._mutated(self._frame(api, version))
        outcome.frames += 1
        what = f"frame {outcome.frames}, {api.request.__name__} v{version}"
        began_s = time.perf_counter()
        self.wire.send(client, frame)
        if source.random() < 0.15:
            go(self.cluster, source.choice((0.001, 0.02, 0.1)))
        outcome.slowest = max(outcome.slowest, (time.perf_counter() - began_s, what))
        outcome.answered += len(client.answers)
        client.answers.clear()
        outcome.refused += client.closed
        self._note(client, what)

    def _note(self, client: UnwiredClient, what: str) -> None:
        failures = [*client.failures, *self.wire.event_failures]
        self.outcome.failures += [f"{what}: {failure!r}" for failure in failures]
        client.failures.clear()
        self.wire.event_failures.clear()

    def _client(self) -> UnwiredClient:
        """Return a client that is not waiting for an answer, a new one if there is none."""
        source = self._random
        for client in self._clients:
            self._note(client, f"waiting since before frame {self.outcome.frames}")
        self._clients = [client for client in self._clients if not client.closed]
        idle = [client for client in self._clients if not client.busy]
        if len(self._clients) >= CLIENTS:
            source.choice(self._clients).leave()
            return self._client()
        if not idle or source.random() < 0.1:
            self._clients.append(UnwiredClient(source.choice(self.cluster.broker_ids())))
            return self._clients[-1]
        return source.choice(idle)

    def _frame(self, api: Api, version: int) -> bytes:
        source = self._random
        image = self.cluster.metadata.image
        topics = [(name, topic.topic_id) for name, topic in image.topics.items()] + [("new", bytes(16))]
        now_ms = self.cluster.kernel.now_us // 1000
        wildness = source.choice((0.0, 0.0, 0.02, 0.1, 0.5))
        usual = self._member()
        if api.key in SHARE_APIS:
            usual["group_id"] = SHARE_GROUP
            usual["member_id"] = f"m{source.randrange(3)}"
            usual["member_epoch"] = source.choice((0, 0, usual.get("member_epoch", 0), -1))
            usual["share_session_epoch"] = source.choice((0, 0, 1, 2, 3, -1))
            usual["acknowledge_types"] = source.choice((0, 1, 1, 2, 3))
            usual["max_records"] = usual["batch_size"] = source.choice((1, 5, 500))
            usual["last_offset"] = source.randrange(20)
        if api.key == CONSUMER_GROUP_HEARTBEAT:
            usual["member_id"] = usual.get("member_id") or f"m{source.randrange(5)}"
            usual["member_epoch"] = source.choice((0, 0, usual.get("member_epoch", 0), -1, -2))
        examples = Examples(source, now_ms, topics, GROUPS, wildness, usual)
        client_id = source.choice((None, "tests", "__admin_client", "c" * source.choice((32_760, 32_767))))
        return examples.frame(api, version, client_id)

    def _member(self) -> dict[str, str | int]:
        """Return the fields of a request that name a group and one of its members, or no fields."""
        source, broker = self._random, self._random.choice(self.cluster.broker_ids())
        groups = self.cluster.groups(broker).groups()
        if not groups or source.random() < 0.3:
            return {}
        group = source.choice(groups)
        if not isinstance(group, Group):
            epoch, ids = group.epoch - source.randrange(3), [*group.members, ""]
        else:
            epoch, ids = group.generation, [*group.members, *group.pending_members, ""]
        names = "generation_id", "generation_id_or_member_epoch", "member_epoch"
        generation = dict.fromkeys(names, epoch)
        return {
            "member_id": source.choice(ids),
            "group_id": group.name,
            "protocol_name": "range",
            **generation,
        }

    def _mutated(self, frame: bytes) -> bytes:
        """Return the frame as it is, or with some of its bytes changed, missing or repeated."""
        source = self._random
        kind = source.randrange(12)
        at, to = sorted((source.randrange(8, len(frame)), source.randrange(8, len(frame) + 1)))
        data = bytearray(frame)
        match kind:
            case 0:
                data[at] = source.randrange(256)
            case 1:
                data[at : at + 4] = source.choice((b"\xff" * 4, b"\x7f\xff\xff\xff", b"\x80\0\0\0", bytes(4)))
            case 2:
                del data[at:to]
            case 3:
                data[at:at] = source.choice((data[at:to][:500], b"\xff" * 40, bytes(9), b"\x80" * 500))
            case 4:
                other = source.choice(self._last)
                data[at:to] = other[at:to]
            case 5:
                del data[source.randrange(8, len(data)) :]
        self._last = [*self._last[-20:], frame]
        batch = bytes(data).find(b"\2", at)
        if source.random() < 0.1 and 16 <= batch < len(data) - 61:  # repair what may be a batch's checksum
            data[batch - 16 :] = with_checksum(bytes(data[batch - 16 :]))
        return bytes(data)

    # --- the world around

    def _others_are_served(self) -> None:
        """Check that a client of each broker that runs gets its answers."""
        for broker in self.cluster.broker_ids():
            if self.cluster.nodes.state(broker) is not ProcessState.RUNNING:
                continue
            for request in (
                ApiVersionsRequest(version=0),
                MetadataRequest(version=1, topics=[]),
            ):
                client = UnwiredClient(broker)
                self.wire.ask(client, request)
                go(self.cluster, OTHERS_WAIT_MS / 1000)
                if not client.answers and self.cluster.nodes.state(broker) is ProcessState.RUNNING:
                    self.outcome.failures.append(f"frame {self.outcome.frames}: broker {broker} is silent")

    def _disturb(self) -> None:
        """Break or mend a node, let time pass, and delete topics that the frames have created."""
        cluster, source = self.cluster, self._random
        node = source.choice((*cluster.broker_ids(), *cluster.world.controllers))
        match source.randrange(10):
            case 0:
                cluster.faults.crash(node)
            case 1:
                cluster.faults.stop(node)
            case 2:
                cluster.faults.hang(node)
            case 3:
                cluster.faults.slow(node, 50)
            case _:
                cluster.faults.undo()
        go(cluster, source.choice((0.5, 4, 30)))
        names = [name for name in cluster.metadata.image.topics if name not in KEPT]
        for name in names[:-TOPICS_MAX]:
            cluster.topics.delete(name)


KEPT = {spec.name for spec in TOPICS} | {"__consumer_offsets"}
