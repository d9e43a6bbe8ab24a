"""The judge finds every lie in made-up frames, and nothing in honest ones."""

from dataclasses import replace

import pytest

from kview.model.states import GroupType
from tests.truth.frames import CheckSaid, Frame, GroupSaid, Said
from tests.truth.judge import Kind, differences
from tests.truth.log import Deed, Held, Joined, Probe, Track, TruthLog
from tests.truth.made_up import IDLER, KEEPER, TOPIC, at, crashed, frame, log
from tests.truth.report import share, table
from tests.truth.schedule import Do
from tests.truth.truth import Truth

SILENT = (Said("brokers_silent", "risk", (1,)), Said("fencing_due", "risk", (1,)))
FENCED = (Said("brokers_fenced", "warn", (1,)), Said("under_replicated", "warn"))


def kinds(truth: TruthLog, *frames: Frame) -> set[Kind]:
    return {one.kind for one in differences(frames, Truth(truth))}


def while_silent(second: float, **other: object) -> Frame:
    values: dict[str, object] = {
        "brokers": {0: "up", 1: "silent", 2: "up"},
        "badge": "▲ 2 of 3 answer",
        "badge_is_green": False,
        "groups": {KEEPER: GroupSaid("blocked"), IDLER: GroupSaid("unknown")},
    }
    return frame(**{"second": second, "severity": "risk", "findings": SILENT, **values, **other})  # type: ignore[arg-type]


def while_fenced(second: float, **other: object) -> Frame:
    values: dict[str, object] = {"brokers": {0: "up", 1: "fenced", 2: "up"}}
    return frame(second, "warn", FENCED, **{**values, **other})


def test_a_calm_run_told_as_it_is() -> None:
    assert kinds(log(), *(frame(second) for second in range(5, 50))) == set()


def test_a_crash_told_as_it_is() -> None:
    frames = [
        *(frame(second) for second in range(5, 11)),
        *(while_silent(second) for second in range(11, 18)),
        *(while_fenced(second) for second in range(19, 33)),
        while_fenced(34, brokers={0: "up", 1: "starting", 2: "up"}),
        *(frame(second) for second in range(37, 50)),
    ]
    assert kinds(crashed(), *frames) == set()
    # One interval of tolerance on both sides, no more:
    assert kinds(crashed(), while_silent(18.9)) == set()
    assert Kind.BROKER_STATE in kinds(crashed(), while_silent(19.5))
    assert Kind.BROKER_STATE not in kinds(crashed(), frame(10.9))
    assert Kind.BROKER_STATE in kinds(crashed(), frame(11.2))


def test_a_broker_that_has_just_stopped_may_be_late_before_it_is_silent() -> None:
    late = (Said("brokers_late", "warn", (1,)),)
    shown: dict[str, object] = {
        "brokers": {0: "up", 1: "late", 2: "up"},
        "severity": "warn",
        "findings": late,
    }
    assert kinds(crashed(), while_silent(11.5, **shown)) == set()
    assert kinds(crashed(), while_silent(14, **shown)) == {Kind.SEVERITY_LOW}
    healthy = frame(5, "warn", late, brokers={0: "up", 1: "late", 2: "up"})
    assert {Kind.BROKER_STATE, Kind.BROKER_NAMED, Kind.SEVERITY_HIGH} <= kinds(log(), healthy)


def test_a_broker_that_is_red_while_it_returns() -> None:
    red = while_silent(35, silent_events=((at(36.5), (1,)),))
    found = kinds(crashed(), red)
    assert {Kind.BROKER_STATE, Kind.BROKER_NAMED, Kind.SEVERITY_HIGH, Kind.EVENT} <= found
    assert kinds(crashed(), while_silent(14, silent_events=((at(11), (1,)),))) == set()


def test_a_crash_that_is_not_told() -> None:
    found = kinds(crashed(), frame(14))
    assert {Kind.BROKER_STATE, Kind.BROKER_MISSING, Kind.SEVERITY_LOW, Kind.BADGE} <= found
    silent = {KEEPER: GroupSaid("ok"), IDLER: GroupSaid("unknown")}
    assert Kind.GROUP_OK in kinds(crashed(), while_silent(17, groups=silent))
    marked = {KEEPER: GroupSaid("ok", age_ms=7_000, is_old_verdict=True), IDLER: GroupSaid("unknown")}
    assert kinds(crashed(), while_silent(17, groups=marked)) == set()


def test_the_wrong_broker_and_no_broker() -> None:
    wrong = while_silent(14, brokers={0: "up", 1: "up", 2: "silent"})
    other = replace(wrong, findings=(Said("brokers_silent", "risk", (2,)),))
    assert {Kind.BROKER_NAMED, Kind.BROKER_MISSING, Kind.BROKER_STATE} <= kinds(crashed(), other)
    nobody = while_silent(14, findings=(Said("under_replicated", "risk"),))
    assert kinds(crashed(), nobody) == {Kind.BROKER_MISSING}


@pytest.mark.parametrize(
    ("shown", "kind"),
    [
        (frame(60, badge_is_green=True, ended_ms=at(57), began_ms=at(56.9)), Kind.BADGE),
        (frame(30, "warn", (Said("under_replicated", "warn"),)), Kind.SEVERITY_HIGH),
        (frame(30, groups={KEEPER: GroupSaid("ok")}), Kind.GROUP_GONE),
        (frame(30, groups={KEEPER: GroupSaid("blocked"), IDLER: GroupSaid("ok")}), Kind.GROUP_ALARM),
        (frame(30, groups={KEEPER: GroupSaid("stopped"), IDLER: GroupSaid("ok")}), Kind.GROUP_ALARM),
        (frame(30, groups={KEEPER: GroupSaid("stuck"), IDLER: GroupSaid("ok")}), Kind.GROUP_ALARM),
        (frame(30, groups={KEEPER: GroupSaid("ahead_of_log"), IDLER: GroupSaid("ok")}), Kind.GROUP_ALARM),
        (frame(30, groups={KEEPER: GroupSaid("ok", -400), IDLER: GroupSaid("ok")}), Kind.LAG),
        (frame(30, groups={KEEPER: GroupSaid("ok", 900), IDLER: GroupSaid("ok")}), Kind.LAG),
        (frame(30, groups={KEEPER: GroupSaid("ok", 0, read_rate=900.0), IDLER: GroupSaid("ok")}), Kind.RATE),
        (frame(30, "risk", (Said("records_lost", "risk", group=KEEPER),)), Kind.LOSS_WRONG),
        (frame(30, "warn", (Said("brokers_slow", "warn", (2,)),)), Kind.BROKER_NAMED),
    ],
)  # fmt: skip
def test_a_healthy_cluster_slandered_or_figures_made_up(shown: Frame, kind: Kind) -> None:
    assert kind in kinds(log(), shown)


def test_a_group_that_stands_still_is_not_ok_and_not_all_is_well() -> None:
    behind = {KEEPER: GroupSaid("ok", 0), IDLER: GroupSaid("ok", 400)}
    assert kinds(log(), frame(80, groups=behind)) == {Kind.GROUP_OK, Kind.SEVERITY_LOW}
    told = {KEEPER: GroupSaid("ok", 0), IDLER: GroupSaid("stuck", 400)}
    assert kinds(log(), frame(80, "warn", (Said("group", "warn", group=IDLER),), groups=told)) == set()
    falling = {KEEPER: GroupSaid("ok", 0), IDLER: GroupSaid("stuck", 20)}
    assert Kind.LAG in kinds(log(), frame(95, "warn", (Said("group", "warn", group=IDLER),), groups=falling))


def test_a_group_without_members_must_be_called_stopped_soon() -> None:
    truth = log()
    truth.members[IDLER].add(at(41), 0)
    told = (Said("group", "warn", group=IDLER),)
    shown = {KEEPER: GroupSaid("ok", 0), IDLER: GroupSaid("ok", 100)}
    assert kinds(truth, frame(50, groups=shown)) == set()
    assert kinds(truth, frame(60, groups=shown)) == {Kind.GROUP_OK, Kind.SEVERITY_LOW}
    stopped = {KEEPER: GroupSaid("ok", 0), IDLER: GroupSaid("stopped", 200)}
    assert kinds(truth, frame(60, "warn", told, groups=stopped)) == set()


def test_records_that_were_deleted_must_be_said_for_a_while() -> None:
    truth = log()
    truth.deeds.append(Deed(at(50), Do.DELETE, group=KEEPER, count=30))
    said = (Said("records_lost", "risk", group=KEEPER),)
    assert Kind.LOSS_MISSING in kinds(truth, frame(56))
    assert Kind.LOSS_MISSING not in kinds(truth, frame(56, "risk", said))
    assert Kind.LOSS_WRONG in kinds(truth, frame(45, "risk", said))


def test_what_only_kview_cannot_reach_blocks_nobody() -> None:
    truth = log()
    truth.deeds = [Deed(at(10), Do.CUT, 1), Deed(at(40), Do.MEND, 1)]
    shown = {"brokers": {0: "up", 1: "silent", 2: "up"}, "badge_is_green": False}
    alone = (Said("brokers_silent", "warn", (1,)), Said("quorum_hears_brokers", "warn", (1,)))
    groups = {KEEPER: GroupSaid("unknown"), IDLER: GroupSaid("unknown")}
    assert kinds(truth, frame(14, "risk", SILENT[:1], groups=groups, **shown)) == set()
    assert kinds(truth, frame(30, "warn", alone, groups=groups, **shown)) == set()
    blocked = {KEEPER: GroupSaid("blocked"), IDLER: GroupSaid("unknown")}
    red = frame(30, "risk", alone, groups=blocked, **shown)
    assert kinds(truth, red) == {Kind.SEVERITY_HIGH, Kind.GROUP_ALARM}


def test_a_slow_broker_must_be_named_once_our_own_requests_show_it() -> None:
    truth = log()
    truth.deeds = [Deed(at(5), Do.DUTY, 1, until_ms=at(30), stopped_ms=300)]
    said = (Said("brokers_slow", "warn", (1,)),)
    assert kinds(truth, frame(27), frame(27, "warn", said)) == set()
    assert kinds(truth, frame(33, "warn", said), frame(33)) == set()
    assert Kind.BROKER_NAMED in kinds(truth, frame(37, "warn", said))
    truth.probes[1] = [Probe(one.sent_ms, 150.0) for one in truth.probes[1] if one.sent_ms >= at(5)]
    assert kinds(truth, frame(27)) == {Kind.SEVERITY_LOW, Kind.BROKER_MISSING}
    assert kinds(truth, frame(27, "warn", said)) == set()


def test_a_lost_controller_must_be_said_within_three_seconds() -> None:
    truth = log()
    truth.deeds = [Deed(at(20), Do.KILL, 101)]
    assert kinds(truth, frame(23.5)) == set()
    assert kinds(truth, frame(24.5)) == {Kind.SEVERITY_LOW}
    assert kinds(truth, frame(24.5, "risk", (Said("no_controller", "risk"),))) == set()


def test_a_controller_that_starts_is_missed_until_it_has_joined_the_quorum() -> None:
    truth = log()
    truth.deeds = [Deed(at(20), Do.KILL, 101), Deed(at(40), Do.START, 101)]
    lost = frame(55, "risk", (Said("no_controller", "risk"),))
    assert kinds(truth, lost) == kinds(truth, frame(55)) == set()
    truth.joined = [Joined(at(1), 101), Joined(at(53), 101)]
    assert kinds(truth, lost) == set()
    truth.joined = [Joined(at(1), 101), Joined(at(50), 101)]
    assert kinds(truth, lost) == {Kind.SEVERITY_HIGH}
    assert kinds(truth, frame(55)) == set()


def test_a_coordinator_that_is_not_the_one() -> None:
    def shown(second: float, coordinator: int) -> Frame:
        said = {KEEPER: GroupSaid("ok", 0, coordinator=coordinator), IDLER: GroupSaid("ok", 0)}
        return while_fenced(second, groups=said)

    assert kinds(crashed(), shown(20, 1), shown(25, 2)) == set()
    assert kinds(crashed(), shown(25, 1), shown(19, 0)) == {Kind.COORDINATOR}


def test_nobody_can_tell_that_a_broker_was_fenced_if_none_runs() -> None:
    truth = crashed()
    truth.deeds += [Deed(at(11), Do.HANG, 0), Deed(at(11), Do.HANG, 2), Deed(at(26), Do.GO_ON, 0)]
    said = (Said("no_broker_answers", "risk"),)
    values: dict[str, object] = {"brokers": dict.fromkeys((0, 1, 2), "silent"), "badge_is_green": False}
    values["groups"] = {KEEPER: GroupSaid("unknown"), IDLER: GroupSaid("unknown")}
    assert kinds(truth, frame(21, "risk", said, **values)) == set()
    later = differences([frame(28, "risk", said, **values)], Truth(truth))
    assert {one.subject for one in later if one.kind is Kind.BROKER_STATE} == {"broker 0", "broker 1"}


def test_the_table_counts_seconds_and_gives_examples() -> None:
    frames = [frame(second) for second in range(10, 20)]
    truth = crashed()
    found = differences(frames, Truth(truth))
    assert share(frames, found) == 0.9
    text = table("made up", frames, found, truth.deeds)
    assert "made up: 9 of 10 seconds differ from the truth (90.0%)" in text
    assert "broker 1: up · true: silent" in text


SHARED = "tasks"
MOVED = ("archive", 0)


def other_things() -> TruthLog:
    """The truth of a run with a share group, a transaction from 10 s to 90 s that a group waits for from the
    start, a move from 20 s to 40 s, and a directory of broker 1 that fails at 50 s."""
    made = log()
    made.kinds = {SHARED: GroupType.SHARE, IDLER: GroupType.CLASSIC}
    made.members[SHARED], made.read[SHARED] = Track([at(0)], [1]), replace(made.read[KEEPER])
    made.transactions = [Held("ledger-1", TOPIC, 600_000, at(10), at(90))]
    made.deeds = [Deed(at(20), Do.MOVE, 2), Deed(at(50), Do.LOSE_DIR, 1)]
    made.placed = [
        replace(
            one,
            moving=frozenset([MOVED] if at(20) <= one.at_ms < at(40) else []),
            short=frozenset([TOPIC] if one.at_ms >= at(50) else []),
            offline=frozenset([1] if one.at_ms >= at(50) else []),
        )
        for one in made.placed
    ]
    return made


def shown(second: float, severity: str = "calm", findings: tuple[Said, ...] = (), **other: object) -> Frame:
    groups = {
        KEEPER: GroupSaid("ok", 0, read_rate=10.0),
        IDLER: GroupSaid("ok", 0, read_rate=10.0),
        SHARED: GroupSaid("ok", None, type="share", members=1, state="Stable"),
    }
    return frame(second, severity, findings, **{"groups": groups, **other})


def with_group(group: str, **other: object) -> dict[str, GroupSaid]:
    said = dict(shown(1).groups)
    return {**said, group: replace(said[group], **other)}  # type: ignore[arg-type]


def test_a_share_group_falls_behind_if_it_is_given_less_than_is_written() -> None:
    """It is given half of what is written from 60 s on, and has lost 15 s of records at 90 s."""
    truth = other_things()
    seconds = range(100)
    given = [1 + 10 * second if second < 60 else 601 + 5 * (second - 60) for second in seconds]
    truth.read[SHARED] = Track([at(second) + 1 for second in seconds], given)
    behind = with_group(SHARED, verdict="falling_behind")
    told = {
        second: {
            one.kind
            for one in differences([shown(second, groups=behind)], Truth(truth))
            if one.subject == SHARED
        }
        for second in (30, 58, 85)
    }
    assert told == {30: {Kind.GROUP_ALARM}, 58: {Kind.GROUP_ALARM}, 85: set()}
    (low,) = [one for one in differences([shown(98)], Truth(truth)) if one.subject == SHARED]
    assert low.kind is Kind.GROUP_OK


@pytest.mark.parametrize("second", [15, 30])
def test_a_group_may_be_listed_as_empty_after_its_member_left_for_a_moment(second: float) -> None:
    """A reset takes a tenth of a second, and its consumer joins again when its coordinator lets it."""
    truth = log()
    for moment, value in ((14.21, 0), (14.33, 1)):
        truth.members[KEEPER].add(at(moment), value)
    empty = {KEEPER: GroupSaid("ok", 0, state="Empty", members=0), IDLER: GroupSaid("ok", 0, members=1)}
    assert (Kind.MEMBERS in kinds(truth, frame(second, groups=empty))) is (second == 30)


OPEN = (Said("open_transaction", "warn", transaction="ledger-1"),)
HANGING = (Said("hanging_transaction", "risk", transaction="ledger-1"),)
DIR = (Said("log_dir_offline", "risk", brokers=(1,)),)


@pytest.mark.parametrize(
    ("told", "kind"),
    [
        (shown(15, groups=with_group(SHARED, type="classic")), Kind.GROUP_KIND),
        (shown(15, groups=with_group(SHARED, members=0)), Kind.MEMBERS),
        (shown(15, groups=with_group(SHARED, state="Empty")), Kind.MEMBERS),
        (shown(15, groups=with_group(SHARED, read_rate=0.0)), Kind.RATE),
        (shown(15, groups=with_group(SHARED, verdict="stopped")), Kind.GROUP_ALARM),
        (shown(15, groups=with_group(KEEPER, verdict="blocked_by_transaction")), Kind.GROUP_ALARM),
        (shown(30, groups=with_group(IDLER, verdict="stuck")), Kind.GROUP_ALARM),
        (shown(30, "warn", OPEN), Kind.TRANSACTION),
        (shown(85, "risk", HANGING), Kind.TRANSACTION),
        (shown(85, "warn", (Said("open_transaction", "warn", transaction="another"),)), Kind.TRANSACTION),
        (shown(96, "warn", OPEN), Kind.TRANSACTION),
        (shown(86, statuses={TOPIC: "under_replicated"}), Kind.TRANSACTION_MISSING),
        (shown(30, statuses={MOVED: "under_replicated"}), Kind.STATUS),
        (shown(46, statuses={MOVED: "reassigning"}), Kind.STATUS),
        (shown(30), Kind.MOVE_MISSING),
        (shown(30, findings=(Said("throttle_left", "calm"),)), Kind.THROTTLE),
        (shown(45, "risk", DIR), Kind.DISK),
        (shown(70), Kind.DISK_MISSING),
        (shown(30, checks=(CheckSaid("broker_silent", "1", "broker 1 …"),)), Kind.CHECK),
        (shown(30, checks=(CheckSaid("group_stuck", KEEPER, "stuck"),)), Kind.CHECK),
        (shown(30, checks=(CheckSaid("under_replicated", "archive", "…"),)), Kind.CHECK),
        (shown(30, checks=(CheckSaid("open_transaction", "ledger-1", "…"),)), Kind.CHECK),
        (shown(45, checks=(CheckSaid("log_dir_offline", "1", "…"),)), Kind.CHECK),
        (shown(70, checks=(CheckSaid("log_dir_offline", "1", "… Start broker 1"),)), Kind.ADVICE),
    ],
    ids=lambda value: str(value) if isinstance(value, Kind) else "",
)
def test_groups_transactions_moves_and_disks_that_are_not_told_as_they_are(told: Frame, kind: Kind) -> None:
    assert kind in kinds(other_things(), told)


def test_groups_transactions_moves_and_disks_told_as_they_are() -> None:
    short: dict[str, object] = {"statuses": {TOPIC: "under_replicated"}}
    frames = [
        shown(15),
        shown(25, statuses={MOVED: "reassigning"}),
        shown(65, "risk", DIR, **short),
        shown(72, "risk", DIR, **short, checks=(CheckSaid("log_dir_offline", "1", "replace its disk"),)),
        shown(85, "risk", (*DIR, *OPEN), **short, groups=with_group(IDLER, verdict="blocked_by_transaction")),
        shown(91, "risk", (*DIR, *OPEN), **short),
    ]
    new = {kind for kind in Kind if list(Kind).index(kind) >= list(Kind).index(Kind.GROUP_KIND)}
    found = kinds(other_things(), *frames)
    assert not found & {*new, Kind.GROUP_ALARM}
