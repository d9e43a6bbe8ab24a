"""InitializeShareGroupState (83) 0, ReadShareGroupState (84) 0, WriteShareGroupState (85) 0–1,
DeleteShareGroupState (86) 0 and ReadShareGroupStateSummary (87) 0–1: what brokers ask share coordinators.

v1 of 85 and 87 adds how many deliveries are complete. The simulated brokers do not ask over the network.
"""

from collections.abc import Callable
from typing import Any

from kview.serve.apis.gather import Gather
from kview.serve.call import Api, Call, Steps, id_bytes, shortened, topic_uuid
from kview.simulate.acls import AclOperation, ResourceType
from kview.simulate.codes import MESSAGES, ErrorCode
from kview.simulate.coordination.share_states import (
    UNKNOWN_COUNT,
    ReadState,
    SharePartition,
    StateBatch,
    Summary,
    WrittenState,
)
from kview.wire.member_messages import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
)

COUNTS_FROM = 1
REFUSED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED, MESSAGES[ErrorCode.CLUSTER_AUTHORIZATION_FAILED]

Ask = Callable[[SharePartition, Any, Callable[..., None]], None]
"""Asks about a partition of the request, and calls back with what `row` takes."""


def _answer(call: Call, response: Any, topic_kind: str, ask: Ask, row: Callable[..., Any]) -> Steps:
    """Ask about each partition, and answer with their rows by topic."""
    version, group = call.version, call.request.group_id
    per_topic = getattr(response, topic_kind)

    def answered(rows: list[tuple[bytes, Any]]) -> Any:
        topics: dict[bytes, list[Any]] = {}
        for topic_id, one in rows:
            topics.setdefault(topic_id, []).append(one)
        return response(
            version=version,
            results=[
                per_topic(version=version, topic_id=topic_uuid(topic_id), partitions=of_topic)
                for topic_id, of_topic in topics.items()
            ],
        )

    may = call.may(AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER)
    gather = Gather(call, answered)
    for topic in call.request.topics:
        topic_id = id_bytes(topic.topic_id)
        for asked in topic.partitions:
            yield
            place = gather.place()

            key = SharePartition(group, topic_id, asked.partition)
            if not may:
                refused = per_topic.PartitionResult(
                    version=version, partition=key.partition, **_code(*REFUSED)
                )
                gather.put(place, (topic_id, refused))
                continue

            def done(*found: Any, place: int = place, key: SharePartition = key) -> None:
                one = per_topic.PartitionResult(version=version, partition=key.partition, **row(*found))
                gather.put(place, (key.topic_id, one))

            ask(key, asked, call.later(done))
    gather.close()


def _code(code: ErrorCode, message: str | None) -> dict[str, Any]:
    return {"error_code": code, "error_message": None if message is None else shortened(message)}


def initialize(call: Call) -> Steps:
    """Begin with partitions."""
    coordinator = call.cluster.shares(call.broker)
    return _answer(
        call,
        InitializeShareGroupStateResponse,
        "InitializeStateResult",
        lambda key, asked, done: coordinator.initialize(key, asked.state_epoch, asked.start_offset, done),
        _code,
    )


def read(call: Call) -> Steps:
    """Answer with the state of partitions."""
    coordinator = call.cluster.shares(call.broker)
    per_topic = ReadShareGroupStateResponse.ReadStateResult

    def row(found: ReadState) -> dict[str, Any]:
        return {
            **_code(found.error_code, found.message),
            "state_epoch": found.state_epoch,
            "start_offset": found.start_offset,
            "state_batches": [
                per_topic.PartitionResult.StateBatch(
                    version=call.version,
                    first_offset=batch.first,
                    last_offset=batch.last,
                    delivery_state=batch.state,
                    delivery_count=batch.deliveries,
                )
                for batch in found.batches
            ],
        }

    return _answer(
        call,
        ReadShareGroupStateResponse,
        "ReadStateResult",
        lambda key, asked, done: coordinator.read(key, asked.leader_epoch, done),
        row,
    )


def write(call: Call) -> Steps:
    """Write what has changed in the state of partitions."""
    coordinator = call.cluster.shares(call.broker)

    def ask(key: SharePartition, asked: Any, done: Callable[..., None]) -> None:
        batches = tuple(
            StateBatch(batch.first_offset, batch.last_offset, batch.delivery_state, batch.delivery_count)
            for batch in asked.state_batches
            if batch.first_offset <= batch.last_offset
        )
        complete = asked.delivery_complete_count if call.version >= COUNTS_FROM else UNKNOWN_COUNT
        state = WrittenState(asked.state_epoch, asked.leader_epoch, asked.start_offset, complete, batches)
        coordinator.write(key, state, done)

    return _answer(call, WriteShareGroupStateResponse, "WriteStateResult", ask, _code)


def delete(call: Call) -> Steps:
    """Forget the state of partitions."""
    coordinator = call.cluster.shares(call.broker)
    return _answer(
        call,
        DeleteShareGroupStateResponse,
        "DeleteStateResult",
        lambda key, asked, done: coordinator.delete(key, done),
        _code,
    )


def summarize(call: Call) -> Steps:
    """Answer with where a group starts in partitions."""
    coordinator = call.cluster.shares(call.broker)

    def row(found: Summary) -> dict[str, Any]:
        values = {
            **_code(found.error_code, found.message),
            "state_epoch": found.state_epoch,
            "leader_epoch": found.leader_epoch,
            "start_offset": found.start_offset,
        }
        if call.version >= COUNTS_FROM:
            values["delivery_complete_count"] = found.complete
        return values

    return _answer(
        call,
        ReadShareGroupStateSummaryResponse,
        "ReadStateSummaryResult",
        lambda key, asked, done: done(coordinator.summarize(key)),
        row,
    )


APIS = (
    Api(83, InitializeShareGroupStateRequest, (0, 0), initialize),
    Api(84, ReadShareGroupStateRequest, (0, 0), read),
    Api(85, WriteShareGroupStateRequest, (0, 1), write),
    Api(86, DeleteShareGroupStateRequest, (0, 0), delete),
    Api(87, ReadShareGroupStateSummaryRequest, (0, 1), summarize),
)
