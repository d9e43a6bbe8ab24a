"""Answers of ListOffsets by time, kept for the partitions that exist now."""

from kview.model.snapshot import TimePoints
from kview.model.units import UNKNOWN
from kview.observe.layout import Layout, layout
from kview.observe.offsets import ended_at
from kview.observe.state import Readings, nothing_read
from kview.observe.time_points import KEPT_MS, Points
from kview.wire.list_offsets import ListOffsetsAnswer
from tests.observe.test_offsets import World, answer, topics

HELD = (0, (0, 1))
BEFORE: World = {"a": ("id-a", {0: HELD, 1: HELD}), "c": ("id-c", {0: HELD})}
FIRST_MS, LATER_MS = 1_000, 2_000


def rows(table: TimePoints) -> list[tuple[str, int, int, int]]:
    """(topic, partition, timestamp, offset)."""
    columns = (table.topic, table.partition.tolist(), table.timestamp_ms.tolist(), table.offset.tolist())
    return list(zip(*columns, strict=True))


def take(
    points: Points, at: Layout, readings: Readings, of_ms: int, got: ListOffsetsAnswer, at_ms: int
) -> None:
    """Store an answer about the time `of_ms` that was received at `at_ms`."""
    points.answered(at, *ended_at(readings, at, got, of_ms), of_ms, at_ms)


def asked(points: Points, at: Layout) -> list[int]:
    """The rows that are not asked for again."""
    every = at.rows_at(at.topic, at.partition)
    due = points.due(at, every).tolist()
    return [row for row in every.tolist() if row not in due]


def two_answers(at: Layout) -> Points:
    """The later time was answered first; of partition 1, only an error was."""
    points, readings = Points(), nothing_read(at)
    points.mark(at, at.rows_of(["a"], [2], at.partition[:2]))
    take(points, at, readings, LATER_MS, answer("a", [(1, 6, -1), (0, 0, 70)]), 10_000)
    take(points, at, readings, FIRST_MS, answer("a", [(0, 0, 50), (1, 0, 60)]), 10_100)
    take(points, at, readings, FIRST_MS, answer("c", [(0, 0, 5)]), 10_200)
    return points


def test_answers_stand_in_order_and_the_table_stays_while_nothing_comes() -> None:
    at = layout(topics(BEFORE), None)
    points = two_answers(at)
    assert rows(points.table) == [
        ("a", 0, FIRST_MS, 50),
        ("a", 0, LATER_MS, 70),
        ("a", 1, FIRST_MS, 60),
        ("c", 0, FIRST_MS, 5),
    ]
    assert points.table is points.table
    table = points.table
    points.expire(10_000 + KEPT_MS, layout(topics(BEFORE), at))
    assert points.table is table
    points.expire(10_001 + KEPT_MS, at)
    assert rows(points.table) == [("a", 0, FIRST_MS, 50), ("a", 1, FIRST_MS, 60), ("c", 0, FIRST_MS, 5)]
    assert asked(points, at) == [0, 1]


def test_a_topic_in_front_moves_the_rows_and_a_topic_created_again_is_another_one() -> None:
    at = layout(topics(BEFORE), None)
    points = two_answers(at)
    after: World = {
        "a": ("id-other", {0: HELD, 1: HELD}),
        "b": ("id-b", {0: HELD}),
        "c": ("id-c", {0: HELD, 1: HELD}),
    }
    now = layout(topics(after), at)
    points.mark(now, now.rows_of(["c"], [1], now.partition[:1]))
    points.expire(10_300, now)
    assert rows(points.table) == [("c", 0, FIRST_MS, 5)]
    assert asked(points, now) == [3]


def test_a_log_without_a_record_so_young_ended_then_where_it_ends_now() -> None:
    at = layout(topics(BEFORE), None)
    points, readings = Points(), nothing_read(at)
    readings.log_end[:], readings.log_end_ms[:] = 90, 1_500
    take(points, at, readings, FIRST_MS, answer("a", [(0, 0, -1)]), 10_000)
    take(points, at, readings, LATER_MS, answer("a", [(0, 0, -1)]), 10_000)
    assert rows(points.table) == [("a", 0, FIRST_MS, 90), ("a", 0, LATER_MS, UNKNOWN)]


def test_nothing_is_known_before_there_are_topics() -> None:
    points, nothing = Points(), layout(topics({}), None)
    points.expire(0, nothing)
    assert not len(points.table)
    assert not len(points.due(nothing, nothing.rows_at(nothing.topic, nothing.partition)))
