"""Events as words: one short sentence for each."""

from collections.abc import Callable, Mapping

from kview.language import failures, nouns
from kview.language.words import count, plural
from kview.model.events import Event, EventKind
from kview.model.failures import FailureKind
from kview.model.units import UNKNOWN

MAX_LISTED = 4
"""The most brokers that a sentence names. Further ones are only counted."""


def sentence(event: Event) -> str:
    """Return what happened, without the time."""
    return _SENTENCES[event.kind](event)


def _brokers(event: Event) -> str:
    ids = event.brokers
    return nouns.brokers(ids) if len(ids) <= MAX_LISTED else f"{len(ids)} brokers"


def _partitions(event: Event) -> str:
    return nouns.partitions(event.partition_count, event.internal_count)


def _names(event: Event) -> str:
    """Return the event's partitions: `invoice-3, invoice-9 + 1 more`."""
    return nouns.some(event.partitions, of=event.partition_count + event.internal_count)


def _is_one(event: Event) -> bool:
    return event.partition_count + event.internal_count == 1


def _silent(event: Event) -> str:
    known = event.cause not in (FailureKind.NONE, FailureKind.OTHER)
    why = f": {failures.WORDS[event.cause]}" if known else ""
    return f"{_brokers(event)} stopped answering{why}"


def _returned(event: Event) -> str:
    return f"{_brokers(event)} regained leadership of {_partitions(event)}"


def _members(event: Event) -> str:
    return "an unknown number of members" if event.members == UNKNOWN else plural(event.members, "member")


def _controller(event: Event) -> str:
    epoch = f" (epoch {event.epoch})" if event.epoch is not None else ""
    what = "became active" if event.before is None else f"took over from {event.before}"
    return f"controller {event.after} {what}{epoch}"


def _number(value: str | int | None) -> str:
    return count(value) if isinstance(value, int) else str(value)


_SENTENCES: Mapping[EventKind, Callable[[Event], str]] = {
    EventKind.BROKER_SILENT: _silent,
    EventKind.BROKER_FENCED: lambda event: (
        f"{_brokers(event)} {'was' if len(event.brokers) == 1 else 'were'} fenced"
    ),
    EventKind.BROKER_GONE: lambda event: f"{_brokers(event)} left the cluster",
    EventKind.BROKER_BACK: lambda event: f"{_brokers(event)} came back",
    EventKind.LEADER_MOVED: lambda event: f"{_partitions(event)} moved to {_brokers(event)}",
    EventKind.LEADER_RETURNED: _returned,
    EventKind.LEADER_LOST: lambda event: (
        f"{_partitions(event)} {'was' if _is_one(event) else 'were'} left without a leader"
    ),
    EventKind.ISR_SHRANK: lambda event: f"{_brokers(event)} left the ISR of {_partitions(event)}",
    EventKind.ISR_GREW: lambda event: f"{_brokers(event)} joined the ISR of {_partitions(event)}",
    EventKind.WATERMARK_FROZEN: lambda event: f"watermark froze on {_partitions(event)}",
    EventKind.WATERMARK_MOVES: lambda event: f"watermark advanced again on {_partitions(event)}",
    EventKind.RECORDS_LOST: lambda event: (
        f"≥ {plural(event.records, 'record')} lost from the old leader's log: {_names(event)}"
    ),
    EventKind.LOG_CUT: lambda event: (
        f"{_brokers(event)} truncated ≥ {plural(event.records, 'record')} from its log of {_names(event)}"
    ),
    EventKind.REBALANCE_STARTED: lambda event: f"group {event.group} started rebalancing",
    EventKind.REBALANCE_ENDED: lambda event: f"group {event.group} became stable with {_members(event)}",
    EventKind.REBALANCED: lambda event: f"group {event.group} rebalanced: {_members(event)}",
    EventKind.GROUP_STATE: lambda event: f"group {event.group} went from {event.before} to {event.after}",
    EventKind.CONTROLLER_MOVED: _controller,
    EventKind.TOPIC_CREATED: lambda event: (
        f"topic {event.topic} was created with {_number(event.after)} "
        f"partition{'' if event.after == 1 else 's'}"
    ),
    EventKind.TOPIC_DELETED: lambda event: f"topic {event.topic} was deleted",
    EventKind.PARTITIONS_ADDED: lambda event: (
        f"topic {event.topic} grew from {_number(event.before)} to {_number(event.after)} partitions"
    ),
}
