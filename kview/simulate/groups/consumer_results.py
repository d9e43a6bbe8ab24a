"""Requests of members of consumer groups to their coordinator, and its answers. Times are in ms."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kview.simulate.codes import ErrorCode
from kview.simulate.groups.consumer_group import ConsumerMember
from kview.simulate.groups.consumer_records import OwnedPartitions, Partitions


class Refused(Exception):
    """Raised when a coordinator refuses a request. `message` is for the client, in Kafka's words."""

    def __init__(self, error_code: ErrorCode, message: str | None) -> None:
        super().__init__(message)
        self.error_code = error_code
        self.message = message


@dataclass(frozen=True, slots=True)
class ConsumerHeartbeat:
    """A ConsumerGroupHeartbeat request (API key 68). What is None or −1 has not changed.

    The epoch is 0 to join, −1 to leave, −2 if a static member leaves for a while. `owned` are the partitions
    that the member has (topic id → partitions).
    """

    group: str
    member_id: str
    member_epoch: int
    client_id: str = ""
    client_host: str = ""
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    topics: tuple[str, ...] | None = None
    regex: str | None = None
    assignor: str | None = None
    owned: Partitions | None = None
    makes_its_id: bool = True
    may_describe: Callable[[str], bool] | None = None
    """Says which topics a regular expression may match, or None for all."""


@dataclass(frozen=True, slots=True)
class ConsumerHeartbeatResult:
    """The answer to ConsumerGroupHeartbeat. The assignment (topic id → partitions) is None if it has not
    changed."""

    error_code: ErrorCode
    message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: OwnedPartitions | None = None


@dataclass(frozen=True, slots=True)
class DescribedConsumerGroup:
    """One group in the answer to ConsumerGroupDescribe (API key 69). `targets` has the target assignment by
    member id."""

    group: str
    error_code: ErrorCode
    message: str | None = None
    state: str = ""
    epoch: int = 0
    target_epoch: int = 0
    assignor: str = ""
    members: tuple[ConsumerMember, ...] = ()
    targets: Mapping[str, Partitions] = field(default_factory=dict)


HeartbeatDone = Callable[[ConsumerHeartbeatResult], None]
