"""A view as Prometheus metrics."""

import json

import numpy as np
import pytest
from msgspec.structs import replace

from kview.derive.fold import State, step
from kview.derive.view import PartitionStatus, Verdict, View
from kview.model.events import Severity
from kview.model.failures import Cause, FailureKind, Part
from kview.model.name_patterns import NamePattern
from kview.model.snapshot import Failure, Flags, Snapshot
from kview.model.states import BrokerState
from kview.model.units import UNKNOWN, UNKNOWN_ID
from kview.plain.documents import document
from kview.plain.metric_families import label
from kview.plain.own_series import Limits, Names, OwnSeries
from tests.plain.checked import HOSTILE
from tests.plain.expositions import (
    keeping,
    seen,
    snapshot,
    with_silent_controllers,
    without_controller,
    without_majority,
)
from tests.plain.scraped import Series, page_of, problems, read, value
from tests.worlds import World, default_world, views
from tests.worlds.connect import FAILED, connector, with_connectors
from tests.worlds.kinds import CONNECT, CONSUMER, SHARE, STREAMS, of_every_kind
from tests.worlds.log_dirs import FAILED as BROKEN
from tests.worlds.log_dirs import GOOD, TOTAL, with_dirs
from tests.worlds.reassignments import SIZE, Moving


def after(world: World, seconds: int) -> View:
    *_, view = views(world.tick() for _ in range(seconds))
    return view


def test_the_page_follows_prometheus_rules_and_its_parser_reads_it() -> None:
    page = page_of(after(default_world(), 5))
    assert problems(page) == []
    assert len(read(page)) > 500


def test_a_page_that_breaks_the_rules_is_found() -> None:
    bad = (
        "# HELP kview_lag_ms Lag.\n# TYPE kview_lag_ms gauge\nkview_lag_ms 1\n"
        "# HELP kview_Age\n# TYPE kview_Age untyped\nkview_Age 1\n"
    )
    assert len(problems(bad)) == 4


def test_the_figures_are_those_of_the_view() -> None:
    series = read(page_of(after(default_world(), 5)))
    assert value(series, "kview_brokers") == value(series, "kview_answering_brokers") == 6
    assert value(series, "kview_broker_latency_seconds", broker="3") == 0.0018
    assert value(series, "kview_broker_state", broker="3", state="up") == 1
    assert value(series, "kview_broker_state", broker="3", state="silent") == 0
    assert value(series, "kview_partitions", status="ok", internal="false") == 20
    assert value(series, "kview_partition_leader_broker_id", topic="invoice", partition="3") == 4
    assert value(series, "kview_partition_status", topic="invoice", partition="3", status="ok") == 1
    assert value(series, "kview_topic_partitions", topic="payment") == 6
    assert value(series, "kview_group_verdict", group="audit-export", verdict="stopped") == 1
    assert value(series, "kview_group_verdict", group="billing", verdict="ok") == 1
    assert value(series, "kview_group_lag_records", group="audit-export") == pytest.approx(134_000, rel=0.02)
    assert value(series, "kview_group_lag_min_seconds", group="audit-export") == pytest.approx(124, abs=2)
    assert value(series, "kview_observation_timestamp_seconds") == 1_760_000_004.1
    assert value(series, "kview_observations_total") == 1
    assert value(series, "kview_build_info", version="1.2.3") == 1


def test_log_directories_have_series_while_their_broker_is_up() -> None:
    snapshot = default_world().tick()
    series = read(page_of(step(State(), with_dirs(snapshot, 4, failed=True))[1]))
    assert value(series, "kview_log_dir_offline", broker="4", path=BROKEN) == 1
    assert value(series, "kview_log_dir_offline", broker="4", path=GOOD) == 0
    assert value(series, "kview_log_dir_usable_bytes", broker="4", path=GOOD) == TOTAL // 2
    assert value(series, "kview_log_dir_total_bytes", broker="4", path=GOOD) == TOTAL
    assert value(series, "kview_log_dir_total_bytes", broker="4", path=BROKEN) is None
    assert value(series, "kview_log_dir_full_timestamp_seconds", broker="4", path=GOOD) is None
    silent = replace(snapshot.brokers, state=np.full(6, BrokerState.SILENT, object))
    series = read(page_of(step(State(), with_dirs(replace(snapshot, brokers=silent), 4))[1]))
    assert value(series, "kview_log_dir_offline", broker="4", path=GOOD) is None


def test_what_is_not_known_has_no_series() -> None:
    """Nothing is 0 because nobody knows it."""
    world = default_world()
    after(world, 3)
    world.crash(4)
    view = after(world, 4)
    series = read(page_of(view))
    assert value(series, "kview_broker_state", broker="4", state="silent") == 1
    for name in ("latency_seconds", "slow", "in_records_per_second"):
        assert value(series, f"kview_broker_{name}", broker="4") is None, name
        assert value(series, f"kview_broker_{name}", broker="3") is not None, name
    assert value(series, "kview_partition_uncommitted_records", topic="invoice", partition="3") is None
    assert value(series, "kview_partition_in_records_per_second", topic="invoice", partition="3") is None
    assert value(series, "kview_partition_high_watermark_offset", topic="invoice", partition="3") is None
    assert value(series, "kview_partition_high_watermark_offset", topic="invoice", partition="4") is not None
    assert value(series, "kview_group_lag_records", group="billing") is None, "a bound is not the lag"
    assert (value(series, "kview_group_lag_min_records", group="billing") or 0) > 0


def test_what_share_groups_and_workers_lost_is_not_known() -> None:
    """They commit nothing that could be compared with the start of a log."""
    view = step(State(), of_every_kind(default_world().tick()))[1]
    series = read(page_of(view))
    lost = {
        name: value(series, "kview_group_lost_records", group=name)
        for name in (SHARE, CONNECT, STREAMS, CONSUMER)
    }
    assert lost == {SHARE: None, CONNECT: None, STREAMS: 0, CONSUMER: 0}
    told = {row["group"]: row["lost_records"] for row in json.loads(document(view))["groups"]}
    assert {name: told[name] for name in lost} == lost


def test_the_states_of_connectors_are_there_while_they_are_known() -> None:
    seen = default_world().tick()

    def page(snapshot: Snapshot, most: int = 7) -> str:
        text = page_of(step(State(), snapshot)[1], Limits(connectors=most))
        assert problems(text) == []
        return text

    series = read(page(with_connectors(seen, FAILED)))
    assert value(series, "kview_connector_state", connector="crm", kind="source", state="FAILED") == 1
    assert value(series, "kview_connector_task_state", connector="billing", task="0", state="FAILED") == 1
    assert value(series, "kview_connector_task_state", connector="billing", task="1", state="RUNNING") == 1
    assert value(series, "kview_connector_task_state", connector="billing", task="1", state="FAILED") is None
    assert value(series, "kview_findings", kind="connect_task_failed", severity="risk") == 1
    assert omitted(series, "connectors") == (0, 0)
    old = page(with_connectors(seen, FAILED, age_ms=61_000, cause=Cause(FailureKind.HTTP_STATUS, 401)))
    assert "kview_connector_task_state{" not in old and "kview_connector_state{" not in old
    assert value(read(old), "kview_failed_parts", part="connectors") == 1
    assert value(read(old), "kview_findings", kind="connectors_unread", severity="warn") == 1
    assert "kview_connector_state{" not in page(seen)
    many = read(page(with_connectors(seen, FAILED), most=1))
    assert omitted(many, "connectors") == (1, 4)
    assert {labels for name, labels in many if name.startswith("kview_connector_")} == {
        (("connector", "billing"), ("state", "FAILED"), ("task", "0")),
        (("connector", "billing"), ("kind", "sink"), ("state", "RUNNING")),
    }
    hostile = page(with_connectors(seen, connector(HOSTILE + '[red]"\n{}', "FAILED", 'ODD"\n')))
    assert "[red]" in hostile


def test_what_is_left_of_a_reassignment_has_a_series_while_it_goes_on() -> None:
    name, scene = "kview_partition_reassigning_records_left", Moving()
    series = read(page_of(scene.copy(2, 1_000)))
    assert value(series, name, topic="orders", partition="0") == 2 * (SIZE - 2_000)
    assert value(series, name, topic="orders", partition="1") is None, "it is not moved"
    _, view = step(scene.state, scene.world.tick())
    assert not any(each == name for each, _ in read(page_of(view)))


def test_an_active_controller_that_nobody_hears_of_has_no_series() -> None:
    name, one = "kview_active_controllers", default_world().tick()
    assert value(read(page_of(seen(one))), name) == 1
    assert value(read(page_of(seen(without_controller(one)))), name) == 0
    assert value(read(page_of(seen(with_silent_controllers(one)))), name) is None
    assert value(read(page_of(seen(without_majority(one)))), name) is None


def test_what_a_group_has_of_its_time_is_known_at_least() -> None:
    ratio, at_least = "kview_group_lag_retention_ratio", "kview_group_lag_min_retention_ratio"
    view = seen(keeping(snapshot(default_world(), 5), 50_000, ms=100_000))
    of_group = np.asarray(view.snapshot.offsets.group == "audit-export", np.bool_)

    def page(is_bound: Flags) -> Series:
        return read(page_of(replace(view, offsets=replace(view.offsets, behind_is_bound=is_bound))))

    none = np.zeros(len(of_group), np.bool_)
    exact, bound = page(none), page(~none)
    found = value(exact, ratio, group="audit-export") or 0
    assert found > 1 and value(exact, at_least, group="audit-export") == found
    assert value(bound, ratio, group="audit-export") is None
    assert value(bound, at_least, group="audit-export") == found
    one_is = np.arange(len(none)) == np.argmax(of_group)
    assert value(page(one_is), ratio, group="audit-export") is None, "the bound may be the worst"


def test_when_nobody_answers_there_is_only_that() -> None:
    world = default_world()
    after(world, 3)
    for broker in range(6):
        world.crash(broker)
    series = read(page_of(after(world, 4)))
    assert (value(series, "kview_brokers"), value(series, "kview_answering_brokers")) == (6, 0)
    assert {value(series, "kview_broker_state", broker=str(b), state="silent") for b in range(6)} == {1}
    names = {name for name, _ in series}
    assert not names & {
        "kview_active_controllers",
        "kview_broker_latency_seconds",
        "kview_partition_leader_broker_id",
        "kview_partition_in_sync_replicas",
        "kview_partition_high_watermark_offset",
        "kview_group_lag_records",
    }


def test_unknown_settings_disks_and_controllers_have_no_series() -> None:
    snapshot = default_world().tick()
    seen = replace(snapshot.observation, controller_id=UNKNOWN_ID)
    table = replace(snapshot.partitions, min_isr=np.full(len(snapshot.partitions), UNKNOWN_ID, np.int32))
    brokers = replace(snapshot.brokers, disk_bytes=np.full(6, UNKNOWN, np.int64))
    _, view = step(State(), replace(snapshot, observation=seen, partitions=table, brokers=brokers))
    names = {name for name, _ in read(page_of(view))}
    assert not names & {
        "kview_active_controllers",
        "kview_broker_disk_bytes",
        "kview_topic_under_min_isr_partitions",
    }
    assert "kview_topic_under_replicated_partitions" in names


def test_a_cluster_without_topics_or_groups() -> None:
    world = default_world()
    world.logs, world.groups = [], []
    page = page_of(after(world, 2))
    series = read(page)
    assert problems(page) == [] and value(series, "kview_topics") == 0
    assert not any(name.startswith("kview_partition_") for name, _ in series)


def test_names_stay_different_and_no_character_breaks_a_line() -> None:
    names = [HOSTILE, "a\x00", "a\\x00", "a\\\\x00", "a\n", "a\\n", 'a"b', "ä ∞"]
    assert len({label(name) for name in names}) == len(names)
    assert all(label(name).isprintable() for name in names)
    world = default_world()
    for group, name in zip(world.groups, names, strict=False):
        group.name = name
    world.groups.sort(key=lambda group: group.name)
    page = page_of(after(world, 3))
    found = {dict(labels)["group"] for name, labels in read(page) if name == "kview_group_members"}
    assert found == {label(name) for name in names[:4]}


def omitted(series: Series, of: str) -> tuple[float | None, float | None]:
    """How many rows in trouble, and how many others, have no series of their own."""
    name = "kview_omitted_rows"
    return value(series, name, of=of, in_trouble="true"), value(series, name, of=of, in_trouble="false")


def rows(series: Series, name: str) -> list[tuple[str, ...]]:
    """The values of the labels of a metric."""
    return [tuple(text for _, text in labels) for each, labels in series if each == name]


def test_of_too_many_partitions_the_busiest_have_series_and_the_rest_adds_up() -> None:
    view = after(default_world(), 3)
    all_of_them = read(page_of(view))
    assert omitted(all_of_them, "partitions") == (0, 0)
    assert value(all_of_them, "kview_rest_partitions", status="ok") == 0
    assert value(all_of_them, "kview_rest_partitions_in_records_per_second") == 0
    assert value(all_of_them, "kview_rest_partitions_max_uncommitted_records") is None
    series = read(page_of(view, Limits(partitions=5, topics=1, groups=2)))
    rate = "kview_partition_in_records_per_second"
    own = rows(series, rate)
    assert len(own) == 5 and omitted(series, "partitions") == (0, 65)
    every = {key: found for key, found in all_of_them.items() if key[0] == rate}
    busiest = sorted(every.values())[-5:]
    assert sorted(series[key] for key in every if key in series) == busiest
    assert value(series, "kview_rest_partitions_in_records_per_second") == pytest.approx(
        sum(every.values()) - sum(busiest)
    )
    assert sum(value(series, "kview_rest_partitions", status=s) or 0 for s in PartitionStatus) == 65
    assert omitted(series, "topics") == (0, value(series, "kview_rest_topics"))
    assert not {name for name, _ in series if name.startswith("kview_rest_")} & {name for name, _ in every}
    # audit-export has stopped, and is the furthest behind
    assert ("audit-export",) in rows(series, "kview_group_lag_min_records")
    behind = {key: found for key, found in all_of_them.items() if key[0] == "kview_group_lag_min_records"}
    assert value(series, "kview_rest_groups_lag_min_records") == sum(
        found for key, found in behind.items() if key not in series
    )


def test_an_abandoned_group_takes_nobody_s_place() -> None:
    view = after(default_world(), 15)
    limits = Limits(groups=1, group_partitions=1)
    verdict = np.where(view.snapshot.groups.group == "audit-export", Verdict.ABANDONED, view.groups.verdict)
    calm = np.full(len(verdict), Severity.CALM, object)
    far = "kview_group_lag_min_records"
    assert rows(read(page_of(view, limits)), far) == [("audit-export",)]
    view = replace(view, groups=replace(view.groups, verdict=verdict, severity=calm))
    assert rows(read(page_of(view, limits)), far) != [("audit-export",)]


def test_all_in_trouble_have_series_next_to_the_busiest() -> None:
    world = default_world()
    after(world, 3)
    world.crash(4)
    view = after(world, 4)
    name = "kview_partition_status"
    troubled = {row for row in rows(read(page_of(view)), name) if row[1] not in ("ok", "not_preferred")}
    calm = 70 - len(troubled)
    assert min(len(troubled), calm) > 10
    series = read(page_of(view, Limits(partitions=len(troubled))))
    assert troubled <= {*rows(series, name)} and omitted(series, "partitions")[0] == 0
    few = read(page_of(view, Limits(partitions=2)))
    assert {status for _, status, _ in rows(few, name)} & {"silent_leader", "frozen"}
    assert len(troubled) > (omitted(few, "partitions")[0] or 0) >= len(troubled) - 4


def test_names_that_are_included_or_excluded() -> None:
    view = after(default_world(), 3)

    def page(include: tuple[str, ...], exclude: tuple[str, ...], limits: Limits) -> Series:
        names = Names(*(tuple(map(NamePattern.parse, texts)) for texts in (include, exclude)))
        return read(page_of(view, own=OwnSeries(names, limits)))

    series = page(("topic:audit-*", "group:rep*"), (), Limits(topics=1, partitions=1, groups=1))
    assert ("audit-log",) in rows(series, "kview_topic_partitions")
    assert {
        number for number, _, topic in rows(series, "kview_partition_status") if topic == "audit-log"
    } == {
        "0",
        "1",
        "2",
        "3",
    }
    assert ("reporting",) in rows(series, "kview_group_members")
    series = page(("topic:invoice",), ("topic:*", "group:audit-*"), Limits())
    assert rows(series, "kview_topic_partitions") == [("invoice",)]
    assert {topic for _, topic in rows(series, "kview_partition_in_sync_replicas") if topic} == {"invoice"}
    assert ("audit-export",) not in rows(series, "kview_group_members"), "although it has stopped"
    assert omitted(series, "groups") == (0, 0) and value(series, "kview_rest_topics") == 0
    assert value(series, "kview_groups") == 4
    of = "kview_group_partition_committed_offset"
    series = page(("topic:audit-log",), ("group:audit-*",), Limits())
    assert "audit-export" not in {group for group, *_ in rows(series, of)}
    series = page(("topic:audit-log", "group:audit-*"), ("group:*", "topic:*"), Limits())
    assert {(group, topic) for group, _, topic in rows(series, of)} == {("audit-export", "audit-log")}


def test_ignored_groups_have_no_series() -> None:
    *_, view = views((default_world().tick(),), State(("audit-*",)))
    series = read(page_of(view))
    assert value(series, "kview_groups") == 3
    assert not any(("group", "audit-export") in labels for _, labels in series)


def test_without_the_right_to_ask_there_is_no_count_of_what_was_not_seen() -> None:
    """No settings of topics, and no list of groups."""

    def blind(snapshot: Snapshot) -> Snapshot:
        table = snapshot.partitions
        denied = (Failure(Part.GROUPS, 0, FailureKind.KAFKA_ERROR, 30),)
        none = np.zeros(len(snapshot.groups), np.bool_)
        return replace(
            snapshot,
            observation=replace(snapshot.observation, failures=denied),
            partitions=replace(table, min_isr=np.full(len(table), UNKNOWN_ID, np.int32)),
            groups=snapshot.groups.take(none),
            offsets=snapshot.offsets.take(np.zeros(len(snapshot.offsets), np.bool_)),
        )

    world = default_world()
    *_, view = views(blind(world.tick()) for _ in range(3))
    series = read(page_of(view))
    for name in ("under_min_isr_partitions", "at_min_isr_partitions", "groups"):
        assert value(series, f"kview_{name}") is None, name
    assert value(series, "kview_under_replicated_partitions") == 0
