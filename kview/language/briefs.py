"""Findings in a few words, for the head of every screen. `kview.language.findings` says them in full."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from kview.language import nouns, verdicts, words
from kview.language.findings import TOPIC_REFUSED
from kview.language.glyphs import ARROW
from kview.model.findings import Finding, FindingKind
from kview.model.units import UNKNOWN

_WORTH_SAYING_MS = 60_000
"""A group's lag in time is said from here on."""


class _At(NamedTuple):
    """When it is said (epoch ms), and whether a number of partitions has its noun."""

    now_ms: int
    has_noun: bool


_Brief = Callable[[Finding, _At], list[str]]


def brief(finding: Finding, now_ms: int, has_noun: bool = True) -> list[str]:
    """Return what is wrong in a few words, with ages as of `now_ms` (epoch ms), and the figures that follow
    from it: `broker 4 silent 5.2 s` and `4 partitions down`, or `4 down` without the noun."""
    return [text for text in _BRIEFS[finding.kind](finding, _At(now_ms, has_noun)) if text]


def _number(finding: Finding, at: _At) -> str:
    """Return a number of partitions. Those of internal topics count only if they alone are wrong."""
    mine, internal = finding.partitions, finding.internal_partitions
    if at.has_noun:
        return nouns.partitions(mine, internal)
    return f"{mine:,}" if mine or not internal else f"{internal:,} internal"


def _counted(what: str) -> _Brief:
    return lambda finding, at: [f"{_number(finding, at)} {what}"]


def _age(finding: Finding, at: _At) -> str:
    """Return how long it has lasted, with a space before it, '' if nobody knows."""
    if finding.since_ms == UNKNOWN:
        return ""
    return f" {words.at_least(words.duration(at.now_ms - finding.since_ms), finding.since_is_bound)}"


def _brokers(finding: Finding) -> str:
    return f"rack {finding.rack}" if finding.rack else nouns.some_brokers(finding.brokers)


def _of_brokers(state: str) -> _Brief:
    return lambda finding, at: [f"{_brokers(finding)} {state}{_age(finding, at)}"]


def _is_one(finding: Finding) -> bool:
    return len(finding.brokers) == 1 or bool(finding.rack)


def _silent(finding: Finding, at: _At) -> list[str]:
    led = finding.partitions or finding.internal_partitions
    return [f"{_brokers(finding)} silent{_age(finding, at)}", f"{_number(finding, at)} down" if led else ""]


def _lost(finding: Finding, unknown: str = "") -> str:
    if finding.count <= 0:
        return unknown
    return f"{words.at_least(words.plural(finding.count, 'record'), True)} lost"


def _troubled(finding: Finding, at: _At) -> list[str]:
    """Return the worst group by name, or how many have its verdict, with what else is known of it."""
    said = verdicts.VERDICTS[finding.verdict]
    alike = finding.groups if finding.count == UNKNOWN else finding.count
    others = f"{finding.groups - alike:,} more in trouble" if finding.groups > alike else ""
    if alike > 1:
        return [f"{words.plural(alike, 'group')} {said}", others]
    behind = ""
    if finding.behind_ms != UNKNOWN and finding.behind_ms >= _WORTH_SAYING_MS:
        lasts = words.duration(finding.behind_ms, tenths=False)
        behind = f"{words.marked(lasts, finding.behind_is_bound, finding.behind_is_estimate)} behind"
    return [f"{finding.group} {said}", others or behind]


def _fell(finding: Finding, at: _At) -> list[str]:
    topic = f"{finding.topics[0]} input" if finding.topics else "input"
    return [f"{topic} {words.count(finding.rate_before)} {ARROW} {words.count(finding.rate)}/s"]


def _hidden(finding: Finding, at: _At) -> list[str]:
    return [f"some {'topics' if finding.cause.code == TOPIC_REFUSED else 'groups'} hidden by ACLs"]


def _missed(finding: Finding, at: _At) -> list[str]:
    records = words.at_least(words.plural(finding.count, "record"), finding.count_is_bound)
    return [f"{finding.group} missed {records}"]


def _transaction(finding: Finding, at: _At) -> list[str]:
    opened = finding.transaction
    name = nouns.producer(opened.transactional_id, opened.producer_id) if opened is not None else "a producer"
    return [f"{name}: open transaction{_age(finding, at)}"]


def _dirs(finding: Finding, at: _At) -> list[str]:
    return [f"{_brokers(finding)}: {words.plural(max(1, len(finding.paths)), 'log dir')} failed"]


_BRIEFS: Mapping[FindingKind, _Brief] = {
    FindingKind.ALL_WELL: lambda finding, at: ["WELL"],
    FindingKind.CLUSTER_WELL: lambda finding, at: ["cluster healthy"],
    FindingKind.NO_PARTITIONS: lambda finding, at: [
        f"{words.plural(finding.count, 'broker')} up",
        "no partitions",
    ],
    FindingKind.NOTHING_KNOWN: lambda finding, at: ["waiting for the first answer"],
    FindingKind.NO_BROKER_ANSWERS: lambda finding, at: [f"no broker answers{_age(finding, at)}"],
    FindingKind.METADATA_FAILED: lambda finding, at: [f"metadata{_age(finding, at)} old"],
    FindingKind.NOT_AUTHORIZED: _hidden,
    FindingKind.BROKERS_SILENT: _silent,
    FindingKind.WATERMARK_FROZEN: _counted("frozen"),
    FindingKind.QUORUM_HEARS_BROKERS: lambda finding, at: [f"only kview misses {_brokers(finding)}"],
    FindingKind.BROKERS_SLOW: lambda finding, at: [
        f"{_brokers(finding)} slow",
        f"{words.latency(finding.count * 1000)} per answer",
    ],
    FindingKind.BROKERS_LATE: _of_brokers("no reply"),
    FindingKind.BROKERS_CUT_OFF: _of_brokers("cut off"),
    FindingKind.FENCING_DUE: lambda finding, at: [words.fencing(finding.due_ms, at.now_ms)],
    FindingKind.BROKERS_STARTING: _of_brokers("starting"),
    FindingKind.BROKERS_FENCED: _of_brokers("fenced"),
    FindingKind.BROKERS_GONE: _of_brokers("gone"),
    FindingKind.LOG_DIR_OFFLINE: _dirs,
    FindingKind.NO_LEADER: _counted("down"),
    FindingKind.SILENT_LEADER: _counted("down"),
    FindingKind.UNDER_MIN_ISR: _counted("under min ISR"),
    FindingKind.UNDER_REPLICATED: _counted("under-replicated"),
    FindingKind.AT_MIN_ISR: _counted("at min ISR"),
    FindingKind.UNCLEAN_ELECTION: lambda finding, at: [
        f"unclean election{_age(finding, at)} ago",
        _lost(finding, "loss unknown"),
    ],
    FindingKind.LEADER_RECORDS_LOST: lambda finding, at: [_lost(finding, "records lost")],
    FindingKind.PARTITIONS_UNREAD: _counted("unreadable"),
    FindingKind.RECORDS_LOST: _missed,
    FindingKind.NO_CONTROLLER: lambda finding, at: ["no active controller"],
    FindingKind.QUORUM_SILENT: lambda finding, at: [f"no word from controllers{_age(finding, at)}"],
    FindingKind.QUORUM_LOST: lambda finding, at: [f"{nouns.controllers(finding.controllers)}: no majority"],
    FindingKind.CONTROLLERS_LOST: lambda finding, at: [f"{nouns.controllers(finding.controllers)} lost"],
    FindingKind.OPEN_TRANSACTION: _transaction,
    FindingKind.HANGING_TRANSACTION: lambda finding, at: [f"hanging transaction{_age(finding, at)}"],
    FindingKind.GROUPS_TROUBLED: _troubled,
    FindingKind.GROUPS_UNREAD: lambda finding, at: [f"{finding.group}: lag{_age(finding, at)} old"],
    FindingKind.GROUPS_UNJUDGED: lambda finding, at: [
        f"{words.plural(finding.groups, 'group')} not judged yet"
    ],
    FindingKind.CONNECT_TASK_FAILED: lambda finding, at: [
        f"{nouns.task_of(finding.connector, finding.task)} failed"
    ],
    FindingKind.CONNECTORS_UNREAD: lambda finding, at: ["connector states unknown"],
    FindingKind.THROTTLE_LEFT: lambda finding, at: ["leftover replication throttle"],
    FindingKind.INPUT_FELL: _fell,
    FindingKind.LEADS_NOTHING: lambda finding, at: [
        f"{_brokers(finding)} {'leads' if _is_one(finding) else 'lead'} nothing"
    ],
    FindingKind.APIS_DIFFER: lambda finding, at: [f"{_brokers(finding)}: different APIs"],
    FindingKind.NOT_PREFERRED: _counted("not on preferred leader"),
}
