"""Throttles: the one that slows a move, and those that were left behind."""

from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from kview.derive.brokers.throttles import LEADER, NO_LIMIT, throttle_of
from kview.derive.checks.judge import Watch, more_tells
from kview.derive.checks.judge import step as judge
from kview.derive.fold import step
from kview.derive.view import View
from kview.language import checks
from kview.language.findings import sentence
from kview.language.reassignments import note
from kview.language.reassignments import sentence as of_move
from kview.model.checks import CheckFinding, CheckKind, Judgement, NotJudged
from kview.model.events import Severity
from kview.model.failures import FailureKind, Part
from kview.model.findings import Finding, FindingKind
from kview.model.snapshot import Failure, Reassignments, Snapshot, empty
from kview.model.units import NO_BROKER, UNKNOWN
from tests.worlds.reassignments import FOLLOWERS, LEADERS, RATES, TOPIC, Moving, throttled


@pytest.mark.parametrize(
    ("topics", "told", "limit"),
    [
        ({LEADERS: "*", FOLLOWERS: "*"}, (0, 1, 2), 50_000),
        ({LEADERS: "0:0", FOLLOWERS: "1:1,1:2"}, (0, 1, 2), 70_000),
        ({FOLLOWERS: "0:1,0:2"}, (0, 1, 2), 50_000),
        ({LEADERS: "1:0", FOLLOWERS: "0:2"}, (0, 1, 2), NO_LIMIT),
        ({}, (0, 1, 2), NO_LIMIT),
        ({LEADERS: "*"}, (1, 2), UNKNOWN),
        (None, (0, 1, 2), UNKNOWN),
    ],
)
def test_the_throttle_of_a_move(topics: Mapping[str, str] | None, told: tuple[int, ...], limit: int) -> None:
    scene = Moving()
    scene.snapshot = lambda snapshot: throttled(snapshot, topics, RATES, told)
    view = scene.look()
    assert throttle_of(view.snapshot, view.partitions, 0) == limit
    said = {NO_LIMIT: "left (≈ 20 MB)", UNKNOWN: "throttle: –"}
    assert of_move(view, 0).endswith(said.get(limit, f"throttled to {limit // 1000} kB/s a broker"))
    assert ("throttled" in note(view, 0)) is (limit not in said)


class Checked(Moving):
    """The same, judged."""

    def __init__(self) -> None:
        super().__init__()
        self.watch = Watch()
        self.findings: list[CheckFinding] = []
        self.not_judged: list[NotJudged] = []
        self.judgement = Judgement((), ())

    def after(self, seconds: int, moving: bool = False, failing: bool = False) -> list[Finding]:
        """Let so many seconds pass, and return the findings about throttles."""
        for _ in range(seconds):
            snapshot = self.snapshot(self.world.tick())
            moves = self.moves if moving else empty(Reassignments)
            failed = (Failure(Part.REASSIGNMENTS, NO_BROKER, FailureKind.OVERDUE),) * failing
            seen = replace(snapshot.observation, failures=failed)
            view = self.see(replace(snapshot, reassignments=moves, observation=seen))
            self.watch, self.judgement = judge(self.watch, view)
        kind = CheckKind.THROTTLE_LEFT
        self.findings = [finding for finding in self.judgement.findings if finding.kind is kind]
        self.not_judged = [item for item in self.judgement.not_judged if item.kinds == (kind,)]
        found = [one for one in view.headline.findings if one.kind is FindingKind.THROTTLE_LEFT]
        assert bool(found) is bool(self.findings)
        return found

    def see(self, snapshot: Snapshot) -> View:
        self.state, view = step(self.state, snapshot)
        return view


def left_behind() -> Checked:
    scene = Checked()
    scene.snapshot = lambda snapshot: throttled(snapshot, {FOLLOWERS: "*"}, RATES)
    return scene


def test_a_throttle_is_left_behind_if_nothing_moves_for_a_minute() -> None:
    scene = left_behind()
    assert scene.after(60) == []
    assert [item.names for item in scene.not_judged] == [(TOPIC, "0", "1")], "a longer check tells"
    assert more_tells(scene.judgement)
    (finding,) = scene.after(1)
    assert (finding.severity, finding.topics, finding.count) == (Severity.CALM, (TOPIC,), 1)
    assert sentence(finding, 0) == (
        "replication throttle left on topic orders and brokers 0 and 1, but nothing is being reassigned:"
        " kafka-reassign-partitions.sh --verify removes it"
    )
    assert not scene.not_judged and not more_tells(scene.judgement)
    assert [found.name for found in scene.findings] == [TOPIC, "0", "1"]
    assert [checks.sentence(found, 0) for found in scene.findings[:2]] == [
        "replication throttle left on the topic although nothing is being reassigned. Remove it with"
        " kafka-configs.sh --alter --entity-type topics --entity-name orders --delete-config"
        " follower.replication.throttled.replicas",
        "replication throttle left on broker 0 although nothing is being reassigned. Remove it with"
        " kafka-configs.sh --alter --entity-type brokers --entity-name 0 --delete-config"
        " leader.replication.throttled.rate",
    ]


def test_while_something_moves_and_until_the_settings_are_read_again_it_is_not_left() -> None:
    scene = left_behind()
    assert scene.after(100, moving=True) == scene.after(119) == []
    assert len(scene.after(1)) == 1
    assert scene.after(1, moving=True) == []


@pytest.mark.slow  # the next one has the same wait
def test_nobody_knows_what_moves_while_that_is_not_answered() -> None:
    scene = left_behind()
    assert scene.after(100, failing=True) == scene.after(60) == []
    assert len(scene.after(1)) == 1
    never = Checked()
    never.snapshot = lambda snapshot: replace(
        throttled(snapshot, {FOLLOWERS: "*"}), observation=snapshot.observation
    )
    assert never.after(100) == []


@pytest.mark.parametrize("topics", [{}, None])
def test_without_a_throttle_there_is_no_finding(topics: Mapping[str, str] | None) -> None:
    scene = Checked()
    huge = {0: {f"{LEADER}.rate": str(NO_LIMIT)}}
    scene.snapshot = lambda snapshot: throttled(snapshot, topics, huge)
    assert scene.after(100) == [] and not scene.not_judged


def test_many_topics_are_counted() -> None:
    finding = Finding(FindingKind.THROTTLE_LEFT, Severity.CALM, topics=("a", "b", "c"), count=40)
    assert "left on 40 topics (a, b + 38 more), but" in sentence(finding, 0)
