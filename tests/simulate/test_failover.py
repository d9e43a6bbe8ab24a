"""Brokers that crash, hang, stop and return, with what happens to sessions, leaders and records."""

import pytest

from kview.simulate.codes import ErrorCode
from kview.simulate.nodes import ProcessState
from tests.simulate.engine import START_MS, TOPIC, cluster_of, go, partition, produce, replica, seconds_until


def test_a_crashed_leader_is_listed_until_its_session_ends_then_all_changes_in_one_step() -> None:
    cluster = cluster_of()
    go(cluster, 5)
    before = cluster.image(1)
    cluster.faults.crash(0)
    took = 0.0
    while cluster.image(1) is before:
        go(cluster, 0.01)
        took += 0.01
        assert took < 12
    assert 6.9 <= took <= 10.3
    image = cluster.image(1)
    assert image.brokers[0].fenced and 0 not in image.live_brokers()
    now = image.partition(TOPIC, 0)
    assert now is not None
    assert (now.leader, now.leader_epoch, now.isr) == (1, 1, (1, 2))
    assert image.offline_replicas(now) == (0,)


@pytest.mark.parametrize("seed", range(8))
def test_fencing_comes_within_a_session_and_an_eighth(seed: int) -> None:
    cluster = cluster_of(seed=seed)
    go(cluster, 3 + seed * 0.37)
    cluster.faults.crash(2)
    assert 6.9 <= seconds_until(cluster, lambda p: p.isr == (0, 1)) <= 10.2


@pytest.mark.parametrize("down_s", [0.0, 4.0, 30.0])
def test_a_restarted_brokers_port_stays_closed_until_it_is_unfenced(down_s: float) -> None:
    cluster = cluster_of()
    go(cluster, 5)
    opened: list[tuple[int, int, bool]] = []

    def note(broker: int) -> None:
        image = cluster.image(broker)
        found = image.partition(TOPIC, 0)
        assert found is not None
        opened.append((broker, found.leader, image.brokers[broker].fenced))

    cluster.nodes.on_port_open(note)
    cluster.faults.crash(0)
    crashed_us = cluster.kernel.now_us
    go(cluster, down_s)
    cluster.faults.start(0)
    fenced_s = 0.0
    while not opened:
        assert cluster.nodes.refuses(0) and not cluster.nodes.serves(0)
        if cluster.image(1).brokers[0].fenced and not fenced_s:
            fenced_s = (cluster.kernel.now_us - crashed_us) / 1e6
        go(cluster, 0.01)
    opened_s = (cluster.kernel.now_us - crashed_us) / 1e6
    assert opened == [(0, 1, False)], "with the new leader from the start"
    assert cluster.nodes.serves(0)
    if down_s < 5:
        assert 6.9 <= fenced_s <= 10.2
        assert fenced_s < opened_s < fenced_s + 1.0, "once its old session is over"
    else:
        assert down_s + 1 < opened_s < down_s + 4.0, "as soon as it is up"


def test_a_broker_that_hangs_keeps_its_port_open() -> None:
    cluster = cluster_of()
    go(cluster, 5)
    cluster.faults.hang(0)
    go(cluster, 20)
    assert not cluster.nodes.refuses(0) and not cluster.nodes.serves(0)
    cluster.faults.start(0)
    assert cluster.nodes.serves(0)


def test_a_started_broker_without_a_controller_stays_closed() -> None:
    cluster = cluster_of()
    go(cluster, 5)
    cluster.faults.stop(0)
    go(cluster, 5)
    for controller in cluster.world.controllers[:2]:
        cluster.faults.crash(controller)
    cluster.faults.start(0)
    go(cluster, 30)
    assert cluster.nodes.refuses(0)
    cluster.faults.start(cluster.world.controllers[0])
    go(cluster, 15)
    assert cluster.nodes.serves(0)


def test_a_broker_that_restarts_waits_for_its_old_session_then_catches_up() -> None:
    cluster = cluster_of()
    go(cluster, 5)
    cluster.faults.crash(0)
    cluster.faults.start(0)
    go(cluster, 5)
    assert partition(cluster).leader == 0 and not cluster.metadata.image.brokers[0].fenced
    seconds_until(cluster, lambda p: p.leader == 1)
    produce(cluster, 1, [b"a"] * 10)
    seconds_until(cluster, lambda p: p.isr == (0, 1, 2))
    assert replica(cluster, 0).log.end == 10
    assert partition(cluster).leader == 1, "the preferred leader is elected at the next pass only"
    seconds_until(cluster, lambda p: p.leader == 0, limit=310)


def test_a_controlled_shutdown_leaves_no_gap() -> None:
    cluster = cluster_of()
    go(cluster, 5)
    produce(cluster, 0, [b"a"] * 10)
    go(cluster, 0.1)
    cluster.faults.stop(0)
    assert seconds_until(cluster, lambda p: p.leader == 1) < 0.1
    assert cluster.nodes.state(0) is ProcessState.RUNNING, "leaderships move before the process ends"
    go(cluster, 1)
    assert cluster.nodes.state(0) is ProcessState.STOPPED
    assert partition(cluster).isr == (1, 2)
    answers = produce(cluster, 1)
    go(cluster, 0.2)
    assert answers[0].error_code is ErrorCode.NONE and answers[0].base_offset == 10
    cluster.faults.start(0)
    assert seconds_until(cluster, lambda p: p.isr == (0, 1, 2)) < 5, "no old session holds it back"


def test_a_hung_broker_is_fenced_and_goes_on_where_it_was() -> None:
    cluster = cluster_of()
    go(cluster, 5)
    cluster.faults.hang(0)
    assert 6.9 <= seconds_until(cluster, lambda p: p.leader == 1) <= 10.2
    assert cluster.nodes.state(0) is ProcessState.HUNG
    produce(cluster, 1, [b"a"] * 5)
    go(cluster, 1)
    assert replica(cluster, 0).log.end == 0
    cluster.faults.start(0)
    assert seconds_until(cluster, lambda p: p.isr == (0, 1, 2)) < 4
    assert replica(cluster, 0).log.end == 5


def test_a_broker_that_hangs_before_its_first_heartbeat_beats_again() -> None:
    cluster = cluster_of()
    cluster.faults.hang(2)
    go(cluster, 30)
    cluster.faults.start(2)
    assert seconds_until(cluster, lambda p: 2 in p.isr) < 5


def test_acks_1_is_lost_with_its_leader_and_cut_from_its_log() -> None:
    cluster = cluster_of()
    go(cluster, 5)
    produce(cluster, 0, [b"kept"] * 10)
    go(cluster, 1)
    cluster.faults.hang(1)
    cluster.faults.hang(2)
    produce(cluster, 0, [b"sent"], acks=1)  # answers the followers' waiting fetches, into their sockets
    lost = produce(cluster, 0, [b"lost"] * 7, acks=1)
    assert lost[0].error_code is ErrorCode.NONE, "acknowledged at once"
    go(cluster, 1)
    cluster.faults.crash(0)
    cluster.faults.start(1)
    cluster.faults.start(2)
    seconds_until(cluster, lambda p: p.leader == 1)
    assert replica(cluster, 1).log.end == 11
    produce(cluster, 1, [b"new"] * 3)
    cluster.faults.start(0)
    seconds_until(cluster, lambda p: p.isr == (0, 1, 2))
    logs = [replica(cluster, b).log for b in range(3)]
    assert [log.end for log in logs] == [14, 14, 14]
    assert [[(s.epoch, s.start) for s in log.spans] for log in logs] == [[(0, 0), (1, 11)]] * 3


def test_acks_all_survives_any_single_crash() -> None:
    cluster = cluster_of(configs={"min.insync.replicas": "2"})
    go(cluster, 5)
    acknowledged = 0
    for _ in range(4):
        leader = partition(cluster).leader
        waiting = []
        for _ in range(20):
            waiting.append(produce(cluster, leader, [b"v"]))
            go(cluster, 0.0007)
        cluster.faults.crash(leader)
        acknowledged += sum(1 for answers in waiting if answers[0].error_code is ErrorCode.NONE)
        assert {answers[0].error_code for answers in waiting} == {
            ErrorCode.NONE,
            ErrorCode.BROKER_NOT_AVAILABLE,
        }
        go(cluster, 15)
        now = partition(cluster).leader
        assert now not in (leader, -1)
        assert replica(cluster, now).log.end >= acknowledged
        cluster.faults.start(leader)
        seconds_until(cluster, lambda p: len(p.isr) == 3)
    assert acknowledged >= 20


@pytest.mark.parametrize("elr", ["0", "1"])
def test_without_any_replica_there_is_no_leader_until_one_that_may_lead_returns(elr: str) -> None:
    cluster = cluster_of(
        settings={"eligible.leader.replicas.version": elr, "leader.imbalance.check.interval.seconds": "3600"}
    )
    go(cluster, 5)
    for broker in (1, 2):
        cluster.faults.crash(broker)
    seconds_until(cluster, lambda p: p.isr == (0,))
    produce(cluster, 0, [b"only here"] * 4)
    cluster.faults.crash(0)
    seconds_until(cluster, lambda p: p.leader == -1)
    assert (partition(cluster).isr, partition(cluster).elr) == (((), (0,)) if elr == "1" else ((0,), ()))
    cluster.faults.start(1)
    cluster.faults.start(2)
    go(cluster, 10)
    assert partition(cluster).leader == -1, "they lack what 0 had"
    cluster.faults.start(0)
    seconds_until(cluster, lambda p: p.isr == (0, 1, 2))
    assert [replica(cluster, b).log.end for b in range(3)] == [4, 4, 4]


def test_an_unclean_election_loses_committed_records() -> None:
    cluster = cluster_of(configs={"unclean.leader.election.enable": "true"})
    go(cluster, 5)
    produce(cluster, 0, [b"a"] * 5)
    go(cluster, 1)
    cluster.faults.crash(1)
    cluster.faults.crash(2)
    seconds_until(cluster, lambda p: p.isr == (0,))
    assert produce(cluster, 0, [b"committed with one copy"] * 4)[0].error_code is ErrorCode.NONE
    cluster.faults.crash(0)
    seconds_until(cluster, lambda p: p.leader == -1)
    cluster.faults.start(2)
    seconds_until(cluster, lambda p: p.leader == 2)
    assert partition(cluster).isr == (2,)
    assert replica(cluster, 2).log.end == 5
    cluster.faults.start(0)
    seconds_until(cluster, lambda p: p.isr == (0, 2))
    assert replica(cluster, 0).log.end == 5


def test_losing_a_rack_and_undoing_it() -> None:
    cluster = cluster_of(brokers=6, racks=2, partitions=10)
    go(cluster, 5)
    assert cluster.faults.lose_rack("R2") == (3, 4, 5)
    assert [fault.state for fault in cluster.faults.active()] == ["crashed"] * 3
    go(cluster, 11)
    parts = [partition(cluster, n) for n in range(10)]
    assert all(p.leader in (0, 1, 2) and set(p.isr) <= {0, 1, 2} for p in parts)
    assert cluster.faults.undo() == (3, 4, 5) and cluster.faults.active() == []
    go(cluster, 10)
    assert all(len(partition(cluster, n).isr) == 3 for n in range(10))


def test_a_slow_broker_lags_by_its_latency_and_stays_in_sync() -> None:
    cluster = cluster_of()
    go(cluster, 5)
    cluster.faults.slow(2, 200)
    assert cluster.nodes.slow_ms(2) == 200
    lags = []
    for _ in range(200):
        produce(cluster, 0, [b"v"] * 10, acks=1)
        go(cluster, 0.01)
        lags.append(replica(cluster, 0).log.end - replica(cluster, 2).log.end)
    assert min(lags[100:]) >= 100 and max(lags[100:]) <= 600, "what comes in within 0.1 to 0.6 s"
    go(cluster, 60)
    assert partition(cluster).isr == (0, 1, 2)
    cluster.faults.start(2)
    assert cluster.faults.active() == []


def test_listeners_hear_of_every_process() -> None:
    cluster = cluster_of()
    heard: list[tuple[int, str]] = []
    cluster.nodes.on_process_change(lambda node, state: heard.append((node, state.value)))
    cluster.faults.crash(0)
    cluster.faults.hang(1)
    cluster.faults.stop(2)
    cluster.faults.crash(102)
    go(cluster, 2)
    cluster.faults.undo()
    assert heard[:4] == [(0, "crashed"), (1, "hung"), (102, "crashed"), (2, "stopped")]
    assert sorted(heard[4:]) == [(0, "running"), (1, "running"), (2, "running"), (102, "running")]
    assert cluster.kernel.now_us == (START_MS + 2000) * 1000
