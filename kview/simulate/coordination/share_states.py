"""What brokers ask share coordinators, which keep how far share groups have read partitions (KIP-932)."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from kview.simulate.codes import ErrorCode
from kview.simulate.uuids import in_base64

UNINITIALIZED = -1
"""The start offset of a partition that nobody has read yet: the first leader that is asked finds it."""
UNKNOWN_COUNT = -1


class SharePartition(NamedTuple):
    """A partition as a share group reads it."""

    group: str
    topic_id: bytes
    partition: int

    @property
    def coordinator_key(self) -> str:
        """The key of FindCoordinator, whose hash chooses the partition of `__share_group_state`."""
        return f"{self.group}:{in_base64(self.topic_id)}:{self.partition}"


class StateBatch(NamedTuple):
    """Consecutive records in the same state (0 available, 2 acknowledged, 4 archived), delivered equally
    often."""

    first: int
    last: int
    state: int
    deliveries: int


class Summary(NamedTuple):
    """Where a share group starts in a partition (ReadShareGroupStateSummary), or why that is not known.

    `complete` is the number of records from there on whose delivery is complete, −1 if that is not known.
    """

    error_code: ErrorCode
    message: str | None = None
    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = 0
    complete: int = UNKNOWN_COUNT


class ReadState(NamedTuple):
    """What a share group has read of a partition (ReadShareGroupState), or why that is not known."""

    error_code: ErrorCode
    message: str | None = None
    state_epoch: int = 0
    start_offset: int = 0
    batches: tuple[StateBatch, ...] = ()


class WrittenState(NamedTuple):
    """What a partition's leader writes (WriteShareGroupState). A start offset of −1 has not changed."""

    state_epoch: int
    leader_epoch: int
    start_offset: int
    complete: int
    batches: tuple[StateBatch, ...] = ()


Written = Callable[[ErrorCode, str | None], None]
"""Takes an error code and its message."""


class ShareStates(Protocol):
    """The way from a broker to the share coordinators. Each `done` is called once, unless the broker's
    process dies first."""

    def initialize(self, key: SharePartition, state_epoch: int, start_offset: int, done: Written) -> None:
        """Begin with a partition at a start offset."""

    def read(self, key: SharePartition, leader_epoch: int, done: Callable[[ReadState], None]) -> None:
        """Read the state of a partition for its leader."""

    def write(self, key: SharePartition, state: WrittenState, done: Written) -> None:
        """Write what has changed in the state of a partition."""

    def delete(self, key: SharePartition, done: Written) -> None:
        """Forget the state of a partition."""

    def summarize(self, key: SharePartition, done: Callable[[Summary], None]) -> None:
        """Read where a group starts in a partition."""
