"""Checks that what a lesson names is in its cluster: a broker, a rack, a partition, a group."""

from collections.abc import Collection
from difflib import get_close_matches

from kview.model.lab import ARGUMENTS, Argument, Command
from kview.school.figures import NotAFigure
from kview.school.moment import split, whole
from kview.simulate.world import World

MOST_NAMES = 6
"""The most names that an error lists."""


def check_subject(world: World, subject: str, of: tuple[str, ...], at: int = -1) -> None:
    """Raise NotAFigure if a subject's names, or the broker `at`, are not in the cluster."""
    if at >= 0:
        _broker(world, str(at))
    match subject:
        case "broker":
            _broker(world, of[0])
        case "partition":
            _partition(world, of[0])
        case "topic":
            _one("topic", of[0], _topics(world))
        case "group" | "position":
            _one("group", of[0], [group.name for group in world.groups])
            if subject == "position":
                _partition(world, of[1])
        case "member":
            _one("group", of[0].rpartition("-")[0], [group.name for group in world.groups])
        case "producer":
            first = [producer.client_id for producer in world.producers]
            second = [f"{each.client_id}-2" for each in world.producers if each.transaction_ms]
            _one("producer", of[0], [*first, *second])


def check_act(world: World, act: Command) -> None:
    """Raise NotAFigure if a command is for something that is not in the cluster."""
    for argument in ARGUMENTS[act.kind]:
        match argument:
            case Argument.NODE if act.node in world.controllers:
                pass
            case Argument.NODE | Argument.BROKER:
                _broker(world, str(act.node))
            case Argument.RACK:
                _one("rack", act.name, sorted({broker.rack for broker in world.brokers}))
            case Argument.PRODUCER | Argument.GROUP | Argument.TOPIC | Argument.PARTITION:
                check_subject(world, argument.name.lower(), (act.name,))


def _broker(world: World, name: str) -> None:
    ids = [broker.id for broker in world.brokers]
    if whole(name) not in ids:
        raise NotAFigure(f"there is no broker {name}", f"the brokers are {ids[0]} to {ids[-1]}")


def _partition(world: World, name: str) -> None:
    topic, number = split(name)
    if topic.startswith("__") and number >= 0:
        return  # An internal topic is made by the cluster itself.
    if number < 0:
        raise NotAFigure(f"{name!r} is not a partition", f"write TOPIC-NUMBER, such as {_first(world)}")
    _one("topic", topic, _topics(world))
    last = next(spec.partitions for spec in world.topics if spec.name == topic) - 1
    if number > last:
        raise NotAFigure(f"there is no partition {name}", f"the last one of {topic} is {topic}-{last}")


def _first(world: World) -> str:
    return f"{world.topics[0].name}-0"


def _topics(world: World) -> list[str]:
    return [topic.name for topic in world.topics]


def _one(what: str, name: str, known: Collection[str]) -> None:
    if name in known or (what == "topic" and name.startswith("__")):
        return
    near = get_close_matches(name, known, 1)
    listed = ", ".join([*list(known)[:MOST_NAMES], *(["…"] if len(known) > MOST_NAMES else [])])
    hint = f"did you mean {near[0]}?" if near else f"available: {listed or 'none'}"
    raise NotAFigure(f"there is no {what} named {name!r}", hint)
