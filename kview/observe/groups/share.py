"""Share groups (KIP-932): their members, and where they start on each partition."""

import sys
from collections.abc import Iterable
from typing import Any, NamedTuple

from kview.model.units import UNKNOWN
from kview.observe.groups.members import (
    GroupDescription,
    MemberFacts,
    count_of,
    numbers,
    of_epochs,
    topics_of,
    who,
)


class ShareRow(NamedTuple):
    """Where a share group starts on a partition, as in `ShareOffsets`."""

    topic: str
    partition: int
    start_offset: int
    lag: int


def read_share(entry: Any) -> GroupDescription:
    """Read a share group. Its members own nothing: several may read the same partition."""
    members = []
    for member in entry.members:
        read = topics_of(member.assignment)
        at = member.rack_id or "", member.member_epoch
        runs = "; ".join(f"{topic}: {numbers(parts)}" for topic, parts in sorted(read))
        members.append(MemberFacts(*who(member), (), *at, count_of(read), runs=runs))
    return of_epochs(entry, members)


def share_rows(topics: Iterable[Any]) -> tuple[ShareRow, ...]:
    """Return where a share group starts. A partition that nobody has read yet has no start."""
    return tuple(
        ShareRow(
            sys.intern(topic.topic_name),
            part.partition_index,
            part.start_offset if part.start_offset >= 0 else UNKNOWN,
            part.lag if part.lag is not None and part.lag >= 0 else UNKNOWN,
        )
        for topic in sorted(topics, key=lambda topic: topic.topic_name)
        for part in sorted(topic.partitions, key=lambda part: part.partition_index)
        if not part.error_code
    )
