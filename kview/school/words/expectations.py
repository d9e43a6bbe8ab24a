"""What a lesson expects of the cluster, in words: `broker 2 leads invoice-3`, `the lag of billing grows`."""

import re
from collections.abc import Callable, Mapping, Sequence

from kview.language.verdicts import VERDICTS

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
    ("partition", "replicas"): "the brokers with the copies of {0}",
    ("partition", "racks"): "the number of racks with a copy of {0}",
    ("partition", "watermark"): "the high watermark of {0}",
    ("partition", "log-end"): "the log end of {0}",
    ("partition", "log-start"): "the log start of {0}",
    ("partition", "uncommitted"): "the number of uncommitted records in {0}",
    ("partition", "last-stable"): "the last stable offset of {0}",
    ("partition", "held-back"): "the number of records in {0} that wait for the end of a transaction",
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
    ("group", "reread"): "the number of records that {0} has processed twice",
    ("group", "skipped"): "the number of records that {0} has skipped",
    ("group", "aborted"): "the number of aborted records that {0} has processed",
    ("position", "committed"): "the offset of {0} in {1}",
    ("position", "lag"): "the lag of {0} in {1}",
    ("position", "owner"): "the owner of {1} in {0}",
    ("position", "lost"): "the number of records of {1} that {0} has missed",
    ("member", "assigned"): "the number of partitions that {0} owns",
    ("incident", "waited"): "the longest time that a write waited",
    ("incident", "gone"): "the number of records that are gone",
    ("incident", "moved"): "the number of partitions with a new leader",
    ("incident", "leaderless"): "the number of partitions without a leader",
    ("producer", "waiting"): "the number of unacknowledged records of the producer {0}",
    ("producer", "lost"): "the number of records that the producer {0} has given up",
    ("producer", "created"): "the number of records that the producer {0} has made",
    ("producer", "acknowledged"): "the number of acknowledged records of the producer {0}",
    ("producer", "commits"): "the number of transactions that {0} has committed",
    ("producer", "aborts"): "the number of transactions that {0} has aborted",
}
"""What figures are called, by subject and name. `{0}` and `{1}` are names, and `{at}` is a broker."""

_COUNTED: Mapping[tuple[str, str], str] = {
    ("cluster", "brokers"): "there {are} {n} broker{s}",
    ("cluster", "brokers-up"): "{n} broker{s} {are} up",
    ("cluster", "under-replicated"): "{n} partition{s} {are} under-replicated",
    ("broker", "leads"): "broker {0} leads {n} partition{s}",
    ("partition", "uncommitted"): "{0} has {n} uncommitted record{s}",
    ("partition", "gone"): "{n} record{s} of {0} {are} gone",
    ("partition", "behind"): "broker {at} has {n} record{s} of {0} still to copy",
    ("partition", "isr-size"): "{0} has {n} replica{s} in sync",
    ("partition", "racks"): "{0} has copies in {n} rack{s}",
    ("topic", "partitions"): "{0} has {n} partition{s}",
    ("topic", "silent-leader"): "{n} partition{s} of {0} {are} led by a silent broker",
    ("topic", "frozen"): "{n} watermark{s} of {0} {stand} still",
    ("topic", "no-leader"): "{n} partition{s} of {0} {are} without a leader",
    ("topic", "under-min-isr"): "{n} partition{s} of {0} {are} below min.insync.replicas",
    ("topic", "under-replicated"): "{n} partition{s} of {0} {are} under-replicated",
    ("topic", "gone"): "{n} record{s} of {0} {are} gone",
    ("topic", "gone-committed"): "{n} committed record{s} of {0} {are} gone",
    ("topic", "not-preferred"): "{n} partition{s} of {0} {are} off their preferred leader",
    ("group", "members"): "{0} has {n} member{s}",
    ("group", "active-members"): "{n} member{s} of {0} {have} partitions",
    ("group", "idle-members"): "{n} member{s} of {0} {are} idle",
    ("group", "lost"): "{0} has missed {n} record{s}",
    ("position", "lost"): "{0} has missed {n} record{s} of {1}",
    ("group", "reread"): "{0} has processed {n} record{s} twice",
    ("group", "skipped"): "{0} has skipped {n} record{s}",
    ("group", "aborted"): "{0} has processed {n} aborted record{s}",
    ("member", "assigned"): "{0} owns {n} partition{s}",
    ("incident", "gone"): "{n} record{s} {are} gone",
    ("producer", "waiting"): "{n} record{s} of the producer {0} {wait} for an acknowledgement",
    ("producer", "lost"): "the producer {0} has given up {n} record{s}",
    ("producer", "commits"): "{0} has committed {n} transaction{s}",
    ("producer", "aborts"): "{0} has aborted {n} transaction{s}",
    ("partition", "held-back"): "{n} record{s} of {0} {wait} for the end of a transaction",
}
"""The sentences about how many there are of something. `{n}` is the number, such as `at least 2`."""

_SHORT: Mapping[tuple[str, str], str] = {
    ("cluster", "controller"): "active controller",
    ("cluster", "controller-epoch"): "controller epoch",
    ("broker", "leads"): "partitions that broker {0} leads",
    ("partition", "behind"): "records that broker {at} has to copy",
    ("partition", "epoch"): "{0} leader epoch",
    ("partition", "frozen"): "{0} watermark frozen",
    ("partition", "isr"): "{0} ISR",
    ("partition", "uncommitted"): "{0} uncommitted records",
    ("topic", "no-leader"): "partitions of {0} without a leader",
    ("topic", "under-replicated"): "under-replicated partitions of {0}",
    ("group", "active-members"): "{0} members with partitions",
    ("group", "lost"): "records that {0} has missed",
    ("group", "reread"): "records that {0} has processed twice",
    ("group", "skipped"): "records that {0} has skipped",
    ("group", "aborted"): "aborted records that {0} has processed",
    ("position", "committed"): "committed offset of {0} in {1}",
    ("position", "lag"): "lag of {0} in {1}",
    ("position", "lost"): "records of {1} that {0} has missed",
    ("member", "assigned"): "partitions of {0}",
    ("incident", "waited"): "longest wait of a write",
    ("producer", "waiting"): "unacknowledged records of the producer {0}",
    ("producer", "commits"): "transactions that {0} has committed",
    ("producer", "aborts"): "transactions that {0} has aborted",
    ("partition", "held-back"): "records of {0} that wait for the end of a transaction",
}
"""What figures are called next to their values, where their own names do not say it."""

_PHASES: Mapping[str, str] = {
    "silent": "the broker fell silent",
    "frozen": "the watermark stopped",
    "fenced": "the broker was fenced",
    "elected": "other brokers led its partitions",
    "moves": "the watermark moved again",
    "back": "the broker was back",
    "isr-full": "all replicas were in sync",
    "stopped": "the broker had stopped",
    "quorum-back": "the quorum was back",
}
"""What happened in the phases of an incident."""

_STATUSES: Mapping[str, str] = {
    "ok": "healthy",
    "under_replicated": "under-replicated",
    "not_preferred": "not led by its preferred leader",
    "silent_leader": "led by a silent broker",
    "no_leader": "without a leader",
    "under_min_isr": "below min.insync.replicas",
    "apis_differ": "brokers offer different APIs",
    "at_min_isr": "at min.insync.replicas",
}
_ERRORS: Mapping[str, str] = {
    "silent": "accepts connections but does not answer",
    "refused": "refuses connections",
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
    ("broker", "error"): lambda of, value: f"broker {of} {_ERRORS.get(value, f'does not answer: {value}')}",
    ("partition", "frozen"): lambda of, value: (
        f"the watermark of {of} {'stands still' if value == 'yes' else 'moves'}"
    ),
    ("partition", "status"): lambda of, value: f"{of} is {_STATUSES.get(value, value.replace('_', ' '))}",
    ("partition", "rack-safe"): lambda of, value: f"{of} {_RACKS.get(value, value)}",
    ("topic", "rack-safe"): lambda of, value: f"{of} {_RACKS.get(value, value)}",
    ("group", "verdict"): lambda of, value: f"{of} is {VERDICTS.get(value, value)}",
    ("group", "reason"): lambda of, value: f"{of}: {value.replace('_', ' ')}",
    ("group", "state"): lambda of, value: f"{of} is in state {value}",
    ("producer", "fenced"): lambda of, value: f"{of} is {'fenced' if value == 'yes' else 'not fenced'}",
    ("incident", "open"): lambda of, value: f"the incident is {'open' if value == 'yes' else 'over'}",
    ("incident", "kind"): lambda of, value: f"the incident is: {value.replace('_', ' ')}",
}
"""Figures whose values are words: the sentence that a value makes."""


_PER_SECOND = frozenset({("partition", "rate"), ("topic", "rate"), ("group", "rate")})
"""Subject and name of the figures in records per second."""

_FINDINGS: Mapping[str, str] = {
    "brokers_silent": "a broker is silent",
    "brokers_slow": "a broker answers slowly",
    "brokers_fenced": "a broker is fenced",
    "brokers_gone": "a broker has left the cluster",
    "watermark_frozen": "watermarks are frozen",
    "no_leader": "partitions have no leader",
    "under_min_isr": "partitions are below min.insync.replicas",
    "under_replicated": "partitions are under-replicated",
    "at_min_isr": "partitions are at min.insync.replicas",
    "unclean_election": "a leader that was not in sync was elected",
    "leader_records_lost": "records of an old leader are lost",
    "records_lost": "records were deleted before a group read them",
    "open_transaction": "a transaction blocks a group",
    "hanging_transaction": "a transaction hangs",
    "no_controller": "no controller is active",
    "quorum_silent": "there is no word from the controllers",
    "quorum_lost": "the controllers have no majority",
    "controllers_lost": "a controller is down",
    "groups_troubled": "a group has a problem",
    "leads_nothing": "a broker leads nothing",
}
"""What the headline says, by finding."""

_SEVERITIES: Mapping[str, str] = {
    "calm": "nothing is wrong",
    "good": "nothing is wrong",
    "warn": "the headline is yellow",
    "risk": "the headline is red",
}

_DURATION = re.compile(r"(\d+)(ms|s|m)")


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
    if (subject, name) in _SHORT:
        return _SHORT[subject, name].format(*of, at=at)
    on = f" on broker {at}" if at >= 0 else ""
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
    if (subject, name, operator, words) == ("partition", "leader", "is", "none"):
        return f"{of[0]} has no leader"
    if (subject, name, operator) == ("partition", "replicas", "is"):
        return f"the copies of {of[0]} are on brokers {', '.join(values)}"
    if (subject, name, operator) == ("partition", "isr", "is"):
        only = " alone" if len(values) == 1 else ""
        return f"the ISR of {of[0]} is {'brokers' if values[1:] else 'broker'} {', '.join(values)}{only}"
    if (subject, name, operator, words) == ("incident", "stopped", "is", "0"):
        return "the broker had stopped at once"
    if (subject, name, operator) == ("incident", "brokers", "is"):
        return f"the incident is about brokers {', '.join(values)}"
    if (subject, name, operator, words) == ("cluster", "no-leader", "is", "0"):
        return "every partition has a leader"
    if (subject, name) == ("cluster", "findings") and operator in ("has", "lacks"):
        says = "says" if operator == "has" else "no longer says"
        findings = [_FINDINGS.get(finding, finding) for finding in values]
        return f"the headline {says} that {' and '.join(findings)}"
    if (subject, name, operator) == ("cluster", "severity", "is"):
        return _SEVERITIES.get(words, words)
    if (subject, name, operator) == ("cluster", "events", "has"):
        return f"an event was reported: {words.replace('_', ' ')}"
    if said is not None and operator == "is-not" and " is " in (positive := said(of[0] if of else "", words)):
        return positive.replace(" is ", " is not ", 1)
    if subject == "incident" and name in _PHASES and operator in (">=", "<="):
        return f"{_PHASES[name]} {'after at least' if operator == '>=' else 'within'} {_number(words)}"
    if (subject, name) in _COUNTED and operator in ("is", ">=", "<=") and words.isdigit():
        return _counted(_COUNTED[subject, name], of, at, operator, int(words))
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


def _counted(sentence: str, of: Sequence[str], at: int, operator: str, number: int) -> str:
    """Return a sentence about a number of things: `no partition is …`, `at least 2 partitions are …`."""
    match operator, number:
        case "is", _:
            n = f"{number:,}" if number else "no"
        case ">=", 1:
            n = "some"
        case _:
            n = f"{'at least' if operator == '>=' else 'at most'} {number:,}"
    if number == 1 and n != "some":
        verbs = {"s": "", "are": "is", "have": "has", "stand": "stands", "wait": "waits"}
    else:
        verbs = {"s": "s", "are": "are", "have": "have", "stand": "stand", "wait": "wait"}
    return sentence.format(*of, n=n, at=at, **verbs)


def between(subject: str, of: Sequence[str], name: str, at: int, least: str, most: str) -> str:
    """Return an expectation of at least and one of at most as one sentence without a full stop."""
    if subject == "incident" and name in _PHASES:
        return f"{_PHASES[name]} after {_number(least)} to {_number(most)}"
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
