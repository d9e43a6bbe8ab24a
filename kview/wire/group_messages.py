"""Messages that describe groups DescribeGroups does not know: consumer, share and streams groups."""

from kview.wire.schemas import message

ConsumerGroupDescribeRequest = message("ConsumerGroupDescribeRequest")
ConsumerGroupDescribeResponse = message("ConsumerGroupDescribeResponse")
"""API 69: consumer groups."""

ShareGroupDescribeRequest = message("ShareGroupDescribeRequest")
ShareGroupDescribeResponse = message("ShareGroupDescribeResponse")
"""API 77: share groups (KIP-932)."""

StreamsGroupDescribeRequest = message("StreamsGroupDescribeRequest")
StreamsGroupDescribeResponse = message("StreamsGroupDescribeResponse")
"""API 89: streams groups (KIP-1071)."""

DescribeShareGroupOffsetsRequest = message("DescribeShareGroupOffsetsRequest")
DescribeShareGroupOffsetsResponse = message("DescribeShareGroupOffsetsResponse")
"""API 90: where share groups start, and from version 1 on their lag."""
