"""A log directory that fails while its broker runs: what is found, what it explains, and what to do."""

from collections.abc import Sequence

import numpy as np
import pytest
from msgspec.structs import replace

from kview.derive.brokers.log_dirs import follow, full_ms
from kview.derive.checks.judge import Watch
from kview.derive.checks.judge import step as judge
from kview.derive.fold import State, step
from kview.derive.partitions.log import partition_log
from kview.derive.view import PartitionStatus, View
from kview.language import brokers, checks
from kview.language.findings import sentence
from kview.language.partition_log import meaning
from kview.model.checks import CheckFinding, CheckKind, Judgement, Level, NotJudgedWhy
from kview.model.events import Severity
from kview.model.findings import Finding, FindingKind
from kview.model.inspection import DirectoriesAnswer, DirectoriesRequest, Directory
from kview.model.snapshot import LogDirs, Snapshot, empty
from kview.model.units import UNKNOWN
from kview.plain.documents import document, document_of
from kview.tui.rows.broker_details import BrokerDetails, detail_lines
from kview.tui.text import content
from tests.derive.checking import rules
from tests.worlds import World, default_world
from tests.worlds.log_dirs import FAILED, GOOD, TOTAL, with_dirs, with_offline

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


def test_the_partitions_screen_waits_for_the_directory_not_for_a_broker_that_is_up() -> None:
    def said(key: tuple[str, int], view: View) -> str:
        shown = partition_log(view, *key)
        assert shown is not None
        return meaning(PartitionStatus(view.partitions.status[shown.row]), shown, 1)

    view, _ = watched([ONLY, LED], told=True)
    offline = "offline for all clients until the log directory of broker 4 works again"
    assert said(ONLY, view) == offline
    assert said(LED, view) == "not in sync: broker 4 (its log directory has failed)"
    world = broken(ONLY)
    world.log(*ONLY).isr = [4]  # before Kafka 4.0
    assert said(ONLY, watched([ONLY], told=True, world=world)[0]) == offline
    world = broken(LED)
    log = world.log(*LED)
    log.leader, log.isr = -1, [4, 5]
    for broker in (2, 5):
        world.crash(broker)
    view, _ = watched([LED], told=True, world=world)
    assert said(LED, view) == f"{offline} or broker 5 is back"


def test_a_directory_that_had_no_replicas_is_told_and_one_of_a_broker_that_is_down_is_not() -> None:
    view, found = watched([], told=True)
    finding = about(view)
    assert finding is not None and sentence(finding, 0) == f"log directory {FAILED} of broker 4 failed"
    assert wrong_now(found) == [DIR_4] and not found.not_judged
    world = broken()
    world.crash(4)
    view, found = watched([ONLY], told=True, world=world)
    assert about(view) is None and DIR_4 not in wrong_now(found)
    assert {one.stranded for one in found.findings} == {()}


def test_a_replica_that_is_offline_is_lost_already_even_if_it_is_the_last_in_the_isr() -> None:
    """Before Kafka 4.0 the last replica stays in the ISR."""
    world = broken(ONLY)
    world.log(*ONLY).isr = [4]
    _, found = watched([ONLY], told=True, world=world)
    assert named(found, K.OFFLINE, "audit-log").explained_by == (DIR_4,)
    losses = {one.name: one.partitions for one in found.findings if one.kind is K.BROKER_LOSS}
    assert losses.keys() == {"0", "1", "3"}


def test_a_group_that_waits_for_a_partition_in_a_failed_directory_is_explained() -> None:
    world = broken(ONLY)
    world.groups = [group for group in default_world().groups if group.name == "fraud-check"]
    _, found = watched([ONLY], told=True, world=world)
    assert named(found, K.GROUP_BLOCKED, "fraud-check").explained_by == (DIR_4,)


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


MINUTE_MS, HOUR_MS = 60_000, 3_600_000


def filling(*usable: int, every_s: int = 30, broker: int = 4, state: str = "up") -> View:
    """The view after a broker told every 30 s how many bytes are usable in its directories."""
    world, fold = default_world(), State()
    start = world.tick()
    for number, room in enumerate(usable):
        at_ms = start.observation.ended_ms + number * every_s * 1000
        seen = replace(start.observation, sequence=number, began_ms=at_ms - 100, ended_ms=at_ms)
        states = replace(start.brokers, state=np.full(6, state, object))
        snapshot = replace(start, observation=seen, brokers=states)
        fold, view = step(fold, with_dirs(snapshot, broker, usable=room))
    return view


def left_ms(view: View) -> int:
    """How long it takes until the broker's first directory is full, UNKNOWN if nobody can tell."""
    full_ms = int(view.brokers.full_ms[4])
    return full_ms if full_ms == UNKNOWN else full_ms - view.snapshot.observation.ended_ms


def test_when_a_directory_is_full_follows_from_how_fast_its_room_shrinks() -> None:
    gb = 1_000_000_000
    view = filling(*(100 * gb - number * gb for number in range(11)))
    assert left_ms(view) == 90 * MINUTE_MS // 2
    assert brokers.log_dirs(view.brokers, 4, view.snapshot.observation.ended_ms) == "log dir full in ≈ 45 m"
    assert brokers.log_dirs(view.brokers, 3, view.snapshot.observation.ended_ms) == ""
    assert f'"full_ms":{int(view.brokers.full_ms[4])}' in document(view)


def test_only_the_last_ten_minutes_count() -> None:
    gb = 1_000_000_000
    quick = [1_000 * gb - 20 * number * gb for number in range(20)]
    slow = [quick[-1] - number * gb for number in range(1, 25)]
    assert left_ms(filling(*quick, *slow)) == slow[-1] // gb * 30_000


@pytest.mark.parametrize(
    "usable",
    [
        (100, 90, 80, 70),  # only 90 s
        (100, 100, 100, 100, 100, 100),
        (90, 80, 70, 60, 70, 95),  # segments were deleted
        (10**12, 10**12 - 1, 10**12 - 1, 10**12 - 2, 10**12 - 2, 10**12 - 3),  # in many years
    ],
)
def test_nothing_is_said_of_a_directory_that_does_not_fill_or_of_which_too_little_is_known(
    usable: tuple[int, ...],
) -> None:
    view = filling(*usable)
    assert left_ms(view) == UNKNOWN and '"full_ms":null' in document(view)


def test_nothing_is_forecast_for_a_broker_that_is_not_up() -> None:
    rooms = [100 - number for number in range(11)]
    assert left_ms(filling(*rooms)) != UNKNOWN
    assert left_ms(filling(*rooms, state="silent")) == UNKNOWN


def test_a_resized_volume_starts_again() -> None:
    table = filling(100).snapshot.log_dirs
    rooms, then = follow({}, empty(LogDirs), table), table
    for minute in range(1, 4):
        total = table.total_bytes * (2 if minute == 3 else 1)
        now = replace(
            table, usable_bytes=table.usable_bytes - minute, total_bytes=total,
            received_ms=table.received_ms + minute * MINUTE_MS,
        )  # fmt: skip
        rooms, then = follow(rooms, then, now), now
    assert [len(readings) for readings in rooms.values()] == [1, 1]


def test_a_forecast_goes_on_after_a_broker_was_away() -> None:
    """Its directories are not known meanwhile."""
    table = filling(100).snapshot.log_dirs

    def told(minute: int) -> LogDirs:
        return replace(
            table,
            usable_bytes=table.usable_bytes - minute,
            received_ms=table.received_ms + minute * MINUTE_MS,
        )

    rooms = follow({}, empty(LogDirs), told(0))
    rooms = follow(rooms, told(0), empty(LogDirs))
    rooms = follow(rooms, empty(LogDirs), told(2))
    assert [len(readings) for readings in rooms.values()] == [2, 2]
    assert full_ms(rooms, told(2), int(told(2).received_ms[0])).min() > 0
    other = replace(told(30), broker=table.broker + 1)
    rooms = follow(follow(rooms, told(2), empty(LogDirs)), empty(LogDirs), other)
    assert {broker for broker, _ in rooms} == {5}, "one that stays away is forgotten"


def test_the_broker_has_a_mark_and_its_directories_are_in_the_document() -> None:
    view, _ = watched([ONLY], told=True)
    now_ms = view.snapshot.observation.ended_ms
    assert brokers.log_dirs(view.brokers, 4, now_ms) == "1 of 2 log dirs offline"
    assert brokers.state(view.snapshot.brokers, view.brokers, 4, now_ms).text == "dir failed"
    assert view.brokers.severity[4] == Severity.RISK and view.brokers.severity[3] == Severity.CALM
    good, failed = document_of(view).brokers[4].log_dirs
    assert (good.path, good.error, good.total_bytes) == (GOOD, None, TOTAL)
    assert failed.error is not None and failed.error.text == "KAFKA_STORAGE_ERROR"
    assert (failed.total_bytes, failed.usable_bytes, failed.full_ms) == (None, None, None)
    assert document_of(view).brokers[3].log_dirs == []


def test_the_broker_s_screen_says_when_a_directory_is_full() -> None:
    told = DirectoriesAnswer(
        DirectoriesRequest(4), (Directory(GOOD, total_bytes=TOTAL, usable_bytes=TOTAL // 2),)
    )
    for left, said in ((3 * HOUR_MS, "full in ≈ 3 h"), (0, "full any moment now"), (UNKNOWN, "")):
        details = BrokerDetails(told, full_ms={GOOD: left} if left != UNKNOWN else {})
        (shown,) = detail_lines(details, 200, 0, False, 0)
        assert content(shown).strip().endswith(said or "500 GB of 1.0 TB free")
