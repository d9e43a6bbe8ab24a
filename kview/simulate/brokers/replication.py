"""Replication between brokers, in steps. A step handles all partitions that a follower fetches from a leader.

A step covers the answer to one fetch and the sending of the next. The follower's log grows, and the leader
learns the follower's new log end. After a pause, a pair of brokers makes its first step one round trip after
something new arrives. Under load, it makes at most one step every PAIR_INTERVAL_US. While there is nothing to
copy, it makes no steps.
"""

from collections.abc import Mapping, Sequence

from kview.simulate.brokers.broker import Broker
from kview.simulate.brokers.bucket import Bucket
from kview.simulate.brokers.replica import Replica
from kview.simulate.kernel import Timer
from kview.simulate.metadata import TopicPartition
from kview.simulate.nodes import Nodes, ProcessState

PAIR_INTERVAL_US = 40_000
"""Time between two steps of a pair under load."""

HURRIED_INTERVAL_US = 1_000
"""Shortest time between two steps of a pair while real clients append, because they wait for
acknowledgements."""


class Pair:
    """Copies partitions from broker `leader` to broker `follower`, in steps (implements `Fetcher`)."""

    __slots__ = (
        "_arrives",
        "_behind",
        "_connected",
        "_due",
        "_idle",
        "_joining",
        "_last_us",
        "_partial",
        "_sent",
        "_timer",
        "follower",
        "kernel",
        "leader",
        "reachable",
    )

    def __init__(self, leader: Broker, follower: Broker) -> None:
        self.leader = leader
        self.follower = follower
        self.kernel = leader.kernel
        # The leader's replica with something to fetch → how far the next step copies it. −1 means to the
        # log's end. A slow fetch copies only what the log contained when the leader answered.
        self._due: dict[Replica, int] = {}
        self._behind: dict[Replica, None] = {}  # Replicas whose new watermark the follower does not know
        # What the last fetch brought a part of. The next one asks for it last, so that no partition starves
        # the others. Source: kafka.server.FetchSession.
        self._partial: list[Replica] = []
        self._timer: Timer | None = None
        self._idle = True  # True if no step is scheduled, or only the end of a long poll.
        self._last_us = 0
        # While the follower hangs, or its packets are lost: how far the answer reaches that the leader has
        # sent to the waiting fetch, by replica. It is empty until the leader has something to send.
        self._sent: dict[Replica, int] | None = None
        # Partitions of new replicas, which come with the fetch after the one that waits at the leader.
        self._joining: set[TopicPartition] = set()
        self._arrives = False  # Whether what is sent then arrives, because only the follower's way is cut
        self._connected = True
        self.reachable = True

    def processes_changed(self) -> None:
        """Update `reachable` after a change of either process."""
        self.reachable = self._connected and self.leader.node.running and self.follower.node.running
        if self.follower.node.state not in (ProcessState.RUNNING, ProcessState.HUNG):
            self._sent = None

    def round_trip_us(self) -> int:
        """Return the duration in µs of a fetch and its answer."""
        leader, follower = self.leader.node, self.follower.node
        disks_us = leader.disk_us + follower.disk_us
        return 2 * self.leader.latency_us + leader.slow_us + follower.slow_us + disks_us

    def wake(self, replica: Replica) -> None:
        due = self._due
        if self._sent is not None and not self._sent:
            self._send([replica])
            if self._arrives and self._sent:
                self.kernel.after(self.leader.latency_us, self._arrived)
        if self._idle:
            due[replica] = -1
            self._schedule()
        elif replica not in due:
            # If a slow fetch is in progress, the leader answered it before this arrived, so it brings nothing
            # new.
            due[replica] = 0 if self.round_trip_us() > PAIR_INTERVAL_US else -1

    def follow(self, key: TopicPartition) -> None:
        theirs = self.leader.replicas.get(key)
        if theirs is not None and theirs.leading:
            self.wake(theirs)

    def join(self, key: TopicPartition) -> None:
        followed = (own.leader for other, own in self.follower.replicas.items() if other != key)
        if not self._idle or self.leader.id not in followed:
            self.follow(key)
            return
        self._joining.add(key)
        now_us, wait_us = self.kernel.now_us, max(1, self.leader.fetch_wait_us)
        self.kernel.at(now_us + wait_us - (now_us - self._last_us) % wait_us, self._joined, key)

    def _joined(self, key: TopicPartition) -> None:
        if key in self._joining:
            self._joining.discard(key)
            self.follow(key)

    def tell(self, replica: Replica) -> None:
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

    def freeze(self) -> None:
        """Stop fetching, because the follower hangs. Its fetch still waits at the leader."""
        self._sent = {}
        self._send(list(self._due))
        self.stop_fetching()

    def network_changed(self, connected: bool, answers: bool) -> None:
        """Go on, or stop fetching. With `answers`, the answer to the fetch that waits still arrives."""
        was, self._connected = self.reachable, connected
        self.processes_changed()
        self._arrives = answers and not connected
        if was and not self.reachable:
            self.leader.unreachable(self.follower.id)
            if answers:
                self._sent = {}
            self.stop_fetching()
        elif self.reachable and not was:
            self.resume()

    def _arrived(self) -> None:
        if self._sent and self.follower.node.running:
            self._receive()

    def resume(self) -> None:
        """Read what was sent while the follower hung, and schedule a step for what is due, if both processes
        run."""
        self._receive()
        self.stop_fetching()
        self._schedule()

    def stop_fetching(self) -> None:
        """Cancel the fetch in progress. Replicas that are due wait for `resume`."""
        self.kernel.cancel(self._timer)
        self._timer = None
        self._idle = True

    def _send(self, replicas: Sequence[Replica]) -> None:
        """Answer the fetch of a follower that hangs. The only answer waits in its socket."""
        assert self._sent is not None
        for replica in replicas:
            own = self.follower.replicas.get(replica.key)
            if own is not None and self._follows(own, replica) and replica.log.end > own.log.end:
                self._sent[replica] = replica.log.end

    def _receive(self) -> None:
        """Append what the leader had sent, even if it has died since."""
        sent, self._sent = self._sent, None
        for replica, end in (sent or {}).items():
            own = self.follower.replicas.get(replica.key)
            if own is None or not self._follows(own, replica):
                continue
            # A leader that has come back in the meantime may have truncated what it had sent.
            later = replica.log.end_of_epoch(own.leader_epoch)[1]
            end = min(end, replica.log.end if later < 0 else later)
            end = replica.log.around(end)[1]
            if replica.log.start <= own.log.end < end and not self.follower.append_fails(own):
                own.log.copy(replica.log, end)
                self.follower.touched.add(own.key)

    def _follows(self, own: Replica, replica: Replica) -> bool:
        """Return whether `own` fetches from `replica`, as far as the follower knows."""
        return (
            own.reconciled
            and not own.leading
            and own.leader == self.leader.id
            and own.topic_id == replica.topic_id
        )

    def _step(self) -> None:
        self._timer = None
        self._idle = True
        now_us = self.kernel.now_us
        self._last_us = now_us
        leader, follower = self.leader, self.follower
        working_us = self.kernel.working_us
        budget = min(
            leader.out_link.available(working_us),
            follower.in_link.available(working_us),
            follower.disk.available(working_us),
        )
        due, self._due = self._due, {}
        for replica in self._behind:
            due.setdefault(replica, -1)
        self._behind = {}
        carried = 0
        for replica in self._partial:
            if replica in due:
                due[replica] = due.pop(replica)
        self._partial = []
        mine = follower.replicas
        follower_id = follower.id
        for replica, mark in due.items():
            own = mine.get(replica.key)
            if (
                own is None
                or replica.key in self._joining
                or own.topic_id != replica.topic_id
                or not replica.leading
                or own.leading
                or own.leader_epoch != replica.leader_epoch
                or own.leader != leader.id
            ):
                continue  # The side that learns the newer epoch or topic wakes the pair again.
            if not own.reconciled:
                _reconcile(own, replica)
            if own.log.end < replica.log.start:  # Records were deleted that it has not fetched.
                _start_over(own, replica)
            end = replica.log.end if mark < 0 else min(mark, replica.log.end)
            at, size = own.log.end, 0
            if end > at and follower.append_fails(own):
                continue
            if end > at:
                limits = self._limits(replica)
                allowed = min([budget - carried, *(limit.available(working_us) for limit in limits)])
                size = _copy(own, replica, end, allowed, carried == 0)
                carried += size
                for limit in limits:
                    limit.take(size)
                at = own.log.end
            watermark = replica.high_watermark
            known = replica.followers.get(follower_id)
            if known is not None:
                replica.fetched(known, at, now_us)
                if at > watermark or follower_id not in replica.isr:
                    leader.isr_changes.follower_fetched(replica, known)
            if watermark > at:
                watermark = at
            if watermark > own.high_watermark:
                own.high_watermark = watermark
                if own.readers:
                    own.wake_readers()
            if replica.log.start > own.log.start:
                own.advance_start(replica.log.start)
            if at < replica.log.end:
                self._due[replica] = -1
                if size:
                    self._partial.append(replica)
            elif watermark < replica.high_watermark:
                self._behind[replica] = None
        if carried:
            leader.out_link.take(carried)
            follower.in_link.take(carried)
            follower.disk.take(carried)
        if self._due or self._behind:
            self._schedule()
        joining, self._joining = self._joining, set()
        for key in joining:
            self.follow(key)

    def _limits(self, replica: Replica) -> list[Bucket]:
        """Return the throttles' budgets for a replica, which count only while its follower is not in sync."""
        if self.follower.id in replica.isr:
            return []
        leader, follower, now_us = self.leader, self.follower, self.kernel.working_us
        buckets = (
            leader.sending.bucket_for(replica.key, leader.image, now_us),
            follower.fetching.bucket_for(replica.key, follower.image, now_us),
        )
        return [bucket for bucket in buckets if bucket is not None]


def _copy(own: Replica, leader: Replica, end: int, allowed: int, first: bool) -> int:
    """Copy complete batches up to offset `end` and `allowed` bytes, and return their size.

    The `first` partition of a fetch brings at least one batch if any byte is allowed.
    """
    at, end = own.log.end, leader.log.around(end)[1]
    size = leader.log.size_between(at, end)
    if size > allowed:
        end = leader.log.fit(at, end, max(0, allowed))
        if end == at and first and allowed > 0:
            end = leader.log.fit(at, leader.log.end, size)
        size = leader.log.size_between(at, end)
    if end > at:
        own.log.copy(leader.log, end)
    return size


def _reconcile(own: Replica, leader: Replica) -> None:
    """Truncate the follower's log to where it agrees with the leader's, on the first fetch in an epoch."""
    agreed = own.log.agreement(leader.log)
    if agreed < own.log.end:
        own.producers = None  # The producers' state is read again from what is left of the log.
    own.log.truncate(agreed)
    if own.log.end >= leader.log.cleaned_to:
        own.log.adopt(leader.log, own.log.end)
    if own.log.end < leader.log.start:
        _start_over(own, leader)
    own.high_watermark = min(own.high_watermark, own.log.end)
    own.reconciled = True
    own.broker.kernel.trace("reconciled", *own.key, own.broker.id, own.log.end)
    own.broker.touched.add(own.key)


def _start_over(own: Replica, leader: Replica) -> None:
    """Begin the follower's log where the leader's begins (Fetch: OFFSET_OUT_OF_RANGE)."""
    own.log.reset(leader.log.start)
    own.producers = None


class Replication:
    """The pairs between all brokers of a cluster."""

    def __init__(self, nodes: Nodes, brokers: Mapping[int, Broker]) -> None:
        self._brokers = brokers
        self._pairs = {
            leader: {
                follower: Pair(brokers[leader], brokers[follower])
                for follower in brokers
                if follower != leader
            }
            for leader in brokers
        }
        for leader, pairs in self._pairs.items():
            for follower, pair in pairs.items():
                brokers[leader].fetchers[follower] = pair
                brokers[follower].own_fetchers[leader] = pair
        nodes.on_process_change(self._process_changed)
        self._network = nodes.network
        self._network.on_change(self._network_changed)

    def _network_changed(self, a: int, b: int) -> None:
        connected = self._network.connects(a, b)
        for leader, follower in ((a, b), (b, a)):
            pair = self._pairs.get(leader, {}).get(follower)
            if pair is not None:
                pair.network_changed(connected, self._network.carries(leader, follower))

    def _process_changed(self, node: int, state: ProcessState) -> None:
        for leader, pairs in self._pairs.items():
            for follower, pair in pairs.items():
                if node in (leader, follower):
                    pair.processes_changed()

    def hang(self, broker: int) -> None:
        """Stop all fetches to and from a broker that hangs. Its own fetches still wait at the leaders."""
        for other, theirs in self._brokers.items():
            if other != broker:
                theirs.unreachable(broker)
                self._pairs[broker][other].stop_fetching()
                self._pairs[other][broker].freeze()

    def stop_fetching(self, broker: int) -> None:
        """Cut all fetches to and from a broker whose process has ended."""
        for other, theirs in self._brokers.items():
            if other != broker:
                theirs.unreachable(broker)
                self._pairs[broker][other].stop_fetching()
                self._pairs[other][broker].stop_fetching()

    def resume(self, broker: int) -> None:
        """Resume the fetches to and from a broker that hung."""
        for other in self._brokers:
            if other != broker:
                self._pairs[broker][other].resume()
                self._pairs[other][broker].resume()
