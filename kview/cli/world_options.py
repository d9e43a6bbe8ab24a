"""The flags of a simulated cluster, shared by `kview --simulate` and `kview serve`."""

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from kview.errors import BadUse

if TYPE_CHECKING:
    from kview.simulate.world import TopicSpec, World

MAX_BROKERS = 100
"""Each has a listener, a port and connections of its own; more would be a test of the machine, not of a
cluster."""

MAX_PARTITIONS = 100_000
"""Of all topics together: what the dashboard is built for."""

DEFAULT_RACKS = 2
LONGEST_TOPIC_NAME = 249

_TOPIC_NAME = re.compile(r"[A-Za-z0-9._-]+")

Command = TypeVar("Command", bound=Callable[..., Any])


def world_options(command: Command) -> Command:
    """Adds the flags to a command; it receives them as keywords, for `world_of` all but `seed` and `port`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


_OPTIONS = (
    click.option("--brokers", type=click.IntRange(1, MAX_BROKERS), default=6, show_default=True, metavar="N"),
    click.option(
        "--racks",
        type=click.IntRange(1, MAX_BROKERS),
        metavar="N",
        help="Racks R1, R2 … that the brokers stand in, in blocks.  [default: 2]",
    ),
    click.option(
        "--topic",
        "topics",
        multiple=True,
        metavar="NAME:PARTITIONS:REPLICAS[:KEY=VALUE…]",
        help="A topic, with a producer of 500 records/s and a group of 3 members; replaces the default ones.",
    ),
    click.option(
        "--placement",
        type=click.Choice(["teaching", "striped", "rack-aware"]),
        default="teaching",
        show_default=True,
        help="How replicas are placed: as courses draw it, as KRaft does, or as Kafka did before KRaft.",
    ),
    click.option(
        "--set", "settings", multiple=True, metavar="KEY=VALUE", help="A broker setting, by Kafka's key."
    ),
    click.option(
        "--seed", type=int, default=1, show_default=True, metavar="N", help="All chance comes from it."
    ),
    click.option(
        "--port", type=int, metavar="PORT", help="Broker i listens on PORT + i.  [default: free ports]"
    ),
    click.option("--no-traffic", is_flag=True, help="No simulated producers and consumer groups."),
)


def world_of(
    brokers: int,
    racks: int | None,
    topics: tuple[str, ...],
    placement: str,
    settings: tuple[str, ...],
    no_traffic: bool,
) -> "World":
    """The cluster that the flags describe. Raises BadUse."""
    from kview.simulate.world import Placement, default_world

    if racks is not None and racks > brokers:
        raise BadUse(f"--racks {racks} is more than --brokers {brokers}", "a rack needs a broker")
    specs = tuple(topic_of(text, brokers) for text in topics)
    for index, spec in enumerate(specs):
        if spec.name in {other.name for other in specs[:index]}:
            raise BadUse(f"--topic {spec.name} is given twice", "give each topic once")
    if sum(spec.partitions for spec in specs) > MAX_PARTITIONS:
        raise BadUse(f"the topics have more than {MAX_PARTITIONS} partitions together", "give fewer")
    return default_world(
        brokers=brokers,
        racks=min(DEFAULT_RACKS, brokers) if racks is None else racks,
        placement=Placement(placement),
        settings=_pairs(settings, "--set"),
        traffic=not no_traffic,
        topics=specs or None,
    )


def topic_of(text: str, brokers: int) -> "TopicSpec":
    """`NAME:PARTITIONS:REPLICAS[:KEY=VALUE…]` as a topic on so many brokers. Raises BadUse."""
    from kview.simulate.world import TopicSpec

    name, *rest = text.split(":")
    form = "write NAME:PARTITIONS:REPLICAS, such as invoice:10:3, then :KEY=VALUE as often as wanted"
    if len(rest) < 2:
        raise BadUse(f"--topic {text!r} is not complete", form)
    if not _TOPIC_NAME.fullmatch(name) or name in (".", "..") or len(name) > LONGEST_TOPIC_NAME:
        letters = f"use letters, digits, '.', '_' and '-', {LONGEST_TOPIC_NAME} at most"
        raise BadUse(f"--topic {text!r} has no valid name", letters)
    if name.startswith("__"):
        raise BadUse(f"--topic {text!r} is named like an internal topic", "begin its name otherwise")
    partitions = _number(rest[0], "partitions", text, MAX_PARTITIONS)
    replicas = _number(rest[1], "replicas", text, 32_767)
    if replicas > brokers:
        raise BadUse(
            f"--topic {text!r} asks for {replicas} replicas, and there are {brokers} brokers",
            "raise --brokers",
        )
    return TopicSpec(name, partitions, replicas, _pairs(rest[2:], f"--topic {text!r}"))


def _number(word: str, what: str, text: str, most: int) -> int:
    if not (word.isascii() and word.isdigit() and 1 <= int(word) <= most):
        raise BadUse(f"--topic {text!r} has {word!r} {what}", f"give a number from 1 to {most}")
    return int(word)


def _pairs(texts: list[str] | tuple[str, ...], where: str) -> Mapping[str, str]:
    pairs = {}
    for text in texts:
        key, found, value = text.partition("=")
        if not found or not key.strip():
            raise BadUse(f"{where} has {text!r}, which is no setting", "write KEY=VALUE, with Kafka's key")
        pairs[key.strip()] = value.strip()
    return pairs
