"""The cluster of a lesson, built from the words in its file."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from kview.errors import BadUse
from kview.lab.worlds import pairs, world_of
from kview.school.expectations import duration_ms
from kview.school.figures import NotAFigure
from kview.school.lesson import LessonWorld
from kview.simulate.world import GroupSpec, LinkSpec, ProducerSpec, World

_NUMBER = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,6})?")
"""A number that a cluster can have of anything: neither infinite nor negative."""
_DELIVERY = {"at-least-once": False, "at-most-once": True}


def world(words: LessonWorld) -> World:
    """Return the cluster. Raises NotAFigure for words that describe none."""
    try:
        made = world_of(
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
    topics = {topic.name for topic in made.topics}
    producers = tuple(_producer(text, topics) for text in words.producers) or made.producers
    groups = tuple(_group(text, topics) for text in words.groups) or made.groups
    latency_ms = _duration(words.latency)
    link = replace(LinkSpec(), latency_us=1000 * latency_ms) if latency_ms else LinkSpec()
    return replace(made, producers=producers, groups=groups, link=link)


def demo_world(name: str, seed: int) -> tuple[World, int, int]:
    """Return the cluster of a demo, its seed, and how long it has lived at the first step, in ms.

    `seed` is that of a drill. Raises BadUse if there is no such demo.
    """
    from kview.school.demos import INCIDENT
    from kview.school.drills import drill_world
    from kview.school.files import lesson_of

    words = drill_world() if name == INCIDENT else lesson_of(name).world
    return world(words), seed if name == INCIDENT else words.seed, _duration(words.watched)


def _duration(text: str) -> int:
    found = duration_ms(text)
    if found is None:
        raise NotAFigure(f"{text!r} is not a duration", "write 40ms or 60s")
    return found


def _producer(text: str, topics: set[str]) -> ProducerSpec:
    name, topic, rate, options = _parts(
        text, topics, "NAME:TOPIC:RECORDS_PER_SECOND, such as shop:orders:200"
    )
    spec = ProducerSpec(name, topic, _number(rate))
    for key, value in options.items():
        match key:
            case "acks" if value in ("0", "1", "all"):
                spec = replace(spec, acks=-1 if value == "all" else int(value))
            case "keys":
                spec = replace(spec, keys=int(_number(value)))
            case "skew":
                spec = replace(spec, skew=_number(value))
            case "bytes":
                spec = replace(spec, record_bytes=int(_number(value)))
            case _:
                raise NotAFigure(
                    f"{key}={value} is not an option of a producer", "use acks, keys, skew or bytes"
                )
    return spec


def _group(text: str, topics: set[str]) -> GroupSpec:
    name, topic, members, options = _parts(text, topics, "NAME:TOPIC:MEMBERS, such as billing:orders:3")
    spec = GroupSpec(name, (topic,), int(_number(members)))
    for key, value in options.items():
        match key:
            case "rate":
                spec = replace(spec, records_per_second=_number(value))
            case "commit":
                spec = replace(spec, commit_interval_ms=int(_number(value)))
            case "lag":
                spec = replace(spec, warm_lag_seconds=_number(value))
            case "deliver" if value in _DELIVERY:
                spec = replace(spec, at_most_once=_DELIVERY[value])
            case _:
                raise NotAFigure(
                    f"{key}={value} is not an option of a group", "use rate, commit, lag or deliver"
                )
    return spec


def _parts(text: str, topics: set[str], form: str) -> tuple[str, str, str, Mapping[str, str]]:
    parts: Sequence[str] = text.split(":")
    if len(parts) < 3:
        raise NotAFigure(f"{text!r} is not complete", f"write {form}")
    name, topic, number, *rest = parts
    if topic not in topics:
        known = ", ".join(sorted(topics))
        raise NotAFigure(f"there is no topic named {topic!r}", f"available topics: {known}")
    try:
        return name, topic, number, pairs(rest, text)
    except BadUse:
        raise NotAFigure(f"{text!r} has an option without a value", f"write {form}:KEY=VALUE") from None


def _number(text: str) -> float:
    if not _NUMBER.fullmatch(text):
        raise NotAFigure(f"{text!r} is not a number", "write a number, such as 200")
    return float(text)
