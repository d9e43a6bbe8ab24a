"""The records of a partition that somebody asks for.

Nothing is written, no group is joined, no offset is committed.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from kview.model.inspection import (
    NO_INSPECTION_FAILURE,
    Cost,
    Damage,
    DamageKind,
    InspectionFailure,
    Isolation,
    Record,
    RecordsAnswer,
    RecordsRequest,
    StartKind,
)
from kview.model.inspection import InspectionFailureKind as Kind
from kview.model.units import UNKNOWN
from kview.observe.asking import Asking, OutOfTime, Ticket
from kview.observe.partition import OFFSET_OUT_OF_RANGE, ErrorCode, Failed, PartitionReader
from kview.observe.record_answers import DAMAGE_MAX, Keeper, Part, read
from kview.wire import list_offsets

FIRST_BYTES = 64 << 10
"""What the first fetch asks for. Each further one asks for four times as much, up to the request's limit."""
ANSWER_BYTES = 4 << 20
"""Limit of the bytes of records fetched for an answer. The batch that exceeds it is still used."""
MOST_FETCHES = 24
"""Limit of the fetches for an answer, such as from a compacted log with few records left."""


class Peek:
    """One request for records. `records` and what else is known are those read so far."""

    def __init__(self, asking: Asking, request: RecordsRequest, ticket: Ticket, leader: int) -> None:
        self._asking = asking
        self._request = request
        self._partition = PartitionReader(asking, request.topic, request.partition, ticket, leader)
        self._committed = request.isolation is Isolation.READ_COMMITTED
        self._records: list[Record] = []
        self._damage: dict[int, Damage] = {}
        self._aborted: set[int] = set()
        self._control: set[int] = set()
        self._log_start = self._end = self._watermark = UNKNOWN
        self._fetched = self._fetches = 0
        self._over_budget = False
        self._keeper = Keeper()

    async def run(self) -> InspectionFailure:
        """Read the records, and return what went wrong, if anything. Raises Cancelled."""
        try:
            await self._partition.find()
            await self._offsets_again(self._read)
        except Failed as failed:
            return failed.failure
        except OutOfTime:
            return InspectionFailure(Kind.TIMEOUT, self._partition.leader)
        return NO_INSPECTION_FAILURE

    async def first_record(self) -> tuple[int, int, InspectionFailure]:
        """Return the offset and the timestamp (epoch ms) of the first record with one, and what went wrong.

        They are UNKNOWN if there is none. No record is fetched. Raises Cancelled.
        """
        try:
            await self._partition.find()
            offset, timestamp_ms = await self._partition.listed_offset(0, self._committed)
        except Failed as failed:
            return UNKNOWN, UNKNOWN, failed.failure
        except OutOfTime:
            return UNKNOWN, UNKNOWN, InspectionFailure(Kind.TIMEOUT, self._partition.leader)
        if offset < 0 or timestamp_ms < 0:
            return UNKNOWN, UNKNOWN, NO_INSPECTION_FAILURE
        return offset, timestamp_ms, NO_INSPECTION_FAILURE

    def answer(self, failure: InspectionFailure, cost: Cost, asked_ms: int) -> RecordsAnswer:
        """Return what has been read."""
        return RecordsAnswer(
            self._request,
            tuple(self._records),
            tuple(sorted(self._damage.values(), key=lambda damage: damage.offset)),
            self._log_start,
            self._end,
            len(self._aborted),
            len(self._control),
            self._over_budget,
            failure,
            self._partition.leader,
            cost,
            asked_ms,
            self._watermark,
        )

    async def _offsets_again(self, work: Callable[[], Any]) -> None:
        """Do `work` after asking which offsets there are, and once more if retention has moved them."""
        for last in (False, True):
            self._log_start = await self._offset(list_offsets.EARLIEST)
            self._end = await self._offset(list_offsets.LATEST)
            if self._committed:
                self._watermark, _ = await self._partition.listed_offset(list_offsets.LATEST, committed=False)
            try:
                await work()
            except ErrorCode as error:
                asked = self._request.start
                if error.code != OFFSET_OUT_OF_RANGE:
                    raise self._partition.failed(error) from error
                if last or asked.kind is StartKind.OFFSET:
                    offset = asked.value if asked.kind is StartKind.OFFSET else UNKNOWN
                    raise Failed(Kind.OFFSET_OUT_OF_RANGE, self._partition.leader, offset=offset) from error
                self._records.clear()
            else:
                return

    async def _read(self) -> None:
        start = self._request.start
        if start.kind is StartKind.LATEST:
            await self._newest()
        elif start.kind is StartKind.OFFSET:
            await self._from(start.value)
        else:
            offset = await self._offset(start.value)
            if offset >= 0:
                await self._from(offset)

    async def _from(self, offset: int) -> None:
        """Read forward. The broker is asked even if there is nothing, because it knows the range."""
        first = True
        while first or (offset < self._end and len(self._records) < self._request.count):
            if not self._may_fetch():
                return
            missing = self._request.count - len(self._records)
            part = await self._fetch(offset, offset, self._end if offset < self._end else offset, missing)
            self._take(part)
            self._records += part.records
            if part.next <= offset or part.broken:  # nothing came, or nothing new
                return
            offset, first = part.next, False

    async def _newest(self) -> None:
        """Read backward, window by window, of which the first one shows how large records are."""
        high, window = self._end, 1
        while high > self._log_start and len(self._records) < self._request.count:
            low = max(self._log_start, high - window)
            fetched = self._fetched
            records, first, complete = await self._window(low, high)
            if not complete and self._records:
                return  # there would be a gap before the records already read
            self._records = records + self._records
            if not complete:
                return
            first = min(low, first)
            per_offset = max(1, (self._fetched - fetched) // max(1, high - first))
            window = max(2 * window, 2 * (self._request.count - len(self._records)))
            window = max(1, min(window, self._request.request_bytes // per_offset))
            high = first

    async def _window(self, low: int, high: int) -> tuple[list[Record], int, bool]:
        """Return the last records with offsets below `high`, read from `low` on.

        Returns also the first offset read, and whether all of them were read. The batch at `low` may begin
        before it.
        """
        records: list[Record] = []
        missing = self._request.count - len(self._records)
        at, first = low, high
        while at < high:
            if not self._may_fetch():
                return records, first, False
            part = await self._fetch(at, self._log_start, high, missing, newest=True)
            self._take(part)
            records = (records + part.records)[-missing:]
            first = min(first, part.first) if part.first != UNKNOWN else first
            if part.next <= at or part.broken:  # nothing came, or nothing new
                return records, min(low, first), True
            at = part.next
        return records, first, True

    def _may_fetch(self) -> bool:
        """Return whether the budget allows another fetch."""
        if self._fetched < ANSWER_BYTES and self._fetches < MOST_FETCHES:
            return True
        self._over_budget = True
        return False

    def _take(self, part: Part) -> None:
        self._aborted |= part.aborted
        self._control |= part.control
        for damage in part.damage:
            if len(self._damage) < DAMAGE_MAX:
                self._damage[damage.offset] = damage

    async def _fetch(self, offset: int, low: int, high: int, most: int, newest: bool = False) -> Part:
        """Fetch from `offset` on, and read at most `most` records from `low` up to below `high`."""
        limit = min(self._request.request_bytes, FIRST_BYTES << 2 * self._fetches)

        self._fetches += 1
        answer = await self._partition.fetch(offset, limit, self._request.isolation)
        data, aborted = answer.records, answer.aborted
        self._fetched += len(data)
        if self._request.isolation is Isolation.READ_UNCOMMITTED:
            aborted = ()
        work = partial(read, data, aborted, low, high, most, newest, self._keeper)
        part: Part = await self._asking.loop.in_thread(work, "records")
        if part.next == UNKNOWN and not part.broken and len(data) > limit // 2:
            part.damage.append(Damage(offset, DamageKind.TOO_LARGE, len(data)))
        return part

    async def _offset(self, timestamp: int) -> int:
        """Return the first offset at that time, or the one that EARLIEST or LATEST stands for; −1: none."""
        offset, _ = await self._partition.listed_offset(timestamp, self._committed)
        return offset
