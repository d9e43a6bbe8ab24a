"""Requests of members of share groups to their coordinator, and its answers. Times are in ms."""

from collections.abc import Callable
from dataclasses import dataclass

from kview.simulate.codes import ErrorCode
from kview.simulate.groups.consumer_records import Partitions
from kview.simulate.groups.share_group import ShareMember


@dataclass(frozen=True, slots=True)
class ShareHeartbeat:
    """A ShareGroupHeartbeat request (API key 76). What is None has not changed. The epoch is 0 to join and −1
    to leave."""

    group: str
    member_id: str
    member_epoch: int
    client_id: str = ""
    client_host: str = ""
    rack_id: str | None = None
    topics: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class ShareHeartbeatResult:
    """The answer to ShareGroupHeartbeat. The assignment (topic id → partitions) is None if it has not
    changed."""

    error_code: ErrorCode
    message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: Partitions | None = None


ShareHeartbeatDone = Callable[[ShareHeartbeatResult], None]


@dataclass(frozen=True, slots=True)
class DescribedShareGroup:
    """One group in the answer to ShareGroupDescribe (API key 77)."""

    group: str
    error_code: ErrorCode
    message: str | None = None
    state: str = ""
    epoch: int = 0
    target_epoch: int = 0
    assignor: str = ""
    members: tuple[ShareMember, ...] = ()
