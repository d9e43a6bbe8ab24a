"""Requests to a group coordinator and its answers, with the fields of Kafka's messages.

Times are in ms. Topics are identified by name.
"""

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from kview.simulate.codes import ErrorCode

NO_GENERATION = -1
NO_OFFSET = -1
NO_EPOCH = -1

NO_MEMBER = None, -1
"""The id and epoch of a client outside the group."""


class GroupProtocol(NamedTuple):
    """An assignment protocol that a member offers: the assignor's name and the subscription's bytes."""

    name: str
    metadata: bytes


@dataclass(frozen=True, slots=True)
class JoinRequest:
    """A JoinGroup request (API key 11). Before v1, the session timeout is also the rebalance timeout."""

    group: str
    member_id: str
    client_id: str
    client_host: str
    protocol_type: str
    protocols: tuple[GroupProtocol, ...]
    session_timeout_ms: int
    rebalance_timeout_ms: int
    group_instance_id: str | None = None
    require_known_member_id: bool = True
    """True from v4 on (KIP-394)."""
    supports_skipping_assignment: bool = False
    """True from v9 on (KIP-814)."""


class JoinedMember(NamedTuple):
    """A member as its group's leader sees it."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes


@dataclass(frozen=True, slots=True)
class JoinResult:
    """The answer to JoinGroup. Only the leader's answer has `members`."""

    error_code: ErrorCode
    member_id: str
    generation: int = NO_GENERATION
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    members: tuple[JoinedMember, ...] = ()


@dataclass(frozen=True, slots=True)
class SyncRequest:
    """A SyncGroup request (API key 14).

    Only the leader sends `assignments` (member id, bytes). The protocol is sent from v5 on.
    """

    group: str
    generation: int
    member_id: str
    group_instance_id: str | None = None
    protocol_type: str | None = None
    protocol: str | None = None
    assignments: tuple[tuple[str, bytes], ...] = ()


@dataclass(frozen=True, slots=True)
class SyncResult:
    """The answer to SyncGroup: a member's own assignment."""

    error_code: ErrorCode
    protocol_type: str | None = None
    protocol: str | None = None
    assignment: bytes = b""


class LeavingMember(NamedTuple):
    """One member in a LeaveGroup request (API key 13).

    A static member may leave by its instance id, with an empty member id.
    """

    member_id: str
    group_instance_id: str | None = None


class LeftMember(NamedTuple):
    """The outcome for one leaving member."""

    member_id: str
    group_instance_id: str | None
    error_code: ErrorCode


@dataclass(frozen=True, slots=True)
class LeaveResult:
    """The answer to LeaveGroup. Before v3, a request has one member, and that member's error is the answer's
    error."""

    error_code: ErrorCode
    members: tuple[LeftMember, ...] = ()


class OffsetToCommit(NamedTuple):
    """An offset that a client commits for one partition. `topic_id`, if set, must be the id of that topic."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int = NO_EPOCH
    metadata: str = ""
    topic_id: bytes | None = None


@dataclass(frozen=True, slots=True)
class CommitRequest:
    """An OffsetCommit or TxnOffsetCommit request (API keys 8 and 28). A client outside the group sends
    generation −1 and an empty member id. `producer` is the id and epoch of the transaction's producer.

    A member of a consumer group has an epoch in place of the generation, if the client `knows_epochs`.
    """

    group: str
    offsets: tuple[OffsetToCommit, ...]
    generation: int = NO_GENERATION
    member_id: str = ""
    group_instance_id: str | None = None
    producer: tuple[int, int] | None = None
    knows_epochs: bool = True


@dataclass(frozen=True, slots=True)
class CommitResult:
    """The answer to OffsetCommit: error codes in the order of the request's offsets."""

    error_codes: tuple[ErrorCode, ...]


class FetchedOffset(NamedTuple):
    """A committed offset, or `NO_OFFSET` if there is none."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int = NO_EPOCH
    metadata: str = ""
    error_code: ErrorCode = ErrorCode.NONE


@dataclass(frozen=True, slots=True)
class FetchedOffsets:
    """One group in the answer to OffsetFetch (API key 9).

    The offsets are in the requested order, or sorted if all offsets were requested.
    """

    group: str
    error_code: ErrorCode
    offsets: tuple[FetchedOffset, ...] = ()


@dataclass(frozen=True, slots=True)
class DescribedMember:
    """One member in the answer to DescribeGroups. `metadata` and `assignment` are empty unless the group is
    Stable."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True)
class DescribedGroup:
    """One group in the answer to DescribeGroups (API key 15).

    An unknown group, or one of another protocol, has the state `Dead` and the error GROUP_ID_NOT_FOUND
    (before v6, no error).
    """

    group: str
    error_code: ErrorCode
    state: str = ""
    protocol_type: str = ""
    protocol: str = ""
    members: tuple[DescribedMember, ...] = ()
    message: str | None = None


@dataclass(frozen=True, slots=True)
class ListedGroup:
    """One group in the answer to ListGroups (API key 16)."""

    group: str
    protocol_type: str
    state: str
    group_type: str = "classic"


@dataclass(frozen=True, slots=True)
class ListResult:
    """The answer to ListGroups, sorted by name.

    The error is COORDINATOR_LOAD_IN_PROGRESS while a partition is loading.
    """

    error_code: ErrorCode
    groups: tuple[ListedGroup, ...] = ()


JoinDone = Callable[[JoinResult], None]
SyncDone = Callable[[SyncResult], None]
CommitDone = Callable[[CommitResult], None]
DeleteDone = Callable[[ErrorCode], None]


@dataclass(frozen=True, slots=True)
class OffsetDeleteResult:
    """The answer to OffsetDelete, with an error code for each partition, in order, if there is no other."""

    error_code: ErrorCode
    error_codes: tuple[ErrorCode, ...] = ()


OffsetDeleteDone = Callable[[OffsetDeleteResult], None]


def refusal_of(
    members: Container[str], static_members: Mapping[str, str], member_id: str, group_instance_id: str | None
) -> ErrorCode:
    """Return why a request of a member is refused, or NONE. `static_members` has ids by instance id."""
    if group_instance_id is not None:
        known = static_members.get(group_instance_id)
        if known is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if known != member_id:
            return ErrorCode.FENCED_INSTANCE_ID
    return ErrorCode.NONE if member_id in members else ErrorCode.UNKNOWN_MEMBER_ID
