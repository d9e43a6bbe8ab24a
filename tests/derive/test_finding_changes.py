"""Which findings are told: what lasts, what gets worse, and what is over."""

from collections.abc import Sequence

from msgspec.structs import replace

from kview.derive.finding_changes import FindingChanges
from kview.language.findings import sentence
from kview.model.events import Severity
from kview.model.findings import Finding, FindingKind

HOLD_MS = 30_000


def silent(*brokers: int) -> Finding:
    return Finding(FindingKind.BROKERS_SILENT, Severity.RISK, brokers=brokers)


def stuck(groups: int) -> Finding:
    return Finding(FindingKind.GROUPS_TROUBLED, Severity.WARN, group="billing", groups=groups)


def lost(group: str) -> Finding:
    return Finding(FindingKind.RECORDS_LOST, Severity.RISK, group=group, groups=1)


FENCED, GONE = FindingKind.BROKERS_FENCED, FindingKind.BROKERS_GONE


def lost_as(kind: FindingKind, *brokers: int) -> Finding:
    return Finding(kind, Severity.WARN, brokers=brokers)


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
        for change, _, finding in changes.step(findings, number * every_s * 1000)
    ]


def test_a_finding_is_told_once_it_has_lasted_and_its_end_once_it_is_gone_for_as_long() -> None:
    assert told(*[[silent(4)]] * 6, *[[]] * 9) == [
        (30, "begins", FindingKind.BROKERS_SILENT, (4,), ""),
        (90, "ends", FindingKind.BROKERS_SILENT, (4,), ""),
    ]
    assert [second for second, *_ in told([silent(4)], [], hold_ms=0)] == [0, 10]


def test_what_comes_and_goes_is_not_told() -> None:
    assert told(*[[silent(4)], [silent(4)], [silent(4)], []] * 4) == []
    flaps = told(*[[silent(4)]] * 4, *[[], [silent(4)]] * 8)
    assert [change for _, change, *_ in flaps] == ["begins"]


def test_more_brokers_more_groups_and_a_higher_severity_are_worse_and_fewer_are_not() -> None:
    seen = [[silent(4)]] * 4 + [[silent(4, 5)]] * 4 + [[silent(5)]] * 3 + [[silent(4, 5)]] * 4
    assert [(at, change, brokers) for at, change, _, brokers, _ in told(*seen)] == [
        (30, "begins", (4,)),
        (70, "gets worse", (4, 5)),
    ]
    groups = told(*[[stuck(1)]] * 4, *[[stuck(7)]] * 4, *[[stuck(3)]] * 4)
    assert [change for _, change, *_ in groups] == ["begins", "gets worse"]
    severe = told(*[[stuck(1)]] * 4, *[[replace(stuck(1), severity=Severity.RISK)]] * 4)
    assert [change for _, change, *_ in severe] == ["begins", "gets worse"]


def test_what_was_better_for_long_gets_worse_again() -> None:
    both, one = [[silent(1, 2)]] * 4, [[silent(1)]] * 4
    assert [(at, change) for at, change, *_ in told(*both, *one, *both)] == [
        (30, "begins"),
        (110, "gets worse"),
    ]
    assert len(told(*both, *[[silent(1)], [silent(1)], [silent(2)], [silent(2)]] * 4, *both)) == 1


def test_many_more_partitions_records_or_tasks_are_worse() -> None:
    def changes(first: Finding, later: Finding) -> list[str]:
        return [change for _, change, *_ in told([first], [later], hold_ms=0)]

    for kind in (FindingKind.NO_LEADER, FindingKind.UNDER_MIN_ISR):
        found = [Finding(kind, Severity.RISK, partitions=number) for number in (1, 3, 5, 5_000)]
        assert changes(found[0], found[3]) == ["begins", "gets worse"]
        assert changes(found[1], found[2]) == ["begins"]
    unclean = [Finding(FindingKind.UNCLEAN_ELECTION, Severity.RISK, count=n) for n in (-1, 1, 9)]
    assert changes(unclean[0], unclean[1]) == changes(unclean[1], unclean[2]) == ["begins", "gets worse"]
    failed = [
        Finding(FindingKind.CONNECT_TASK_FAILED, Severity.WARN, connector=name, task=0, count=count)
        for name, count in (("b", 1), ("a", 2), ("c", 2))
    ]
    assert changes(failed[0], failed[1]) == ["begins", "gets worse"]
    assert changes(failed[1], failed[2]) == ["begins"], "another connector is the first"


def test_findings_of_one_key_are_taken_together_with_their_paths_and_counts() -> None:
    def failed(broker: int, path: str) -> Finding:
        return Finding(
            FindingKind.LOG_DIR_OFFLINE, Severity.WARN, brokers=(broker,), paths=(path,), partitions=2
        )

    def step(*findings: Finding) -> list[Finding]:
        return [change.finding for change in changes.step(findings, 0)]

    changes = FindingChanges(Severity.WARN, 0)
    (first,) = step(failed(1, "/a"), failed(2, "/b"))
    assert (first.brokers, first.paths, first.partitions) == ((1, 2), ("/a", "/b"), 4)
    assert not step(failed(1, "/b"), failed(2, "/a"))
    (worse,) = step(failed(1, "/b"), failed(2, "/c"))
    assert worse.paths == ("/b", "/c")


def test_a_dead_broker_is_one_finding_whatever_is_said_of_it() -> None:
    """It is silent for the 9 s of its session, then fenced, then no longer listed."""
    dead = [[silent(4)], *[[lost_as(FENCED, 4)]] * 6, *[[lost_as(GONE, 4)]] * 3, *[[]] * 4]
    for least in (Severity.WARN, Severity.RISK):
        assert [(at, change, kind) for at, change, kind, *_ in told(*dead, least=least)] == [
            (30, "begins", FENCED),
            (130, "ends", GONE),
        ]
    calm = [[lost_as(FENCED, 4)]] * 9
    assert [change for _, change, *_ in told(*calm)] == ["begins"]
    assert told(*calm, least=Severity.RISK) == [], "it never was a risk"
    second = [[silent(5), lost_as(FENCED, 4)], *[[lost_as(FENCED, 4, 5)]] * 4, *[[lost_as(FENCED, 4)]] * 4]
    assert [(change, brokers) for _, change, _, brokers, _ in told(*calm, *second, least=Severity.RISK)] == [
        ("begins", (5,)),
        ("ends", (5,)),
    ]


def test_each_group_that_lost_records_has_a_finding_of_its_own_which_does_not_end() -> None:
    seen = told(*[[lost("a"), lost("b")]] * 4, *[[lost("b")]] * 5, *[[lost("a"), lost("b")]] * 4)
    assert [(change, group) for _, change, _, _, group in seen] == [
        ("begins", "a"),
        ("begins", "b"),
        ("begins", "a"),
    ]


def test_the_losses_of_many_groups_at_once_are_few_changes_and_count_them_all() -> None:
    changes = FindingChanges(Severity.WARN, 0)
    many = [replace(lost(f"group-{n:02}"), count=100) for n in range(60)]
    first = [replace(many[0], count_is_bound=False), *many[1:-1], replace(many[-1], count_is_bound=True)]
    told = changes.step([silent(4), *first], 0)
    assert [change.finding.group for change in told] == ["", *(f"group-{n:02}" for n in range(5))]
    assert sum(change.finding.groups for change in told) == 60
    assert sum(change.finding.count for change in told[1:]) == 6_000
    assert told[-1].finding.count_is_bound and not told[-2].finding.count_is_bound
    assert sentence(told[-1].finding, 0).startswith("group group-04 (+55 more groups): ≥ 5,600 records")
    assert changes.step([silent(4), *first], 1_000) == []
    (later,) = changes.step([silent(4), *first, lost("late")], 2_000)
    assert later.finding.group == "late"


def test_a_pause_of_the_views_is_no_absence() -> None:
    changes = FindingChanges(Severity.WARN, HOLD_MS)
    for at_ms in (0, HOLD_MS):
        list(changes.step([silent(4)], at_ms))
    ended = [(s, [c.change.value for c in changes.step([], s * 1000)]) for s in (500, 510, 530)]
    assert ended == [(500, []), (510, []), (530, ["ends"])]


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
    dirs = [Finding(FindingKind.LOG_DIR_OFFLINE, severity) for severity in (Severity.RISK, Severity.WARN)]
    falls = told(*[[dirs[0]]] * 4, *[[dirs[1]]] * 5, least=Severity.RISK)
    assert [change for _, change, *_ in falls] == ["begins", "ends"]
