"""Nouns for sentences: numbers of partitions, lists of nodes, names of partitions."""

from collections.abc import Iterable, Sequence

from kview.language.words import count, plural
from kview.model.states import GroupType
from kview.model.units import CONNECTOR_TASK, UNKNOWN, UNKNOWN_ID

MOST_BROKERS = 4
"""The most brokers that a sentence names. More of them are only counted."""


def partitions(mine: int, internal: int) -> str:
    """Return a number of partitions: `6 partitions`, or `25 internal partitions` if there are no others."""
    return plural(internal, "internal partition") if internal and not mine else plural(mine, "partition")


def listed(names: Iterable[object]) -> str:
    """Return names as a list: `3`, `3 and 4` or `3, 4 and 5`."""
    words = [str(name) for name in names]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def more_topics(topics: int) -> str:
    """Return what follows the first of some topics: ` (+3 more topics)`, '' if it is the only one."""
    return f" (+{plural(topics - 1, 'more topic')})" if topics > 1 else ""


def brokers(ids: Sequence[int]) -> str:
    """Return `broker 4` or `brokers 3, 4 and 5`."""
    return _nodes("broker", ids)


def some_brokers(ids: Sequence[int]) -> str:
    """Return the brokers by id, or only their number if they are many: `30 brokers`."""
    return brokers(ids) if len(ids) <= MOST_BROKERS else plural(len(ids), "broker")


def controllers(ids: Sequence[int]) -> str:
    """Return `controller 101` or `controllers 101 and 102`."""
    return _nodes("controller", ids)


def _nodes(kind: str, ids: Sequence[int]) -> str:
    return f"{kind if len(ids) == 1 else kind + 's'} {listed(ids)}"


def some(names: Sequence[tuple[str, int]], of: int, at_most: int = 2) -> str:
    """Return the first names: `invoice-3`, or `invoice-3, invoice-9 + 4 more`.

    `of` is the total number of names.
    """
    shown = ", ".join(f"{topic}-{partition}" for topic, partition in names[:at_most])
    rest = of - at_most
    return f"{shown} + {rest:,} more" if rest > 0 else shown


def active_controller(controller: int, epoch: int) -> str:
    """Return the active controller, with its epoch if there is one: a ZooKeeper-mode cluster tells none."""
    if controller == UNKNOWN_ID:
        return "controller not known"
    if controller < 0:
        return "no controller"
    return f"controller {controller}" if epoch < 0 else f"controller {controller} epoch {epoch}"


def producer(transactional_id: str, producer_id: int) -> str:
    """Return a producer by its transactional id, or by its own id: `payments-app`, `producer 4711`."""
    if transactional_id:
        return transactional_id
    return "an unknown producer" if producer_id == UNKNOWN else f"producer {producer_id}"


def of_kind(group_type: str, text: str) -> str:
    """Return what is said of a group, after its kind: `share Empty`. A classic group needs no word for it."""
    return text if group_type in ("", GroupType.CLASSIC) else f"{group_type} {text}"


def members(group_type: str, state: str, active: int, joined: int) -> str:
    """Return a group's kind, its state, and how many of its members have something to do: `Stable 2/3`,
    `share Empty 0/0`. A simple group has neither a state nor members."""
    if group_type == GroupType.SIMPLE:
        return of_kind(group_type, "(only commits)")
    return f"{of_kind(group_type, state)} {count(active)}/{count(joined)}"


def task_of(connector: str, task: int) -> str:
    """Return a task of Kafka Connect: `task 0 of connector billing`, or `connector billing` itself."""
    of = "" if task == CONNECTOR_TASK else f"task {task} of "
    return f"{of}connector {connector}"
