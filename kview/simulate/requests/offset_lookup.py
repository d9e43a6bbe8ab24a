"""Looks up the offset for a timestamp in a replica, as ListOffsets asks for it."""

from kview.simulate.brokers.replica import Replica
from kview.simulate.codes import ErrorCode
from kview.simulate.results import OffsetResult

EARLIEST, LATEST, MAX_TIMESTAMP = -2, -1, -3


def offset_of(replica: Replica, timestamp: int, debugging: bool) -> OffsetResult:
    """Return the offset for a timestamp in ms, or for one of the special timestamps above.

    It is below the high watermark or, if `debugging`, below the replica's own log end.
    """
    log = replica.log
    if timestamp == EARLIEST:
        return OffsetResult(ErrorCode.NONE, -1, log.start, log.epoch_at(log.start))
    if timestamp == LATEST:
        latest = latest_of(replica, debugging)
        if latest is None:
            return OffsetResult(ErrorCode.OFFSET_NOT_AVAILABLE)
        return OffsetResult(ErrorCode.NONE, -1, *latest)
    stop = log.end if debugging else replica.high_watermark
    if timestamp == MAX_TIMESTAMP:
        offset, time_us = log.latest(stop)
    else:
        offset, time_us = log.first_at_or_after(timestamp * 1000, stop)
        if offset < 0 and latest_of(replica, debugging) is None:
            return OffsetResult(ErrorCode.OFFSET_NOT_AVAILABLE)
    if offset < 0:
        return OffsetResult(ErrorCode.NONE)
    return OffsetResult(ErrorCode.NONE, time_us // 1000, offset, log.epoch_at(offset))


def latest_of(replica: Replica, debugging: bool) -> tuple[int, int] | None:
    """Return the latest offset and its leader epoch, or None if it is not available yet (KIP-207)."""
    if debugging:
        stop = replica.log.end
    elif replica.leading and replica.high_watermark < replica.epoch_start:
        return None
    else:
        stop = replica.high_watermark
    return stop, replica.leader_epoch if stop else -1
