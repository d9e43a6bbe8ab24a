"""Which findings are told: what lasts, what gets worse, and what is over."""

from collections.abc import Sequence

from kview.derive.finding_changes import FindingChanges
from kview.model.events import Severity
from kview.model.findings import Finding, FindingKind

HOLD_MS = 30_000


def silent(*brokers: int, severity: Severity = Severity.RISK) -> Finding:
    return Finding(FindingKind.BROKERS_SILENT, severity, brokers=brokers)


def stuck(groups: int) -> Finding:
    return Finding(FindingKind.GROUPS_TROUBLED, Severity.WARN, group="billing", groups=groups)


def lost(group: str) -> Finding:
    return Finding(FindingKind.RECORDS_LOST, Severity.RISK, group=group, groups=1)


NOBODY_ANSWERS = Finding(FindingKind.NO_BROKER_ANSWERS, Severity.RISK)
CALM = Finding(FindingKind.NOT_PREFERRED, Severity.CALM)


def told(
    *seen: Sequence[Finding], every_s: int = 10, least: Severity = Severity.WARN, hold_ms: int = HOLD_MS
) -> list[tuple[int, str, FindingKind, tuple[int, ...], str]]:
    """Return what is told of views that see these findings: second, change, kind, brokers, group."""
    changes = FindingChanges(least, hold_ms)
    return [
        (number * every_s, change.value, finding.kind, finding.brokers, finding.group)
        for number, findings in enumerate(seen)
        for change, finding in changes.step(findings, number * every_s * 1000)
    ]


def test_a_finding_is_told_once_it_has_lasted_and_its_end_once_it_is_gone_for_as_long() -> None:
    assert told(*[[silent(4)]] * 6, *[[]] * 5) == [
        (30, "begins", FindingKind.BROKERS_SILENT, (4,), ""),
        (80, "ends", FindingKind.BROKERS_SILENT, (4,), ""),
    ]
    assert [second for second, *_ in told([silent(4)], [], hold_ms=0)] == [0, 10]


def test_what_comes_and_goes_is_not_told() -> None:
    assert told(*[[silent(4)], [silent(4)], [silent(4)], []] * 4) == []
    flaps = told(*[[silent(4)]] * 4, *[[], [silent(4)]] * 8)
    assert [change for _, change, *_ in flaps] == ["begins"]


def test_more_brokers_more_groups_and_a_higher_severity_are_worse_and_fewer_are_not() -> None:
    seen = [[silent(4)]] * 4 + [[silent(4, 5)]] * 4 + [[silent(5)]] * 4 + [[silent(4, 5)]] * 4
    assert [(at, change, brokers) for at, change, _, brokers, _ in told(*seen)] == [
        (30, "begins", (4,)),
        (70, "gets worse", (4, 5)),
    ]
    groups = told(*[[stuck(1)]] * 4, *[[stuck(7)]] * 4, *[[stuck(3)]] * 4)
    assert [change for _, change, *_ in groups] == ["begins", "gets worse"]
    severe = told(*[[silent(4, severity=Severity.WARN)]] * 4, *[[silent(4)]] * 4)
    assert [change for _, change, *_ in severe] == ["begins", "gets worse"]


def test_each_group_that_lost_records_has_a_finding_of_its_own() -> None:
    seen = told(*[[lost("a"), lost("b")]] * 4, *[[lost("b")]] * 5)
    assert [(change, group) for _, change, _, _, group in seen] == [
        ("begins", "a"),
        ("begins", "b"),
        ("ends", "a"),
    ]


def test_nothing_ends_while_no_broker_answers() -> None:
    """A finding that is not there any more may still be true."""
    seen = told(*[[stuck(1)]] * 4, *[[NOBODY_ANSWERS]] * 9, *[[stuck(1)]] * 9)
    assert [(change, kind) for _, change, kind, *_ in seen] == [
        ("begins", FindingKind.GROUPS_TROUBLED),
        ("begins", FindingKind.NO_BROKER_ANSWERS),
        ("ends", FindingKind.NO_BROKER_ANSWERS),
    ]


def test_what_is_not_severe_enough_is_not_told() -> None:
    assert told(*[[CALM]] * 9) == []
    assert told(*[[stuck(1)]] * 9, least=Severity.RISK) == []
    falls = told(*[[silent(4)]] * 4, *[[silent(4, severity=Severity.WARN)]] * 5, least=Severity.RISK)
    assert [change for _, change, *_ in falls] == ["begins", "ends"]
