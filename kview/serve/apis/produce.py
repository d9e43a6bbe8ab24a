"""Produce (0), versions 3–13, advertised from 0: appends record batches.

v5 adds the log start offset, v7 allows zstd, v8 errors of single records, v9 is flexible, v10 may name the
new leader, v13 has topic ids instead of names. A partition's records are exactly one batch. As in Kafka 4,
versions 0–2 are advertised but not answered, because some clients look for them. A batch is stored as it
comes, compressed or not. With acks=0 there is no response, and an error closes the connection. From v12 on,
a partition becomes part of its producer's transaction with the first batch (KIP-890); before, the coordinator
is asked whether it is part of it. Left out on purpose: the new leader in the response (clients request
metadata instead).
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from kafka.protocol.producer import ProduceRequest, ProduceResponse

from kview.serve.call import Api, Call, Steps
from kview.serve.frames import MAX_REQUEST_BYTES
from kview.simulate.acls import AclOperation, ResourceType
from kview.simulate.batch_check import RECORD_ERRORS_MAX
from kview.simulate.client_quotas import PRODUCER
from kview.simulate.codes import ErrorCode
from kview.simulate.metadata import TopicPartition
from kview.simulate.records import codec, transactional
from kview.simulate.requests.records import Acks
from kview.simulate.results import ProduceResult
from kview.wire.compression import ZSTD

TOPIC_IDS_FROM = 13
ZSTD_FROM = 7
RECORD_ERRORS_FROM = 8
ADDS_FROM = 12
ABORTABLE_FROM = 11
TRY_AGAIN = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    }
)
"""Errors of the way to a coordinator, for which every client tries again
(ReplicaManager.handleProduceAppend)."""
ACKS = (-1, 0, 1)
ADMIN_CLIENT = "__admin_client"
"""The client id with which Kafka's own tools write to internal topics. Other clients must not."""


def produce(call: Call) -> Steps:
    """Append the batches of each partition, and answer once the result of every partition is known."""
    request = call.request
    waiting = 1  # starts at 1 for the loop itself, because results may arrive at once
    results: dict[tuple[int, int], ProduceResult] = {}

    errors_left = RECORD_ERRORS_MAX
    unauthorized = not _may_write_transaction(call) and any(
        transactional(data.records or b"") for entry in request.topic_data for data in entry.partition_data
    )

    def done() -> None:
        nonlocal waiting
        waiting -= 1
        if waiting == 0:
            call.run(_answer(call, results))

    for t, entry in enumerate(request.topic_data):
        topic = call.topic(entry, ids_from=TOPIC_IDS_FROM)
        name = entry.name if topic is None else topic.name
        refused = (topic is not None or call.version < TOPIC_IDS_FROM) and not call.may(
            AclOperation.WRITE, ResourceType.TOPIC, name
        )
        for p, data in enumerate(entry.partition_data):
            yield

            def decided(result: ProduceResult, place: tuple[int, int] = (t, p)) -> None:
                nonlocal errors_left
                named = result.record_errors[:errors_left]
                errors_left -= len(named)
                results[place] = result._replace(record_errors=named)
                done()

            waiting += 1
            if unauthorized:
                decided(ProduceResult(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
            elif refused:
                decided(ProduceResult(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
            elif topic is None:
                by_id = call.version >= TOPIC_IDS_FROM
                decided(
                    ProduceResult(
                        ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                    )
                )
            elif call.version < ZSTD_FROM and codec(data.records or b"") == ZSTD:
                decided(ProduceResult(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE))
            elif request.acks not in ACKS:
                decided(ProduceResult(ErrorCode.INVALID_REQUIRED_ACKS))
            elif topic.internal and call.client_id != ADMIN_CLIENT:
                decided(ProduceResult(ErrorCode.INVALID_TOPIC_EXCEPTION))
            else:
                call.cluster.records.produce(
                    call.broker,
                    topic.name,
                    data.index,
                    data.records or b"",
                    Acks(request.acks, request.timeout_ms, call.later(decided)),
                    partial(admit, call, (topic.name, data.index)),
                )
    done()


def _may_write_transaction(call: Call) -> bool:
    name = call.request.transactional_id
    return bool(name) and call.may(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, name)


def admit(
    call: Call, key: TopicPartition, producer_id: int, epoch: int, then: Callable[[ErrorCode], None]
) -> None:
    """Ask the coordinator whether a partition is part of the producer's transaction, or to add it."""
    name, adds = call.request.transactional_id or "", call.version >= ADDS_FROM
    knows_abortable = call.version >= ABORTABLE_FROM
    if not name:
        then(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        return

    def answered(code: ErrorCode) -> None:
        if code in TRY_AGAIN or (code is ErrorCode.CONCURRENT_TRANSACTIONS and not adds):
            code = ErrorCode.NOT_ENOUGH_REPLICAS
        then(code)

    call.cluster.asking.admit(call.broker, name, (producer_id, epoch), key, adds, answered, knows_abortable)


def _answer(call: Call, results: dict[tuple[int, int], ProduceResult]) -> Steps:
    request, version = call.request, call.version
    throttle_ms = call.used(PRODUCER, call.size)
    call.mute(throttle_ms)
    if request.acks == 0:
        if any(result.error_code for result in results.values()):
            call.hang_up()
        else:
            call.answer_nothing()
        return
    per_topic, per_partition = (
        ProduceResponse.TopicProduceResponse,
        ProduceResponse.TopicProduceResponse.PartitionProduceResponse,
    )
    topics: list[Any] = []
    for t, entry in enumerate(request.topic_data):
        answers = []
        for p, data in enumerate(entry.partition_data):
            result = results[t, p]
            per_record = per_partition.BatchIndexAndErrorMessage
            answers.append(
                per_partition(
                    version=version,
                    index=data.index,
                    error_code=result.error_code,
                    base_offset=result.base_offset,
                    log_append_time_ms=result.log_append_time_ms,
                    log_start_offset=result.log_start_offset,
                    record_errors=[
                        per_record(version=version, batch_index=index, batch_index_error_message=message)
                        for index, message in result.record_errors
                        if version >= RECORD_ERRORS_FROM
                    ],
                    error_message=result.message,
                )
            )
            yield
        topics.append(
            per_topic(version=version, name=entry.name, topic_id=entry.topic_id, partition_responses=answers)
        )
    call.answer(ProduceResponse(version=version, responses=topics, throttle_time_ms=throttle_ms))


APIS = (Api(0, ProduceRequest, (3, 13), produce, advertised_from=0, max_bytes=MAX_REQUEST_BYTES),)
