"""Partitions, brokers and topics: statuses, silence, replica lag, counts; from small changes to healthy
snapshots."""

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kview.derive.align import Alignment
from kview.derive.fold import State, step
from kview.derive.partitions.placement import same_lists
from kview.derive.partitions.watermarks import Watermarks, follow
from kview.derive.statuses import STATUSES
from kview.derive.view import PartitionStatus, RackSafety, View
from kview.model.events import Severity
from kview.model.failures import Cause, FailureKind, Part
from kview.model.findings import Finding, FindingKind
from kview.model.snapshot import Failure, Reassignments, Snapshot
from kview.model.states import BrokerState, QuorumRole
from kview.model.units import NO_BROKER, UNKNOWN, UNKNOWN_ID
from kview.plain.documents import document
from kview.school.camera.columns import matrix
from tests.derive.cluster_findings import of_cluster
from tests.worlds import crash_script, default_world, views
from tests.worlds.tables import table

WELL = Finding(FindingKind.CLUSTER_WELL, Severity.CALM, count=6)


def changed(snapshot: Snapshot, part: str, **columns: Any) -> Snapshot:
    """The snapshot with other columns in one of its tables."""
    return replace(snapshot, **{part: replace(getattr(snapshot, part), **columns)})


def with_row(column: Any, row: int, value: Any) -> Any:
    out = column.copy()
    out[row] = value
    return out


def one(snapshot: Snapshot) -> View:
    return step(State(), snapshot)[1]


def invoice_0(snapshot: Snapshot) -> int:
    return int(np.flatnonzero(snapshot.partitions.topic == "invoice")[0])


@pytest.mark.parametrize(
    ("columns", "status", "severity"),
    [
        ({}, PartitionStatus.OK, Severity.CALM),
        ({"leader": 3}, PartitionStatus.NOT_PREFERRED, Severity.CALM),
        ({"isr": [0, 3, NO_BROKER]}, PartitionStatus.UNDER_REPLICATED, Severity.WARN),
        ({"isr": [0, NO_BROKER, NO_BROKER]}, PartitionStatus.AT_MIN_ISR, Severity.WARN),
        ({"isr": [0, 3, NO_BROKER], "min_isr": 3}, PartitionStatus.UNDER_MIN_ISR, Severity.RISK),
        ({"isr": [0, 3, NO_BROKER], "min_isr": UNKNOWN_ID}, PartitionStatus.UNDER_REPLICATED, Severity.WARN),
        ({"min_isr": 3}, PartitionStatus.OK, Severity.CALM),
        ({"min_isr": 9}, PartitionStatus.OK, Severity.CALM),
        ({"leader": NO_BROKER, "isr": [3, NO_BROKER, NO_BROKER]}, PartitionStatus.NO_LEADER, Severity.RISK),
        ({"leader": UNKNOWN_ID}, PartitionStatus.UNKNOWN, Severity.CALM),
    ],
)
def test_a_partitions_worst_status(columns: dict[str, Any], status: str, severity: str) -> None:
    snapshot = default_world().tick()
    row = invoice_0(snapshot)
    made = {name: with_row(getattr(snapshot.partitions, name), row, value) for name, value in columns.items()}
    view = one(changed(snapshot, "partitions", **made))
    assert (view.partitions.status[row], view.partitions.severity[row]) == (status, severity)
    others = np.delete(view.partitions.status, row)
    assert set(others) == {PartitionStatus.OK}


def test_a_reassignment_is_shown() -> None:
    snapshot = default_world().tick()
    moving = table(Reassignments, [{"topic": "invoice", "partition": 0, "adding": [5], "removing": [1]}])
    view = one(replace(snapshot, reassignments=moving))
    assert view.partitions.status[invoice_0(snapshot)] is PartitionStatus.REASSIGNING


def test_replicas_on_one_rack_are_not_rack_safe() -> None:
    snapshot = default_world().tick()
    row = invoice_0(snapshot)
    one_rack = with_row(snapshot.partitions.replicas, row, [0, 1, 2])
    view = one(changed(snapshot, "partitions", replicas=one_rack))
    assert np.flatnonzero(view.partitions.rack_safe == RackSafety.NO).tolist() == [row]
    safe = dict(zip(view.topics.topic, view.topics.rack_safe, strict=True))
    assert (safe["invoice"], safe["payment"]) == (RackSafety.NO, RackSafety.YES)
    assert view.topics.not_rack_safe[view.topics.topic == "invoice"].tolist() == [1]


def test_one_replica_one_rack_and_unknown_racks_are_neither_safe_nor_unsafe() -> None:
    snapshot = default_world().tick()
    safe = dict(zip(one(snapshot).topics.topic, one(snapshot).topics.rack_safe, strict=True))
    assert safe["audit-log"] == RackSafety.CANNOT_BE, "one replica"
    for racks in ([""] * 6, ["R1"] * 6):
        view = one(changed(snapshot, "brokers", rack=np.array(racks, object)))
        assert set(view.topics.rack_safe) == {RackSafety.CANNOT_BE}, racks
    some = changed(snapshot, "brokers", rack=np.array(["R1", "", "R1", "R2", "R2", "R2"], object))
    view, row = one(some), invoice_0(snapshot)
    assert view.partitions.rack_safe[row] == RackSafety.YES, "0 and 3 are on two racks, wherever 1 is"
    two = changed(some, "partitions", replicas=with_row(some.partitions.replicas, row, [0, 1, NO_BROKER]))
    assert one(two).partitions.rack_safe[row] == RackSafety.CANNOT_BE


def test_counts_are_of_the_users_topics_with_internal_ones_apart() -> None:
    view = one(default_world().tick())
    assert view.brokers.leads.tolist() == [4, 4, 2, 4, 4, 2]
    assert view.brokers.leads_internal.sum() == 50
    assert view.brokers.replicas.sum() == 10 * 3 + 6 * 3 + 4
    assert view.brokers.replicas_internal.sum() == 150
    assert view.topics.topic.tolist() == ["__consumer_offsets", "audit-log", "invoice", "payment"]
    assert view.topics.partitions.tolist() == [50, 4, 10, 6]
    assert view.topics.replication.tolist() == [3, 1, 3, 3]
    assert not view.snapshot.partitions.internal[view.worst_partitions].any()
    assert view.throughput.topics == ("audit-log", "invoice", "payment")


def test_the_brokers_rates_add_up_to_the_topics() -> None:
    *_, view = views(map(lambda _: WORLD.tick(), range(40)))
    user = ~view.topics.internal
    assert view.brokers.in_rate.sum() == pytest.approx(view.topics.in_rate[user].sum())
    assert view.throughput.total_in == pytest.approx(4400 + 2400 + 1000, rel=0.01)
    assert view.throughput.total_out == pytest.approx(4400 + 6800 + 1000, rel=0.02)
    together = [sum(rates) for rates in zip(*np.array(view.topics.in_series, object)[user], strict=True)]
    assert view.throughput.in_series == pytest.approx(together, nan_ok=True)


def test_what_groups_read_is_unknown_until_a_rate_is_known_and_0_without_groups() -> None:
    world = default_world()
    # Some brokers lead nothing that this group reads: their 0 says nothing about the whole.
    world.groups = [world.group("fraud-check")]
    rates = [view.throughput.total_out for view in views(world.tick() for _ in range(12))]
    assert math.isnan(rates[0]) and rates[-1] > 0
    world.groups = []
    *_, view = views([world.tick()])
    assert view.throughput.total_out == 0
    for broker in world.nodes:
        world.crash(broker)
    *_, view = views(world.tick() for _ in range(3))
    assert math.isnan(view.throughput.total_out), "no broker answers, so there may be groups"


WORLD = default_world()


def follower_at(lag_records: int, ms_before: int) -> int:
    """Replica lag of invoice-0's first follower, read `ms_before` the leader and that far behind its end
    then."""
    world = default_world()
    state, _ = step(State(), world.tick())
    snapshot = world.tick()
    row = invoice_0(snapshot)
    replicas = snapshot.replicas
    cell = int(np.flatnonzero((replicas.row == row) & (replicas.broker == 3))[0])
    end, read_ms = int(snapshot.partitions.log_end[row]), int(snapshot.partitions.log_end_ms[row])
    then = end - 440 * ms_before // 1000 - lag_records
    snapshot = changed(
        snapshot,
        "replicas",
        log_end=with_row(replicas.log_end, cell, then),
        log_end_ms=with_row(replicas.log_end_ms, cell, read_ms - ms_before),
    )
    return int(step(state, snapshot)[1].partitions.replica_lag[row, 1])


def test_replica_lag_is_what_was_behind_at_the_moment_of_the_reading() -> None:
    assert follower_at(0, 20) == 0
    assert follower_at(5, 20) == 0  # below rate × skew: nobody can tell
    assert follower_at(0, 900) == 0
    assert follower_at(5_000, 20) == pytest.approx(5_000, abs=1)
    assert follower_at(5_000, 900) == pytest.approx(5_000, abs=1)
    assert follower_at(-5_000, 20) == pytest.approx(-5_000, abs=1)  # it will truncate
    assert follower_at(0, 60_000) == UNKNOWN


@pytest.mark.parametrize(("per_second", "ms_before"), [(10, 260), (10, 160), (30, 25), (440, 300)])
def test_a_follower_with_the_leaders_end_is_never_ahead_of_it(per_second: int, ms_before: int) -> None:
    """Traffic comes in bursts, so the leader's end at an earlier moment is a guess from the mean rate."""
    world = default_world()
    world.log("invoice", 0).rate = float(per_second)
    state, _ = step(State(), world.tick())
    snapshot = world.tick()
    row, replicas = invoice_0(snapshot), snapshot.replicas
    cell = int(np.flatnonzero((replicas.row == row) & (replicas.broker == 3))[0])
    same_end, read_ms = snapshot.partitions.log_end[row], int(snapshot.partitions.log_end_ms[row])
    snapshot = changed(
        snapshot,
        "replicas",
        log_end=with_row(replicas.log_end, cell, same_end),
        log_end_ms=with_row(replicas.log_end_ms, cell, read_ms - ms_before),
    )
    made = json.loads(document(step(state, snapshot)[1]))
    (partition,) = [p for p in made["partitions"] if (p["topic"], p["partition"]) == ("invoice", 0)]
    assert [replica["lag_records"] for replica in partition["replicas"]] == [0, 0, 0]


def test_a_silent_broker_that_the_quorum_still_hears_has_no_countdown() -> None:
    world = default_world()
    snapshot = world.tick()
    since = snapshot.observation.began_ms - 5_000
    state = with_row(snapshot.brokers.state, 4, BrokerState.SILENT)
    silent_now = changed(
        snapshot,
        "brokers",
        state=state,
        since_ms=with_row(snapshot.brokers.since_ms, 4, since),
        answers=with_row(snapshot.brokers.answers, 4, False),
    )
    view = one(silent_now)
    assert view.brokers.unreached.tolist() == [False] * 4 + [True, False]
    assert view.brokers.fencing_due_ms[4] == UNKNOWN
    heard = Finding(
        FindingKind.QUORUM_HEARS_BROKERS,
        Severity.WARN,
        brokers=(4,),
        partitions=4,
        internal_partitions=8,
        since_ms=since,
    )
    assert of_cluster(view) == (heard,), "and nothing about silence or frozen watermarks"
    assert view.brokers.severity[4] is Severity.WARN
    lost_to_it_too = changed(
        silent_now,
        "brokers",
        last_fetch_ms=with_row(snapshot.brokers.last_fetch_ms, 4, since - 300),
    )
    quorum = lost_to_it_too.quorum
    mine = quorum.node == 4
    lost_to_it_too = changed(
        lost_to_it_too, "quorum", last_fetch_ms=np.where(mine, since - 300, quorum.last_fetch_ms)
    )
    assert one(lost_to_it_too).brokers.fencing_due_ms[4] == since - 300 + 9000
    before = replace(lost_to_it_too.observation, quorum_received_ms=since - 100)
    reported_earlier = replace(lost_to_it_too, observation=before)
    assert one(reported_earlier).brokers.fencing_due_ms[4] == since + 9000, "it may have fetched after that"


def test_the_countdown_starts_at_the_first_silence_where_the_quorum_says_nothing() -> None:
    world = default_world()
    snapshot = world.tick()
    since = snapshot.observation.began_ms - 3_000
    silent_now = changed(
        snapshot,
        "brokers",
        state=with_row(snapshot.brokers.state, 4, BrokerState.SILENT),
        since_ms=with_row(snapshot.brokers.since_ms, 4, since),
        last_fetch_ms=np.full(6, UNKNOWN, np.int64),
    )
    assert one(silent_now).brokers.fencing_due_ms.tolist() == [UNKNOWN] * 4 + [since + 9000, UNKNOWN]
    unknown_timeout = changed(silent_now, "brokers", session_timeout_ms=np.full(6, UNKNOWN, np.int64))
    assert (one(unknown_timeout).brokers.fencing_due_ms == UNKNOWN).all()


def test_a_watermark_that_moves_under_a_silent_follower_is_not_frozen() -> None:
    """Only kview cannot reach broker 4: its followers go on fetching."""
    world = default_world()
    state = State()
    for second in range(6):
        snapshot = world.tick()
        if second == 2:
            first_ms = snapshot.observation.began_ms
        if second >= 2:
            snapshot = changed(
                snapshot,
                "brokers",
                state=with_row(snapshot.brokers.state, 4, BrokerState.SILENT),
                since_ms=with_row(snapshot.brokers.since_ms, 4, first_ms),
                answers=with_row(snapshot.brokers.answers, 4, False),
            )
        state, view = step(state, snapshot)
    mine = ~snapshot.partitions.internal
    assert PartitionStatus.FROZEN not in set(view.partitions.status[mine])
    led = mine & (snapshot.partitions.leader == 4)
    assert set(view.partitions.status[led]) == {PartitionStatus.UNKNOWN}
    assert set(view.partitions.status[mine & ~led]) == {PartitionStatus.OK}


def test_how_a_watermark_moved_is_forgotten_after_a_minute() -> None:
    table = default_world().tick().partitions
    now_ms = int(table.high_watermark_ms[0]) + 60_000
    then = table.high_watermark_ms
    marks = Watermarks(table.high_watermark, then, np.full(len(table), UNKNOWN))
    kept = follow(marks, then, Alignment(None, len(table)), table, now_ms - 1)
    assert (kept.before_ms == then).all()
    gone = follow(marks, then, Alignment(None, len(table)), table, now_ms)
    assert (gone.before_ms == UNKNOWN).all()


def test_records_that_wait_freeze_a_watermark_without_any_silence() -> None:
    """Below min.insync.replicas the watermark stands still while acks=1 producers go on."""
    world = default_world()
    log = world.log("invoice", 0)
    state = State()
    statuses = []
    for second in range(6):
        if second == 2:
            log.isr, log.min_isr, log.stalled = [0], 2, frozenset({1, 3})
        state, view = step(state, world.tick())
        statuses.append(view.partitions.status[invoice_0(view.snapshot)])
    assert statuses[:3] == [PartitionStatus.OK] * 2 + [PartitionStatus.UNDER_MIN_ISR]
    assert statuses[3:] == [PartitionStatus.FROZEN] * 3


def test_a_record_that_was_just_written_freezes_nothing() -> None:
    world = default_world()
    world.groups = []
    for log in world.logs:
        log.rate = 0.3 + log.partition / 50
    for view in views(world.tick() for _ in range(60)):
        assert view.headline.severity is Severity.CALM


def test_headlines_name_a_lost_rack_and_the_quorum() -> None:
    world = default_world()
    state, _ = step(State(), world.tick())
    for broker in (3, 4, 5):
        world.crash(broker)
    _, view = step(state, world.tick())
    worst = view.headline.findings[0]
    assert (worst.kind, worst.rack, worst.brokers) == (FindingKind.BROKERS_SILENT, "R2", (3, 4, 5))
    assert worst.partitions == 10
    assert view.snapshot.observation.ended_ms - worst.since_ms == 100
    snapshot = default_world().tick()
    seen = snapshot.observation
    overdue = (Failure(Part.QUORUM, NO_BROKER, FailureKind.OVERDUE),)
    old_ms = seen.ended_ms - 12_000
    old = replace(snapshot, observation=replace(seen, quorum_received_ms=old_ms, failures=overdue))
    assert of_cluster(one(old)) == (
        Finding(FindingKind.QUORUM_SILENT, Severity.RISK, since_ms=seen.ended_ms - 12_000),
    )
    assert one(old).headline.severity is Severity.RISK
    none = replace(snapshot, observation=replace(seen, controller_id=NO_BROKER))
    assert one(none).headline.severity is Severity.RISK


def test_a_controller_that_fetches_no_longer_is_named_before_the_majority_is_gone() -> None:
    snapshot = default_world().tick()
    quorum = snapshot.quorum
    lost = int(quorum.node[quorum.role == QuorumRole.VOTER][0])

    def fetched_last(ms_before: int) -> View:
        at = np.where(quorum.node == lost, quorum.last_fetch_ms.max() - ms_before, quorum.last_fetch_ms)
        return one(replace(snapshot, quorum=replace(quorum, last_fetch_ms=at)))

    assert of_cluster(fetched_last(2_500)) == (WELL,)
    assert of_cluster(fetched_last(6_000)) == (
        Finding(FindingKind.CONTROLLERS_LOST, Severity.WARN, controllers=(lost,), count=3),
    )
    assert fetched_last(6_000).headline.severity is Severity.WARN
    unreported = replace(quorum, last_fetch_ms=np.full(len(quorum), UNKNOWN))
    assert of_cluster(one(replace(snapshot, quorum=unreported))) == (WELL,)


def test_where_nobody_answers_there_is_one_finding_and_no_countdown() -> None:
    world = default_world()
    state, _ = step(State(), world.tick())
    for broker in range(6):
        world.crash(broker)
    state, _ = step(state, world.tick())
    _, view = step(state, world.tick())
    assert view.headline.severity is Severity.RISK
    since_ms = view.snapshot.observation.ended_ms - 1_100
    assert view.headline.findings == (
        Finding(
            FindingKind.NO_BROKER_ANSWERS, Severity.RISK, since_ms=since_ms, cause=Cause(FailureKind.REFUSED)
        ),
    )


lists = st.lists(st.permutations(range(4)).map(lambda ids: ids[:3]), min_size=1, max_size=6)


@given(lists, st.randoms(use_true_random=False))
@settings(max_examples=50)
def test_lists_are_compared_as_sets_whatever_their_order_and_padding(
    rows: Sequence[Any], random: Any
) -> None:
    shuffled = [random.sample(row, len(row)) for row in rows]
    padded = np.pad(matrix(shuffled), ((0, 0), (0, 2)), constant_values=NO_BROKER)
    assert same_lists(matrix(rows), padded).all()
    other = [[9, *row[1:]] for row in rows]
    assert not same_lists(matrix(rows), matrix(other)).any()


def test_the_rank_of_a_status_is_that_of_its_word() -> None:
    seen = set()
    for view in views(crash_script()):
        figures = view.partitions
        assert figures.status.tolist() == [STATUSES[rank] for rank in figures.rank]
        assert figures.alarming.tolist() == [word != Severity.CALM for word in figures.severity]
        seen |= set(figures.status.tolist())
    assert seen >= {PartitionStatus.OK, PartitionStatus.FROZEN}
    assert seen >= {PartitionStatus.SILENT_LEADER, PartitionStatus.UNDER_REPLICATED}
