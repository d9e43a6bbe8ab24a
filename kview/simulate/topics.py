"""Topic creation: the reasons why the controller refuses a topic, and the partitions of a new topic.

Source: org.apache.kafka.controller.ReplicationControlManager.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from kview.errors import BadUse
from kview.simulate.alterations import MIN_ISR
from kview.simulate.codes import ErrorCode
from kview.simulate.metadata import MetadataImage, PartitionImage, TopicImage
from kview.simulate.placement import Assignment
from kview.simulate.refusals import wrong_config, wrong_topic_name
from kview.simulate.releases import Release
from kview.simulate.results import AdminResult, CreateTopicResult
from kview.simulate.settings import Settings, check_topic_configs
from kview.simulate.uuids import random_uuid
from kview.simulate.world import (
    INTERNAL_TOPICS,
    OFFSETS_TOPIC_CONFIGS,
    SHARE_TOPIC,
    SHARE_TOPIC_CONFIGS,
    TRANSACTIONS_TOPIC,
    TRANSACTIONS_TOPIC_CONFIGS,
    TopicSpec,
)

PARTITIONS_MAX = 10_000
"""Limit of partitions per CreateTopics request, as in Kafka."""
EXCESSIVE = CreateTopicResult(
    ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request."
)
"""The answer for every topic of a request with more partitions."""


@dataclass(frozen=True, slots=True)
class CreatableTopic:
    """A topic to create. Counts of −1 mean the brokers' defaults, or those of the `assignment`."""

    name: str
    partitions: int = -1
    replication: int = -1
    assignment: Sequence[Sequence[int]] | None = None
    configs: Mapping[str, str] = field(default_factory=dict)
    wrong: CreateTopicResult | None = None
    """What is wrong with the request itself, which is said if its name is right."""


def internal_topic(name: str, settings: Settings, brokers: int) -> TopicSpec:
    """Return the topic of the coordinators of groups, transactions or share groups, as brokers create it."""
    kind, configs = "offsets.topic", dict(OFFSETS_TOPIC_CONFIGS)
    if name == TRANSACTIONS_TOPIC:
        kind = "transaction.state.log"
        least = min(settings.number(f"{kind}.min.isr"), brokers)
        configs = {**TRANSACTIONS_TOPIC_CONFIGS, MIN_ISR: str(least)}
    if name == SHARE_TOPIC:
        kind = "share.coordinator.state.topic"
        least = min(settings.number(f"{kind}.min.isr"), brokers)
        configs = {**SHARE_TOPIC_CONFIGS, MIN_ISR: str(least)}
    replication = min(settings.number(f"{kind}.replication.factor"), brokers)
    return TopicSpec(name, settings.number(f"{kind}.num.partitions"), replication, configs)


def name_refusal(image: MetadataImage, name: str) -> CreateTopicResult | None:
    """Return why no topic of this name can be created, or None if one can."""
    wrong_name = wrong_topic_name(name)
    if wrong_name is not None:
        return CreateTopicResult(ErrorCode.INVALID_TOPIC_EXCEPTION, wrong_name)
    if name in image.topics:
        return CreateTopicResult(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    other = colliding(image, name)
    if other is not None:
        message = f"Topic '{name}' collides with existing topic: {other}"
        return CreateTopicResult(ErrorCode.INVALID_TOPIC_EXCEPTION, message)
    return None


def refusal(image: MetadataImage, topic: CreatableTopic, release: Release) -> CreateTopicResult | None:
    """Return why the topic cannot be created, or None if it can. Its counts are no longer −1."""
    refused = name_refusal(image, topic.name) or topic.wrong
    if refused is not None:
        return refused
    partitions, replication = topic.partitions, topic.replication
    assignment, configs = topic.assignment, topic.configs
    if partitions < 1 and assignment is None:
        message = "Number of partitions was set to an invalid non-positive value."
        return CreateTopicResult(ErrorCode.INVALID_PARTITIONS, message)
    if partitions > PARTITIONS_MAX:
        return EXCESSIVE
    if assignment is not None:
        wrong = wrong_assignment(image, assignment, replication)
        if wrong is not None:
            return CreateTopicResult(wrong.error_code, wrong.message)
    brokers = image.brokers
    live = sum(1 for b in brokers.values() if not b.fenced)
    if assignment is None and (replication < 1 or replication > len(brokers) or live == 0):
        message = unreachable_replication(replication, len(brokers), live, release)
        return CreateTopicResult(ErrorCode.INVALID_REPLICATION_FACTOR, message)
    keys = release.topic_config_keys
    try:
        check_topic_configs(configs, keys)
    except BadUse as wrong_value:
        message = wrong_config(wrong_value, keys, configs)
        return CreateTopicResult(ErrorCode.INVALID_CONFIG, message)
    return None


def unreachable_replication(replication: int, brokers: int, live: int, release: Release) -> str:
    """Return why no partition can have so many replicas, with so many brokers of which `live` are not
    fenced."""
    if replication < 1:
        return "Replication factor must be larger than 0, or -1 to use the default value."
    unable = f"Unable to replicate the partition {replication} time(s):"
    cordoned = release.cordons_log_dirs
    if live == 0:
        why = ", or have all their log directories cordoned" if cordoned else ""
        return f"{unable} All brokers are currently fenced{why}."
    few = f"The target replication factor of {replication} cannot be reached because only {brokers} broker(s)"
    why = " or some brokers have all their log directories cordoned" if cordoned else ""
    return f"{unable} {few} are registered{why}."


def wrong_assignment(
    image: MetadataImage, assignment: Sequence[Sequence[int]], replication: int
) -> AdminResult | None:
    """Return what is wrong with replica lists that a client names, or None. Each must have `replication`
    brokers."""
    code = ErrorCode.INVALID_REPLICA_ASSIGNMENT
    for replicas in assignment:
        unknown = [r for r in replicas if r not in image.brokers]
        twice = [r for r in replicas if list(replicas).count(r) > 1]
        what = "The manual partition assignment includes"
        if not replicas:
            return AdminResult(code, f"{what} an empty replica list.")
        if unknown:
            return AdminResult(code, f"{what} broker {unknown[0]}, but no such broker is registered.")
        if twice:
            return AdminResult(code, f"{what} the broker {twice[0]} more than once.")
        if len(replicas) != replication:
            count = f"{what} a partition with {len(replicas)} replica(s), but this is not consistent with"
            return AdminResult(code, f"{count} previous partitions, which have {replication} replica(s).")
    return None


def colliding(image: MetadataImage, name: str) -> str | None:
    """Return the topic whose name differs only in having '.' for '_', which Kafka's metrics confuse, or
    None."""
    if "." not in name and "_" not in name:
        return None
    same = name.replace(".", "_")
    return next((topic for topic in image.topics if topic.replace(".", "_") == same), None)


def inactive(placed: Assignment, active: Callable[[int], bool], manual: bool) -> CreateTopicResult | None:
    """Return an error if a partition has no active replica, or None."""
    dead = [index for index, replicas in enumerate(placed) if not any(active(r) for r in replicas)]
    if not dead:
        return None
    if manual:
        return CreateTopicResult(ErrorCode.INVALID_REPLICA_ASSIGNMENT, all_inactive(dead[0]))
    unable = f"Unable to replicate the partition {len(placed[dead[0]])} time(s):"
    message = f"{unable} All brokers are currently fenced or in controlled shutdown."
    return CreateTopicResult(ErrorCode.INVALID_REPLICATION_FACTOR, message)


def all_inactive(partition: int) -> str:
    """Return why a partition cannot be on the brokers that a client names."""
    named = f"All brokers specified in the manual partition assignment for partition {partition}"
    return f"{named} are fenced or in controlled shutdown."


def valid_topic_name(name: str) -> bool:
    """Return whether this is a valid topic name: at most 249 letters, digits, '.', '_' and '-'."""
    return wrong_topic_name(name) is None


def new_topic_id(random: Random) -> bytes:
    """Return a new topic id of 16 bytes, in the form of a random UUID."""
    raw = bytearray(random_uuid(random))
    raw[6] = raw[6] & 0x0F | 0x40
    raw[8] = raw[8] & 0x3F | 0x80
    return bytes(raw)


def new_topic(
    name: str,
    topic_id: bytes,
    assignment: Assignment,
    configs: Mapping[str, str],
    active: Callable[[int], bool],
) -> TopicImage:
    """Return a new topic. In each partition, all active replicas are in sync, and the first of them leads."""
    partitions = []
    for replicas in assignment:
        isr = tuple(r for r in replicas if active(r))
        partitions.append(PartitionImage(isr[0], 0, 0, replicas, isr))
    return TopicImage(name, topic_id, tuple(partitions), name in INTERNAL_TOPICS, configs)
