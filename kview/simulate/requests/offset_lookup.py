"""Looks up the offset for a timestamp in a replica, as ListOffsets asks for it."""

from kview.simulate.brokers.replica import Replica
from kview.simulate.codes import ErrorCode
from kview.simulate.results import OffsetResult

EARLIEST, LATEST, MAX_TIMESTAMP = -2, -1, -3


def offset_of(replica: Replica, timestamp: int, debugging: bool, committed: bool) -> OffsetResult:
    """Return the offset for a timestamp in ms, or for one of the special timestamps above.

    It is below the high watermark; if `debugging`, below the replica's own log end; if `committed`, below the
    last stable offset.
    """
    log = replica.log
    if timestamp == EARLIEST:
        return OffsetResult(ErrorCode.NONE, -1, log.start, log.epoch_at(log.start))
    if timestamp == LATEST:
        latest = latest_of(replica, debugging, committed)
        if latest is None:
            return OffsetResult(ErrorCode.OFFSET_NOT_AVAILABLE)
        return OffsetResult(ErrorCode.NONE, -1, *latest)
    stop = _end(replica, debugging, committed)
    if timestamp == MAX_TIMESTAMP:
        offset, time_us = log.latest(stop)
    else:
        offset, time_us = log.first_at_or_after(timestamp * 1000, stop)
        if offset < 0 and latest_of(replica, debugging, committed) is None:
            return OffsetResult(ErrorCode.OFFSET_NOT_AVAILABLE)
    if offset < 0:
        return OffsetResult(ErrorCode.NONE)
    return OffsetResult(ErrorCode.NONE, time_us // 1000, offset, log.epoch_at(offset))


def latest_of(replica: Replica, debugging: bool, committed: bool) -> tuple[int, int] | None:
    """Return the latest offset and its leader epoch, or None if it is not available yet (KIP-207)."""
    if not debugging and replica.leading and replica.high_watermark < replica.epoch_start:
        return None
    stop = _end(replica, debugging, committed)
    return stop, replica.leader_epoch if stop or replica.leading else -1


def _end(replica: Replica, debugging: bool, committed: bool) -> int:
    """Return the offset below which somebody may read."""
    if debugging:
        return replica.log.end
    return replica.last_stable() if committed else replica.high_watermark
