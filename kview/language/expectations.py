"""What a lesson expects of the cluster, in words: `broker 2 leads invoice-3`, `the lag of billing grows`."""

import re
from collections.abc import Callable, Mapping, Sequence

from kview.language.nouns import listed
from kview.language.words import plural

_NOUNS: Mapping[tuple[str, str], str] = {
    ("cluster", "severity"): "the verdict on the cluster",
    ("cluster", "headline"): "the headline",
    ("cluster", "controller"): "the active controller",
    ("cluster", "controller-epoch"): "the controller's epoch",
    ("cluster", "brokers-up"): "the number of brokers that are up",
    ("cluster", "brokers"): "the number of brokers",
    ("cluster", "under-replicated"): "the number of under-replicated partitions",
    ("cluster", "no-leader"): "the number of partitions without a leader",
    ("cluster", "under-min-isr"): "the number of partitions below min.insync.replicas",
    ("cluster", "at-min-isr"): "the number of partitions at min.insync.replicas",
    ("cluster", "incidents"): "the number of incidents",
    ("cluster", "open-incidents"): "the number of open incidents",
    ("broker", "leads"): "the number of partitions that broker {0} leads",
    ("broker", "replicas"): "the number of replicas on broker {0}",
    ("broker", "latency"): "the latency of broker {0}",
    ("partition", "leader"): "the leader of {0}",
    ("partition", "epoch"): "the leader epoch of {0}",
    ("partition", "isr"): "the ISR of {0}",
    ("partition", "isr-size"): "the size of the ISR of {0}",
    ("partition", "replicas"): "the list of copies of {0}",
    ("partition", "racks"): "the number of racks with a copy of {0}",
    ("partition", "watermark"): "the high watermark of {0}",
    ("partition", "log-end"): "the log end of {0}",
    ("partition", "log-start"): "the log start of {0}",
    ("partition", "uncommitted"): "the number of uncommitted records in {0}",
    ("partition", "rate"): "the rate of {0}",
    ("partition", "min-isr"): "min.insync.replicas of {0}",
    ("partition", "gone"): "the number of records of {0} that are gone",
    ("partition", "end"): "the log end of {0} on broker {at}",
    ("partition", "behind"): "the number of records by which broker {at} is behind in {0}",
    ("topic", "rate"): "the rate of {0}",
    ("topic", "partitions"): "the number of partitions of {0}",
    ("topic", "replication"): "the number of copies of {0}",
    ("topic", "min-isr"): "min.insync.replicas of {0}",
    ("topic", "silent-leader"): "the number of partitions of {0} led by a silent broker",
    ("topic", "frozen"): "the number of partitions of {0} whose watermark stands still",
    ("topic", "no-leader"): "the number of partitions of {0} without a leader",
    ("topic", "under-min-isr"): "the number of partitions of {0} below min.insync.replicas",
    ("topic", "under-replicated"): "the number of under-replicated partitions of {0}",
    ("topic", "not-preferred"): "the number of partitions of {0} off their preferred leader",
    ("group", "lag"): "the lag of {0}",
    ("group", "behind"): "the time that {0} is behind",
    ("group", "members"): "the number of members of {0}",
    ("group", "active-members"): "the number of members of {0} that own partitions",
    ("group", "idle-members"): "the number of idle members of {0}",
    ("group", "rate"): "the rate at which {0} reads",
    ("group", "lost"): "the number of records that {0} has missed",
    ("group", "read"): "the number of records that {0} has read",
    ("group", "reread"): "the number of records that {0} has read twice",
    ("group", "skipped"): "the number of records that {0} has skipped",
    ("position", "committed"): "the offset of {0} in {1}",
    ("position", "lag"): "the lag of {0} in {1}",
    ("position", "owner"): "the owner of {1} in {0}",
    ("position", "lost"): "the number of records of {1} that {0} has missed",
    ("member", "assigned"): "the number of partitions that {0} owns",
    ("incident", "waited"): "the time that producers waited",
    ("incident", "gone"): "the number of lost records",
    ("incident", "moved"): "the number of partitions with a new leader",
    ("incident", "leaderless"): "the number of partitions without a leader",
    ("producer", "waiting"): "what {0} holds back",
    ("producer", "lost"): "the number of records that {0} has lost",
    ("producer", "created"): "the number of records that {0} has made",
    ("producer", "acknowledged"): "the number of acknowledged records of {0}",
}
"""What figures are called, by subject and name. `{0}` and `{1}` are names, and `{at}` is a broker."""

_COUNTED: Mapping[tuple[str, str], tuple[str, str, str]] = {
    ("cluster", "brokers-up"): ("broker", "{n} {is} up", ""),
    ("cluster", "under-replicated"): ("partition", "{n} {is} under-replicated", ""),
    ("cluster", "no-leader"): ("partition", "{n} {has} no leader", "every partition has a leader"),
    ("cluster", "under-min-isr"): ("partition", "{n} {is} below min.insync.replicas", ""),
    ("cluster", "at-min-isr"): ("partition", "{n} {is} at min.insync.replicas", ""),
    ("broker", "leads"): ("partition", "broker {0} leads {n}", ""),
    ("broker", "replicas"): ("replica", "broker {0} has {n}", ""),
    ("partition", "isr-size"): ("member", "the ISR of {0} has {n}", ""),
    ("partition", "racks"): ("rack", "{0} has copies in {n}", ""),
    ("partition", "uncommitted"): ("record", "{n} of {0} {is} uncommitted", ""),
    ("partition", "gone"): ("record", "{n} of {0} {is} gone", ""),
    ("partition", "behind"): ("record", "broker {at} is {n} behind in {0}", ""),
    ("topic", "partitions"): ("partition", "{0} has {n}", ""),
    ("topic", "silent-leader"): ("partition", "{n} of {0} {is} led by a silent broker", ""),
    ("topic", "frozen"): (
        "partition", "{n} of {0} {has} a frozen watermark", "every watermark of {0} moves",
    ),
    ("topic", "no-leader"): (
        "partition", "{n} of {0} {has} no leader", "every partition of {0} has a leader",
    ),
    ("topic", "under-min-isr"): ("partition", "{n} of {0} {is} below min.insync.replicas", ""),
    ("topic", "under-replicated"): (
        "partition", "{n} of {0} {is} under-replicated", "every copy of {0} is in sync",
    ),
    ("topic", "not-preferred"): (
        "partition", "{n} of {0} {is} not led by the preferred leader",
        "every partition of {0} is led by its preferred leader",
    ),
    ("group", "members"): ("member", "{0} has {n}", ""),
    ("group", "active-members"): ("member", "{n} of {0} {is} reading", ""),
    ("group", "idle-members"): ("member", "{n} of {0} {is} idle", ""),
    ("group", "lost"): ("record", "{0} has missed {n}", ""),
    ("group", "read"): ("record", "{0} has read {n}", ""),
    ("group", "reread"): ("record", "{0} has read {n} twice", ""),
    ("group", "skipped"): ("record", "{0} has skipped {n}", ""),
    ("position", "lost"): ("record", "{0} has missed {n} of {1}", ""),
    ("member", "assigned"): ("partition", "{0} has {n}", ""),
    ("incident", "gone"): ("record", "{n} {is} lost", ""),
    ("incident", "moved"): ("partition", "{n} {has} a new leader", ""),
    ("incident", "leaderless"): ("partition", "{n} {has} no leader", ""),
    ("producer", "waiting"): ("record", "{0} holds back {n}", ""),
    ("producer", "lost"): ("record", "{0} has lost {n}", ""),
    ("producer", "created"): ("record", "{0} has made {n}", ""),
    ("producer", "acknowledged"): ("record", "{n} of {0} {is} acknowledged", ""),
}  # fmt: skip
"""Figures that count: what they count, the sentence that a count makes (`{n}` is `3 partitions`, `no
partition` or `at least 3 partitions`), and the sentence for none of them if it is another one."""

_PHASES: Mapping[str, str] = {
    "silent": "the silence",
    "frozen": "the watermark standing still",
    "fenced": "the fencing",
    "elected": "the election",
    "moves": "the watermark moving again",
    "back": "the return",
    "isr-full": "the full ISR",
    "stopped": "the stop",
    "quorum-back": "the quorum's return",
}

_STATUSES: Mapping[str, str] = {
    "ok": "well",
    "not_preferred": "not led by its preferred leader",
    "silent_leader": "led by a silent broker",
    "no_leader": "without a leader",
    "under_min_isr": "below min.insync.replicas",
    "at_min_isr": "at min.insync.replicas",
}
_RACKS: Mapping[str, str] = {
    "yes": "survives the loss of a rack",
    "no": "does not survive the loss of a rack",
    "cannot_be": "has only one copy, or one rack",
}

_STATES: Mapping[tuple[str, str], Callable[[str, str], str]] = {
    ("broker", "state"): lambda of, value: f"broker {of} is {value}",
    ("broker", "slow"): lambda of, value: f"broker {of} is {'slow' if value == 'yes' else 'not slow'}",
    ("broker", "answers"): lambda of, value: (
        f"broker {of} {'answers' if value == 'yes' else 'does not answer'}"
    ),
    ("broker", "rack"): lambda of, value: f"broker {of} is in rack {value}",
    ("broker", "error"): lambda of, value: f"broker {of} does not answer: {value}",
    ("partition", "frozen"): lambda of, value: (
        f"the watermark of {of} {'stands still' if value == 'yes' else 'moves'}"
    ),
    ("partition", "status"): lambda of, value: f"{of} is {_STATUSES.get(value, value.replace('_', ' '))}",
    ("partition", "rack-safe"): lambda of, value: f"{of} {_RACKS.get(value, value)}",
    ("topic", "rack-safe"): lambda of, value: f"{of} {_RACKS.get(value, value)}",
    ("group", "verdict"): lambda of, value: f"{of} is {value.replace('_', ' ')}",
    ("group", "reason"): lambda of, value: f"{of}: {value.replace('_', ' ')}",
    ("group", "state"): lambda of, value: f"{of} is in state {value}",
    ("incident", "open"): lambda of, value: f"the incident is {'open' if value == 'yes' else 'over'}",
    ("incident", "kind"): lambda of, value: f"the incident is: {value.replace('_', ' ')}",
}
"""Figures whose values are words: the sentence that a value makes."""


_SHORT: Mapping[tuple[str, str], str] = {
    ("cluster", "controller"): "active controller",
    ("member", "assigned"): "partitions",
    ("group", "reread"): "records read twice",
    ("group", "skipped"): "records skipped",
    ("group", "lost"): "records missed",
    ("topic", "no-leader"): "partitions without a leader",
    ("topic", "under-replicated"): "under-replicated partitions",
    ("partition", "uncommitted"): "uncommitted records",
    ("partition", "behind"): "records behind",
    ("producer", "lost"): "records lost",
    ("producer", "waiting"): "records waiting",
}
"""What figures are called after the name of what they are about."""

_PER_SECOND = frozenset({("partition", "rate"), ("topic", "rate"), ("group", "rate")})
"""Subject and name of the figures in records per second."""

_DURATION = re.compile(r"(\d+)(ms|s|m)")

_FINDINGS: Mapping[str, str] = {
    "brokers_silent": "a broker is silent",
    "brokers_slow": "a broker answers slowly",
    "brokers_fenced": "a broker is fenced",
    "brokers_gone": "a broker has left the cluster",
    "watermark_frozen": "high watermarks stand still",
    "no_leader": "partitions have no leader",
    "under_min_isr": "partitions are below min.insync.replicas",
    "under_replicated": "partitions are under-replicated",
    "at_min_isr": "partitions are at min.insync.replicas",
    "leader_records_lost": "records of an old leader are lost",
    "records_lost": "records were deleted before a group read them",
    "no_controller": "no controller is active",
    "quorum_silent": "nobody answers for the controllers",
    "quorum_lost": "the controllers have lost their majority",
    "controllers_lost": "a controller is missing",
    "groups_troubled": "a group has a problem",
    "leads_nothing": "a broker leads nothing",
}
"""What the headline says by finding."""

_SEVERITIES: Mapping[str, str] = {
    "calm": "nothing is wrong",
    "good": "nothing is wrong",
    "warn": "the headline warns",
    "risk": "the headline is red",
}


def figure_noun(subject: str, of: Sequence[str], name: str, at: int) -> str:
    """Return what a figure is called: `the ISR of invoice-3`."""
    if subject == "incident" and name in _PHASES:
        return f"the time until {_PHASES[name]}"
    noun = _NOUNS.get((subject, name))
    if noun is not None:
        return noun.format(*of, at=at)
    return " ".join((subject, *of, name.replace("-", " ")))


def short_noun(subject: str, of: Sequence[str], name: str, at: int) -> str:
    """Return a figure's name next to its values: `invoice-3 leader`."""
    on = f" on broker {at}" if at >= 0 else ""
    name = _SHORT.get((subject, name), name)
    if subject == "cluster":
        return name.replace("-", " ")
    first = f"broker {of[0]}" if subject == "broker" else " ".join(of) or subject
    return f"{first} {name.replace('-', ' ')}{on}"


def expected(
    subject: str, of: Sequence[str], name: str, at: int, operator: str, values: Sequence[str]
) -> str:
    """Return an expectation as a sentence without a full stop."""
    words = " ".join(values)
    said = _STATES.get((subject, name))
    if said is not None and operator == "is":
        return said(of[0] if of else "", words)
    if (subject, name, operator) == ("partition", "leader", "is") and words != "none":
        return f"broker {words} leads {of[0]}"
    if (subject, name, operator) == ("partition", "leader", "is"):
        return f"{of[0]} has no leader"
    if (subject, name, operator) == ("partition", "replicas", "is"):
        return f"{of[0]} has its copies on brokers {listed(values)}"
    if (subject, name, operator) == ("partition", "isr", "is"):
        return f"the ISR of {of[0]} is {listed(values)}"
    if operator in ("is", ">=", "<=") and words.isdigit() and (subject, name) in _COUNTED:
        return _counted(subject, of, name, at, operator, int(words))
    if (subject, name) == ("cluster", "findings") and operator in ("has", "lacks"):
        found = ", ".join(_FINDINGS.get(one, one.replace("_", " ")) for one in values)
        return found if operator == "has" else f"the headline does not say that {found}"
    if (subject, name, operator) == ("cluster", "severity", "is"):
        return _SEVERITIES.get(words, words)
    if (subject, name, operator) == ("cluster", "events", "has"):
        return f"an event was reported: {words.replace('_', ' ')}"
    if said is not None and operator == "is-not" and " is " in (made := said(of[0] if of else "", words)):
        return made.replace(" is ", " is not ", 1)
    noun = figure_noun(subject, of, name, at)
    match operator:
        case "grows" | "falls" | "changes":
            return f"{noun} {operator}"
        case "stays":
            return f"{noun} stays the same"
        case "has" | "lacks":
            return f"{noun} {'includes' if operator == 'has' else 'does not include'} {', '.join(values)}"
        case ">=" | "<=":
            bound = "at least" if operator == ">=" else "at most"
            return f"{noun} is {bound} {_quantity(subject, name, words)}"
        case "is-not":
            return f"{noun} is known" if words == "unknown" else f"{noun} is not {words} any more"
    return f"{noun} is {', '.join(map(_number, values))}"


def _counted(subject: str, of: Sequence[str], name: str, at: int, operator: str, number: int) -> str:
    noun, said, none = _COUNTED[subject, name]
    if not number and operator != ">=":
        if none:
            return none.format(*of, at=at)
        return said.format(*of, at=at, n=f"no {noun}", **{"is": "is", "has": "has"})
    bound = {">=": "at least ", "<=": "at most "}.get(operator, "")
    verbs = {"is": "is", "has": "has"} if number == 1 else {"is": "are", "has": "have"}
    return said.format(*of, at=at, n=bound + plural(number, noun), **verbs)


def between(subject: str, of: Sequence[str], name: str, at: int, least: str, most: str) -> str:
    """Return an expectation of at least and one of at most as one sentence without a full stop."""
    return (
        f"{figure_noun(subject, of, name, at)} is between {_number(least)} and"
        f" {_quantity(subject, name, most)}"
    )


def _quantity(subject: str, name: str, text: str) -> str:
    return _number(text) + (" records/s" if (subject, name) in _PER_SECOND else "")


def _number(text: str) -> str:
    if text.isdigit():
        return f"{int(text):,}"
    if duration := _DURATION.fullmatch(text):
        return f"{duration[1]} {duration[2]}"
    return text.replace("_", " ")
