"""One broker's group coordinator: the methods that answer the group APIs.

`done` is called once, at once or from a later event, and not at all if the broker's process dies before.
"""

from collections.abc import Sequence
from typing import Protocol

from kview.simulate.codes import ErrorCode
from kview.simulate.groups.results import (
    CommitDone,
    CommitRequest,
    DeleteDone,
    DescribedGroup,
    FetchedOffsets,
    JoinDone,
    JoinRequest,
    LeaveResult,
    LeavingMember,
    ListResult,
    SyncDone,
    SyncRequest,
)


class Coordinator(Protocol):
    """What the wire handlers may call; `cluster.groups(b)` is one."""

    def find(self, group: str) -> int:
        """The broker that coordinates this group as this broker's metadata has it, or −1."""

    def join(self, request: JoinRequest, done: JoinDone) -> None:
        """Joins or rejoins; answers when the rebalance has gathered the members."""

    def sync(self, request: SyncRequest, done: SyncDone) -> None:
        """Takes the leader's assignment, or waits for it."""

    def heartbeat(
        self, group: str, generation: int, member_id: str, group_instance_id: str | None = None
    ) -> ErrorCode:
        """Restarts the member's session; answers an error code."""

    def leave(self, group: str, members: Sequence[LeavingMember]) -> LeaveResult:
        """Removes members."""

    def commit(self, request: CommitRequest, done: CommitDone) -> None:
        """Appends the offsets to `__consumer_offsets`; answers when that append is committed."""

    def fetch_offsets(
        self, group: str, partitions: Sequence[tuple[str, int]] | None, require_stable: bool = False
    ) -> FetchedOffsets:
        """Committed offsets of these (topic, partition), or of all there are."""

    def describe(self, group: str) -> DescribedGroup:
        """A group's state and members."""

    def list_groups(self, states: Sequence[str] = (), types: Sequence[str] = ()) -> ListResult:
        """The groups this broker coordinates, of these states and types (any case), all without."""

    def delete(self, group: str, done: DeleteDone) -> None:
        """Deletes an empty group with its offsets; answers an error code."""
