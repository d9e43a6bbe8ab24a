"""Every table of a report on a simulated cluster is checked against the engine's own counters.

The cluster is recorded by the camera at the engine's speed while a broker crashes, another one hangs, a group
is too slow, one has stopped and loses records to retention, and its offsets are set back.
"""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from kview.model.report import Report
from kview.model.report_tables import TableName
from kview.pipeline.report import Question
from kview.simulate.cluster import Cluster
from kview.simulate.groups.results import CommitRequest, OffsetToCommit
from kview.simulate.world import OFFSETS_TOPIC, GroupSpec, ProducerSpec, TopicSpec, World, racked_brokers
from tests.pipeline.here import HERE
from tests.pipeline.ledger import (
    OFFLINE,
    SILENT,
    START_MS,
    UNDER_MIN_ISR,
    UNDER_REPLICATED,
    Act,
    Ledger,
    record_played,
)
from tests.pipeline.recorded import report_on, rows_of

RETENTION_MS = 60_000
TOPICS = ("orders", "clicks", "audit")
ALONE = ("audit", 0)
"""A partition without followers, whose leader crashes."""
HANGS, REWOUND = 1, 100
COMMITS_S = 6
"""Commits are 5 s apart, and their records belong to the seconds between them."""
DETECTED_MS = 3_000
"""A hang is believed after 1.5 s, at the next whole second, and a state counts from the observation on that
saw it."""

READ_S = 92
"""Sizes are read every 30 s and noted once a minute, so the last one can be as old as this."""

K = TypeVar("K")


def world() -> World:
    """A small cluster, whose topics are spread over both racks."""
    retention = {"retention.ms": str(RETENTION_MS), "segment.ms": "10000"}
    return World(
        brokers=racked_brokers(6, 2),
        topics=(
            TopicSpec("orders", 6, 3, {"min.insync.replicas": "2"}),
            TopicSpec("clicks", 4, 2, retention),
            TopicSpec("audit", 2, 1),
        ),
        producers=(
            ProducerSpec("shop", "orders", 60.0, 300),
            ProducerSpec("web", "clicks", 40.0, 150, acks=1),
            ProducerSpec("log", "audit", 20.0, 200),
        ),
        groups=(
            GroupSpec("billing", ("orders",), 2),
            GroupSpec("slow", ("orders",), 1, records_per_second=40.0),
            GroupSpec("late", ("clicks",), 0, stopped_ms=30_000),
        ),
        settings={"log.retention.check.interval.ms": "5000", "offsets.topic.num.partitions": "6"},
    )


def alone(cluster: Cluster) -> int:
    """Return the broker that holds ALONE."""
    partition = cluster.metadata.image.partition(*ALONE)
    assert partition is not None
    return partition.replicas[0]


def rewind(cluster: Cluster) -> None:
    """Set back the offsets of the group that has stopped."""
    for broker in cluster.broker_ids():
        coordinator = cluster.groups(broker)
        if "late" in [group.name for group in coordinator.groups()]:
            offsets = coordinator.fetch_offsets("late", None).offsets
            back = tuple(OffsetToCommit(one.topic, one.partition, one.offset - REWOUND) for one in offsets)
            coordinator.commit(CommitRequest("late", back), lambda result: None)


def acts(from_s: int) -> tuple[Act, ...]:
    """Return what happens in five minutes that begin at `from_s`."""
    return (
        Act(from_s + 60, lambda cluster: cluster.faults.crash(alone(cluster))),
        Act(from_s + 110, lambda cluster: cluster.faults.start(alone(cluster))),
        Act(from_s + 160, lambda cluster: cluster.faults.hang(HANGS)),
        Act(from_s + 195, lambda cluster: cluster.faults.start(HANGS)),
        Act(from_s + 230, rewind),
    )


ACTS = acts(0)


def over(counted: Counter[tuple[K, int]], seconds: range, of: Callable[[K], bool]) -> int:
    """Return the sum over these seconds of what is counted."""
    return sum(number for (key, second), number in counted.items() if second in seconds and of(key))


def per_second(counted: Counter[tuple[K, int]], seconds: range, of: Callable[[K], bool]) -> list[int]:
    """Return the sum of each second."""
    sums = Counter({second: 0 for second in seconds})
    for (key, second), number in counted.items():
        if second in seconds and of(key):
            sums[second] += number
    return [sums[second] for second in seconds]


def nearest_rank(values: list[int], percent: int) -> int:
    """Return a percentile."""
    return sorted(values)[max(1, -(-percent * len(values) // 100)) - 1]


def named(topic: str) -> Callable[[Any], bool]:
    """Return whether a partition is of the topic; '' is all of the user's."""
    return lambda key: key[0] == topic if topic else key[0] != OFFSETS_TOPIC


def check(made: Report, book: Ledger, seconds: range, near_ms: int) -> None:
    """Check every table. `seconds` are those that the report knows. A lag in time is off by `near_ms` at
    most."""
    for topic, row in [(key[0], row) for key, row in rows_of(made, TableName.TOPICS, "topic").items()]:
        check_records(row, book, seconds, named(topic))
        check_states(row, book, named(topic))
    (cluster,) = rows_of(made, TableName.CLUSTERS, "cluster").values()
    assert cluster["known_s"] == len(seconds)
    check_records(cluster, book, seconds, named(""))
    for key, row in rows_of(made, TableName.PARTITIONS, "topic", "partition").items():
        is_it = key.__eq__
        arrived = per_second(book.records_in, seconds, is_it)
        assert (row["records_in"], row["peak"] or 0) == (sum(arrived), max(arrived)), key
        for name in ("replicated", "cross_rack"):
            assert row[name] == over(getattr(book, name), seconds, is_it), (key, name)
        assert row["truncated"] == over(book.cut, seconds, is_it), key
        check_states(row, book, is_it)
    check_throughput(made, book, seconds)
    check_brokers(made, book, seconds)
    check_groups(made, book, seconds, near_ms)
    check_incidents(made, book, seconds)
    check_sizes(made, book, seconds)


def check_records(row: dict[str, Any], book: Ledger, seconds: range, of: Callable[[Any], bool]) -> None:
    arrived = per_second(book.records_in, seconds, of)
    assert row["records_in"] == sum(arrived) > 0
    assert row["in_rate"] == pytest.approx(sum(arrived) / len(seconds))
    for percent in (50, 95, 99):
        assert row[f"in_p{percent}"] == nearest_rank(arrived, percent), percent
    assert row["in_most"] == max(arrived)
    assert row["in_most_ms"] == START_MS + 1000 * (seconds[0] + arrived.index(max(arrived)))
    for name in ("replicated", "cross_rack"):
        assert row[name] == over(getattr(book, name), seconds, of), name
    assert row["truncated"] == over(book.cut, seconds, of)
    assert row["records_in_gap"] == 0
    assert row["bytes_in"] == pytest.approx(over(book.bytes_in, seconds, of), rel=0.05)


def check_states(row: dict[str, Any], book: Ledger, of: Callable[[Any], bool]) -> None:
    for state in (OFFLINE, SILENT, UNDER_MIN_ISR, UNDER_REPLICATED):
        truth = sum(ms for (name, key), ms in book.state_ms.items() if name == state and of(key))
        changes = sum(n for (name, key), n in book.episodes.items() if name == state and of(key))
        assert abs(row[f"{state}_ms"] - truth) <= changes * DETECTED_MS, (row, state, truth)


def check_throughput(made: Report, book: Ledger, seconds: range) -> None:
    rows = rows_of(made, TableName.THROUGHPUT, "topic", "at_ms")
    for (topic, at_ms), row in rows.items():
        first_s = (at_ms - START_MS) // 1000
        step = range(max(first_s, seconds[0]), min(first_s + made.step_s, seconds[-1] + 1))
        assert row["known_s"] == len(step) or topic
        for name in ("records_in", "replicated", "cross_rack"):
            assert row[name] == over(getattr(book, name), step, named(topic)), (topic, first_s, name)
    assert {topic for topic, _ in rows} >= {"", *TOPICS}
    assert len(rows) >= len(seconds) // made.step_s * (1 + len(TOPICS))


def check_brokers(made: Report, book: Ledger, seconds: range) -> None:
    brokers = rows_of(made, TableName.BROKERS, "broker")
    for (broker,), row in brokers.items():
        assert row["records_in"] == over(book.led, seconds, int(broker).__eq__), broker
    racks = rows_of(made, TableName.RACKS, "rack")
    for (rack,), row in racks.items():
        of_rack = {broker.id for broker in world().brokers if broker.rack == rack}
        assert row["records_in"] == over(book.led, seconds, of_rack.__contains__), rack
    traffic = rows_of(made, TableName.TRAFFIC, "topic")
    for (topic,), row in traffic.items():
        of = named(topic) if topic else lambda key: True  # the whole cluster, internal topics included
        crossed, copied = (over(counted, seconds, of) for counted in (book.cross_rack, book.replicated))
        assert row["cross_rack_share"] == pytest.approx(crossed / copied if copied else None)
        # The bytes are rounded to whole ones, what they cost is not.
        per_byte = made.price_per_gb / 1e9
        assert row["cost"] == pytest.approx(row["cross_rack_bytes"] * per_byte, abs=per_byte)


def check_groups(made: Report, book: Ledger, seconds: range, near_ms: int) -> None:
    groups = rows_of(made, TableName.GROUPS, "group")
    assert set(groups) == {("billing",), ("slow",), ("late",)}
    for (group,), row in groups.items():
        is_it = group.__eq__
        least = over(book.read, range(seconds[0], seconds[-1] + 1 - COMMITS_S), is_it)
        most = over(book.read, range(seconds[0], seconds[-1] + 2), is_it)
        assert least <= row["records_out"] <= most, group
        assert row["rewound"] == over(book.rewound, seconds, is_it), group
        for name, counted in (("lag_most", book.lag), ("lost", book.unread)):
            most = max(
                number for (key, second), number in counted.items() if is_it(key) and second in seconds
            )
            assert row[name] == most, (group, name)
    times, rest = divmod(groups["late",]["rewound"], REWOUND * 4)
    assert times >= 1 and not rest and groups["late",]["lost"] > 0
    assert groups["slow",]["lag_most"] > 10 * groups["billing",]["lag_most"]
    least_s, most_s = behind_s(book, "slow", "orders", seconds)
    assert 1000 * least_s - near_ms <= groups["slow",]["behind_most"] <= 1000 * most_s + near_ms


def behind_s(book: Ledger, group: str, topic: str, seconds: range) -> tuple[int, int]:
    """Return bounds of a group's greatest lag in time: how long the partitions took to get as many records
    as the worst one lacks."""
    keys = {key for key, _ in book.records_in if key[0] == topic}
    least = most = 0
    for second in seconds:
        lacks, lengths = book.lag_of_worst[group, second], []
        for key in keys:
            length, arrived = 0, 0
            while arrived < lacks and length <= second:
                arrived += book.records_in[key, second - length]
                length += 1
            lengths.append(length)
        least, most = max(least, min(lengths) - 1), max(most, *lengths)
    assert most < 2 * least, "the bounds say something"
    return least, most


def check_incidents(made: Report, book: Ledger, seconds: range) -> None:
    incidents = [row for _, row in sorted(rows_of(made, TableName.INCIDENTS, "began_ms").items())]
    assert [row["brokers"] for row in incidents] == [str(loss.broker) for loss in book.losses]
    for row, loss in zip(incidents, book.losses, strict=True):
        began_s = (row["began_ms"] - START_MS) / 1000
        near = DETECTED_MS / 1000
        assert began_s == pytest.approx(loss.lost_s, abs=near)
        assert began_s + row["fenced_ms"] / 1000 == pytest.approx(loss.fenced_s, abs=near)
        assert began_s + row["elected_ms"] / 1000 == pytest.approx(loss.led_s, abs=near)
        assert (row["ended_ms"] - START_MS) / 1000 == pytest.approx(loss.full_s, abs=near)
    assert sum(row["gone"] or 0 for row in incidents) <= book.gone
    elections = rows_of(made, TableName.ELECTIONS, "topic")
    for (topic,), row in elections.items():
        assert row["elections"] == over(book.elected, seconds, topic.__eq__), topic
        assert row["lost_leader"] == over(book.lost_leader, seconds, topic.__eq__), topic
    assert elections["audit",]["lost_leader"] > 0
    findings = rows_of(made, TableName.FINDINGS, "kind")
    away_s = sum(min(loss.fenced_s, loss.full_s) - loss.lost_s for loss in book.losses)
    held_s = findings["brokers_silent",]["held_ms"] / 1000
    assert held_s == pytest.approx(away_s, abs=len(book.losses) * DETECTED_MS / 1000)


def check_sizes(made: Report, book: Ledger, seconds: range) -> None:
    growth = rows_of(made, TableName.GROWTH, "topic")
    assert {topic for (topic,) in growth} >= set(TOPICS)
    for (topic,), row in growth.items():
        sizes = sorted(book.sizes[topic])
        if topic != "clicks":  # It shrinks, because of retention.
            assert sizes[-READ_S] <= row["bytes_last"] <= sizes[-1], topic
        assert row["retention_ms"] == (RETENTION_MS if topic == "clicks" else 604_800_000)
    size, limit = max(book.sizes["clicks"]), growth["clicks",]["forecast_bytes"]
    assert growth["clicks",]["bytes_last"] < size / 2 and limit == pytest.approx(720_000, rel=0.05)


@pytest.mark.slow  # 8 s of playing and counting; test_report.py and test_kernel.py count in another way
def test_every_table_says_what_the_engine_counted(tmp_path: Path) -> None:
    book = record_played(tmp_path / "r", world(), 300, ACTS)
    made = report_on(HERE, tmp_path / "scratch", tmp_path / "r", question=Question(price_per_gb=0.5))
    check(made, book, known(made), 3_000)
    question = Question(price_per_gb=0.5, step_s=1)
    made = report_on(HERE, tmp_path / "scratch", tmp_path / "r", question=question)
    check_throughput(made, book, known(made))


@pytest.mark.slow  # test_every_table_says_what_the_engine_counted has the same tables
def test_so_does_a_report_by_the_minute_on_what_happens_again(tmp_path: Path) -> None:
    # After 4 minutes, the second crash is in the same second as the preferred elections of the fifth minute.
    begin_min = (0, 4, 10)
    todo = [act for minute in begin_min for act in acts(60 * minute)]
    book = record_played(tmp_path / "r", world(), 60 * begin_min[-1] + 260, todo)
    question = Question(price_per_gb=0.5, step_s=60)
    made = report_on(HERE, tmp_path / "scratch", tmp_path / "r", question=question)
    assert len(made[TableName.INCIDENTS]) == 2 * len(begin_min)
    # Of what is older than half a minute, one log end a minute is kept, and what lies between is estimated.
    check(made, book, known(made), 60_000)


def known(made: Report) -> range:
    """Return the seconds that a report knows, counted from the start: all but the last one."""
    return range((made.period.since_ms - START_MS) // 1000, (made.period.until_ms - START_MS) // 1000)
