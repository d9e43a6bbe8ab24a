"""Findings in a few words, for the head of every screen. `kview.language.findings` says them in full."""

from collections.abc import Callable, Mapping

from kview.language import nouns, verdicts, words
from kview.language.findings import TOPIC_REFUSED
from kview.language.glyphs import ARROW
from kview.model.findings import Finding, FindingKind
from kview.model.units import UNKNOWN

_WORTH_SAYING_MS = 60_000
"""A group's lag in time is said from here on."""


def brief(finding: Finding, now_ms: int, is_first: bool = False) -> list[str]:
    """Return what is wrong in a few words, with ages as of `now_ms` (epoch ms), and the figures that follow
    from it: `broker 4 silent 5.2 s` and `4 unavailable`, as Kafka's tools call partitions without a live
    leader. What `is_first` says what it counts: `1 partition unavailable`."""
    said, *more = _BRIEFS[finding.kind](finding, now_ms)
    if is_first and finding.kind in _OF_PARTITIONS:
        said = said.replace(_number(finding.partitions, finding.internal_partitions), _named(finding), 1)
    return [said, *filter(None, more)]


def _number(mine: int, internal: int) -> str:
    """Return a number of partitions. Those of internal topics count only if they alone are wrong."""
    return f"{mine:,}" if mine or not internal else f"{internal:,} internal"


def _named(finding: Finding) -> str:
    if finding.partitions or not finding.internal_partitions:
        return words.plural(finding.partitions, "partition")
    return words.plural(finding.internal_partitions, "internal partition")


def _counted(what: str) -> "Callable[[Finding, int], list[str]]":
    return lambda finding, now_ms: [f"{_number(finding.partitions, finding.internal_partitions)} {what}"]


def _age(finding: Finding, now_ms: int) -> str:
    """Return how long it has lasted, with a space before it, '' if nobody knows."""
    if finding.since_ms == UNKNOWN:
        return ""
    return f" {words.at_least(words.duration(now_ms - finding.since_ms), finding.since_is_bound)}"


def _brokers(finding: Finding) -> str:
    return f"rack {finding.rack}" if finding.rack else nouns.some_brokers(finding.brokers)


def _of_brokers(state: str) -> "Callable[[Finding, int], list[str]]":
    return lambda finding, now_ms: [f"{_brokers(finding)} {state}{_age(finding, now_ms)}"]


def _silent(finding: Finding, now_ms: int) -> list[str]:
    has_led = finding.partitions or finding.internal_partitions
    led = _number(finding.partitions, finding.internal_partitions)
    return [f"{_brokers(finding)} silent{_age(finding, now_ms)}", f"{led} unavailable" if has_led else ""]


def _lost(finding: Finding, now_ms: int) -> str:
    return f"{words.at_least(f'{finding.count:,}', True)} records lost" if finding.count > 0 else ""


def _troubled(finding: Finding, now_ms: int) -> list[str]:
    """Return the worst group by name, or how many have its verdict, with what else is known of it."""
    said = verdicts.VERDICTS[finding.verdict]
    alike = finding.groups if finding.count == UNKNOWN else finding.count
    if alike > 1:
        return [f"{words.plural(alike, 'group')} {said}"]
    behind = ""
    if finding.behind_ms != UNKNOWN and finding.behind_ms >= _WORTH_SAYING_MS:
        lasts = words.duration(finding.behind_ms, tenths=False)
        behind = f"{words.marked(lasts, finding.behind_is_bound, finding.behind_is_estimate)} behind"
    if finding.groups > 1:
        behind = f"{finding.groups - 1:,} more in trouble"
    return [f"{finding.group} {said}", behind]


def _fell(finding: Finding, now_ms: int) -> list[str]:
    topic = finding.topics[0] if finding.topics else "input"
    return [f"{topic} in {words.count(finding.rate_before)} {ARROW} {words.count(finding.rate)}/s"]


def _not_authorized(finding: Finding, now_ms: int) -> list[str]:
    return [f"kview may not see all {'topics' if finding.cause.code == TOPIC_REFUSED else 'groups'}"]


_BRIEFS: Mapping[FindingKind, Callable[[Finding, int], list[str]]] = {
    FindingKind.ALL_WELL: lambda finding, now_ms: ["WELL"],
    FindingKind.CLUSTER_WELL: lambda finding, now_ms: ["cluster well"],
    FindingKind.NO_PARTITIONS: lambda finding, now_ms: [
        f"{words.plural(finding.count, 'broker')} up",
        "no partitions",
    ],
    FindingKind.NOTHING_KNOWN: lambda finding, now_ms: ["waiting for the first answer"],
    FindingKind.NO_BROKER_ANSWERS: lambda finding, now_ms: [f"no broker answers{_age(finding, now_ms)}"],
    FindingKind.METADATA_FAILED: lambda finding, now_ms: [f"metadata{_age(finding, now_ms)} old"],
    FindingKind.NOT_AUTHORIZED: _not_authorized,
    FindingKind.BROKERS_SILENT: _silent,
    FindingKind.WATERMARK_FROZEN: _counted("frozen"),
    FindingKind.QUORUM_HEARS_BROKERS: _of_brokers("unreached"),
    FindingKind.BROKERS_SLOW: lambda finding, now_ms: [
        f"{_brokers(finding)} slow",
        f"{words.latency(finding.count * 1000)} an answer",
    ],
    FindingKind.BROKERS_LATE: _of_brokers("no reply"),
    FindingKind.FENCING_DUE: lambda finding, now_ms: [words.fencing(finding.due_ms, now_ms)],
    FindingKind.BROKERS_STARTING: _of_brokers("starting"),
    FindingKind.BROKERS_FENCED: _of_brokers("fenced"),
    FindingKind.BROKERS_GONE: _of_brokers("gone"),
    FindingKind.LOG_DIR_OFFLINE: lambda finding, now_ms: [f"log dir of {_brokers(finding)} failed"],
    FindingKind.NO_LEADER: _counted("unavailable"),
    FindingKind.SILENT_LEADER: _counted("unavailable"),
    FindingKind.UNDER_MIN_ISR: _counted("under min ISR"),
    FindingKind.UNDER_REPLICATED: _counted("under-replicated"),
    FindingKind.AT_MIN_ISR: _counted("at min ISR"),
    FindingKind.UNCLEAN_ELECTION: lambda finding, now_ms: [
        f"unclean election{_age(finding, now_ms)} ago",
        _lost(finding, now_ms),
    ],
    FindingKind.LEADER_RECORDS_LOST: lambda finding, now_ms: [_lost(finding, now_ms)],
    FindingKind.PARTITIONS_UNREAD: _counted("not read"),
    FindingKind.RECORDS_LOST: lambda finding, now_ms: [
        f"{finding.group} lost {words.at_least(f'{finding.count:,}', finding.count_is_bound)} records"
    ],
    FindingKind.NO_CONTROLLER: lambda finding, now_ms: ["no controller"],
    FindingKind.QUORUM_SILENT: lambda finding, now_ms: [f"controllers silent{_age(finding, now_ms)}"],
    FindingKind.QUORUM_LOST: lambda finding, now_ms: [
        f"{nouns.controllers(finding.controllers)} without majority"
    ],
    FindingKind.CONTROLLERS_LOST: lambda finding, now_ms: [f"{nouns.controllers(finding.controllers)} lost"],
    FindingKind.OPEN_TRANSACTION: lambda finding, now_ms: [f"transaction open{_age(finding, now_ms)}"],
    FindingKind.HANGING_TRANSACTION: lambda finding, now_ms: [f"transaction hangs{_age(finding, now_ms)}"],
    FindingKind.GROUPS_TROUBLED: _troubled,
    FindingKind.GROUPS_UNREAD: lambda finding, now_ms: [f"{finding.group}{_age(finding, now_ms)} old"],
    FindingKind.GROUPS_UNJUDGED: lambda finding, now_ms: [
        f"{words.plural(finding.groups, 'group')} not judged yet"
    ],
    FindingKind.CONNECT_TASK_FAILED: lambda finding, now_ms: [
        f"{nouns.task_of(finding.connector, finding.task)} failed"
    ],
    FindingKind.CONNECTORS_UNREAD: lambda finding, now_ms: ["connectors unknown"],
    FindingKind.THROTTLE_LEFT: lambda finding, now_ms: ["throttle left"],
    FindingKind.INPUT_FELL: _fell,
    FindingKind.LEADS_NOTHING: lambda finding, now_ms: [f"{_brokers(finding)} leading nothing"],
    FindingKind.APIS_DIFFER: lambda finding, now_ms: [f"{_brokers(finding)} with other APIs"],
    FindingKind.NOT_PREFERRED: _counted("not on preferred leader"),
}

_OF_PARTITIONS = frozenset(
    {
        FindingKind.WATERMARK_FROZEN,
        FindingKind.NO_LEADER,
        FindingKind.SILENT_LEADER,
        FindingKind.UNDER_MIN_ISR,
        FindingKind.UNDER_REPLICATED,
        FindingKind.AT_MIN_ISR,
        FindingKind.PARTITIONS_UNREAD,
        FindingKind.NOT_PREFERRED,
    }
)
"""The findings that begin with a number of partitions."""
