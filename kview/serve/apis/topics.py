"""CreateTopics (19) 2–7 and DeleteTopics (20) 1–6.

CreateTopics: v4 lets −1 partitions or replicas mean the broker's defaults, v5 is flexible and returns the
topic's settings, v7 its id. DeleteTopics: v4 is flexible, v5 adds an error message, v6 topics by id. Both
requests are carried out by the controller. Without a controller, they wait until they time out. Left out on
purpose: the settings in the response (none are listed).
"""

from typing import Any

from kafka.protocol.admin import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)

from kview.language.errors import sentence
from kview.serve.call import Api, Call, topic_uuid
from kview.simulate.codes import ErrorCode
from kview.simulate.results import CreateTopicResult, DeleteTopicResult

TOPIC_ENTRIES_FROM = 6


class Gather:
    """Collects several results and answers with them, in order, once all have arrived."""

    def __init__(self, call: Call, respond: Any) -> None:
        self._call = call
        self._respond = respond
        self._rows: list[Any] = []
        self._missing = 1  # starts at 1 for `close`, because results may arrive at once

    def place(self) -> int:
        """Reserve a place for one more result, and return the place."""
        self._rows.append(None)
        self._missing += 1
        return len(self._rows) - 1

    def put(self, place: int, row: Any) -> None:
        """Store the result for a place."""
        self._rows[place] = row
        self.close()

    def close(self) -> None:
        """Count down the missing results, and answer when none is missing.

        Call this once all places are reserved.
        """
        self._missing -= 1
        if self._missing == 0:
            self._call.answer(self._respond(self._rows))


def create_topics(call: Call) -> None:
    """Create each topic, and answer once the controller has decided on all."""
    request, version = call.request, call.version
    gather = Gather(call, lambda rows: CreateTopicsResponse(version=version, topics=rows))
    for entry in request.topics:
        place = gather.place()

        def created(result: CreateTopicResult, place: int = place, name: str = entry.name) -> None:
            row = CreateTopicsResponse.CreatableTopicResult(
                version=version,
                name=name,
                topic_id=topic_uuid(result.topic_id),
                error_code=result.error_code,
                error_message=result.message if result.wrong is None else sentence(result.wrong),
                num_partitions=result.partitions,
                replication_factor=result.replication,
            )
            gather.put(place, row)

        by_index = sorted((a.partition_index, tuple(a.broker_ids)) for a in entry.assignments)
        if [index for index, _ in by_index] != list(range(len(by_index))):
            message = "partitions of an assignment must be numbered from 0, without gaps"
            created(CreateTopicResult(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message))
            continue
        call.cluster.create_topic(
            call.broker,
            entry.name,
            entry.num_partitions,
            entry.replication_factor,
            [replicas for _, replicas in by_index] or None,
            {c.name: c.value for c in entry.configs if c.value is not None},
            request.validate_only,
            request.timeout_ms,
            created,
        )
    gather.close()


def delete_topics(call: Call) -> None:
    """Delete each topic, given by name or id, and answer once the controller has decided on all."""
    request, version = call.request, call.version
    gather = Gather(call, lambda rows: DeleteTopicsResponse(version=version, responses=rows))
    if version >= TOPIC_ENTRIES_FROM:
        asked = [(entry.name, entry.topic_id.bytes if entry.topic_id else None) for entry in request.topics]
    else:
        asked = [(name, None) for name in request.topic_names]
    for name, id_bytes in asked:
        place = gather.place()
        if name is None:
            topic = call.image.topic_by_id(id_bytes or b"")
        else:
            topic = call.image.topics.get(name)
        if topic is not None:
            id_bytes = topic.topic_id

        def deleted(
            result: DeleteTopicResult,
            place: int = place,
            name: str | None = topic.name if topic is not None else name,
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

        if topic is None:
            unknown = ErrorCode.UNKNOWN_TOPIC_ID if name is None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            deleted(DeleteTopicResult(unknown))
        else:
            call.cluster.delete_topic(call.broker, topic.name, request.timeout_ms, deleted)
    gather.close()


APIS = (
    Api(19, CreateTopicsRequest, (2, 7), create_topics),
    Api(20, DeleteTopicsRequest, (1, 6), delete_topics),
)
