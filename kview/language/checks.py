"""What a check found, and what it could not judge, as lines: what, where, since when, and what to do."""

from collections.abc import Callable, Mapping, Sequence

from kview.derive.view import Reason
from kview.language import failures, nouns, verdicts, words
from kview.model.checks import GROUP_KINDS, CheckFinding, CheckKind, NotJudged, NotJudgedWhy
from kview.model.events import Severity
from kview.model.failures import FailureKind
from kview.model.findings import FindingKind
from kview.model.units import UNKNOWN

MOST_NUMBERS = 8
"""The most partitions of a topic that a line lists."""

MOST_NAMES = 3
"""The most topics or groups that a line lists."""

BEFORE = "since before the check"
"""Said instead of a duration if it was already so in the first observation."""

_K = CheckKind

_LOSSES = (_K.BROKER_LOSS, _K.RACK_LOSS)
"""What may happen. A duration right after it would read as that of the loss."""


def label(finding: CheckFinding) -> str:
    """Return the finding's kind and name as --ignore takes them: `offline:audit-log`."""
    return f"{finding.kind}:{finding.name}" if finding.name else str(finding.kind)


def sentence(finding: CheckFinding, now_ms: int) -> str:
    """Return what is wrong, where, since when, and what to do, in one line."""
    todo = remedy(finding)
    true = "true " if finding.kind in _LOSSES else ""
    return f"{what(finding)}, {true}{since(finding, now_ms)}. {todo[0].upper()}{todo[1:]}"


def what(finding: CheckFinding) -> str:
    """Return what is wrong, and where."""
    return _WHAT[finding.kind](finding)


def remedy(finding: CheckFinding) -> str:
    """Return what to do about it."""
    return _REMEDIES[finding.kind](finding)


def since(finding: CheckFinding, now_ms: int) -> str:
    """Return for how long it has been so: `for 12 s`, `for ≥ 12 s`, `since before the check`."""
    if finding.since_ms == UNKNOWN:
        return BEFORE
    lasted = words.duration(now_ms - finding.since_ms)
    return f"for {'≥ ' if finding.since_is_bound else ''}{lasted}"


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


def _rack_loss(finding: CheckFinding) -> str:
    return _loss(finding, f"rack {finding.name} ({nouns.some_brokers(finding.brokers)})")


def _times(finding: CheckFinding) -> str:
    return f"{finding.amount / finding.mean:.1f} times the mean"


_NO_CONTROLLER: Mapping[FindingKind | None, str] = {
    FindingKind.NO_CONTROLLER: "no active controller: no broker can be fenced and no leader elected",
    FindingKind.QUORUM_LOST: "the controllers have lost their majority: no broker can be fenced and no leader"
    " elected",
    FindingKind.QUORUM_SILENT: "no controller answers: fencing and elections may have stopped",
}


def _group(finding: CheckFinding) -> str:
    """Return a group's verdict with its reason and its lag in time."""
    kind = Reason(finding.reason)
    why = verdicts.reason(kind, finding.reason_ms, finding.reason_count)
    if kind is Reason.NO_MEMBERS:
        why = "no members"
    behind = ""
    if finding.behind_ms != UNKNOWN:
        told = words.duration(finding.behind_ms)
        mark = "≥ " if finding.is_bound else "≈ " if finding.is_estimate else ""
        behind = f"{mark}{told} behind"
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
    _K.BROKER_LOSS: lambda f: _loss(f, f"broker {f.name}"),
    _K.RACK_LOSS: _rack_loss,
    _K.LEADER_SKEW: lambda f: f"broker {f.name} leads {words.plural(f.amount, 'partition')}, {_times(f)}",
    _K.DISK_SKEW: lambda f: f"broker {f.name} holds {words.size(f.amount)}, {_times(f)}",
    _K.NO_CONTROLLER: lambda f: _NO_CONTROLLER[f.headline],
    _K.VOTER_LOST: lambda f: (
        f"controller {f.name} is down or not fetching, {words.plural(f.amount, 'voter')} left"
    ),
    **dict.fromkeys((kind for kind in GROUP_KINDS if kind is not _K.GROUP_LOST_RECORDS), _group),
    _K.GROUP_LOST_RECORDS: lambda f: verdicts.lost(f.amount, f.is_bound),
    _K.CONNECT_TASK_FAILED: lambda f: (
        f"{words.plural(f.amount, 'task') if f.amount else 'the connector itself'} failed"
        + (f" ({f.trace})" if f.trace else "")
    ),
}

_REASSIGN = "kafka-reassign-partitions.sh"


def _says(text: str) -> Callable[[CheckFinding], str]:
    return lambda finding: text


def _up_and_in_sync(finding: CheckFinding) -> str:
    verb = "is" if len(finding.brokers) == 1 else "are"
    return f"check that {_brokers(finding)} {verb} up and can keep up"


_REMEDIES: Mapping[CheckKind, Callable[[CheckFinding], str]] = {
    _K.OFFLINE: lambda f: f"start {_brokers(f)}: no other replica may lead",
    _K.SILENT_LEADER: lambda f: f"restart {_brokers(f)}, or wait: once it is fenced, others lead",
    _K.FROZEN: lambda f: (
        f"{'restart' if f.brokers else 'check'} {_brokers(f)}, or wait until the ISR shrinks"
    ),
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
    _K.BROKER_LOSS: lambda f: (
        f"add replicas on other brokers with {_REASSIGN}"
        if f.leaderless
        else "add replicas, or bring those that are out of sync back in sync"
    ),
    _K.RACK_LOSS: _says(f"spread the replicas over more racks with {_REASSIGN}"),
    _K.LEADER_SKEW: _says(f"run kafka-leader-election.sh --election-type preferred, or use {_REASSIGN}"),
    _K.DISK_SKEW: _says(f"move replicas to other brokers with {_REASSIGN}"),
    _K.NO_CONTROLLER: _says("start the controllers, or check the network between them"),
    _K.VOTER_LOST: _says("start it, or check its log"),
    _K.GROUP_STUCK: _says("check its consumers: they own the partitions, but do not commit"),
    _K.GROUP_STOPPED: lambda f: (
        "check the job that commits under this name"
        if f.reason == Reason.COMMIT_OVERDUE
        else "start its consumers, or delete the group if nobody needs it"
    ),
    _K.GROUP_FALLING_BEHIND: _says("add consumers, or make them faster"),
    _K.GROUP_REWOUND: _says("check whether somebody reset its offsets: it is reading records again"),
    _K.GROUP_BLOCKED: _says(
        "check the brokers of the partitions that it reads: the cluster keeps it waiting"
    ),
    _K.GROUP_AHEAD_OF_LOG: _says("reset its offsets with kafka-consumer-groups.sh --reset-offsets"),
    _K.CONNECT_TASK_FAILED: _says("remove the cause, then restart it: Connect does not do that by itself"),
    _K.GROUP_LOST_RECORDS: _says("raise the topic's retention, or make the consumers faster"),
}


def not_judged_label(item: NotJudged) -> str:
    """Return the kinds that were not judged, and for which names: `frozen:invoice, payment`."""
    kinds = "group_*" if item.kinds == GROUP_KINDS else _some(item.kinds, "kind")
    return f"{kinds}:{_some(item.names, 'name')}" if item.names else kinds


def not_judged(item: NotJudged) -> str:
    """Return why something was not judged, and what to do if there is something to do."""
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


def result(counts: Mapping[Severity, int], not_judged_count: int, ignored: int) -> str:
    """Return what a check found, in numbers: `3 findings (1 risk, 2 warn), 1 not judged, 2 ignored`.

    `counts` has the number of findings by severity.
    """
    total = sum(counts.values())
    by = ", ".join(f"{number:,} {severity}" for severity, number in counts.items() if number)
    said = [words.plural(total, "finding") + (f" ({by})" if by else "") if total else "no findings"]
    said += [f"{not_judged_count:,} not judged"] if not_judged_count else []
    said += [f"{ignored:,} ignored"] if ignored else []
    return ", ".join(said)
