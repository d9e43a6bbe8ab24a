"""What a lesson expects of the cluster, in words: `broker 2 leads invoice-3`, `the lag of billing grows`."""

import re
from collections.abc import Callable, Mapping, Sequence

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


_PER_SECOND = frozenset({("partition", "rate"), ("topic", "rate"), ("group", "rate")})
"""Subject and name of the figures in records per second."""

_DURATION = re.compile(r"(\d+)(ms|s|m)")
_NUMBER_OF = "the number of "


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
    if (subject, name, operator) == ("broker", "leads", "is") and words.isdigit():
        return f"broker {of[0]} leads {plural(int(words), 'partition')}"
    if (subject, name, operator, words) == ("cluster", "no-leader", "is", "0"):
        return "every partition has a leader"
    if (subject, name, operator) == ("topic", "partitions", "is") and words.isdigit():
        return f"{of[0]} has {plural(int(words), 'partition')}"
    if (subject, name, operator) == ("cluster", "findings", "has"):
        return f"the headline reports: {words.replace('_', ' ')}"
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
    if words == "0" and noun.startswith(_NUMBER_OF):
        return f"there are no {noun.removeprefix(_NUMBER_OF)}"
    return f"{noun} is {', '.join(map(_number, values))}"


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
