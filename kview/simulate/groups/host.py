"""The interface through which a group coordinator uses its broker and its cluster."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from kview.simulate.codes import ErrorCode
from kview.simulate.kernel import Timer
from kview.simulate.settings import Settings

MS = 1_000
"""Microseconds in a millisecond. The engine's time is in µs, while Kafka's settings are in ms."""


class Host(Protocol):
    """Time, metadata and the logs of `__consumer_offsets`, as one broker sees them."""

    def now_us(self) -> int:
        """Return the engine's time in µs."""

    def after(self, delay_us: int, fn: Callable[[], None]) -> Timer:
        """Call `fn` after `delay_us`."""

    def cancel(self, timer: Timer) -> None:
        """Cancel a timer. Does nothing if the timer has already fired."""

    def is_running(self) -> bool:
        """Return whether the broker's process is running, that is, it has not crashed, stopped or hung."""

    def offsets_leader(self, partition: int) -> int:
        """Return the leader of an offsets partition according to the broker's metadata, or −1."""

    def topic_id(self, topic: str, partition: int) -> bytes | None:
        """Return the topic's id, or None if the broker's metadata has no such partition."""

    def append(self, partition: int, batch: bytes, done: Callable[[ErrorCode, int], None]) -> None:
        """Append a batch to an offsets partition with acks=all.

        `done` is called once, either with the batch's offset when the batch is committed, or with the error
        that ended the wait.
        """

    def forget_before(self, partition: int, offset: int) -> None:
        """Advance the log start of an offsets partition to `offset` on all its replicas."""

    def batches(self, partition: int) -> Iterable[bytes]:
        """Return the batches in the broker's own log of an offsets partition."""

    def random_id(self) -> str:
        """Return a new id in the form of a UUID."""


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """A coordinator's settings, named like Kafka's keys but with underscores."""

    offsets_topic_num_partitions: int = 50
    group_initial_rebalance_delay_ms: int = 3_000
    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_max_size: int = 2_147_483_647
    offset_metadata_max_bytes: int = 4_096
    offsets_commit_timeout_ms: int = 5_000
    offsets_retention_minutes: int = 10_080
    offsets_retention_check_interval_ms: int = 600_000

    @classmethod
    def of(cls, settings: Settings) -> "GroupSettings":
        """Return the coordinator's settings, taken from the brokers' settings."""
        return cls(**{field: settings.number(key) for key, field in _FIELDS.items()})


_FIELDS: Mapping[str, str] = {
    "offsets.topic.num.partitions": "offsets_topic_num_partitions",
    "group.initial.rebalance.delay.ms": "group_initial_rebalance_delay_ms",
    "group.min.session.timeout.ms": "group_min_session_timeout_ms",
    "group.max.session.timeout.ms": "group_max_session_timeout_ms",
    "group.max.size": "group_max_size",
    "offset.metadata.max.bytes": "offset_metadata_max_bytes",
    "offsets.commit.timeout.ms": "offsets_commit_timeout_ms",
    "offsets.retention.minutes": "offsets_retention_minutes",
    "offsets.retention.check.interval.ms": "offsets_retention_check_interval_ms",
}
"""Kafka's key → the name of the field above."""
