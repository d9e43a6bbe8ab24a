"""The controllers: which one is active, what stops without one, and sessions that a new one restarts."""

from kview.simulate.cluster import Cluster
from kview.simulate.codes import ErrorCode
from kview.simulate.requests.voters import Voter, directory_id
from kview.simulate.results import CreateTopicResult, QuorumInfo
from kview.simulate.topics import CreatableTopic
from tests.simulate.engine import START_MS, TOPIC, cluster_of, go, partition, produce, seconds_until


def describe(cluster: Cluster) -> list[QuorumInfo]:
    answers: list[QuorumInfo] = []
    cluster.forwarding.describe_quorum(0, answers.append)
    return answers


def test_a_quiet_quorum_appends_two_records_a_second() -> None:
    cluster = cluster_of()
    first = describe(cluster)
    go(cluster, 10)
    second = describe(cluster)
    go(cluster, 0.1)
    one, two = first[0], second[0]
    assert (one.leader_id, one.leader_epoch) == (two.leader_id, two.leader_epoch) == (101, 1)
    assert two.high_watermark - one.high_watermark == 20
    assert [row.node for row in two.voters] == [101, 102, 103]
    assert [row.node for row in two.observers] == [0, 1, 2]
    assert all(row.last_fetch_ms >= START_MS + 9_400 for row in two.voters + two.observers)


def test_a_dead_brokers_last_fetch_stays_where_it_was() -> None:
    cluster = cluster_of()
    go(cluster, 5)
    cluster.faults.crash(2)
    go(cluster, 5)
    answers = describe(cluster)
    go(cluster, 0.1)
    rows = {row.node: row for row in answers[0].observers}
    assert rows[2].last_fetch_ms <= START_MS + 5_000 < rows[1].last_fetch_ms
    assert rows[2].log_end < rows[1].log_end


def test_another_controller_takes_over_about_two_seconds_after_a_crash() -> None:
    cluster = cluster_of()
    go(cluster, 5)
    assert cluster.faults.crash_controller() == 101
    assert cluster.faults.crash_controller() == -1, "there is none now"
    waiting = describe(cluster)
    go(cluster, 1)
    assert waiting == []
    go(cluster, 2)
    assert waiting[0].error_code is ErrorCode.NONE
    assert waiting[0].leader_id in (102, 103) and waiting[0].leader_epoch == 2
    cluster.faults.start(101)
    go(cluster, 5)
    answers = describe(cluster)
    go(cluster, 0.1)
    assert answers[0].leader_id == waiting[0].leader_id, "one that comes back follows"


def test_a_new_controller_knows_only_the_nodes_that_have_fetched_from_it() -> None:
    cluster = cluster_of()
    go(cluster, 1)
    cluster.faults.crash(2)
    assert cluster.faults.crash_controller() == 101
    go(cluster, 5)
    (answer,) = _described(cluster)
    voters = {row.node: (row.log_end, row.last_fetch_ms, row.last_caught_up_ms) for row in answer.voters}
    assert voters[101] == (-1, -1, -1)
    assert min(min(voters[voter]) for voter in (102, 103)) > 0
    assert [row.node for row in answer.observers] == [0, 1], "a dead broker is not listed"
    cluster.faults.start(101)
    cluster.faults.start(2)
    go(cluster, 20)
    (answer,) = _described(cluster)
    assert [row.node for row in answer.observers] == [0, 1, 2]
    assert all(row.log_end > 0 and row.last_fetch_ms > 0 for row in answer.voters + answer.observers)


def _described(cluster: Cluster) -> list[QuorumInfo]:
    answers = describe(cluster)
    go(cluster, 0.1)
    return answers


def test_a_stopped_controller_hands_over_at_once() -> None:
    cluster = cluster_of()
    cluster.faults.stop(101)
    go(cluster, 0.2)
    assert cluster.quorum.leader in (102, 103)


def test_a_controller_that_hangs_shortly_goes_on_and_longer_is_replaced() -> None:
    cluster = cluster_of()
    go(cluster, 1)
    cluster.faults.hang(101)
    go(cluster, 1)
    cluster.faults.start(101)
    go(cluster, 5)
    assert (cluster.quorum.leader, cluster.quorum.epoch) == (101, 1)
    cluster.faults.hang(101)
    go(cluster, 3)
    assert cluster.quorum.leader in (102, 103)
    cluster.faults.start(101)
    go(cluster, 3)
    assert cluster.quorum.epoch == 2


def test_voters_change_only_if_a_majority_of_the_new_ones_commits_it() -> None:
    cluster = cluster_of()
    quorum, late = cluster.quorum, ErrorCode.REQUEST_TIMED_OUT
    voters = {
        node: Voter(node, directory_id(cluster.metadata.image.cluster_id, node)) for node in quorum.voters
    }

    def remove(node: int) -> ErrorCode:
        return cluster.voters.remove(None, voters[node]).error_code

    def add(node: int) -> ErrorCode:
        return cluster.voters.add(None, voters[node], {"CONTROLLER": ("", 0)}).error_code

    cluster.faults.crash(102)
    assert [remove(node) for node in (101, 103)] == [late, late], "one of two is no majority"
    assert (quorum.voters, quorum.leader) == ((101, 102, 103), 101)
    assert [remove(102), remove(103)] == [ErrorCode.NONE] * 2
    cluster.faults.cut(101, 103)
    assert (add(103), quorum.voters) == (late, (101,))
    cluster.faults.join(101, 103)
    go(cluster, 1)
    assert (add(103), quorum.voters) == (ErrorCode.NONE, (101, 103))


def test_a_new_controller_starts_sessions_afresh() -> None:
    cluster = cluster_of()
    go(cluster, 5)
    cluster.faults.crash(2)
    go(cluster, 5)
    cluster.faults.crash_controller()
    took = seconds_until(cluster, lambda p: 2 not in p.isr)
    assert took > 9, "without the change it would have been 2 to 5 s"


def test_without_a_majority_records_flow_and_nothing_else_changes() -> None:
    cluster = cluster_of()
    go(cluster, 5)
    for node in (102, 103):
        cluster.faults.crash(node)
    cluster.faults.crash(2)
    before = partition(cluster)
    created: list[CreateTopicResult] = []
    cluster.topics.create_topic(0, CreatableTopic("new", 1, 1), False, 5_000, created.append)
    quorum = describe(cluster)
    waiting = produce(cluster, 0)
    go(cluster, 40)
    assert partition(cluster) == before
    assert produce(cluster, 0, acks=1)[0].error_code is ErrorCode.NONE
    assert cluster.records.read(0, TOPIC, 0, 0, 100).error_code is ErrorCode.NONE
    assert [w.error_code for w in waiting] == [ErrorCode.REQUEST_TIMED_OUT]
    assert [c.error_code for c in created] == [ErrorCode.REQUEST_TIMED_OUT]
    assert quorum == []
    go(cluster, 21)
    assert [q.error_code for q in quorum] == [ErrorCode.REQUEST_TIMED_OUT], "a minute, as Kafka waits"
    cluster.faults.start(102)
    seconds_until(cluster, lambda p: p.isr == (0, 1))
    assert not cluster.metadata.image.brokers[0].fenced, "nobody else was fenced"


def test_a_controller_that_restarts_at_once_has_to_be_elected_too() -> None:
    cluster = cluster_of()
    go(cluster, 5)
    cluster.faults.crash(101)
    go(cluster, 0.2)
    cluster.faults.start(101)
    assert not cluster.controller.ready()
    go(cluster, 4)
    assert cluster.controller.ready() and cluster.quorum.epoch == 2


def test_a_controller_that_comes_back_has_to_be_elected_and_fences_nobody() -> None:
    cluster = cluster_of()
    go(cluster, 5)
    cluster.faults.crash(102)
    cluster.faults.crash(101)
    go(cluster, 30)
    cluster.faults.start(101)
    go(cluster, 5)
    assert cluster.quorum.leader in (101, 103) and cluster.quorum.epoch == 2
    assert partition(cluster).partition_epoch == 0 and len(cluster.image(0).live_brokers()) == 3


def test_a_leader_that_hung_with_the_majority_gone_resigns_when_it_goes_on() -> None:
    cluster = cluster_of()
    go(cluster, 5)
    for node in (101, 102, 103):
        cluster.faults.hang(node)
    go(cluster, 30)
    for node in (101, 102, 103):
        cluster.faults.start(node)
    go(cluster, 5)
    assert cluster.quorum.epoch == 2
    assert partition(cluster).partition_epoch == 0, "nobody was fenced"


def test_a_broker_cannot_register_without_a_controller() -> None:
    cluster = cluster_of()
    go(cluster, 5)
    cluster.faults.crash(2)
    go(cluster, 12)
    for node in (101, 102, 103):
        cluster.faults.crash(node)
    cluster.faults.start(2)
    go(cluster, 20)
    assert cluster.metadata.image.brokers[2].fenced
    cluster.faults.start(101)
    cluster.faults.start(103)
    assert seconds_until(cluster, lambda p: 2 in p.isr) < 10
