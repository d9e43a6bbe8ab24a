"""Findings in words: every kind, from folds of worlds in which it occurs."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from kview.derive.fold import State, step
from kview.derive.pending import pending
from kview.derive.view import View
from kview.language.findings import sentence
from kview.model.events import Severity
from kview.model.findings import Finding, FindingKind
from kview.model.snapshot import Snapshot
from kview.model.states import BrokerState
from kview.model.units import NO_BROKER, UNKNOWN
from tests.language.said import well_said
from tests.worlds import crash_script, default_world, views

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
    yield one(replace(snapshot, observation=replace(seen, quorum_received_ms=seen.ended_ms - 12_000)))
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
    gone = snapshot.brokers.state.copy()
    gone[5] = BrokerState.GONE
    cannot = replace(snapshot.brokers, state=gone, answers=np.arange(6) != 5)
    yield one(replace(snapshot, brokers=cannot))
    yield one(Snapshot(seen, brokers=snapshot.brokers))
    yield one(Snapshot(seen))


@cache
def folded() -> tuple[tuple[Finding, int], ...]:
    """Real findings, each with the time at which it was found."""
    seen = list(views(crash_script(4, healthy_s=3, silent_s=14, after_s=2)))
    world = default_world()
    log = world.log("invoice", 0)
    log.isr, log.min_isr, log.stalled = [0], 2, frozenset({1, 3})
    seen += [*disasters(), *views(world.tick() for _ in range(5))]
    seen += [pending(seen[0]), pending(seen[5])]
    return tuple(
        (finding, view.snapshot.observation.ended_ms) for view in seen for finding in view.headline.findings
    )


def numbers(finding: Finding) -> list[str]:
    """What must stand in the finding's sentence."""
    found = [finding.rack, finding.group]
    if finding.kind is not FindingKind.FENCING_DUE:
        found += [str(id) for id in (*finding.brokers, *finding.controllers)]
    found += [f"{finding.partitions:,}"] if finding.partitions else []
    if finding.kind is not FindingKind.BROKERS_SILENT or not finding.partitions:
        found += [f"{finding.internal_partitions:,}"] if finding.internal_partitions else []
    counted = finding.count not in (0, UNKNOWN) and finding.kind is not FindingKind.WATERMARK_FROZEN
    return found + ([f"{finding.count:,}"] if counted else [])


@pytest.mark.parametrize("kind", FindingKind)
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
        (Finding(FindingKind.BROKERS_SILENT, Severity.RISK, brokers=(3,)), "broker 3 silent, leads nothing"),
        (
            Finding(
                FindingKind.WATERMARK_FROZEN, Severity.RISK, partitions=6, internal_partitions=25, count=4
            ),
            "watermark frozen on 6 more (+25 internal)",
        ),
        (
            Finding(FindingKind.WATERMARK_FROZEN, Severity.RISK, internal_partitions=25, count=4),
            "watermark frozen on 25 internal partitions",
        ),
        (
            Finding(FindingKind.WATERMARK_FROZEN, Severity.RISK, partitions=1),
            "watermark frozen on 1 partition",
        ),
        (
            Finding(FindingKind.SILENT_LEADER, Severity.RISK, partitions=3),
            "3 partitions led by a silent broker",
        ),
        (
            Finding(FindingKind.CONTROLLERS_LOST, Severity.WARN, controllers=(102, 103), count=3),
            "controllers 102 and 103 are not in the quorum: only 1 of 3 controllers is up",
        ),
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
    assert sentence(due, AT + 9_000) == "should be fenced by now"
    well = Finding(FindingKind.ALL_WELL, Severity.CALM, count=6)
    assert sentence(well, AT) == sentence(well, AT + 60_000)
