"""CreateTopics and DeleteTopics, which brokers forward to the active controller.

Source: org.apache.kafka.controller.ReplicationControlManager.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from kview.simulate.codes import MESSAGES, ErrorCode
from kview.simulate.config_entries import topic_entries
from kview.simulate.controllers.effective_configs import EffectiveConfigs
from kview.simulate.controllers.election import Elections
from kview.simulate.controllers.metadata_log import MetadataLog
from kview.simulate.kernel import Kernel
from kview.simulate.nodes import Nodes, ProcessState
from kview.simulate.placement import Assignment, place
from kview.simulate.requests.forwarding import Forwarding
from kview.simulate.results import CreateTopicResult, DeleteTopicResult
from kview.simulate.settings import check_topic_configs
from kview.simulate.topics import (
    EXCESSIVE,
    PARTITIONS_MAX,
    CreatableTopic,
    inactive,
    internal_topic,
    new_topic,
    new_topic_id,
    refusal,
)
from kview.simulate.world import Placement

AUTO_CREATE_TIMEOUT_MS = 30_000
FAILURES_MAX = 1_000
"""Limit of the failures to create a topic for a client that each broker remembers, as in Kafka."""


class _Failure(NamedTuple):
    """Why a topic could not be created for a client, and until when it is not tried again."""

    until_us: int
    error: str


class _Creations:
    """What a broker's process knows of topics that it creates for clients. The oldest failure is first."""

    def __init__(self) -> None:
        self.under_way: set[str] = set()
        self.failures: dict[str, _Failure] = {}

    def failed(self, name: str, failure: _Failure) -> None:
        self.failures[name] = failure
        if len(self.failures) > FAILURES_MAX:
            del self.failures[next(iter(self.failures))]


class TopicRequests:
    """Creates and deletes topics. `placement` is how replicas are spread over brokers."""

    def __init__(
        self,
        kernel: Kernel,
        nodes: Nodes,
        metadata: MetadataLog,
        configs: EffectiveConfigs,
        elections: Elections,
        forwarding: Forwarding,
        placement: Placement,
    ) -> None:
        self._kernel = kernel
        self._metadata = metadata
        self._configs = configs
        self._elections = elections
        self._forwarding = forwarding
        self._placement = placement
        self._creations = {b: _Creations() for b in nodes.broker_ids}
        """Broker → the topics of `create_for_client`."""
        nodes.on_process_change(self._process_changed)

    def _process_changed(self, node: int, state: ProcessState) -> None:
        if node in self._creations and state in (ProcessState.CRASHED, ProcessState.STOPPED):
            self._creations[node] = _Creations()

    def create_topic(
        self,
        b: int,
        topic: CreatableTopic,
        validate_only: bool,
        timeout_ms: int,
        done: Callable[[CreateTopicResult], None],
    ) -> None:
        """Forward CreateTopics for one topic to the controller. Answer once the brokers know the topic."""

        def ask() -> CreateTopicResult:
            result = self._create(topic, validate_only)
            if not result.error_code:
                settings = self._configs.settings
                own = check_topic_configs(topic.configs, settings.release.topic_config_keys)
                entries = topic_entries(settings, self._metadata.image, b, own)
                result = replace(result, configs=tuple(entries))
            return result

        self._forwarding.forward(b, ask, CreateTopicResult(ErrorCode.REQUEST_TIMED_OUT), timeout_ms, done)

    def create_internal_topic(self, b: int, name: str) -> None:
        """Create a topic of coordinators for broker b, unless it exists, because a client looks for one."""
        image = self._metadata.image
        if name in image.topics:
            return
        spec = internal_topic(name, self._configs.settings, len(image.brokers))
        topic = CreatableTopic(name, spec.partitions, spec.replication, configs=spec.configs)
        self.create_topic(b, topic, False, AUTO_CREATE_TIMEOUT_MS, lambda result: None)

    def create_for_client(self, b: int, topics: Sequence[CreatableTopic], remember_ms: int) -> dict[str, str]:
        """Let broker b create topics that its client needs, unless it does so already or failed lately.

        Return why the latest attempts have failed, by topic. That is remembered for `remember_ms`. Topics
        that have more partitions together than one request may create are all refused. Source: Kafka's
        DefaultAutoTopicCreationManager.
        """
        creations, now_us = self._creations[b], self._kernel.now_us
        under_way, failures = creations.under_way, creations.failures
        for name in [name for name, failure in failures.items() if failure.until_us <= now_us]:
            del failures[name]
        new = [topic for topic in topics if topic.name not in under_way and topic.name not in failures]

        def created(result: CreateTopicResult, name: str) -> None:
            under_way.discard(name)
            if result.error_code:
                error = result.message or MESSAGES.get(result.error_code, result.error_code.name)
                creations.failed(name, _Failure(self._kernel.now_us + remember_ms * 1000, error))

        if sum(topic.partitions for topic in new) > PARTITIONS_MAX:
            for topic in new:
                created(EXCESSIVE, topic.name)
            new = []
        for topic in new:
            under_way.add(topic.name)
            self.create_topic(b, topic, False, AUTO_CREATE_TIMEOUT_MS, partial(created, name=topic.name))
        return {topic.name: failures[topic.name].error for topic in topics if topic.name in failures}

    def delete_topic(
        self, b: int, name: str, timeout_ms: int, done: Callable[[DeleteTopicResult], None]
    ) -> None:
        """Ask the active controller to delete a topic for broker `b`.

        Without a controller, `done` gets REQUEST_TIMED_OUT after `timeout_ms`.
        """
        late = DeleteTopicResult(ErrorCode.REQUEST_TIMED_OUT)
        self._forwarding.forward(b, lambda: self.delete(name), late, timeout_ms, done)

    def _create(self, asked: CreatableTopic, validate_only: bool) -> CreateTopicResult:
        """Create one topic as the controller does."""
        settings = self._configs.settings
        partitions, replication, assignment = asked.partitions, asked.replication, asked.assignment
        if assignment is not None:
            partitions, replication = len(assignment), len(assignment[0]) if assignment else 0
        elif partitions == -1:
            partitions = settings.number("num.partitions")
        if replication == -1:
            replication = settings.number("default.replication.factor")
        counted = replace(asked, partitions=partitions, replication=replication)
        refused = refusal(self._metadata.image, counted, settings.release)
        if refused is not None:
            return refused
        brokers = list(self._metadata.image.brokers.values())
        if assignment is not None:
            placed: Assignment = tuple(tuple(replicas) for replicas in assignment)
        else:
            placed = place(
                self._placement,
                brokers,
                partitions,
                replication,
                self._kernel.random("placement"),
            )
        active = self._elections.active({})
        refused = inactive(placed, active, assignment is not None)
        if refused is not None:
            return refused
        topic_id = new_topic_id(self._kernel.random("topic-ids"))
        if validate_only:
            return CreateTopicResult(ErrorCode.NONE, None, topic_id, partitions, replication)
        configs = check_topic_configs(asked.configs, settings.release.topic_config_keys)
        topic = new_topic(asked.name, topic_id, placed, configs, active)
        self._metadata.commit({}, None, added=[topic])
        return CreateTopicResult(ErrorCode.NONE, None, topic.topic_id, partitions, replication)

    def delete(self, name: str) -> DeleteTopicResult:
        """Delete one topic as the controller does."""
        if name not in self._metadata.image.topics:
            unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return DeleteTopicResult(unknown, MESSAGES[unknown])
        self._metadata.commit({}, None, removed=[name])
        self._configs.forget(name)
        return DeleteTopicResult(ErrorCode.NONE)
