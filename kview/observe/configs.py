"""DescribeConfigs (32): the few settings of topics and brokers that figures depend on, by name."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from kafka.protocol.admin.configs import DescribeConfigsRequest
from msgspec import Struct
from msgspec.structs import replace

from kview.model.failures import NOT_AUTHORIZED, refused
from kview.model.snapshot import BrokerConfigs, Ids, Strings, TopicConfigs
from kview.model.units import NO_BROKER, UNKNOWN, UNKNOWN_ID
from kview.observe.causes import Refused
from kview.observe.layout import Layout, strings

TOPIC_RESOURCE = 2
BROKER_RESOURCE = 4
MIN_ISR = "min.insync.replicas"
TOPIC_KEYS = (
    "cleanup.policy", "follower.replication.throttled.replicas", "leader.replication.throttled.replicas",
    MIN_ISR, "retention.bytes", "retention.ms", "unclean.leader.election.enable",
)  # fmt: skip
BROKER_KEYS = ("follower.replication.throttled.rate", "leader.replication.throttled.rate")
"""Kafka lists these only while they are set."""
SESSION_TIMEOUT = "broker.session.timeout.ms"
ZOOKEEPER_SESSION_TIMEOUT = "zookeeper.session.timeout.ms"
"""The setting in force in ZooKeeper mode, in which brokers still report the other one."""
TOPICS_A_REQUEST = 500
"""Topics per request. At about 300 bytes per topic in the answer, a broker needs a few milliseconds."""

SOURCES = {
    1: "DYNAMIC_TOPIC_CONFIG",
    2: "DYNAMIC_BROKER_CONFIG",
    3: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    4: "STATIC_BROKER_CONFIG",
    5: "DEFAULT_CONFIG",
    8: "GROUP_CONFIG",
}


class TopicSettings(Struct, frozen=True):
    """The settings of one incarnation of a topic as (name, value, source), sorted by name.

    They were received at `received_ms`.
    """

    topic_id: str
    settings: tuple[tuple[str, str, str], ...]
    received_ms: int
    error_code: int = 0
    """Why nobody tells them: Kafka's number of a refusal that lasts."""

    @staticmethod
    def after(
        before: "TopicSettings | None",
        topic_id: str,
        settings: tuple[tuple[str, str, str], ...],
        received_ms: int,
    ) -> "TopicSettings":
        """Return what was received after `before`. Equal settings of the same topic are the same object, so
        that the tables that are made of them stay as they are."""
        if before is not None and (before.topic_id, before.settings) == (topic_id, settings):
            settings = before.settings
        return TopicSettings(topic_id, settings, received_ms)


def topics_request(topics: Sequence[str]) -> Any:
    """Build the request for the settings of `topics`, of which there may be at most TOPICS_A_REQUEST."""
    resource = DescribeConfigsRequest.DescribeConfigsResource
    return DescribeConfigsRequest(
        resources=[
            resource(resource_type=TOPIC_RESOURCE, resource_name=name, configuration_keys=list(TOPIC_KEYS))
            for name in topics
        ]
    )


def broker_request(broker: int, session_timeout: str) -> Any:
    """Build the request for a broker's BROKER_KEYS and for the setting named `session_timeout`."""
    resource = DescribeConfigsRequest.DescribeConfigsResource
    return DescribeConfigsRequest(
        resources=[
            resource(
                resource_type=BROKER_RESOURCE,
                resource_name=str(broker),
                configuration_keys=[session_timeout, *BROKER_KEYS],
            )
        ]
    )


def session_timeout_ms(answer: Any, key: str) -> int:
    """Return a broker's session timeout, the setting `key`, or UNKNOWN if the broker has no such setting.

    Raises Refused.
    """
    for result in answer.results:
        if result.error_code:
            raise Refused(refused(result.error_code))
        for setting in result.configs:
            if setting.name == key and (setting.value or "").isdigit():
                return int(setting.value)
    return UNKNOWN


def broker_settings(answer: Any) -> tuple[tuple[str, str, str], ...]:
    """Return a broker's BROKER_KEYS as (name, value, source), with '' for what is not set."""
    answered = {
        s.name: (s.value or "", SOURCES.get(s.config_source, "UNKNOWN"))
        for result in answer.results for s in result.configs
    }  # fmt: skip
    return tuple((name, *answered.get(name, ("", ""))) for name in BROKER_KEYS)


def topic_settings(answer: Any) -> dict[str, tuple[tuple[str, str, str], ...]]:
    """Return the settings of the topics that were answered without an error."""
    return {
        result.resource_name: tuple(
            sorted((s.name, s.value or "", SOURCES.get(s.config_source, "UNKNOWN")) for s in result.configs)
        )
        for result in answer.results
        if not result.error_code
    }


def unauthorized(answer: Any) -> dict[str, int]:
    """Return the topics whose settings kview may not see, with Kafka's error numbers."""
    return {
        result.resource_name: result.error_code
        for result in answer.results
        if result.error_code in NOT_AUTHORIZED
    }


def troubled_topics(layout: Layout, moved: Strings) -> frozenset[str]:
    """Return the topics with a partition that has no leader or not all of its replicas in sync, and those
    with a partition that is `moved`."""
    short = (layout.isr != NO_BROKER).sum(axis=1) < (layout.replicas != NO_BROKER).sum(axis=1)
    short |= layout.leader == NO_BROKER
    return frozenset(layout.topic[short].tolist()) | frozenset(moved.tolist())


def due_topics(
    layout: Layout, known: Mapping[str, TopicSettings], before_ms: int, near: Mapping[str, int]
) -> list[str]:
    """Return the topics whose settings are unknown, of an earlier incarnation, or older than `before_ms`.

    `near` has later times for some topics. Those whose settings kview may not see do not need them.
    """
    due = []
    for name, (row, _) in layout.first.items():
        have = known.get(name)
        if (
            have is None
            or have.topic_id != layout.topic_id[row]
            or have.received_ms < (before_ms if have.error_code else near.get(name, before_ms))
        ):
            due.append((UNKNOWN if have is None else have.received_ms, name))
    return [name for _, name in sorted(due)]


def doubt(known: dict[str, TopicSettings], topic: str) -> None:
    """Make a topic's settings due, whenever they were received. Until then, they are as good as they were."""
    if topic in known:
        known[topic] = replace(known[topic], received_ms=UNKNOWN)


def table(layout: Layout, known: Mapping[str, TopicSettings]) -> TopicConfigs:
    """Return the known settings of the topics in `layout`, as columns."""
    rows = [
        (topic, *setting)
        for topic in sorted(layout.first)
        if topic in known
        for setting in known[topic].settings
    ]
    return TopicConfigs(
        topic=strings([row[0] for row in rows]),
        name=strings([row[1] for row in rows]),
        value=strings([row[2] for row in rows]),
        source=strings([row[3] for row in rows]),
    )


def broker_table(known: Mapping[int, tuple[tuple[str, str, str], ...]]) -> BrokerConfigs:
    """Return the known settings of brokers, as columns."""
    rows = [(broker, *setting) for broker in sorted(known) for setting in known[broker]]
    return BrokerConfigs(
        broker=np.array([row[0] for row in rows], np.int32),
        name=strings([row[1] for row in rows]),
        value=strings([row[2] for row in rows]),
        source=strings([row[3] for row in rows]),
    )


def min_isr(layout: Layout, known: Mapping[str, TopicSettings]) -> Ids:
    """Return min.insync.replicas in force by partition row, or UNKNOWN_ID where it is not known."""
    out = np.full(len(layout), UNKNOWN_ID, np.int32)
    for topic, (start, end) in layout.first.items():
        have = known.get(topic)
        if have is not None and have.topic_id == layout.topic_id[start]:
            out[start:end] = next(
                (int(v) for name, v, _ in have.settings if name == MIN_ISR and v.isdigit()), UNKNOWN_ID
            )
    return out
