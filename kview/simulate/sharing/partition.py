"""A partition that a share group reads, at its leader: what is in flight, and how that is written.

Source: Kafka's SharePartition. A new leader reads the state from the share coordinator before it answers.
"""

from collections.abc import Callable, Sequence
from enum import Enum, auto

from kview.simulate.brokers.broker import Broker
from kview.simulate.brokers.replica import Replica
from kview.simulate.codes import MESSAGES, ErrorCode
from kview.simulate.coordination.share_states import (
    UNINITIALIZED,
    ReadState,
    SharePartition,
    ShareStates,
    StateBatch,
    WrittenState,
)
from kview.simulate.kernel import Timer
from kview.simulate.sharing.in_flight import (
    Acknowledgement,
    Acquired,
    Bounds,
    Change,
    InFlight,
    Limits,
    ShareRefused,
    Wanted,
)
from kview.simulate.sharing.settings import OfGroup

MS = 1_000
_AS_LEADER = {
    ErrorCode.NOT_COORDINATOR: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_STATE_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
}
"""A share coordinator's error → what a leader's client gets."""

Settled = Callable[[ErrorCode, str | None], None]


class Stage(Enum):
    """How far a leader has come with a partition."""

    LOADING = auto()
    ACTIVE = auto()
    GONE = auto()
    """The broker does not lead it any more in this epoch, or the state could not be read or was fenced."""


class LedPartition:
    """A partition of one share group while this broker leads it in one leader epoch.

    `changed` is called whenever there may be more to acquire, or an error to tell.
    """

    def __init__(
        self,
        key: SharePartition,
        replica: Replica,
        broker: Broker,
        states: ShareStates,
        of_group: Callable[[], OfGroup],
        first_offset: Callable[[], int],
    ) -> None:
        self.key = key
        self.replica = replica
        self.leader_epoch = replica.leader_epoch
        self.stage = Stage.LOADING
        self.error: tuple[ErrorCode, str | None] = (ErrorCode.NONE, None)
        self.waiting: dict[int, Callable[[], None]] = {}
        """Fetches that wait for something to acquire here, by number."""
        self._broker = broker
        self._states = states
        self._of_group = of_group
        self._first_offset = first_offset
        self.flight = InFlight(0)
        self._state_epoch = 0
        self._lock_timer: Timer | None = None
        self._to_write: list[tuple[Sequence[StateBatch], Settled]] = []
        self._writes = False

    # --- loading

    def load(self) -> None:
        """Read the state from the share coordinator."""
        self._states.read(self.key, self.leader_epoch, self._loaded)

    def _loaded(self, read: ReadState) -> None:
        if self.stage is not Stage.LOADING:
            return
        if read.error_code is not ErrorCode.NONE:
            self.give_up(read.error_code, read.message)
            return
        if not self.is_led:  # Its log directory may have failed in the meantime.
            self.give_up(ErrorCode.FENCED_LEADER_EPOCH, MESSAGES[ErrorCode.NOT_LEADER_OR_FOLLOWER])
            return
        start = read.start_offset
        if start == UNINITIALIZED:
            start = self._first_offset()
        self._state_epoch = read.state_epoch
        self.flight = InFlight(start, read.batches)
        self.stage = Stage.ACTIVE
        self.wake()

    def give_up(self, code: ErrorCode, message: str | None = None) -> None:
        """Note that this broker cannot go on with the partition, and why."""
        if self.stage is Stage.GONE:
            return
        self.stage = Stage.GONE
        code = _AS_LEADER.get(code, ErrorCode.UNKNOWN_SERVER_ERROR)
        self.error = (code, message if message is not None else MESSAGES.get(code))
        self._broker.kernel.cancel(self._lock_timer)
        waiting, self._to_write = self._to_write, []
        for _, settled in waiting:
            settled(*self.error)
        self.wake()

    @property
    def is_led(self) -> bool:
        """Whether this broker still leads the partition in the same epoch."""
        replica = self.replica
        known = self._broker.replicas.get(replica.key)
        return known is replica and replica.leading and replica.leader_epoch == self.leader_epoch

    def wake(self) -> None:
        """Let the fetches that wait look again, in the order in which they came."""
        for look in list(self.waiting.values()):
            look()

    # --- what members ask for

    def limits(self) -> Limits:
        """Return what counts for the group now."""
        group = self._of_group()
        return Limits(group.delivery_count_limit, group.max_record_locks, group.lock_ms * MS, group.renews)

    def stop(self) -> int:
        """Return the offset up to which members may read."""
        return self.replica.last_stable() if self.reads_committed else self.replica.high_watermark

    @property
    def reads_committed(self) -> bool:
        """Whether the group reads only what committed transactions have written."""
        return self._of_group().read_committed

    def next_offset(self) -> int | None:
        """Return the offset at which a member would read, or None if it can acquire nothing."""
        flight, log = self.flight, self.replica.log
        if log.start > flight.start and flight.next_offset() < log.start:
            flight.move_to_log_start(log.start)
        if not flight.can_acquire(self.limits()):
            return None
        offset = flight.next_offset()
        return offset if log.start <= offset < self.stop() else None

    def acquire(self, member: str, offset: int, bounds: Sequence[Bounds], wanted: Wanted) -> list[Acquired]:
        """Acquire records of these batches, which were read at `offset`, for a member."""
        acquired = self.flight.acquire(
            member, offset, bounds, wanted, self.limits(), self._broker.kernel.now_us
        )
        if acquired:
            self._watch_locks()
        return acquired

    def acknowledge(self, member: str, acknowledgements: Sequence[Acknowledgement], settled: Settled) -> None:
        """Acknowledge, release, reject or renew what a member has acquired, and answer when it is written."""
        if self.stage is Stage.GONE:
            return settled(*self.error)
        try:
            changes = self.flight.acknowledge(
                member, acknowledgements, self.limits(), self._broker.kernel.now_us
            )
        except ShareRefused as refused:
            return settled(refused.error_code, refused.message)
        self._write_changes(changes, settled)

    def release(self, member: str) -> None:
        """Release what a member has acquired, because its session has ended."""
        if self.stage is Stage.ACTIVE:
            changes = self.flight.release(member, self.limits().deliveries)
            self._write_changes(changes, lambda code, message: None)

    # --- locks

    def _watch_locks(self) -> None:
        ends_us = self.flight.next_lock_end_us()
        timer = self._lock_timer
        if ends_us is None or (timer is not None and timer.time_us <= ends_us):
            return
        self._broker.kernel.cancel(timer)
        self._lock_timer = self._broker.process.at(ends_us, self._locks_due)

    def _locks_due(self) -> None:
        self._lock_timer = None
        if self.stage is not Stage.ACTIVE or not self.is_led:
            return
        ended = self.flight.end_locks(self._broker.kernel.now_us, self.limits().deliveries)
        if ended:
            self._write(ended, lambda code, message: self._start_moves())
        self._watch_locks()
        if ended:
            self.wake()

    def _start_moves(self) -> None:
        if self.flight.settled():
            self.wake()

    # --- writing

    def _write_changes(self, changes: Sequence[Change], settled: Settled) -> None:
        """Write changes, and put them into force or take them back."""
        if not changes:
            self._watch_locks()
            return settled(ErrorCode.NONE, None)

        def written(code: ErrorCode, message: str | None) -> None:
            if code is ErrorCode.NONE:
                self.flight.commit(changes)
            else:
                self.flight.roll_back(changes, self._broker.kernel.now_us, self.limits().deliveries)
                self._watch_locks()
            settled(code, message)
            self.wake()

        self._write([change.batch for change in changes], written)

    def _write(self, batches: Sequence[StateBatch], settled: Settled) -> None:
        """Write batches after those before, so that a later state never reaches the coordinator first."""
        self._to_write.append((batches, settled))
        if not self._writes:
            self._write_next()

    def _write_next(self) -> None:
        taken, self._to_write = self._to_write, []
        if not taken or self.stage is Stage.GONE:
            for _, settled in taken:
                settled(*self.error)
            return
        self._writes = True
        state = WrittenState(
            self._state_epoch,
            self.leader_epoch,
            self.flight.start,
            self.flight.complete,
            tuple(batch for batches, _ in taken for batch in batches),
        )

        def written(code: ErrorCode, message: str | None) -> None:
            self._writes = False
            if code is ErrorCode.NONE:
                answer: tuple[ErrorCode, str | None] = (code, None)
            else:
                told = _AS_LEADER.get(code, ErrorCode.UNKNOWN_SERVER_ERROR)
                answer = (told, message if message is not None else MESSAGES.get(told))
            for _, settled in taken:
                settled(*answer)
            if answer[0] in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
                self.give_up(code, message)
            self._write_next()

        self._states.write(self.key, state, written)
