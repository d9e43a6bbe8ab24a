"""Messages about groups that DescribeGroups does not know: consumer, share and streams groups."""

from types import new_class
from typing import Any

from kafka.protocol.api_message import ApiMessage


def _message(name: str) -> Any:
    """Return kafka-python's class of the message in kview.wire.schemas that has this name."""
    return new_class(name, (ApiMessage,), {"load_json": "kview.wire.schemas"})


ConsumerGroupHeartbeatRequest = _message("ConsumerGroupHeartbeatRequest")
ConsumerGroupHeartbeatResponse = _message("ConsumerGroupHeartbeatResponse")
"""API 68: a member of a consumer group joins, stays or leaves (KIP-848)."""

ConsumerGroupDescribeRequest = _message("ConsumerGroupDescribeRequest")
ConsumerGroupDescribeResponse = _message("ConsumerGroupDescribeResponse")
"""API 69: consumer groups."""

ShareGroupDescribeRequest = _message("ShareGroupDescribeRequest")
ShareGroupDescribeResponse = _message("ShareGroupDescribeResponse")
"""API 77: share groups (KIP-932)."""

StreamsGroupDescribeRequest = _message("StreamsGroupDescribeRequest")
StreamsGroupDescribeResponse = _message("StreamsGroupDescribeResponse")
"""API 89: streams groups (KIP-1071)."""

DescribeShareGroupOffsetsRequest = _message("DescribeShareGroupOffsetsRequest")
DescribeShareGroupOffsetsResponse = _message("DescribeShareGroupOffsetsResponse")
"""API 90: where share groups start, and from version 1 on their lag."""
