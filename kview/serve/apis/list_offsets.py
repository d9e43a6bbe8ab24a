"""ListOffsets (2), versions 1–11: returns offsets by time, the earliest, the latest, or a replica's log end.

v2 adds the isolation level, v4 leader epochs, v5 OFFSET_NOT_AVAILABLE instead of LEADER_NOT_AVAILABLE
(KIP-207), v6 is flexible, v7 adds −3 (the record with the latest timestamp), v8 −4 (earliest on the leader's
own disk, here simply the earliest), v9 −5 and v11 −6 (tiered storage, which is left out, so the answer has no
offset), v10 the client's timeout. With replica id −2 (the debugging replica), every replica answers with its
own log end, even a follower. The response is packed by hand, because an observer asks for every replica of
every partition.
"""

from struct import Struct
from typing import Any

from kafka.protocol.consumer import ListOffsetsRequest

from kview.serve.call import Api, Call, Steps
from kview.simulate.codes import ErrorCode
from kview.simulate.results import OffsetResult
from kview.wire.primitives import INT32, array_length, string

EARLIEST, EARLIEST_LOCAL = -2, -4
TIERED = (-5, -6)
OFFSET_NOT_AVAILABLE_FROM = 5
NEVER = 1 << 15
PIECES_PER_STEP = 32
"""A time is looked up in a step of its own: it may decompress a batch."""
MEANT_FROM = {-1: 0, -2: 0, -3: 7, -4: 8, -5: 9, -6: 11}
"""Negative timestamps, which stand for something, and the versions that give them this meaning. Others are
answered with UNSUPPORTED_VERSION."""

_PARTITION_V1 = Struct(">ihqq")  # index, error, timestamp, offset
_PARTITION_V4 = Struct(">ihqqi")  # with the leader epoch
_PARTITION_V6 = Struct(">ihqqiB")  # with empty tagged fields


def list_offsets(call: Call) -> Steps:
    """Answer for each partition from this broker's own log."""
    request, version = call.request, call.version
    list_offset, broker, topics = call.cluster.records.list_offset, call.broker, call.image.topics
    flexible = version >= 6
    pieces = [INT32.pack(0) if version >= 2 else b"", array_length(len(request.topics), flexible)]
    for entry in request.topics:
        pieces.append(string(entry.name, flexible))
        pieces.append(array_length(len(entry.partitions), flexible))
        known = entry.name in topics
        for p in entry.partitions:
            index, timestamp = p.partition_index, p.timestamp
            if not known:
                result = OffsetResult(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            elif timestamp < 0 and version < MEANT_FROM.get(timestamp, NEVER):
                result = OffsetResult(ErrorCode.UNSUPPORTED_VERSION)
            elif timestamp in TIERED:
                result = OffsetResult(ErrorCode.NONE)
            else:
                asked = EARLIEST if timestamp == EARLIEST_LOCAL else timestamp
                epoch = p.current_leader_epoch if version >= 4 else -1
                result = list_offset(broker, entry.name, index, asked, request.replica_id, epoch)
            pieces.append(pack_partition(version, index, result))
            if timestamp >= 0 or not len(pieces) % PIECES_PER_STEP:
                yield
        if flexible:
            pieces.append(b"\0")
        yield
    if flexible:
        pieces.append(b"\0")
    call.answer_packed(pieces)


def pack_partition(version: int, index: int, result: OffsetResult) -> bytes:
    """Return one partition of a response, byte for byte as the codec would encode it."""
    error: Any = result.error_code
    if error == ErrorCode.OFFSET_NOT_AVAILABLE and version < OFFSET_NOT_AVAILABLE_FROM:
        error = ErrorCode.LEADER_NOT_AVAILABLE
    _, timestamp, offset, epoch = result
    if version >= 6:
        return _PARTITION_V6.pack(index, error, timestamp, offset, epoch, 0)
    if version >= 4:
        return _PARTITION_V4.pack(index, error, timestamp, offset, epoch)
    return _PARTITION_V1.pack(index, error, timestamp, offset)


APIS = (Api(2, ListOffsetsRequest, (1, 11), list_offsets),)
