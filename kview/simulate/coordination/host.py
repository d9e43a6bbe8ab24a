"""The interface through which a coordinator uses its broker and its cluster."""

from collections.abc import Callable, Iterable
from typing import Protocol

from kview.simulate.codes import ErrorCode
from kview.simulate.kernel import Timer
from kview.simulate.metadata import MetadataImage

MS = 1_000
"""Microseconds in a millisecond. The engine's time is in µs, while Kafka's settings are in ms."""


class Host(Protocol):
    """Time, metadata and the logs of the coordinators' topic, as one broker sees them."""

    def now_us(self) -> int:
        """Return the engine's time in µs."""

    def after(self, delay_us: int, fn: Callable[[], None]) -> Timer:
        """Call `fn` after `delay_us`."""

    def tick(self, delay_us: int, fn: Callable[[], None]) -> Timer:
        """Do the same for a time-out, which waits while the clock stands."""

    def cancel(self, timer: Timer) -> None:
        """Cancel a timer. Does nothing if the timer has already fired."""

    def is_running(self) -> bool:
        """Return whether the broker's process is running, that is, it has not crashed, stopped or hung."""

    def leader(self, partition: int) -> int:
        """Return the leader of a partition of the topic according to the broker's metadata, or −1."""

    def metadata(self) -> MetadataImage:
        """Return the broker's metadata."""

    def topic_id(self, topic: str, partition: int) -> bytes | None:
        """Return the topic's id, or None if the broker's metadata has no such partition."""

    def append(self, partition: int, batch: bytes, done: Callable[[ErrorCode, int], None]) -> None:
        """Append a batch to a partition of the topic with acks=all.

        `done` is called once, either with the batch's offset when the batch is committed, or with the error
        that ended the wait.
        """

    def clean(self, partition: int) -> None:
        """Have the log cleaner clean a partition of the topic soon, up to its last stable offset."""

    def delete_before(self, partition: int, offset: int) -> None:
        """Delete the records of a partition of the topic before an offset, as DeleteRecords does."""

    def batches(self, partition: int) -> Iterable[bytes]:
        """Return the batches in the broker's own log of a partition of the topic."""

    def random_id(self) -> str:
        """Return a new id in the form of a UUID, as java.util.UUID writes it."""

    def random_uuid(self) -> str:
        """Return a new id as org.apache.kafka.common.Uuid writes it: in 22 characters."""
