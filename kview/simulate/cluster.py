"""The public interface of the simulated cluster, for the network, the traffic and the lab.

Requests are answered as broker `b` would answer them, and only while its process runs. Callers first bring
the clock up to date with `run_until`. Answers that take time come through callbacks. Each callback is called
exactly once, either immediately or during a later `run_until`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from kview.simulate.codes import ErrorCode
from kview.simulate.faults import Faults
from kview.simulate.metadata import MetadataImage
from kview.simulate.reading import RecordMaker
from kview.simulate.requests import Done, ProduceDone, ReadWait, Requests
from kview.simulate.results import (
    ConfigEntry,
    ConfigSource,
    CreateTopicResult,
    DeleteTopicResult,
    LogDirRow,
    QuorumInfo,
)
from kview.simulate.settings import BROKER_KEYS, TOPIC_KEYS
from kview.simulate.world import World

if TYPE_CHECKING:
    from kview.simulate.groups.coordinator import GroupCoordinator
    from kview.simulate.traffic.traffic import Traffic

T = TypeVar("T")

__all__ = ["Cluster", "Done", "ProduceDone", "ReadWait", "build"]


class Cluster(Requests, Faults):
    """A simulated Kafka cluster, created with `build`."""

    traffic: "Traffic"

    def __init__(self, world: World, seed: int, start_us: int) -> None:
        super().__init__(world, seed, start_us)
        random = self.kernel.random("filler")
        self.records = RecordMaker(bytes(random.choices(b"abcdefghijklmnopqrstuvwxyz0123456789 ", k=4096)))
        self._transactional = {}

    # --- time

    def run_until(self, time_us: int) -> None:
        """Run everything that is due up to `time_us` (µs since the epoch)."""
        self.kernel.run_until(time_us)

    def next_due_us(self) -> int | None:
        """Return when the next event is due, in µs since the epoch."""
        return self.kernel.next_due_us()

    # --- metadata and administration

    def image(self, b: int) -> MetadataImage:
        """Return the metadata as broker b has it. The object stays the same until the metadata changes."""
        return self.brokers[b].image

    def groups(self, b: int) -> "GroupCoordinator":
        """Return the group coordinator of broker b."""
        return self.coordinators.of(b)

    def create_topic(
        self,
        b: int,
        name: str,
        partitions: int,
        replication: int,
        assignment: Sequence[Sequence[int]] | None,
        configs: Mapping[str, str],
        validate_only: bool,
        timeout_ms: int,
        done: Callable[[CreateTopicResult], None],
    ) -> None:
        """Forward CreateTopics for one topic to the controller. Answer once the brokers know the topic."""

        def ask() -> None:
            result = self.controller.create_topic(
                name, partitions, replication, assignment, configs, validate_only
            )
            self._answer_later(b, done, result)

        def late() -> None:
            done(CreateTopicResult(ErrorCode.REQUEST_TIMED_OUT, "There is no active controller."))

        self.quorum_state.forward(ask, late, max(1, timeout_ms) * 1000)

    def delete_topic(
        self, b: int, name: str, timeout_ms: int, done: Callable[[DeleteTopicResult], None]
    ) -> None:
        """Forward DeleteTopics for one topic to the active controller."""

        def ask() -> None:
            result = self.controller.delete_topic(name)
            self.forget_rules(name)
            self._answer_later(b, done, result)

        def late() -> None:
            done(DeleteTopicResult(ErrorCode.REQUEST_TIMED_OUT, "There is no active controller."))

        self.quorum_state.forward(ask, late, max(1, timeout_ms) * 1000)

    def _answer_later(self, b: int, done: Callable[[T], None], result: T) -> None:
        """Answer once the change has reached the broker that was asked and its neighbours."""
        delay_us = 4 * self.world.link.latency_us + 2 * (self.nodes[b].slow_us + self.quorum_state.slow_us())
        self.kernel.after(delay_us, done, result)

    def quorum(self, b: int, done: Callable[[QuorumInfo], None]) -> None:
        """Forward DescribeQuorum to the active controller.

        If there is none, the request waits for up to a minute, as in Kafka.
        """
        delay_us = 2 * self.world.link.latency_us + self.quorum_state.slow_us()

        def answer(info: QuorumInfo) -> None:
            self.kernel.after(delay_us, done, info)

        self.quorum_state.describe(answer)

    def topic_configs(self, b: int, topic: str) -> list[ConfigEntry]:
        """Return a topic's effective configurations as broker b knows them."""
        own = self.brokers[b].image.topics[topic].configs
        rows: list[ConfigEntry] = []
        for name, (_, broker_name) in sorted(TOPIC_KEYS.items()):
            source = ConfigSource.DEFAULT
            if name in own:
                source = ConfigSource.TOPIC
            elif broker_name in self.settings.explicit:
                source = ConfigSource.STATIC_BROKER
            rows.append(ConfigEntry(name, self.settings.topic(own, name), source))
        return rows

    def broker_configs(self, b: int) -> list[ConfigEntry]:
        """Return a broker's effective configurations, including its id and rack."""
        own = [
            ConfigEntry("broker.id", str(b), ConfigSource.STATIC_BROKER),
            ConfigEntry("broker.rack", self.nodes[b].rack, ConfigSource.STATIC_BROKER),
            ConfigEntry("node.id", str(b), ConfigSource.STATIC_BROKER),
        ]
        explicit = self.settings.explicit
        own += (
            ConfigEntry(
                name,
                self.settings.text(name),
                ConfigSource.STATIC_BROKER if name in explicit else ConfigSource.DEFAULT,
            )
            for name in BROKER_KEYS
        )
        return sorted(own)

    def log_dirs(self, b: int) -> list[LogDirRow]:
        """Return one row per replica on broker b's disk."""
        return [
            LogDirRow(
                *key,
                replica.log.size_between(replica.log.start, replica.log.end),
                max(0, replica.high_watermark - replica.log.end),
            )
            for key, replica in self.brokers[b].replicas.items()
        ]

    def counters(self) -> dict[str, object]:
        """Return what really happened (log ends, producers, consumers), for comparison with observations."""
        topics: dict[str, dict[str, int]] = {}
        for key, _ in self.controller.image.all_partitions():
            replica = self.leader_replica(key)
            row = topics.setdefault(key[0], {"log_end": 0, "high_watermark": 0, "leaderless": 0})
            if replica is None:
                row["leaderless"] += 1
            else:
                row["log_end"] += replica.log.end
                row["high_watermark"] += replica.high_watermark
        producers = {
            name: {
                "created": sum(p.counters.created),
                "acknowledged": sum(p.counters.acknowledged),
                "expired": sum(p.counters.expired),
                "blocked": p.counters.blocked,
            }
            for name, p in self.traffic.producers.items()
        }
        groups = {
            name: {"read": sum(m.read_records for m in ms)} for name, ms in self.traffic.members.items()
        }
        return {
            "time_ms": self.kernel.now_us // 1000,
            "topics": topics,
            "producers": producers,
            "groups": groups,
        }


def build(world: World, seed: int, start_ms: int) -> Cluster:
    """Build a warm cluster from `world`, as if it had run for `world.warm_ms` before `start_ms`.

    Raises BadUse if a setting is wrong.
    """
    from kview.simulate.warm import start

    cluster = Cluster(world, seed, start_ms * 1000)
    start(cluster)
    return cluster
