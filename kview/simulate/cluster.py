"""The facade of the simulated cluster: everything that the wire, the traffic and the lab may ask of it.

Requests are made "as broker b answers". Whoever makes them first calls `run_until`. Answers that wait are callbacks, called
exactly once: during a later `run_until`, or at once inside the call.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from kview.simulate.kernel import Kernel, Timer
from kview.simulate.metadata import MetadataImage
from kview.simulate.nodes import Fault, ProcessListener, ProcessState
from kview.simulate.results import (
    ConfigEntry,
    CreateTopicResult,
    DeleteTopicResult,
    EpochEndResult,
    LogDirRow,
    OffsetResult,
    ProduceResult,
    ProducerIdResult,
    QuorumInfo,
    ReadResult,
    TakeResult,
)
from kview.simulate.world import World

Done = Callable[[], None]
ProduceDone = Callable[[ProduceResult], None]


class Cluster:
    """A simulated Kafka cluster."""

    world: World
    kernel: Kernel

    # --- time
    def run_until(self, time_us: int) -> None:
        raise NotImplementedError

    def next_due_us(self) -> int | None:
        raise NotImplementedError

    # --- processes
    def broker_ids(self) -> tuple[int, ...]:
        raise NotImplementedError

    def process(self, node: int) -> ProcessState:
        raise NotImplementedError

    def slow_ms(self, node: int) -> int:
        raise NotImplementedError

    def on_process_change(self, listener: ProcessListener) -> None:
        raise NotImplementedError

    # --- metadata
    def image(self, b: int) -> MetadataImage:
        raise NotImplementedError

    # --- records
    def produce(
        self, b: int, topic: str, partition: int, batch: bytes, acks: int, timeout_ms: int, done: ProduceDone
    ) -> None:
        """Append client's batches."""
        raise NotImplementedError

    def append_run(
        self,
        b: int,
        topic: str,
        partition: int,
        count: int,
        first_us: int,
        step_us: int,
        record_bytes: int,
        producer: int,
        acks: int,
        timeout_ms: int,
        done: ProduceDone | None,
    ) -> None:
        """Append `count` simulated records, record i created at first_us + i·step_us; `producer` from `register_producer`."""
        raise NotImplementedError

    def register_producer(self, client_id: str, keys: Callable[[str, int], Sequence[bytes]] | None) -> int:
        """A number for a simulated producer; `keys(topic, partition)` are the keys its records there may have (None: null keys)."""
        raise NotImplementedError

    def read(
        self,
        b: int,
        topic: str,
        partition: int,
        offset: int,
        max_bytes: int,
        leader_epoch: int = -1,
        read_committed: bool = False,
    ) -> ReadResult:
        raise NotImplementedError

    def take(self, b: int, topic: str, partition: int, offset: int, max_records: int) -> TakeResult:
        """Read as a simulated consumer: up to `max_records` below the high watermark, without making their bytes."""
        raise NotImplementedError

    def client_batches(self, b: int, topic: str, partition: int) -> Iterator[tuple[int, bytes]]:
        """(base offset, batch) of every client's batch in broker b's own log up to its end, for loading a coordinator."""
        raise NotImplementedError

    def when_readable(
        self, b: int, positions: Sequence[tuple[str, int, int]], min_bytes: int, max_wait_ms: int, done: Done
    ) -> Timer:
        raise NotImplementedError

    def cancel(self, handle: Timer) -> None:
        raise NotImplementedError

    def list_offset(
        self, b: int, topic: str, partition: int, timestamp: int, replica_id: int = -1, leader_epoch: int = -1
    ) -> OffsetResult:
        raise NotImplementedError

    def epoch_end(self, b: int, topic: str, partition: int, epoch: int) -> EpochEndResult:
        raise NotImplementedError

    def init_producer_id(self, b: int, transactional_id: str | None) -> ProducerIdResult:
        raise NotImplementedError

    # --- topics, configuration, disks, quorum
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
        raise NotImplementedError

    def delete_topic(
        self, b: int, name: str, timeout_ms: int, done: Callable[[DeleteTopicResult], None]
    ) -> None:
        raise NotImplementedError

    def topic_configs(self, b: int, topic: str) -> list[ConfigEntry]:
        raise NotImplementedError

    def broker_configs(self, b: int) -> list[ConfigEntry]:
        raise NotImplementedError

    def log_dirs(self, b: int) -> list[LogDirRow]:
        raise NotImplementedError

    def quorum(self, b: int, done: Callable[[QuorumInfo], None]) -> None:
        raise NotImplementedError

    # --- faults
    def crash(self, node: int) -> None:
        raise NotImplementedError

    def stop(self, node: int) -> None:
        raise NotImplementedError

    def hang(self, node: int) -> None:
        raise NotImplementedError

    def slow(self, node: int, latency_ms: int) -> None:
        raise NotImplementedError

    def start(self, node: int) -> None:
        raise NotImplementedError

    def lose_rack(self, rack: str) -> tuple[int, ...]:
        raise NotImplementedError

    def crash_controller(self) -> int:
        raise NotImplementedError

    def undo(self) -> tuple[int, ...]:
        raise NotImplementedError

    def faults(self) -> list[Fault]:
        raise NotImplementedError


def build(world: World, seed: int, start_ms: int) -> Cluster:
    """The cluster of `world`, warm: as if it had run for `world.warm_ms` before `start_ms`. Raises BadUse for wrong settings."""
    raise NotImplementedError
