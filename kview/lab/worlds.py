"""A simulated cluster from the words that describe it: flags of `kview --simulate`, or a lesson's file."""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

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

DEFAULT_RACKS = 2
LONGEST_TOPIC_NAME = 249

_TOPIC_NAME = re.compile(r"[A-Za-z0-9._-]+")
_NUMBER = re.compile(r"[0-9]{1,9}")


def world_of(
    brokers: int,
    racks: int | None,
    topics: Sequence[str],
    placement: str,
    settings: Sequence[str],
    no_traffic: bool,
    transaction_ms: int = 0,
    empty: bool = False,
    release: str = "4.3",
) -> "World":
    """Return the cluster that the flags describe. Raises BadUse."""
    from kview.simulate.releases import RELEASES
    from kview.simulate.world import QUICK_LINK, Placement, default_world

    if racks is not None and racks > brokers:
        raise BadUse(ErrorKind.MORE_RACKS_THAN_BROKERS, racks=racks, brokers=brokers)
    specs = tuple(topic_of(text, brokers) for text in topics)
    for index, spec in enumerate(specs):
        if spec.name in {other.name for other in specs[:index]}:
            raise BadUse(ErrorKind.TOPIC_TWICE, topic=spec.name)
    if sum(spec.partitions for spec in specs) > MAX_PARTITIONS:
        raise BadUse(ErrorKind.TOO_MANY_PARTITIONS, most=MAX_PARTITIONS)
    world = default_world(
        brokers=brokers,
        racks=min(DEFAULT_RACKS, brokers) if racks is None else racks,
        placement=Placement(placement),
        settings=pairs(settings, "--set"),
        traffic=not (no_traffic or empty),
        topics=specs if specs or empty else None,
    )
    world = replace(world, release=RELEASES[release])
    if not world.traffic:
        return replace(world, link=QUICK_LINK)
    if not transaction_ms:
        return world
    return replace(
        world,
        producers=tuple(replace(each, acks=-1, transaction_ms=transaction_ms) for each in world.producers),
        groups=tuple(replace(each, read_committed=True) for each in world.groups),
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
    return TopicSpec(name, partitions, replicas, pairs(rest[2:], f"--topic {text!r}"))


def _is_number(word: str, most: int) -> bool:
    return _NUMBER.fullmatch(word) is not None and 1 <= int(word) <= most


def pairs(texts: Sequence[str], where: str) -> Mapping[str, str]:
    """Return the settings in `KEY=VALUE` texts, which come from `where`. Raises BadUse."""
    found = {}
    for text in texts:
        key, sign, value = text.partition("=")
        if not sign or not key.strip():
            raise BadUse(ErrorKind.NOT_A_SETTING, flag=where, text=text)
        found[key.strip()] = value.strip()
    return found
