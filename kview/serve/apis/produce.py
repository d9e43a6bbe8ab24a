"""Produce (0), versions 3–13, advertised from 0: appends record batches.

v5 adds the log start offset, v8 errors of single records, v9 is flexible, v10 may name the new leader, v13
has topic ids instead of names. As in Kafka 4, versions 0–2 are advertised but not answered, because some
clients look for them. Batches are stored as they come, compressed or not. With acks=0 there is no response:
an error closes the connection. Left out on purpose: transactions, and the hint at the new leader (clients ask
for metadata).
"""

from typing import Any

from kafka.protocol.producer import ProduceRequest, ProduceResponse

from kview.serve.call import Api, Call
from kview.simulate.codes import ErrorCode
from kview.simulate.results import ProduceResult

TOPIC_IDS_FROM = 13
ACKS = (-1, 0, 1)


def produce(call: Call) -> None:
    """Append the batches of each partition, and answer once the result of every partition is known."""
    request = call.request
    waiting = 1  # starts at 1 for the loop itself, because results may arrive at once
    results: dict[tuple[int, int], ProduceResult] = {}

    def done() -> None:
        nonlocal waiting
        waiting -= 1
        if waiting == 0:
            _answer(call, results)

    for t, entry in enumerate(request.topic_data):
        topic = call.topic(entry, ids_from=TOPIC_IDS_FROM)
        for p, data in enumerate(entry.partition_data):

            def decided(result: ProduceResult, place: tuple[int, int] = (t, p)) -> None:
                results[place] = result
                done()

            waiting += 1
            if request.acks not in ACKS:
                decided(ProduceResult(ErrorCode.INVALID_REQUIRED_ACKS))
            elif topic is None:
                by_id = call.version >= TOPIC_IDS_FROM
                decided(
                    ProduceResult(
                        ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                    )
                )
            else:
                call.cluster.produce(
                    call.broker,
                    topic.name,
                    data.index,
                    data.records or b"",
                    request.acks,
                    request.timeout_ms,
                    decided,
                )
    done()


def _answer(call: Call, results: dict[tuple[int, int], ProduceResult]) -> None:
    request, version = call.request, call.version
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
            answers.append(
                per_partition(
                    version=version,
                    index=data.index,
                    error_code=result.error_code,
                    base_offset=result.base_offset,
                    log_append_time_ms=result.log_append_time_ms,
                    log_start_offset=result.log_start_offset,
                )
            )
        topics.append(
            per_topic(version=version, name=entry.name, topic_id=entry.topic_id, partition_responses=answers)
        )
    call.answer(ProduceResponse(version=version, responses=topics))


APIS = (Api(0, ProduceRequest, (3, 13), produce, advertised_from=0),)
