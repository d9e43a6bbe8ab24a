"""Requests of members of streams groups to their coordinator, and its answers. Times are in ms."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from kview.simulate.codes import ErrorCode
from kview.simulate.groups.streams_group import StreamsMember
from kview.simulate.groups.streams_records import OwnedTasks, Tasks, TopologyValue
from kview.simulate.groups.streams_topology import Configured, InternalTopic, Status


@dataclass(frozen=True, slots=True)
class StreamsHeartbeat:
    """A StreamsGroupHeartbeat request (API key 88). What is None or −1 has not changed. The epoch is 0 to
    join and −1 to leave. `owned` are the tasks that the member has, None if they have not
    changed."""

    group: str
    member_id: str
    member_epoch: int
    client_id: str = ""
    client_host: str = ""
    endpoints_epoch: int = -1
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    topology: TopologyValue | None = None
    owned: Tasks | None = None
    process_id: str | None = None
    endpoint: tuple[str, int] | None = None
    tags: tuple[tuple[str, str], ...] | None = None
    shuts_down: bool = False
    wrong: str | None = None
    """What the request has that Kafka does not support, in Kafka's words."""
    lacks_tasks: bool = False
    """Whether only one or two of the three lists of tasks came."""
    repeats_tasks: bool = False
    """Whether a list of tasks names a subtopology twice."""


class EndpointPartitions(NamedTuple):
    """What is read behind an endpoint, as (topic, partitions): by active tasks, and by copies of tasks."""

    endpoint: tuple[str, int]
    active: tuple[tuple[str, tuple[int, ...]], ...]
    standby: tuple[tuple[str, tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True)
class StreamsHeartbeatResult:
    """The answer to StreamsGroupHeartbeat. Tasks and endpoints are None if they have not changed. `missing`
    are the internal topics that the broker has to create."""

    error_code: ErrorCode
    message: str | None = None
    member_id: str = ""
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    status: tuple[Status, ...] = ()
    tasks: OwnedTasks | None = None
    endpoints_epoch: int = 0
    endpoints: tuple[EndpointPartitions, ...] | None = None
    missing: Mapping[str, InternalTopic] = field(default_factory=dict)


StreamsHeartbeatDone = Callable[[StreamsHeartbeatResult], None]


@dataclass(frozen=True, slots=True)
class DescribedStreamsGroup:
    """One group in the answer to StreamsGroupDescribe (API key 89). `configured` is what the coordinator has
    made of the topology, if it has since it loaded the group, and `targets` the target assignment by member
    id."""

    group: str
    error_code: ErrorCode
    message: str | None = None
    state: str = ""
    epoch: int = 0
    target_epoch: int = 0
    topology: TopologyValue | None = None
    configured: Configured | None = None
    members: tuple[StreamsMember, ...] = ()
    targets: Mapping[str, Tasks] = field(default_factory=dict)
