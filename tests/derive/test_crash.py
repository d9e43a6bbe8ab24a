"""A broker's crash second by second: what the headline, the events and the figures say."""

import numpy as np
import pytest
from msgspec.structs import replace

from kview.derive.view import PartitionStatus, Reason, Verdict, View
from kview.model.events import EventKind, Severity
from kview.model.findings import Finding, FindingKind
from kview.model.units import UNKNOWN
from tests.derive.cluster_findings import of_cluster
from tests.worlds import START_MS, crash_script, default_world, views

HEALTHY_S, SILENT_S = 30, 20
FIRST_SILENT, FENCED, BACK = HEALTHY_S, HEALTHY_S + 9, HEALTHY_S + SILENT_S


@pytest.fixture(scope="module")
def seconds() -> list[View]:
    return list(views(crash_script(4, healthy_s=HEALTHY_S, silent_s=SILENT_S, after_s=5)))


def row(view: View, topic: str, partition: int) -> int:
    table = view.snapshot.partitions
    return int(np.flatnonzero((table.topic == topic) & (table.partition == partition))[0])


def group(view: View, name: str) -> int:
    names: list[str] = view.snapshot.groups.group.tolist()
    return names.index(name)


def kinds(view: View) -> list[str]:
    return [event.kind for event in view.new_events]


def test_while_all_is_well_there_is_one_calm_finding_and_no_event(seconds: list[View]) -> None:
    for view in seconds[:FIRST_SILENT]:
        assert of_cluster(view) == (Finding(FindingKind.CLUSTER_WELL, Severity.CALM, count=6),)
        assert view.new_events == ()
    assert (view.headline.topics, view.headline.partitions) == (3, 20)


def test_the_first_silent_second_names_what_the_broker_leads_and_what_is_frozen(seconds: list[View]) -> None:
    view = seconds[FIRST_SILENT]
    assert view.headline.severity is Severity.RISK
    now_ms = view.snapshot.observation.ended_ms
    assert of_cluster(view) == (
        Finding(
            FindingKind.BROKERS_SILENT,
            Severity.RISK,
            brokers=(4,),
            partitions=4,
            internal_partitions=8,
            since_ms=now_ms - 100,
        ),
        Finding(FindingKind.WATERMARK_FROZEN, Severity.RISK, partitions=6, internal_partitions=25, count=4),
        Finding(FindingKind.FENCING_DUE, Severity.RISK, brokers=(4,), due_ms=now_ms + 8_800),
    )
    assert kinds(view) == [EventKind.BROKER_SILENT, EventKind.WATERMARK_FROZEN]
    assert view.new_events[0].at_ms == START_MS + FIRST_SILENT * 1000
    assert view.new_events[0].brokers == (4,)
    frozen = view.new_events[1]
    assert (frozen.partition_count, frozen.internal_count) == (10, 25)
    assert set(frozen.partitions[:10]) == {
        ("audit-log", 3),
        ("invoice", 1),
        ("invoice", 2),
        ("invoice", 3),
        ("invoice", 7),
        ("invoice", 8),
        ("invoice", 9),
        ("payment", 1),
        ("payment", 2),
        ("payment", 3),
    }


@pytest.mark.parametrize("second", range(1, 9))
def test_the_countdown_goes_on_and_nothing_else_happens(seconds: list[View], second: int) -> None:
    view = seconds[FIRST_SILENT + second]
    first = of_cluster(seconds[FIRST_SILENT])
    assert of_cluster(view) == first, "only the clock goes on"
    assert view.new_events == ()


def test_a_countdown_that_has_run_out_says_so() -> None:
    script = crash_script(4, healthy_s=3, silent_s=9)
    late = list(script)[:12]
    # The controller is late: its checks come every session/8.
    last = late[-1]
    later = replace(last, observation=replace(last.observation, ended_ms=last.observation.ended_ms + 900))
    *_, view = views([*late[:-1], later])
    due = of_cluster(view)[-1]
    assert due.kind is FindingKind.FENCING_DUE
    assert due.due_ms < view.snapshot.observation.ended_ms


def test_silent_is_not_leaderless(seconds: list[View]) -> None:
    view = seconds[FIRST_SILENT + 4]
    figures, table = view.partitions, view.snapshot.partitions
    led = np.flatnonzero((table.leader == 4) & ~table.internal)
    assert [(table.topic[r], int(table.partition[r])) for r in led] == [
        ("audit-log", 3),
        ("invoice", 3),
        ("invoice", 9),
        ("payment", 3),
    ]
    assert set(figures.status[led]) == {PartitionStatus.SILENT_LEADER}
    assert view.headline.offline == 0
    assert np.isnan(figures.in_rate[led]).all()
    assert (figures.uncommitted[led] == UNKNOWN).all()
    assert (figures.leader_silent_since_ms[led] == START_MS + FIRST_SILENT * 1000).all()


def test_worst_first_is_silent_leaders_then_frozen_ones(seconds: list[View]) -> None:
    view = seconds[FIRST_SILENT + 4]
    assert [view.partitions.status[r] for r in view.worst_partitions[:11]] == (
        [PartitionStatus.SILENT_LEADER] * 4 + [PartitionStatus.FROZEN] * 6 + [PartitionStatus.OK]
    )
    assert len(view.worst_partitions) == 20


def test_on_a_frozen_partition_acks_1_goes_on_and_acks_all_waits(seconds: list[View]) -> None:
    before, view = seconds[FIRST_SILENT + 3], seconds[FIRST_SILENT + 4]
    invoice, payment = row(view, "invoice", 2), row(view, "payment", 2)
    for r in (invoice, payment):
        assert view.partitions.status[r] is PartitionStatus.FROZEN
        assert view.partitions.frozen_since_ms[r] == START_MS + FIRST_SILENT * 1000
        assert view.snapshot.partitions.high_watermark[r] == before.snapshot.partitions.high_watermark[r]
    assert view.partitions.in_rate[invoice] == pytest.approx(440, rel=0.02)
    assert view.partitions.uncommitted[invoice] == pytest.approx(5 * 440, rel=0.02)
    assert view.partitions.in_rate[payment] == 0


def test_a_silent_brokers_rates_are_unknown_and_the_others_go_on(seconds: list[View]) -> None:
    view = seconds[FIRST_SILENT + 4]
    assert np.isnan(view.brokers.in_rate[4]) and np.isnan(view.brokers.out_rate[4])
    assert np.isfinite(view.brokers.in_rate[[0, 1, 2, 3, 5]]).all()
    assert view.brokers.leads[4] == 4 and view.brokers.leads_internal[4] == 8
    assert view.brokers.severity[4] is Severity.RISK
    assert view.brokers.silent_since_ms[4] == START_MS + FIRST_SILENT * 1000


def test_readers_of_frozen_partitions_are_blocked_with_lag_0_and_growing_time(seconds: list[View]) -> None:
    at_2, at_8 = seconds[FIRST_SILENT + 2], seconds[FIRST_SILENT + 8]
    billing = group(at_8, "billing")
    assert at_8.groups.verdict[billing] is Verdict.BLOCKED
    assert at_8.groups.severity[billing] is Severity.RISK
    assert at_8.groups.reason[billing] is Reason.PARTITIONS
    assert at_8.groups.reason_count[billing] == 6
    offsets = at_8.snapshot.offsets
    frozen = np.flatnonzero((offsets.group == "billing") & (offsets.partition == 2))[0]
    assert at_8.offsets.lag[frozen] == 0
    assert at_8.offsets.reason[frozen] is Reason.WATERMARK_FROZEN
    grown = at_8.offsets.behind_ms[frozen] - at_2.offsets.behind_ms[frozen]
    assert grown == pytest.approx(6000, abs=50)
    assert at_8.groups.behind_ms[billing] == pytest.approx(9000, abs=200)
    assert at_8.groups.behind_trend[billing] == 1


def test_who_has_read_all_that_was_seen_of_a_silent_leaders_log_may_be_behind_or_not() -> None:
    world = default_world()
    world.group("fraud-check").coordinator = 1
    *_, view = views(crash_script(4, healthy_s=5, silent_s=4, after_s=0, world=world))
    offsets = view.snapshot.offsets
    (led,) = np.flatnonzero((offsets.group == "fraud-check") & (offsets.partition == 3))
    assert view.offsets.lag[led] == 0
    assert view.offsets.behind_ms[led] == UNKNOWN
    assert view.offsets.reason[led] is Reason.LEADER_SILENT


def test_a_group_whose_coordinator_is_silent_keeps_its_figures_and_shows_their_age(
    seconds: list[View],
) -> None:
    last, view = seconds[FIRST_SILENT - 1], seconds[FIRST_SILENT + 6]
    at = group(view, "fraud-check")
    assert view.groups.age_ms[at] == 80 + 7000
    assert view.groups.lag[at] == last.groups.lag[at]
    assert view.groups.behind_ms[at] == last.groups.behind_ms[at]
    assert view.groups.verdict[at] is Verdict.OK


def test_fencing_is_one_step(seconds: list[View]) -> None:
    view = seconds[FENCED]
    assert kinds(view) == [
        EventKind.BROKER_FENCED,
        EventKind.LEADER_MOVED,
        EventKind.LEADER_LOST,
        EventKind.ISR_SHRANK,
        EventKind.RECORDS_LOST,
        EventKind.WATERMARK_MOVES,
    ]
    facts = [(event.brokers, event.partition_count, event.internal_count) for event in view.new_events]
    assert facts[1:4] == [((2,), 3, 8), ((), 1, 0), ((4,), 9, 25)]
    assert facts[5] == ((), 9, 25), "all that froze, but for the one that has no leader"
    K, S = FindingKind, Severity
    assert of_cluster(view) == (
        Finding(K.NO_LEADER, S.RISK, topics=("audit-log",), partitions=1),
        Finding(K.BROKERS_FENCED, S.WARN, brokers=(4,)),
        Finding(K.AT_MIN_ISR, S.WARN, topics=("payment",), partitions=3),
        Finding(
            K.UNDER_REPLICATED,
            S.WARN,
            topics=("invoice", "__consumer_offsets"),
            partitions=6,
            internal_partitions=25,
        ),
    )
    assert view.partitions.status[row(view, "audit-log", 3)] is PartitionStatus.NO_LEADER
    assert view.partitions.status[row(view, "payment", 3)] is PartitionStatus.AT_MIN_ISR
    assert view.brokers.silent_since_ms[4] != UNKNOWN
    assert view.brokers.fencing_due_ms[4] == UNKNOWN
    assert view.brokers.leads[4] == 0 and np.isnan(view.brokers.in_rate[4])  # unknown, not zero
    assert (view.headline.offline, view.headline.under_replicated, view.headline.at_min_isr) == (1, 9, 3)


def test_what_the_old_leader_had_alone_is_gone_as_a_lower_bound(seconds: list[View]) -> None:
    (event,) = [event for event in seconds[FENCED].new_events if event.kind is EventKind.RECORDS_LOST]
    assert event.severity is Severity.RISK
    assert event.records == 12
    assert event.partitions == (("invoice", 3), ("invoice", 9), ("payment", 3))
    last, view = seconds[FIRST_SILENT - 1], seconds[FENCED]
    old_end = last.snapshot.partitions.log_end[row(last, "invoice", 3)]
    new_start = view.partitions.replica_end[row(view, "invoice", 3), 2]
    assert old_end > last.partitions.replica_end[row(last, "invoice", 3), 2]
    assert (
        new_start > old_end
    )  # by then the new leader has been written to: its first reading would hide the loss


def test_after_it_nobody_is_blocked_and_rates_have_no_spike(seconds: list[View]) -> None:
    for view in seconds[FENCED : FENCED + 10]:
        known = view.partitions.in_rate[np.isfinite(view.partitions.in_rate)]
        assert (known >= 0).all() and (known <= 500).all()
    view = seconds[FENCED + 2]
    assert view.groups.verdict[group(view, "billing")] is Verdict.OK


def test_coming_back_is_seen_twice_the_broker_then_its_isrs(seconds: list[View]) -> None:
    assert kinds(seconds[BACK]) == [EventKind.BROKER_BACK, EventKind.LEADER_RETURNED]
    assert {(e.brokers, e.partition_count) for e in seconds[BACK].new_events} == {((4,), 0), ((4,), 1)}
    joined = seconds[BACK + 1].new_events[0]
    assert (joined.kind, joined.brokers) == (EventKind.ISR_GREW, (4,))
    assert (joined.partition_count, joined.internal_count) == (9, 25)
    view = seconds[BACK + 2]
    assert of_cluster(view) == (Finding(FindingKind.CLUSTER_WELL, Severity.CALM, count=6),)
    away = Finding(FindingKind.NOT_PREFERRED, Severity.CALM, partitions=3, internal_partitions=8)
    assert away in view.headline.findings
    assert not view.partitions.preferred[row(view, "invoice", 3)]
    assert view.partitions.status[row(view, "invoice", 3)] is PartitionStatus.NOT_PREFERRED
    assert [event.kind for event in view.events][:2] == [EventKind.BROKER_SILENT, EventKind.WATERMARK_FROZEN]
