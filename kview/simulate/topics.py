"""Topic creation: the reasons why the controller refuses a topic, and the partitions of a new topic.

Source: org.apache.kafka.controller.ReplicationControlManager.
"""

from collections.abc import Callable, Mapping, Sequence

from kview.errors import BadUse
from kview.simulate.codes import ErrorCode
from kview.simulate.metadata import MetadataImage, PartitionImage, TopicImage
from kview.simulate.placement import Assignment
from kview.simulate.results import CreateTopicResult
from kview.simulate.settings import check_topic_configs
from kview.simulate.world import OFFSETS_TOPIC

PARTITIONS_MAX = 10_000
"""Limit of partitions per CreateTopics request, which is also Kafka's."""
TOPIC_NAME_MAX = 249


def refusal(
    image: MetadataImage,
    name: str,
    partitions: int,
    replication: int,
    assignment: Sequence[Sequence[int]] | None,
    configs: Mapping[str, str],
) -> CreateTopicResult | None:
    """Return why such a topic cannot be created, or None."""
    if not valid_topic_name(name):
        return CreateTopicResult(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name {name!r} is illegal.")
    if name in image.topics:
        return CreateTopicResult(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    if not 1 <= partitions <= PARTITIONS_MAX:
        return CreateTopicResult(
            ErrorCode.INVALID_PARTITIONS, f"Number of partitions must be 1 to {PARTITIONS_MAX}."
        )
    brokers = image.brokers
    live = sum(1 for b in brokers.values() if not b.fenced)
    if replication < 1 or replication > len(brokers) or live == 0:
        return CreateTopicResult(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {replication} time(s): there are {len(brokers)} brokers.",
        )
    for replicas in assignment or ():
        known = all(r in brokers for r in replicas)
        if not known or len(set(replicas)) != len(replicas) or len(replicas) != replication:
            return CreateTopicResult(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT, "The manual partition assignment is invalid."
            )
    try:
        check_topic_configs(configs)
    except BadUse as wrong:
        return CreateTopicResult(ErrorCode.INVALID_CONFIG, wrong=wrong)
    return None


def inactive(placed: Assignment, active: Callable[[int], bool], manual: bool) -> CreateTopicResult | None:
    """Return why a topic cannot be placed like this, or None if every partition has an active replica."""
    if all(any(active(r) for r in replicas) for replicas in placed):
        return None
    code = ErrorCode.INVALID_REPLICA_ASSIGNMENT if manual else ErrorCode.INVALID_REPLICATION_FACTOR
    return CreateTopicResult(code, "All brokers of a partition are fenced or in controlled shutdown.")


def valid_topic_name(name: str) -> bool:
    """Return whether this is a valid topic name: at most 249 letters, digits, '.', '_' and '-'."""
    return (
        0 < len(name) <= TOPIC_NAME_MAX
        and name not in (".", "..")
        and all(c.isascii() and (c.isalnum() or c in "._-") for c in name)
    )


def new_topic(
    name: str,
    topic_id: bytes,
    assignment: Assignment,
    configs: Mapping[str, str],
    active: Callable[[int], bool],
) -> TopicImage:
    """Return a new topic, in which all active replicas are in sync and each partition's first one leads."""
    partitions = []
    for replicas in assignment:
        isr = tuple(r for r in replicas if active(r))
        partitions.append(PartitionImage(isr[0], 0, 0, replicas, isr))
    return TopicImage(name, topic_id, tuple(partitions), name == OFFSETS_TOPIC, dict(configs))
