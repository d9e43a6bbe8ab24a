"""What an administrator changes takes effect in the engine, and what was deleted stays deleted."""

from collections.abc import Callable

import pytest

from kview.simulate.alterations import Alteration, Operation
from kview.simulate.cluster import Cluster
from kview.simulate.faults import Faults
from kview.simulate.groups.results import CommitRequest, CommitResult, OffsetToCommit
from kview.simulate.topics import CreatableTopic
from tests.simulate.engine import TOPIC, cluster_of, go, partition, produce, replica, seconds_until

GROUP = "g"


def alter(cluster: Cluster, key: str, value: str | None) -> None:
    operation = Operation.DELETE if value is None else Operation.SET
    result = cluster.admin.alter_topic(TOPIC, [Alteration(key, operation, value)], False, False)
    assert result.error_code == 0, result
    go(cluster, 0.1)


def coordinator(cluster: Cluster) -> int:
    return cluster.groups(0).find(GROUP)


def commit(cluster: Cluster, offset: int, topic: str = TOPIC) -> list[int]:
    """Commit an offset of partition 0, and return the error numbers once it is answered."""
    answers: list[CommitResult] = []
    cluster.groups(coordinator(cluster)).commit(
        CommitRequest(GROUP, (OffsetToCommit(topic, 0, offset),)), answers.append
    )
    go(cluster, 1)
    return [int(code) for answer in answers for code in answer.error_codes]


def committed(cluster: Cluster) -> dict[tuple[str, int], int]:
    rows = cluster.groups(coordinator(cluster)).fetch_offsets(GROUP, None).offsets
    return {(row.topic, row.partition): row.offset for row in rows if row.offset >= 0}


def recreate(cluster: Cluster) -> None:
    cluster.topics.delete_topic(0, TOPIC, 1000, lambda result: None)
    cluster.topics.create_topic(
        0, CreatableTopic(TOPIC, assignment=[[0, 1, 2]]), False, 1000, lambda result: None
    )
    go(cluster, 1)


def test_commits_of_a_deleted_topic_go() -> None:
    cluster = cluster_of()
    go(cluster, 1)
    assert commit(cluster, 7) == [0] and committed(cluster) == {(TOPIC, 0): 7}
    recreate(cluster)
    assert committed(cluster) == {}
    assert commit(cluster, 1) == [0] and committed(cluster) == {(TOPIC, 0): 1}


@pytest.mark.parametrize("fault", [Faults.crash, Faults.hang, lambda faults, b: faults.slow(b, 3000)])
def test_commits_of_a_topic_deleted_while_their_coordinator_was_away_go(
    fault: Callable[[Faults, int], None],
) -> None:
    cluster = cluster_of(settings={"broker.session.timeout.ms": "3000"})
    go(cluster, 1)
    assert commit(cluster, 7) == [0]
    node = coordinator(cluster)
    fault(cluster.faults, node)
    recreate(cluster)
    go(cluster, 5)
    cluster.faults.start(node)
    go(cluster, 15)
    assert committed(cluster) == {}
    cluster.faults.stop(coordinator(cluster))
    go(cluster, 5)
    assert committed(cluster) == {}, "the next coordinator does not find them either"


def test_min_insync_replicas_counts_at_once() -> None:
    cluster = cluster_of()
    go(cluster, 1)
    cluster.faults.stop(2)
    go(cluster, 2)
    assert [int(a.error_code) for a in produce(cluster, 0)] == []
    go(cluster, 1)
    alter(cluster, "min.insync.replicas", "3")
    assert [int(a.error_code) for a in produce(cluster, 0)] == [19]
    alter(cluster, "min.insync.replicas", None)
    answers = produce(cluster, 0)
    go(cluster, 1)
    assert [int(a.error_code) for a in answers] == [0]


def test_retention_counts_at_the_next_check() -> None:
    cluster = cluster_of(settings={"log.retention.check.interval.ms": "1000"})
    produce(cluster, 0, [b"v"] * 10)
    go(cluster, 10)
    assert replica(cluster, 0).log.start == 0
    alter(cluster, "retention.ms", "5000")
    go(cluster, 3)
    assert replica(cluster, 0).log.start == 10


def test_an_unclean_election_that_is_allowed_later_comes_with_the_next_pass() -> None:
    cluster = cluster_of(replication=2, settings={"unclean.leader.election.interval.ms": "20000"})
    go(cluster, 1)
    cluster.faults.crash(1)
    seconds_until(cluster, lambda p: p.isr == (0,))
    cluster.faults.crash(0)
    seconds_until(cluster, lambda p: p.leader < 0)
    cluster.faults.start(1)
    go(cluster, 15)
    assert partition(cluster).leader < 0
    alter(cluster, "unclean.leader.election.enable", "true")
    assert seconds_until(cluster, lambda p: p.leader == 1) <= 20.1


def test_altered_min_insync_replicas_clear_the_eligible_replicas() -> None:
    cluster = cluster_of(configs={"min.insync.replicas": "2"})
    go(cluster, 1)
    cluster.faults.crash(2)
    seconds_until(cluster, lambda p: p.isr == (0, 1))
    cluster.faults.crash(1)
    seconds_until(cluster, lambda p: p.isr == (0,))
    assert partition(cluster).elr == (1,)
    alter(cluster, "min.insync.replicas", "1")
    assert partition(cluster).elr == ()


def test_a_list_does_not_grow_beyond_what_an_answer_can_hold() -> None:
    cluster = cluster_of()
    errors: list[int] = []
    for begin in range(0, 20_000, 2_000):
        replicas = ",".join(f"0:{broker}" for broker in range(begin, begin + 2_000))
        change = Alteration("leader.replication.throttled.replicas", Operation.APPEND, replicas)
        errors.append(int(cluster.admin.alter_topic(TOPIC, [change], False, False).error_code))
    assert errors[0] == 0 and errors[-1] == 40
    many = [Alteration(f"unknown-{number}", Operation.SET, "x") for number in range(1_001)]
    assert int(cluster.admin.alter_broker("0", many[:1_000], False, False).error_code) == 0
    assert int(cluster.admin.alter_broker("0", many[1_000:], False, False).error_code) == 40


def test_without_a_controller_an_administrator_waits_until_the_time_is_over() -> None:
    cluster = cluster_of()
    go(cluster, 1)
    for node in cluster.world.controllers[:2]:
        cluster.faults.crash(node)
    answers: list[object] = []
    cluster.forwarding.forward(0, lambda: "done", "late", 5000, answers.append, lambda fn: fn)
    go(cluster, 4.9)
    assert answers == []
    go(cluster, 0.2)
    assert answers == ["late"]
    cluster.forwarding.forward(0, lambda: "done", "late", 60_000, answers.append, lambda fn: fn)
    cluster.faults.start(cluster.world.controllers[0])
    go(cluster, 10)
    assert answers == ["late", "done"]
