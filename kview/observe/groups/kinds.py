"""How groups of each kind are described: what to ask their coordinators, and what the answers say.

DescribeGroups knows classic groups alone. Of others it says that they do not exist.
"""

import struct
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from kafka.protocol.admin import DescribeGroupsRequest
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment
from msgspec import Struct

from kview.model.states import GroupType
from kview.model.units import CONNECTOR_TASK, UNKNOWN_ID
from kview.observe import apis
from kview.wire.group_descriptions import (
    ConsumerGroupDescribeRequest,
    ShareGroupDescribeRequest,
    StreamsGroupDescribeRequest,
)
from kview.wire.primitives import MalformedBytes, Reader

MOST_ASSIGNMENTS = 4096
"""Limit of cached decoded assignments. Between rebalances the assignments of members stay the same."""

Owned = tuple[tuple[str, tuple[int, ...]], ...]
"""Topics (or connectors, or subtopologies) with numbers of partitions or tasks."""


class MemberFacts(Struct, frozen=True):
    """A member of a group. `owned` are partitions; the rest is as in `Members`."""

    id: str
    client_id: str
    host: str
    owned: Owned = ()
    rack: str = ""
    epoch: int = UNKNOWN_ID
    assigned: int = 0
    target: int = UNKNOWN_ID
    runs: str = ""
    connectors: tuple[str, ...] = ()
    """The connectors of which it runs something, if it is a Connect worker."""


class GroupDescription(Struct, frozen=True):
    """What a coordinator says of a group."""

    state: str
    members: tuple[MemberFacts, ...]
    assignor: str = ""
    epoch: int = UNKNOWN_ID
    assignment_epoch: int = UNKNOWN_ID


class Kind(NamedTuple):
    """How groups of a kind are described."""

    api: int
    request: Callable[[Sequence[str]], Any]
    read: Callable[[Any], GroupDescription]


def request_of(message: Any) -> Callable[[Sequence[str]], Any]:
    """Return the function that asks with that message for groups by name."""
    return lambda names: message(group_ids=list(names), include_authorized_operations=False)


def classic_request(names: Sequence[str]) -> Any:
    """Return the request for classic groups."""
    return DescribeGroupsRequest(groups=list(names), include_authorized_operations=False)


@lru_cache(MOST_ASSIGNMENTS)
def owned_partitions(assignment: bytes) -> Owned:
    """Decode a consumer's assignment (ConsumerProtocolAssignment) into topics and partitions.

    Returns () if the bytes are not valid.
    """
    try:
        decoded = ConsumerProtocolAssignment.decode(assignment)
    except (ValueError, TypeError, struct.error):
        return ()
    return tuple((sys.intern(t.topic), tuple(t.partitions)) for t in decoded.assigned_partitions)


@lru_cache(MOST_ASSIGNMENTS)
def connector_tasks(metadata: bytes, assignment: bytes) -> Owned:
    """Return a Connect worker's connectors with the numbers of their tasks, CONNECTOR_TASK for the connector
    itself. Returns () if the bytes are not valid.

    An assignment of version 1 or later (KIP-415) only says what the last rebalance gave to the worker and
    took from it. What the worker had before is in the metadata with which it joined.
    """
    try:
        version, given, revoked = _assignment(Reader(memoryview(assignment)))
        had: _Pairs = set()
        if version:
            joined = Reader(memoryview(metadata))
            joined.int16()  # version
            joined.nullable_string()  # the worker's URL
            joined.int64()  # offset of the configuration
            if (before := joined.nullable_bytes()) is not None:
                had = _assignment(Reader(memoryview(before)))[1]
    except (MalformedBytes, struct.error, UnicodeDecodeError):
        return ()
    has = sorted((had - revoked) | given)
    return tuple((name, tuple(task for _, task in tasks)) for name, tasks in groupby(has, itemgetter(0)))


_Pairs = set[tuple[str, int]]


def _assignment(reader: Reader) -> tuple[int, _Pairs, _Pairs]:
    """Return an assignment's version, and what is assigned and revoked, as pairs of connector and task."""
    version = reader.int16()
    reader.int16()  # error
    reader.nullable_string()  # leader
    reader.nullable_string()  # the leader's URL
    reader.int64()  # offset of the configuration
    return version, _pairs(reader), _pairs(reader) if version else set()


def _pairs(reader: Reader) -> _Pairs:
    found: _Pairs = set()
    for _ in range(reader.array_length(compact=False)):
        name = sys.intern(reader.nullable_string() or "")
        found.update((name, reader.int32()) for _ in range(reader.array_length(compact=False)))
    return found


def numbers(values: Iterable[int]) -> str:
    """Return numbers as text, in order: `0, 1, 4`."""
    return ", ".join(map(str, sorted(values)))


def read_classic(entry: Any) -> GroupDescription:
    """Read a group of DescribeGroups: of consumers, of Connect's workers, or of clients of another kind."""
    of_consumers = entry.protocol_type == GroupType.CONSUMER
    of_workers = entry.protocol_type == GroupType.CONNECT
    made = []
    for member in entry.members:
        raw = bytes(member.member_assignment or b"")
        owned = owned_partitions(raw) if of_consumers and raw else ()
        runs = connector_tasks(bytes(member.member_metadata or b""), raw) if of_workers and raw else ()
        made.append(
            MemberFacts(
                *_who(member),
                owned,
                assigned=_count(owned or runs),
                runs="; ".join(_connector(name, tasks) for name, tasks in runs),
                connectors=tuple(name for name, _ in runs),
            )
        )
    return GroupDescription(entry.group_state, _ordered(made), sys.intern(entry.protocol_data or ""))


def _connector(name: str, tasks: Sequence[int]) -> str:
    """Return what a worker runs of a connector: `jdbc-sink: connector, tasks 0, 1`."""
    own = [number for number in tasks if number != CONNECTOR_TASK]
    parts = ["connector"] if CONNECTOR_TASK in tasks else []
    parts += [f"task{'s' if len(own) > 1 else ''} {numbers(own)}"] if own else []
    return f"{name}: {', '.join(parts)}"


def read_consumer(entry: Any) -> GroupDescription:
    """Read a group of the consumer protocol."""
    made = []
    for member in entry.members:
        owned, target = _topics(member.assignment), _topics(member.target_assignment)
        at = member.rack_id or "", member.member_epoch
        made.append(MemberFacts(*_who(member), owned, *at, _count(owned), _count(target)))
    return _of_epochs(entry, made)


def read_share(entry: Any) -> GroupDescription:
    """Read a share group. Its members own nothing: several may read the same partition."""
    made = []
    for member in entry.members:
        read = _topics(member.assignment)
        at = member.rack_id or "", member.member_epoch
        runs = "; ".join(f"{topic}: {numbers(parts)}" for topic, parts in sorted(read))
        made.append(MemberFacts(*_who(member), (), *at, _count(read), runs=runs))
    return _of_epochs(entry, made)


def _of_epochs(entry: Any, members: Iterable[MemberFacts]) -> GroupDescription:
    assignor = sys.intern(getattr(entry, "assignor_name", None) or "")
    epochs = entry.group_epoch, entry.assignment_epoch
    return GroupDescription(entry.group_state, _ordered(members), assignor, *epochs)


def read_streams(entry: Any) -> GroupDescription:
    """Read a streams group. A member owns the partitions that its active tasks read."""
    subtopologies = (entry.topology.subtopologies or ()) if entry.topology is not None else ()
    sources = {
        each.subtopology_id: [*each.source_topics, *(topic.name for topic in each.repartition_source_topics)]
        for each in subtopologies
    }
    made = []
    for member in entry.members:
        active, target = member.assignment.active_tasks, member.target_assignment.active_tasks
        owned = tuple(
            (sys.intern(topic), tuple(task.partitions))
            for task in active
            for topic in sources.get(task.subtopology_id, ())
        )
        words = (("active", active), ("standby", member.assignment.standby_tasks),
                 ("warm-up", member.assignment.warmup_tasks))  # fmt: skip
        made.append(
            MemberFacts(
                *_who(member),
                owned,
                member.rack_id or "",
                member.member_epoch,
                _tasks(active),
                _tasks(target),
                "; ".join(f"{word} {_task_names(tasks)}" for word, tasks in words if tasks),
            )
        )
    return _of_epochs(entry, made)


def _tasks(tasks: Iterable[Any]) -> int:
    return sum(len(task.partitions) for task in tasks)


def _task_names(tasks: Iterable[Any]) -> str:
    """Return tasks as Kafka Streams names them: `0_0, 0_1`."""
    found = sorted((task.subtopology_id, number) for task in tasks for number in task.partitions)
    return ", ".join(f"{subtopology}_{number}" for subtopology, number in found)


def _who(member: Any) -> tuple[str, str, str]:
    host = member.client_host.removeprefix("/")
    return sys.intern(member.member_id), sys.intern(member.client_id), sys.intern(host)


def _topics(assignment: Any) -> Owned:
    return tuple(
        (sys.intern(topic.topic_name), tuple(topic.partitions)) for topic in assignment.topic_partitions
    )


def _count(owned: Owned) -> int:
    return sum(len(parts) for _, parts in owned)


def _ordered(members: Iterable[MemberFacts]) -> tuple[MemberFacts, ...]:
    return tuple(sorted(members, key=lambda member: member.id))


CLASSIC = Kind(apis.DESCRIBE_GROUPS, classic_request, read_classic)

KINDS: Mapping[str, Kind] = {
    GroupType.CLASSIC: CLASSIC,
    GroupType.CONNECT: CLASSIC,
    GroupType.SIMPLE: CLASSIC,
    GroupType.CONSUMER: Kind(
        apis.CONSUMER_GROUP_DESCRIBE, request_of(ConsumerGroupDescribeRequest), read_consumer
    ),
    GroupType.SHARE: Kind(apis.SHARE_GROUP_DESCRIBE, request_of(ShareGroupDescribeRequest), read_share),
    GroupType.STREAMS: Kind(
        apis.STREAMS_GROUP_DESCRIBE, request_of(StreamsGroupDescribeRequest), read_streams
    ),
}
"""How to describe groups of the kinds that Kafka 4 has. One of another kind is only listed."""
