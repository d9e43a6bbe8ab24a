"""How groups of each kind are described: what to ask their coordinators, and what the answers say.

DescribeGroups knows classic groups alone. Of others it says that they do not exist.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from kview.model.states import GroupType
from kview.observe import apis
from kview.observe.groups.classic import classic_request, read_classic
from kview.observe.groups.consumer import read_consumer
from kview.observe.groups.members import GroupDescription
from kview.observe.groups.share import read_share
from kview.observe.groups.streams import read_streams
from kview.wire.group_descriptions import (
    ConsumerGroupDescribeRequest,
    ShareGroupDescribeRequest,
    StreamsGroupDescribeRequest,
)


class Kind(NamedTuple):
    """How groups of a kind are described."""

    api: int
    request: Callable[[Sequence[str]], Any]
    read: Callable[[Any], GroupDescription]


def request_of(message: Any) -> Callable[[Sequence[str]], Any]:
    """Return the function that asks with that message for groups by name."""
    return lambda names: message(group_ids=list(names), include_authorized_operations=False)


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
