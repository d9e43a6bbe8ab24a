"""The flags of a simulated cluster, shared by `kview --simulate` and `kview serve`."""

import re
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from kview.errors import BadUse, ErrorKind

if TYPE_CHECKING:
    from kview.simulate.world import TopicSpec, World

MAX_BROKERS = 100
"""Each broker has its own listener, port and connections, so more of them would test the machine, not a
cluster."""

MAX_PARTITIONS = 100_000
"""The most partitions of all topics in total. The dashboard is built for this number."""

MAX_REPLICAS = 32_767
"""Kafka's own limit, because a replication factor has 16 bits on the wire."""

WORLD_NAMES = ("brokers", "racks", "topics", "placement", "settings", "no_traffic")
"""The flags that describe a world, as `world_of` takes them."""

DEFAULT_RACKS = 2
LONGEST_TOPIC_NAME = 249

_TOPIC_NAME = re.compile(r"[A-Za-z0-9._-]+")
_NUMBER = re.compile(r"[0-9]{1,9}")

Command = TypeVar("Command", bound=Callable[..., Any])


def world_options(command: Command) -> Command:
    """Add the flags to a command, which receives them as keywords for `world_of`, except `seed` and
    `port`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


_OPTIONS = (
    click.option(
        "--brokers",
        type=click.IntRange(1, MAX_BROKERS),
        default=6,
        show_default=True,
        metavar="N",
        help="Number of brokers.",
    ),
    click.option(
        "--racks",
        type=click.IntRange(1, MAX_BROKERS),
        metavar="N",
        help="Number of racks (R1, R2 …); each gets a contiguous block of brokers.  [default: 2]",
    ),
    click.option(
        "--topic",
        "topics",
        multiple=True,
        metavar="NAME:PARTITIONS:REPLICAS[:KEY=VALUE…]",
        help="A topic with a producer of 500 records/s and a group of 3 members."
        " Replaces the default topics. May be repeated.",
    ),
    click.option(
        "--placement",
        type=click.Choice(["teaching", "striped", "rack-aware"]),
        default="teaching",
        show_default=True,
        help="How replicas are placed. teaching: round-robin over the racks, as in Kafka courses; striped:"
        " KRaft's placer; rack-aware: Kafka's placer before KRaft.",
    ),
    click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="KEY=VALUE",
        help="A broker setting, by Kafka's own name, such as broker.session.timeout.ms=3000."
        " May be repeated.",
    ),
    click.option(
        "--seed",
        type=int,
        default=1,
        show_default=True,
        metavar="N",
        help="Random seed: the same seed gives the same placement and traffic.",
    ),
    click.option(
        "--port", type=int, metavar="PORT", help="Broker i listens on PORT + i.  [default: free ports]"
    ),
    click.option("--no-traffic", is_flag=True, help="Do not start simulated producers or consumer groups."),
)


def given_flags(ctx: click.Context, without: Collection[str]) -> list[str]:
    """Return the options given on the command line as arguments for the simulated cluster's process.

    Those named in `without`, which that process does not know, are left out.
    """
    arguments: list[str] = []
    for option in ctx.command.params:
        name = option.name or ""
        given = ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if name in without or not given or not isinstance(option, click.Option):
            continue
        values = ctx.params[name] if option.multiple else [ctx.params[name]]
        for value in values:
            arguments += [option.opts[0]] if value is True else [option.opts[0], str(value)]
    return arguments


def world_of(
    brokers: int,
    racks: int | None,
    topics: tuple[str, ...],
    placement: str,
    settings: tuple[str, ...],
    no_traffic: bool,
) -> "World":
    """Return the cluster that the flags describe. Raises BadUse."""
    from kview.simulate.world import Placement, default_world

    if racks is not None and racks > brokers:
        raise BadUse(ErrorKind.MORE_RACKS_THAN_BROKERS, racks=racks, brokers=brokers)
    specs = tuple(topic_of(text, brokers) for text in topics)
    for index, spec in enumerate(specs):
        if spec.name in {other.name for other in specs[:index]}:
            raise BadUse(ErrorKind.TOPIC_TWICE, topic=spec.name)
    if sum(spec.partitions for spec in specs) > MAX_PARTITIONS:
        raise BadUse(ErrorKind.TOO_MANY_PARTITIONS, most=MAX_PARTITIONS)
    return default_world(
        brokers=brokers,
        racks=min(DEFAULT_RACKS, brokers) if racks is None else racks,
        placement=Placement(placement),
        settings=_pairs(settings, "--set"),
        traffic=not no_traffic,
        topics=specs or None,
    )


def topic_of(text: str, brokers: int) -> "TopicSpec":
    """Return the topic in `NAME:PARTITIONS:REPLICAS[:KEY=VALUE…]`, for that number of brokers. Raises
    BadUse."""
    from kview.simulate.world import TopicSpec

    name, *rest = text.split(":")
    if len(rest) < 2:
        raise BadUse(ErrorKind.TOPIC_INCOMPLETE, text=text)
    if not _TOPIC_NAME.fullmatch(name) or name in (".", "..") or len(name) > LONGEST_TOPIC_NAME:
        raise BadUse(ErrorKind.TOPIC_NAME_WRONG, topic=name, longest=LONGEST_TOPIC_NAME)
    if name.startswith("__"):
        raise BadUse(ErrorKind.TOPIC_NAME_INTERNAL, topic=name)
    if not _is_number(rest[0], MAX_PARTITIONS):
        raise BadUse(ErrorKind.TOPIC_PARTITIONS_WRONG, topic=name, partitions=rest[0], most=MAX_PARTITIONS)
    if not _is_number(rest[1], MAX_REPLICAS):
        raise BadUse(ErrorKind.TOPIC_REPLICAS_WRONG, topic=name, replicas=rest[1], most=MAX_REPLICAS)
    partitions, replicas = int(rest[0]), int(rest[1])
    if replicas > brokers:
        raise BadUse(ErrorKind.TOPIC_REPLICAS_TOO_MANY, topic=name, replicas=replicas, brokers=brokers)
    return TopicSpec(name, partitions, replicas, _pairs(rest[2:], f"--topic {text!r}"))


def _is_number(word: str, most: int) -> bool:
    return _NUMBER.fullmatch(word) is not None and 1 <= int(word) <= most


def _pairs(texts: list[str] | tuple[str, ...], where: str) -> Mapping[str, str]:
    pairs = {}
    for text in texts:
        key, found, value = text.partition("=")
        if not found or not key.strip():
            raise BadUse(ErrorKind.NOT_A_SETTING, flag=where, text=text)
        pairs[key.strip()] = value.strip()
    return pairs
