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

StreamsGroupHeartbeatRequest = _message("StreamsGroupHeartbeatRequest")
StreamsGroupHeartbeatResponse = _message("StreamsGroupHeartbeatResponse")
"""API 88: a member of a streams group joins, stays or leaves (KIP-1071)."""

StreamsGroupDescribeRequest = _message("StreamsGroupDescribeRequest")
StreamsGroupDescribeResponse = _message("StreamsGroupDescribeResponse")
"""API 89: streams groups (KIP-1071)."""

DescribeShareGroupOffsetsRequest = _message("DescribeShareGroupOffsetsRequest")
DescribeShareGroupOffsetsResponse = _message("DescribeShareGroupOffsetsResponse")
"""API 90: where share groups start, and from version 1 on their lag."""

ShareGroupHeartbeatRequest = _message("ShareGroupHeartbeatRequest")
ShareGroupHeartbeatResponse = _message("ShareGroupHeartbeatResponse")
"""API 76: a member of a share group joins, stays or leaves."""

ShareFetchRequest = _message("ShareFetchRequest")
ShareFetchResponse = _message("ShareFetchResponse")
"""API 78: a member of a share group acquires records, and acknowledges others."""

ShareAcknowledgeRequest = _message("ShareAcknowledgeRequest")
ShareAcknowledgeResponse = _message("ShareAcknowledgeResponse")
"""API 79: a member of a share group acknowledges records."""

InitializeShareGroupStateRequest = _message("InitializeShareGroupStateRequest")
InitializeShareGroupStateResponse = _message("InitializeShareGroupStateResponse")
"""API 83: a share group begins to read partitions."""

ReadShareGroupStateRequest = _message("ReadShareGroupStateRequest")
ReadShareGroupStateResponse = _message("ReadShareGroupStateResponse")
"""API 84: what a share group has read of partitions, for their new leader."""

WriteShareGroupStateRequest = _message("WriteShareGroupStateRequest")
WriteShareGroupStateResponse = _message("WriteShareGroupStateResponse")
"""API 85: what has changed in that."""

DeleteShareGroupStateRequest = _message("DeleteShareGroupStateRequest")
DeleteShareGroupStateResponse = _message("DeleteShareGroupStateResponse")
"""API 86: a share group reads partitions no more."""

ReadShareGroupStateSummaryRequest = _message("ReadShareGroupStateSummaryRequest")
ReadShareGroupStateSummaryResponse = _message("ReadShareGroupStateSummaryResponse")
"""API 87: where a share group starts in partitions."""

AlterShareGroupOffsetsRequest = _message("AlterShareGroupOffsetsRequest")
AlterShareGroupOffsetsResponse = _message("AlterShareGroupOffsetsResponse")
"""API 91: a share group is to start elsewhere."""

DeleteShareGroupOffsetsRequest = _message("DeleteShareGroupOffsetsRequest")
DeleteShareGroupOffsetsResponse = _message("DeleteShareGroupOffsetsResponse")
"""API 92: what a share group has read of topics is forgotten."""
