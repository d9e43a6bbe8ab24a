"""Unclean elections: recognised, counted, said until somebody opens their incident, and remembered beyond
the look-back."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from kview.derive.facts import Facts
from kview.derive.fold import State, fold_on, fold_to, step
from kview.derive.headline import UNCLEAN_STAYS_MS, opened_with, with_unclean
from kview.derive.partitions.log import partition_log
from kview.derive.view import PartitionStatus, View
from kview.language import events, findings
from kview.language.partition_log import meaning
from kview.model.events import EventKind, Severity
from kview.model.findings import FindingKind
from kview.model.snapshot import Snapshot
from kview.model.units import NO_BROKER, UNKNOWN, UNKNOWN_ID
from kview.plain.documents import document_of
from kview.recording.reader import Recording
from kview.recording.replay import Replay
from kview.recording.writer import RecordingWriter
from tests.worlds import World, lean_world

LOST = 50
TOPIC, PARTITION, OLD, NEW = "invoice", 3, 4, 2


def said(view: View) -> list[str]:
    """The sentences of the headline about elections."""
    now_ms = view.snapshot.observation.ended_ms
    told = [findings.sentence(one, now_ms) for one in view.headline.findings]
    return [sentence for sentence in told if "election" in sentence or "old leader" in sentence]


def happened(view: View, kind: EventKind) -> list[str]:
    """The events of that kind in the last step."""
    return [events.sentence(event) for event in view.new_events if event.kind is kind]


def lone_leader() -> World:
    """A world in which the other replicas of a partition miss 50 records, nothing is written any more, and
    its leader is alone in the ISR."""
    world = lean_world()
    world.groups = []
    world.logs = [world.log(TOPIC, PARTITION)]
    log = world.log(TOPIC, PARTITION)
    assert (log.leader, NEW in log.replicas) == (OLD, True)
    log.rate, log.isr = 0.0, [OLD]
    log.stalled = frozenset(log.replicas) - {OLD}
    for follower in log.stalled:
        log.ends[follower] = log.ends[OLD] - LOST
    log.watermark = log.ends[OLD]
    return world


def elect(world: World, broker: int = NEW) -> None:
    """Do what a controller does with unclean.leader.election.enable: the ISR becomes just the new leader."""
    log = world.log(TOPIC, PARTITION)
    log.leader, log.epoch, log.isr, log.elr = broker, log.epoch + 1, [broker], []


def unclean_run(
    seconds: int, interval_ms: int = 1000, leaderless_s: int = 3
) -> Iterator[tuple[Snapshot, View]]:
    """A run in which the lone leader crashes, nobody leads for a while, and then another replica does."""
    world, state = lone_leader(), State()
    world.interval_ms = interval_ms
    elected_at = 0
    for second in range(seconds):
        if second == 3:
            world.crash(OLD)
        if not elected_at and world.log(TOPIC, PARTITION).leader == NO_BROKER:
            elected_at = second + leaderless_s
        if second and second == elected_at:
            elect(world)
        snapshot = world.tick()
        state, view = step(state, snapshot)
        yield snapshot, view


@pytest.mark.parametrize("leaderless_s", [0, 3])
def test_an_unclean_election_is_red_with_the_records_that_it_lost(leaderless_s: int) -> None:
    views = [view for _, view in unclean_run(30, leaderless_s=leaderless_s)]
    (at,) = (n for n, view in enumerate(views) if happened(view, EventKind.UNCLEAN_ELECTION))
    assert not any(said(view) for view in views[:at])
    assert happened(views[at], EventKind.UNCLEAN_ELECTION) == [
        "unclean election of broker 2: invoice-3 lost ≥ 50 records"
    ]
    assert not any(happened(view, EventKind.RECORDS_LOST) for view in views)
    assert said(views[at + 5]) == ["unclean election on 1 partition of invoice, 5.0 s ago: ≥ 50 records lost"]
    assert views[-1].headline.severity is Severity.RISK
    assert document_of(views[-1]).findings[0].kind is FindingKind.UNCLEAN_ELECTION


def test_without_a_screen_it_is_said_for_15_minutes_and_longest_until_its_incident_is_opened() -> None:
    views = [view for _, view in unclean_run(260, interval_ms=5_000)]
    first = next(view for view in views if said(view))
    at_ms = int(first.unclean.at_ms[0])
    for view in views:
        age_ms = view.snapshot.observation.ended_ms - at_ms
        assert bool(said(view)) == (0 <= age_ms < UNCLEAN_STAYS_MS), age_ms
    last = views[-1]
    kinds = {finding.kind for finding in last.headline.findings}
    unopened = with_unclean(last.headline, last.unclean, np.ones(1, np.bool_))
    assert unopened.findings[0].kind is FindingKind.UNCLEAN_ELECTION
    assert unopened.severity is Severity.RISK
    again = with_unclean(unopened, last.unclean, np.zeros(1, np.bool_))
    assert {finding.kind for finding in again.findings} == kinds
    (incident,) = (one for one in last.incidents if one.began_ms <= at_ms)
    assert opened_with(last.unclean, last.incidents, incident.key) == {at_ms}
    assert opened_with(last.unclean, last.incidents, None) == frozenset()
    assert opened_with(last.unclean, (), None) == {at_ms}


def test_an_eligible_replica_that_is_elected_loses_nothing_and_is_no_unclean_election() -> None:
    for elr, kind in (([NEW], False), ([], True), ([UNKNOWN_ID], False)):
        world, state = lone_leader(), State()
        log = world.log(TOPIC, PARTITION)
        log.min_isr, log.elr = 2, elr
        state, _ = step(state, world.tick())
        world.crash(OLD)
        state, _ = step(state, world.tick())
        elect(world)
        _, view = step(state, world.tick())
        assert bool(happened(view, EventKind.UNCLEAN_ELECTION)) == kind, elr
        # what only the old leader had is gone all the same, acknowledged or not
        assert bool(happened(view, EventKind.RECORDS_LOST)) != kind, elr


@pytest.mark.parametrize(("behind", "kind"), [(LOST, True), (0, False)])
def test_a_leader_that_was_well_a_moment_ago_must_have_lost_committed_records(
    behind: int, kind: bool
) -> None:
    """With long intervals a replica may have joined the ISR just before its leader left cleanly."""
    world, state = lone_leader(), State()
    log = world.log(TOPIC, PARTITION)
    log.ends[NEW] = log.ends[OLD] - behind
    state, _ = step(state, world.tick())
    elect(world)
    log.isr = [NEW, 5]  # and another replica has joined since
    _, view = step(state, world.tick())
    assert bool(happened(view, EventKind.UNCLEAN_ELECTION)) == kind


def test_a_new_leader_that_has_not_told_its_log_end_is_counted_once_it_has() -> None:
    world, state = lone_leader(), State()
    for replica in (5, NEW):  # what they answered as followers is not known
        world.nodes[replica].cut = True
    state, _ = step(state, world.tick())
    world.crash(OLD)
    state, _ = step(state, world.tick())
    elect(world)
    state, view = step(state, world.tick())
    assert said(view) == ["unclean election on 1 partition of invoice, 0.0 s ago: records may be lost"]
    assert view.unclean.records.tolist() == [UNKNOWN]
    world.nodes[NEW].cut = False
    state, _ = step(state, world.tick())
    _, view = step(state, world.tick())
    assert said(view) == ["unclean election on 1 partition of invoice, 2.0 s ago: ≥ 50 records lost"]


@pytest.mark.slow  # a quarter of an hour, folded twice
def test_a_replay_that_seeks_beyond_its_look_back_says_what_live_said(tmp_path: Path) -> None:
    seen = list(unclean_run(200, interval_ms=5_000))
    writer = RecordingWriter(tmp_path / "r", segment_s=25, small_segment_bytes=0)
    for snapshot, view in seen:
        writer.append(snapshot, Facts.of(view))
    writer.close()
    replay = Replay(Recording.open(tmp_path / "r"))
    at_ms = int(seen[-1][1].unclean.at_ms[0])
    for minutes in (1, 9, 12, 14):
        jump = replay.seek(at_ms + minutes * 60_000, 0.0)
        folded = fold_to(jump.snapshot, jump.look_back(), lambda: False)
        assert folded is not None
        live = next(view for snapshot, view in seen if snapshot.observation == jump.snapshot.observation)
        assert said(folded[1]) == said(live) and said(live)[0].endswith("≥ 50 records lost"), minutes
    # and it goes on from there
    assert folded is not None
    state, _ = folded
    _, view = fold_on(state, [replay.step(1).snapshots[-1]])  # type: ignore[union-attr]
    assert said(view)


@pytest.mark.parametrize(
    ("isr", "elr", "words", "told"),
    [
        ([4], [], "offline for all clients until broker 4 is back", []),
        (
            [],
            [1, 4],
            "offline for all clients until one of brokers 1 and 4 is back (ELR: no replica is in sync, they"
            " are eligible to lead)",
            [1, 4],
        ),
        (
            [],
            [UNKNOWN_ID],
            "offline for all clients; no replica is in sync, and which are eligible (ELR) is not known",
            None,
        ),
        (
            [],
            [],
            "offline for all clients: no replica is in sync or eligible (ELR), so it waits for its last"
            " leader or an unclean election",
            [],
        ),
    ],
)
def test_a_partition_without_a_leader_says_who_may_lead_it(
    isr: list[int], elr: list[int], words: str, told: list[int] | None
) -> None:
    world = lone_leader()
    world.crash(OLD)
    log = world.log(TOPIC, PARTITION)
    log.leader, log.isr, log.elr, log.min_isr = NO_BROKER, isr, elr, 2
    _, view = step(State(), world.tick())
    shown = partition_log(view, TOPIC, PARTITION)
    assert shown is not None
    assert meaning(PartitionStatus.NO_LEADER, shown, 2) == words
    (row,) = (p for p in document_of(view).partitions if (p.topic, p.partition) == (TOPIC, PARTITION))
    assert row.elr == told


def test_a_cluster_without_such_replicas_has_not_told_any() -> None:
    snapshot = lone_leader().tick()
    seen = replace(snapshot.observation, capabilities=snapshot.observation.capabilities - {"elr"})
    _, view = step(State(), replace(snapshot, observation=seen))
    assert {row.elr for row in document_of(view).partitions} == {None}
