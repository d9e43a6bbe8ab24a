"""What a check found, and what it could not judge, as lines: what, where, since when, and what to do."""

from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from kview.derive.view import Reason
from kview.language import directories, failures, findings, nouns, verdicts, words
from kview.model.checks import (
    GROUP_KINDS,
    PARTITION_KINDS,
    CheckFinding,
    CheckKind,
    Key,
    Level,
    NotJudged,
    NotJudgedWhy,
)
from kview.model.failures import FailureKind
from kview.model.findings import FindingKind
from kview.model.states import GroupType
from kview.model.units import UNKNOWN

MOST_NUMBERS = 8
"""The most partitions of a topic that a line lists."""

MOST_NAMES = 3
"""The most topics or groups that a line lists."""

SHORTEST_MS = 1_000
"""Durations below the time between two observations are not said."""

BEFORE = "since before the check"
"""Said instead of a duration if it was already so in the first observation."""

_K = CheckKind


def label(key: Key) -> str:
    """Return a finding's kind and name as --ignore takes them: `offline:audit-log`."""
    kind, name = key
    return f"{kind}:{name}" if name else str(kind)


ALL_IN_JSON = "--format json lists all of them"


def and_alike(findings: Sequence[CheckFinding]) -> str:
    """Return what follows the name of a group that stands for others that do the same, '' for one alone.

    It says how many records all of them have not read, or have lost.
    """
    if len(findings) < 2:
        return ""
    is_loss = findings[0].kind is CheckKind.GROUP_LOST_RECORDS
    sums = [(each.amount, each.is_bound) if is_loss else (each.lag, each.lag_is_bound) for each in findings]
    known = [records for records, _ in sums if records != UNKNOWN]
    is_bound = len(known) < len(sums) or any(is_bound for _, is_bound in sums)
    together = words.at_least(words.plural(sum(known), "record"), is_bound)
    all_of_them = f": {together} {'lost' if is_loss else 'behind'} in all" if sum(known) else ""
    return f", the worst of {words.plural(len(findings), 'group')} like it{all_of_them} ({ALL_IN_JSON})"


def sentence(finding: CheckFinding, now_ms: int) -> str:
    """Return what is wrong, where, since when, and what to do or what explains it, in one line."""
    todo = _explained_by(finding.explained_by) if finding.explained_by else remedy(finding)
    said = ", ".join(filter(None, (what(finding), since(finding, now_ms))))
    return f"{said}. {todo[0].upper()}{todo[1:]}"


def what(finding: CheckFinding) -> str:
    """Return what is wrong, and where."""
    return _WHAT[finding.kind](finding)


def remedy(finding: CheckFinding) -> str:
    """Return what to do about what a check found."""
    return _REMEDIES[finding.kind](finding)


def since(finding: CheckFinding, now_ms: int) -> str:
    """Return for how long it has been so: `for 12 s`, `for ≥ 12 s`, `since before the check`.

    Return '' for a weakness, which has not happened yet, for a group, which says how far behind it is, and
    for what was first seen a moment ago.
    """
    if finding.level is Level.WEAKNESS or finding.kind in GROUP_KINDS:
        return ""
    if finding.since_ms == UNKNOWN:
        return BEFORE
    lasted_ms = now_ms - finding.since_ms
    if lasted_ms < SHORTEST_MS:
        return ""
    return f"for {'≥ ' if finding.since_is_bound else ''}{words.duration(lasted_ms)}"


def _of(finding: CheckFinding) -> str:
    """Return how many of the topic's partitions: `2 of 4 partitions (1, 3)`, `all 4 partitions`."""
    if finding.partition_count == finding.of_partitions:
        return (
            "its only partition"
            if finding.of_partitions == 1
            else f"all {finding.of_partitions:,} partitions"
        )
    numbers = [str(partition) for _, partition in finding.partitions[:MOST_NUMBERS]]
    rest = finding.partition_count - len(numbers)
    more = f" + {rest:,} more" if rest else ""
    total = words.plural(finding.of_partitions, "partition")
    return f"{finding.partition_count:,} of {total} ({', '.join(numbers)}{more})"


def _has(finding: CheckFinding) -> str:
    return f"{_of(finding)} {'has' if finding.partition_count == 1 else 'have'}"


def _is(finding: CheckFinding) -> str:
    return f"{_of(finding)} {'is' if finding.partition_count == 1 else 'are'}"


def _brokers(finding: CheckFinding, otherwise: str = "the brokers of its replicas") -> str:
    return nouns.some_brokers(finding.brokers) if finding.brokers else otherwise


def _out_of_sync(finding: CheckFinding) -> str:
    return f" ({_brokers(finding)} out of sync)" if finding.brokers else ""


def _silent(finding: CheckFinding) -> str:
    if finding.unreached:
        return f"broker {finding.name} does not answer kview, although the cluster still hears from it"
    leads = words.plural(finding.partition_count, "partition")
    listed = (
        f"and is still listed as leader of {leads}" if finding.partition_count else "and leads no partitions"
    )
    return f"broker {finding.name} does not answer {listed}"


def _log_dir(finding: CheckFinding) -> str:
    """Return which directories failed, and which partitions lost a replica there, the worst by name."""
    lost = ""
    if finding.partition_count:
        without = findings.without_leader(finding.leaderless)
        names = nouns.some(finding.partitions, finding.partition_count)
        lost = f": {words.plural(finding.partition_count, 'partition')} lost a replica{without} ({names})"
    which = f"{directories.named(finding.paths)} of broker {finding.name}"
    return f"{which} failed ({len(finding.paths)} of {finding.amount}), although the broker is up{lost}"


def _loss(finding: CheckFinding, lost: str) -> str:
    """Return what the loss of `lost` would do, with the first partitions by name."""
    harm = []
    if finding.leaderless:
        harm.append(f"{words.plural(finding.leaderless, 'partition')} without an eligible leader")
    if finding.under_min_isr:
        count = words.plural(finding.under_min_isr, "partition")
        harm.append(f"{f'{finding.under_min_isr:,} more' if finding.leaderless else count} under min ISR")
    named = nouns.some(finding.partitions, finding.partition_count)
    return f"losing {lost} would leave {' and '.join(harm)} ({named})"


def _transaction(finding: CheckFinding) -> str:
    """Return whose transaction is open. For how long stands at the end of the line."""
    assert finding.transaction is not None
    return findings.sentence(replace(finding.transaction, since_ms=UNKNOWN), 0)


def _abort(finding: CheckFinding) -> str:
    assert finding.transaction is not None and finding.transaction.transaction is not None
    return f"end it with {findings.abort_command(finding.transaction.transaction)}"


def _rack_loss(finding: CheckFinding) -> str:
    return _loss(finding, f"rack {finding.name} ({nouns.some_brokers(finding.brokers)})")


def _times(finding: CheckFinding) -> str:
    return f"{finding.amount / finding.mean:.1f} times the mean"


def _no_controller(finding: CheckFinding) -> str:
    """Return that no controller can act, and which voters do not fetch if that is known."""
    if finding.headline is FindingKind.QUORUM_SILENT:
        return "no controller answers: fencing and elections may have stopped"
    which = "no active controller"
    if finding.unheard:
        verb = "does" if len(finding.unheard) == 1 else "do"
        unheard = f"{nouns.controllers(finding.unheard)} {verb} not fetch from it"
        which = f"controller {finding.active} hears no majority of the voters ({unheard})"
    return f"{which}: no broker can be fenced and no leader elected"


def _controllers_up(finding: CheckFinding) -> str:
    """Return which controllers to check, without names if nobody tells which are missing."""
    if not finding.unheard:
        return "check that the controllers are up and reach each other"
    verbs = "is up and reaches" if len(finding.unheard) == 1 else "are up and reach"
    return f"check that {nouns.controllers(finding.unheard)} {verbs} controller {finding.active}"


def _after_kind(say: Callable[[CheckFinding], str]) -> Callable[[CheckFinding], str]:
    """Return what says the same after the kind of the group: `share group: stopped (no members)`."""

    def said(finding: CheckFinding) -> str:
        needs_no_word = finding.group_type in ("", GroupType.CLASSIC, GroupType.UNKNOWN)
        return say(finding) if needs_no_word else f"{finding.group_type} group: {say(finding)}"

    return said


def _group(finding: CheckFinding) -> str:
    """Return a group's verdict with its reason and its lag in time."""
    kind = Reason(finding.reason)
    why = verdicts.reason(kind, finding.reason_ms, finding.reason_count)
    if kind is Reason.NO_MEMBERS:
        why = "no members"
    if finding.unowned:
        which = "" if _nobody_owns(finding) else f", {finding.unowned:,} of them"
        why += f"{which} not assigned to any member"
    behind = ""
    if finding.behind_ms != UNKNOWN:
        lag_time = words.duration(finding.behind_ms)
        mark = "≥ " if finding.is_bound else "≈ " if finding.is_estimate else ""
        behind = f"{mark}{lag_time} behind"
    reasons = ", ".join(filter(None, (why, behind)))
    return f"{verdicts.VERDICTS[finding.verdict]}{f' ({reasons})' if reasons else ''}"


_WHAT: Mapping[CheckKind, Callable[[CheckFinding], str]] = {
    _K.OFFLINE: lambda f: f"{_has(f)} no leader",
    _K.SILENT_LEADER: lambda f: f"{_is(f)} led by {_brokers(f)} (silent)",
    _K.FROZEN: lambda f: (
        f"high watermark frozen on {_of(f)}" + (f", waiting for {_brokers(f)}" if f.brokers else "")
    ),
    _K.UNDER_MIN_ISR: lambda f: f"{_is(f)} under min ISR{_out_of_sync(f)}: acks=all writes are refused",
    _K.AT_MIN_ISR: lambda f: f"{_is(f)} at min ISR{_out_of_sync(f)}: losing one more stops acks=all writes",
    _K.UNDER_REPLICATED: lambda f: f"{_is(f)} under-replicated{_out_of_sync(f)}",
    _K.NOT_RACK_SAFE: lambda f: f"{_has(f)} all replicas in one rack",
    _K.REPLICATION_FACTOR_1: lambda f: f"{_has(f)} a single replica",
    _K.MIN_ISR_1: lambda f: (
        f"min.insync.replicas is 1 with {f.replicas} replicas: an acks=all write may be on one broker only"
    ),
    _K.NOT_PREFERRED: lambda f: f"{_is(f)} not on the preferred leader ({_brokers(f)})",
    _K.BROKER_SILENT: _silent,
    _K.BROKER_FENCED: lambda f: f"broker {f.name} is fenced",
    _K.BROKER_GONE: lambda f: f"broker {f.name} is no longer listed by the cluster",
    _K.BROKER_SLOW: lambda f: (
        f"broker {f.name} takes {words.latency(f.amount)} to answer, much longer than usual"
    ),
    _K.LOG_DIR_OFFLINE: _log_dir,
    _K.BROKER_LOSS: lambda f: _loss(f, f"broker {f.name}"),
    _K.RACK_LOSS: _rack_loss,
    _K.LEADER_SKEW: lambda f: f"broker {f.name} leads {words.plural(f.amount, 'partition')}, {_times(f)}",
    _K.DISK_SKEW: lambda f: f"broker {f.name} holds {words.size(f.amount)}, {_times(f)}",
    _K.THROTTLE_LEFT: lambda f: (
        f"replication throttle left on {f'broker {f.name}' if f.brokers else 'the topic'}"
        " although nothing is being reassigned"
    ),
    _K.NO_CONTROLLER: _no_controller,
    _K.VOTER_LOST: lambda f: (
        f"controller {f.name} is down or not fetching, {words.plural(f.amount, 'voter')} left"
    ),
    _K.OPEN_TRANSACTION: _transaction,
    _K.HANGING_TRANSACTION: _transaction,
    **dict.fromkeys(GROUP_KINDS, _after_kind(_group)),
    _K.GROUP_LOST_RECORDS: _after_kind(lambda f: verdicts.lost(f.amount, f.is_bound)),
    _K.CONNECT_TASK_FAILED: lambda f: (
        f"{words.plural(f.amount, 'task') if f.amount else 'the connector itself'} failed"
        + (f" ({f.trace})" if f.trace else "")
    ),
}

_REASSIGN = "kafka-reassign-partitions.sh"


def _says(text: str) -> Callable[[CheckFinding], str]:
    return lambda finding: text


def _directories_of(finding: CheckFinding) -> str:
    """Return what to check if replicas are offline and kview does not know the directory yet."""
    verb, whose = ("is", "its") if len(finding.stranded) == 1 else ("are", "their")
    named = nouns.some_brokers(finding.stranded)
    return f"check the log directories of {named}, which {verb} up although {whose} replicas are offline"


def _start(finding: CheckFinding) -> str:
    """Return which brokers to start, without those that are up."""
    down = tuple(broker for broker in finding.brokers if broker not in finding.stranded)
    if finding.stranded and not down:
        return _directories_of(finding)
    start = f"start {nouns.some_brokers(down) if down else _brokers(finding)}: no other replica may lead"
    return f"{_directories_of(finding)}, or {start}" if finding.stranded else start


def _up_and_in_sync(finding: CheckFinding) -> str:
    if finding.stranded and finding.stranded == finding.brokers:
        return _directories_of(finding)
    verb = "is" if len(finding.brokers) == 1 else "are"
    return f"check that {_brokers(finding)} {verb} up and can keep up"


def _nobody_owns(finding: CheckFinding) -> bool:
    """Return whether no member owns any of the partitions on which a group is stuck."""
    return finding.unowned == finding.reason_count


def _stuck(finding: CheckFinding) -> str:
    """Return what to check if a group is stuck: commits, or why no member owns the partitions."""
    if not finding.unowned:
        return "check its consumers: they own the partitions, but do not commit"
    subscribed = "check which topics its consumers subscribe to"
    return subscribed if _nobody_owns(finding) else f"{subscribed}, and why they do not commit on the others"


_GO_ON: Mapping[str, str] = {
    Reason.COMMIT_OVERDUE: "check the job that commits under this name",
    Reason.CONNECTOR_PAUSED: "resume the connector if it is to go on",
}

_REMEDIES: Mapping[CheckKind, Callable[[CheckFinding], str]] = {
    _K.OFFLINE: _start,
    _K.SILENT_LEADER: lambda f: f"restart {_brokers(f)}, or wait: once it is fenced, others lead",
    _K.FROZEN: _up_and_in_sync,
    _K.UNDER_MIN_ISR: _up_and_in_sync,
    _K.AT_MIN_ISR: _up_and_in_sync,
    _K.UNDER_REPLICATED: _up_and_in_sync,
    _K.NOT_RACK_SAFE: _says(f"move replicas to other racks with {_REASSIGN}"),
    _K.REPLICATION_FACTOR_1: _says(f"add replicas with {_REASSIGN}"),
    _K.MIN_ISR_1: _says("set the topic's min.insync.replicas to 2"),
    _K.NOT_PREFERRED: _says("run kafka-leader-election.sh --election-type preferred"),
    _K.BROKER_SILENT: lambda f: (
        "check the network between kview and the broker"
        if f.unreached
        else "check that it runs and that this machine can reach it"
    ),
    _K.BROKER_FENCED: _says("check its log: the controller gets no heartbeats from it"),
    _K.BROKER_GONE: _says("start it again, unless it was removed on purpose"),
    _K.BROKER_SLOW: _says("check its disks, its CPU and the network"),
    _K.LOG_DIR_OFFLINE: _says(
        "its log says why: a broken or a full disk, or permissions. Once it works, restart the broker, which"
        " does not use the directory before"
    ),
    _K.BROKER_LOSS: lambda f: (
        f"add replicas on other brokers with {_REASSIGN}"
        if f.leaderless
        else "add replicas, or bring those that are out of sync back in sync"
    ),
    _K.RACK_LOSS: _says(f"spread the replicas over more racks with {_REASSIGN}"),
    _K.LEADER_SKEW: _says(f"run kafka-leader-election.sh --election-type preferred, or use {_REASSIGN}"),
    _K.DISK_SKEW: _says(f"move replicas to other brokers with {_REASSIGN}"),
    _K.THROTTLE_LEFT: lambda f: (
        f"remove it with kafka-configs.sh --alter --entity-type {'brokers' if f.brokers else 'topics'}"
        f" --entity-name {f.name} --delete-config {','.join(f.settings)}"
    ),
    _K.NO_CONTROLLER: _controllers_up,
    _K.VOTER_LOST: _says("start it, or check its log"),
    _K.GROUP_STUCK: _stuck,
    _K.GROUP_STOPPED: lambda f: _GO_ON.get(
        f.reason, "start its consumers, or delete the group if nobody needs it"
    ),
    _K.GROUP_FALLING_BEHIND: _says("add consumers, or make them faster"),
    _K.GROUP_REWOUND: _says("check whether somebody reset its offsets: it is reading records again"),
    _K.GROUP_BLOCKED: _says(
        "check the brokers of the partitions that it reads: the cluster keeps it waiting"
    ),
    _K.OPEN_TRANSACTION: _says(
        "check the application that writes in this transaction: it has neither committed nor aborted it"
    ),
    _K.HANGING_TRANSACTION: _abort,
    _K.GROUP_BLOCKED_BY_TRANSACTION: _says("look for open_transaction or hanging_transaction"),
    _K.GROUP_AHEAD_OF_LOG: _says("reset its offsets with kafka-consumer-groups.sh --reset-offsets"),
    _K.CONNECT_TASK_FAILED: _says("remove the cause, then restart it: Connect does not do that by itself"),
    _K.GROUP_LOST_RECORDS: _says("raise the topic's retention, or make the consumers faster"),
}


_CONSEQUENCES: Mapping[CheckKind, tuple[str, str]] = {
    _K.OFFLINE: ("partition", " without a leader"),
    _K.SILENT_LEADER: ("partition", " with a silent leader"),
    _K.FROZEN: ("partition", " with a frozen high watermark"),
    _K.UNDER_MIN_ISR: ("partition", " under min ISR"),
    _K.AT_MIN_ISR: ("partition", " at min ISR"),
    _K.UNDER_REPLICATED: ("under-replicated partition", ""),
    _K.BROKER_LOSS: ("more broker", " that must stay up"),
    _K.RACK_LOSS: ("more rack", " that must stay up"),
    _K.VOTER_LOST: ("controller", " down or not fetching"),
    _K.GROUP_BLOCKED: ("group", " blocked"),
    _K.GROUP_BLOCKED_BY_TRANSACTION: ("group", " blocked by a transaction"),
}
"""What stands before and after the ending of the plural, for each kind that has causes."""


def explains(causes: Sequence[CheckFinding], findings: Sequence[CheckFinding], not_judged_count: int) -> str:
    """Return what these causes explain, by kind, the worst first, and with names if it is a risk.

    Example: `explains 9 more: 1 partition without a leader (audit-log-3), 34 under-replicated partitions`.
    """
    by_kind: dict[CheckKind, list[CheckFinding]] = {}
    for finding in findings:
        by_kind.setdefault(finding.kind, []).append(finding)
    said = [_consequence(kind, of_kind) for kind, of_kind in by_kind.items()]
    said += [f"{not_judged_count:,} not judged"] if not_judged_count else []
    brokers = sorted(broker for cause in causes for broker in cause.brokers)
    names = [nouns.some_brokers(brokers)] if brokers else []
    names += [label(cause.key) for cause in causes if not cause.brokers]
    who = "explains" if len(causes) == 1 else f"{_some(names, 'cause')} explain"
    return f"{who} {len(findings) + not_judged_count:,} more: {', '.join(said)}"


def _consequence(kind: CheckKind, findings: Sequence[CheckFinding]) -> str:
    noun, rest = _CONSEQUENCES[kind]
    in_partitions = kind in PARTITION_KINDS
    count = sum(finding.partition_count for finding in findings) if in_partitions else len(findings)
    named = ""
    if findings[0].level is Level.RISK:
        first = [name for finding in findings for name in finding.partitions]
        names = [finding.name for finding in findings]
        named = f" ({nouns.some(first, count) if in_partitions else _some(names, noun)})"
    return f"{words.plural(count, noun)}{rest}{named}"


def _explained_by(causes: Sequence[Key]) -> str:
    return f"explained by {_some([label(cause) for cause in causes], 'finding')}"


def not_judged_label(item: NotJudged) -> str:
    """Return the kinds that were not judged, and for which names: `frozen:invoice, payment`."""
    kinds = "group_*" if item.kinds == GROUP_KINDS else _some(item.kinds, "kind")
    return f"{kinds}:{_some(item.names, 'name')}" if item.names else kinds


def not_judged(item: NotJudged) -> str:
    """Return why something was not judged, and what to do or what explains it, if there is such a thing."""
    why = _why_not(item)
    return f"{why}: {_explained_by(item.explained_by)}" if item.explained_by else why


def _why_not(item: NotJudged) -> str:
    of_connect = item.kinds == (CheckKind.CONNECT_TASK_FAILED,)
    asked = "Kafka Connect" if of_connect else "the cluster"
    named = nouns.some_brokers(item.brokers) if item.brokers else asked
    said = failures.of(item.cause.kind, item.cause.code)
    match item.why:
        case NotJudgedWhy.NO_HISTORY:
            overdue = item.cause.kind is FailureKind.OVERDUE
            needed = (
                f"still waiting for an answer from {named}" if overdue else "more observations are needed"
            )
            return f"{needed}: observe for longer (--for 90s)"
        case NotJudgedWhy.FEW_COMMITS:
            return (
                "too few commits were seen to tell a group that commits rarely from one that is stuck:"
                " observe for longer (--for 15m), or let it pass (--allow-not-judged)"
            )
        case NotJudgedWhy.NOT_AUTHORIZED:
            return f"kview is not authorized to ask ({said}): grant its user Describe and DescribeConfigs"
        case NotJudgedWhy.UNSUPPORTED:
            verb = "do" if len(item.brokers) > 1 else "does"
            return f"{named} {verb} not support the request: newer versions of Kafka do"
        case NotJudgedWhy.NOTHING_COMMITTED:
            return (
                "nothing has been committed, so nobody can tell how far it has read: check that its consumers"
                " commit"
            )
        case NotJudgedWhy.NO_COMPARISON:
            verb, whose = ("takes", "its") if len(item.brokers) == 1 else ("take", "their")
            return (
                f"{named} {verb} more than a second to answer, and there is nothing to compare that with:"
                f" check {whose} disks and CPU, and this machine's"
            )
        case NotJudgedWhy.RACK_UNKNOWN:
            verb = "has" if len(item.brokers) == 1 else "have"
            return f"{named} {verb} no rack, although others have one: set broker.rack"
        case _:
            known = item.cause.kind not in (FailureKind.NONE, FailureKind.NOT_CONNECTED)
            if of_connect and known:
                return f"the states of connectors are unknown (connect-url: {said})"
            return f"no answer from {named}{f' ({said})' if known else ''}"


def _some(names: Sequence[str], thing: str) -> str:
    rest = len(names) - MOST_NAMES
    more = f" and {words.plural(rest, f'more {thing}')}" if rest > 0 else ""
    return ", ".join(names[:MOST_NAMES]) + more


def result(healthy: bool, counts: Mapping[Level, int], not_judged_count: int, ignored: int) -> str:
    """Return what a check found, in numbers: `not healthy: 2 findings (1 risk, 1 warn), 3 weaknesses`.

    `counts` has the number of findings by level.
    """
    weak = counts[Level.WEAKNESS]
    wrong = sum(counts.values()) - weak
    by = ", ".join(f"{counts[level]:,} {level}" for level in (Level.RISK, Level.WARN) if counts[level])
    said = [f"{words.plural(wrong, 'finding')} ({by})"] if wrong else []
    if weak:
        noun, them = ("weakness", "it") if weak == 1 else ("weaknesses", "them")
        said.append(f"{weak:,} {noun}" + (f" (--fail-on weakness makes {them} fail)" if healthy else ""))
    said = said or ["no findings"]
    said += [f"{not_judged_count:,} not judged"] if not_judged_count else []
    said += [f"{ignored:,} ignored"] if ignored else []
    return f"{'healthy' if healthy else 'not healthy'}: {', '.join(said)}"
