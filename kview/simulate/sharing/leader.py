"""One broker as the leader of partitions that share groups read: ShareFetch and ShareAcknowledge.

Sources: SharePartitionManager and DelayedShareFetch. A `done` callback is called once, immediately or from a
later event, but never if the broker's process dies first.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from kview.simulate.brokers.broker import Broker
from kview.simulate.codes import MESSAGES, ErrorCode
from kview.simulate.coordination.share_states import SharePartition, ShareStates
from kview.simulate.kernel import Timer
from kview.simulate.metadata import MetadataImage
from kview.simulate.records import TRANSACTIONAL, header
from kview.simulate.requests.records import ReadWait, RecordRequests
from kview.simulate.sharing.in_flight import (
    Acknowledgement,
    Acquired,
    Bounds,
    ShareRefused,
    Wanted,
    check_acknowledgements,
)
from kview.simulate.sharing.partition import LedPartition, Stage
from kview.simulate.sharing.sessions import FINAL, NEW, Place, ShareSession, ShareSessions
from kview.simulate.sharing.settings import OfGroup, ShareSettings, reset_time_ms

ANSWER_BYTES_MAX = 2 << 20
"""Limit of the records in an answer, as for Fetch."""
Code = tuple[ErrorCode, str | None]
FINE: Code = (ErrorCode.NONE, None)
_NOT_LEADER: Code = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    MESSAGES[ErrorCode.NOT_LEADER_OR_FOLLOWER],
)


MayRead = Callable[[str], bool]


def anyone(topic: str) -> bool:
    """Let every client read every topic."""
    return True


@dataclass(frozen=True, slots=True)
class ShareFetch:
    """A ShareFetch request (API key 78). `acknowledgements` are what the member says about what it has, by
    partition, `added` and `forgotten` the changes of its session. With `renews`, it renews locks and fetches
    nothing. Without `with_records`, the answer has no bytes of records. `may_read` says of which topics the
    client may have records."""

    group: str
    member: str
    epoch: int
    connection: object
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    wanted: Wanted
    added: Sequence[Place] = ()
    forgotten: Sequence[Place] = ()
    acknowledgements: Mapping[Place, Sequence[Acknowledgement]] | None = None
    renews: bool = False
    with_records: bool = True
    may_read: MayRead = anyone


class FetchedShare(NamedTuple):
    """One partition in the answer to ShareFetch."""

    place: Place
    error: Code = FINE
    acknowledged: Code = FINE
    records: bytes = b""
    acquired: tuple[Acquired, ...] = ()


class ShareFetched(NamedTuple):
    """The answer to ShareFetch."""

    error_code: ErrorCode
    lock_ms: int = 0
    partitions: tuple[FetchedShare, ...] = ()


class ShareAcknowledged(NamedTuple):
    """The answer to ShareAcknowledge: what became of each partition's acknowledgements."""

    error_code: ErrorCode
    lock_ms: int = 0
    partitions: tuple[tuple[Place, Code], ...] = ()


class ShareLeader:
    """One broker's part of all share groups."""

    def __init__(
        self, broker: Broker, records: RecordRequests, states: ShareStates, settings: ShareSettings
    ) -> None:
        self._broker = broker
        self._records = records
        self._states = states
        self._settings = settings
        self._led: dict[SharePartition, LedPartition] = {}
        self._sessions = ShareSessions(settings.max_sessions)
        self._waits = 0

    # --- changes at the broker

    def metadata_changed(self) -> None:
        """Let go of partitions that the broker does not lead any more."""
        for key, led in list(self._led.items()):
            if not led.is_led:
                self._drop(key, ErrorCode.FENCED_LEADER_EPOCH)

    def process_ended(self) -> None:
        """Drop all state and waiting clients, because the process has ended."""
        self._led.clear()
        self._sessions.clear()

    def disconnected(self, connection: object) -> None:
        """End the sessions of a connection, and release what their members have acquired."""
        for session in self._sessions.of_connection(connection):
            self._end(session)

    def _end(self, session: ShareSession) -> None:
        is_last = self._sessions.close(session)
        for topic_id, partition in session.places:
            led = self._led.get(SharePartition(session.group, topic_id, partition))
            if led is not None:
                led.release(session.member)
        if is_last:
            for key in [key for key in self._led if key.group == session.group]:
                del self._led[key]  # The next member's fetch reads the state again.

    def _drop(self, key: SharePartition, code: ErrorCode) -> None:
        led = self._led.pop(key, None)
        if led is not None:
            led.give_up(code, MESSAGES[ErrorCode.NOT_LEADER_OR_FOLLOWER])

    # --- partitions

    @property
    def _image(self) -> MetadataImage:
        return self._broker.image

    def of_group(self, group: str) -> OfGroup:
        """Return what counts for a group."""
        return self._settings.of_group(self._image, self._broker.id, group)

    def partitions(self) -> Iterable[LedPartition]:
        """Return the partitions themselves, for invariants and tests. Callers must not change them."""
        return [led for led in self._led.values() if led.stage is not Stage.GONE]

    def _partition(self, key: SharePartition, may_read: MayRead) -> LedPartition | ErrorCode:
        """Return a partition that this broker leads, or why it cannot."""
        topic = self._image.topic_by_id(key.topic_id)
        if topic is None:
            return ErrorCode.UNKNOWN_TOPIC_ID
        if not may_read(topic.name):
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        if not 0 <= key.partition < len(topic.partitions):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        replica = self._broker.replicas.get((topic.name, key.partition))
        if replica is None or not replica.leading or replica.topic_id != key.topic_id:
            return self._broker.refusal((topic.name, key.partition))
        led = self._led.get(key)
        if led is not None and (led.stage is Stage.GONE or not led.is_led):
            self._drop(key, ErrorCode.FENCED_LEADER_EPOCH)
            led = None
        if led is None:
            led = self._led[key] = LedPartition(
                key,
                replica,
                self._broker,
                self._states,
                partial(self.of_group, key.group),
                partial(self._first_offset, key.group, topic.name, key.partition),
            )
            led.load()
        return led

    def _first_offset(self, group: str, topic: str, partition: int) -> int:
        """Return where a group begins with a partition that it has never read (share.auto.offset.reset)."""
        time_ms = reset_time_ms(self.of_group(group).reset, self._broker.kernel.now_us // 1000)
        found = self._records.list_offset(self._broker.id, topic, partition, time_ms)
        replica = self._broker.replicas.get((topic, partition))
        return found.offset if found.offset >= 0 or replica is None else replica.high_watermark

    # --- ShareFetch

    def fetch(self, request: ShareFetch, done: Callable[[ShareFetched], None]) -> "FetchWait | None":
        """Acknowledge and acquire records, and answer when there are some or the time is over.

        Returns a wait that can be cancelled, or None if there is none.
        """
        acknowledgements = request.acknowledgements or {}
        try:
            session = self._session(request, any(acknowledgements.values()))
        except ShareRefused as refused:
            done(ShareFetched(refused.error_code))
            return None
        lock_ms = self.of_group(request.group).lock_ms
        acknowledged: dict[Place, Code] = {}
        fetched: list[FetchedShare] = []
        parts = 1 if request.renews or request.epoch == FINAL else 2

        def part_done() -> None:
            nonlocal parts
            parts -= 1
            if parts:
                return
            done(ShareFetched(ErrorCode.NONE, lock_ms, _told(session, fetched, acknowledged)))
            if request.epoch == FINAL:
                self._end(session)

        def acknowledgements_done(codes: Mapping[Place, Code]) -> None:
            acknowledged.update(codes)
            part_done()

        def fetch_done(found: Sequence[FetchedShare]) -> None:
            fetched.extend(found)
            part_done()

        self._acknowledge(
            request.group,
            request.member,
            acknowledgements,
            request.renews,
            request.may_read,
            acknowledgements_done,
        )
        if request.renews or request.epoch == FINAL:
            return None
        wait = FetchWait(self._broker, self._records, request, fetch_done)
        for place in session.rotated(request.epoch):
            wait.add(place, self._partition(SharePartition(request.group, *place), request.may_read))
        self._waits += 1
        wait.start(self._waits)
        return wait

    def _session(self, request: ShareFetch, acknowledges: bool) -> ShareSession:
        """Return the session of a request, changed as it asks for. Raises ShareRefused."""
        wanted = request.max_wait_ms > 0 or request.min_bytes > 0 or request.max_bytes > 0
        if request.renews and (wanted or request.wanted.records > 0):
            raise ShareRefused(ErrorCode.INVALID_REQUEST, None)
        if request.epoch == NEW:
            if acknowledges:
                raise ShareRefused(ErrorCode.INVALID_REQUEST, None)
            return self._sessions.open(request.group, request.member, request.connection, request.added)
        session = self._sessions.known(request.group, request.member, request.epoch)
        if request.epoch != FINAL:
            session.update(request.added, request.forgotten)
        return session

    # --- ShareAcknowledge

    def acknowledge(
        self,
        group: str,
        member: str,
        epoch: int,
        acknowledgements: Mapping[Place, Sequence[Acknowledgement]],
        renews: bool,
        done: Callable[[ShareAcknowledged], None],
        may_read: MayRead = anyone,
    ) -> None:
        """Acknowledge records, and answer when that is written."""
        try:
            if epoch == NEW:
                raise ShareRefused(ErrorCode.INVALID_SHARE_SESSION_EPOCH, None)
            session = self._sessions.known(group, member, epoch)
        except ShareRefused as refused:
            done(ShareAcknowledged(refused.error_code))
            return
        lock_ms = self.of_group(group).lock_ms

        def acknowledged(codes: Mapping[Place, Code]) -> None:
            if epoch == FINAL:
                self._end(session)
            done(ShareAcknowledged(ErrorCode.NONE, lock_ms, tuple(codes.items())))

        self._acknowledge(group, member, acknowledgements, renews, may_read, acknowledged)

    def _acknowledge(
        self,
        group: str,
        member: str,
        acknowledgements: Mapping[Place, Sequence[Acknowledgement]],
        renews: bool,
        may_read: MayRead,
        done: Callable[[Mapping[Place, Code]], None],
    ) -> None:
        codes: dict[Place, Code] = {}
        asked: list[tuple[Place, LedPartition]] = []
        for place, said in acknowledgements.items():
            refused = self._refusal(group, place, said, renews, may_read)
            if isinstance(refused, LedPartition):
                asked.append((place, refused))
            elif refused != FINE:
                codes[place] = refused
        left = len(asked)
        if not left:
            done(codes)
            return
        codes.update({place: FINE for place, said in acknowledgements.items() if not said})

        def settled(place: Place, code: ErrorCode, message: str | None) -> None:
            nonlocal left
            codes[place] = (code, message)
            left -= 1
            if not left:
                done(codes)

        for place, led in asked:
            led.acknowledge(member, acknowledgements[place], partial(settled, place))

    def _refusal(
        self, group: str, place: Place, said: Sequence[Acknowledgement], renews: bool, may_read: MayRead
    ) -> LedPartition | Code:
        """Return the partition that is to take acknowledgements, or why there is none to take them."""
        topic = self._image.topic_by_id(place[0])
        if topic is None:
            return ErrorCode.UNKNOWN_TOPIC_ID, None
        try:
            check_acknowledgements(said, renews)
        except ShareRefused as refused:
            return refused.error_code, refused.message
        if not may_read(topic.name):
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED, None
        if not 0 <= place[1] < len(topic.partitions):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None
        if not said:
            return FINE
        led = self._led.get(SharePartition(group, *place))
        if led is None or led.stage is Stage.GONE:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return code, MESSAGES[code]
        return led


def _told(
    session: ShareSession, fetched: Sequence[FetchedShare], acknowledged: Mapping[Place, Code]
) -> tuple[FetchedShare, ...]:
    """Return what an answer says about partitions: those with something new."""
    rows: list[FetchedShare] = []
    left = dict(acknowledged)
    for row in fetched:
        code = left.pop(row.place, None)
        if code is not None:
            row = row._replace(acknowledged=code)
        if (
            row.records
            or row.acquired
            or row.error != FINE
            or code is not None
            or row.place in session.untold
        ):
            rows.append(row)
        session.untold.discard(row.place)
    rows += [FetchedShare(place, acknowledged=code) for place, code in left.items()]
    return tuple(rows)


class FetchWait:
    """A ShareFetch that looks for records to acquire, and waits until there are some."""

    def __init__(
        self,
        broker: Broker,
        records: RecordRequests,
        request: ShareFetch,
        done: Callable[[Sequence[FetchedShare]], None],
    ) -> None:
        self._broker = broker
        self._records = records
        self._request = request
        self._done: Callable[[Sequence[FetchedShare]], None] | None = done
        self._places: list[Place] = []
        self._led: dict[Place, LedPartition] = {}
        self._errors: dict[Place, Code] = {}
        self._number = 0
        self._timer: Timer | None = None
        self._readable: ReadWait | None = None
        self._looks = False

    def add(self, place: Place, found: LedPartition | ErrorCode) -> None:
        """Add a partition, or the error that it has."""
        self._places.append(place)
        if isinstance(found, LedPartition):
            self._led[place] = found
        else:
            self._errors[place] = (found, None)

    def start(self, number: int) -> None:
        """Look for records, and wait for them if there are none."""
        if not self._led or self._request.max_wait_ms <= 0:
            loading = [led for led in self._led.values() if led.stage is Stage.LOADING]
            if not loading:
                self._look(is_last=True)
                return
        if self._look():
            return
        self._number = number
        self._timer = self._broker.process.after(
            max(1, self._request.max_wait_ms) * 1000, lambda: self._look(is_last=True)
        )
        for led in self._led.values():
            led.waiting[number] = self._woken
        self._watch_logs()

    def cancel(self) -> None:
        """Stop waiting, without an answer."""
        self._done = None
        self._broker.kernel.cancel(self._timer)
        for led in self._led.values():
            led.waiting.pop(self._number, None)
        if self._readable is not None:
            self._readable.cancel()

    def _woken(self) -> None:
        if self._done is not None and not self._looks and not self._look():
            self._watch_logs()

    def _watch_logs(self) -> None:
        """Wait until the logs have more to read."""
        if self._readable is not None:
            self._readable.cancel()
        positions = []
        size = 0
        for led in self._led.values():
            if led.stage is Stage.ACTIVE and led.flight.can_acquire(led.limits()):
                offset, log = led.flight.next_offset(), led.replica.log
                if log.start <= offset <= log.end:
                    positions.append((*led.replica.key, offset))
                    size += log.size_between(offset, max(offset, led.stop()))
        self._readable = None
        if positions and size < self._request.min_bytes:
            self._readable = self._records.when_readable(
                self._broker.id,
                positions,
                self._request.min_bytes,
                self._request.max_wait_ms + 1,
                self._woken,
                any(led.reads_committed for led in self._led.values()),
            )

    def _look(self, is_last: bool = False) -> bool:
        """Acquire what can be acquired, and answer if that is something or this is the last look. Return
        whether it was answered."""
        done = self._done
        if done is None:
            return True
        self._looks = True
        try:
            rows = self._acquire(is_last)
        finally:
            self._looks = False
        all_failed = len(self._errors) == len(self._places)
        if not (is_last or all_failed or any(row.acquired for row in rows.values())):
            return False
        self.cancel()
        done([rows.get(place) or self._nothing(place) for place in self._places if self._has_read(place)])
        return True

    def _has_read(self, place: Place) -> bool:
        """Return whether there is anything to say of a partition: not while its state is being read."""
        return place in self._errors or self._led[place].stage is Stage.ACTIVE

    def _nothing(self, place: Place) -> FetchedShare:
        return FetchedShare(place, self._errors.get(place, FINE))

    def _acquire(self, is_last: bool) -> dict[Place, FetchedShare]:
        request = self._request
        ready: list[tuple[Place, LedPartition, int]] = []
        size = 0
        for place, led in list(self._led.items()):
            if led.stage is Stage.GONE or not led.is_led:
                self._errors[place] = led.error if led.stage is Stage.GONE else _NOT_LEADER
                continue
            offset = led.next_offset() if led.stage is Stage.ACTIVE else None
            if offset is not None:
                ready.append((place, led, offset))
                size += led.replica.log.size_between(offset, led.stop())
        if not ready or (size < request.min_bytes and not is_last):
            return {}
        rows: dict[Place, FetchedShare] = {}
        each_bytes = max(0, min(request.max_bytes, ANSWER_BYTES_MAX)) // len(ready)
        left = request.wanted.records
        for place, led, offset in ready:
            if left <= 0:
                break
            topic, partition = led.replica.key
            b = self._broker.id
            bounds = self._records.batch_bounds(b, topic, partition, offset, led.stop(), each_bytes)
            acquired = led.acquire(request.member, offset, bounds, request.wanted._replace(records=left))
            acquired = self._without_aborted(led, bounds, acquired)
            if acquired:
                left -= sum(one.last - one.first + 1 for one in acquired)
                rows[place] = FetchedShare(
                    place, records=self._bytes(led, bounds, acquired), acquired=tuple(acquired)
                )
        return rows

    def _bytes(self, led: LedPartition, bounds: Sequence[Bounds], acquired: Sequence[Acquired]) -> bytes:
        """Return the batches with the records that were acquired."""
        if not self._request.with_records:
            return b""
        stop = next(last for _, last in bounds if last >= acquired[-1].last) + 1
        return self._records.read_span(self._broker.id, *led.replica.key, acquired[0].first, stop)

    def _without_aborted(
        self, led: LedPartition, bounds: Sequence[Bounds], acquired: list[Acquired]
    ) -> list[Acquired]:
        """Archive what aborted transactions have written, for a group that reads committed records only."""
        log = led.replica.log
        if not acquired or not led.reads_committed or not log.is_transactional:
            return acquired
        start, stop = bounds[0][0], bounds[-1][1] + 1
        aborted = list(log.aborted(start, stop))
        for base, batch, _ in log.batches(start, stop):
            head = header(batch)
            last = base + head.last_offset_delta
            if head.attributes & TRANSACTIONAL and any(
                one.producer_id == head.producer_id and one.first <= base < one.last for one in aborted
            ):
                led.flight.archive_aborted(base, last)
                acquired = [part for one in acquired for part in _cut(one, base, last)]
        return acquired


def _cut(acquired: Acquired, first: int, last: int) -> list[Acquired]:
    """Return what is left of acquired records without those from `first` to `last`."""
    before = acquired._replace(last=min(acquired.last, first - 1))
    after = acquired._replace(first=max(acquired.first, last + 1))
    return [part for part in (before, after) if part.first <= part.last]
