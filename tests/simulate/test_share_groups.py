"""Share groups at their coordinator, at leaders and at share coordinators: epochs, assignments, failover."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kview.simulate.alterations import Alteration, Operation
from kview.simulate.cluster import Cluster
from kview.simulate.codes import ErrorCode
from kview.simulate.coordination.share_states import SharePartition, StateBatch, Summary, WrittenState
from kview.simulate.groups import records as group_records
from kview.simulate.groups.share_records import NamedPartitions, ShareStatesKey, ShareStatesValue
from kview.simulate.groups.share_results import ShareHeartbeat, ShareHeartbeatResult
from kview.simulate.groups.simple_assignor import assign_simple
from kview.simulate.sharing import records as state_records
from kview.simulate.sharing.in_flight import Acknowledgement, AcknowledgeType, Wanted
from kview.simulate.sharing.leader import ShareAcknowledged, ShareFetch, ShareFetched
from kview.simulate.world import SHARE_TOPIC
from tests.simulate.engine import cluster_of, go, partition, produce, seconds_until

ACCEPT = (AcknowledgeType.ACCEPT,)
GROUP = "g"
SETTINGS = {"share.coordinator.state.topic.num.partitions": "1"}


# --- the assignor


@settings(max_examples=200, deadline=None)
@given(
    members=st.integers(1, 12),
    partitions=st.integers(1, 12),
    moves=st.lists(st.integers(-3, 3), max_size=5),
    alike=st.booleans(),
)
def test_the_simple_assignor_balances(
    members: int, partitions: int, moves: Sequence[int], alike: bool
) -> None:
    """Every partition has a member, none more than another by two, and members keep what they can."""
    one, two = b"1" * 16, b"2" * 16
    assignable = {one: frozenset(range(partitions)), two: frozenset(range(2))}
    before: dict[str, Any] = {}
    for move in (0, *moves):
        members = max(1, members + move)
        topics = {f"m{n}": frozenset((one,) if alike or n % 2 else (one, two)) for n in range(members)}
        before = assign_simple(topics, assignable, before)
        for topic in (one, two):
            takers = [name for name, known in topics.items() if topic in known]
            counts = [sum(n in before[name].get(topic, ()) for name in topics) for n in assignable[topic]]
            assert not takers or min(counts) >= 1
            sizes = [len(before[name].get(topic, ())) for name in takers]
            assert not sizes or max(sizes) - min(sizes) <= 1 + (not alike)
            assert all(topic not in before[name] for name in topics if topic not in topics[name])
        assert assign_simple(topics, assignable, before) == before, "nothing changes without a reason"


# --- members at a coordinator


class Member:
    """A member of the group, as a client of a whole cluster."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster = cluster
        self.name = name
        self.epoch = 0
        self.session = 0
        self.assigned: set[int] = set()

    @property
    def coordinator(self) -> int:
        return self.cluster.groups(self._any()).find(GROUP)

    def _any(self) -> int:
        return next(b for b in self.cluster.broker_ids() if self.cluster.nodes.serves(b))

    def beat(self, epoch: int | None = None) -> ShareHeartbeatResult:
        """Send a heartbeat, and return its answer."""
        epoch = self.epoch if epoch is None else epoch
        answers: list[ShareHeartbeatResult] = []
        request = ShareHeartbeat(GROUP, self.name, epoch, topics=None if epoch else ("t",))
        self.cluster.groups(self.coordinator).share_heartbeat(request, answers.append)
        go(self.cluster, 0.2)
        (answer,) = answers
        if answer.error_code is ErrorCode.NONE and epoch >= 0:
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                self.assigned = {number for numbers in answer.assignment.values() for number in numbers}
        return answer

    def join(self) -> None:
        """Join, and wait for partitions."""
        for _ in range(30):
            self.beat()
            if self.assigned:
                return
            go(self.cluster, 0.8)
        raise AssertionError("no partitions")

    def fetch(self, *said: Acknowledgement, number: int = 0, wait_ms: int = 500, records: int = 500) -> Any:
        """Fetch a partition from its leader, and return what was acquired, or the error."""
        leader = partition(self.cluster, number).leader
        topic_id = self.cluster.metadata.image.topics["t"].topic_id
        place = (topic_id, number)
        answers: list[ShareFetched] = []
        request = ShareFetch(
            GROUP, self.name, self.session, self, wait_ms, 1, 1 << 20, Wanted(records, 500),
            () if self.session else (place,), (), {place: said} if said else {},
        )  # fmt: skip
        self.cluster.share_leader(leader).fetch(request, answers.append)
        go(self.cluster, wait_ms / 1000 + 2)
        (answer,) = answers
        if answer.error_code is not ErrorCode.NONE:
            return answer.error_code
        self.session += 1
        (row,) = answer.partitions or (None,)
        if row is None:
            return []
        if said:
            assert row.acknowledged[0] is ErrorCode.NONE, row
        return [tuple(one) for one in row.acquired] if row.error[0] is ErrorCode.NONE else row.error[0]


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    yield cluster_of(brokers=3, settings=SETTINGS, configs={"min.insync.replicas": "2"})


def begin_early(cluster: Cluster) -> None:
    """Let the group begin with the earliest records."""
    change = Alteration("share.auto.offset.reset", Operation.SET, "earliest")
    cluster.admin.alter_group(GROUP, (change,), False, False)
    go(cluster, 0.1)


def write(cluster: Cluster, count: int) -> None:
    """Write a batch of so many records."""
    produce(cluster, partition(cluster).leader, [b"v"] * count, acks=-1)
    go(cluster, 0.5)


def test_a_session_that_ends(cluster: Cluster) -> None:
    a, b = Member(cluster, "a"), Member(cluster, "b")
    a.join()
    b.join()
    for _ in range(9):
        go(cluster, 5)
        assert a.beat().error_code is ErrorCode.NONE
    described = cluster.groups(a.coordinator).describe_share_group(GROUP)
    assert ([m.member_id for m in described.members], b.beat().error_code) == (
        ["a"], ErrorCode.UNKNOWN_MEMBER_ID,
    )  # fmt: skip


def test_the_largest_group() -> None:
    cluster = cluster_of(settings={**SETTINGS, "group.share.max.size": "1"})
    Member(cluster, "a").beat()
    answer = Member(cluster, "b").beat()
    assert (answer.error_code, answer.message) == (
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        "The share group has reached its maximum capacity of 1 members.",
    )


def test_members_outlive_their_coordinator(cluster: Cluster) -> None:
    """The next coordinator has the group from the log, with its epochs, members and partitions."""
    a = Member(cluster, "a")
    a.join()
    before = a.coordinator
    known = cluster.groups(before).describe_share_group(GROUP)
    cluster.faults.crash(before)
    go(cluster, 12)
    assert a.coordinator != before
    assert cluster.groups(a.coordinator).describe_share_group(GROUP) == known
    answer = a.beat()
    assert (answer.error_code, answer.member_epoch, answer.assignment) == (ErrorCode.NONE, a.epoch, None)


def test_a_topic_that_is_deleted_is_forgotten(cluster: Cluster) -> None:
    a = Member(cluster, "a")
    a.join()
    cluster.topics.delete("t")
    go(cluster, 1)
    (group,) = cluster.groups(a.coordinator).groups()
    assert group.states.initialized == {}  # type: ignore[union-attr]
    states = [shard for b in cluster.broker_ids() for shard in cluster.shares(b)._shards.values()]
    assert [dict(shard.states) for shard in states] == [{}]


# --- failover of leaders and share coordinators


def test_the_next_leader_goes_on_where_the_last_one_was(cluster: Cluster) -> None:
    """Accepted records do not come again, others do: released ones with a higher count."""
    begin_early(cluster)
    a = Member(cluster, "a")
    a.join()
    write(cluster, 10)
    assert a.fetch() == [(0, 9, 1)]
    assert a.fetch(Acknowledgement(0, 3, ACCEPT), Acknowledgement(4, 5, (AcknowledgeType.RELEASE,))) == [
        (4, 5, 2)
    ]
    leader, epoch = partition(cluster).leader, partition(cluster).leader_epoch
    cluster.faults.crash(leader)
    seconds_until(cluster, lambda image: image.leader_epoch > epoch)
    go(cluster, 3)
    b = Member(cluster, "b")
    assert b.fetch(wait_ms=8_000) == [(4, 5, 2), (6, 9, 1)]
    assert b.fetch(Acknowledgement(4, 9, ACCEPT)) == []
    (led,) = cluster.share_leader(partition(cluster).leader).partitions()
    assert (led.flight.start, led.leader_epoch) == (10, partition(cluster).leader_epoch)


def test_a_leader_that_was_deposed_writes_nothing(cluster: Cluster) -> None:
    """Its epoch is older than that of the leader after it, so the share coordinator refuses it."""
    begin_early(cluster)
    a = Member(cluster, "a")
    a.join()
    write(cluster, 4)
    assert a.fetch() == [(0, 3, 1)]
    key = SharePartition(GROUP, cluster.metadata.image.topics["t"].topic_id, 0)
    coordinator = cluster.shares(cluster.shares(0).find(key.coordinator_key))
    coordinator.read(key, partition(cluster).leader_epoch + 1, lambda read: None)
    go(cluster, 0.5)
    answers: list[ShareAcknowledged] = []
    leader = cluster.share_leader(partition(cluster).leader)
    said = {(key.topic_id, 0): [Acknowledgement(0, 3, ACCEPT)]}
    leader.acknowledge(GROUP, "a", a.session, said, False, answers.append)
    go(cluster, 1)
    ((_, (code, _)),) = answers[0].partitions
    assert code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert coordinator.summarize(key).start_offset in (0, -1)
    assert not list(leader.partitions()), "the next fetch reads the state again"


def test_states_outlive_their_coordinator(cluster: Cluster) -> None:
    begin_early(cluster)
    a = Member(cluster, "a")
    a.join()
    write(cluster, 6)
    assert a.fetch() == [(0, 5, 1)]
    assert a.fetch(Acknowledgement(2, 3, ACCEPT)) == []
    state_leader = cluster.metadata.image.topics[SHARE_TOPIC].partitions[0].leader
    cluster.faults.crash(state_leader)
    go(cluster, 14)
    key = SharePartition(GROUP, cluster.metadata.image.topics["t"].topic_id, 0)
    now = cluster.metadata.image.topics[SHARE_TOPIC].partitions[0].leader
    assert now not in (state_leader, -1)
    summary = cluster.shares(now).summarize(key)
    assert summary[0] is ErrorCode.NONE and summary.start_offset == 0 and summary.complete == 2


def test_without_a_share_coordinator_nothing_is_settled(cluster: Cluster) -> None:
    """The members are told so, and the records stay acquired until they can be written or their locks end."""
    begin_early(cluster)
    a = Member(cluster, "a")
    a.join()
    write(cluster, 6)
    assert a.fetch() == [(0, 5, 1)]
    topic_id = cluster.metadata.image.topics["t"].topic_id
    key = SharePartition(GROUP, topic_id, 0)
    shard = next(s for b in cluster.broker_ids() for s in cluster.shares(b)._shards.values())
    shard.loading = True
    answers: list[ShareAcknowledged] = []
    leader = cluster.share_leader(partition(cluster).leader)
    leader.acknowledge(
        GROUP, "a", a.session, {(topic_id, 0): [Acknowledgement(0, 5, ACCEPT)]}, False, answers.append
    )
    go(cluster, 20)
    ((_, (code, _)),) = answers[0].partitions
    assert code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    (led,) = leader.partitions()
    assert (led.key, led.flight.start, led.flight.count) == (key, 0, 6)
    shard.loading = False
    go(cluster, 15)
    assert a.session and Member(cluster, "b").fetch() == [(0, 5, 2)]


def test_a_members_session_is_held_while_time_passes_at_once(cluster: Cluster) -> None:
    Member(cluster, "a").join()
    coordinators = [cluster.groups(b) for b in cluster.broker_ids()]

    def members() -> int:
        return sum(len(one.describe_share_group(GROUP).members) for one in coordinators)

    for coordinator in coordinators:
        coordinator.hold_sessions([(GROUP, "a"), (GROUP, "nobody")], 30_000_000)
    go(cluster, 70)
    assert members() == 1, "45 s, and 30 more"
    go(cluster, 10)
    assert members() == 0


# --- records in the logs


def test_the_bytes_of_a_real_cluster() -> None:
    """Records that a broker of 4.3.1 has written, and what they say."""
    topic_id = "7b69be54a0ac4f3cbc836185182552f4"
    states = bytes.fromhex(f"0000 01 02 {topic_id} 037331 04 00000000 00000001 00000002 00 01 00")
    key = ShareStatesKey("g1")
    value = ShareStatesValue({}, {bytes.fromhex(topic_id): NamedPartitions("s1", frozenset((0, 1, 2)))}, {})
    assert group_records.encode_key(key) == b"\0\x0f\0\x02g1"
    assert (group_records.encode_value(value), group_records.decode_value(key, states)) == (states, value)
    update = bytes.fromhex(
        "0000 00000001 00000003 ffffffffffffffff 03 0000000000000008 0000000000000009 02 0001 00"
        "000000000000000a 000000000000000c 04 0002 00 01 00 04 00000001"
    )
    batches = (StateBatch(8, 9, 2, 1), StateBatch(10, 12, 4, 2))
    known = state_records.ShareUpdate(1, 3, -1, 1, batches)
    assert state_records._encode_value(known) == update
    assert state_records._decode_value(state_records.UPDATE, update) == known
    snapshot = bytes.fromhex(
        "0000 00000000 00000002 00000000 ffffffffffffffff 000001a21b6a4cc9 000001a21b6a4cc9 01 00"
    )
    begun = state_records.ShareState(0, 2, 0, -1, -1, 0x1A21B6A4CC9, 0x1A21B6A4CC9)
    assert state_records._encode_value(begun) == snapshot
    assert state_records._decode_value(state_records.SNAPSHOT, snapshot) == begun


@given(
    below=st.lists(
        st.tuples(st.integers(0, 30), st.integers(0, 9), st.sampled_from([0, 2, 4]), st.integers(1, 4))
    ),
    start=st.integers(-1, 20),
)
def test_of_two_states_the_later_counts(below: Sequence[tuple[int, int, int, int]], start: int) -> None:
    batches = [StateBatch(first, first + length, state, count) for first, length, state, count in below]
    after = state_records.overlaid((), batches, start)
    found = {at: (b.deliveries, b.state) for b in after for at in range(b.first, b.last + 1)}
    wanted: dict[int, tuple[int, int]] = {}
    for one in batches:
        for at in range(one.first, one.last + 1):
            wanted[at] = max(wanted.get(at, (0, 0)), (one.deliveries, one.state))
    assert found == {at: best for at, best in wanted.items() if at >= start}
    assert all(b.last < c.first for b, c in pairwise(after)), "in order, without overlaps"


def test_a_share_states_log_is_compacted(cluster: Cluster) -> None:
    """The log of a partition that is written often begins with a snapshot again, and says the same."""
    begin_early(cluster)
    Member(cluster, "a").join()
    key = SharePartition(GROUP, cluster.metadata.image.topics["t"].topic_id, 0)
    b = cluster.shares(0).find(key.coordinator_key)
    for number in range(2_100):
        state = WrittenState(2, 0, number, 0, (StateBatch(number, number, 2, 1),))
        cluster.shares(b).write(key, state, lambda code, message: None)
        if not number % 50:
            go(cluster, 0.1)
    go(cluster, 1)
    replica = cluster.brokers[b].replicas[SHARE_TOPIC, 0]
    assert replica.log.end - replica.log.start < 500
    assert cluster.shares(b).summarize(key) == Summary(ErrorCode.NONE, None, 2, 0, 2_099, 0)
