"""CreateTopics (19) 2–7 and DeleteTopics (20) 1–6: create and delete topics.

CreateTopics: since v4, −1 partitions or replicas mean the broker's defaults, v5 is flexible and returns the
topic's settings, v7 its id. DeleteTopics: v4 is flexible, v5 adds an error message, v6 topics by id. Both
requests are carried out by the controller. Without a controller, they wait until they time out.
"""

from collections import Counter
from itertools import pairwise
from typing import Any

from kafka.protocol.admin.topics import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)

from kview.serve.apis.config_rows import ConfigRows, config_row
from kview.serve.apis.gather import Gather, message_of
from kview.serve.apis.mutations import EXCEEDED, Mutations
from kview.serve.call import Api, Call, Steps, topic_uuid
from kview.simulate.acls import AclOperation, ResourceType
from kview.simulate.codes import MESSAGES, ErrorCode
from kview.simulate.controllers.quorum import FORWARD_TIMEOUT_MS
from kview.simulate.results import CreateTopicResult, DeleteTopicResult
from kview.simulate.topics import EXCESSIVE, PARTITIONS_MAX, CreatableTopic
from kview.simulate.world import METADATA_TOPIC

TOPIC_ENTRIES_FROM = 6
CONFIGS_FROM = 5
STRICT_CREATION_FROM, STRICT_DELETION_FROM = 6, 5
NO_INTERNAL_TOPIC = f"Creation of internal topic {METADATA_TOPIC} is prohibited."
NAME_OF_ID = "The provided topic name maps to an ID that was already supplied."
DUPLICATE_NAME, DUPLICATE_ID = "Duplicate topic name.", "Duplicate topic id."


def create_topics(call: Call) -> Steps:
    """Create each topic, and answer once the controller has decided on all."""
    request, version = call.request, call.version
    per_topic = CreateTopicsResponse.CreatableTopicResult
    mutations = Mutations(call, STRICT_CREATION_FROM)
    gather = Gather(
        call,
        lambda topics: CreateTopicsResponse(
            version=version, throttle_time_ms=mutations.throttle(), topics=topics
        ),
    )
    rows = ConfigRows(lambda setting: config_row(per_topic.CreatableTopicConfigs, version, setting))
    times = Counter(entry.name for entry in request.topics)
    once = [entry for entry in request.topics if times[entry.name] == 1 and entry.name != METADATA_TOPIC]
    too_many = sum(map(_partitions, once)) > PARTITIONS_MAX
    may_create_any = call.may(AclOperation.CREATE, ResourceType.CLUSTER)
    for entry in once:
        yield
        place = gather.place()

        def created(result: CreateTopicResult, place: int = place, name: str = entry.name) -> None:
            hidden = not result.error_code and not call.may(
                AclOperation.DESCRIBE_CONFIGS, ResourceType.TOPIC, name
            )
            refused = {"topic_config_error_code": ErrorCode.TOPIC_AUTHORIZATION_FAILED} if hidden else {}
            row = per_topic(
                version=version,
                name=name,
                topic_id=topic_uuid(result.topic_id),
                error_code=result.error_code,
                error_message=message_of(result),
                num_partitions=-1 if hidden else result.partitions,
                replication_factor=-1 if hidden else result.replication,
                configs=(rows.of(() if hidden else result.configs)) if version >= CONFIGS_FROM else None,
                **(refused if version >= CONFIGS_FROM else {}),
            )
            gather.put(place, row)

        if not may_create_any and not call.may(AclOperation.CREATE, ResourceType.TOPIC, entry.name):
            created(CreateTopicResult(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed."))
            continue
        if not mutations.allows(_partitions_or(entry, call.cluster.settings.number("num.partitions"))):
            created(CreateTopicResult(EXCEEDED))
            continue
        if too_many:
            created(EXCESSIVE)
            continue
        by_index = sorted((a.partition_index, tuple(a.broker_ids)) for a in entry.assignments)
        call.cluster.topics.create_topic(
            call.broker,
            CreatableTopic(
                entry.name,
                entry.num_partitions,
                entry.replication_factor,
                [replicas for _, replicas in by_index] or None,
                {c.name: c.value for c in entry.configs},
                _wrong_entry(entry),
            ),
            request.validate_only,
            FORWARD_TIMEOUT_MS,
            call.later(created),
        )
    for name in times:
        message = DUPLICATE_NAME if times[name] > 1 else NO_INTERNAL_TOPIC
        if times[name] > 1 or name == METADATA_TOPIC:
            row = per_topic(
                version=version, name=name, error_code=ErrorCode.INVALID_REQUEST, error_message=message
            )
            gather.put(gather.place(), row)
    gather.close()


def _wrong_entry(entry: Any) -> CreateTopicResult | None:
    """Return what is wrong with a topic's entry itself, or None."""
    if entry.assignments and (entry.num_partitions != -1 or entry.replication_factor != -1):
        what = "replication factor" if entry.replication_factor != -1 else "numPartitions"
        message = f"A manual partition assignment was specified, but {what} was not set to -1."
        return CreateTopicResult(ErrorCode.INVALID_REQUEST, message)
    indexes = sorted(assignment.partition_index for assignment in entry.assignments)
    if indexes != list(range(len(indexes))):
        twice = [index for index, other in pairwise(indexes) if index == other]
        message = "partitions should be a consecutive 0-based integer sequence"
        if twice:
            message = f"Found multiple manual partition assignments for partition {twice[0]}"
        return CreateTopicResult(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
    null = [config.name for config in entry.configs if config.value is None]
    if null:
        message = f"Null value not supported for topic configs: {null[0]}"
        return CreateTopicResult(ErrorCode.INVALID_CONFIG, message)
    return None


def _partitions_or(entry: Any, default: int) -> int:
    """Return how many partitions a new topic is to have."""
    if entry.assignments:
        return len(entry.assignments)
    return int(entry.num_partitions) if entry.num_partitions > 0 else default


def _partitions(entry: Any) -> int:
    return int(max(1, entry.num_partitions, len(entry.assignments)))


def delete_topics(call: Call) -> Steps:
    """Delete each topic, given by name or id, and answer once the controller has decided on all."""
    request, version = call.request, call.version
    mutations = Mutations(call, STRICT_DELETION_FROM)
    gather = Gather(
        call,
        lambda rows: DeleteTopicsResponse(
            version=version, throttle_time_ms=mutations.throttle(), responses=rows
        ),
    )
    if version >= TOPIC_ENTRIES_FROM:
        asked = [(entry.name, entry.topic_id.bytes if entry.topic_id else None) for entry in request.topics]
    else:
        asked = [(name, None) for name in request.topic_names]
    times = Counter(asked)
    topics = call.image.topics
    of_names = {topics[name].topic_id for name, _ in times if name in topics}
    ids = {topic_id for name, topic_id in times if name is None}
    for name, id_bytes in times:
        yield
        if name is None and id_bytes in of_names:
            continue  # The row of the name says so.
        place = gather.place()
        if name is None:
            topic = call.image.topic_by_id(id_bytes or b"")
        else:
            topic = topics.get(name)
        wrong = _wrong_deletion(name, id_bytes, times[name, id_bytes])
        known = name if topic is None else topic.name
        hidden = known is not None and not _may_delete(call, AclOperation.DESCRIBE, known)
        asked_for = wrong is None and known is not None and (topic is not None or hidden)
        if asked_for and not _may_delete(call, AclOperation.DELETE, known or ""):
            refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            wrong = DeleteTopicResult(refused, MESSAGES[refused])
        if wrong is None and topic is None:
            unknown = ErrorCode.UNKNOWN_TOPIC_ID if name is None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            wrong = DeleteTopicResult(unknown, MESSAGES[unknown])
        elif wrong is None and topic is not None and name is not None and topic.topic_id in ids:
            wrong = DeleteTopicResult(ErrorCode.INVALID_REQUEST, NAME_OF_ID)
        elif wrong is None and topic is not None:
            id_bytes = topic.topic_id

        def deleted(
            result: DeleteTopicResult,
            place: int = place,
            name: str | None = topic.name if topic is not None and not hidden else name,
            topic_id: bytes | None = id_bytes,
        ) -> None:
            row = DeleteTopicsResponse.DeletableTopicResult(
                version=version,
                name=name,
                topic_id=topic_uuid(topic_id) if topic_id is not None else None,
                error_code=result.error_code,
                error_message=result.message,
            )
            gather.put(place, row)

        if wrong is None and topic is not None and not mutations.allows(len(topic.partitions)):
            wrong = DeleteTopicResult(EXCEEDED)
        if wrong is not None or topic is None:
            assert wrong is not None
            deleted(wrong)
        else:
            call.cluster.topics.delete_topic(call.broker, topic.name, FORWARD_TIMEOUT_MS, call.later(deleted))
    gather.close()


def _may_delete(call: Call, operation: AclOperation, name: str) -> bool:
    """Return whether the client may do this with a topic, or delete all topics."""
    delete = AclOperation.DELETE
    return call.may(operation, ResourceType.TOPIC, name) or call.may(delete, ResourceType.CLUSTER)


def _wrong_deletion(name: str | None, topic_id: bytes | None, times: int) -> DeleteTopicResult | None:
    """Return what is wrong with an entry that stands in a request so many times, or None."""
    message = None
    if name is None and topic_id is None:
        message = "Neither topic name nor id were specified."
    elif name is not None and topic_id is not None:
        message = "You may not specify both topic name and topic id."
    elif times > 1:
        message = DUPLICATE_ID if name is None else DUPLICATE_NAME
    return None if message is None else DeleteTopicResult(ErrorCode.INVALID_REQUEST, message)


APIS = (
    Api(19, CreateTopicsRequest, (2, 7), create_topics),
    Api(20, DeleteTopicsRequest, (1, 6), delete_topics),
)
