"""Messages by which members of consumer, share and streams groups join and read, and by which share groups
are kept. The observer sends none of them, so its start does not make their classes."""

from kview.wire.schemas import message

ConsumerGroupHeartbeatRequest = message("ConsumerGroupHeartbeatRequest")
ConsumerGroupHeartbeatResponse = message("ConsumerGroupHeartbeatResponse")
"""API 68: a member of a consumer group joins, stays or leaves (KIP-848)."""

StreamsGroupHeartbeatRequest = message("StreamsGroupHeartbeatRequest")
StreamsGroupHeartbeatResponse = message("StreamsGroupHeartbeatResponse")
"""API 88: a member of a streams group joins, stays or leaves (KIP-1071)."""

ShareGroupHeartbeatRequest = message("ShareGroupHeartbeatRequest")
ShareGroupHeartbeatResponse = message("ShareGroupHeartbeatResponse")
"""API 76: a member of a share group joins, stays or leaves."""

ShareFetchRequest = message("ShareFetchRequest")
ShareFetchResponse = message("ShareFetchResponse")
"""API 78: a member of a share group acquires records, and acknowledges others."""

ShareAcknowledgeRequest = message("ShareAcknowledgeRequest")
ShareAcknowledgeResponse = message("ShareAcknowledgeResponse")
"""API 79: a member of a share group acknowledges records."""

InitializeShareGroupStateRequest = message("InitializeShareGroupStateRequest")
InitializeShareGroupStateResponse = message("InitializeShareGroupStateResponse")
"""API 83: a share group begins to read partitions."""

ReadShareGroupStateRequest = message("ReadShareGroupStateRequest")
ReadShareGroupStateResponse = message("ReadShareGroupStateResponse")
"""API 84: what a share group has read of partitions, for their new leader."""

WriteShareGroupStateRequest = message("WriteShareGroupStateRequest")
WriteShareGroupStateResponse = message("WriteShareGroupStateResponse")
"""API 85: what has changed in that."""

DeleteShareGroupStateRequest = message("DeleteShareGroupStateRequest")
DeleteShareGroupStateResponse = message("DeleteShareGroupStateResponse")
"""API 86: a share group reads partitions no more."""

ReadShareGroupStateSummaryRequest = message("ReadShareGroupStateSummaryRequest")
ReadShareGroupStateSummaryResponse = message("ReadShareGroupStateSummaryResponse")
"""API 87: where a share group starts in partitions."""

AlterShareGroupOffsetsRequest = message("AlterShareGroupOffsetsRequest")
AlterShareGroupOffsetsResponse = message("AlterShareGroupOffsetsResponse")
"""API 91: a share group is to start elsewhere."""

DeleteShareGroupOffsetsRequest = message("DeleteShareGroupOffsetsRequest")
DeleteShareGroupOffsetsResponse = message("DeleteShareGroupOffsetsResponse")
"""API 92: what a share group has read of topics is forgotten."""
