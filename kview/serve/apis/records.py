"""DeleteRecords (21) 0–2 and DescribeProducers (61) 0: delete a partition's oldest records, list producers.

DeleteRecords: v2 is flexible. Only the leader answers it. A replica that does not lead describes producers,
too, as in Kafka.
"""

from typing import Any

from kafka.protocol.admin.topics import DeleteRecordsRequest, DeleteRecordsResponse
from kafka.protocol.admin.transactions import DescribeProducersRequest, DescribeProducersResponse

from kview.serve.apis.gather import Gather, by_topic
from kview.serve.call import Api, Call, Steps, shortened
from kview.simulate.acls import AclOperation, ResourceType
from kview.simulate.codes import MESSAGES, ErrorCode
from kview.simulate.refusals import wrong_topic_name
from kview.simulate.results import ActiveProducer, DeletedRecords


def delete_records(call: Call) -> Steps:
    """Delete the records of each partition, and answer once all its live replicas have done so."""
    request, version = call.request, call.version
    per_topic = DeleteRecordsResponse.DeleteRecordsTopicResult

    def respond(rows: list[Any]) -> Any:
        topics = [
            per_topic(version=version, name=name, partitions=of_topic)
            for name, of_topic in by_topic(rows).items()
        ]
        return DeleteRecordsResponse(version=version, topics=topics)

    gather = Gather(call, respond)
    for topic in request.topics:
        may = call.may(AclOperation.DELETE, ResourceType.TOPIC, topic.name)
        for asked in topic.partitions:
            yield
            place = gather.place()

            def deleted(
                result: DeletedRecords,
                place: int = place,
                name: str = topic.name,
                index: int = asked.partition_index,
            ) -> None:
                row = per_topic.DeleteRecordsPartitionResult(
                    version=version,
                    partition_index=index,
                    low_watermark=result.low_watermark,
                    error_code=result.error_code,
                )
                gather.put(place, (name, row))

            if not may:
                deleted(DeletedRecords(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
                continue
            call.cluster.deletion.delete_records(
                call.broker,
                topic.name,
                asked.partition_index,
                asked.offset,
                request.timeout_ms,
                call.later(deleted),
            )
    gather.close()


def describe_producers(call: Call) -> Steps:
    """Answer with the producers that this broker's replicas remember."""
    version = call.version
    topics = []
    for entry in call.request.topics:
        partitions = []
        for index in entry.partition_indexes:
            partitions.append(_producers(call, entry.name, index))
            yield
        topics.append(
            DescribeProducersResponse.TopicResponse(version=version, name=entry.name, partitions=partitions)
        )
        yield
    call.answer(DescribeProducersResponse(version=version, topics=topics))


def _producers(call: Call, topic: str, index: int) -> Any:
    producers: tuple[ActiveProducer, ...] = ()
    message = wrong_topic_name(topic)
    if not call.may(AclOperation.READ, ResourceType.TOPIC, topic):
        error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        message = MESSAGES[error]
    elif message is not None:
        error = ErrorCode.INVALID_TOPIC_EXCEPTION
    elif topic not in call.image.topics:
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        message = MESSAGES[error]
    else:
        error, producers = call.cluster.descriptions.active_producers(call.broker, topic, index)
    per_partition = DescribeProducersResponse.TopicResponse.PartitionResponse
    return per_partition(
        version=call.version,
        partition_index=index,
        error_code=error,
        error_message=None if message is None else shortened(message),
        active_producers=[
            per_partition.ProducerState(
                version=call.version,
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
                last_sequence=producer.last_sequence,
                last_timestamp=producer.last_time_ms,
                coordinator_epoch=producer.coordinator_epoch,
                current_txn_start_offset=producer.txn_start,
            )
            for producer in producers
        ],
    )


APIS = (
    Api(21, DeleteRecordsRequest, (0, 2), delete_records),
    Api(61, DescribeProducersRequest, (0, 0), describe_producers),
)
