"""Groups whose coordinator moves, loads, hangs or was never heard: what is shown of them meanwhile."""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from kview.derive.view import View
from kview.language import failures
from kview.model.failures import FailureKind, Part
from kview.observe.groups.coordinators import Heard, name_in, partition_of
from kview.observe.layout import Layout, layout
from kview.observe.observer import ObserveSettings
from kview.plain.blocks import block
from kview.plain.documents import document
from kview.tui.options import Options
from kview.tui.rows.groups import GroupRows
from tests.observe.fake_broker import COORDINATOR_VERSIONS, FakeBroker
from tests.observe.observing import Watched, broker_state, observing
from tests.observe.test_offsets import topics
from tests.real_kafka.cluster import RealKafka
from tests.waiting import pause, wait_until

QUICK = ObserveSettings(interval_s=0.2, silence_s=0.5, retry_most_s=0.4, list_groups_rounds=1)
EACH = ObserveSettings(list_groups_rounds=1)

LIST_OFFSETS, OFFSET_FETCH, DESCRIBE_GROUPS, LIST_GROUPS = 2, 9, 15, 16
SILENT = "broker 1 accepts connections but does not answer"


@contextmanager
def cluster(coordinator: int | None = 1) -> Iterator[list[FakeBroker]]:
    """Three brokers, of which broker 1 coordinates the group `billing`."""
    with (
        FakeBroker(0, versions=COORDINATOR_VERSIONS) as a,
        FakeBroker(1, versions=COORDINATOR_VERSIONS) as b,
        FakeBroker(2, versions=COORDINATOR_VERSIONS) as c,
    ):
        brokers = [a, b, c]
        for broker in brokers:
            broker.advertised = {one.node: one.address for one in brokers}
            broker.coordinator = coordinator
        b.groups = ("billing",)
        yield brokers


def names(view: View) -> list[str]:
    return [str(group) for group in view.snapshot.groups.group]


def error(view: View) -> str:
    """Why the figures of the only group are old, in words."""
    table = view.snapshot.groups
    return failures.of_group(table.error[0], int(table.error_code[0]), int(table.coordinator[0]))


def title(view: View) -> str:
    """What stands above the groups on the screen."""
    return "".join(span.text for span in GroupRows(view, Options()).title)


def test_a_group_stays_while_its_coordinator_resigns_and_the_new_one_loads() -> None:
    with cluster() as brokers, observing([brokers[0].address], QUICK) as observer:
        watched = Watched(observer)
        watched.until(lambda v: names(v) == ["billing"] and not error(v), "the group is seen")
        watched.views.clear()
        _, old, new = brokers
        old.groups, old.group_error, new.group_error = (), 16, 14  # as Kafka's do: both lists are empty
        watched.until(lambda v: "no longer coordinates it" in error(v), "the old coordinator has resigned")
        for broker in brokers:
            broker.coordinator = 2
        watched.until(lambda v: error(v) == "coordinator 2 is loading its groups", "the new one loads")
        for _ in range(8):
            watched.look()
        new.groups, new.group_error = ("billing",), 0
        watched.until(lambda v: not error(v), "it has loaded")
        assert all(names(view) == ["billing"] for view in watched.views)
        assert watched.views[-1].snapshot.groups.coordinator.tolist() == [2]
        assert watched.views[-1].snapshot.offsets.committed.tolist() == [40]


def test_a_deleted_group_goes_although_another_broker_hangs() -> None:
    with cluster() as brokers, observing([brokers[0].address], QUICK) as observer:
        watched = Watched(observer)
        watched.until(lambda v: names(v) == ["billing"], "the group is seen")
        brokers[2].hang()
        watched.until(lambda v: broker_state(v, 2) == "silent", "broker 2 hangs")
        assert names(watched.views[-1]) == ["billing"]
        brokers[1].groups = ()
        watched.until(lambda v: names(v) == [], "its coordinator says that it is gone")
        brokers[2].go_on()


def test_a_deleted_group_goes_where_the_offsets_topic_is_not_visible() -> None:
    with cluster(coordinator=None) as brokers, observing([brokers[0].address], QUICK) as observer:
        watched = Watched(observer)
        watched.until(lambda v: names(v) == ["billing"], "the group is seen")
        brokers[1].groups = ()
        watched.until(lambda v: names(v) == [], "no broker lists it")


def test_a_deleted_group_goes_although_all_lists_arrive_late() -> None:
    with cluster(coordinator=None) as brokers, observing([brokers[0].address], QUICK) as observer:
        watched = Watched(observer)
        watched.until(lambda v: names(v) == ["billing"], "the group is seen")
        for broker in brokers:
            broker.change[LIST_GROUPS] = lambda _: pause(3 * QUICK.phase_s)
        brokers[1].groups = ()
        for _ in range(10):
            watched.look()
            pause(QUICK.interval_s)
        assert names(watched.views[-1]) == [], "no broker lists it"


def test_a_coordinator_that_owes_an_answer_is_named_before_it_counts_as_silent() -> None:
    patient = ObserveSettings(interval_s=0.2, silence_s=20.0)
    with cluster() as brokers, observing([brokers[0].address], patient) as observer:
        brokers[1].committed = brokers[1].high_watermark
        watched = Watched(observer)
        watched.until(lambda v: names(v) == ["billing"] and not error(v), "the group is seen")
        brokers[1].hang()
        view = watched.until(lambda v: bool(error(v)), "it is late", 5.0)
        assert error(view) == "coordinator 1 has not answered yet"
        (unread,) = [f for f in json.loads(document(view))["findings"] if f["kind"] == "groups_unread"]
        assert unread["cause"]["text"] == error(view)
        age_ms = int(view.groups.verdict_age_ms[0])
        assert unread["since_ms"] == view.snapshot.observation.ended_ms - age_ms
        assert unread["since_ms"] == int(view.snapshot.offsets.received_ms[0])
        assert broker_state(view, 1) == "up"
        brokers[1].go_on()
        watched.until(lambda v: not error(v), "it answers again")


def test_a_hung_coordinator_ages_only_its_groups_until_another_one_has_them() -> None:
    with cluster() as brokers, observing([brokers[0].address], QUICK) as observer:
        watched = Watched(observer)
        seen = watched.until(lambda v: names(v) == ["billing"] and not error(v), "the group is seen").snapshot
        brokers[1].hang()
        silent = FailureKind.COORDINATOR_SILENT
        hung = watched.until(lambda v: v.snapshot.groups.error.tolist() == [silent], "it is silent").snapshot
        assert hung.groups.state.tolist() == seen.groups.state.tolist()
        assert hung.offsets.committed.tolist() == seen.offsets.committed.tolist() == [40]
        (read_ms,) = hung.partitions.high_watermark_ms[hung.partitions.topic == "invoice"]
        assert hung.groups.received_ms[0] < hung.observation.began_ms <= read_ms, "others are read as ever"
        brokers[2].groups = ("billing",)
        for broker in brokers:
            broker.coordinator = 2
        view = watched.until(lambda v: not error(v), "another coordinator answers for it")
        assert view.snapshot.groups.coordinator.tolist() == [2]
        brokers[1].go_on()


def test_a_coordinator_that_hangs_from_the_start_leaves_groups_and_what_they_read_unknown() -> None:
    with cluster() as brokers:
        brokers[1].hang()
        with observing([brokers[0].address], QUICK) as observer:
            watched = Watched(observer)
            for view in (watched.look(), watched.until(lambda v: broker_state(v, 1) == "silent", "silent")):
                told = json.loads(document(view))
                assert told["groups"] is None
                assert told["out_records_per_second"] is None
                assert {broker["out_records_per_second"] for broker in told["brokers"]} == {None}
                parts = [(failure["part"], failure["broker_id"]) for failure in told["failures"]]
                assert (Part.GROUPS, 1) in parts
                (said,) = re.findall(r"^  groups: (.*)$", block(view, "kview"), re.MULTILINE)
                assert said in ("broker 1 has not answered yet", SILENT)
                why = f"incomplete: {said}" if said == SILENT else "waiting for broker 1"
                assert title(view).startswith(f"GROUPS {why}")
            assert said == SILENT
            brokers[1].go_on()
            back = watched.until(lambda v: names(v) == ["billing"], "it answers")
            assert "groups: " not in block(back, "kview")
            assert title(back) == "GROUPS worst first"
            assert json.loads(document(back))["failures"] == []


def test_a_coordinator_that_is_loading_from_the_start_leaves_groups_unknown() -> None:
    """It lists no group and no error, as a broker does that has just been elected."""
    with cluster() as brokers:
        brokers[1].groups, brokers[1].group_error = (), 14
        with observing([brokers[0].address], QUICK) as observer:
            watched, said = Watched(observer), "  groups: broker 1 is still loading its groups"
            watched.until(lambda v: said in block(v, "kview").splitlines(), "it says that it is loading")
            watched.look()
            assert said in block(watched.views[-1], "kview").splitlines()
            for view in watched.views:
                told = json.loads(document(view))
                assert told["groups"] is None
                assert told["out_records_per_second"] is None
            brokers[1].groups, brokers[1].group_error = ("billing",), 0
            back = watched.until(lambda v: names(v) == ["billing"], "it has loaded")
            assert title(back) == "GROUPS worst first"


def test_groups_without_a_coordinator_are_unknown() -> None:
    with cluster(coordinator=-1) as brokers:
        brokers[1].groups = ()
        with observing([brokers[0].address], QUICK) as observer:
            view = Watched(observer).look()
            assert json.loads(document(view))["groups"] is None
            said = "  groups: a partition of __consumer_offsets has no leader"
            assert said in block(view, "kview").splitlines()


def of_leaders(*leaders: int) -> Layout:
    """A layout in which these brokers lead the partitions of `__consumer_offsets`."""
    partitions: dict[int, tuple[int, tuple[int, ...]]]
    partitions = {number: (leader, (leader,)) for number, leader in enumerate(leaders)}
    return layout(topics({"__consumer_offsets": ("id", partitions)}), None)


def test_groups_of_a_partition_are_heard_from_its_leader_once_that_has_loaded_it() -> None:
    heard, at_first, moved = Heard(), of_leaders(1, 2, 1), of_leaders(1, 1, 1)
    heard.see(at_first)
    heard.listed(1, heard.unheard(at_first)[1], {0: 0, 2: 0})
    assert heard.unheard(at_first) == {2: [1]}, "broker 2 hangs"
    heard.see(moved)
    assert heard.unheard(moved) == {1: [1]}, "broker 1 has not listed the groups of partition 1 yet"
    for error in (16, 14):
        heard.listed(1, [1], {1: error})
        assert heard.unheard(moved) == {1: [1]}
    heard.listed(1, [1], {1: 0})
    assert heard.unheard(moved) == {}
    assert heard.unheard(of_leaders(2, 2, 2)) == {}, "once known, they stay known"


def test_a_topic_of_offsets_that_is_created_meanwhile_hides_no_groups() -> None:
    heard = Heard()
    heard.see(layout(topics({}), None))
    heard.see(of_leaders(1, 2))
    assert heard.unheard(of_leaders(1, 2)) == {}


@pytest.mark.parametrize("partitions", [1, 3, 50])
def test_there_is_a_name_in_every_partition(partitions: int) -> None:
    for partition in range(partitions):
        assert partition_of(name_in(partition, partitions), partitions) == partition


def test_a_broker_that_coordinates_nothing_may_hang_without_making_groups_unknown() -> None:
    with cluster() as brokers:
        brokers[2].hang()
        with observing([brokers[0].address], QUICK) as observer:
            watched = Watched(observer)
            view = watched.until(lambda v: broker_state(v, 2) == "silent", "broker 2 hangs")
            assert names(view) == ["billing"]
            kinds = {(f.part, f.kind) for f in view.snapshot.observation.failures}
            assert kinds == {(Part.BROKER, FailureKind.SILENT)}
        brokers[2].go_on()


GROUPS = [f"group-{number}" for number in range(20)]
PARTITIONS = 300
COMMITS = 500
"""A new coordinator has to load 150,000 records, which takes it about a second."""


def commit(kafka: RealKafka, topic: str, groups: list[str]) -> None:
    """Commit offsets for each group, which makes it exist, and very often for the first one."""
    for group in groups:
        consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": group})
        with closing(consumer):
            for number in range(COMMITS if group == groups[0] else 1):
                offsets = [TopicPartition(topic, partition, number) for partition in range(PARTITIONS)]
                wait_until(partial(accepted, consumer, offsets), f"{group} has committed")


def accepted(consumer: Consumer, offsets: list[TopicPartition]) -> bool:
    """Commit these. A coordinator that has just been elected, or is busy, may refuse for the moment."""
    try:
        consumer.commit(offsets=offsets, asynchronous=False)
    except KafkaException:
        return False
    return True


@pytest.mark.slow  # a cluster's failover takes most of it; fake brokers guard the same
def test_no_group_vanishes_while_real_coordinators_move(real_kafka: RealKafka) -> None:
    real_kafka.create_topic("committed", [[broker % 3] for broker in range(PARTITIONS)])
    commit(real_kafka, "committed", GROUPS)
    with observing([real_kafka.address(broker) for broker in real_kafka.broker_ids], EACH) as observer:
        watched = Watched(observer)
        watched.until(lambda v: set(GROUPS) <= set(names(v)), "all groups are seen")
        watched.views.clear()
        for move in (real_kafka.stop, real_kafka.kill):
            coordinator = real_kafka.partitions("__consumer_offsets")[0].leader
            move(coordinator)

            def moved(view: View, was: int = coordinator) -> bool:
                table = view.snapshot.groups
                return was not in table.coordinator.tolist() and not any(table.error)

            watched.until(moved, "another coordinator answers for all of them")
            real_kafka.heal()
            for _ in range(10):
                watched.look()
        missing = [set(GROUPS) - set(names(view)) for view in watched.views]
        assert [one for one in missing if one] == []
    # Other tests kill brokers of this cluster, and partitions with one replica get no other leader.
    admin = AdminClient({"bootstrap.servers": real_kafka.bootstrap_servers})
    admin.delete_topics(["committed"])["committed"].result(30)


def test_groups_that_are_listed_late_in_an_observation_are_not_known_until_their_commits_are() -> None:
    """Then 0 groups, or a group that has committed nothing, would be false."""
    with cluster() as brokers:
        leader, coordinator, _ = brokers
        listing = coordinator.delay[LIST_GROUPS] = threading.Event()

        def list_groups(answer: Any) -> None:
            listing.set()
            wait_until(lambda: LIST_GROUPS in coordinator.answered, "the groups are listed")

        leader.change[LIST_OFFSETS] = list_groups
        with observing([brokers[0].address], EACH) as observer:
            watched = Watched(observer)
            watched.until(lambda v: v.snapshot.offsets.committed.tolist() == [40], "the commit is seen")
            for view in watched.views[:-1]:
                unheard = [f for f in view.snapshot.observation.failures if f.part is Part.GROUPS]
                said = error(view) if names(view) else " ".join(failures.of(f.kind) for f in unheard)
                assert "has not answered yet" in said, (names(view), said)


def test_a_group_of_which_only_the_name_is_known_has_no_figures() -> None:
    """Its coordinator has listed it, and then answers neither about its members nor about its commits."""
    with cluster() as brokers:
        answering = threading.Event()
        for key in (OFFSET_FETCH, DESCRIBE_GROUPS):
            brokers[1].delay[key] = answering
        with observing([brokers[0].address], QUICK) as observer:
            watched = Watched(observer)
            view = watched.until(lambda v: names(v) == ["billing"], "the group is listed")
            (told,) = json.loads(document(view))["groups"]
            unknown = ("members", "members_active", "lag_records", "read_records_per_second")
            assert [told[key] for key in unknown] == [None] * 4
            assert json.loads(document(view))["out_records_per_second"] is None
            said = " ".join(block(view, "kview").split())
            assert "nothing committed" not in said and "-2,147" not in said
            (row,) = re.findall(r"billing .*?unknown: lag unknown", said)
            assert re.sub(r"^billing \S+ ", "", row) == "–/– – – – – unknown: lag unknown"
            answering.set()
