"""Cuts of the network between nodes: who is fenced, who leads, what is acknowledged and what is lost."""

import pytest

from kview.simulate.cluster import Cluster
from kview.simulate.codes import ErrorCode
from kview.simulate.network import Connection, Cut
from kview.simulate.records import Marker
from kview.simulate.requests.records import EndedTransaction
from kview.simulate.results import CreateTopicResult
from kview.simulate.topics import CreatableTopic
from kview.simulate.transactions.markers import Markers
from tests.simulate.engine import TOPIC, cluster_of, go, partition, produce, replica, seconds_until

CONTROLLERS = (101, 102, 103)
SAFE = {"min.insync.replicas": "2"}


def cut_off(cluster: Cluster, node: int, *others: int, one_way: bool = False) -> None:
    for other in others:
        cluster.faults.cut(node, other, one_way)


def test_cuts_are_listed_joined_and_undone() -> None:
    cluster = cluster_of()
    network = cluster.nodes.network
    cluster.faults.cut(1, 0)
    cluster.faults.cut(101, 2, one_way=True)
    assert network.cuts() == [Cut(0, 1, False), Cut(101, 2, True)]
    assert not cluster.healthy()
    assert network.carries(2, 101) and not network.carries(101, 2) and not network.connects(2, 101)
    assert cluster.faults.join(0, 1) and not cluster.faults.join(0, 1)
    assert network.connects(0, 1)
    assert cluster.faults.undo() == (101, 2) and network.cuts() == []
    cluster.faults.isolate(2)
    assert [(fault.node, fault.state.value) for fault in cluster.faults.active()] == [(2, "isolated")]
    cluster.faults.start(2)
    assert cluster.faults.active() == []


def test_a_leader_cut_off_from_the_nodes_but_not_its_clients() -> None:
    """It is fenced, another leads, it goes on answering acks=1, and what it wrote is gone afterwards."""
    cluster = cluster_of(configs=SAFE)
    go(cluster, 5)
    kept = produce(cluster, 0, [b"kept"])
    go(cluster, 0.2)
    assert kept[0].error_code is ErrorCode.NONE
    cluster.faults.isolate(0)
    went = seconds_until(cluster, lambda p: p.leader == 1)
    assert 6.9 <= went <= 10.2, "broker.session.timeout.ms, as for a dead one"
    assert partition(cluster).isr == (1, 2) and cluster.metadata.image.brokers[0].fenced
    assert cluster.nodes.serves(0), "its clients still reach it"
    old = cluster.image(0).partition(TOPIC, 0)
    assert old is not None and (old.leader, old.leader_epoch) == (0, 0), "it does not know"
    lost = produce(cluster, 0, [b"lost"], acks=1)
    waiting = produce(cluster, 0, [b"waiting"], timeout_ms=30_000)
    assert lost[0].error_code is ErrorCode.NONE and lost[0].base_offset == 1
    new = produce(cluster, 1, [b"new"])
    go(cluster, 35)
    assert new[0].error_code is ErrorCode.NONE and new[0].base_offset == 1
    assert [answer.error_code for answer in waiting] == [ErrorCode.REQUEST_TIMED_OUT]
    assert replica(cluster, 0).isr == (0, 1, 2), "nobody takes the change of its ISR"
    assert replica(cluster, 0).log.end == 3 and replica(cluster, 0).high_watermark == 1
    cluster.faults.start(0)
    seconds_until(cluster, lambda p: p.isr == (1, 2, 0) or set(p.isr) == {0, 1, 2})
    assert replica(cluster, 0).log.end == 2, "its own two records are gone"
    assert not replica(cluster, 0).leading


def test_a_leader_cut_off_from_the_controllers_alone_keeps_its_followers_until_it_is_fenced() -> None:
    cluster = cluster_of(configs=SAFE)
    go(cluster, 5)
    cut_off(cluster, 0, *CONTROLLERS)
    answers = produce(cluster, 0)
    go(cluster, 1)
    assert answers[0].error_code is ErrorCode.NONE, "both followers still fetch"
    seconds_until(cluster, lambda p: p.leader == 1)
    late = produce(cluster, 0, timeout_ms=5_000)
    go(cluster, 6)
    assert late[0].error_code is ErrorCode.REQUEST_TIMED_OUT, "they follow another leader now"
    cluster.faults.join_all()
    seconds_until(cluster, lambda p: set(p.isr) == {0, 1, 2})
    assert replica(cluster, 0).log.end == replica(cluster, 1).log.end == 1


def test_a_follower_cut_off_from_its_leader_leaves_the_isr_by_lag_and_is_not_fenced() -> None:
    cluster = cluster_of()
    go(cluster, 5)
    cluster.faults.cut(0, 1)
    waiting = produce(cluster, 0, timeout_ms=60_000)
    took = seconds_until(cluster, lambda p: p.isr == (0, 2))
    assert 30 <= took <= 45, "replica.lag.time.max.ms and half of it"
    assert not cluster.metadata.image.brokers[1].fenced
    go(cluster, 0.1)
    assert waiting[0].error_code is ErrorCode.NONE
    cluster.faults.join(1, 0)
    assert seconds_until(cluster, lambda p: set(p.isr) == {0, 1, 2}) < 1
    assert replica(cluster, 1).log.end == 1


def test_an_active_controller_in_a_minority_is_replaced_and_follows_afterwards() -> None:
    cluster = cluster_of()
    go(cluster, 5)
    cut_off(cluster, 101, 102, 103)
    assert not cluster.controller.ready(), "it can commit nothing"
    go(cluster, 2.6)
    leader = cluster.quorum.leader
    assert leader in (102, 103) and cluster.quorum.epoch == 2, "after the fetch timeout, 2 s"
    cluster.faults.join_all()
    go(cluster, 5)
    assert (cluster.quorum.leader, cluster.quorum.epoch) == (leader, 2), "it comes back as a follower"
    assert partition(cluster).partition_epoch == 0 and len(cluster.image(0).live_brokers()) == 3


def test_three_controllers_that_cannot_talk_have_no_leader_after_three_seconds() -> None:
    cluster = cluster_of()
    go(cluster, 5)
    cut_off(cluster, 101, 102, 103)
    cluster.faults.cut(102, 103)
    go(cluster, 4)
    assert cluster.quorum.leader == -1, "it resigns when no majority has fetched for 1.5 fetch timeouts"
    go(cluster, 60)
    assert cluster.quorum.epoch == 1 and len(cluster.image(0).live_brokers()) == 3, "nobody is fenced"
    cluster.faults.join(102, 103)
    go(cluster, 4)
    assert cluster.quorum.leader in (102, 103)


def test_a_voter_that_loses_the_leader_alone_disturbs_nobody() -> None:
    """Who fetches from a leader grants no pre-vote (KIP-996)."""
    cluster = cluster_of()
    go(cluster, 5)
    cluster.faults.cut(101, 102)
    go(cluster, 60)
    assert (cluster.quorum.leader, cluster.quorum.epoch) == (101, 1) and cluster.controller.ready()


def test_a_voter_with_a_shorter_log_is_not_elected() -> None:
    cluster = cluster_of()
    go(cluster, 5)
    cut_off(cluster, 103, 101, 102)
    go(cluster, 10)
    cluster.faults.crash(101)
    go(cluster, 5)
    assert cluster.quorum.leader == -1
    cluster.faults.join(102, 103)
    go(cluster, 5)
    assert cluster.quorum.leader == 102


@pytest.mark.parametrize("one_way", ["to the controller", "from the controller"])
def test_a_broker_whose_packets_are_lost_one_way_is_fenced(one_way: str) -> None:
    cluster = cluster_of()
    go(cluster, 5)
    if one_way == "to the controller":
        cut_off(cluster, 2, *CONTROLLERS, one_way=True)
        earliest, latest = 6.9, 10.2
    else:  # The next heartbeat still arrives, and the connection breaks with the answer to it.
        for controller in CONTROLLERS:
            cluster.faults.cut(controller, 2, one_way=True)
        earliest, latest = 9.0, 12.2
    before = cluster.image(2)
    assert earliest <= seconds_until(cluster, lambda p: p.isr == (0, 1)) <= latest
    assert cluster.image(2) is before, "metadata needs both ways"
    cluster.faults.undo()
    assert seconds_until(cluster, lambda p: set(p.isr) == {0, 1, 2}) < 4


def test_a_fetch_that_waits_is_still_answered_when_the_followers_packets_are_lost() -> None:
    cluster = cluster_of()
    go(cluster, 5)
    cluster.faults.cut(1, 0, one_way=True)
    for _ in range(2):
        produce(cluster, 0, acks=1)
        go(cluster, 0.2)
    assert replica(cluster, 1).log.end == 1, "the answer to the fetch that waited, and no other"
    assert replica(cluster, 2).log.end == 2
    assert replica(cluster, 0).high_watermark == 0, "the leader does not know that it arrived"


def test_an_answer_is_lost_when_the_leaders_packets_are() -> None:
    cluster = cluster_of()
    go(cluster, 5)
    cluster.faults.cut(0, 1, one_way=True)
    produce(cluster, 0, acks=1)
    go(cluster, 0.2)
    assert replica(cluster, 1).log.end == 0 and replica(cluster, 2).log.end == 1


def test_a_forwarded_request_whose_answer_is_lost_took_effect_and_is_sent_again() -> None:
    cluster = cluster_of()
    go(cluster, 5)
    cluster.faults.cut(101, 0, one_way=True)
    answers: list[CreateTopicResult] = []
    cluster.topics.create_topic(0, CreatableTopic("new", 1, 1), False, 60_000, answers.append)
    go(cluster, 1)
    assert "new" in cluster.image(1).topics and not answers
    cluster.faults.join(0, 101)
    go(cluster, 1)
    assert [answer.error_code for answer in answers] == [ErrorCode.TOPIC_ALREADY_EXISTS]


def test_a_forwarded_request_that_does_not_arrive_times_out() -> None:
    cluster = cluster_of()
    go(cluster, 5)
    cut_off(cluster, 0, *CONTROLLERS)
    answers: list[CreateTopicResult] = []
    cluster.topics.create_topic(0, CreatableTopic("new", 1, 1), False, 5_000, answers.append)
    go(cluster, 6)
    assert [answer.error_code for answer in answers] == [ErrorCode.REQUEST_TIMED_OUT]
    assert "new" not in cluster.metadata.image.topics


@pytest.mark.parametrize("way", [(0, 1), (1, 0)])
def test_a_marker_reaches_a_leader_once_the_network_is_joined(way: tuple[int, int]) -> None:
    """The coordinator sends it again and again; where only the answer was lost, it was written before."""
    cluster = cluster_of(partitions=2, settings={"transaction.state.log.num.partitions": "1"})
    go(cluster, 5)
    number = next(at for at in range(2) if partition(cluster, at).leader == 1)
    written: list[str] = []
    ended = EndedTransaction(7, 0, Marker(True, 0))
    markers = Markers(cluster.kernel, cluster.nodes.network, cluster.brokers, cluster.records)
    cluster.faults.cut(*way, one_way=True)
    markers.send(0, [(TOPIC, number)], ended, lambda: True, lambda: written.append("done"))
    go(cluster, 3)
    assert not written
    assert (replica(cluster, 1, number).log.end == 0) is (way == (0, 1))
    cluster.faults.join_all()
    go(cluster, 1)
    assert written == ["done"] and replica(cluster, 1, number).log.end >= 1


def test_two_one_way_cuts_are_a_cut() -> None:
    cluster = cluster_of()
    cluster.faults.cut(0, 1, one_way=True)
    cluster.faults.cut(1, 0, one_way=True)
    assert cluster.nodes.network.cuts() == [Cut(0, 1, False)]
    cluster.faults.cut(0, 1, one_way=True)
    assert cluster.nodes.network.cuts() == [Cut(0, 1, False)]


def test_an_isolated_node_stays_so_when_another_one_is_restored() -> None:
    cluster = cluster_of()
    cluster.faults.isolate(0)
    cluster.faults.isolate(1)
    cluster.faults.cut(0, 2)
    cluster.faults.start(0)
    network = cluster.nodes.network
    assert [(fault.node, fault.state.value) for fault in cluster.faults.active()] == [(1, "isolated")]
    assert network.connects(0, 2) and not network.carries(0, 1) and not network.carries(101, 1)
    assert cluster.faults.join(1, 102)
    assert network.connects(1, 102) and network.connects(102, 1), "and nothing else"
    assert network.cuts() == [Cut(0, 1, False), Cut(1, 2, False), Cut(1, 101, False), Cut(1, 103, False)]
    cluster.faults.isolate(2)
    assert cluster.faults.join_all() == (0, 1, 2, 101, 103) and cluster.faults.active() == []


def test_one_controller_that_a_broker_does_not_reach_does_not_isolate_it() -> None:
    cluster = cluster_of()
    for node in (1, 2, *CONTROLLERS):
        cluster.faults.cut(0, node, one_way=True)
    assert {fault.state.value for fault in cluster.faults.active()} == {"cut-one-way"}


def test_no_connection_to_a_new_controller_comes_about_over_a_cut() -> None:
    cluster = cluster_of()
    go(cluster, 5)
    for other in (102, 103):
        cluster.faults.cut(other, 0, one_way=True)
    go(cluster, 20)
    cluster.faults.crash(101)
    go(cluster, 6)
    assert cluster.quorum.leader in (102, 103)
    answers: list[CreateTopicResult] = []
    cluster.topics.create_topic(0, CreatableTopic("new", 1, 1), False, 5_000, answers.append)
    go(cluster, 10)
    assert [answer.error_code for answer in answers] == [ErrorCode.REQUEST_TIMED_OUT]
    assert "new" not in cluster.metadata.image.topics


def test_no_connection_of_a_process_that_starts_comes_about_over_a_cut() -> None:
    cluster = cluster_of()
    go(cluster, 5)
    cluster.faults.crash(101)
    cluster.faults.cut(1, 101, one_way=True)
    cluster.faults._start_process(101)  # `start` would end the cut
    network = cluster.nodes.network
    assert not network.send(101, 1, Connection.FORWARDING)
    cluster.faults.join(1, 101)
    assert network.send(101, 1, Connection.FORWARDING)
