"""What is said of Kafka Connect: failed tasks by name, and states that are unknown, never "all is well"."""

import pytest

from kview.derive.checks.judge import Ignore, Watch
from kview.derive.checks.judge import step as judge
from kview.derive.fold import State, step
from kview.derive.groups.connect import HOLD_MS
from kview.derive.view import Reason, Verdict, View
from kview.language import checks, events
from kview.language.findings import sentence
from kview.model.checks import CheckFinding, CheckKind, Level, NotJudged
from kview.model.events import Severity
from kview.model.failures import Cause, FailureKind
from kview.model.findings import Finding, FindingKind
from kview.model.snapshot import Snapshot
from kview.model.units import CONNECTOR_TASK
from tests.worlds import default_world
from tests.worlds.connect import EXITING, FAILED, RUNNING, SQL, connector, with_connectors
from tests.worlds.small import ends, reader, small_world

UNAUTHORIZED = Cause(FailureKind.HTTP_STATUS, 401)


def world() -> Snapshot:
    made = default_world()
    made.groups = [made.group("billing"), made.group("fraud-check")]
    return made.tick()


def view(seen: Snapshot) -> View:
    return step(State(), seen)[1]


def said(seen: Snapshot) -> list[str]:
    found = view(seen)
    return [sentence(finding, seen.observation.ended_ms) for finding in found.headline.findings]


def of_connect(seen: Snapshot) -> list[Finding]:
    return [one for one in view(seen).headline.findings if one.kind.startswith("connect")]


def test_running_connectors_change_nothing() -> None:
    seen = world()
    before = said(seen)
    for rows in (RUNNING, [], connector("a", "PAUSED", "UNASSIGNED", "RESTARTING", "NEW_STATE")):
        assert said(with_connectors(seen, rows)) == before


def test_a_failed_task_is_named_with_the_line_that_says_why() -> None:
    (finding,) = of_connect(with_connectors(world(), FAILED))
    assert (finding.kind, finding.severity) == (FindingKind.CONNECT_TASK_FAILED, Severity.RISK)
    assert (finding.connector, finding.task, finding.count, finding.trace) == ("billing", 0, 2, SQL)
    seen = with_connectors(world(), FAILED)
    assert said(seen)[0] == f"task 0 of connector billing failed (+1 more): {SQL}"
    assert view(seen).headline.severity is Severity.RISK
    alone = [*connector("crm", "FAILED", root="")]
    assert said(with_connectors(world(), alone))[0] == f"connector crm failed: {EXITING}"
    assert of_connect(with_connectors(world(), alone))[0].task == CONNECTOR_TASK
    silent = connector("crm", "RUNNING", "RUNNING", "FAILED", trace="", root="")
    assert said(with_connectors(world(), silent))[0] == "task 1 of connector crm failed"


def test_the_cluster_itself_is_still_called_healthy() -> None:
    found = view(with_connectors(world(), FAILED)).headline.findings
    assert FindingKind.CLUSTER_WELL in [finding.kind for finding in found]
    assert FindingKind.ALL_WELL not in [finding.kind for finding in found]


def test_a_request_that_fails_is_not_said_while_the_states_are_fresh() -> None:
    fresh = with_connectors(world(), FAILED, age_ms=HOLD_MS, cause=UNAUTHORIZED)
    assert [one.kind for one in of_connect(fresh)] == [FindingKind.CONNECT_TASK_FAILED]


@pytest.mark.parametrize(
    ("cause", "why"),
    [
        (UNAUTHORIZED, "answered 401 Unauthorized"),
        (Cause(FailureKind.SILENT), "accepts connections but does not answer"),
        (Cause(FailureKind.REFUSED), "connection refused"),
        (Cause(FailureKind.TOO_LARGE), "sent an answer larger than kview reads"),
        (Cause(FailureKind.OVERDUE), "has not answered yet"),
    ],
)
def test_states_that_cannot_be_read_are_unknown_and_neither_failed_nor_well(cause: Cause, why: str) -> None:
    old = with_connectors(world(), FAILED, age_ms=HOLD_MS + 10_000, cause=cause)
    assert said(old)[-1] == f"states of connectors unknown for 1 m 10 s (connect-url: {why})"
    never = with_connectors(world(), age_ms=None, cause=cause)
    assert said(never)[-1] == f"states of connectors unknown (connect-url: {why})"
    for seen in (old, never):
        (finding,) = of_connect(seen)
        assert (finding.kind, finding.severity) == (FindingKind.CONNECTORS_UNREAD, Severity.WARN)
        assert finding.cause == cause
        assert FindingKind.ALL_WELL not in [one.kind for one in view(seen).headline.findings]


def test_the_first_request_is_given_its_time() -> None:
    seen = world()
    waiting = with_connectors(seen, age_ms=None, cause=Cause(FailureKind.NOT_CONNECTED))
    assert said(waiting) == said(seen)


def checked(seen: Snapshot, *ignore: Ignore) -> tuple[list[CheckFinding], list[NotJudged]]:
    """What a check says of Connect."""
    _, found = judge(Watch(ignore=ignore), view(seen))
    kind = CheckKind.CONNECT_TASK_FAILED
    return [one for one in found.findings if one.kind is kind], [
        one for one in found.not_judged if one.kinds == (kind,)
    ]


def test_a_check_finds_each_connector_and_names_the_first_reason() -> None:
    seen = with_connectors(world(), FAILED)
    now_ms = seen.observation.ended_ms
    found, open_ = checked(seen)
    assert not open_ and {one.level for one in found} == {Level.RISK}
    assert [f"{checks.label(one.key)}: {checks.sentence(one, now_ms)}" for one in found] == [
        f"connect_task_failed:billing: 1 task failed ({SQL}), since before the check. Remove the cause, then"
        " restart it: Connect does not do that by itself",
        "connect_task_failed:crm: the connector itself failed (java.lang.IllegalStateException: cannot"
        " start), since before the check. Remove the cause, then restart it: Connect does not do that by"
        " itself",
    ]
    assert checked(with_connectors(world())) == ([], [])
    assert [one.name for one in checked(seen, Ignore("connect_*", "bill*"))[0]] == ["crm"]


def test_a_check_cannot_judge_what_is_not_read() -> None:
    found, (open_,) = checked(with_connectors(world(), FAILED, age_ms=HOLD_MS + 1, cause=UNAUTHORIZED))
    assert not found
    assert checks.not_judged(open_) == (
        "the states of connectors are unknown (connect-url: answered 401 Unauthorized)"
    )
    _, (open_,) = checked(with_connectors(world(), age_ms=None, cause=Cause(FailureKind.NOT_CONNECTED)))
    assert checks.not_judged(open_) == "more observations are needed: observe for longer (--for 90s)"
    _, (open_,) = checked(with_connectors(world(), age_ms=None, cause=Cause(FailureKind.OVERDUE)))
    assert checks.not_judged(open_).startswith("still waiting for an answer from Kafka Connect: observe")
    assert checked(world()) == ([], []), "a profile without connect-url asks for no verdict"


def test_the_group_of_a_paused_sink_is_not_told_to_start_its_consumers() -> None:
    """Its members are there (PAUSED) or have left (STOPPED), and nobody commits."""
    for state, members in (("PAUSED", 1), ("STOPPED", 0)):
        group = reader("connect-old", *ends(), members=members, share=1.0)
        group.commit_every_ms = 1_000
        made, fold, watch = small_world(group), State(), Watch()
        for second in range(60):
            group.commit_every_ms = 1_000 if second < 5 else 10**12
            fold, now = step(fold, with_connectors(made.tick(), connector("old", state, state)))
            watch, found = judge(watch, now)
        row = now.snapshot.groups.group.tolist().index("connect-old")
        assert (now.groups.verdict[row], now.groups.reason[row]) == (
            Verdict.STOPPED,
            Reason.CONNECTOR_PAUSED,
        )
        assert set(now.offsets.reason.tolist()) == {Reason.CONNECTOR_PAUSED}
        (stopped,) = [one for one in found.findings if one.kind is CheckKind.GROUP_STOPPED]
        assert checks.remedy(stopped) == "resume the connector if it is to go on"
    running = with_connectors(made.tick(), connector("old", "RUNNING", "RUNNING"))
    assert step(fold, running)[1].groups.reason[row] == Reason.NO_MEMBERS


def test_what_fails_and_runs_again_are_events() -> None:
    made, state, told = default_world(), State(), []
    alone = [*connector("billing", "RUNNING", "FAILED", "FAILED"), *connector("crm", "RUNNING", "RUNNING")]
    for rows, age_ms in ((FAILED, 0), (RUNNING, 0), (RUNNING, 15_000), (alone, 0), (alone, 0), (RUNNING, 0)):
        state, now = step(state, with_connectors(made.tick(), rows, age_ms=age_ms))
        told.append([(events.sentence(event), event.severity) for event in now.new_events])
    assert told == [
        [],  # nobody saw it happen
        [("task 0 of connector billing (+1 more) run again", Severity.GOOD)],
        [],
        [("task 0 of connector billing (+1 more) failed", Severity.RISK)],
        [],
        [("task 0 of connector billing (+1 more) run again", Severity.GOOD)],
    ]
