"""What is known about idempotent producers at one place of a log, as Kafka's snapshot files keep it."""

from collections import OrderedDict
from typing import NamedTuple

NO_OFFSET = -1


class Sent(NamedTuple):
    """A batch that a producer has sent, and its latest timestamp."""

    base_sequence: int
    last_sequence: int
    base_offset: int
    time_ms: int


class Producer(NamedTuple):
    """A producer's epoch and the last batches it sent in that epoch.

    `last_time_ms` is the latest timestamp of the last batch. `txn_start` is the offset at which its open
    transaction begins, NO_OFFSET without one. `marker` is the offset of the last marker, and
    `coordinator_epoch` that of who wrote it.
    """

    epoch: int
    batches: tuple[Sent, ...]
    last_time_ms: int
    txn_start: int = NO_OFFSET
    coordinator_epoch: int = -1
    marker: int = NO_OFFSET


class Snapshot(NamedTuple):
    """The producers of every log that has the records of one stream up to `offset`, as Kafka keeps them on
    disk."""

    offset: int
    producers: OrderedDict[int, Producer]
