"""The worst status of topics, and what partitions can be narrowed to, against a plain loop."""

from collections import Counter

import pytest

from kview.derive.lookup import partition_row, topic_partitions, topic_row
from kview.derive.partitions.topic_health import Trouble, topic_health, troubles
from kview.derive.view import PartitionStatus, View
from kview.model.units import NO_BROKER
from tests.worlds import crash_script, views

SILENT, FENCED, BACK = 13, 21, 25


@pytest.fixture(scope="module")
def script() -> list[View]:
    """The views of a crash of broker 4 in second 10."""
    return list(views(crash_script(healthy_s=10, silent_s=14, after_s=2)))


@pytest.mark.parametrize("second", [5, SILENT, FENCED, BACK])
def test_a_topic_has_the_worst_status_of_its_partitions_and_how_many_have_it(
    script: list[View], second: int
) -> None:
    view = script[second]
    health = topic_health(view)
    order = list(PartitionStatus)
    for at, topic in enumerate(view.topics.topic):
        mine = view.snapshot.partitions.topic == topic
        counted = Counter(view.partitions.status[mine].tolist())
        worst = min(counted, key=lambda status: order.index(PartitionStatus(status)))
        assert (health.status[at], health.count[at]) == (worst, counted[worst])


def test_after_a_crash_each_kind_of_trouble_has_its_partitions(script: list[View]) -> None:
    view = script[SILENT]
    table, mine = view.snapshot.partitions, ~view.snapshot.partitions.internal
    found = {trouble: int((flags & mine).sum()) for trouble, flags in troubles(view).items()}
    assert found[Trouble.ALL] == 20
    assert found[Trouble.SILENT_LEADER] == int(((table.leader == 4) & mine).sum()) == 4
    assert found[Trouble.FROZEN] == 6, "the partitions that have broker 4 as a follower in the ISR"
    assert found[Trouble.UNDER_REPLICATED] == 0, "metadata still lists broker 4 in every ISR"


def test_after_the_fencing_the_counts_are_those_of_a_plain_loop(script: list[View]) -> None:
    view = script[FENCED]
    table = view.snapshot.partitions
    having = troubles(view)
    for row in range(len(table)):
        replicas = [id for id in table.replicas[row].tolist() if id != NO_BROKER]
        isr = [id for id in table.isr[row].tolist() if id != NO_BROKER]
        least, leader = int(table.min_isr[row]), int(table.leader[row])
        expected = {
            Trouble.ALL: True,
            Trouble.NO_LEADER: leader == NO_BROKER,
            Trouble.UNDER_MIN_ISR: len(isr) < min(least, len(replicas)),
            Trouble.AT_MIN_ISR: len(isr) == least and len(isr) < len(replicas),
            Trouble.UNDER_REPLICATED: len(isr) < len(replicas),
            Trouble.NOT_PREFERRED: leader not in (NO_BROKER, replicas[0]),
        }
        assert {trouble: bool(having[trouble][row]) for trouble in expected} == expected, row
    assert having[Trouble.AT_MIN_ISR].any() and having[Trouble.NO_LEADER].sum() == 1


def test_topics_and_partitions_are_found_by_name(script: list[View]) -> None:
    view = script[5]
    table = view.snapshot.partitions
    for row in range(len(table)):
        assert partition_row(view, str(table.topic[row]), int(table.partition[row])) == row
    assert partition_row(view, "invoice", 10) is None and partition_row(view, "invoic", 0) is None
    assert topic_row(view.topics, "zzz") is None and topic_row(view.topics, "") is None
    assert len(topic_partitions(view.topics, "invoice")) == 10
    assert not len(topic_partitions(view.topics, "invoice\x00"))
