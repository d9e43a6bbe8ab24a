"""The fetch sessions of a broker, in which a client names only the partitions that it changes (KIP-227).

They are gone when the process ends. Source: kafka.server.FetchSession.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from kview.simulate.codes import ErrorCode
from kview.simulate.kernel import Kernel
from kview.simulate.results import ReadResult
from kview.simulate.setting import INT_MAX

NO_SESSION = 0
FIRST_EPOCH, LAST_EPOCH = 0, -1
"""The epochs of fetches that name all their partitions: to begin a session, or to have none."""

SHARDS = 8
"""Parts of a broker's cache, which have sessions in turn, and equal shares of the slots."""
IDS_PER_SHARD = INT_MAX // SHARDS
EVICTION_US = 120_000_000
"""A session that was idle for longer may make room, and so may one that is older, for one with more
partitions."""

PARTITIONS_MAX = 100_000
"""Limit of the partitions of a broker's sessions, in 30 MB. A session beyond it is not begun, or ends."""

PartitionKey = tuple[str | bytes, int]
"""A partition as requests name it: by its topic's name or id."""


@dataclass(slots=True, eq=False)
class Wanted:
    """A partition that a client fetches, and what it learned of it last.

    `topic` is its name, or None as long as the broker does not know its id.
    """

    key: PartitionKey
    topic: str | None
    offset: int
    max_bytes: int
    leader_epoch: int
    last_epoch: int
    high_watermark: int = -1
    log_start: int = -1


class FetchSession:
    """A session. `partitions` are in the order in which they are read."""

    __slots__ = ("by_id", "created_us", "epoch", "id", "partitions", "size", "used_us")

    def __init__(self, session_id: int, by_id: bool, wanted: Iterable[Wanted], now_us: int) -> None:
        self.id = session_id
        self.by_id = by_id
        self.epoch = next_epoch(FIRST_EPOCH)
        self.partitions = {one.key: one for one in wanted}
        self.size = len(self.partitions)
        self.created_us = self.used_us = now_us

    def update(self, asked: Iterable[Wanted], forgotten: Iterable[PartitionKey]) -> None:
        """Add or change the partitions that a fetch names, and drop those that it forgets."""
        for one in asked:
            known = self.partitions.get(one.key)
            if known is None:
                self.partitions[one.key] = one
            else:
                known.offset, known.max_bytes = one.offset, one.max_bytes
                known.leader_epoch, known.last_epoch = one.leader_epoch, one.last_epoch
        for key in forgotten:
            self.partitions.pop(key, None)

    def selects(self, one: Wanted, result: ReadResult) -> bool:
        """Return whether a result is new to the client."""
        told = (one.high_watermark, one.log_start) == (result.high_watermark, result.log_start_offset)
        return not told or bool(result.error_code or result.records or result.sends_away)

    def changed(self, results: Iterable[tuple[Wanted, ReadResult]]) -> Iterator[tuple[Wanted, ReadResult]]:
        """Yield what is new to the client, and remember it.

        A partition that brings records is read last the next time, so that it does not starve the others.
        """
        for one, result in results:
            is_selected = self.selects(one, result)
            one.high_watermark = -1 if result.error_code else result.high_watermark
            one.log_start = result.log_start_offset
            if result.records and self.partitions.pop(one.key, None) is not None:
                self.partitions[one.key] = one
            if is_selected:
                yield one, result


class FetchSessions:
    """All sessions of one broker, at most `slots` (max.incremental.fetch.session.cache.slots)."""

    def __init__(self, broker: int, kernel: Kernel, slots: int) -> None:
        self._kernel = kernel
        self._name = f"fetch-sessions/{broker}"
        self._slots = slots // SHARDS
        self._shards: list[dict[int, FetchSession]] = [{} for _ in range(SHARDS)]
        self._turn = 0
        self._partitions = 0

    def clear(self) -> None:
        """Forget all sessions, because the process has ended."""
        self._shards = [{} for _ in range(SHARDS)]
        self._turn = self._partitions = 0

    def begin(self, by_id: bool, told: Sequence[tuple[Wanted, ReadResult]]) -> int:
        """Begin a session of partitions, with the results that the client gets now.

        Returns its id, or NO_SESSION if there is no room for it.
        """
        shard, number = self._shards[self._turn % SHARDS], self._turn % SHARDS
        self._turn += 1
        self._evict_idle(len(told))
        if self._partitions + len(told) > PARTITIONS_MAX or not self._has_room(shard, len(told)):
            return NO_SESSION
        random = self._kernel.random(self._name)
        session_id = 0
        while not session_id or session_id in shard:
            session_id = random.randrange(max(1, number * IDS_PER_SHARD), (number + 1) * IDS_PER_SHARD)
        for one, result in told:
            one.high_watermark, one.log_start = result.high_watermark, result.log_start_offset
        wanted = (one for one, _ in told)
        session = shard[session_id] = FetchSession(session_id, by_id, wanted, self._kernel.now_us)
        self._partitions += session.size
        return session_id

    def close(self, session_id: int) -> None:
        """End a session, if there is one with this id."""
        session = self._shard(session_id).pop(session_id, None)
        if session is not None:
            self._partitions -= session.size

    def resume(
        self,
        session_id: int,
        epoch: int,
        by_id: bool,
        asked: Collection[Wanted],
        forgotten: Iterable[PartitionKey],
    ) -> tuple[ErrorCode, FetchSession | None]:
        """Go on with a session, after `asked` and `forgotten` have changed it.

        The session is None if the request is refused, or has ended it by forgetting every partition.
        """
        session = self._shard(session_id).get(session_id)
        if session is None or len(asked) > PARTITIONS_MAX:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND, None
        if session.epoch != epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH, None
        if session.by_id != by_id:
            return ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, None
        session.update(asked, forgotten)
        self._partitions += len(session.partitions) - session.size
        session.size = len(session.partitions)
        session.used_us = self._kernel.now_us
        self._evict_idle(0)
        if self._partitions > PARTITIONS_MAX:
            self.close(session_id)
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND, None
        if not session.partitions:
            self.close(session_id)
            return ErrorCode.NONE, None
        session.epoch = next_epoch(epoch)
        return ErrorCode.NONE, session

    def _shard(self, session_id: int) -> dict[int, FetchSession]:
        return self._shards[min(max(session_id // IDS_PER_SHARD, 0), SHARDS - 1)]

    def _evict_idle(self, more: int) -> None:
        """End the sessions that were idle for long, if `more` partitions are too many."""
        if self._partitions + more > PARTITIONS_MAX:
            for session in [one for shard in self._shards for one in shard.values()]:
                if self._kernel.now_us - session.used_us > EVICTION_US:
                    self.close(session.id)

    def _has_room(self, shard: dict[int, FetchSession], size: int) -> bool:
        """Return whether a shard takes a session of `size` partitions, after it has evicted one if it may."""
        if len(shard) < self._slots:
            return True
        if not shard:
            return False
        idlest = min(shard.values(), key=lambda session: (session.used_us, session.id))
        if self._kernel.now_us - idlest.used_us > EVICTION_US:
            self.close(idlest.id)
            return True
        old = (session for session in shard.values() if session.used_us - session.created_us > EVICTION_US)
        smallest = min(old, key=_size, default=None)
        if smallest is None or (size, 0) < _size(smallest):
            return False
        self.close(smallest.id)
        return True


def _size(session: FetchSession) -> tuple[int, int]:
    return session.size, session.id


def next_epoch(epoch: int) -> int:
    """Return the epoch of the fetch after that of `epoch` in a session."""
    return 1 if epoch == INT_MAX else epoch + 1
