"""Events as words: one short sentence for each."""

from collections.abc import Callable, Mapping

from kview.language import failures, nouns
from kview.language.words import count, duration, plural
from kview.model.events import Event, EventKind
from kview.model.failures import FailureKind
from kview.model.states import BrokerState
from kview.model.units import UNKNOWN


def sentence(event: Event) -> str:
    """Return what happened, without the time."""
    return _SENTENCES[event.kind](event)


def _brokers(event: Event) -> str:
    return nouns.some_brokers(event.brokers)


def _verb(event: Event, singular: str, plural_form: str) -> str:
    return singular if len(event.brokers) == 1 else plural_form


def _partitions(event: Event) -> str:
    return nouns.partitions(event.partition_count, event.internal_count)


def _names(event: Event) -> str:
    """Return the event's partitions: `invoice-3, invoice-9 + 1 more`."""
    return nouns.some(event.partitions, of=event.partition_count + event.internal_count)


def _is_one(event: Event) -> bool:
    return event.partition_count + event.internal_count == 1


def _silent(event: Event) -> str:
    match event.cause:
        case FailureKind.NONE | FailureKind.OTHER:
            why = ""
        case FailureKind.SILENT:
            why = f", but still {_verb(event, 'accepts', 'accept')} connections"
        case FailureKind.CLOSED:
            why = f": {_verb(event, 'it closes', 'they close')} connections without answering"
        case _:
            why = f": {failures.WORDS[event.cause]}"
    return f"{_brokers(event)} stopped answering{why}"


def _found_down(event: Event) -> str:
    who = _brokers(event)
    if event.after == BrokerState.FENCED:
        return f"{who} {_verb(event, 'was', 'were')} already fenced when kview began to watch"
    if event.after == BrokerState.GONE:
        return f"{who} had already left the cluster when kview began to watch"
    why = "" if event.cause in (FailureKind.NONE, FailureKind.OTHER) else f": {failures.WORDS[event.cause]}"
    return f"{who} {_verb(event, 'has', 'have')} not answered since kview began to watch{why}"


def _returned(event: Event) -> str:
    verb = "has" if _is_one(event) else "have"
    return f"{_partitions(event)} {verb} a leader again: {_brokers(event)}"


def _members(event: Event) -> str:
    return "an unknown number of members" if event.members == UNKNOWN else plural(event.members, "member")


def _reset(event: Event) -> str:
    """Return `offsets of group billing were reset: invoice-3 from 1,204 to 0 (1,204 back)`."""
    way = f"{count(abs(event.records))} {'back' if event.records < 0 else 'forward'}"
    if isinstance(event.before, int) and isinstance(event.after, int):
        moved = f" from {count(event.before)} to {count(event.after)} ({way})"
    else:
        moved = f", together {way}"
    where = _names(event) if event.partitions else _partitions(event)
    return f"offsets of group {event.group} were reset: {where}{moved}"


def _controller(event: Event) -> str:
    epoch = f" (epoch {event.epoch})" if event.epoch is not None else ""
    what = "became active" if event.before is None else f"took over from {event.before}"
    return f"controller {event.after} {what}{epoch}"


def _quorum_lost(event: Event) -> str:
    if not event.controllers:
        return "no controller can act: no elections, no fencing, no new topics"
    return f"{nouns.controllers(event.controllers)} no longer heard from a majority of the voters"


def _number(value: str | int | None) -> str:
    return count(value) if isinstance(value, int) else str(value)


def _tasks(event: Event) -> str:
    """Return `task 0 of connector billing`, `connector crm (+1 more)`."""
    more = f" (+{event.tasks - 1:,} more)" if event.tasks > 1 else ""
    return f"{nouns.task_of(event.connector, event.task)}{more}"


def _transaction(event: Event) -> str:
    return f"transaction of {nouns.producer(event.transactional_id, event.producer_id)}"


def _open_for(event: Event) -> str:
    """Return how long the transaction has been open: `2 m 10 s`, `≥ 2 m 10 s`."""
    return f"{'≥ ' if event.since_is_bound else ''}{duration(event.at_ms - event.since_ms, tenths=False)}"


_SENTENCES: Mapping[EventKind, Callable[[Event], str]] = {
    EventKind.BROKER_SILENT: _silent,
    EventKind.BROKER_FENCED: lambda event: f"{_brokers(event)} {_verb(event, 'was', 'were')} fenced",
    EventKind.BROKER_GONE: lambda event: f"the cluster no longer lists {_brokers(event)}",
    EventKind.BROKER_BACK: lambda event: f"{_brokers(event)} came back",
    EventKind.BROKER_FOUND_DOWN: _found_down,
    EventKind.BROKER_SLOW: lambda event: (
        f"{_brokers(event)} became slow to answer: {_number(event.after)} ms"
    ),
    EventKind.BROKER_NOT_SLOW: lambda event: (
        f"{_brokers(event)} {_verb(event, 'answers', 'answer')} normally again: {_number(event.after)} ms"
    ),
    EventKind.APIS_DIFFER: lambda event: (
        f"{_brokers(event)} {_verb(event, 'offers', 'offer')} other APIs than the rest: a rolling upgrade?"
    ),
    EventKind.APIS_ALIKE: lambda event: "all brokers offer the same APIs again",
    EventKind.LEADER_MOVED: lambda event: f"{_partitions(event)} moved to {_brokers(event)}",
    EventKind.LEADER_RETURNED: _returned,
    EventKind.LEADER_LOST: lambda event: (
        f"{_partitions(event)} now {'has' if _is_one(event) else 'have'} no leader"
    ),
    EventKind.LEADERLESS_FOUND: lambda event: f"{_partitions(event)} had no leader when kview began to watch",
    EventKind.ISR_SHRANK: lambda event: f"{_brokers(event)} left the ISR of {_partitions(event)}",
    EventKind.ISR_GREW: lambda event: f"{_brokers(event)} joined the ISR of {_partitions(event)}",
    EventKind.WATERMARK_FROZEN: lambda event: f"watermark froze on {_partitions(event)}",
    EventKind.WATERMARK_MOVES: lambda event: f"watermark advanced again on {_partitions(event)}",
    EventKind.UNCLEAN_ELECTION: lambda event: (
        f"unclean election of {_brokers(event)}: {_names(event)} lost "
        + (f"≥ {plural(event.records, 'record')}" if event.records else "what the new leader did not have")
    ),
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
    EventKind.GROUP_APPEARED: lambda event: f"group {event.group} appeared",
    EventKind.GROUP_DELETED: lambda event: f"group {event.group} is gone: deleted or expired",
    EventKind.GROUP_RESET: _reset,
    EventKind.GROUP_RECORDS_LOST: lambda event: (
        f"≥ {plural(event.records, 'record')} deleted before group {event.group} read them: {_names(event)}"
    ),
    EventKind.COORDINATOR_MOVED: lambda event: (
        f"coordinator of group {event.group} moved from broker {event.before} to {event.after}"
    ),
    EventKind.CONTROLLER_MOVED: _controller,
    EventKind.CONTROLLER_LOST: lambda event: (
        f"{nouns.controllers(event.controllers)} went down or stopped fetching the metadata log"
    ),
    EventKind.CONTROLLER_FOUND_DOWN: lambda event: (
        f"{nouns.controllers(event.controllers)} {'was' if len(event.controllers) == 1 else 'were'}"
        " already down when kview began to watch"
    ),
    EventKind.CONTROLLER_BACK: lambda event: f"{nouns.controllers(event.controllers)} came back",
    EventKind.QUORUM_LOST: _quorum_lost,
    EventKind.QUORUM_BACK: lambda event: "the controllers can act again",
    EventKind.TOPIC_CREATED: lambda event: (
        f"topic {event.topic} was created with {_number(event.after)} "
        f"partition{'' if event.after == 1 else 's'}"
    ),
    EventKind.TOPIC_DELETED: lambda event: f"topic {event.topic} was deleted",
    EventKind.TOPIC_SEEN: lambda event: (
        f"topic {event.topic} is listed now, with {_number(event.after)} "
        f"partition{'' if event.after == 1 else 's'}: it was created, or kview is now authorized to see it"
    ),
    EventKind.TOPIC_UNSEEN: lambda event: (
        f"topic {event.topic} is no longer listed: it was deleted, or kview is no longer authorized to see it"
    ),
    EventKind.PARTITIONS_ADDED: lambda event: (
        f"topic {event.topic} grew from {_number(event.before)} to {_number(event.after)} partitions"
    ),
    EventKind.INPUT_FELL: lambda event: (
        f"{event.topic}: input fell from {_number(event.before)} to {_number(event.after)}/s"
        f"{nouns.more_topics(event.topics)}"
    ),
    EventKind.INPUT_ROSE: lambda event: (
        f"{event.topic}: input rose again to {_number(event.after)}/s, it was {_number(event.before)}/s"
        f" before it fell{nouns.more_topics(event.topics)}"
    ),
    EventKind.CONNECT_TASK_FAILED: lambda event: f"{_tasks(event)} failed",
    EventKind.CONNECT_TASK_RUNS: lambda event: (
        f"{_tasks(event)} {'runs' if event.tasks == 1 else 'run'} again"
    ),
    EventKind.TRANSACTION_HOLDS: lambda event: (
        f"{_transaction(event)}, open for {_open_for(event)}, holds back {_names(event)}"
    ),
    EventKind.TRANSACTION_HANGS: lambda event: (
        f"hanging {_transaction(event)}, open for {_open_for(event)}, holds back {_names(event)}:"
        " no coordinator knows it"
    ),
    EventKind.TRANSACTION_ENDED: lambda event: (
        f"{_transaction(event)} ended after {_open_for(event)}: {_names(event)}"
        f" {'moves' if _is_one(event) else 'move'} on"
    ),
}
