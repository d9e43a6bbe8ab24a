"""Fetch (1) of all partitions of a topic at once: what has been written since the last time.

Nothing waits at a broker, no group is joined, and nothing is kept between two questions but which brokers are
in trouble. What does not fit into a question's bytes is passed over and counted.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from msgspec import Struct, field

from kview.model.failures import NOT_AUTHORIZED, Cause, FailureKind, refused
from kview.model.inspection import Damage, DamageKind, InspectionFailure, Isolation, Record
from kview.model.inspection import InspectionFailureKind as Kind
from kview.model.tail import Held, TailRequest
from kview.model.units import UNKNOWN
from kview.observe import apis
from kview.observe.asking import Asking, OutOfTime, Ticket
from kview.observe.causes import LinkError
from kview.observe.link import Link
from kview.observe.record_answers import DAMAGE_MAX, AbortedTransactions, Keeper, damage_kind
from kview.wire import fetch, list_offsets
from kview.wire import records as wire
from kview.wire.fetch import FetchAnswer, PartitionsAnswer
from kview.wire.primitives import MalformedBytes
from kview.wire.records import Batch, RawRecord

DEADLINE_S = 2.5
"""Limit of the time for an answer. A broker that takes longer is left out of the next ones for AGAIN_S."""
AGAIN_S = 3.0
LEADERS_S = 5.0
"""How long leaders that were looked up count, instead of those of the last observation."""
LOOK_UP_S = 1.0
"""How often leaders are looked up at most."""
LEAST_BYTES = 64 << 10
"""The least bytes that a partition, and a broker, is asked for: most batches have less."""
EXAMINED_BYTES = 16 << 20
"""Limit of the bytes of records that a filter looks at for an answer. More of them are passed over."""
EXAMINED_RECORDS = 20_000
"""The same of the records."""
OFFSET_OUT_OF_RANGE, UNKNOWN_TOPIC = 1, 3


class TailPart(Struct):
    """The batches of a partition. `next` is where to read on, UNKNOWN without a whole batch."""

    low: int
    """The offset from which on records are new."""
    batches: list[Batch] = field(default_factory=list)
    """Those with records that the reader sees."""
    next: int = UNKNOWN
    cut_bytes: int = 0
    """The size of a last batch that is cut off, 0 if there is none."""
    damage: list[Damage] = field(default_factory=list)


class Troubles(Struct):
    """What one question leaves to the next: brokers that do not answer, and leaders that were looked up."""

    silent: dict[int, tuple[float, InspectionFailure]] = field(default_factory=dict)
    """Broker → until when it is left out (monotonic), and why."""
    topic: str = ""
    leaders: dict[int, int] = field(default_factory=dict)
    """Partition → leader of `topic`, as it was looked up, until `until_s`."""
    until_s: float = 0.0
    stale: bool = False
    """Whether a leader is another one than was thought."""
    again_s: float = 0.0
    """When leaders may be looked up again (monotonic)."""


class Tail:
    """One question about the end of a topic. What is known is that which has been read so far."""

    def __init__(
        self,
        asking: Asking,
        request: TailRequest,
        ticket: Ticket,
        leaders: dict[int, int],
        troubles: Troubles,
    ) -> None:
        self._asking = asking
        self._request = request
        self._ticket = ticket
        self._leaders = leaders
        self._troubles = troubles
        self._committed = request.isolation is Isolation.READ_COMMITTED
        self.positions: dict[int, int] = {}
        self.parts: dict[int, TailPart] = {}
        self.skipped = 0
        self.held: list[Held] = []
        self.unread: dict[int, InspectionFailure] = {}
        self.restarted: list[int] = []
        self._first: list[int] = []
        """Partitions that are read before others the next time, because nothing of them came."""
        self._served: list[int] = []

    async def run(self) -> InspectionFailure:
        """Read what is new, and return why nothing could be read, if that is so. Raises Cancelled."""
        now_s = self._asking.loop.monotonic()
        self._ticket.deadline_s = now_s + DEADLINE_S
        failure = await self._find_leaders(now_s)
        if failure:
            return failure
        asked = dict(self._request.positions)
        for number in [*asked, *sorted(set(self._leaders) - set(asked))]:
            if number in self._leaders:
                # A partition that was not there before is new, unless all are.
                self.positions[number] = asked.get(number, 0 if asked else UNKNOWN)
        await self._each_leader([n for n, offset in self.positions.items() if offset < 0], self._list)
        ready = [n for n, offset in self.positions.items() if offset >= 0 and n not in self.unread]
        await self._each_leader(ready, self._fetch)
        if self.unread and len(self.unread) == len(self.positions):
            return next(iter(self.unread.values()))
        return InspectionFailure()

    def next_positions(self) -> tuple[tuple[int, int], ...]:
        """Return where to read on, in the order in which partitions are read."""
        ordered = dict.fromkeys([*self._first, *self.positions])
        served = [number for number in self._served if number not in self._first]
        for number in served:
            del ordered[number]
        return tuple((number, self.positions[number]) for number in [*ordered, *served])

    # -- leaders

    async def _find_leaders(self, now_s: float) -> InspectionFailure:
        troubles = self._troubles
        if troubles.topic != self._request.topic:
            troubles.topic, troubles.stale, troubles.until_s = self._request.topic, False, 0.0
        if now_s < troubles.until_s:
            self._leaders = troubles.leaders
        if not self._leaders or (troubles.stale and now_s >= troubles.again_s):
            troubles.again_s = now_s + LOOK_UP_S
            try:
                rows = await self._asking.partitions(self._request.topic, self._ticket)
            except (LinkError, OutOfTime) as error:
                if not self._leaders:
                    cause = error.cause if isinstance(error, LinkError) else Cause(FailureKind.SILENT)
                    return InspectionFailure(Kind.NO_ANSWER, cause=cause)
            else:
                if not rows:
                    return InspectionFailure(Kind.UNKNOWN_TOPIC)
                self._leaders = troubles.leaders = {row.partition_index: row.leader_id for row in rows}
                troubles.stale, troubles.until_s = False, now_s + LEADERS_S
        return InspectionFailure()

    async def _each_leader(
        self, partitions: Sequence[int], work: Callable[[int, list[int], int], Any]
    ) -> None:
        """Do `work` for the partitions of each leader, at all leaders at once."""
        now_s, loop = self._asking.loop.monotonic(), self._asking.loop
        led: dict[int, list[int]] = {}
        for number in partitions:
            leader = self._leaders[number]
            silent_until_s, why = self._troubles.silent.get(leader, (0.0, InspectionFailure()))
            if leader < 0:
                self.unread[number] = InspectionFailure(Kind.NO_LEADER)
                self._troubles.stale = True
            elif now_s < silent_until_s:
                self.unread[number] = why
            else:
                led.setdefault(leader, []).append(number)
        futures = [
            loop.begin(partial(self._safely, work, leader, numbers, len(led)))
            for leader, numbers in led.items()
        ]
        for future in futures:
            future.add_errback(lambda _: None)  # it is raised below
        await loop.settle(futures, 2 * DEADLINE_S)
        for future in futures:
            await future

    async def _safely(
        self, work: Callable[[int, list[int], int], Any], leader: int, numbers: list[int], leaders: int
    ) -> None:
        """Do `work`, and note a broker that does not answer."""
        try:
            await work(leader, numbers, leaders)
        except LinkError as error:
            why = InspectionFailure(Kind.NO_ANSWER, leader, error.cause)
        except OutOfTime:
            why = InspectionFailure(Kind.TIMEOUT, leader)
        except _Unsupported:
            self.unread |= dict.fromkeys(numbers, InspectionFailure(Kind.UNSUPPORTED, leader))
            return
        else:
            return
        self.unread |= dict.fromkeys(numbers, why)
        self._troubles.silent[leader] = self._asking.loop.monotonic() + AGAIN_S, why
        self._troubles.stale = True

    # -- questions to a leader

    async def _list(self, leader: int, numbers: list[int], leaders: int) -> None:
        """Ask where partitions end."""
        topic = [(self._request.topic, np.array(numbers, np.int32))]

        def make(link: Link) -> Any:
            version = list_offsets.best_version(*link.versions.get(list_offsets.API_KEY, (0, -1)))
            if version < 2:
                raise _Unsupported
            return list_offsets.request(version, topic, list_offsets.LATEST, read_committed=self._committed)

        answer: list_offsets.ListOffsetsAnswer = await self._asking.ask(leader, make, self._ticket)
        told = set()
        for entry in answer.topics:
            for number, code, offset in zip(
                entry.partition.tolist(), entry.error.tolist(), entry.offset.tolist(), strict=True
            ):
                told.add(number)
                if code:
                    self._note(leader, number, code)
                elif number in self.positions:
                    self.positions[number] = offset
        for number in set(numbers) - told:
            self.unread[number] = InspectionFailure(Kind.NO_ANSWER, leader, Cause(FailureKind.INCOMPLETE))

    async def _fetch(self, leader: int, numbers: list[int], leaders: int) -> None:
        share = max(LEAST_BYTES, self._request.most_bytes // leaders)
        each = max(LEAST_BYTES, share // len(numbers))
        positions = [(number, self.positions[number]) for number in numbers]

        def make(link: Link) -> Any:
            version = min(apis.highest(link.versions, apis.FETCH), fetch.VERSIONS[1])
            if version < fetch.VERSIONS[0] or link.versions[apis.FETCH][0] > fetch.VERSIONS[1]:
                raise _Unsupported
            return fetch.request_all(
                version, self._request.topic, positions, each, share, self._request.isolation
            )

        try:
            answer: PartitionsAnswer = await self._asking.ask(leader, make, self._ticket)
        except LinkError as error:
            if error.cause.kind is not FailureKind.NOT_KAFKA:
                raise
            # The frame is not an answer: a batch in front is larger than one may be. It would come again.
            self.positions |= dict.fromkeys(numbers, UNKNOWN)
            self.unread |= dict.fromkeys(numbers, InspectionFailure(Kind.TOO_LARGE, leader))
            return
        if answer.malformed or answer.error:
            cause = Cause(FailureKind.MALFORMED) if answer.malformed else refused(answer.error)
            self.unread |= dict.fromkeys(numbers, InspectionFailure(Kind.NO_ANSWER, leader, cause))
            return
        for number in numbers:
            self._take(leader, number, answer.partitions.get(number), each)

    def _take(self, leader: int, number: int, answer: FetchAnswer | None, most_bytes: int) -> None:
        if answer is None:
            self.unread[number] = InspectionFailure(Kind.NO_ANSWER, leader, Cause(FailureKind.INCOMPLETE))
            return
        if answer.partition_error:
            self._note(leader, number, answer.partition_error)
            return
        position, end = self.positions[number], answer.high_watermark
        if self._committed and 0 <= answer.last_stable < end:
            self.held.append(Held(number, answer.last_stable, end))
            end = answer.last_stable
        aborted = answer.aborted if self._committed else ()
        part = self.parts[number] = visible(answer.records, aborted, position)
        if part.next > position:
            position = min(part.next, max(position, end))
            self._served.append(number)
        is_broken = bool(part.damage) and part.next == UNKNOWN  # what comes from there on is not a batch
        is_short = not is_broken and 0 < len(answer.records) < most_bytes // 2
        if end > position and (is_short or part.cut_bytes > most_bytes):
            self._first.append(number)  # the next batch is large; in front, it comes whole
        elif end > position:
            if not answer.records:
                self._first.append(number)
            self.skipped += end - position
            position = end
        self.positions[number] = position

    def _note(self, leader: int, number: int, code: int) -> None:
        """Note an error of a partition."""
        if code == OFFSET_OUT_OF_RANGE:
            self.positions[number] = UNKNOWN
            self.restarted.append(number)
        elif code in NOT_AUTHORIZED:
            self.unread[number] = InspectionFailure(Kind.NOT_AUTHORIZED, leader, refused(code))
        else:
            kind = Kind.UNKNOWN_TOPIC if code == UNKNOWN_TOPIC else Kind.NO_ANSWER
            self.unread[number] = InspectionFailure(kind, leader, refused(code))
            self._troubles.stale = True


class _Unsupported(Exception):
    """Raised for a broker that is too old or too new."""


def visible(data: bytes, aborted: Sequence[tuple[int, int]], low: int) -> TailPart:
    """Return the batches with records that a reader sees, without decompressing them."""
    part = TailPart(low)
    transactions = AbortedTransactions(aborted)
    at = 0
    try:
        for batch in wire.batches(data):
            at += batch.size
            part.next = max(batch.last, batch.first) + 1
            try:
                wire.check(batch)  # its header says how many records it has
                is_left_out = transactions.have(batch) or batch.control
            except MalformedBytes as error:
                part.damage.append(Damage(batch.first, damage_kind(error), batch.size))
                continue
            if not is_left_out and batch.last >= low:
                part.batches.append(batch)
    except MalformedBytes:
        part.damage.append(Damage(max(low, part.next), DamageKind.MALFORMED, len(data)))
    else:
        if len(data) - at >= wire.OVERHEAD:
            part.cut_bytes = wire.OVERHEAD + int.from_bytes(data[at + 8 : at + wire.OVERHEAD], "big")
    return part


def count(part: TailPart) -> int:
    """Return the number of the new records of a part, as its batches have it."""
    return sum(_new(part, batch) for batch in part.batches)


def _new(part: TailPart, batch: Batch) -> int:
    return max(0, min(batch.records, batch.last - max(part.low, batch.first) + 1))


class Examined(Struct):
    """Records of all parts, each with its partition, the newest first as far as they were read."""

    records: list[tuple[int, Record]] = field(default_factory=list)
    damage: list[tuple[int, Damage]] = field(default_factory=list)
    left: int = 0
    """The number of new records that were not looked at, because there are too many of them, or bytes."""


def newest(parts: dict[int, TailPart], most: int, limit: int, all_of_them: bool = False) -> Examined:
    """Return the newest records of parts by partition, at most `most` of each partition.

    Who wants `all_of_them`, such as a filter, gets at most `most` of all partitions together, and the others
    are counted. No more than about `limit` bytes of records are kept. This takes a while, as batches are
    decompressed.
    """
    examined, keeper, kept = Examined(), Keeper(), 0
    for at, (number, part) in enumerate(sorted(parts.items(), key=lambda pair: count(pair[1]))):
        examined.damage += [(number, damage) for damage in part.damage]
        # What partitions with few records leave, others may have.
        wanted = (most - len(examined.records)) // (len(parts) - at) if all_of_them else most
        for batch in reversed(part.batches):
            if (wanted <= 0 or kept >= limit) and not all_of_them:
                break  # the others are known to be older
            if wanted <= 0 or kept >= limit:
                examined.left += _new(part, batch)
                continue
            raws: list[RawRecord] = []
            try:
                raws = wire.records(batch, part.low, batch.last + 1, wanted, newest=True)
            except MalformedBytes as error:
                examined.damage.append((number, Damage(batch.first, damage_kind(error), batch.size)))
            if all_of_them and len(raws) == wanted:
                examined.left += max(0, _new(part, batch) - wanted)
            wanted -= len(raws)
            kept += sum(_size(raw) for raw in raws)
            examined.records += [(number, keeper.record(raw, batch)) for raw in reversed(raws)]
    del examined.damage[DAMAGE_MAX:]
    return examined


def _size(raw: RawRecord) -> int:
    return sum(map(len, _parts(raw)))


def _parts(raw: RawRecord) -> Iterator[bytes]:
    yield from (part for part in (raw.key, raw.value) if part is not None)
    for name, value in raw.headers:
        yield name
        yield value or b""
