"""Requests to a group coordinator and its answers, with the fields of Kafka's messages.

Times are in ms. Topics are identified by name.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from kview.simulate.codes import ErrorCode

NO_GENERATION = -1
NO_OFFSET = -1
NO_EPOCH = -1


class GroupProtocol(NamedTuple):
    """An assignment protocol that a member offers: the assignor's name and the subscription's bytes."""

    name: str
    metadata: bytes


@dataclass(frozen=True, slots=True)
class JoinRequest:
    """JoinGroup (11). Below v1, the session timeout is also the rebalance timeout."""

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
    """SyncGroup (14).

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
    """One member of a LeaveGroup (13).

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
    """The answer to LeaveGroup. Below v3, the single member's error is the error of the complete request."""

    error_code: ErrorCode
    members: tuple[LeftMember, ...] = ()


class OffsetToCommit(NamedTuple):
    """One partition's offset as a client commits it. A topic id, if given, must be the id of that topic."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int = NO_EPOCH
    metadata: str = ""
    topic_id: bytes | None = None


@dataclass(frozen=True, slots=True)
class CommitRequest:
    """OffsetCommit (8). A client that is not a member sends generation −1 and an empty member id."""

    group: str
    offsets: tuple[OffsetToCommit, ...]
    generation: int = NO_GENERATION
    member_id: str = ""
    group_instance_id: str | None = None


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
    """One group of an OffsetFetch (9), in the order requested, or sorted if all offsets were requested."""

    group: str
    error_code: ErrorCode
    offsets: tuple[FetchedOffset, ...] = ()


@dataclass(frozen=True, slots=True)
class DescribedMember:
    """One member in DescribeGroups. `metadata` and `assignment` are filled while the group is Stable."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True)
class DescribedGroup:
    """One group of a DescribeGroups (15).

    An unknown group has the state `Dead` and the error GROUP_ID_NOT_FOUND (0 below v6).
    """

    group: str
    error_code: ErrorCode
    state: str = ""
    protocol_type: str = ""
    protocol: str = ""
    members: tuple[DescribedMember, ...] = ()


@dataclass(frozen=True, slots=True)
class ListedGroup:
    """One group of a ListGroups (16)."""

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
