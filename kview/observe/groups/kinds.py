"""How groups of each kind are described: what to ask their coordinators, and what the answers say.

DescribeGroups knows classic groups alone. Of others it says that they do not exist.
"""

import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from kafka.protocol.admin.groups import DescribeGroupsRequest

from kview.model.states import GroupType
from kview.model.units import CONNECTOR_TASK, UNKNOWN_ID
from kview.observe import apis
from kview.observe.groups.members import (
    MOST_ASSIGNMENTS,
    GroupDescription,
    MemberFacts,
    Owned,
    count_of,
    numbers,
    of_epochs,
    ordered,
    pairs_of,
    topics_of,
    who,
)
from kview.wire.primitives import MalformedBytes, Reader


class Kind(NamedTuple):
    """How groups of a kind are described."""

    api: int
    request: Callable[[Sequence[str]], Any]
    read: Callable[[Any], GroupDescription]


# -- groups of the classic protocol: consumers, Connect's workers, and clients of other kinds


def _classic_request(names: Sequence[str]) -> Any:
    """Return the request (DescribeGroups) for groups of the classic protocol."""
    return DescribeGroupsRequest(groups=list(names), include_authorized_operations=False)


@lru_cache(MOST_ASSIGNMENTS)
def _owned_partitions(assignment: bytes) -> Owned | None:
    """Decode a consumer's assignment (ConsumerProtocolAssignment) into topics and partitions.

    Returns None if the bytes are not valid. Every version begins with these fields.
    """
    reader = Reader(assignment)
    try:
        if reader.int16() < 0:
            return None
        return tuple((sys.intern(reader.string()), reader.int32s()) for _ in range(reader.array_length()))
    except MalformedBytes:
        return None


def _read_classic(entry: Any) -> GroupDescription:
    """Read a group of DescribeGroups: of consumers, of Connect's workers, or of clients of another kind."""
    of_consumers = entry.protocol_type == GroupType.CONSUMER
    of_workers = entry.protocol_type == GroupType.CONNECT
    members = []
    for member in entry.members:
        raw = bytes(member.member_assignment or b"")
        work: Owned | None = None  # of clients of another kind nobody can read it
        if of_consumers:
            work = _owned_partitions(raw) if raw else ()
        elif of_workers:
            work = connector_tasks(bytes(member.member_metadata or b""), raw) if raw else ()
        runs = work or () if of_workers else ()
        members.append(
            MemberFacts(
                *who(member),
                work or () if of_consumers else (),
                assigned=UNKNOWN_ID if work is None else count_of(work),
                runs=_runs_of(runs),
                connectors=tuple(name for name, _ in runs),
            )
        )
    return GroupDescription(entry.group_state, ordered(members), sys.intern(entry.protocol_data or ""))


# -- Kafka Connect's workers: which connectors and tasks each of them runs


_Pairs = set[tuple[str, int]]


@lru_cache(MOST_ASSIGNMENTS)
def connector_tasks(metadata: bytes, assignment: bytes) -> Owned | None:
    """Return a Connect worker's connectors with the numbers of their tasks, CONNECTOR_TASK for the connector
    itself. Returns None if the bytes are not valid.

    An assignment of version 1 or later (KIP-415) only says what the last rebalance gave to the worker and
    took from it. What the worker had before is in the metadata with which it joined.
    """
    try:
        version, given, revoked = _worker_assignment(Reader(memoryview(assignment)))
        had: _Pairs = set()
        if version:
            joined = Reader(memoryview(metadata))
            joined.int16()  # version
            joined.nullable_string()  # the worker's URL
            joined.int64()  # offset of the configuration
            if (before := joined.nullable_bytes()) is not None:
                had = _worker_assignment(Reader(memoryview(before)))[1]
    except (MalformedBytes, struct.error, UnicodeDecodeError):
        return None
    has = sorted((had - revoked) | given)
    return tuple((name, tuple(task for _, task in tasks)) for name, tasks in groupby(has, itemgetter(0)))


def _worker_assignment(reader: Reader) -> tuple[int, _Pairs, _Pairs]:
    """Return an assignment's version, and what is assigned and revoked, as pairs of connector and task."""
    version = reader.int16()
    reader.int16()  # error
    reader.nullable_string()  # leader
    reader.nullable_string()  # the leader's URL
    reader.int64()  # offset of the configuration
    return version, _pairs(reader), _pairs(reader) if version else set()


def _pairs(reader: Reader) -> _Pairs:
    pairs: _Pairs = set()
    for _ in range(reader.array_length(compact=False)):
        name = sys.intern(reader.nullable_string() or "")
        pairs.update((name, reader.int32()) for _ in range(reader.array_length(compact=False)))
    return pairs


def _runs_of(tasks: Owned) -> str:
    """Return what a worker runs, connector by connector."""
    return "; ".join(_connector(name, numbers) for name, numbers in tasks)


def _connector(name: str, tasks: Sequence[int]) -> str:
    """Return what a worker runs of a connector: `jdbc-sink: connector, tasks 0, 1`."""
    own = [number for number in tasks if number != CONNECTOR_TASK]
    parts = ["connector"] if CONNECTOR_TASK in tasks else []
    parts += [f"task{'s' if len(own) > 1 else ''} {numbers(own)}"] if own else []
    return f"{name}: {', '.join(parts)}"


# -- groups of the consumer protocol (KIP-848)


def _read_consumer(entry: Any) -> GroupDescription:
    """Read a group of the consumer protocol (KIP-848), from ConsumerGroupDescribe."""
    members = []
    for member in entry.members:
        owned, target = topics_of(member.assignment), topics_of(member.target_assignment)
        has, is_to_have = pairs_of(owned), pairs_of(target)
        moves = len(is_to_have - has), len(has - is_to_have)
        at = member.rack_id or "", member.member_epoch
        members.append(MemberFacts(*who(member), owned, *at, len(has), len(is_to_have), *moves))
    return of_epochs(entry, members)


# -- share groups (KIP-932)


def _read_share(entry: Any) -> GroupDescription:
    """Read a share group. Its members own nothing: several may read the same partition."""
    members = []
    for member in entry.members:
        read = topics_of(member.assignment)
        at = member.rack_id or "", member.member_epoch
        runs = "; ".join(f"{topic}: {numbers(parts)}" for topic, parts in sorted(read))
        members.append(MemberFacts(*who(member), (), *at, count_of(read), runs=runs))
    return of_epochs(entry, members)


# -- streams groups (KIP-1071)


class TaskRole(StrEnum):
    """What a member does with a task: process records, keep a copy of its state, or prepare to take over."""

    ACTIVE = "active"
    STANDBY = "standby"
    WARM_UP = "warm-up"


def _read_streams(entry: Any) -> GroupDescription:
    """Read a streams group. A member owns the partitions that its active tasks read."""
    topology = entry.topology
    subtopologies = (topology.subtopologies or ()) if topology is not None else ()
    sources = {
        each.subtopology_id: [*each.source_topics, *(topic.name for topic in each.repartition_source_topics)]
        for each in subtopologies
    }
    members = []
    for member in entry.members:
        has, is_to_have = _tasks_of(member.assignment), _tasks_of(member.target_assignment)
        active = member.assignment.active_tasks
        owned = tuple(
            (sys.intern(topic), tuple(task.partitions))
            for task in active
            for topic in sources.get(task.subtopology_id, ())
        )
        members.append(
            MemberFacts(
                *who(member),
                owned,
                member.rack_id or "",
                member.member_epoch,
                len(has[TaskRole.ACTIVE]),
                len(is_to_have[TaskRole.ACTIVE]),
                sum(len(is_to_have[role] - has[role]) for role in TaskRole),
                sum(len(has[role] - is_to_have[role]) for role in TaskRole),
                "; ".join(f"{role} {_task_names(tasks)}" for role, tasks in has.items() if tasks),
            )
        )
    reads = "; ".join(f"{name}: {', '.join(sorted(topics))}" for name, topics in sorted(sources.items()))
    return of_epochs(entry, members, UNKNOWN_ID if topology is None else topology.epoch, sys.intern(reads))


def _tasks_of(assignment: Any) -> dict[TaskRole, _Pairs]:
    """Return the tasks of each role, as pairs of subtopology and number."""
    by_role = {
        TaskRole.ACTIVE: assignment.active_tasks,
        TaskRole.STANDBY: assignment.standby_tasks,
        TaskRole.WARM_UP: assignment.warmup_tasks,
    }
    return {
        role: {(task.subtopology_id, number) for task in tasks for number in task.partitions}
        for role, tasks in by_role.items()
    }


def _task_names(tasks: _Pairs) -> str:
    """Return tasks as Kafka Streams names them: `0_0, 0_1`."""
    return ", ".join(f"{subtopology}_{number}" for subtopology, number in sorted(tasks))


# -- what is asked of whom


def _request_of(message: str) -> Callable[[Sequence[str]], Any]:
    """Return the function that asks with the message of that name for groups by name."""

    def request(names: Sequence[str]) -> Any:
        # A tenth of the observer's import, and not every cluster has such groups.
        from kview.wire import group_messages

        return getattr(group_messages, message)(group_ids=list(names), include_authorized_operations=False)

    return request


CLASSIC = Kind(apis.DESCRIBE_GROUPS, _classic_request, _read_classic)

KINDS: Mapping[str, Kind] = {
    GroupType.CLASSIC: CLASSIC,
    GroupType.CONNECT: CLASSIC,
    GroupType.SIMPLE: CLASSIC,
    GroupType.CONSUMER: Kind(
        apis.CONSUMER_GROUP_DESCRIBE, _request_of("ConsumerGroupDescribeRequest"), _read_consumer
    ),
    GroupType.SHARE: Kind(apis.SHARE_GROUP_DESCRIBE, _request_of("ShareGroupDescribeRequest"), _read_share),
    GroupType.STREAMS: Kind(
        apis.STREAMS_GROUP_DESCRIBE, _request_of("StreamsGroupDescribeRequest"), _read_streams
    ),
}
"""How to describe groups of the kinds that Kafka 4 has. One of another kind is only listed."""
