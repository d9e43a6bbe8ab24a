"""Replication. One step per pair of leader and follower broker handles all partitions that they share.

A step stands for one fetch answered and the next one sent: the follower's log grows, and the leader learns
how far. After a pause, a pair makes a step one round trip after something new arrives. Under load, a pair
makes at most one step every PAIR_INTERVAL_US. While there is nothing to copy, it makes none.
"""

from typing import TYPE_CHECKING

from kview.simulate.kernel import Timer
from kview.simulate.replica import Replica

if TYPE_CHECKING:
    from kview.simulate.broker import Broker

PAIR_INTERVAL_US = 40_000
"""Time between two steps of a pair under load."""

HURRIED_INTERVAL_US = 2_000
"""Time between two steps of a pair while real clients append, and wait for acks and the high watermark."""


class Bucket:
    """A byte budget of a link or a disk.

    The budget refills at `rate` bytes a second, is limited to half a second's worth, and may go negative.
    """

    __slots__ = ("_at_us", "_tokens", "rate")

    def __init__(self, rate: int, now_us: int) -> None:
        self.rate = rate
        self._tokens = rate // 2
        self._at_us = now_us

    def available(self, now_us: int) -> int:
        """Return the number of bytes that may pass at `now_us`. At 0 or less, none may pass."""
        passed = now_us - self._at_us
        if passed > 0:
            self._tokens = min(self.rate // 2, self._tokens + self.rate * passed // 1_000_000)
            self._at_us = now_us
        return self._tokens

    def take(self, size: int) -> None:
        """Take `size` bytes out of the budget."""
        self._tokens -= size


class Pair:
    """Carries what `follower` fetches from `leader`: the partitions with something new, and the next step."""

    __slots__ = (
        "_behind",
        "_due",
        "_idle",
        "_last_us",
        "_timer",
        "follower",
        "kernel",
        "leader",
        "reachable",
    )

    def __init__(self, leader: "Broker", follower: "Broker") -> None:
        self.leader = leader
        self.follower = follower
        self.kernel = leader.cluster.kernel
        # The leader's replica → its log end when a slow fetch was answered; −1 if none is in progress.
        self._due: dict[Replica, int] = {}
        self._behind: dict[Replica, None] = {}  # Replicas of which the follower knows an old watermark.
        self._timer: Timer | None = None
        self._idle = True  # True if the timer only ends a long poll, and is not a step for what is due.
        self._last_us = 0
        self.reachable = True

    def processes_changed(self) -> None:
        """Update whether both processes run."""
        self.reachable = self.leader.node.running and self.follower.node.running

    def round_trip_us(self) -> int:
        """Return the duration in µs of a fetch and its answer."""
        return 2 * self.leader.latency_us + self.leader.node.slow_us + self.follower.node.slow_us

    def wake(self, replica: Replica) -> None:
        """Note that the leader's `replica` has something for the follower."""
        due = self._due
        if self._idle:
            due[replica] = -1
            self._schedule()
        elif replica not in due:
            # A slow fetch that is in progress was answered before this arrived.
            due[replica] = 0 if self.round_trip_us() > PAIR_INTERVAL_US else -1

    def tell(self, replica: Replica) -> None:
        """Note that the high watermark of `replica` moved, which the follower learns with its next fetch."""
        self._behind[replica] = None
        if self._timer is None:
            self._schedule()

    def hurry(self) -> None:
        """Make the next step after one round trip, whatever the load, because a real client appended."""
        timer = self._timer
        if timer is None or self._idle:
            return
        at_us = max(self.kernel.now_us + self.round_trip_us(), self._last_us + HURRIED_INTERVAL_US)
        if timer.time_us > at_us:
            self.kernel.cancel(timer)
            self._timer = self.kernel.at(at_us, self._step)

    def _schedule(self) -> None:
        if not self.reachable:
            return
        trip_us = self.round_trip_us()
        if trip_us > PAIR_INTERVAL_US:
            for replica in self._due:
                self._due[replica] = replica.log.end
        if self._due:
            at_us = max(self.kernel.now_us + trip_us, self._last_us + PAIR_INTERVAL_US)
        elif self._behind:
            at_us = self.kernel.now_us + max(trip_us, self.leader.fetch_wait_us)
        else:
            return
        self._idle = not self._due
        if self._timer is not None:
            if self._timer.time_us <= at_us:
                return
            self.kernel.cancel(self._timer)
        self._timer = self.kernel.at(at_us, self._step)

    def resume(self) -> None:
        """Continue with what is due, if both processes run."""
        self.cut()
        self._schedule()

    def cut(self) -> None:
        """Drop what was in progress, because the connection broke. What is due waits for `resume`."""
        self.kernel.cancel(self._timer)
        self._timer = None
        self._idle = True

    def _step(self) -> None:
        self._timer = None
        self._idle = True
        now_us = self.kernel.now_us
        self._last_us = now_us
        leader, follower = self.leader, self.follower
        budget = min(
            leader.out_link.available(now_us),
            follower.in_link.available(now_us),
            follower.disk.available(now_us),
        )
        due, self._due = self._due, {}
        for replica in self._behind:
            due.setdefault(replica, -1)
        self._behind = {}
        carried = 0
        mine = follower.replicas
        follower_id = follower.id
        for replica, mark in due.items():
            own = mine.get(replica.key)
            if (
                own is None
                or own.topic_id != replica.topic_id
                or not replica.leading
                or own.leading
                or own.leader_epoch != replica.leader_epoch
                or own.leader != leader.id
            ):
                continue  # The side that learns the newer epoch or topic wakes the pair again.
            if not own.reconciled:
                _reconcile(own, replica)
            end = replica.log.end if mark < 0 else min(mark, replica.log.end)
            at = own.log.end
            if end > at:
                size = replica.log.size_between(at, end)
                if carried + size > budget:
                    end = replica.log.fit(at, end, max(0, budget - carried))
                    if end == at and carried == 0 and budget > 0:
                        end = replica.log.fit(at, replica.log.end, size)  # A fetch brings at least one batch.
                    size = replica.log.size_between(at, end)
                if end > at:
                    carried += size
                    own.log.copy(replica.log, end)
                    at = end
            watermark = replica.high_watermark
            known = replica.followers.get(follower_id)
            if known is not None:
                replica.fetched(known, at, now_us)
                if at > watermark or follower_id not in replica.isr:
                    leader.follower_fetched(replica, known)
            if watermark > at:
                watermark = at
            if watermark > own.high_watermark:
                own.high_watermark = watermark
            if replica.log.start > own.log.start:
                own.log.advance_start(replica.log.start)
            if at < replica.log.end:
                self._due[replica] = -1
            elif watermark < replica.high_watermark:
                self._behind[replica] = None
        if carried:
            leader.out_link.take(carried)
            follower.in_link.take(carried)
            follower.disk.take(carried)
        if self._due or self._behind:
            self._schedule()


def _reconcile(own: Replica, leader: Replica) -> None:
    """Truncate the follower's log to where it agrees with the leader's, on the first fetch in an epoch."""
    agreed = own.log.agreement(leader.log)
    if agreed < own.log.end:
        own.producers = None  # The producers are read again from the rest of the log.
    own.log.truncate(agreed)
    if own.log.end < leader.log.start:
        own.log.reset(leader.log.start)
    own.high_watermark = min(own.high_watermark, own.log.end)
    own.reconciled = True
    own.broker.cluster.kernel.trace("reconciled", *own.key, own.broker.id, own.log.end)
    own.broker.cluster.touch(own.key)
