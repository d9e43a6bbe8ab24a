"""What of a Metadata answer to believe, in view of what is already known about the cluster."""

from collections.abc import Iterator

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kview.model.failures import NO_FAILURE, Cause, FailureKind, refused
from kview.model.units import NO_BROKER
from kview.observe.layout import Layout, layout, old_rows
from kview.wire.metadata import PartitionRow, TopicRow, Topics

NOT_THERE = frozenset({3, 100})
"""Kafka's errors UNKNOWN_TOPIC_OR_PARTITION and UNKNOWN_TOPIC_ID, which say that a topic does not exist."""


class Believed(Struct, frozen=True):
    """The rows to show after an answer, and what is wrong with the answer, if anything."""

    layout: Layout
    cause: Cause = NO_FAILURE
    outdated: bool = False
    """Whether the answer is from an older state of the cluster, so that nothing of it is believed."""


def believe(seen: Topics, known: Layout) -> Believed:
    """Return what to show after an answer with the topics `seen`, if `known` was shown before.

    A leader epoch never falls while a topic keeps its id. So an answer with a lower one comes from a broker
    that has missed what another broker has told, and is not used, as in Kafka's own clients. A topic that
    has an error instead of partitions still exists, and keeps its rows. A topic or partition that is listed
    twice counts once.
    """
    errors = {t.name: t.error for t in seen.topics if t.error and not t.count and t.error not in NOT_THERE}
    new = layout(_known_instead(_once(seen), errors, known), known)
    if _is_older(new, known):
        return Believed(known, Cause(FailureKind.OUTDATED), outdated=True)
    return Believed(new, refused(min(errors.values())) if errors else NO_FAILURE)


def is_newer(seen: Topics, known: Layout) -> bool:
    """Return whether the topics of another broker's answer are from a later state than `known`."""
    new = layout(_once(seen), known)
    return _is_older(known, new) and not _is_older(new, known)


def _is_older(new: Layout, known: Layout) -> bool:
    """Return whether a partition's leader epoch in `new` is lower than in `known`, for the same topic id."""
    before = old_rows(new, known)
    same = np.flatnonzero((before >= 0) & (new.topic_id != "") & (new.leader_epoch >= 0))
    return bool((new.leader_epoch[same] < known.leader_epoch[before[same]]).any())


def _once(seen: Topics) -> Topics:
    """Return the answer with each topic and each partition once, as listed first."""
    topics = {t.name: t for t in reversed(seen.topics)}
    if len(topics) == len(seen.topics) and not any(_repeats(seen, t) for t in seen.topics):
        return seen
    out = Topics([], [])
    for name in dict.fromkeys(t.name for t in seen.topics):
        topic = topics[name]
        rows = {p.partition: p for p in reversed(seen.partitions[topic.first : topic.first + topic.count])}
        _add(out, topic, iter(rows.values()))
    return out


def _repeats(seen: Topics, topic: TopicRow) -> bool:
    rows = seen.partitions[topic.first : topic.first + topic.count]
    return len({row.partition for row in rows}) != topic.count


def _known_instead(seen: Topics, errors: dict[str, int], known: Layout) -> Topics:
    """Return the answer with the known partitions of topics that have an error, which they get."""
    kept = [name for name in errors if name in known.first]
    if not kept:
        return seen
    out = Topics([t for t in seen.topics if t.name not in kept], list(seen.partitions))
    for name in kept:
        first, _ = known.first[name]
        topic = TopicRow(name, known.topic_id[first], bool(known.internal[first]), errors[name], 0, 0)
        _add(out, topic, (replace(row, error=errors[name]) for row in _rows(known, name)))
    return out


def _add(out: Topics, topic: TopicRow, rows: Iterator[PartitionRow]) -> None:
    first = len(out.partitions)
    out.partitions.extend(rows)
    out.topics.append(replace(topic, first=first, count=len(out.partitions) - first))


def _rows(known: Layout, name: str) -> Iterator[PartitionRow]:
    for row in range(*known.first[name]):
        replicas, isr, offline = (
            tuple(ids[row][ids[row] != NO_BROKER].tolist())
            for ids in (known.replicas, known.isr, known.offline)
        )
        columns = known.error_code, known.partition, known.leader, known.leader_epoch
        error, partition, leader, epoch = (int(column[row]) for column in columns)
        yield PartitionRow(error, partition, leader, epoch, replicas, isr, offline)
