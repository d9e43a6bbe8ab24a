"""Offsets that brokers answer, as tables of partitions and replicas, without sockets."""

import time
from functools import partial
from typing import Any, ClassVar, cast

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.consumer import ListOffsetsRequest

from kview.model.failures import Cause, FailureKind
from kview.model.units import NO_BROKER, UNKNOWN
from kview.observe.budget import shares, slice_of
from kview.observe.causes import LinkError
from kview.observe.clock import system_clock_ms
from kview.observe.layout import Layout, layout, matrix, old_replica_rows
from kview.observe.link import Link
from kview.observe.loop import Loop
from kview.observe.offsets import OffsetRequests, read_leader, read_replicas
from kview.observe.state import State, carried, nothing_read
from kview.wire.list_offsets import ListOffsetsAnswer
from kview.wire.metadata import PartitionRow, TopicRow, Topics

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
        (topic,),
        (len(rows),),
        np.array([p for p, _, _ in rows], np.int32),
        np.array([e for _, e, _ in rows], np.int16),
        np.full(len(rows), -1, np.int64),
        np.array([o for _, _, o in rows], np.int64),
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
        rows = seen.rows_of([topic], [len(asked)], asked).tolist()
        assert [keys[row] for row in rows[:-1]] == [(topic, p) for p in of_topic]
        assert rows[-1] == -1
    names = [*world, "no such topic"]
    rows = seen.rows_of(names, [1] * len(names), np.zeros(len(names), np.int32)).tolist()
    there = [name for name in world if 0 in world[name][1]]
    assert [(name, keys[row]) for name, row in zip(names, rows, strict=True) if row >= 0] == [
        (name, (name, 0)) for name in there
    ]
    assert seen.rows_at(seen.topic[::-1], seen.partition[::-1]).tolist() == list(range(len(keys)))[::-1]


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


HEADER_BYTES = 10
"""A request's header with an empty client id."""


class Asked:
    """A link that keeps the partitions it was asked for, and answers none of them."""

    versions: ClassVar = {2: (1, 2)}

    def __init__(self) -> None:
        self.partitions: list[list[int]] = []

    async def ask(self, request: Any) -> tuple[Any, int]:
        request.with_header(1, "")
        asked = ListOffsetsRequest.decode(request.encode(framed=False)[HEADER_BYTES:], version=2)
        self.partitions.append([p.partition_index for t in asked.topics for p in t.partitions])
        raise LinkError(Cause(FailureKind.CLOSED))


def test_a_share_chosen_before_late_metadata_is_not_asked_for_ever() -> None:
    def metadata(leaders: list[int]) -> Layout:
        return layout(topics({"invoice": ("id", {p: (b, (1, 3)) for p, b in enumerate(leaders)})}), None)

    loop, state = Loop(system_clock_ms, time.monotonic), State()
    requests, link = OffsetRequests(loop, state, debugging=False), Asked()
    loop.start()
    before, after = metadata([3, 1]), metadata([3, 3])
    nothing = np.empty(0, np.intp)
    state.layout = after  # it came between the choice and the request
    for known in (before, after, after):
        ask = partial(requests.leaders, cast(Link, link), 3, shares(known)[3], True, nothing, nothing)
        loop.run(ask)
    loop.stop()
    assert link.partitions == [[0], [0, 1], [0, 1]]
