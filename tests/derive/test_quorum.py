"""The controller quorum in the headline: what is said when controllers do not answer or fetch."""

from collections.abc import Callable

import numpy as np
import pytest
from msgspec.structs import replace

from kview.derive.brokers.controllers import controllers
from kview.derive.checks.judge import Watch
from kview.derive.checks.judge import step as judge
from kview.derive.fold import State, step
from kview.derive.view import View
from kview.language import brokers, checks, events, findings, incidents
from kview.model.checks import CheckFinding, CheckKind
from kview.model.events import EventKind, Severity
from kview.model.failures import FailureKind, Part
from kview.model.snapshot import Failure, Features, Quorum, Snapshot, empty
from kview.model.states import QuorumRole
from kview.model.units import NO_BROKER, UNKNOWN
from kview.plain.documents import document_of
from kview.tui.rows.broker_heading import broker_heading
from tests.plain.scraped import page_of, read
from tests.worlds import default_world

OVERDUE = Failure(Part.QUORUM, NO_BROKER, FailureKind.OVERDUE)


def headline(snapshot: Snapshot) -> list[str]:
    """The sentences about the quorum, and about nothing else."""
    return said_of(step(State(), snapshot)[1])


def said_of(view: View) -> list[str]:
    """The sentences of a view's headline about the quorum, and about nothing else."""
    now_ms = view.snapshot.observation.ended_ms
    said = [findings.sentence(finding, now_ms) for finding in view.headline.findings]
    return [sentence for sentence in said if "controller" in sentence]


def answered(age_ms: int, *failures: Failure) -> Snapshot:
    """A healthy world whose quorum last answered so long ago."""
    snapshot = default_world().tick()
    seen = snapshot.observation
    at_ms = seen.ended_ms - age_ms
    return replace(snapshot, observation=replace(seen, quorum_received_ms=at_ms, failures=failures))


def checked(snapshot: Snapshot) -> CheckFinding:
    """What a check says of a quorum that cannot act."""
    found = judge(Watch(), step(State(), snapshot)[1])[1].findings
    (quorum,) = (finding for finding in found if finding.kind is CheckKind.NO_CONTROLLER)
    return quorum


def fetched(**ages_ms: int) -> Snapshot:
    """A healthy world of which voters last fetched so long ago by the leader's clock, −1 for never."""
    snapshot = default_world().tick()
    quorum = snapshot.quorum
    last_ms = quorum.last_fetch_ms.copy()
    for name, age_ms in ages_ms.items():
        at = quorum.node == int(name.removeprefix("c"))
        last_ms[at] = UNKNOWN if age_ms == UNKNOWN else quorum.last_fetch_ms[quorum.node == 101] - age_ms
    return replace(snapshot, quorum=replace(quorum, last_fetch_ms=last_ms))


def test_a_quorum_that_leaves_a_request_unanswered_for_two_seconds_is_silent() -> None:
    (said,) = headline(answered(2_100, OVERDUE))
    assert said == "no word from the controllers for 2.1 s: fencing and elections may have stopped"


@pytest.mark.parametrize("snapshot", [answered(1_100, OVERDUE), answered(2_100), answered(300)])
def test_one_late_answer_is_no_alarm(snapshot: Snapshot) -> None:
    assert headline(snapshot) == []


def test_a_quorum_that_was_never_heard_is_silent() -> None:
    snapshot = answered(0, OVERDUE)
    seen = replace(snapshot.observation, quorum_received_ms=UNKNOWN)
    (said,) = headline(replace(snapshot, observation=seen))
    assert said == "no word from the controllers yet: fencing and elections may have stopped"


@pytest.mark.parametrize(("code", "said"), [(31, 0), (41, 1), (5, 1)])
def test_a_refusal_for_lack_of_permission_says_nothing_about_controllers(code: int, said: int) -> None:
    refusal = Failure(Part.QUORUM, NO_BROKER, FailureKind.KAFKA_ERROR, code)
    assert len(headline(answered(2_100, refusal))) == said


def test_voters_that_have_not_fetched_for_two_seconds_are_a_lost_majority() -> None:
    snapshot = fetched(c102=2_600, c103=2_300)
    (said,) = headline(snapshot)
    assert said.startswith("controller 101 hears no majority of the 3 voters for 2.")
    assert "102" not in said, "it may be the active one that is cut off"
    assert step(State(), snapshot)[1].headline.severity is Severity.RISK


def test_a_voter_that_never_fetched_from_this_leader_counts_as_lost_next_to_one_that_stopped() -> None:
    (said,) = headline(fetched(c102=2_600, c103=UNKNOWN))
    assert "no majority" in said


@pytest.mark.parametrize("age_ms", [2_300, UNKNOWN])
def test_a_check_names_who_does_not_fetch_and_not_who_is_lost(age_ms: int) -> None:
    """It may be the active one that is cut off."""
    found = checked(fetched(c102=2_600, c103=age_ms))
    assert (found.active, found.unheard, found.amount) == (101, (102, 103), 1)
    said = checks.sentence(found, found.since_ms + 2_600)
    assert said == (
        "controller 101 hears no majority of the voters (controllers 102 and 103 do not fetch from it): no"
        " broker can be fenced and no leader elected, for 2.6 s. Check that controllers 102 and 103 are up"
        " and reach controller 101"
    )


def test_a_check_names_nobody_if_nobody_tells_who_is_missing() -> None:
    seen = answered(0)
    none = replace(seen, observation=replace(seen.observation, controller_id=NO_BROKER))
    for snapshot, what in (
        (none, "no active controller: no broker can be fenced and no leader elected"),
        (answered(2_100, OVERDUE), "no controller answers: fencing and elections may have stopped"),
    ):
        found = checked(snapshot)
        assert (checks.what(found), found.amount) == (what, UNKNOWN)
        assert checks.remedy(found) == "check that the controllers are up and reach each other"


@pytest.mark.parametrize(
    "snapshot", [fetched(c102=1_900, c103=1_900), fetched(c102=UNKNOWN, c103=UNKNOWN), fetched(c102=2_600)]
)
def test_voters_that_are_late_or_have_a_new_leader_are_no_alarm(snapshot: Snapshot) -> None:
    assert headline(snapshot) == []


def test_one_lost_voter_of_three_is_named() -> None:
    (said,) = headline(fetched(c102=3_200))
    assert (
        said == "controller 102 is down or not fetching: 2 of 3 voters left; losing one more stops elections"
    )


def test_a_lost_majority_stays_lost_when_its_leader_falls_silent() -> None:
    snapshot = fetched(c102=2_600, c103=2_300)
    seen = snapshot.observation
    failed = replace(seen, quorum_received_ms=seen.ended_ms - 4_000, failures=(OVERDUE,))
    (said,) = headline(replace(snapshot, observation=failed))
    assert said.startswith("controller 101 hears no majority of the 3 voters for 6.")
    view = step(State(), replace(snapshot, observation=failed))[1]
    assert states(view) == {101: "unknown", 102: "unknown", 103: "unknown"}


def states(view: View) -> dict[int, str]:
    """What is shown of each controller."""
    return {one.node: one.state.value for one in controllers(view)}


class Takeover:
    """Controller 103 dies, and then controller 101, from which 102 takes over. The quorum is what 102 tells:
    who has not fetched from it has no time."""

    def __init__(self) -> None:
        self.world = default_world()
        self.state = State()
        self.never = {101: False, 102: False, 103: False}
        self.quiet_ms = dict.fromkeys(self.never, 0)
        self.views: list[View] = []

    def look(self, seconds: int = 1) -> View:
        """Observe once a second."""
        for _ in range(seconds):
            snapshot = self.world.tick()
            quorum, leader = snapshot.quorum, self.world.controller
            last_ms, role = quorum.last_fetch_ms.copy(), quorum.role.copy()
            for node in self.never:
                at = quorum.node == node
                role[at] = QuorumRole.LEADER if node == leader else QuorumRole.VOTER
                last_ms[at] = UNKNOWN if self.never[node] else last_ms[at] - self.quiet_ms[node]
            quorum = replace(quorum, last_fetch_ms=last_ms, role=role)
            self.state, view = step(self.state, replace(snapshot, quorum=quorum))
            self.views.append(view)
        return self.views[-1]

    def take_over(self) -> None:
        """Let 102 lead; no other voter has fetched from it."""
        self.world.controller, self.world.controller_epoch = 102, 4
        self.never |= {101: True, 103: True}


def test_a_dead_voter_is_lost_before_and_after_a_takeover_and_never_well() -> None:
    cluster = Takeover()
    cluster.look(2)
    cluster.quiet_ms[103] = 4_000
    view = cluster.look()
    assert states(view) == {101: "active", 102: "follows", 103: "lost"}
    cluster.take_over()
    for second in range(8):
        view = cluster.look()
        assert states(view)[103] == "lost", second
        assert "controller 103 is down or not fetching" in " ".join(said_of(view)), second
        assert states(view)[102] == "active"
        assert states(view)[101] == "unknown", "nobody else has fetched, so nothing tells that it is lost"
    cluster.never[103] = False
    cluster.quiet_ms[103] = 0
    view = cluster.look()
    assert states(view)[103] == "follows"
    back = [event for event in view.new_events if event.kind is EventKind.CONTROLLER_BACK]
    assert [event.controllers for event in back] == [(103,)]
    view = cluster.look()
    assert states(view)[101] == "lost", "now another voter has fetched"


def test_the_old_leader_is_unknown_after_a_takeover_until_it_has_fetched() -> None:
    cluster = Takeover()
    cluster.look(2)
    cluster.take_over()
    cluster.never[103] = False
    shown = [states(cluster.look())[101] for _ in range(5)]
    assert shown == ["unknown"] * 3 + ["lost"] * 2
    cluster.never[101] = False
    assert states(cluster.look())[101] == "follows"


def test_voters_that_a_leader_does_not_hear_are_not_called_lost_and_may_elect_another_one() -> None:
    cluster = Takeover()
    cluster.look(2)
    cluster.quiet_ms |= {102: 3_500, 103: 3_500}
    view = cluster.look()
    assert states(view) == {101: "active", 102: "unknown", 103: "unknown"}
    (event,) = (event for event in view.new_events if event.kind is EventKind.QUORUM_LOST)
    assert events.sentence(event) == "controller 101 no longer heard from a majority of the voters"
    (incident,) = view.incidents
    assert incidents.title(incident) == "controller 101 without a majority"
    cluster.quiet_ms |= {102: 0, 103: 0}
    cluster.take_over()
    cluster.never[103] = False
    cluster.look(6)
    named = [
        event.controllers
        for view in cluster.views
        for event in view.new_events
        if event.kind in (EventKind.CONTROLLER_LOST, EventKind.CONTROLLER_BACK)
    ]
    assert named == [(101,)], "the one that was cut off, and no other"


def test_a_lost_controller_that_is_removed_from_the_quorum_is_not_back() -> None:
    cluster = Takeover()
    cluster.look(2)
    cluster.quiet_ms[103] = 4_000
    cluster.look()
    snapshot = cluster.world.tick()
    snapshot = replace(snapshot, quorum=snapshot.quorum.take(snapshot.quorum.node != 103))
    _, view = step(cluster.state, snapshot)
    assert not [event for event in view.new_events if event.kind is EventKind.CONTROLLER_BACK]
    assert states(view) == {101: "active", 102: "follows"}


def test_without_an_answering_broker_nothing_is_said_of_controllers() -> None:
    snapshot = answered(8_000, OVERDUE)
    nobody = np.full(len(snapshot.brokers), "silent", object)
    assert headline(replace(snapshot, brokers=replace(snapshot.brokers, state=nobody))) == []


def observed(interval_ms: int, quorum_age_ms: int, *failures: Failure) -> View:
    """The view of the second of two observations, when the quorum's last answer is so old."""
    world = default_world()
    world.interval_ms = interval_ms
    state, _ = step(State(), world.tick())
    snapshot = world.tick()
    seen = snapshot.observation
    at_ms = seen.ended_ms - quorum_age_ms
    seen = replace(seen, quorum_received_ms=at_ms, failures=failures)
    return step(state, replace(snapshot, observation=seen))[1]


@pytest.mark.parametrize(
    ("interval_ms", "age_ms", "silent"),
    [(1_000, 6_100, True), (10_000, 10_100, False), (10_000, 20_100, False), (10_000, 25_100, True)],
)
def test_an_answer_is_old_by_the_time_between_observations(
    interval_ms: int, age_ms: int, silent: bool
) -> None:
    said = " ".join(said_of(observed(interval_ms, age_ms)))
    assert ("no word from the controllers" in said) == silent


@pytest.mark.parametrize(("age_ms", "silent"), [(10_100, False), (20_100, True)])
def test_one_failed_request_every_ten_seconds_is_no_silence(age_ms: int, silent: bool) -> None:
    assert bool(said_of(observed(10_000, age_ms, OVERDUE))) == silent


def after_election(**never_fetched: int) -> list[list[str]]:
    """What is said at each second after controller 102 was elected, while others have not fetched from it for
    so many seconds."""
    world = default_world()
    state, _ = step(State(), world.tick())
    world.controller, world.controller_epoch = 102, 4
    said = []
    for second in range(6):
        snapshot = world.tick()
        last_ms = snapshot.quorum.last_fetch_ms.copy()
        for name, seconds in never_fetched.items():
            if second < seconds:
                last_ms[snapshot.quorum.node == int(name.removeprefix("c"))] = UNKNOWN
        state, view = step(state, replace(snapshot, quorum=replace(snapshot.quorum, last_fetch_ms=last_ms)))
        said.append(said_of(view))
    return said


def test_a_voter_may_take_three_seconds_to_fetch_from_a_new_leader() -> None:
    assert after_election(c103=2) == [[]] * 6
    assert (
        after_election(c103=9)
        == [[]] * 3
        + [["controller 103 is down or not fetching: 2 of 3 voters left; losing one more stops elections"]]
        * 3
    )


def unanswered(snapshot: Snapshot) -> Snapshot:
    seen = snapshot.observation
    at_ms = seen.ended_ms - 3_000
    return replace(snapshot, observation=replace(seen, quorum_received_ms=at_ms, failures=(OVERDUE,)))


NO_MAJORITY = fetched(c102=2_600, c103=2_300)


def without_controller(snapshot: Snapshot) -> Snapshot:
    return replace(snapshot, observation=replace(snapshot.observation, controller_id=NO_BROKER))


def with_zookeeper(snapshot: Snapshot) -> Snapshot:
    known = frozenset({"metadata_controller", "debugging_replica"})
    return replace(snapshot, observation=replace(snapshot.observation, capabilities=known))


def test_with_zookeeper_too_a_missing_controller_is_said() -> None:
    snapshot = with_zookeeper(default_world().tick())
    assert headline(snapshot) == []
    (said,) = headline(without_controller(snapshot))
    assert said.startswith("no active controller: until there is one, no broker can be fenced")
    assert step(State(), without_controller(snapshot))[1].headline.severity is Severity.RISK


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda snapshot: snapshot, "fenced in ≈ 7.8 s"),
        (without_controller, "no controller can fence it"),
        (lambda snapshot: without_controller(with_zookeeper(snapshot)), "no controller can fence it"),
        (lambda snapshot: replace(snapshot, quorum=NO_MAJORITY.quorum), "no controller can fence it"),
        (unanswered, ""),
    ],
)
def test_a_countdown_to_fencing_needs_a_controller_that_can_fence(
    change: Callable[[Snapshot], Snapshot], said: str
) -> None:
    world = default_world()
    state, _ = step(State(), world.tick())
    world.crash(4)
    state, _ = step(state, world.tick())
    _, view = step(state, change(world.tick()))
    now_ms = view.snapshot.observation.ended_ms
    assert brokers.fencing(view.brokers, 4, now_ms) == said
    sentences = findings.sentences(view.headline.findings, now_ms)
    assert any("fenced in" in sentence for sentence in sentences) == said.startswith("fenced in")


def with_observers(*observers: tuple[int, int, int]) -> View:
    """The view of a healthy world whose quorum has these observers only, as (node, records behind, age of
    the last fetch)."""
    snapshot = default_world().tick()
    quorum = snapshot.quorum.take(snapshot.quorum.node > 100)
    now_ms = int(quorum.last_fetch_ms.max())
    rows = [
        (int(node), str(role), int(end), int(ms))
        for node, role, end, ms in zip(
            quorum.node, quorum.role, quorum.log_end, quorum.last_fetch_ms, strict=True
        )
    ]
    rows += [(node, QuorumRole.OBSERVER, 4_000 - behind, now_ms - age) for node, behind, age in observers]
    rows.sort()
    made = Quorum(
        node=np.array([row[0] for row in rows], np.int32),
        role=np.array([row[1] for row in rows], object),
        log_end=np.array([row[2] for row in rows], np.int64),
        last_fetch_ms=np.array([row[3] for row in rows], np.int64),
        last_caught_up_ms=np.array([row[3] for row in rows], np.int64),
    )
    return step(State(), replace(snapshot, quorum=made))[1]


def test_observers_are_told_with_their_lag_and_controllers_that_do_not_vote_are_shown() -> None:
    view = with_observers((2, 0, 100), (4, 12, 300), (104, 7, 200))
    assert states(view) == {101: "active", 102: "follows", 103: "follows", 104: "observes"}
    assert "quorum observer, 12 metadata records behind" in shown_of(view, 4)
    told = document_of(view).quorum
    assert told is not None and (told.leader, told.epoch) == (101, 3)
    assert [(node.id, node.state, node.votes, node.lag_records) for node in told.nodes] == [
        (2, "observes", False, 0),
        (4, "observes", False, 12),
        (101, "active", True, None),
        (102, "follows", True, 0),
        (103, "follows", True, 0),
        (104, "observes", False, 7),
    ]
    assert told.nodes[1].last_fetch_age_ms == 300 and told.nodes[1].log_end == 3_988


def shown_of(view: View, broker: int) -> str:
    """The heading of a broker's screen."""
    lines = broker_heading(view, broker, view.snapshot.observation.ended_ms, 200)
    return " ".join(" ".join("".join(span.text for span in line) for line in lines).split())


def test_without_a_quorum_its_document_is_null_and_has_no_metrics() -> None:
    snapshot = default_world().tick()
    seen = replace(snapshot.observation, quorum_received_ms=UNKNOWN)
    bare = replace(snapshot, observation=seen, quorum=empty(Quorum))
    view = step(State(), bare)[1]
    assert document_of(view).quorum is None
    assert not [name for name, _ in read(page_of(view)) if "quorum" in name]


def test_controllers_and_observers_have_metrics() -> None:
    view = with_observers((4, 12, 300), (104, 7, 200))
    told = {
        (name, *(text for _, text in labels)): found for (name, labels), found in read(page_of(view)).items()
    }
    assert told["kview_quorum_lag_records", "4", "observer"] == 12
    assert told["kview_quorum_last_fetch_age_seconds", "104", "observer"] == 0.2
    assert told["kview_quorum_log_end_offset", "101", "voter"] == 4_000
    assert told["kview_controller_state", "101", "active"] == 1
    assert told["kview_controller_state", "104", "observes"] == 1
    assert ("kview_controller_state", "4", "observes") not in told, "a broker is no controller"
    assert told["kview_controller_epoch",] == 3


def test_finalized_features_are_shown_where_known_and_are_nothing_where_not() -> None:
    snapshot = default_world().tick()
    plain = step(State(), snapshot)[1]
    assert document_of(plain).features == [] and "metadata.version" not in shown_of(plain, 4)
    told = Features(
        name=np.array(["group.version", "metadata.version"], object), level=np.array([1, 30], np.int32)
    )
    view = step(State(), replace(snapshot, features=told))[1]
    assert "metadata.version 30 group.version 1" in shown_of(view, 4)
    assert [(one.name, one.level) for one in document_of(view).features] == [
        ("group.version", 1),
        ("metadata.version", 30),
    ]
    levels = {
        dict(labels)["feature"]: found
        for (name, labels), found in read(page_of(view)).items()
        if name == "kview_finalized_feature_level"
    }
    assert levels == {"group.version": 1, "metadata.version": 30}
