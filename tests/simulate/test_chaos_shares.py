"""A share group in chaos: an accepted record never comes again, no record is locked for two members at one
leader, and every committed record is accepted, unless it was delivered as often as it may be."""

from collections import Counter
from functools import partial
from random import Random

import pytest

from kview.simulate.alterations import Alteration, Operation
from kview.simulate.cluster import Cluster
from kview.simulate.codes import ErrorCode
from kview.simulate.groups.share_results import ShareHeartbeat, ShareHeartbeatResult
from kview.simulate.requests.records import Acks
from kview.simulate.sharing.in_flight import Acknowledgement, AcknowledgeType, RecordState, Wanted
from kview.simulate.sharing.leader import ShareAcknowledged, ShareFetch, ShareFetched
from kview.simulate.sharing.sessions import NEW, Place
from tests.simulate.chaos import disturb
from tests.simulate.engine import batch, cluster_of, go

GROUP = "pickers"
LIMIT = 5
PARTITIONS = 3
SETTINGS = {
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "replica.lag.time.max.ms": "4000",
    "group.share.record.lock.duration.ms": "3000",
    "group.share.min.record.lock.duration.ms": "1000",
    "share.coordinator.state.topic.num.partitions": "2",
    "share.coordinator.snapshot.update.records.per.snapshot": "5",
}
Record = tuple[int, int]
"""(partition, offset)"""
ACCEPT, RELEASE, REJECT = AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT


class Picker:
    """A member that knows every broker, and goes on whatever happens."""

    def __init__(self, name: str, chaos: "ShareChaos") -> None:
        self.name = name
        self.chaos = chaos
        self.epoch = 0
        self.sessions: dict[int, int] = {}
        self.asked: dict[int, int] = {}
        self.held: dict[int, list[tuple[int, int, int]]] = {}
        """Broker → (partition, first, last) acquired there."""
        self._number = 0

    def beat(self, broker: int) -> None:
        cluster = self.chaos.cluster
        coordinator = cluster.groups(broker).find(GROUP)
        if coordinator < 0 or not cluster.nodes.serves(coordinator):
            return
        request = ShareHeartbeat(GROUP, self.name, self.epoch, topics=None if self.epoch else ("t",))
        cluster.groups(coordinator).share_heartbeat(request, self._beaten)

    def _beaten(self, result: ShareHeartbeatResult) -> None:
        if result.error_code is ErrorCode.NONE:
            self.epoch = result.member_epoch
        elif result.error_code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH):
            self.epoch = 0

    def fetch(self, broker: int, numbers: list[int], source: Random) -> None:
        """Open a session at a broker or go on with it, and fetch what it leads."""
        epoch = self.sessions.get(broker, NEW)
        if epoch == NEW:
            self.held.pop(broker, None)
        self.sessions[broker] = epoch + 1
        self._number += 1
        self.asked[broker] = self._number
        request = ShareFetch(
            GROUP,
            self.name,
            epoch,
            self,
            source.choice((0, 300)),
            1,
            1 << 20,
            Wanted(source.choice((1, 4, 50)), 10, source.random() < 0.3),
            [self.chaos.place(number) for number in numbers],
        )
        self.chaos.cluster.share_leader(broker).fetch(request, partial(self._fetched, broker, self._number))

    def _fetched(self, broker: int, number: int, result: ShareFetched) -> None:
        if result.error_code is not ErrorCode.NONE:
            self.sessions.pop(broker, None)
            return
        is_late = self.asked.get(broker) != number
        for row in result.partitions:
            for one in row.acquired:
                for offset in range(one.first, one.last + 1):
                    self.chaos.delivered(row.place[1], offset, one.deliveries)
                if not is_late:
                    self.held.setdefault(broker, []).append((row.place[1], one.first, one.last))

    def settle(self, broker: int, kind: AcknowledgeType) -> None:
        """Say something about one batch that the member has from a broker."""
        if not self.held.get(broker) or broker not in self.sessions:
            return
        number, first, last = self.held[broker].pop(0)
        epoch = self.sessions[broker]
        self.sessions[broker] = epoch + 1
        said = {self.chaos.place(number): [Acknowledgement(first, last, (kind,))]}
        self.chaos.said(number, range(first, last + 1), kind)
        locked = self.chaos.locked(broker, number, self.name) & set(range(first, last + 1))

        def settled(result: ShareAcknowledged) -> None:
            if result.error_code is not ErrorCode.NONE:
                self.sessions.pop(broker, None)
            for _, (code, _) in result.partitions:
                if code is ErrorCode.NONE:
                    self.chaos.settled(number, locked, kind)

        self.chaos.cluster.share_leader(broker).acknowledge(GROUP, self.name, epoch, said, False, settled)


class ShareChaos:
    """A cluster whose nodes fail, a writer, and three members."""

    def __init__(self, seed: int) -> None:
        configs = {"min.insync.replicas": "2"}
        self.cluster: Cluster = cluster_of(
            brokers=4, racks=2, partitions=PARTITIONS, settings=SETTINGS, configs=configs, seed=seed
        )
        self.source = Random(seed)
        self.topic_id = self.cluster.metadata.image.topics["t"].topic_id
        self.pickers = [Picker(name, self) for name in "abc"]
        self.done: set[Record] = set()
        self.told: set[Record] = set()
        """Accepted or rejected by a member, whatever the answer was: such a record may never come again."""
        self.deliveries: Counter[Record] = Counter()
        self.most: dict[Record, int] = {}
        self.problems: list[str] = []
        self.faults = True

    def place(self, number: int) -> Place:
        return self.topic_id, number

    def delivered(self, number: int, offset: int, count: int) -> None:
        if (number, offset) in self.done:
            self.problems.append(f"{number}@{offset} comes again, with count {count}")
        self.deliveries[number, offset] += 1
        self.most[number, offset] = max(count, self.most.get((number, offset), 0))
        if count > LIMIT:
            self.problems.append(f"{number}@{offset} has count {count}")

    def said(self, number: int, offsets: range, kind: AcknowledgeType) -> None:
        if kind in (ACCEPT, REJECT):
            self.told |= {(number, offset) for offset in offsets}

    def settled(self, number: int, offsets: set[int], kind: AcknowledgeType) -> None:
        if kind in (ACCEPT, REJECT):
            self.done |= {(number, offset) for offset in offsets}

    def locked(self, broker: int, number: int, member: str) -> set[int]:
        """Return the offsets that a member has locked. What it says of others is answered as if it counted
        where they are below the start, as at Kafka."""
        return {
            offset
            for led in self.cluster.share_leader(broker).partitions()
            for first, last, state in led.flight.states()
            if led.key.partition == number and state.member == member
            for offset in range(first, last + 1)
        }

    def run(self, seconds: float) -> None:
        until_us = self.cluster.kernel.now_us + round(seconds * 1e6)
        while self.cluster.kernel.now_us < until_us:
            self._act()
            go(self.cluster, self.source.choice((0.001, 0.05, 0.2)))
            self._check_locks()
            assert not self.problems

    def _act(self) -> None:
        source, cluster = self.source, self.cluster
        running = [b for b in cluster.broker_ids() if cluster.nodes.serves(b)]
        if self.faults and source.random() < 0.03:
            disturb(cluster, source)
        elif self.faults and source.random() < 0.05:
            cluster.faults.undo()
        if not running:
            return
        image = cluster.image(source.choice(running)).topics["t"].partitions
        picker, broker = source.choice(self.pickers), source.choice(running)
        led = [number for number, partition in enumerate(image) if partition.leader == broker]
        match source.randrange(6):
            case 0:
                picker.beat(broker)
            case 1 | 2 if led or broker in picker.sessions:
                picker.fetch(broker, led, source)
            case 3 | 4 if self.faults:
                picker.settle(broker, source.choice([ACCEPT] * 7 + [RELEASE, REJECT]))
            case 3 | 4:
                for _ in picker.held.get(broker, [])[:]:
                    picker.settle(broker, ACCEPT)
            case _ if self.faults:
                self._write(led, broker)

    def _write(self, led: list[int], broker: int) -> None:
        if led:
            data = batch([b"v"] * self.source.randrange(1, 9))
            number = self.source.choice(led)
            self.cluster.records.produce(broker, "t", number, data, Acks(-1, 5_000, lambda result: None))

    def _check_locks(self) -> None:
        """Check that what a leader has locked is in order: no record twice, none below the others' states."""
        for b in self.cluster.broker_ids():
            for led in self.cluster.share_leader(b).partitions():
                last = -1
                for first, end, state in led.flight.states():
                    assert first > last and end >= first
                    last = end
                    is_held = state.state is RecordState.ACQUIRED
                    assert is_held == bool(state.member) or state.before is not None
                    assert state.deliveries <= LIMIT

    def heal(self) -> None:
        """End all faults, and let the members accept everything that is left."""
        self.faults = False
        self.cluster.faults.undo()
        go(self.cluster, 30)
        for _ in range(60):
            self.run(2)
            if not self._left():
                break
        assert not self._left()

    def _left(self) -> list[Record]:
        """Return the committed records that nobody has accepted or rejected, and that may still come."""
        left = []
        for number in range(PARTITIONS):
            replica = self.cluster.partitions.leader(("t", number))
            assert replica is not None
            left += [
                (number, offset)
                for offset in range(replica.high_watermark)
                if (number, offset) not in self.told and self.most.get((number, offset), 0) < LIMIT
            ]
        return left


@pytest.mark.parametrize("seed", range(6))
def test_no_accepted_record_comes_again_and_none_is_lost(seed: int) -> None:
    chaos = ShareChaos(seed)
    for picker in chaos.pickers:
        picker.beat(0)
    _begin_early(chaos.cluster)
    go(chaos.cluster, 3)
    chaos.run(60)
    chaos.heal()
    assert len(chaos.done) > 100, "the group was at work"
    assert any(count > 1 for count in chaos.deliveries.values())


def _begin_early(cluster: Cluster) -> None:
    change = Alteration("share.auto.offset.reset", Operation.SET, "earliest")
    cluster.admin.alter_group(GROUP, (change,), False, False)
    go(cluster, 0.1)
