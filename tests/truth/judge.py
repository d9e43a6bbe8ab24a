"""Compares what stood on the screen with the truth. Pure.

A frame's claims must have been true at some instant from one interval before its observation began to one
interval after it ended; how old the observation is when the screen is read is the badge's affair.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from kview.model.events import Severity
from kview.model.states import GroupType
from tests.truth.broker_truth import TROUBLED, Condition
from tests.truth.frames import INTERVAL_S, Frame, GroupSaid
from tests.truth.group_truth import LOSS_STAYS_MS
from tests.truth.truth import ORDER, Truth

INTERVAL_MS = round(INTERVAL_S * 1000)
STRIDE_MS = 100
NOTICED_MS = 1_500
"""A broker that has just stopped may be late (yellow) for this long before it is silent (red), because
nobody can tell a broker that hangs from one that pauses any sooner."""
FRESH_MS = 3_000
"""A green badge over older figures than this is a lie."""
JOIN_MS = 5_000
"""A consumer that has started is a member this much later at most."""
LOSS_SAID_MS = 3_000
"""How soon a loss must be said. It must stay for LOSS_STAYS_MS."""

STEADY = frozenset({Condition.UP, Condition.RECOVERING, Condition.LABOURING})
NOT_ANSWERING = frozenset({Condition.SILENT, Condition.UNTOLD, Condition.UNCLEAR, Condition.HIDDEN})
SHOWN: dict[str, frozenset[Condition]] = {
    "up": STEADY | {Condition.UNSTEADY},
    "late": NOT_ANSWERING | {Condition.UNSTEADY, Condition.RECOVERING, Condition.LABOURING},
    "slow": frozenset({Condition.UNSTEADY, Condition.RECOVERING, Condition.LABOURING}),
    "starting": frozenset({Condition.STARTING, Condition.UNCLEAR, Condition.HIDDEN, Condition.UNSTEADY}),
    "silent": NOT_ANSWERING | {Condition.LABOURING},
    "fenced": frozenset({Condition.FENCED, Condition.UNTOLD}),
    "gone": frozenset({Condition.FENCED, Condition.UNTOLD}),
}
"""The conditions of which each state in a broker's row is true."""

NAMED: dict[str, frozenset[Condition]] = {
    "brokers_silent": SHOWN["silent"],
    "no_broker_answers": NOT_ANSWERING,
    "fencing_due": frozenset({Condition.SILENT, Condition.UNTOLD, Condition.UNCLEAR, Condition.LABOURING}),
    "brokers_fenced": SHOWN["fenced"],
    "brokers_gone": SHOWN["gone"],
    "brokers_starting": SHOWN["starting"],
    "brokers_slow": SHOWN["slow"],
    "brokers_late": SHOWN["late"],
    "leads_nothing": frozenset(Condition),
    "log_dir_offline": frozenset(Condition),
    "throttle_left": frozenset(Condition),
    "quorum_hears_brokers": SHOWN["silent"] | {Condition.UNSTEADY},
}
"""The same for the brokers that a finding names. A broker that leads nothing may be well. Directories and
throttles are judged by themselves. Other kinds may name any broker that is in trouble."""

TRANSACTIONS = ("open_transaction", "hanging_transaction")
SHORT_OF_REPLICAS = ("under_replicated", "at_min_isr", "under_min_isr")
CHECKS_OF_BROKERS = {
    "broker_silent": SHOWN["silent"] | {Condition.UNSTEADY},
    "broker_fenced": SHOWN["fenced"],
    "broker_gone": SHOWN["gone"],
    "broker_slow": SHOWN["slow"] | NOT_ANSWERING,
}
CHECKS_OF_GROUPS = {
    "group_stuck": "stuck",
    "group_stopped": "stopped",
    "group_falling_behind": "falling_behind",
    "group_rewound": "rewound",
    "group_blocked": "blocked",
    "group_blocked_by_transaction": "blocked_by_transaction",
    "group_ahead_of_log": "ahead_of_log",
}
"""The verdict that each finding of a check repeats."""
NOBODY = ("Empty", "Dead")
LISTED_MS = 12_000
"""How soon a group must be listed, and its members be known, after they joined or left."""
TO_START = re.compile(r"[Ss]tart broker (\d+)")


class Kind(StrEnum):
    """What can differ."""

    BROKER_STATE = "state of a broker"
    BROKER_NAMED = "broker named that is not so"
    BROKER_MISSING = "broker in trouble not named"
    SEVERITY_HIGH = "severity too high"
    SEVERITY_LOW = "severity too low"
    GROUP_OK = "group ok that is not"
    GROUP_ALARM = "group in trouble that is not"
    COORDINATOR = "coordinator"
    GROUP_GONE = "group missing"
    LAG = "lag"
    RATE = "read rate"
    LOSS_MISSING = "records lost not said"
    LOSS_WRONG = "records lost that were not"
    BADGE = "badge green"
    EVENT = "event that did not happen"
    GROUP_KIND = "kind of a group"
    MEMBERS = "members of a group"
    TRANSACTION = "transaction that is not so"
    TRANSACTION_MISSING = "transaction not said"
    STATUS = "status of a partition"
    MOVE_MISSING = "reassignment not said"
    THROTTLE = "throttle that was not left behind"
    DISK = "log directory that is well"
    DISK_MISSING = "log directory not said"
    CHECK = "finding of a check"
    ADVICE = "advice that does not help"


@dataclass(frozen=True, slots=True)
class Difference:
    """One claim of one frame that the truth does not bear out."""

    at_ms: int
    kind: Kind
    subject: str
    shown: str
    true: str


def differences(frames: Sequence[Frame], truth: Truth) -> list[Difference]:
    """Return everything that differs, in order of time."""
    return [one for frame in frames for one in of_frame(frame, truth)]


def of_frame(frame: Frame, truth: Truth) -> Iterator[Difference]:
    """Yield what differs in one frame."""
    window = range(frame.began_ms - INTERVAL_MS, frame.ended_ms + INTERVAL_MS + 1, STRIDE_MS)
    conditions = [truth.brokers.all(at_ms) for at_ms in window]
    seen = {broker: {one[broker] for one in conditions} for broker in truth.log.brokers}
    yield from _states(frame, seen)
    yield from _named(frame, seen)
    yield from _missing(frame, truth, window, seen)
    yield from _severity(frame, truth, window)
    for group in truth.groups.names:
        yield from _group(frame, truth, window, group)
        yield from _kind(frame, truth, window, group)
    yield from _transactions(frame, truth, window)
    yield from _statuses(frame, truth, window)
    yield from _disks(frame, truth, window, seen)
    yield from _checks(frame, truth, window, seen)
    yield from _losses(frame, truth, window)
    yield from _badge(frame, truth)
    yield from _events(frame, truth)


def _states(frame: Frame, seen: dict[int, set[Condition]]) -> Iterator[Difference]:
    for broker, true in seen.items():
        shown = frame.brokers.get(broker, "no row")
        if not SHOWN.get(shown, frozenset()) & true:
            yield _difference(frame, Kind.BROKER_STATE, f"broker {broker}", shown, _words(true))


def _named(frame: Frame, seen: dict[int, set[Condition]]) -> Iterator[Difference]:
    for finding in frame.findings:
        for broker in finding.brokers:
            true = seen.get(broker, set())
            if not NAMED.get(finding.kind, TROUBLED) & true:
                yield _difference(frame, Kind.BROKER_NAMED, f"broker {broker}", finding.kind, _words(true))


def _missing(
    frame: Frame, truth: Truth, window: range, seen: dict[int, set[Condition]]
) -> Iterator[Difference]:
    if any(finding.kind == "no_broker_answers" for finding in frame.findings):
        return
    named = {broker for finding in frame.findings for broker in finding.brokers}
    for broker, true in seen.items():
        slow = true == {Condition.UNSTEADY} and all(
            truth.brokers.slow_for_long(broker, at_ms) for at_ms in window[::10]
        )
        if broker not in named and (slow or not true & {*STEADY, Condition.UNSTEADY}):
            shown = ", ".join(finding.kind for finding in frame.findings)
            yield _difference(frame, Kind.BROKER_MISSING, f"broker {broker}", shown, _words(true))


def _severity(frame: Frame, truth: Truth, window: range) -> Iterator[Difference]:
    late = any(finding.kind == "brokers_late" for finding in frame.findings)
    since = range(window.start - NOTICED_MS, window.stop, window.step) if late else window
    bounds = [truth.severity(at_ms) for at_ms in since[::3]]
    least = min(ORDER.index(low) for low, _ in bounds)
    most = max(ORDER.index(high) for _, high in bounds)
    shown = ORDER.index(Severity(frame.severity))
    said = ", ".join(dict.fromkeys(finding.kind for finding in frame.findings))
    if shown > most:
        yield _difference(
            frame, Kind.SEVERITY_HIGH, "headline", f"{frame.severity}: {said}", f"at most {ORDER[most].value}"
        )
    elif shown < least:
        true = [truth.groups.trouble(group, frame.ended_ms) and group for group in truth.groups.names]
        about = ", ".join(filter(None, true)) or "the cluster"
        yield _difference(
            frame,
            Kind.SEVERITY_LOW,
            "headline",
            f"{frame.severity}: {said}",
            f"at least {ORDER[least].value} ({about})",
        )


def _group(frame: Frame, truth: Truth, window: range, group: str) -> Iterator[Difference]:
    said = frame.groups.get(group)
    if said is None:
        if truth.groups.lag(group, window[0] - 2 * INTERVAL_MS) is not None:
            yield _difference(frame, Kind.GROUP_GONE, group, "no row", "it has committed")
        return
    moments = window[::3]

    if (
        said.age_ms is not None and said.age_ms > FRESH_MS
    ):  # the row says how old it is, and is right if it was
        moments = range(moments.start - said.age_ms, moments.stop - said.age_ms, moments.step)
    verdict = said.verdict
    if verdict == "ok":
        hidden = [truth.groups.unseen(group, at_ms) for at_ms in window[::3]]
        if all(hidden) and not said.is_old_verdict:
            yield _difference(frame, Kind.GROUP_OK, group, "ok", hidden[-1])
        reasons = [truth.groups.trouble(group, at_ms) for at_ms in moments]
        if all(reasons):
            yield _difference(frame, Kind.GROUP_OK, group, "ok", reasons[-1])
    if wrong := _false_alarm(verdict, group, truth, moments):
        yield _difference(frame, Kind.GROUP_ALARM, group, verdict, wrong)
    true = {truth.groups.coordinator(at_ms) for at_ms in (window[0] - INTERVAL_MS, *window)}
    true |= {truth.groups.is_to_coordinate(at_ms) for at_ms in window[::3]}
    if said.coordinator is not None and said.coordinator not in true:
        yield _difference(frame, Kind.COORDINATOR, group, str(said.coordinator), " or ".join(map(str, true)))
    yield from _figures(frame, truth, moments, group, said)


def _false_alarm(verdict: str, group: str, truth: Truth, moments: range) -> str:
    """Return why a verdict that raises an alarm is untrue, '' if it may be true."""
    early = range(moments[0] - INTERVAL_MS, moments[-1] + 1, 3 * STRIDE_MS)
    match verdict:
        case "blocked":
            return (
                ""
                if any(truth.groups.may_be_blocked(group, at_ms) for at_ms in early)
                else "every leader answers its followers"
            )
        case "blocked_by_transaction":
            held = any(truth.groups.may_be_held(group, at_ms) for at_ms in early)
            return "" if held else "no transaction has been open for a minute"
        case "stopped":
            joined = range(moments[0] - JOIN_MS, moments[-1] + 1, 3 * STRIDE_MS)
            alive = all(truth.groups.has_member(group, at_ms) for at_ms in joined)
            return "it has a member" if alive else ""
        case "ahead_of_log":
            return (
                "" if any(truth.groups.beyond_end(group, at_ms) for at_ms in early) else "it is below the end"
            )
        case "falling_behind" | "stuck" | "rewound":
            if all(truth.groups.waits(group, at_ms) for at_ms in moments):
                return "it waits for a transaction"
            return (
                ""
                if any(truth.groups.may_be_in_trouble(group, at_ms) for at_ms in moments)
                else "it keeps up"
            )
        case _:
            return ""


def _figures(frame: Frame, truth: Truth, moments: range, group: str, said: GroupSaid) -> Iterator[Difference]:
    true = [lag for at_ms in moments if (lag := truth.groups.lag(group, at_ms)) is not None]
    if said.lag is not None and true:
        slack = 200 + 0.2 * max(true)
        low, high = min(true) - slack, max(true) + slack
        steady = all(
            one is Condition.UP
            for at_ms in (moments[0] - 5_000, *moments)
            for one in truth.brokers.all(at_ms).values()
        )
        too_low = said.lag < low and not said.lag_is_bound
        if said.lag < 0 or too_low or (steady and said.lag > high):
            yield _difference(frame, Kind.LAG, group, f"{said.lag:,}", f"{min(true):,} to {max(true):,}")
    rate = truth.groups.read_per_second(group, moments[-1])
    if said.read_rate is not None and said.read_rate > 3 * rate + 20:
        yield _difference(frame, Kind.RATE, group, f"{said.read_rate:,.0f}/s", f"at most {rate:,.0f}/s")


def _losses(frame: Frame, truth: Truth, window: range) -> Iterator[Difference]:
    said = {finding.group for finding in frame.findings if finding.kind == "records_lost"}
    for group in truth.groups.names:
        lost_ms = truth.groups.lost_ms(group, window[-1])
        if lost_ms is None and group in said:
            yield _difference(frame, Kind.LOSS_WRONG, group, "records_lost", "nothing was deleted")
        since_ms = None if lost_ms is None else frame.began_ms - lost_ms
        if since_ms is not None and LOSS_SAID_MS < since_ms < LOSS_STAYS_MS and group not in said:
            shown = ", ".join(dict.fromkeys(finding.kind for finding in frame.findings))
            yield _difference(frame, Kind.LOSS_MISSING, group, shown, "records deleted before it read them")


def _badge(frame: Frame, truth: Truth) -> Iterator[Difference]:
    if not frame.badge_is_green:
        return
    age_ms = frame.at_ms - frame.ended_ms
    if age_ms > FRESH_MS:
        yield _difference(frame, Kind.BADGE, "badge", frame.badge, f"figures {age_ms / 1000:.1f} s old")
    recent = range(frame.began_ms - 2 * INTERVAL_MS, frame.began_ms + 1, STRIDE_MS)
    for broker in truth.log.brokers:
        if all(truth.brokers.condition(broker, at_ms) in NOT_ANSWERING for at_ms in recent):
            true = truth.brokers.condition(broker, frame.began_ms)
            yield _difference(frame, Kind.BADGE, f"broker {broker}", frame.badge, f"it is {true.value}")


def _events(frame: Frame, truth: Truth) -> Iterator[Difference]:
    for at_ms, brokers in frame.silent_events:
        around = range(at_ms - 2 * INTERVAL_MS, at_ms + INTERVAL_MS + 1, STRIDE_MS)
        for broker in brokers:
            true = {truth.brokers.condition(broker, then) for then in around}
            if not true & {*SHOWN["silent"], Condition.UNSTEADY}:
                yield _difference(
                    frame, Kind.EVENT, f"broker {broker}", "event: stopped answering", _words(true)
                )


def _kind(frame: Frame, truth: Truth, window: range, group: str) -> Iterator[Difference]:
    """What a group is, and whether it has members."""
    said, kind = frame.groups.get(group), truth.groups.kind(group)
    reads = truth.groups.had_member(group, window[0] - LISTED_MS, window[-1])
    if said is None:
        if all(reads):
            yield _difference(frame, Kind.GROUP_GONE, group, "no row", f"a {kind} group that reads")
        return
    if said.type not in (kind.value, GroupType.UNKNOWN.value, ""):
        yield _difference(frame, Kind.GROUP_KIND, group, said.type, kind.value)
    shown = f"{said.state}, {said.members} members"
    if kind is GroupType.SIMPLE:
        if said.members:
            yield _difference(frame, Kind.MEMBERS, group, shown, "it never has members")
    elif all(reads) and (said.members == 0 or said.state in NOBODY):
        yield _difference(frame, Kind.MEMBERS, group, shown, "it has a member")
    elif not any(reads) and said.members:
        yield _difference(frame, Kind.MEMBERS, group, shown, "its member has left")
    if all(reads) and kind is GroupType.SHARE and said.read_rate == 0:
        yield _difference(frame, Kind.RATE, group, "reads 0/s", "it reads, and commits nothing")


def _transactions(frame: Frame, truth: Truth, window: range) -> Iterator[Difference]:
    said = [finding for finding in frame.findings if finding.kind in TRANSACTIONS]
    for finding in said:
        yield from _transaction(frame, truth, window, finding.kind, finding.transaction)
    answering = all(one is Condition.UP for one in truth.brokers.all(window[0] - JOIN_MS).values())
    steady = answering and all(one is Condition.UP for one in truth.brokers.all(window[-1]).values())
    if steady and not said and all(map(truth.transactions.blocks, window[::3])):
        yield _difference(frame, Kind.TRANSACTION_MISSING, "ledger", "nothing", "it blocks a group")


def _transaction(frame: Frame, truth: Truth, window: range, kind: str, name: str) -> Iterator[Difference]:
    open_ones = [truth.transactions.may_block(at_ms) for at_ms in window[::3]]
    true = {one.name for one in open_ones if one is not None}
    if kind == "hanging_transaction":
        yield _difference(frame, Kind.TRANSACTION, name, kind, "none hangs")
    elif not true:
        yield _difference(frame, Kind.TRANSACTION, name, kind, "none has been open for a minute")
    elif name and name not in true:
        yield _difference(frame, Kind.TRANSACTION, name, kind, f"it is {' or '.join(true)}")


def _statuses(frame: Frame, truth: Truth, window: range) -> Iterator[Difference]:
    """Whether what is moved is called so, and whether what is called under-replicated lacks a replica."""
    for partition, status in frame.statuses.items():
        wrong = ""
        if status == "reassigning" and not truth.disks.may_be_moving(partition, window):
            wrong = "nothing moves it"
        if status in SHORT_OF_REPLICAS and not truth.disks.may_be_short(partition, window):
            wrong = "every replica that is not being added is in sync"
        if wrong:
            yield _difference(frame, Kind.STATUS, f"{partition[0]}-{partition[1]}", status, wrong)
    for partition in truth.disks.moving(window[-1]):
        if partition not in frame.statuses and truth.disks.is_moving(partition, window):
            yield _difference(frame, Kind.MOVE_MISSING, f"{partition[0]}-{partition[1]}", "ok", "it is moved")
    left = any(finding.kind == "throttle_left" for finding in frame.findings)
    if left and not any(map(truth.disks.throttle_may_be_left, window[::10])):
        yield _difference(frame, Kind.THROTTLE, "throttle", "left behind", "none is set, or something moves")


def _disks(
    frame: Frame, truth: Truth, window: range, seen: dict[int, set[Condition]]
) -> Iterator[Difference]:
    said = {one for finding in frame.findings if finding.kind == "log_dir_offline" for one in finding.brokers}
    for broker, conditions in seen.items():
        lost = any(truth.disks.is_lost(broker, at_ms) for at_ms in (window[0], window[-1]))
        if broker in said and not lost:
            yield _difference(frame, Kind.DISK, f"broker {broker}", "log_dir_offline", "its directories work")
        must = conditions == {Condition.UP} and truth.disks.must_be_lost(broker, window)
        if must and broker not in said:
            shown = ", ".join(finding.kind for finding in frame.findings)
            yield _difference(frame, Kind.DISK_MISSING, f"broker {broker}", shown, "a directory failed")


def _checks(
    frame: Frame, truth: Truth, window: range, seen: dict[int, set[Condition]]
) -> Iterator[Difference]:
    """What `kview check` would say, by the same rules, and what it tells people to do."""
    for said in frame.checks:
        kind, wrong = said.kind, ""
        if kind in CHECKS_OF_BROKERS:
            true = seen.get(int(said.name), set())
            wrong = "" if CHECKS_OF_BROKERS[kind] & true else f"it is {_words(true)}"
        elif kind == "log_dir_offline":
            lost = any(truth.disks.is_lost(int(said.name), at_ms) for at_ms in (window[0], window[-1]))
            wrong = "" if lost else "its directories work"
        elif kind in TRANSACTIONS:
            name = "" if said.name.startswith("producer-") else said.name
            wrong = "".join(one.true for one in _transaction(frame, truth, window, kind, name))
        elif kind in CHECKS_OF_GROUPS and said.name in truth.groups.names:
            wrong = _false_alarm(CHECKS_OF_GROUPS[kind], said.name, truth, window[::3])
        elif kind in SHORT_OF_REPLICAS:
            short = (
                one for placed in truth.disks.between(window[0] - 1_000, window[-1]) for one in placed.short
            )
            wrong = "" if any(topic == said.name for topic, _ in short) else "every replica is in sync"
        if wrong:
            yield _difference(frame, Kind.CHECK, f"{kind} {said.name}", said.sentence, wrong)
        for broker in map(int, TO_START.findall(said.sentence)):
            if seen.get(broker) == {Condition.UP}:
                yield _difference(frame, Kind.ADVICE, f"broker {broker}", said.sentence, "it runs")


def _difference(frame: Frame, kind: Kind, subject: str, shown: str, true: str) -> Difference:
    return Difference(frame.at_ms, kind, subject, shown, true)


def _words(conditions: set[Condition]) -> str:
    return " or ".join(sorted(one.value for one in conditions)) or "unknown"
