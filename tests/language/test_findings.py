"""Findings in words: every kind, from folds of worlds in which it occurs."""

from collections.abc import Iterator
from functools import cache

import numpy as np
import pytest
from msgspec.structs import replace

from kview.derive.brokers.past import Brokers
from kview.derive.brokers.throttles import Quiet
from kview.derive.fold import State, step
from kview.derive.partitions.inputs import Fall, input_findings
from kview.derive.view import View
from kview.language.findings import sentence, sentences
from kview.model.events import Severity
from kview.model.failures import Cause, FailureKind, Part, refused
from kview.model.findings import Finding, FindingKind
from kview.model.snapshot import Failure, Snapshot
from kview.model.states import BrokerState, TransactionState
from kview.model.units import NO_BROKER, UNKNOWN
from tests.derive.test_different_apis import upgrade
from tests.derive.test_elections import unclean_run
from tests.language.said import well_said
from tests.worlds import crash_script, default_world, views
from tests.worlds.connect import FAILED, with_connectors
from tests.worlds.log_dirs import with_dirs, with_offline
from tests.worlds.reassignments import FOLLOWERS, RATES, throttled
from tests.worlds.transactions import TIMEOUT_MS, holding

AT = 1_760_000_000_000


def one(snapshot: Snapshot) -> View:
    return step(State(), snapshot)[1]


def disasters() -> Iterator[View]:
    """Views of a rack and of all brokers lost, of a silent quorum, of lost controllers, of lost records."""
    for lost in ((3, 4, 5), range(6)):
        world = default_world()
        state, _ = step(State(), world.tick())
        for broker in lost:
            world.crash(broker)
        yield step(state, world.tick())[1]
    world = default_world()
    log, group = world.log("audit-log", 1), world.group("audit-export")
    log.start = group.committed["audit-log", 1] + 500
    yield one(world.tick())
    snapshot = default_world().tick()
    seen, quorum = snapshot.observation, snapshot.quorum
    overdue = (Failure(Part.QUORUM, NO_BROKER, FailureKind.OVERDUE),)
    old_ms = seen.ended_ms - 12_000
    yield one(replace(snapshot, observation=replace(seen, quorum_received_ms=old_ms, failures=overdue)))
    yield one(replace(snapshot, observation=replace(seen, controller_id=NO_BROKER)))
    fetched = np.where(quorum.node == 102, quorum.last_fetch_ms - 9_000, quorum.last_fetch_ms)
    yield one(replace(snapshot, quorum=replace(quorum, last_fetch_ms=fetched)))
    yield one(
        replace(snapshot, quorum=replace(quorum, last_fetch_ms=np.where(quorum.node > 101, 0, fetched)))
    )
    since = np.full(6, seen.began_ms - 5_000, np.int64)
    silent = snapshot.brokers.state.copy()
    silent[4] = BrokerState.SILENT
    yield one(replace(snapshot, brokers=replace(snapshot.brokers, state=silent, since_ms=since)))
    starting = snapshot.brokers.state.copy()
    starting[4] = BrokerState.STARTING
    yield one(replace(snapshot, brokers=replace(snapshot.brokers, state=starting, since_ms=since)))
    owing = replace(snapshot.brokers, answers=np.arange(6) != 4, answered_ms=since)
    yield one(replace(snapshot, brokers=owing))
    gone = snapshot.brokers.state.copy()
    gone[5] = BrokerState.GONE
    cannot = replace(snapshot.brokers, state=gone, answers=np.arange(6) != 5)
    yield one(replace(snapshot, brokers=cannot))
    table = snapshot.partitions
    refused, then_ms = np.where(table.partition == 0, 6, 0).astype(np.int32), table.high_watermark_ms - 9_000
    yield one(replace(snapshot, partitions=replace(table, error_code=refused, high_watermark_ms=then_ms)))
    wrong = Failure(Part.METADATA, 1, FailureKind.OUTDATED, shown_since_ms=seen.ended_ms - 7_000)
    yield one(replace(snapshot, observation=replace(seen, failures=(wrong,))))
    hidden = Failure(Part.TOPICS, NO_BROKER, FailureKind.KAFKA_ERROR, 29, seen.ended_ms - 8_000)
    yield one(replace(snapshot, observation=replace(seen, failures=(hidden,))))
    for opened in (TransactionState.ONGOING, TransactionState.HANGING):
        yield one(holding(snapshot, "invoice", 0, 5, seen.ended_ms - TIMEOUT_MS * 2 // 3, opened))
    slowed = throttled(snapshot, {FOLLOWERS: "*"}, RATES)
    yield step(State(brokers=Brokers(quiet=Quiet(from_ms=0))), slowed)[1]
    falls = tuple(Fall(name, 290.0, 4.0, seen.ended_ms) for name in ("orders", "returns", "mails"))
    for low in (falls[:1], falls):
        fallen = one(snapshot)
        yield replace(fallen, headline=replace(fallen.headline, findings=input_findings(low)))
    yield one(with_connectors(snapshot, FAILED))
    yield one(with_connectors(snapshot, age_ms=None, cause=Cause(FailureKind.HTTP_STATUS, 401)))
    yield one(with_offline(with_dirs(snapshot, 4, failed=True), 4, [("invoice", 3), ("audit-log", 3)]))
    yield one(Snapshot(seen, brokers=snapshot.brokers))
    yield one(Snapshot(seen))
    yield from well_enough()


def well_enough() -> Iterator[View]:
    """Views of clusters that are well: with and without groups, with a slow broker, with odd leaders."""
    world = default_world()
    world.groups = [world.group("billing"), world.group("fraud-check")]
    *_, view = views(world.tick() for _ in range(3))
    yield view
    world.groups = []
    yield one(world.tick())
    world.logs = [log for log in world.logs if log.topic != "audit-log"]
    for log in world.logs:
        log.leader = next(broker for broker in log.replicas if broker != 4)
    world.nodes[5].latency_us = 812_000
    *_, view = views(world.tick() for _ in range(7))
    yield view


def cut_off(seen: Snapshot) -> Snapshot:
    """A snapshot in which broker 4 answers, and has not fetched metadata for five seconds."""
    brokers = seen.brokers
    return replace(
        seen, brokers=replace(brokers, last_fetch_ms=brokers.last_fetch_ms - 5_000 * (brokers.id == 4))
    )


@cache
def folded() -> tuple[tuple[Finding, int], ...]:
    """Real findings, each with the time at which it was found."""
    seen = list(views(crash_script(4, healthy_s=3, silent_s=14, after_s=2)))
    world = default_world()
    log = world.log("invoice", 0)
    log.isr, log.min_isr, log.stalled = [0], 2, frozenset({1, 3})
    seen += [view for _, view in (*unclean_run(20), *upgrade(70, minutes_apart=5))]
    seen += [*disasters(), *views(world.tick() for _ in range(5)), *views([cut_off(world.tick())])]
    return tuple(
        (finding, view.snapshot.observation.ended_ms) for view in seen for finding in view.headline.findings
    )


def numbers(finding: Finding) -> list[str]:
    """What must stand in the finding's sentence."""
    found = [finding.rack, finding.group, *finding.paths]
    of_groups = finding.kind is FindingKind.GROUPS_TROUBLED
    alike = not of_groups or finding.count in (UNKNOWN, finding.groups)
    others = f"+{finding.groups - 1} more group" if alike else f"{finding.groups - 1} other group"
    found += [others] if finding.group and finding.groups > 1 else []
    found += [f"{finding.groups} group"] if finding.groups and not finding.group else []
    if finding.kind is not FindingKind.FENCING_DUE:
        found += [str(id) for id in (*finding.brokers, *finding.controllers)]
    found += [f"{finding.partitions:,}"] if finding.partitions else []
    if not finding.partitions:
        found += [f"{finding.internal_partitions:,}"] if finding.internal_partitions else []
    counted = finding.count not in (0, UNKNOWN) and finding.kind is not FindingKind.WATERMARK_FROZEN
    counted &= not of_groups
    if finding.kind is FindingKind.CONNECT_TASK_FAILED:
        more = [f"+{finding.count - 1} more"] if finding.count > 1 else []
        return [finding.connector, f"task {finding.task}", finding.trace, *more]
    if finding.kind is FindingKind.INPUT_FELL:
        more = [f"+{finding.count - 1} more topics"] if finding.count > 1 else []
        return [finding.topics[0], f"from {finding.rate_before} to {finding.rate}/s", *more]
    return found + ([f"{finding.count:,}"] if counted else [])


@pytest.mark.parametrize("kind", [kind for kind in FindingKind if kind is not FindingKind.GROUPS_UNREAD])
def test_every_kind_is_said_with_its_numbers(kind: FindingKind) -> None:
    found = [(finding, now_ms) for finding, now_ms in folded() if finding.kind is kind]
    assert found
    for finding, now_ms in found:
        well_said(sentence(finding, now_ms), numbers(finding))


@pytest.mark.parametrize(
    ("finding", "said"),
    [
        (
            Finding(
                FindingKind.BROKERS_SILENT,
                Severity.RISK,
                brokers=(3, 4, 5),
                rack="R2",
                partitions=1_100,
                internal_partitions=8,
                since_ms=AT - 3_100,
            ),
            "rack R2 (brokers 3, 4 and 5) silent 3.1 s, still listed as leader of 1,100 partitions",
        ),
        (
            Finding(FindingKind.BROKERS_SILENT, Severity.RISK, brokers=(3,), internal_partitions=8),
            "broker 3 silent, still listed as leader of 8 internal partitions",
        ),
        (
            Finding(FindingKind.BROKERS_SILENT, Severity.RISK, brokers=(3,)),
            "broker 3 silent, leads no partitions",
        ),
        (
            Finding(
                FindingKind.WATERMARK_FROZEN, Severity.RISK, partitions=6, internal_partitions=25, count=4
            ),
            "high watermark frozen on 6 other partitions",
        ),
        (
            Finding(FindingKind.WATERMARK_FROZEN, Severity.RISK, internal_partitions=25, count=4),
            "high watermark frozen on 25 internal partitions",
        ),
        (
            Finding(FindingKind.WATERMARK_FROZEN, Severity.RISK, partitions=1),
            "high watermark frozen on 1 partition",
        ),
        (
            Finding(FindingKind.SILENT_LEADER, Severity.RISK, partitions=3),
            "3 partitions led by a silent broker",
        ),
        (
            Finding(FindingKind.CONTROLLERS_LOST, Severity.WARN, controllers=(102, 103), count=3),
            "controllers 102 and 103 are down or not fetching: 1 of 3 voters left;"
            " no majority, so no elections",
        ),
        (
            Finding(FindingKind.CONTROLLERS_LOST, Severity.WARN, controllers=(101,), count=3),
            "controller 101 is down or not fetching: 2 of 3 voters left; losing one more stops elections",
        ),
        (
            Finding(FindingKind.CONTROLLERS_LOST, Severity.WARN, controllers=(101,), count=5),
            "controller 101 is down or not fetching: 4 of 5 voters left; losing 2 more stops elections",
        ),
        (
            Finding(FindingKind.ALL_WELL, Severity.CALM, count=6),
            "cluster healthy: 6 brokers up, all partitions have leaders, all replicas in sync",
        ),
        (
            Finding(FindingKind.BROKERS_SLOW, Severity.WARN, brokers=(3, 5), count=212),
            "brokers 3 and 5 slow: answers take up to 212 ms",
        ),
        (
            Finding(FindingKind.NO_LEADER, Severity.RISK, partitions=2, internal_partitions=8),
            "2 partitions have no leader",
        ),
        (Finding(FindingKind.NO_LEADER, Severity.RISK, partitions=1), "1 partition has no leader"),
    ],
)
def test_sentences(finding: Finding, said: str) -> None:
    assert sentence(finding, AT) == said


def test_ages_and_countdowns_go_on_with_the_clock() -> None:
    silent = Finding(FindingKind.BROKERS_SILENT, Severity.RISK, brokers=(4,), partitions=4, since_ms=AT)
    due = Finding(FindingKind.FENCING_DUE, Severity.RISK, brokers=(4,), due_ms=AT + 9_000)
    assert sentence(silent, AT + 3_100) == "broker 4 silent 3.1 s, still listed as leader of 4 partitions"
    assert sentence(silent, AT + 4_100) == "broker 4 silent 4.1 s, still listed as leader of 4 partitions"
    assert sentence(due, AT + 3_100) == "fenced in ≈ 5.9 s"
    assert sentence(due, AT + 12_000) == "fencing overdue by ≈ 3.0 s"
    well = Finding(FindingKind.ALL_WELL, Severity.CALM, count=6)
    assert sentence(well, AT) == sentence(well, AT + 60_000)


def test_a_headline_names_its_scope_and_is_short_if_it_says_more() -> None:
    well = Finding(FindingKind.CLUSTER_WELL, Severity.CALM, count=6)
    group = Finding(
        FindingKind.GROUPS_TROUBLED,
        Severity.WARN,
        group="audit-export",
        groups=1,
        verdict="stopped",
        behind_ms=460_400,
    )
    away = Finding(FindingKind.NOT_PREFERRED, Severity.CALM, partitions=3)
    assert sentences([well], AT) == [
        "cluster healthy: 6 brokers up, all partitions have leaders, all replicas in sync"
    ]
    assert sentences([well, group, away], AT) == [
        "cluster healthy",
        "audit-export stopped, 7 m 40 s behind",
        "3 partitions not on their preferred leader",
    ]
    assert sentence(replace(group, groups=3, behind_is_bound=True), AT) == (
        "audit-export stopped, ≥ 7 m 40 s behind (+2 more groups)"
    )
    assert sentence(replace(group, groups=3, count=1, behind_is_estimate=True), AT) == (
        "audit-export stopped, ≈ 7 m 40 s behind · 2 other groups in trouble"
    )
    assert sentence(replace(group, groups=2, count=1), AT).endswith(" · 1 other group in trouble")
    assert sentence(replace(group, groups=2, count=2), AT).endswith(" behind (+1 more group)")
    assert sentence(replace(group, behind_ms=UNKNOWN), AT) == "audit-export stopped"
    well = replace(well, kind=FindingKind.ALL_WELL, groups=4)
    assert sentence(well, AT) == (
        "all healthy: 6 brokers up, all partitions have leaders, all replicas in sync, 4 groups ok"
    )


def test_a_broker_that_only_kview_cannot_reach_and_a_slow_one() -> None:
    away = Finding(
        FindingKind.QUORUM_HEARS_BROKERS, Severity.WARN, brokers=(4,), partitions=342, since_ms=AT - 50_000
    )
    assert sentence(away, AT) == (
        "broker 4 has not answered kview for 50 s, but the cluster still hears from it, "
        "so the state of 342 partitions is unknown"
    )
    slow = Finding(FindingKind.BROKERS_SLOW, Severity.WARN, brokers=(5,), count=212, since_ms=AT - 22_000)
    assert sentence(slow, AT) == "broker 5 slow for 22 s: answers take 212 ms"
    silent = Finding(
        FindingKind.BROKERS_SILENT, Severity.RISK, brokers=(4,), since_ms=AT - 12_000, since_is_bound=True
    )
    assert sentence(silent, AT) == "broker 4 silent ≥ 12 s, leads no partitions"
    unread = Finding(
        FindingKind.GROUPS_UNREAD, Severity.WARN, group="billing", groups=2, since_ms=AT - 12_000
    )
    assert sentence(unread, AT) == "group billing: figures 12 s old (+1 more group)"
    silent = replace(unread, cause=Cause(FailureKind.COORDINATOR_SILENT), coordinator=2)
    assert sentence(silent, AT) == sentence(unread, AT), "the broker's own finding says that"
    loading = replace(unread, cause=refused(14), coordinator=2, groups=1)
    assert sentence(loading, AT) == "group billing: figures 12 s old, coordinator 2 is loading its groups"
