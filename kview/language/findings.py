"""Findings as words: the headline's sentences, with ages and countdowns at a given moment."""

from collections.abc import Callable, Mapping, Sequence

from kview.language import directories, failures, glyphs, nouns, verdicts, words
from kview.model.failures import NOT_AUTHORIZED, FailureKind
from kview.model.findings import Finding, FindingKind, OpenTransaction
from kview.model.units import UNKNOWN


def sentence(finding: Finding, now_ms: int) -> str:
    """Return what is wrong, with ages and countdowns as of `now_ms`, epoch ms."""
    return _SENTENCES[finding.kind](finding, now_ms)


def sentences(findings: Sequence[Finding], now_ms: int) -> list[str]:
    """Return the sentences of a headline.

    If there are other findings, "cluster healthy" is said without its details.
    """
    short = len(findings) > 1

    def said(finding: Finding) -> str:
        if short and finding.kind is FindingKind.CLUSTER_WELL:
            return "cluster healthy"
        return sentence(finding, now_ms)

    return [said(finding) for finding in findings]


def _brokers(finding: Finding) -> str:
    """Return `broker 4`, `brokers 3, 4 and 5` or `rack R2 (brokers 3, 4 and 5)`."""
    named = nouns.brokers(finding.brokers)
    return f"rack {finding.rack} ({named})" if finding.rack else named


def _partitions(finding: Finding) -> str:
    return nouns.partitions(finding.partitions, finding.internal_partitions)


def _for(finding: Finding, now_ms: int, before: str) -> str:
    """Return `before` and the age of the finding, '' if the age is not known."""
    if finding.since_ms == UNKNOWN:
        return ""
    least = "≥ " if finding.since_is_bound else ""
    return f"{before}{least}{words.duration(now_ms - finding.since_ms)}"


def _silent(finding: Finding, now_ms: int) -> str:
    if finding.partitions:
        leads = f"still listed as leader of {words.plural(finding.partitions, 'partition')}"
    elif finding.internal_partitions:
        leads = f"still listed as leader of {nouns.partitions(0, finding.internal_partitions)}"
    else:
        leads = "leads no partitions"
    return f"{_brokers(finding)} silent{_for(finding, now_ms, ' ')}, {leads}"


def _frozen(finding: Finding, now_ms: int) -> str:
    if not _are_others(finding):
        return f"high watermark frozen on {_partitions(finding)}"
    return f"high watermark frozen on {words.plural(finding.partitions, 'other partition')}"


def _are_others(finding: Finding) -> bool:
    """Return whether the frozen partitions are counted besides those of another finding."""
    return finding.count not in (0, UNKNOWN) and bool(finding.partitions)


def _well(finding: Finding) -> str:
    return f"{words.plural(finding.count, 'broker')} up, all partitions have leaders, all replicas in sync"


def _all_well(finding: Finding, now_ms: int) -> str:
    """Return that all is well. Without a group to judge, that is said of the cluster alone."""
    if not finding.groups:
        return f"cluster healthy: {_well(finding)}"
    return f"all healthy: {_well(finding)}, {words.plural(finding.groups, 'group')} ok"


def _unreached(finding: Finding, now_ms: int) -> str:
    """Return what only kview cannot see, and that the cluster is not to blame."""
    unseen = ""
    if finding.partitions or finding.internal_partitions:
        unseen = f", so the state of {_partitions(finding)} is unknown"
    return (
        f"{_brokers(finding)} {_has(finding)} not answered kview{_for(finding, now_ms, ' for ')}, "
        f"but the cluster still hears from {'it' if len(finding.brokers) == 1 else 'them'}{unseen}"
    )


def _slow(finding: Finding, now_ms: int) -> str:
    most = "" if len(finding.brokers) == 1 else "up to "
    takes = f"answers take {most}{words.latency(finding.count * 1000)}"
    return f"{_brokers(finding)} slow{_for(finding, now_ms, ' for ')}: {takes}"


def _cut_off(finding: Finding, now_ms: int) -> str:
    verb, them, their = ("is", "it", "its") if len(finding.brokers) == 1 else ("are", "them", "their")
    return (
        f"{_brokers(finding)} {verb} cut off from the controllers{_for(finding, now_ms, ' for ')}: clients"
        f" still reach {them}, and {their} metadata are old"
    )


def _more_groups(finding: Finding) -> str:
    return f" (+{words.plural(finding.groups - 1, 'more group')})" if finding.groups > 1 else ""


def _troubled(finding: Finding, now_ms: int) -> str:
    """Return the worst group's verdict, how far it is behind, and the number of other groups."""
    behind = ""
    if finding.behind_ms != UNKNOWN and finding.behind_ms >= _WORTH_SAYING_MS:
        mark = "≥ " if finding.behind_is_bound else "≈ " if finding.behind_is_estimate else ""
        behind = f", {mark}{words.duration(finding.behind_ms, tenths=False)} behind"
    more = _more_groups(finding)
    if UNKNOWN != finding.count < finding.groups:  # these have other verdicts
        more = f" · {words.plural(finding.groups - 1, 'other group')} in trouble"
    return f"{finding.group} {verdicts.VERDICTS[finding.verdict]}{behind}{more}"


def _transaction(finding: Finding, now_ms: int) -> str:
    """Return whose transaction is open, for how long, and who waits for it."""
    opened = finding.transaction
    assert opened is not None
    is_one = finding.partitions + finding.internal_partitions == 1
    where = f"{opened.topic}-{opened.partition}" if is_one else _partitions(finding)
    verb = "is" if finding.count == 1 else "are"
    held = f"{words.plural(finding.count, 'record')} of {where} {verb} held back"
    waits = ""
    if finding.groups:
        others = f" and {words.plural(finding.groups - 1, 'other group')}" if finding.groups > 1 else ""
        waits = f", and {finding.group}{others} {'wait' if finding.groups > 1 else 'waits'}"
    if finding.kind is FindingKind.HANGING_TRANSACTION:
        return (
            f"hanging transaction of producer {opened.producer_id}{_for(finding, now_ms, ' for ')}:"
            f" no coordinator knows it, {held}{waits}"
        )
    timeout = f" (timeout {words.duration(opened.timeout_ms)})" if opened.timeout_ms != UNKNOWN else ""
    whose = nouns.producer(opened.transactional_id, opened.producer_id)
    why = f" ({_why_unknown(finding)})" if finding.cause.kind else ""
    return f"transaction of {whose}{why} open{_for(finding, now_ms, ' for ')}{timeout}: {held}{waits}"


def _why_unknown(finding: Finding) -> str:
    hidden = finding.transaction is not None and not finding.transaction.transactional_id
    who = "not authorized to see who: " if hidden and finding.cause.code in NOT_AUTHORIZED else ""
    return f"{who}{failures.of(*finding.cause)}"


def holder(opened: OpenTransaction) -> str:
    """Return which producer holds a partition, and what coordinates it: `producer 4711 · epoch 3`."""
    parts = [f"producer {opened.producer_id}"] if opened.producer_id != UNKNOWN else []
    parts += [f"epoch {opened.producer_epoch}"] if parts and opened.producer_epoch != UNKNOWN else []
    parts += [f"coordinator {opened.coordinator}"] if opened.coordinator >= 0 else []
    return f" {glyphs.DOT} ".join(parts)


def abort_command(opened: OpenTransaction) -> str:
    """Return the command that ends a transaction that no coordinator knows."""
    return (
        f"kafka-transactions.sh --bootstrap-server {opened.server} abort --topic {opened.topic}"
        f" --partition {opened.partition} --start-offset {opened.start_offset}"
    )


def _unread(finding: Finding, now_ms: int) -> str:
    """Return which group's figures are old, and why; that its coordinator is silent is a finding of its
    own."""
    cause, silent = finding.cause, finding.cause.kind is FailureKind.COORDINATOR_SILENT
    why = "" if silent else failures.of_group(cause.kind, cause.code, finding.coordinator)
    old = f"group {finding.group}: figures{_for(finding, now_ms, ' ')} old"
    return ", ".join(filter(None, (old, why))) + _more_groups(finding)


def _metadata_failed(finding: Finding, now_ms: int) -> str:
    why = failures.of(finding.cause.kind, finding.cause.code)
    if finding.cause.kind is not FailureKind.KAFKA_ERROR:
        why = f"a broker {why}"
    return f"metadata{_for(finding, now_ms, ' ')} old, so leaders and ISRs may be wrong: {why}"


def _leaders_of(finding: Finding) -> str:
    several = finding.partitions + finding.internal_partitions > 1
    return f"{'leaders' if several else 'leader'} of {_partitions(finding)}"


def _partitions_unread(finding: Finding, now_ms: int) -> str:
    error = failures.of(finding.cause.kind, finding.cause.code)
    return f"{_partitions(finding)} not read{_for(finding, now_ms, ' for ')}: the leader answers {error}"


def _not_preferred(finding: Finding) -> str:
    whose = "its" if finding.partitions + finding.internal_partitions == 1 else "their"
    return f"{_partitions(finding)} not on {whose} preferred leader"


_IN_TOPICS = frozenset(
    {
        FindingKind.NO_LEADER,
        FindingKind.SILENT_LEADER,
        FindingKind.WATERMARK_FROZEN,
        FindingKind.UNDER_MIN_ISR,
        FindingKind.AT_MIN_ISR,
        FindingKind.UNDER_REPLICATED,
        FindingKind.PARTITIONS_UNREAD,
    }
)
"""What counts partitions and names none."""


def where(finding: Finding) -> str:
    """Return the first topics of partitions that a finding only counts: ` (orders, payments …)`. '' for
    another one."""
    if finding.kind not in _IN_TOPICS or not finding.topics:
        return ""
    more = " …" if len(finding.topics) > MOST_TOPICS else ""
    return f" ({', '.join(finding.topics[:MOST_TOPICS])}{more})"


def _no_leader(finding: Finding, now_ms: int) -> str:
    verb = "has" if finding.partitions + finding.internal_partitions == 1 else "have"
    return f"{_partitions(finding)} {verb} no leader"


def _unclean(finding: Finding, now_ms: int) -> str:
    """Return where leaders that were not in sync were elected, how long ago, and what that cost."""
    names = finding.topics[:MOST_TOPICS]
    more = f" + {len(finding.topics) - len(names):,} more" if len(names) < len(finding.topics) else ""
    where = f"{_partitions(finding)} of {', '.join(names)}{more}"
    lost = f"≥ {words.plural(finding.count, 'record')} lost" if finding.count > 0 else "records may be lost"
    return f"unclean election on {where}{_for(finding, now_ms, ', ')} ago: {lost}"


def _log_dir_offline(finding: Finding, now_ms: int) -> str:
    """Return which directories failed, and what the partitions in them have lost."""
    lost = ""
    if finding.partitions or finding.internal_partitions:
        lost = f": {_partitions(finding)} lost a replica{without_leader(finding.count)}"
    return f"{directories.named(finding.paths)} of {_brokers(finding)} failed{lost}"


def without_leader(partitions: int) -> str:
    """Return how many partitions have lost their only or their leading replica."""
    verb = "has" if partitions == 1 else "have"
    return f", {words.plural(partitions, 'partition')} {verb} no leader" if partitions else ""


def _has(finding: Finding) -> str:
    return "has" if len(finding.brokers) == 1 or finding.rack else "have"


def _controllers_lost(finding: Finding, now_ms: int) -> str:
    """Return which voters are lost, and how many more the quorum can lose before it has no majority."""
    verb = "is" if len(finding.controllers) == 1 else "are"
    left = finding.count - len(finding.controllers)
    spare = left - finding.count // 2 - 1
    stops = f"losing {'one' if not spare else spare + 1} more stops elections"
    return (
        f"{nouns.controllers(finding.controllers)} {verb} down or not fetching: {left} of {finding.count}"
        f" voters left; {stops if spare >= 0 else 'no majority, so no elections'}"
    )


def _quorum_lost(finding: Finding, now_ms: int) -> str:
    """Return which controller hears no majority: the others may be well, and elect another one."""
    return (
        f"{nouns.controllers(finding.controllers)} hears no majority of the {finding.count} voters"
        f"{_for(finding, now_ms, ' for ')}: no broker can be fenced and no leader elected"
    )


def _task_failed(finding: Finding, now_ms: int) -> str:
    """Return which connector or task failed, how many others did, and why: the line ends with the reason,
    which may be long."""
    more = f" (+{finding.count - 1:,} more)" if finding.count > 1 else ""
    why = f": {finding.trace}" if finding.trace else ""
    return f"{nouns.task_of(finding.connector, finding.task)} failed{more}{why}"


def _connectors_unread(finding: Finding, now_ms: int) -> str:
    why = failures.of(finding.cause.kind, finding.cause.code)
    return f"states of connectors unknown{_for(finding, now_ms, ' for ')} (connect-url: {why})"


def _throttle_left(finding: Finding, now_ms: int) -> str:
    """Return who has a throttle, and what removes it."""
    who = [_topics(finding)] if finding.count > 0 else []
    who += [nouns.some_brokers(finding.brokers)] if finding.brokers else []
    return (
        f"replication throttle left on {' and '.join(who)}, but nothing is being reassigned:"
        " kafka-reassign-partitions.sh --verify removes it"
    )


def _topics(finding: Finding) -> str:
    """Return the topic by name, or the number of topics with the first names."""
    names, rest = finding.topics[:MOST_TOPICS], finding.count - MOST_TOPICS
    if finding.count == len(names) == 1:
        return f"topic {names[0]}"
    more = f" + {rest:,} more" if rest > 0 else ""
    return words.plural(finding.count, "topic") + (f" ({', '.join(names)}{more})" if names else "")


def _none_answers(finding: Finding, now_ms: int) -> str:
    """Return since when nothing is known, and what to check."""
    why = _ALL_SILENT.get(finding.cause.kind, "")
    return (
        f"no broker has answered{_for(finding, now_ms, ' for ')}{why}: all figures are at least that old. "
        "Check the network and the brokers"
    )


_ALL_SILENT: Mapping[FailureKind, str] = {
    FailureKind.REFUSED: " (all ports refuse connections)",
    FailureKind.SILENT: " (all accept connections but do not answer)",
    FailureKind.UNREACHABLE: " (kview cannot connect)",
}

TOPIC_REFUSED = 29
"""Kafka's error number TOPIC_AUTHORIZATION_FAILED."""

MOST_TOPICS = 2
"""The most topics that a sentence names."""

_WORTH_SAYING_MS = 1_000
"""Lag in time below this is not said."""

_SENTENCES: Mapping[FindingKind, Callable[[Finding, int], str]] = {
    FindingKind.ALL_WELL: _all_well,
    FindingKind.CLUSTER_WELL: lambda finding, now_ms: f"cluster healthy: {_well(finding)}",
    FindingKind.NO_PARTITIONS: lambda finding, now_ms: (
        f"{words.plural(finding.count, 'broker')} up, no partitions seen"
    ),
    FindingKind.NOTHING_KNOWN: lambda finding, now_ms: "waiting for the first answer from the cluster",
    FindingKind.NO_BROKER_ANSWERS: _none_answers,
    FindingKind.METADATA_FAILED: _metadata_failed,
    FindingKind.NOT_AUTHORIZED: lambda finding, now_ms: (
        f"kview is not authorized to see all {'topics' if finding.cause.code == TOPIC_REFUSED else 'groups'}"
        f" ({failures.of(*finding.cause)}{_for(finding, now_ms, ', for ')}): only those it may see are shown"
        " and judged"
    ),
    FindingKind.BROKERS_SILENT: _silent,
    FindingKind.WATERMARK_FROZEN: _frozen,
    FindingKind.QUORUM_HEARS_BROKERS: _unreached,
    FindingKind.BROKERS_SLOW: _slow,
    FindingKind.BROKERS_LATE: lambda finding, now_ms: (
        f"{_brokers(finding)} {_has(finding)} not answered{_for(finding, now_ms, ' for ')}"
    ),
    FindingKind.BROKERS_CUT_OFF: _cut_off,
    FindingKind.FENCING_DUE: lambda finding, now_ms: words.fencing(finding.due_ms, now_ms),
    FindingKind.BROKERS_STARTING: lambda finding, now_ms: (
        f"{_brokers(finding)} listed, but {_has(finding)} not answered yet"
    ),
    FindingKind.BROKERS_FENCED: lambda finding, now_ms: f"{_brokers(finding)} fenced",
    FindingKind.BROKERS_GONE: lambda finding, now_ms: f"the cluster no longer lists {_brokers(finding)}",
    FindingKind.LOG_DIR_OFFLINE: _log_dir_offline,
    FindingKind.NO_LEADER: _no_leader,
    FindingKind.SILENT_LEADER: lambda finding, now_ms: f"{_partitions(finding)} led by a silent broker",
    FindingKind.UNDER_MIN_ISR: lambda finding, now_ms: (
        f"{_partitions(finding)} under min ISR: acks=all writes are refused"
    ),
    FindingKind.UNDER_REPLICATED: lambda finding, now_ms: f"{_partitions(finding)} under-replicated",
    FindingKind.AT_MIN_ISR: lambda finding, now_ms: f"{_partitions(finding)} at min ISR",
    FindingKind.UNCLEAN_ELECTION: _unclean,
    FindingKind.LEADER_RECORDS_LOST: lambda finding, now_ms: (
        f"≥ {words.plural(finding.count, 'record')} lost with the old {_leaders_of(finding)}"
        f"{_for(finding, now_ms, ', ')} ago"
    ),
    FindingKind.PARTITIONS_UNREAD: _partitions_unread,
    FindingKind.RECORDS_LOST: lambda finding, now_ms: (
        f"group {finding.group}{_more_groups(finding)}:"
        f" {verdicts.lost(finding.count, finding.count_is_bound)}"
    ),
    FindingKind.NO_CONTROLLER: lambda finding, now_ms: (
        "no active controller: until there is one, no broker can be fenced and no leader elected"
    ),
    FindingKind.QUORUM_SILENT: lambda finding, now_ms: (
        f"no word from the controllers{_for(finding, now_ms, ' for ') or ' yet'}: "
        "fencing and elections may have stopped"
    ),
    FindingKind.QUORUM_LOST: _quorum_lost,
    FindingKind.CONTROLLERS_LOST: _controllers_lost,
    FindingKind.OPEN_TRANSACTION: _transaction,
    FindingKind.HANGING_TRANSACTION: _transaction,
    FindingKind.GROUPS_TROUBLED: _troubled,
    FindingKind.GROUPS_UNREAD: _unread,
    FindingKind.CONNECT_TASK_FAILED: _task_failed,
    FindingKind.CONNECTORS_UNREAD: _connectors_unread,
    FindingKind.GROUPS_UNJUDGED: lambda finding, now_ms: (
        f"no verdict yet on {words.plural(finding.groups, 'group')}"
    ),
    FindingKind.THROTTLE_LEFT: _throttle_left,
    FindingKind.INPUT_FELL: lambda finding, now_ms: (
        f"{finding.topics[0] if finding.topics else 'a topic'}: input fell from"
        f" {words.count(finding.rate_before)} to {words.count(finding.rate)}/s"
        f"{nouns.more_topics(finding.count)}"
    ),
    FindingKind.LEADS_NOTHING: lambda finding, now_ms: (
        f"{_brokers(finding)} {'leads' if len(finding.brokers) == 1 else 'lead'} no partitions"
    ),
    FindingKind.APIS_DIFFER: lambda finding, now_ms: (
        f"{nouns.some_brokers(finding.brokers)} {'offers' if len(finding.brokers) == 1 else 'offer'} other"
        f" APIs than the rest{_for(finding, now_ms, ' for ')}: an upgrade that is not complete?"
    ),
    FindingKind.NOT_PREFERRED: lambda finding, now_ms: _not_preferred(finding),
}
