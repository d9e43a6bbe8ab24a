"""The cluster of a lesson, built from the words in its file."""

import re
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from kview.errors import BadUse
from kview.lab.worlds import pairs, world_of
from kview.school.expectations import duration_ms
from kview.school.figures import NotAFigure
from kview.school.lesson import LessonWorld
from kview.simulate.world import (
    CLASSIC,
    CONSUMER,
    SHARE,
    TRANSACTION_MS_MAX,
    GroupSpec,
    LinkSpec,
    ProducerSpec,
    World,
)

_NUMBER = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,6})?")
"""A number that a cluster can have of anything: neither infinite nor negative."""
MOST_RATE, MOST_KEYS, MOST_SKEW, MOST_MEMBERS, MOST_LAG_S = 10_000_000, 1_000_000, 10, 200, 86_400
LEAST_BYTES, MOST_BYTES = 64, 1_000_000
"""A record's size: a batch of one has a head, and a broker takes one megabyte (`max.message.bytes`)."""
MOST_MS = 600_000
"""Limit of everything that takes time: a lesson is over by then."""
_DELIVERY = {"at-least-once": False, "at-most-once": True}
_ISOLATION = {"read_uncommitted": False, "read_committed": True}


def world(words: LessonWorld) -> World:
    """Return the cluster. Raises NotAFigure for words that describe none."""
    try:
        lesson_world = world_of(
            brokers=words.brokers,
            racks=words.racks,
            topics=words.topics,
            placement=words.placement,
            settings=words.set,
            no_traffic=False,
        )
    except BadUse as error:
        from kview.language.errors import message, remedy

        raise NotAFigure(message(error), remedy(error)) from None
    except ValueError as error:
        raise NotAFigure(str(error), "write teaching, striped, rack-aware or rack-blind") from None
    topics = {topic.name for topic in lesson_world.topics}
    producers = tuple(_producer(text, topics) for text in words.producers) or lesson_world.producers
    groups = tuple(_group(text, topics) for text in words.groups) or lesson_world.groups
    _check_names("producers", [producer.client_id for producer in producers] if words.producers else [])
    _check_names("groups", [group.name for group in groups] if words.groups else [])
    latency_ms = duration(words.latency)
    link = replace(LinkSpec(), latency_us=1000 * latency_ms) if latency_ms else LinkSpec()
    return replace(lesson_world, producers=producers, groups=groups, link=link)


def _check_names(what: str, names: Sequence[str]) -> None:
    """Raise NotAFigure if a name stands for two of them."""
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise NotAFigure(f"there are two {what} named {twice!r}", "give each a name of its own")


def duration(text: str) -> int:
    """Return the milliseconds of a lesson's `40ms` or `60s`. Raises NotAFigure."""
    length_ms = duration_ms(text)
    if length_ms is None:
        raise NotAFigure(f"{text!r} is not a duration", "write 40ms or 60s")
    if length_ms > MOST_MS:
        raise NotAFigure(f"{text!r} is too long", f"write at most {MOST_MS // 1000}s")
    return length_ms


def _producer(text: str, topics: set[str]) -> ProducerSpec:
    name, topic, rate, options = _parts(
        text, topics, "NAME:TOPIC:RECORDS_PER_SECOND, such as shop:orders:200"
    )
    spec = ProducerSpec(name, topic, _number(rate, 0, MOST_RATE))
    for key, value in options.items():
        match key:
            case "acks" if value in ("0", "1", "all"):
                spec = replace(spec, acks=-1 if value == "all" else int(value))
            case "keys":
                spec = replace(spec, keys=int(_number(value, 0, MOST_KEYS)))
            case "skew":
                spec = replace(spec, skew=_number(value, 0, MOST_SKEW))
            case "bytes":
                spec = replace(spec, record_bytes=int(_number(value, LEAST_BYTES, MOST_BYTES)))
            case "transaction":
                spec = replace(spec, transaction_ms=int(_number(value, 1, TRANSACTION_MS_MAX)))
            case "abort-every":
                spec = replace(spec, abort_every=int(_number(value, 0, MOST_KEYS)))
            case _:
                raise NotAFigure(
                    f"{key}={value} is not an option of a producer",
                    "use acks, keys, skew, bytes, transaction or abort-every",
                )
    if spec.abort_every and not spec.transaction_ms:
        raise NotAFigure(f"{name} has no transactions to abort", "add transaction=1000")
    if spec.transaction_ms and spec.acks != -1:
        raise NotAFigure(f"{name} cannot have transactions with acks={spec.acks}", "use acks=all")
    return spec


def _group(text: str, topics: set[str]) -> GroupSpec:
    name, topic, members, options = _parts(text, topics, "NAME:TOPIC:MEMBERS, such as billing:orders:3")
    spec = GroupSpec(name, (topic,), int(_number(members, 0, MOST_MEMBERS)))
    for key, value in options.items():
        match key:
            case "rate":
                spec = replace(spec, records_per_second=_number(value, 0, MOST_RATE))
            case "commit":
                spec = replace(spec, commit_interval_ms=int(_number(value, 1, MOST_MS)))
            case "lag":
                spec = replace(spec, warm_lag_seconds=_number(value, 0, MOST_LAG_S))
            case "deliver" if value in _DELIVERY:
                spec = replace(spec, at_most_once=_DELIVERY[value])
            case "isolation" if value in _ISOLATION:
                spec = replace(spec, read_committed=_ISOLATION[value])
            case "protocol" if value in (CLASSIC, CONSUMER, SHARE):
                spec = replace(spec, protocol=value)
            case _:
                raise NotAFigure(
                    f"{key}={value} is not an option of a group",
                    "use rate, commit, lag, deliver, isolation or protocol",
                )
    return spec


def _parts(text: str, topics: set[str], form: str) -> tuple[str, str, str, Mapping[str, str]]:
    parts: Sequence[str] = text.split(":")
    if len(parts) < 3 or not parts[0]:
        raise NotAFigure(f"{text!r} is not complete", f"write {form}")
    name, topic, number, *rest = parts
    if topic not in topics:
        known = ", ".join(sorted(topics))
        raise NotAFigure(f"there is no topic named {topic!r}", f"available topics: {known}")
    try:
        return name, topic, number, pairs(rest, text)
    except BadUse:
        raise NotAFigure(f"{text!r} has an option without a value", f"write {form}:KEY=VALUE") from None


def _number(text: str, least: int, most: int) -> float:
    if not _NUMBER.fullmatch(text):
        raise NotAFigure(f"{text!r} is not a number", "write a number, such as 200")
    if not least <= float(text) <= most:
        raise NotAFigure(f"{text!r} is out of range", f"write a number from {least:,} to {most:,}")
    return float(text)
