"""What a streams group's topology needs of the topics that exist: internal topics and numbers of tasks.

Sources: InternalTopicManager, RepartitionTopics, CopartitionedTopicsEnforcer and ChangelogTopics of Kafka's
group coordinator.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from kview.simulate.codes import ErrorCode
from kview.simulate.coordination.java_hashes import java_map_order
from kview.simulate.groups.consumer_results import Refused
from kview.simulate.groups.streams_records import Subtopology, TopicInfo, TopologyValue
from kview.simulate.metadata import TopicImage

NAMES_SHOWN_MAX = 3
"""Topics that a status names."""

TASKS_MAX = 100_000
"""Limit of the tasks of a group, more than the partitions of a cluster. Kafka's limit is the size of a record
with what a member is to have, 1 MB."""

Topics = Mapping[str, TopicImage]


class StatusCode(IntEnum):
    """What a heartbeat's answer says about the group (StreamsGroupHeartbeatResponse.Status)."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5


class Status(NamedTuple):
    """A status and its details, in Kafka's words."""

    code: StatusCode
    detail: str


class InternalTopic(NamedTuple):
    """An internal topic as it is to be. Zero replicas mean the brokers' default."""

    name: str
    partitions: int
    replication: int
    configs: Mapping[str, str]


class ConfiguredSubtopology(NamedTuple):
    """A subtopology whose numbers of partitions are decided, and how many tasks it has."""

    tasks: int
    source_topics: frozenset[str]
    repartition_sources: Mapping[str, InternalTopic]
    repartition_sinks: frozenset[str]
    changelogs: Mapping[str, InternalTopic]


class Configured(NamedTuple):
    """A topology checked with the topics that exist. `subtopologies` are None if their numbers of partitions
    cannot be decided, and `missing` are the internal topics to create."""

    epoch: int
    subtopologies: Mapping[str, ConfiguredSubtopology] | None
    missing: Mapping[str, InternalTopic]
    status: Status | None

    @property
    def ready(self) -> bool:
        """Whether the group's tasks can be assigned."""
        return self.status is None


class _Wrong(Exception):
    def __init__(self, status: Status) -> None:
        super().__init__(status)
        self.status = status


def by_id(topology: TopologyValue) -> dict[str, Subtopology]:
    """Return the subtopologies by their ids."""
    return {subtopology.subtopology: subtopology for subtopology in topology.subtopologies}


def required_topics(topology: TopologyValue) -> dict[str, None]:
    """Return all topics that the topology's tasks read or keep their state in."""
    return dict.fromkeys(
        name
        for subtopology in topology.subtopologies
        for name in (*sources(subtopology), *_changelogs(subtopology))
    )


def all_topics(topology: TopologyValue) -> dict[str, None]:
    """Return all topics that the topology names."""
    return dict.fromkeys(
        name
        for subtopology in topology.subtopologies
        for name in (
            *subtopology.source_topics,
            *subtopology.repartition_sinks,
            *(topic.name for topic in (*subtopology.repartition_sources, *subtopology.changelogs)),
        )
    )


def sources(subtopology: Subtopology) -> list[str]:
    """Return the topics that a subtopology reads, including repartition topics."""
    return [*subtopology.source_topics, *(topic.name for topic in subtopology.repartition_sources)]


def _changelogs(subtopology: Subtopology) -> list[str]:
    return [topic.name for topic in subtopology.changelogs]


def check_topology(topology: TopologyValue) -> None:
    """Check a topology by itself. Raises Refused."""
    for subtopology in topology.subtopologies:
        for topic in subtopology.changelogs:
            if topic.partitions:
                message = (
                    f"Changelog topic {topic.name} must have an undefined partition count, but it is set to "
                    f"{topic.partitions}."
                )
                raise Refused(ErrorCode.STREAMS_INVALID_TOPOLOGY, message)


def configure(topology: TopologyValue, topics: Topics) -> Configured:
    """Decide on the partitions of a topology's internal topics.

    Raises Refused for a topology that cannot be right, whatever topics there are.
    """
    subtopologies = by_id(topology)
    if len(subtopologies) < len(topology.subtopologies):
        raise _never()
    try:
        _check_sources(subtopologies.values(), topics)
        decided = _decide(subtopologies.values(), topics)
        configured = {
            name: _configured(subtopologies[name], topics, decided) for name in sorted(subtopologies)
        }
        if sum(each.tasks for each in configured.values()) > TASKS_MAX:
            message = f"A topology has more than {TASKS_MAX} tasks."
            raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, message)
        missing = _missing(topology, configured, topics)
    except _Wrong as wrong:
        return Configured(topology.epoch, None, {}, wrong.status)
    status = None
    if missing:
        detail = f"Internal topics are missing: {_some_of(missing)}"
        status = Status(StatusCode.MISSING_INTERNAL_TOPICS, detail)
    return Configured(topology.epoch, configured, missing, status)


def _never() -> Refused:
    """Return the refusal of a topology with which Kafka's coordinator fails."""
    return Refused(ErrorCode.UNKNOWN_SERVER_ERROR, None)


def _some_of(names: Collection[str]) -> str:
    shown = ", ".join(list(names)[:NAMES_SHOWN_MAX])
    more = len(names) - NAMES_SHOWN_MAX
    return f"{shown} and {more} additional topics" if more > 0 else shown


def _check_sources(subtopologies: Iterable[Subtopology], topics: Topics) -> None:
    missing = {name for each in subtopologies for name in each.source_topics if name not in topics}
    if missing:
        detail = f"Source topics {_some_of(sorted(missing))} are missing."
        raise _Wrong(Status(StatusCode.MISSING_SOURCE_TOPICS, detail))


def _count(name: str, topics: Topics, decided: Mapping[str, int]) -> int:
    """Return how many partitions a topic has or is to have."""
    if name in topics:
        return len(topics[name].partitions)
    if name not in decided:
        raise _never()
    return decided[name]


def _decide(subtopologies: Collection[Subtopology], topics: Topics) -> dict[str, int]:
    """Return the number of partitions of each internal topic."""
    decided = _decide_repartition(subtopologies, topics)
    for subtopology in subtopologies:
        if any(topic.name not in decided for topic in subtopology.repartition_sources):
            message = (
                "Failed to compute number of partitions for all repartition topics, because a repartition "
                "source topic is never used as a sink topic."
            )
            raise Refused(ErrorCode.STREAMS_INVALID_TOPOLOGY, message)
    inner = [topic for each in subtopologies for topic in each.repartition_sources]
    fixed = {topic.name: _count(topic.name, topics, decided) for topic in inner if topic.partitions}
    repartition_topics = dict.fromkeys(topic.name for topic in inner)
    for subtopology in subtopologies:
        repartition = [topic.name for topic in subtopology.repartition_sources]
        for group in subtopology.copartition_groups:
            together = _at(subtopology.source_topics, group.source_topics)
            together |= _at(repartition, group.repartition_sources)
            decided.update(_copartition(repartition_topics, together, fixed, topics, decided))
    for subtopology in subtopologies:
        counts = [_count(name, topics, decided) for name in sources(subtopology)]
        if not counts:
            message = f"No source topics found for subtopology {subtopology.subtopology}"
            raise Refused(ErrorCode.STREAMS_INVALID_TOPOLOGY, message)
        decided.update(dict.fromkeys(_changelogs(subtopology), max(counts)))
    return decided


def _at(names: Sequence[str], places: Sequence[int]) -> set[str]:
    """Return the names at these places."""
    if not all(0 <= place < len(names) for place in places):
        raise _never()
    return {names[place] for place in places}


def _decide_repartition(subtopologies: Iterable[Subtopology], topics: Topics) -> dict[str, int]:
    """Return the number of partitions of each repartition topic: its own, else the most that the subtopology
    which writes to it reads."""
    decided = {
        topic.name: topic.partitions
        for each in subtopologies
        for topic in each.repartition_sources
        if topic.partitions
    }
    while True:
        before, waits = len(decided), False
        for subtopology in subtopologies:
            for sink in subtopology.repartition_sinks:
                if sink in decided:
                    continue
                read = (topic.name for topic in subtopology.repartition_sources)
                counts = [decided[name] for name in read if name in decided]
                counts += [
                    len(topics[name].partitions) for name in subtopology.source_topics if name in topics
                ]
                if counts:
                    decided[sink] = max(counts)
                else:
                    waits = True
        if not waits:
            return decided
        if len(decided) == before:
            message = (
                "Failed to compute number of partitions for all repartition topics. There may be loops in "
                "the topology that cannot be resolved."
            )
            raise Refused(ErrorCode.STREAMS_INVALID_TOPOLOGY, message)


def _copartition(
    repartition: Collection[str],
    together: set[str],
    fixed: Mapping[str, int],
    topics: Topics,
    decided: Mapping[str, int],
) -> dict[str, int]:
    """Return the number of partitions of the repartition topics among topics that must have equally many."""
    counts = {name: _count(name, topics, decided) for name in together}
    inner = {name: count for name, count in counts.items() if name in repartition}
    outer = {name: count for name, count in counts.items() if name not in repartition}
    if outer:
        wanted = _same(outer, outer)
    elif fixed:
        wanted = _same(fixed, inner)
    else:
        wanted = max(inner.values(), default=0)
    for name in java_map_order(inner):
        if name in fixed and inner[name] != wanted:
            detail = (
                f"Number of partitions [{inner[name]}] of repartition topic [{name}] doesn't match number of "
                f"partitions [{wanted}] of the source topic."
            )
            raise _Wrong(Status(StatusCode.INCORRECTLY_PARTITIONED_TOPICS, detail))
    return dict.fromkeys(inner, wanted)


def _same(counts: Mapping[str, int], named: Mapping[str, int]) -> int:
    """Return the number of partitions that all of these topics have. The status names `named` if not."""
    if len(set(counts.values())) > 1:
        shown = ", ".join(f"{name}={named[name]}" for name in sorted(named))
        detail = f"Following topics do not have the same number of partitions: [{{{shown}}}]"
        raise _Wrong(Status(StatusCode.INCORRECTLY_PARTITIONED_TOPICS, detail))
    return next(iter(counts.values()))


def _configured(
    subtopology: Subtopology, topics: Topics, decided: Mapping[str, int]
) -> ConfiguredSubtopology:
    return ConfiguredSubtopology(
        max(_count(name, topics, decided) for name in sources(subtopology)),
        frozenset(subtopology.source_topics),
        {topic.name: _internal(topic, decided) for topic in subtopology.repartition_sources},
        frozenset(subtopology.repartition_sinks),
        {topic.name: _internal(topic, decided) for topic in subtopology.changelogs},
    )


def _internal(topic: TopicInfo, decided: Mapping[str, int]) -> InternalTopic:
    partitions = topic.partitions or decided[topic.name]
    if partitions < 1:
        raise _never()
    return InternalTopic(topic.name, partitions, topic.replication, dict(topic.configs))


def _missing(
    topology: TopologyValue, configured: Mapping[str, ConfiguredSubtopology], topics: Topics
) -> dict[str, InternalTopic]:
    """Return the internal topics that do not exist, in Kafka's order."""
    wanted: dict[str, InternalTopic] = {}
    for subtopology in configured.values():
        wanted |= subtopology.repartition_sources
        wanted |= subtopology.changelogs
    for name in java_map_order(required_topics(topology)):
        if name in topics and name in wanted:
            expected, found = wanted[name].partitions, len(topics[name].partitions)
            if found != expected:
                detail = (
                    f"Existing topic {name} has different number of partitions: expected {expected}, found "
                    f"{found}"
                )
                raise _Wrong(Status(StatusCode.INCORRECTLY_PARTITIONED_TOPICS, detail))
    return {name: wanted[name] for name in java_map_order(wanted) if name not in topics}
