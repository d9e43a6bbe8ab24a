"""The in-sync replicas, the high watermark, and appends that wait for the watermark."""

from kview.simulate.cluster import build
from kview.simulate.codes import ErrorCode
from kview.simulate.requests.records import Acks
from kview.simulate.stream import NewRun
from kview.simulate.world import LinkSpec, TopicSpec, World, racked_brokers
from tests.simulate.engine import START_MS, TOPIC, cluster_of, go, partition, produce, replica, seconds_until
from tests.simulate.invariants import Checker


def test_acks_all_is_answered_when_every_in_sync_replica_has_it() -> None:
    cluster = cluster_of()
    go(cluster, 5)
    answers = produce(cluster, 0)
    assert answers == []
    go(cluster, 0.05)
    assert answers[0].error_code is ErrorCode.NONE
    assert [replica(cluster, b).log.end for b in range(3)] == [1, 1, 1]
    go(cluster, 1)
    assert [replica(cluster, b).high_watermark for b in range(3)] == [1, 1, 1], "followers learn it too"


def test_a_silent_follower_freezes_the_watermark_until_it_is_fenced() -> None:
    cluster = cluster_of()
    go(cluster, 5)
    cluster.faults.hang(2)
    answers = produce(cluster, 0)
    go(cluster, 5)
    assert answers == [] and replica(cluster, 0).high_watermark == 0 and replica(cluster, 0).log.end == 1
    assert cluster.records.list_offset(0, TOPIC, 0, -1).offset == 0, "a client's latest is the watermark"
    assert cluster.records.list_offset(0, TOPIC, 0, -1, replica_id=-2).offset == 1, (
        "the debugging one is the log end"
    )
    assert cluster.records.list_offset(1, TOPIC, 0, -1, replica_id=-2).offset == 1, "on followers too"
    assert cluster.records.list_offset(1, TOPIC, 0, -1).error_code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    seconds_until(cluster, lambda p: p.isr == (0, 1))
    go(cluster, 0.1)
    assert answers[0].error_code is ErrorCode.NONE and replica(cluster, 0).high_watermark == 1


def test_a_live_follower_that_cannot_keep_up_leaves_by_lag() -> None:
    world = World(
        brokers=racked_brokers(3, 1),
        topics=(TopicSpec(TOPIC, 1, 3),),
        settings={"offsets.topic.num.partitions": "1", "replica.lag.time.max.ms": "10000"},
        link=LinkSpec(bytes_per_second=1_000_000),
        traffic=False,
    )
    cluster = build(world, 1, START_MS)
    Checker(cluster, every_event=True)
    producer = cluster.records.register_producer("p", None)
    seconds = 0.0
    while len(partition(cluster).isr) == 3:
        now_us = cluster.kernel.now_us
        cluster.records.append_run(0, TOPIC, 0, NewRun(1000, now_us, 100, 300, producer), Acks(1, 1000))
        go(cluster, 0.1)  # 3 MB/s over links of 1 MB/s
        seconds += 0.1
        assert seconds < 30
    assert 9 <= seconds <= 17
    assert not any(b.fenced for b in cluster.metadata.image.brokers.values())
    seconds_until(cluster, lambda p: p.isr == (0, 1, 2), limit=120)


def test_a_follower_that_hangs_leaves_by_lag_where_its_session_is_long() -> None:
    cluster = cluster_of(settings={"broker.session.timeout.ms": "120000"})
    go(cluster, 90)
    cluster.faults.hang(2)
    produce(cluster, 0)
    assert 29.9 <= seconds_until(cluster, lambda p: p.isr == (0, 1)) <= 45.1, "30 s, looked for every 15 s"


def test_a_follower_far_away_is_in_sync_as_long_as_it_fetches_in_time() -> None:
    cluster = cluster_of(settings={"broker.session.timeout.ms": "60000"})
    cluster.faults.slow(2, 10_000)
    go(cluster, 80)
    for _ in range(30):
        produce(cluster, 0, acks=1)
        go(cluster, 1)
        assert partition(cluster).isr == (0, 1, 2)


def test_an_isr_that_was_asked_for_too_late_or_with_a_dead_broker_is_refused() -> None:
    cluster = cluster_of()
    go(cluster, 5)
    cluster.faults.crash(2)
    seconds_until(cluster, lambda p: p.isr == (0, 1))
    key, now = (TOPIC, 0), partition(cluster)
    of = cluster.metadata.image.topics[TOPIC].topic_id
    ask = cluster.controller.alter_partitions
    assert ask(0, [(key, of, now.leader_epoch, now.partition_epoch, (0, 1, 2))]) == [key], "2 is fenced"
    assert ask(0, [(key, of, now.leader_epoch, now.partition_epoch - 1, (0,))]) == [key]
    assert ask(0, [(key, of, now.leader_epoch - 1, now.partition_epoch, (0,))]) == [key]
    other = bytes(16)
    assert ask(0, [(key, other, now.leader_epoch, now.partition_epoch, (0,))]) == [key], "another topic"
    assert ask(1, [(key, of, now.leader_epoch, now.partition_epoch, (0,))]) == [key], "not the leader"
    assert ask(0, [(key, of, now.leader_epoch, now.partition_epoch, (0,))]) == []
    assert partition(cluster).isr == (0,)


def test_a_follower_joins_when_it_has_the_watermark_and_the_new_epochs_start() -> None:
    cluster = cluster_of()
    go(cluster, 5)
    produce(cluster, 0, [b"a"] * 5)
    go(cluster, 1)
    leader = replica(cluster, 0)
    follower = leader.followers[2]
    assert leader.may_join(follower)
    follower.log_end = leader.high_watermark - 1
    assert not leader.may_join(follower)
    follower.log_end = leader.high_watermark
    leader.epoch_start = leader.high_watermark + 1
    assert not leader.may_join(follower)


def test_below_min_insync_replicas_acks_all_is_refused_and_the_watermark_stands() -> None:
    cluster = cluster_of(configs={"min.insync.replicas": "2"})
    go(cluster, 5)
    cluster.faults.crash(1)
    cluster.faults.crash(2)
    waiting = produce(cluster, 0)
    seconds_until(cluster, lambda p: p.isr == (0,))
    go(cluster, 0.1)
    assert waiting == [], "appended before the ISR was too small: it waits for the watermark"
    assert produce(cluster, 0)[0].error_code is ErrorCode.NOT_ENOUGH_REPLICAS
    assert produce(cluster, 0, acks=1)[0].error_code is ErrorCode.NONE
    assert (replica(cluster, 0).log.end, replica(cluster, 0).high_watermark) == (2, 0)
    assert partition(cluster).elr, "who had everything committed stays eligible"
    cluster.faults.start(1)
    seconds_until(cluster, lambda p: p.isr == (0, 1))
    go(cluster, 0.1)
    assert waiting[0].error_code is ErrorCode.NONE and replica(cluster, 0).high_watermark == 2


def test_an_append_that_waits_too_long_times_out() -> None:
    cluster = cluster_of()
    cluster.faults.hang(2)
    answers = produce(cluster, 0, timeout_ms=1500)
    go(cluster, 1.4)
    assert answers == []
    go(cluster, 0.2)
    assert [a.error_code for a in answers] == [ErrorCode.REQUEST_TIMED_OUT]
    go(cluster, 20)
    assert len(answers) == 1


def test_after_an_election_latest_waits_for_the_new_epoch() -> None:
    cluster = cluster_of()
    go(cluster, 5)
    produce(cluster, 0, [b"a"] * 5)
    go(cluster, 1)
    cluster.faults.slow(2, 3000)  # it is in the ISR, so the watermark waits for it
    produce(cluster, 0, [b"b"] * 5)
    go(cluster, 0.1)
    cluster.faults.crash(0)
    seconds_until(cluster, lambda p: p.leader == 1)
    assert partition(cluster).isr == (1, 2)
    new = replica(cluster, 1)
    assert new.high_watermark < new.epoch_start
    assert cluster.records.list_offset(1, TOPIC, 0, -1).error_code is ErrorCode.OFFSET_NOT_AVAILABLE
    go(cluster, 10)
    assert cluster.records.list_offset(1, TOPIC, 0, -1).offset == new.log.end


def test_leaders_know_their_epoch() -> None:
    cluster = cluster_of()
    go(cluster, 5)
    produce(cluster, 0, [b"a"] * 3)
    go(cluster, 1)
    cluster.faults.stop(0)
    go(cluster, 2)
    read = cluster.records.read
    assert read(1, TOPIC, 0, 0, 1000, leader_epoch=0).error_code is ErrorCode.FENCED_LEADER_EPOCH
    assert read(1, TOPIC, 0, 0, 1000, leader_epoch=9).error_code is ErrorCode.UNKNOWN_LEADER_EPOCH
    assert read(1, TOPIC, 0, 0, 1000, leader_epoch=1).records
    assert read(2, TOPIC, 0, 0, 1000).error_code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert read(1, TOPIC, 0, 4, 1000).error_code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert read(1, "none", 0, 0, 1000).error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert cluster.records.epoch_end(1, TOPIC, 0, 0)[1:] == (0, 3)
    assert cluster.records.epoch_end(1, TOPIC, 0, 1)[1:] == (1, 3)


def test_a_busy_partition_does_not_starve_a_small_one_on_a_slow_link() -> None:
    world = World(
        brokers=racked_brokers(3, 1),
        topics=(TopicSpec(TOPIC, 1, 3), TopicSpec("small", 1, 3)),
        settings={"offsets.topic.num.partitions": "1"},
        link=LinkSpec(bytes_per_second=100_000),
        traffic=False,
    )
    cluster = build(world, 1, START_MS)
    producer = cluster.records.register_producer("p", None)
    leader = cluster.metadata.image.topics["small"].partitions[0].leader
    assert leader == 0, "both share a link"
    ends = []
    for _ in range(100):
        now_us = cluster.kernel.now_us
        cluster.records.append_run(0, TOPIC, 0, NewRun(50, now_us, 1000, 300, producer), Acks(1, 1000))
        cluster.records.append_run(leader, "small", 0, NewRun(1, now_us, 100, 300, producer), Acks(1, 1000))
        go(cluster, 0.1)  # 150 kB/s to each follower over links of 100 kB/s
        ends.append(cluster.brokers[leader].replicas["small", 0].high_watermark)
    assert replica(cluster, 0).high_watermark < replica(cluster, 0).log.end // 2
    assert ends[-1] > ends[60] > ends[30] > 0
