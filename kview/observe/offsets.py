"""The requests for offsets, as coroutines that put their answer or failure into the state."""

from typing import Any

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from kview.model.failures import Cause, FailureKind, Part
from kview.model.snapshot import Longs
from kview.model.units import UNKNOWN
from kview.observe import apis
from kview.observe.budget import Share
from kview.observe.causes import LinkError, Refused
from kview.observe.layout import Layout, Rows
from kview.observe.link import Link
from kview.observe.loop import Loop
from kview.observe.state import Readings, State
from kview.wire import list_offsets
from kview.wire.list_offsets import ListOffsetsAnswer

MOST_OFFSET = 2**62
"""A larger offset is nonsense, and sums of such offsets would overflow. No log gets there in 10,000 years at
10,000,000 records per second."""


class Wanted(Struct, frozen=True):
    """Which offset of each partition a request asks for. `name` tells apart what is asked of one broker."""

    name: str
    timestamp: int
    replica_id: int
    read_committed: bool = False


WATERMARKS = Wanted("watermarks", list_offsets.LATEST, list_offsets.CONSUMER)
LAST_STABLE = Wanted("stable", list_offsets.LATEST, list_offsets.CONSUMER, read_committed=True)
STARTS = Wanted("starts", list_offsets.EARLIEST, list_offsets.CONSUMER)
ENDS = Wanted("ends", list_offsets.LATEST, list_offsets.DEBUGGING_REPLICA)
FOLLOWERS_ENDS = Wanted("followers", list_offsets.LATEST, list_offsets.DEBUGGING_REPLICA)


class OffsetRequests(Struct):
    """The requests for offsets of one observation.

    Network errors are not raised but become failures.
    """

    loop: Loop
    state: State
    debugging: bool | None = None
    """Whether followers answer the debugging replica id. None until a follower was asked."""
    _prepared: dict[tuple[int, Wanted], tuple[Any, Any]] = field(default_factory=dict)

    async def followers(self, link: Link, broker: int, share: Share, whole: bool) -> None:
        """Ask a broker for the log ends of the replicas with which it follows."""
        layout = share.layout
        request = self._list_offsets(link, broker, FOLLOWERS_ENDS, layout, share.follows, whole)
        try:
            answer, at_ms = await self._ask(link, request)
        except (LinkError, Refused) as error:
            self.state.failed(Part.LOG_ENDS, broker, error.cause)
            return
        self.state.succeeded(Part.LOG_ENDS, broker, at_ms)
        if not self.state.still(layout):
            return
        errors = answer.error
        if (errors == 0).any():
            self.debugging = True
        elif self.debugging is None and len(errors) and (errors == apis.NOT_LEADER).all():
            self.debugging = False
        if self.debugging:
            read_replicas(self.state.readings, self.state.layout, broker, answer, at_ms)

    async def log_starts(self, link: Link, broker: int, layout: Layout, rows: Rows) -> None:
        """Ask a broker for the log starts of partitions that it leads: `rows` of `layout`.

        If it does not answer, its failure to answer the rest is noted, too.
        """
        request = self._list_offsets(link, broker, STARTS, layout, rows, False)
        try:
            answer, at_ms = await self._ask(link, request)
        except (LinkError, Refused):
            return
        if self.state.still(layout):
            read_log_start(self.state.readings, self.state.layout, answer, at_ms)

    async def leaders(
        self, link: Link, broker: int, share: Share, whole: bool, starting: Rows, stable: Rows
    ) -> None:
        """Ask a broker for high watermarks and log ends of the partitions it leads, pipelined together.

        `starting` and `stable` are the rows among them whose log starts and last stable offsets are asked
        for, too.
        """
        layout, clock_sets = share.layout, self.state.clock_sets

        def ask(wanted: Wanted, rows: Rows) -> Any:
            reused = whole and len(rows) == len(share.leads)
            return self._ask(link, self._list_offsets(link, broker, wanted, layout, rows, reused))

        watermarks = ask(WATERMARKS, share.leads)
        ends = starts = stables = None
        if self.debugging is not False and not share.briefly:
            ends = ask(ENDS, share.leads)
        if len(starting):
            starts = ask(STARTS, starting)
        if len(stable):
            stables = ask(LAST_STABLE, stable)
        try:
            first = await watermarks
            second = await ends if ends else None
            third = await starts if starts else None
            fourth = await stables if stables else None
        except (LinkError, Refused) as error:
            self.state.failed(Part.OFFSETS, broker, error.cause)
            return
        if not self.state.still(layout) or clock_sets != self.state.clock_sets:
            return  # or the first answer has a time of the old clock
        now = self.state.layout
        read_leader(self.state.readings, now, broker, first, second)
        if third:
            read_log_start(self.state.readings, now, *third)
        if fourth:
            read_last_stable(self.state.readings, now, *fourth)
        self.state.succeeded(Part.OFFSETS, broker, first[1])

    def _list_offsets(
        self, link: Link, broker: int, wanted: Wanted, layout: Layout, rows: Rows, whole: bool
    ) -> Any:
        """Return a request for `rows` of `layout`, which need not be the current one any more.

        The request for a `whole` share is reused until the layout changes.
        """
        version = list_offsets.best_version(*link.versions[list_offsets.API_KEY])
        made_for = (layout.leader, layout.replicas, layout.topic, layout.partition, version)
        had, request = self._prepared.get((broker, wanted), (None, None))
        if whole and had is not None and all(a is b for a, b in zip(had, made_for, strict=True)):
            return request
        request = list_offsets.request(
            version, layout.by_topic(rows), wanted.timestamp, wanted.replica_id, wanted.read_committed
        )
        if whole:
            self._prepared[broker, wanted] = (made_for, request)
        return request

    def _ask(self, link: Link, request: Any) -> Any:
        """Send the request at once, so that several requests go out together, and return a future.

        The future raises LinkError, or Refused for an answer that is nonsense.
        """

        async def ask() -> tuple[ListOffsetsAnswer, int]:
            answer, at_ms = await link.ask(request)
            return checked(answer), at_ms

        return self.loop.begin(ask)


def checked(answer: ListOffsetsAnswer) -> ListOffsetsAnswer:
    """Return an answer whose offsets can be offsets. Raises Refused."""
    if (answer.offset > MOST_OFFSET).any():
        raise Refused(Cause(FailureKind.MALFORMED))
    return answer


def answered_rows(layout: Layout, answer: ListOffsetsAnswer) -> tuple[Rows, NDArray[np.int16], Longs]:
    """Return an answer's partition rows, error codes and offsets, for the partitions in the layout."""
    rows = layout.rows_of(answer.names, answer.counts, answer.partition)
    there = rows >= 0
    return rows[there], answer.error[there], answer.offset[there]


def read_replicas(
    readings: Readings, layout: Layout, broker: int, answer: ListOffsetsAnswer, at_ms: int
) -> None:
    """Store the log ends that `broker` answered for its own replicas."""
    _store_replicas(readings, layout, broker, *answered_rows(layout, answer), at_ms)


def _store_replicas(
    readings: Readings,
    layout: Layout,
    broker: int,
    rows: Rows,
    errors: NDArray[np.int16],
    offsets: Longs,
    at_ms: int,
) -> None:
    places = layout.replica_rows_of(broker, rows)
    good = (errors == 0) & (offsets >= 0) & (places >= 0)
    readings.replica_log_end[places[good]] = offsets[good]
    readings.replica_log_end_ms[places[good]] = at_ms


def read_log_start(readings: Readings, layout: Layout, answer: ListOffsetsAnswer, at_ms: int) -> None:
    """Store a leader's log starts."""
    rows, errors, offsets = answered_rows(layout, answer)
    good = (errors == 0) & (offsets >= 0)
    readings.log_start[rows[good]] = offsets[good]
    readings.log_start_ms[rows[good]] = at_ms


def read_last_stable(readings: Readings, layout: Layout, answer: ListOffsetsAnswer, at_ms: int) -> None:
    """Store a leader's last stable offsets, which were read right after its high watermarks."""
    rows, errors, offsets = answered_rows(layout, answer)
    good = (errors == 0) & (offsets >= 0)
    rows, offsets = rows[good], offsets[good]
    held = offsets < readings.high_watermark[rows]
    still = (offsets == readings.last_stable[rows]) & (readings.last_stable_since_ms[rows] != UNKNOWN)
    since_ms = np.where(still, readings.last_stable_since_ms[rows], at_ms)
    readings.last_stable[rows] = offsets
    readings.last_stable_ms[rows] = at_ms
    readings.last_stable_since_ms[rows] = np.where(held, since_ms, UNKNOWN)


def read_leader(
    readings: Readings,
    layout: Layout,
    broker: int,
    high_watermarks: tuple[ListOffsetsAnswer, int],
    log_ends: tuple[ListOffsetsAnswer, int] | None,
) -> None:
    """Store a leader's high watermarks and log ends, each with the time it was received.

    For a partition, either both values are stored or neither. A new leader knows its log end before its high
    watermark (KIP-207), and a new log end next to an old watermark would look like uncommitted records.
    """
    answer, at_ms = high_watermarks
    rows, errors, offsets = answered_rows(layout, answer)
    readings.error_code[rows] = errors
    good = (errors == 0) & (offsets >= 0)
    if log_ends is not None:
        ends, ends_ms = log_ends
        end_rows, end_errors, end_offsets = answered_rows(layout, ends)
        _store_replicas(readings, layout, broker, end_rows, end_errors, end_offsets, ends_ms)
        end_good = (end_errors == 0) & (end_offsets >= 0)
        if np.array_equal(rows, end_rows):  # as almost always, and much quicker
            good &= end_good
            end_good = good
        else:
            both = np.intersect1d(rows[good], end_rows[end_good])
            good &= np.isin(rows, both)
            end_good &= np.isin(end_rows, both)
        readings.log_end[end_rows[end_good]] = end_offsets[end_good]
        readings.log_end_ms[end_rows[end_good]] = ends_ms
    readings.high_watermark[rows[good]] = offsets[good]
    readings.high_watermark_ms[rows[good]] = at_ms


def ended_at(
    readings: Readings, layout: Layout, answer: ListOffsetsAnswer, timestamp_ms: int
) -> tuple[Rows, Longs]:
    """Return the partition rows of an answer about `timestamp_ms`, and where the logs ended then.

    If there is no record as young as that, the log ended where it ends now. The offset is UNKNOWN if nobody
    can tell.
    """
    rows, errors, offsets = answered_rows(layout, answer)
    young = np.where(readings.log_end_ms[rows] >= timestamp_ms, readings.log_end[rows], UNKNOWN)
    good = errors == 0
    return rows[good], np.where(offsets >= 0, offsets, young)[good]
