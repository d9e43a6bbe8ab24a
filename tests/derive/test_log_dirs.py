"""A log directory that fails while its broker runs: what is found, what it explains, and what to do."""

from collections.abc import Sequence

from kview.derive.checks.judge import Watch
from kview.derive.checks.judge import step as judge
from kview.derive.fold import State, step
from kview.derive.view import View
from kview.language import checks
from kview.language.findings import sentence
from kview.model.checks import CheckFinding, CheckKind, Judgement, Level, NotJudgedWhy
from kview.model.events import Severity
from kview.model.findings import Finding, FindingKind
from kview.model.snapshot import Snapshot
from kview.plain.documents import document
from tests.derive.checking import rules
from tests.worlds import World, default_world
from tests.worlds.log_dirs import FAILED, with_dirs, with_offline

K = CheckKind
ONLY, LED, FOLLOWED = ("audit-log", 3), ("invoice", 3), ("payment", 1)
"""Partitions with a replica on broker 4, which has the only one, led it, and followed."""
DIR_4 = (K.LOG_DIR_OFFLINE, "4")


def broken(*lost: tuple[str, int]) -> World:
    """A world after the controller has taken these partitions' replicas on broker 4 out of their ISRs."""
    world = default_world()
    world.groups = []
    for key in lost:
        log = world.log(*key)
        log.isr = [id for id in log.isr if id != 4]
        log.stalled = frozenset({4})
        if log.leader == 4:
            log.leader, log.epoch = log.isr[0] if log.isr else -1, log.epoch + 1
    return world


def watched(
    lost: Sequence[tuple[str, int]], told: bool, ignore: Sequence[str] = (), world: World | None = None
) -> tuple[View, Judgement]:
    """The view, and what a check finds, after the replicas `lost` on broker 4 have gone offline.

    `told` says whether the broker has named the directory since.
    """
    world, state, watch = world or broken(*lost), State(), Watch(ignore=rules(*ignore))
    for _ in range(8):
        seen: Snapshot = with_offline(with_dirs(world.tick(), 4, failed=told), 4, lost)
        state, view = step(state, seen)
        watch, found = judge(watch, view)
    return view, found


def about(view: View) -> Finding | None:
    found = [one for one in view.headline.findings if one.kind is FindingKind.LOG_DIR_OFFLINE]
    return found[0] if found else None


def named(found: Judgement, kind: CheckKind, name: str) -> CheckFinding:
    return next(one for one in found.findings if one.key == (kind, name))


def wrong_now(found: Judgement) -> list[tuple[CheckKind, str]]:
    """What is wrong now and has no other finding as its cause."""
    return [one.key for one in found.findings if one.level != "weakness" and not one.explained_by]


def test_a_failed_directory_is_a_risk_if_it_had_an_only_replica_and_explains_what_it_did() -> None:
    view, found = watched([ONLY, LED, FOLLOWED], told=True)
    finding = about(view)
    assert finding is not None and finding.severity is Severity.RISK
    assert (finding.brokers, finding.paths, finding.partitions, finding.count) == ((4,), (FAILED,), 3, 1)
    assert sentence(finding, 0) == (
        f"log directory {FAILED} of broker 4 failed: 3 partitions lost a replica, 1 partition has no leader"
    )
    assert wrong_now(found) == [DIR_4] and found.findings[0].key == DIR_4
    offline = named(found, K.OFFLINE, "audit-log")
    assert offline.explained_by == named(found, K.UNDER_REPLICATED, "invoice").explained_by == (DIR_4,)
    assert checks.sentence(offline, 0).endswith("Explained by log_dir_offline:4")
    assert checks.sentence(found.findings[0], 0) == (
        f"log directory {FAILED} of broker 4 failed (1 of 2), although the broker is up: 3 partitions lost a"
        " replica, 1 partition has no leader (audit-log-3, invoice-3 + 1 more), since before the check. Its"
        " log says why: a broken or a full disk, or permissions. Once it works, restart the broker, which"
        " does not use the directory before"
    )
    assert not any("start broker" in checks.sentence(one, 0) for one in found.findings)
    assert '"paths":["/disk-2/kafka"]' in document(view)


def test_a_failed_directory_whose_partitions_have_other_leaders_is_a_warning() -> None:
    view, found = watched([LED, FOLLOWED], told=True)
    finding = about(view)
    assert finding is not None and (finding.severity, finding.count) == (Severity.WARN, 0)
    assert named(found, *DIR_4).level == "warn"
    assert not any(one.kind is K.NOT_PREFERRED for one in found.findings)  # no election gives it back
    assert not any(one.kind is FindingKind.NOT_PREFERRED for one in view.headline.findings)


def test_until_the_broker_names_the_directory_nobody_is_told_to_start_a_broker_that_is_up() -> None:
    view, found = watched([ONLY, LED], told=False)
    assert about(view) is None
    assert checks.remedy(named(found, K.OFFLINE, "audit-log")) == (
        "check the log directories of broker 4, which is up although its replicas are offline"
    )
    assert "check the log directories of broker 4" in checks.remedy(
        named(found, K.UNDER_REPLICATED, "invoice")
    )
    (open_,) = [one for one in found.not_judged if K.LOG_DIR_OFFLINE in one.kinds]
    assert (open_.names, open_.why) == (("4",), NotJudgedWhy.NO_HISTORY)


def test_a_directory_that_had_no_replicas_is_told_and_one_of_a_broker_that_is_down_is_not() -> None:
    view, found = watched([], told=True)
    finding = about(view)
    assert finding is not None and sentence(finding, 0) == f"log directory {FAILED} of broker 4 failed"
    assert wrong_now(found) == [DIR_4] and not found.not_judged
    world = broken()
    world.crash(4)
    view, found = watched([ONLY], told=True, world=world)
    assert about(view) is None and DIR_4 not in wrong_now(found)


def test_a_broker_that_is_down_is_started_next_to_one_with_a_failed_directory() -> None:
    """The last replicas of payment-0 are on broker 4, which is up, and on another, which is fenced."""
    finding = CheckFinding(K.OFFLINE, Level.RISK, "payment", brokers=(2, 4), stranded=(4,))
    assert checks.remedy(finding) == (
        "check the log directories of broker 4, which is up although its replicas are offline, or start"
        " broker 2: no other replica may lead"
    )


def test_a_directory_that_is_ignored_explains_nothing() -> None:
    _, found = watched([ONLY], told=True, ignore=["log_dir_offline"])
    assert named(found, K.OFFLINE, "audit-log").explained_by == ()


def test_other_partitions_are_not_explained() -> None:
    """A replica of invoice-5 on broker 5 has fallen behind, with its directory as it was."""
    world = broken(LED)
    log = world.log("invoice", 5)
    log.isr, log.stalled = [id for id in log.isr if id != 5], frozenset({5})
    _, found = watched([LED], told=True, world=world)
    assert named(found, K.UNDER_REPLICATED, "invoice").explained_by == ()
