"""Answers that are wrong, in part or as a whole: what is shown instead, and what is said about them."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from kview.derive.view import View
from kview.errors import ClusterUnreachable
from kview.language import errors, events, failures
from kview.model.failures import FailureKind, Part
from kview.observe.observer import Observer, ObserveSettings
from tests.observe.fake_broker import COORDINATOR_VERSIONS, FakeBroker
from tests.observe.observing import Watched, headline, observing

QUICK = ObserveSettings(interval_s=0.2, silence_s=0.5, retry_most_s=0.4, list_groups_rounds=1)
METADATA, LIST_OFFSETS, OFFSET_FETCH = 3, 2, 9
ID = UUID(int=7)


def with_epoch(epoch: int, leader: int) -> Callable[[Any], None]:
    """Answers with a topic id, and this leader and leader epoch of all partitions."""

    def change(answer: Any) -> None:
        for topic in answer.topics:
            topic.topic_id = ID
            for partition in topic.partitions:
                partition.leader_epoch, partition.leader_id = epoch, leader

    return change


def with_topic_error(code: int) -> Callable[[Any], None]:
    """Answers with an error instead of partitions."""

    def change(answer: Any) -> None:
        for topic in answer.topics:
            topic.error_code, topic.partitions = code, []

    return change


def unreadable(answer: Any) -> None:
    """More replicas than Kafka allows."""
    answer.topics[0].partitions[0].replica_nodes = list(range(130))


def twice(answer: Any) -> None:
    """The first topic and its partition are listed twice."""
    answer.topics[0].partitions *= 2
    answer.topics.append(answer.topics[0])


def leaders(view: View) -> list[int]:
    table = view.snapshot.partitions
    return list(table.leader.tolist())


def metadata_failures(view: View) -> list[str]:
    """What is wrong with metadata, in words."""
    found = [failure for failure in view.snapshot.observation.failures if failure.part is Part.METADATA]
    return [failures.of(failure.kind, failure.code) for failure in found]


def happened(watched: Watched) -> list[str]:
    return [events.sentence(event) for view in watched.views for event in view.new_events]


def test_a_topic_that_has_an_error_instead_of_partitions_is_not_deleted() -> None:
    with FakeBroker() as broker, observing([broker.address], QUICK) as observer:
        watched = Watched(observer)
        watched.until(lambda v: leaders(v) == [0], "the partition is seen")
        broker.change[METADATA] = with_topic_error(5)
        view = watched.until(lambda v: bool(metadata_failures(v)), "the error is seen")
        assert metadata_failures(view) == ["LEADER_NOT_AVAILABLE"]
        assert leaders(view) == [0] and view.snapshot.partitions.error_code.tolist() == [5]
        failure = next(f for f in view.snapshot.observation.failures if f.part is Part.METADATA)
        assert 0 < failure.shown_since_ms < view.snapshot.observation.began_ms
        broker.change.clear()
        view = watched.until(lambda v: not metadata_failures(v), "the topic is back")
        assert view.snapshot.partitions.error_code.tolist() == [0]
        assert happened(watched) == []


def test_topics_that_kview_may_not_read_are_not_no_topics() -> None:
    with FakeBroker() as broker:
        broker.change[METADATA] = with_topic_error(29)
        with observing([broker.address], QUICK) as observer:
            assert metadata_failures(Watched(observer).look()) == ["TOPIC_AUTHORIZATION_FAILED"]


def test_an_answer_from_an_older_state_of_the_cluster_is_not_believed() -> None:
    with FakeBroker() as broker, observing([broker.address], QUICK) as observer:
        broker.change[METADATA] = with_epoch(5, 0)
        watched = Watched(observer)
        watched.until(lambda v: v.snapshot.partitions.leader_epoch.tolist() == [5], "epoch 5 is seen")
        watched.views.clear()
        broker.change[METADATA] = with_epoch(3, 9)
        view = watched.until(lambda v: bool(metadata_failures(v)), "the old state is seen")
        assert leaders(view) == [0] and view.snapshot.partitions.leader_epoch.tolist() == [5]
        assert metadata_failures(view) == ["describes an older state of the cluster than another broker"]
        broker.change[METADATA] = with_epoch(6, 0)
        watched.until(lambda v: v.snapshot.partitions.leader_epoch.tolist() == [6], "the new state is seen")
        assert {tuple(leaders(view)) for view in watched.views} == {(0,)}
        assert not [line for line in happened(watched) if "moved" in line]


def test_a_broker_that_knows_an_older_state_than_another_is_not_asked_any_more() -> None:
    """Without DescribeQuorum, nothing else tells that broker 0 is cut off from the controllers."""
    with FakeBroker(0) as cut_off, FakeBroker(1) as other:
        for broker in (cut_off, other):
            broker.advertised = {0: cut_off.address, 1: other.address}
        cut_off.change[METADATA], other.change[METADATA] = with_epoch(3, 0), with_epoch(5, 1)
        with observing([cut_off.address], QUICK) as observer:
            view = Watched(observer).until(lambda v: leaders(v) == [1], "the other broker is asked")
            assert metadata_failures(view) == []
            cut_off.asked.clear()
            view = Watched(observer).look()
            assert leaders(view) == [1]
            assert METADATA not in [key for key, _ in cut_off.asked]


def test_metadata_that_cannot_be_read_are_a_failure_until_they_can() -> None:
    with FakeBroker() as broker, observing([broker.address], QUICK) as observer:
        watched = Watched(observer)
        watched.until(lambda v: leaders(v) == [0], "the partition is seen")
        broker.change[METADATA] = unreadable
        watched.until(lambda v: bool(metadata_failures(v)), "the answer is seen")
        seen = [watched.look() for _ in range(3)]
        assert [metadata_failures(view) for view in seen] == 3 * [["sent an answer that cannot be read"]]
        ages = [view.snapshot.observation.failures[0].shown_since_ms for view in seen]
        assert len(set(ages)) == 1 and 0 < ages[0] < seen[0].snapshot.observation.began_ms
        broker.change.clear()
        watched.until(lambda v: not metadata_failures(v), "it can be read again")


def test_a_cluster_whose_metadata_cannot_be_read_at_connect_is_an_error_with_a_sentence() -> None:
    with FakeBroker() as broker:
        broker.change[METADATA] = unreadable
        with pytest.raises(ClusterUnreachable) as raised:
            Observer([broker.address], QUICK).connect()
    said = errors.sentence(raised.value.facts)
    assert str(broker.address) in said and "sent an answer that cannot be read" in said


def test_a_topic_or_partition_that_is_listed_twice_counts_once() -> None:
    with FakeBroker() as broker:
        broker.change[METADATA] = twice
        with observing([broker.address], QUICK) as observer:
            view = Watched(observer).until(lambda v: "cluster healthy" in " ".join(headline(v)), "it is well")
            assert view.snapshot.partitions.partition.tolist() == [0]
            assert view.headline.partitions == 1


def test_offsets_that_cannot_be_are_not_shown() -> None:
    """Sums of them would overflow, and be negative."""

    def huge(answer: Any) -> None:
        for topic in answer.topics:
            topic.partitions[0].offset = 2**63 - 1

    with FakeBroker() as broker, observing([broker.address], QUICK) as observer:
        watched = Watched(observer)
        watched.until(lambda v: v.snapshot.partitions.high_watermark.tolist() == [100], "offsets are seen")
        broker.change[LIST_OFFSETS] = huge
        view = watched.until(
            lambda v: any(f.part is Part.OFFSETS for f in v.snapshot.observation.failures), "they are refused"
        )
        assert view.snapshot.partitions.high_watermark.tolist() == [100]
        assert view.snapshot.partitions.log_start.tolist() == [0]
        found = next(f for f in view.snapshot.observation.failures if f.part is Part.OFFSETS)
        assert failures.of(found.kind) == "sent an answer that cannot be read"


def group_error(view: View) -> str:
    table = view.snapshot.groups
    return failures.of_group(table.error[0], int(table.error_code[0]), int(table.coordinator[0]))


def test_a_refusal_to_tell_commits_is_not_forgotten_when_the_group_is_described() -> None:
    def refuse(answer: Any) -> None:
        answer.error_code, answer.topics = 30, []

    with FakeBroker(versions=COORDINATOR_VERSIONS) as broker:
        broker.coordinator, broker.groups = 0, ("billing",)
        broker.change[OFFSET_FETCH] = refuse
        with observing([broker.address], QUICK) as observer:
            watched = Watched(observer)
            watched.until(lambda v: v.snapshot.groups.state.tolist() == ["Empty"], "the group is described")
            refusal = "kview is not authorized to read it (GROUP_AUTHORIZATION_FAILED)"
            assert [group_error(watched.look()) for _ in range(3)] == 3 * [refusal]


def test_commits_that_cannot_be_are_not_shown() -> None:
    with FakeBroker(versions=COORDINATOR_VERSIONS) as broker:
        broker.coordinator, broker.groups = 0, ("billing",)
        with observing([broker.address], QUICK) as observer:
            watched = Watched(observer)
            watched.until(lambda v: v.snapshot.offsets.committed.tolist() == [40], "the commit is seen")
            broker.committed = 2**63 - 1
            view = watched.until(lambda v: bool(group_error(v)), "the nonsense is seen")
            assert view.snapshot.offsets.committed.tolist() == [40]
            assert view.snapshot.groups.error.tolist() == [FailureKind.MALFORMED]
