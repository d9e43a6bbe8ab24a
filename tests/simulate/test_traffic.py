"""Simulated clients on an entire cluster: which groups keep up or lag, and what a crash does to clients."""

from kview.model.murmur2 import partition_for_key
from kview.simulate.cluster import Cluster, build
from kview.simulate.coordination.placement import partition_of
from kview.simulate.groups.consumer_protocol import decode_assignment, encode_assignment
from kview.simulate.groups.group import Group, GroupState, Member
from kview.simulate.groups.results import DescribedGroup, GroupProtocol, JoinRequest, JoinResult
from kview.simulate.records import decode_batch
from kview.simulate.topics import CreatableTopic
from kview.simulate.traffic.member import Phase
from kview.simulate.world import (
    OFFSETS_TOPIC,
    GroupSpec,
    ProducerSpec,
    TopicSpec,
    World,
    default_world,
    racked_brokers,
)
from tests.simulate.group_invariants import of_the_cluster, owned_twice
from tests.simulate.invariants import Checker

START_MS = 1_700_000_000_000
S = 1_000_000


def run(cluster: Cluster, seconds: float) -> None:
    cluster.run_until(cluster.kernel.now_us + int(seconds * S))


def watermark(cluster: Cluster, topic: str, partition: int) -> int:
    """Return the high watermark that a client would get from the leader that some running broker names."""
    alive = next(b for b in cluster.broker_ids() if cluster.nodes.state(b).value == "running")
    found = cluster.image(alive).partition(topic, partition)
    assert found is not None
    return cluster.records.list_offset(found.leader, topic, partition, -1).offset


def watermarks(cluster: Cluster, topic: str, partitions: int) -> list[int]:
    return [watermark(cluster, topic, p) for p in range(partitions)]


def coordinator_of(cluster: Cluster, group: str) -> int:
    alive = next(b for b in cluster.broker_ids() if cluster.nodes.state(b).value == "running")
    return cluster.groups(alive).find(group)


def described(cluster: Cluster, group: str) -> DescribedGroup:
    return cluster.groups(coordinator_of(cluster, group)).describe(group)


def lag(cluster: Cluster, group: str, topic: str, partitions: int) -> int:
    fetched = cluster.groups(coordinator_of(cluster, group)).fetch_offsets(
        group, [(topic, p) for p in range(partitions)]
    )
    assert all(o.offset >= 0 for o in fetched.offsets) and len(fetched.offsets) == partitions
    return sum(watermarks(cluster, topic, partitions)) - sum(o.offset for o in fetched.offsets)


def owners(cluster: Cluster, group: str) -> list[tuple[str, int]]:
    return [pair for m in described(cluster, group).members for pair in decode_assignment(m.assignment)]


def small_world(producer: ProducerSpec, *groups: GroupSpec, min_isr: int = 2) -> World:
    topic = TopicSpec(producer.topic, 6, 3, {"min.insync.replicas": str(min_isr)})
    return World(racked_brokers(6, 2), (topic,), (producer,), groups)


def test_in_the_default_world_every_group_has_its_temper() -> None:
    cluster = build(default_world(), 1, START_MS)
    topics = {"invoice": 10, "payment": 6, "audit-log": 4}
    begun = {topic: sum(watermarks(cluster, topic, n)) for topic, n in topics.items()}
    stopped = lag(cluster, "audit-export", "audit-log", 4)
    run(cluster, 20)
    slow = lag(cluster, "reporting", "payment", 6)
    run(cluster, 40)
    grown = {topic: sum(watermarks(cluster, topic, n)) - begun[topic] for topic, n in topics.items()}
    for topic, rate in (("invoice", 4400), ("payment", 2500), ("audit-log", 1000)):
        assert abs(grown[topic] - 60 * rate) < rate, topic
    assert 0 <= lag(cluster, "billing", "invoice", 10) < 6 * 4400  # at most what one commit interval brings
    slower = lag(cluster, "reporting", "payment", 6)
    assert 40 * 140 - 2 * 2500 < slower - slow < 40 * 140 + 2 * 2500
    assert lag(cluster, "audit-export", "audit-log", 4) == stopped + grown["audit-log"]
    states = {g: described(cluster, g) for g in ("billing", "reporting", "fraud-check", "audit-export")}
    assert [d.state for d in states.values()] == ["Stable", "Stable", "Stable", "Empty"]
    assert [len(decode_assignment(m.assignment)) for m in states["fraud-check"].members].count(0) == 1
    for group in ("billing", "reporting", "fraud-check"):
        assert len(owners(cluster, group)) == len(set(owners(cluster, group)))


def test_acks_all_loses_nothing_through_a_crash_stalls_and_catches_up() -> None:
    cluster = build(small_world(ProducerSpec("p", "t", 3000.0, keys=500)), 1, START_MS)
    begun = watermarks(cluster, "t", 6)
    producer = cluster.traffic.producers["p"]
    run(cluster, 5)
    victim = cluster.image(1).topics["t"].partitions[0].leader
    cluster.faults.crash(victim)
    run(cluster, 1)
    stalled = list(producer.counters.acknowledged)
    run(cluster, 4)
    held = [p for p in range(6) if producer.counters.acknowledged[p] == stalled[p]]
    assert 0 in held  # its leader has crashed and is not fenced yet
    assert len(held) > 1  # the watermark is also frozen where that broker is a follower
    assert producer.buffered_records > 3000
    run(cluster, 30)
    counters = producer.counters
    assert producer.buffered_records < 1500
    assert sum(counters.expired) == counters.blocked == 0
    assert abs(sum(counters.created) - 40 * 3000) < 600
    for p, end in enumerate(watermarks(cluster, "t", 6)):
        assert end - begun[p] >= counters.acknowledged[p], p


def test_a_full_buffer_stops_the_application() -> None:
    cluster = build(small_world(ProducerSpec("p", "t", 2000.0, 4000)), 1, START_MS)
    producer = cluster.traffic.producers["p"]
    run(cluster, 1)
    cluster.faults.lose_rack("R1")
    cluster.faults.lose_rack("R2")
    run(cluster, 10)
    room = 33_554_432 // 4000
    assert producer.buffered_records <= room
    assert producer.counters.blocked > 0
    assert sum(producer.counters.created) + producer.counters.blocked >= 10 * 2000


def test_a_group_survives_its_coordinators_crash_without_a_rebalance() -> None:
    cluster = build(
        small_world(
            ProducerSpec("p", "t", 1000.0), GroupSpec("g", ("t",), 3, commit_interval_ms=1000), min_isr=1
        ),
        1,
        START_MS,
    )
    run(cluster, 5)
    old = coordinator_of(cluster, "g")
    before = described(cluster, "g")
    generation = {m.generation for m in cluster.traffic.members["g"]}
    cluster.faults.crash(old)
    run(cluster, 40)
    assert coordinator_of(cluster, "g") != old
    after = described(cluster, "g")
    assert after.state == "Stable"
    assert [m.member_id for m in after.members] == [m.member_id for m in before.members]
    assert {m.generation for m in cluster.traffic.members["g"]} == generation
    assert lag(cluster, "g", "t", 6) < 3000


def test_commits_are_records_of_the_real_offsets_topic() -> None:
    cluster = build(
        small_world(ProducerSpec("p", "t", 100.0), GroupSpec("g", ("t",), 1, commit_interval_ms=1000)),
        1,
        START_MS,
    )
    partition = partition_of("g", 50)
    begun = watermark(cluster, OFFSETS_TOPIC, partition)
    run(cluster, 10.5)
    commits = watermark(cluster, OFFSETS_TOPIC, partition) - begun
    assert 9 * 6 <= commits <= 11 * 6  # each second, one offset for each of six partitions


def test_a_member_more_and_a_member_less_are_rebalances() -> None:
    spec = GroupSpec("g", ("t",), 2, assignor="sticky")
    cluster = build(small_world(ProducerSpec("p", "t", 1000.0), spec), 1, START_MS)
    run(cluster, 2)
    generation = cluster.traffic.members["g"][0].generation
    third = cluster.traffic.add_member(spec)
    run(cluster, 15)
    assert {m.phase for m in cluster.traffic.members["g"]} == {Phase.ASSIGNED}
    assert {m.generation for m in cluster.traffic.members["g"]} == {generation + 1}
    assert sorted(owners(cluster, "g")) == [("t", p) for p in range(6)]
    third.leave()
    run(cluster, 15)
    assert len(described(cluster, "g").members) == 2
    assert sorted(owners(cluster, "g")) == [("t", p) for p in range(6)]
    read = sum(m.read_records for m in cluster.traffic.members["g"])
    # including a second of lag from the warm start, and each record once
    assert abs(read - 32 * 1000) < 3 * 1000


def test_a_hung_coordinator_is_left_when_its_time_out_is_over() -> None:
    world = small_world(ProducerSpec("p", "t", 100.0), GroupSpec("g", ("t",), 2), min_isr=1)
    cluster = build(world, 1, START_MS)
    run(cluster, 2)
    members = [m.member_id for m in described(cluster, "g").members]
    old = coordinator_of(cluster, "g")
    cluster.faults.hang(old)
    run(cluster, 60)
    assert [m.member_id for m in described(cluster, "g").members] == members
    cluster.faults.start(old)
    run(cluster, 20)
    assert described(cluster, "g").state == "Stable"
    assert all(m.phase is Phase.ASSIGNED for m in cluster.traffic.members["g"])


def test_the_same_seed_gives_the_same_traffic() -> None:
    def counters(seed: int) -> list[list[int]]:
        cluster = build(default_world(), seed, START_MS)
        run(cluster, 5)
        cluster.faults.crash(0)
        run(cluster, 15)
        return [p.counters.acknowledged for p in cluster.traffic.producers.values()]

    assert counters(3) == counters(3)


def test_the_offsets_topic_stays_small_and_a_moved_coordinator_knows_everything() -> None:
    spec = GroupSpec("g", ("t",), 3, commit_interval_ms=500)
    cluster = build(small_world(ProducerSpec("p", "t", 100.0), spec, min_isr=1), 1, START_MS)
    partition = partition_of("g", 50)
    run(cluster, 400)
    leader = coordinator_of(cluster, "g")
    assert cluster.records.list_offset(leader, OFFSETS_TOPIC, partition, -2).offset == 0
    assert cluster.records.list_offset(leader, OFFSETS_TOPIC, partition, -1).offset > 2000
    assert len(list(cluster.records.client_batches(leader, OFFSETS_TOPIC, partition))) < 2000
    cluster.faults.crash(leader)
    run(cluster, 30)
    assert len(described(cluster, "g").members) == 3
    assert lag(cluster, "g", "t", 6) < 200


def test_through_faults_a_partition_has_one_owner_and_every_other_invariant_holds() -> None:
    cluster = build(default_world(), 7, START_MS)
    checker = Checker(cluster, others=of_the_cluster(cluster))
    extra = cluster.traffic.add_member(GroupSpec("billing", ("invoice",), 3))
    for fault in (
        lambda: cluster.faults.crash(0),
        lambda: cluster.faults.hang(4),
        lambda: cluster.faults.stop(2),
        cluster.faults.undo,
    ):
        run(cluster, 12)
        fault()
    run(cluster, 12)
    extra.leave()
    run(cluster, 60)
    checker.check_all()
    assert described(cluster, "billing").state == "Stable"
    assert sorted(owners(cluster, "billing")) == [("invoice", p) for p in range(10)]


def test_clients_of_a_topic_that_is_created_again_begin_at_its_start() -> None:
    world = small_world(
        ProducerSpec("p", "t", 600.0), GroupSpec("g", ("t",), 2, commit_interval_ms=1000), min_isr=1
    )
    cluster = build(world, 1, START_MS)
    cluster.faults.crash(5)  # so that leader epochs rise above those of the next topic
    run(cluster, 30)
    cluster.topics.delete_topic(0, "t", 1000, lambda result: None)
    cluster.topics.create_topic(0, CreatableTopic("t", 6, 3), False, 1000, lambda result: None)
    read = sum(member.read_records for member in cluster.traffic.members["g"])
    run(cluster, 20)
    written = sum(watermarks(cluster, "t", 6))
    assert 600 * 15 < written < 600 * 25
    assert 0 <= lag(cluster, "g", "t", 6) < 600 * 3
    assert sum(member.read_records for member in cluster.traffic.members["g"]) - read >= written - 600


def test_clients_use_new_partitions_once_their_metadata_is_too_old() -> None:
    topic = TopicSpec("t", 6, 3)
    producers = (
        ProducerSpec("keyed", "t", 40.0, keys=100),
        ProducerSpec("in-turn", "t", 40.0, record_bytes=4000),
    )
    group = GroupSpec("g", ("t",), 2, commit_interval_ms=1000)
    cluster = build(World(racked_brokers(3, 1), (topic,), producers, (group,)), 1, START_MS)
    run(cluster, 2)
    generation = cluster.traffic.members["g"][0].generation
    before = cluster.records.read(cluster.image(0).topics["t"].partitions[0].leader, "t", 0, 0, 1000).records
    assert cluster.admin.create_partitions("t", 8, None, False).error_code == 0
    run(cluster, 290)
    assert watermarks(cluster, "t", 8)[6:] == [0, 0]
    assert cluster.traffic.members["g"][0].generation == generation and len(owners(cluster, "g")) == 6
    run(cluster, 30)
    created = [producer.counters.created for producer in cluster.traffic.producers.values()]
    assert all(len(counts) == 8 and min(counts) > 0 for counts in created), (
        "both producers use all partitions"
    )
    assert sorted(owners(cluster, "g")) == [("t", p) for p in range(8)]
    assert cluster.traffic.members["g"][0].generation == generation + 1, (
        "one rebalance, which the leader starts"
    )
    assert lag(cluster, "g", "t", 8) < 80 * 3
    for p in (6, 7):
        leader = cluster.image(0).topics["t"].partitions[p].leader
        records = cluster.records.read(leader, "t", p, 0, 16_384).records
        keys = [record.key for record in decode_batch(records) if record.key is not None]
        assert keys and {partition_for_key(key, 8) for key in keys} == {p}
    leader = cluster.image(0).topics["t"].partitions[0].leader
    assert cluster.records.read(leader, "t", 0, 0, 1000).records == before, "older records stay as they are"


def test_two_owners_are_seen() -> None:
    member = Member("a", None, "a", "/h", (), 45_000, 60_000, encode_assignment({"t": [0, 1]}))
    group = Group("g", GroupState.STABLE, protocol_type="consumer", members={"a": member})
    assert owned_twice(group) is None
    group.members["b"] = Member("b", None, "b", "/h", (), 45_000, 60_000, encode_assignment({"t": [1]}))
    assert owned_twice(group) == "group g: t-1 is owned by a and b"


def test_records_that_retention_took_are_passed_over() -> None:
    topic = TopicSpec("t", 2, 3, {"retention.ms": "20000"})
    world = World(
        racked_brokers(6, 2),
        (topic,),
        (ProducerSpec("p", "t", 1000.0),),
        (GroupSpec("g", ("t",), 1, records_per_second=100.0, commit_interval_ms=1000),),
        settings={"log.retention.check.interval.ms": "1000"},
    )
    cluster = build(world, 1, START_MS)
    run(cluster, 90)
    assert lag(cluster, "g", "t", 2) < 25_000  # although it falls behind by 80,000 records


def test_who_waits_at_a_coordinator_that_crashes_never_hears_of_it() -> None:
    world = small_world(ProducerSpec("p", "t", 100.0), GroupSpec("g", ("t",), 1))
    cluster = build(world, 1, START_MS)
    old = coordinator_of(cluster, "g")
    answers: list[JoinResult] = []
    protocols = (GroupProtocol("range", b"\0\0\0\0\0\0\xff\xff\xff\xff"),)
    request = JoinRequest("g", "", "c", "/h", "consumer", protocols, 45_000, 300_000, None, False)
    cluster.groups(old).join(request, answers.append)
    cluster.faults.crash(old)
    run(cluster, 20)
    cluster.faults.start(old)
    run(cluster, 60)
    assert answers == []
