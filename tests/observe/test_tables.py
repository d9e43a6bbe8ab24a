"""Answers into tables, without sockets."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment

from kview.model.failures import NO_FAILURE, Cause, FailureKind, refused
from kview.model.snapshot import Quorum
from kview.model.units import NO_BROKER, NO_OFFSET, UNKNOWN
from kview.observe import brokers, groups
from kview.observe.brokers import BrokerFacts, Health, Registered
from kview.observe.groups import GroupFacts, GroupTables
from kview.observe.layout import Layout, layout, matrix, old_replica_rows
from kview.observe.readings import (
    carried,
    nothing_read,
    read_leader,
    read_replicas,
    shares,
    slice_of,
)
from kview.wire.list_offsets import ListOffsetsAnswer, TopicOffsets
from kview.wire.metadata import BrokerAddress, PartitionRow, TopicRow, Topics
from kview.wire.offset_fetch import GroupCommits, TopicCommits

World = dict[str, tuple[str, dict[int, tuple[int, tuple[int, ...]]]]]
"""topic → (topic id, partition → (leader, replicas))."""


def topics(world: World) -> Topics:
    rows: list[TopicRow] = []
    partitions: list[PartitionRow] = []
    for name, (topic_id, of_topic) in world.items():
        rows.append(TopicRow(name, topic_id, name.startswith("__"), 0, len(partitions), len(of_topic)))
        for number, (leader, replicas) in of_topic.items():
            partitions.append(PartitionRow(0, number, leader, 1, replicas, replicas, ()))
    return Topics(rows, partitions)


def answer(topic: str, rows: list[tuple[int, int, int]]) -> ListOffsetsAnswer:
    """An answer of (partition, error, offset)."""
    return ListOffsetsAnswer(
        0,
        (
            TopicOffsets(
                topic,
                np.array([p for p, _, _ in rows], np.int32),
                np.array([e for _, e, _ in rows], np.int16),
                np.full(len(rows), -1, np.int64),
                np.array([o for _, _, o in rows], np.int64),
            ),
        ),
    )


REPLICAS = st.lists(st.integers(0, 5), min_size=1, max_size=4, unique=True).map(tuple)
PARTITIONS = st.dictionaries(st.integers(0, 9), REPLICAS.map(lambda r: (r[0], r)), min_size=1, max_size=6)
WORLDS = st.dictionaries(
    st.sampled_from(["a", "b", "__c", "d"]), st.tuples(st.sampled_from(["id1", "id2"]), PARTITIONS)
)


@given(world=WORLDS)
def test_rows_are_sorted_and_replicas_follow_the_replica_list(world: World) -> None:
    seen = layout(topics(world), None)
    keys = list(zip(seen.topic, seen.partition.tolist(), strict=True))
    assert keys == sorted((t, p) for t, (_, of_topic) in world.items() for p in of_topic)
    expected = [(t, p, b) for t, p in keys for b in world[t][1][p][1]]
    found = zip(
        seen.replica_topic, seen.replica_partition.tolist(), seen.replica_broker.tolist(), strict=True
    )
    assert list(found) == expected
    for topic, (_, of_topic) in world.items():
        asked = np.array([*of_topic, 77], np.int32)
        rows = seen.rows_of(topic, asked).tolist()
        assert [keys[row] for row in rows[:-1]] == [(topic, p) for p in of_topic]
        assert rows[-1] == -1
    assert seen.rows_of("no such topic", np.array([0], np.int32)).tolist() == [-1]


@given(before=WORLDS, after=WORLDS)
def test_readings_follow_their_partitions_and_replicas(before: World, after: World) -> None:
    old = layout(topics(before), None)
    new = layout(topics(after), old)
    readings = nothing_read(old)
    readings.high_watermark[:] = np.arange(len(old))
    readings.replica_log_end[:] = np.arange(len(old.replica_row)) + 1000
    moved = carried(readings, old, new)

    def keyed(at: Layout, values: Any) -> dict[Any, int]:
        return dict(
            zip(zip(at.topic, at.topic_id, at.partition.tolist(), strict=True), values.tolist(), strict=True)
        )

    def replicas(at: Layout, values: Any) -> dict[Any, int]:
        rows = at.replica_row
        keys = zip(
            at.topic[rows],
            at.topic_id[rows],
            at.partition[rows].tolist(),
            at.replica_broker.tolist(),
            strict=True,
        )
        return dict(zip(keys, values.tolist(), strict=True))

    was = keyed(old, readings.high_watermark)
    assert keyed(new, moved.high_watermark) == {
        key: was.get(key, UNKNOWN) for key in keyed(new, moved.high_watermark)
    }
    were = replicas(old, readings.replica_log_end)
    assert replicas(new, moved.replica_log_end) == {
        key: were.get(key, UNKNOWN) for key in replicas(new, moved.replica_log_end)
    }
    assert len(old_replica_rows(new, old)) == len(new.replica_row)


def test_columns_that_stay_are_the_same_arrays() -> None:
    world: World = {"a": ("id", {0: (0, (0, 1)), 1: (1, (1, 0))})}
    one = layout(topics(world), None)
    world["a"][1][1] = (0, (1, 0))
    two = layout(topics(world), one)
    assert (two.topic is one.topic, two.replicas is one.replicas) == (True, True)
    assert (one.leader.tolist(), two.leader.tolist()) == ([0, 1], [0, 0])


@given(lists=st.lists(st.lists(st.integers(0, 9), max_size=4), max_size=6))
def test_a_matrix_is_padded_on_the_right(lists: list[list[int]]) -> None:
    padded = matrix(lists)
    assert padded.shape[0] == len(lists)
    assert [[b for b in row if b != NO_BROKER] for row in padded.tolist()] == lists


@given(world=WORLDS)
def test_every_replica_is_asked_of_its_broker_once(world: World) -> None:
    seen = layout(topics(world), None)
    parts = shares(seen)
    asked = sorted(
        (int(row), broker)
        for broker, part in parts.items()
        for row in [*part.leads.tolist(), *part.follows.tolist()]
    )
    assert asked == sorted(zip(seen.replica_row.tolist(), seen.replica_broker.tolist(), strict=True))


def test_slices_cover_every_row_in_turn() -> None:
    seen = layout(topics({"a": ("id", {p: (0, (0,)) for p in range(10)})}), None)
    nothing = np.zeros(10, np.bool_)
    covered = sum(slice_of(seen, 3, number, nothing).astype(int) for number in range(3))
    assert np.asarray(covered).tolist() == [1] * 10
    always = nothing.copy()
    always[9] = True
    assert all(slice_of(seen, 3, number, always)[9] for number in range(3))
    assert not nothing.any()


def test_a_leaders_watermark_and_end_come_together_or_not_at_all() -> None:
    seen = layout(topics({"a": ("id", {0: (0, (0, 1)), 1: (0, (0, 1))})}), None)
    readings = nothing_read(seen)
    read_leader(
        readings,
        seen,
        0,
        (answer("a", [(1, 0, 5), (0, 0, 7)]), 10),
        (answer("a", [(0, 0, 9), (1, 0, 6)]), 11),
    )
    assert (readings.high_watermark.tolist(), readings.log_end.tolist()) == ([7, 5], [9, 6])
    assert (readings.high_watermark_ms.tolist(), readings.log_end_ms.tolist()) == ([10, 10], [11, 11])
    read_leader(
        readings,
        seen,
        0,
        (answer("a", [(0, 78, -1), (1, 0, 8)]), 20),
        (answer("a", [(0, 0, 99), (1, 0, 8)]), 21),
    )
    assert (readings.high_watermark.tolist(), readings.log_end.tolist()) == ([7, 8], [9, 8])
    assert readings.high_watermark_ms.tolist() == [10, 20]
    assert readings.error_code.tolist() == [78, 0]
    assert readings.replica_log_end.tolist() == [99, UNKNOWN, 8, UNKNOWN]
    watermarks, ends = answer("a", [(0, 0, 50), (1, 0, 50)]), answer("a", [(0, 6, -1), (1, 0, 51)])
    read_leader(readings, seen, 0, (watermarks, 30), (ends, 31))
    assert (readings.high_watermark.tolist(), readings.log_end.tolist()) == ([7, 50], [9, 51])


def test_a_followers_own_end_goes_to_its_replica() -> None:
    seen = layout(topics({"a": ("id", {0: (0, (0, 1)), 1: (1, (2, 1))})}), None)
    readings = nothing_read(seen)
    read_replicas(readings, seen, 1, answer("a", [(1, 0, 5), (0, 0, 4), (7, 0, 1)]), 10)
    read_replicas(readings, seen, 2, answer("a", [(0, 0, 77), (1, 6, -1)]), 11)
    assert readings.replica_log_end.tolist() == [UNKNOWN, 4, UNKNOWN, 5]


HERE = BrokerAddress(0, "h", 9092, "R1")
FINE = Health(UNKNOWN, 900, FailureKind.NONE)
DEAD = Health(950, 900, FailureKind.REFUSED)


def states(known: dict[int, BrokerFacts]) -> tuple[str, int, bool]:
    return known[0].state, known[0].since_ms, known[0].answers


def test_a_brokers_way_through_its_states() -> None:
    known: dict[int, BrokerFacts] = {}
    registered = {0: Registered(HERE, False)}
    brokers.update(known, [HERE], registered, {0: FINE}, 1000)
    assert states(known) == ("up", 1000, True)
    brokers.update(known, [HERE], registered, {0: DEAD}, 2000)
    assert states(known) == ("silent", 950, False)
    brokers.update(known, [], {0: Registered(HERE, True)}, {0: DEAD}, 3000)
    assert states(known) == ("fenced", 3000, False)
    brokers.update(known, [], {0: Registered(HERE, True)}, {0: FINE}, 3500)
    assert states(known) == ("fenced", 3000, True)
    brokers.update(known, [], {}, {}, 4000)
    assert states(known) == ("gone", 4000, False)
    assert brokers.table(known).host.tolist() == ["h"]
    brokers.update(known, [HERE], registered, {0: FINE}, 5000)
    assert states(known) == ("up", 5000, True)


def test_a_brokers_last_fetch_is_what_the_quorum_saw_and_its_error_is_ours() -> None:
    known: dict[int, BrokerFacts] = {}
    brokers.update(known, [HERE], {}, {0: DEAD}, 1_000)
    for last_fetch_ms in (500, 700, 600):
        one = np.array([1], np.int64)
        nodes = Quorum(np.array([0], np.int32), np.array(["observer"], object), one, one * last_fetch_ms, one)
        brokers.saw_quorum(known, nodes)
    table = brokers.table(known)
    assert (table.last_fetch_ms.tolist(), table.error.tolist()) == ([700], ["refused"])
    brokers.update(known, [HERE], {}, {0: FINE}, 2_000)
    assert brokers.table(known).error.tolist() == [""]


@pytest.mark.parametrize(
    ("cause", "row"),
    [
        (NO_FAILURE, ("", 0)),
        (Cause(FailureKind.COORDINATOR_SILENT), ("coordinator_silent", 0)),
        (refused(15), ("kafka_error", 15)),
        (refused(-1), ("kafka_error", -1)),
    ],
)
def test_why_a_groups_figures_are_old(cause: Cause, row: tuple[str, int]) -> None:
    tables = GroupTables()
    tables.update({"g": GroupFacts("g", "classic", "Stable", 1, cause=cause)})
    assert (tables.groups.error[0], int(tables.groups.error_code[0])) == row


def assignment(*owned: tuple[str, list[int]]) -> bytes:
    topic = ConsumerProtocolAssignment.TopicPartition
    return bytes(
        ConsumerProtocolAssignment(
            version=1,
            assigned_partitions=[topic(topic=name, partitions=list(parts)) for name, parts in owned],
            user_data=b"",
        ).encode()
    )


def described(known: GroupFacts, *members: tuple[str, bytes], kind: str = "consumer") -> None:
    entry = SimpleNamespace(
        group_state="Stable",
        protocol_data="range",
        protocol_type=kind,
        members=[
            SimpleNamespace(member_id=m, client_id="c", client_host="/10.0.0.1", member_assignment=a)
            for m, a in members
        ],
    )
    groups.described(known, entry, 70)


def committed(known: GroupFacts, offsets: dict[int, int]) -> None:
    commits = TopicCommits(
        "t",
        np.array(list(offsets), np.int32),
        np.array(list(offsets.values()), np.int64),
        np.zeros(len(offsets), np.int16),
    )
    groups.committed(known, GroupCommits(known.group, 0, (commits,)), 80)


def test_offsets_are_what_is_committed_or_owned() -> None:
    known = GroupFacts("g", "classic", "Stable", 1)
    described(known, ("m2", assignment(("t", [1, 3]))), ("m1", assignment(("t", [0]))))
    committed(known, {3: 30, 2: 20, 0: 0})
    tables = GroupTables()
    tables.update({"g": known})
    at = tables.offsets
    assert at.partition.tolist() == [0, 1, 2, 3]
    assert at.committed.tolist() == [0, NO_OFFSET, 20, 30]
    assert at.owner.tolist() == ["m1", "m2", "", "m2"]
    assert tables.members.member_id.tolist() == ["m1", "m2"]
    assert tables.members.assigned.tolist() == [1, 2]
    assert tables.members.host.tolist() == ["10.0.0.1", "10.0.0.1"]
    members = tables.members
    committed(known, {3: 31, 2: 20, 0: 0})
    tables.update({"g": known})
    assert tables.offsets.committed.tolist() == [0, NO_OFFSET, 20, 31]
    assert (tables.offsets.partition is at.partition, tables.members is members) == (True, True)
    assert at.committed.tolist() == [0, NO_OFFSET, 20, 30]
    committed(known, {3: 31})
    tables.update({"g": known})
    assert tables.offsets.partition.tolist() == [0, 1, 3]
    tables.update({})
    assert (len(tables.offsets), len(tables.members), len(tables.groups)) == (0, 0, 0)


@given(garbage=st.binary(max_size=40))
def test_an_assignment_that_is_none_owns_nothing(garbage: bytes) -> None:
    known = GroupFacts("g", "classic", "Stable", 1)
    described(known, ("m", garbage))
    described(known, ("m", assignment(("t", [0]))), kind="connect")
    assert known.members[0].owned == ()


def listing(*names: str) -> Any:
    return SimpleNamespace(
        groups=[SimpleNamespace(group_id=n, group_state="stable", group_type="Consumer") for n in names]
    )


def test_groups_move_between_coordinators_and_are_forgotten_when_nobody_lists_them() -> None:
    facts: dict[str, GroupFacts] = {}
    groups.listed(facts, 1, listing("a", "b"), 10)
    assert (facts["a"].type, facts["a"].state, facts["a"].coordinator) == ("consumer", "Stable", 1)
    groups.listed(facts, 2, listing("b"), 20)
    assert facts["b"].coordinator == 2
    groups.forget(facts, {2: frozenset({"b"})}, [1, 2])
    assert sorted(facts) == ["a", "b"]  # broker 1 has not answered
    groups.forget(facts, {1: frozenset(), 2: frozenset({"b"})}, [1, 2])
    assert sorted(facts) == ["b"]
