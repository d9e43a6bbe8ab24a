"""ListOffsets (2), versions 1–11: offsets by time, the earliest, the latest, and each replica's own log end.

v2 adds the isolation level, v4 leader epochs, v5 OFFSET_NOT_AVAILABLE instead of LEADER_NOT_AVAILABLE
(KIP-207), v6 is flexible, v7 adds −3 (the record with the latest timestamp), v8 −4 (earliest on the leader's
own disk, here simply the earliest), v9 −5 and v11 −6 (tiered storage, which is left out: no offset), v10 the
client's timeout. With replica id −2, the debugging replica, every replica answers with its own log end, and
so do followers. The response is packed by hand, because an observer asks for every replica of every
partition.
"""

from struct import Struct
from typing import Any

from kafka.protocol.consumer import ListOffsetsRequest

from kview.serve.apis.fetch import unsigned
from kview.serve.call import Api, Call
from kview.simulate.codes import ErrorCode
from kview.simulate.results import OffsetResult

EARLIEST, EARLIEST_LOCAL = -2, -4
TIERED = (-5, -6)
OFFSET_NOT_AVAILABLE_FROM = 5

_THROTTLE = Struct(">i")
_COUNT = Struct(">i")
_LENGTH = Struct(">h")
_PARTITION_V1 = Struct(">ihqq")  # index, error, timestamp, offset
_PARTITION_V4 = Struct(">ihqqi")  # with the leader epoch
_PARTITION_V6 = Struct(">ihqqiB")  # with empty tagged fields


def list_offsets(call: Call) -> None:
    """Answer for each partition from this broker's own log."""
    request, version = call.request, call.version
    list_offset, broker, topics = call.cluster.list_offset, call.broker, call.image.topics
    flexible = version >= 6
    pieces = [_THROTTLE.pack(0) if version >= 2 else b"", _count(len(request.topics), flexible)]
    for entry in request.topics:
        name = entry.name.encode()
        pieces.append((unsigned(len(name) + 1) if flexible else _LENGTH.pack(len(name))) + name)
        pieces.append(_count(len(entry.partitions), flexible))
        known = entry.name in topics
        for p in entry.partitions:
            index, timestamp = p.partition_index, p.timestamp
            if not known:
                result = OffsetResult(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            elif timestamp in TIERED:
                result = OffsetResult(ErrorCode.NONE)
            else:
                asked = EARLIEST if timestamp == EARLIEST_LOCAL else timestamp
                epoch = p.current_leader_epoch if version >= 4 else -1
                result = list_offset(broker, entry.name, index, asked, request.replica_id, epoch)
            pieces.append(pack_partition(version, index, result))
        if flexible:
            pieces.append(b"\0")
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


def _count(number: int, flexible: bool) -> bytes:
    return unsigned(number + 1) if flexible else _COUNT.pack(number)


APIS = (Api(2, ListOffsetsRequest, (1, 11), list_offsets),)
