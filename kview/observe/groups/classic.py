"""Groups that DescribeGroups knows: of consumers, of Connect's workers, and of clients of other kinds."""

import struct
import sys
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from kafka.protocol.admin import DescribeGroupsRequest
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment

from kview.model.states import GroupType
from kview.observe.groups.connect import connector_tasks, runs_of
from kview.observe.groups.members import (
    MOST_ASSIGNMENTS,
    GroupDescription,
    MemberFacts,
    Owned,
    count_of,
    ordered,
    who,
)


def classic_request(names: Sequence[str]) -> Any:
    """Return the request (DescribeGroups) for groups of the classic protocol."""
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


def read_classic(entry: Any) -> GroupDescription:
    """Read a group of DescribeGroups: of consumers, of Connect's workers, or of clients of another kind."""
    of_consumers = entry.protocol_type == GroupType.CONSUMER
    of_workers = entry.protocol_type == GroupType.CONNECT
    members = []
    for member in entry.members:
        raw = bytes(member.member_assignment or b"")
        owned = owned_partitions(raw) if of_consumers and raw else ()
        runs = connector_tasks(bytes(member.member_metadata or b""), raw) if of_workers and raw else ()
        members.append(
            MemberFacts(
                *who(member),
                owned,
                assigned=count_of(owned or runs),
                runs=runs_of(runs),
                connectors=tuple(name for name, _ in runs),
            )
        )
    return GroupDescription(entry.group_state, ordered(members), sys.intern(entry.protocol_data or ""))
