"""AddPartitionsToTxn (24) 0–5, AddOffsetsToTxn (25) 0–4, EndTxn (26) 0–5, WriteTxnMarkers (27) 1–2 and
TxnOffsetCommit (28) 0–5: what producers do with transactions, and what ends a hanging one.

AddPartitionsToTxn: v2 adds PRODUCER_FENCED, v3 is flexible, v4 has several transactional ids and may only
ask. AddOffsetsToTxn and EndTxn: v2 adds PRODUCER_FENCED, v3 is flexible. EndTxn: v5 answers with the
producer's next epoch (KIP-890). WriteTxnMarkers: v2 adds the version of the transaction. TxnOffsetCommit: v2
adds leader epochs, v3 is flexible and adds the member, with v5 the group's offsets become part of the
transaction by themselves.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from kafka.protocol.producer import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    EndTxnRequest,
    EndTxnResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

from kview.serve.apis.gather import Gather, ask_in_parts, by_topic
from kview.serve.apis.group_offsets import Commits
from kview.serve.call import Api, Call, Steps, fenced
from kview.simulate.acls import AclOperation, ResourceType
from kview.simulate.codes import ErrorCode
from kview.simulate.groups.results import CommitRequest, OffsetToCommit
from kview.simulate.metadata import TopicPartition
from kview.simulate.records import Marker
from kview.simulate.requests.records import EndedTransaction
from kview.simulate.transactions.coordinator import BUMPS_FROM
from kview.simulate.transactions.results import EndResult
from kview.simulate.world import INTERNAL_TOPICS, OFFSETS_TOPIC

FENCED_FROM = 2
SEVERAL_FROM = 4
BUMPS_WITH_END = 5
ADDS_WITH_COMMIT = 5
ABORTABLE_FROM = 4


def _for_version(call: Call, code: ErrorCode) -> ErrorCode:
    """Return the error that clients of this version know."""
    return fenced(code, knows=call.version >= FENCED_FROM)


def add_partitions(call: Call) -> Steps:
    """Add the partitions to the transactions, or none of them if one does not exist."""
    request, version = call.request, call.version
    response = AddPartitionsToTxnResponse

    def respond(rows: list[tuple[str, list[tuple[str, tuple[int, ErrorCode]]]]]) -> Any:
        results = [
            (name, [_results(call, topic, parts) for topic, parts in by_topic(found).items()])
            for name, found in rows
        ]
        if version >= SEVERAL_FROM:
            per_transaction = response.AddPartitionsToTxnResult
            return response(
                version=version,
                results_by_transaction=[
                    per_transaction(version=version, transactional_id=name, topic_results=topics)
                    for name, topics in results
                ],
            )
        return response(version=version, results_by_topic_v3_and_below=results[0][1])

    if version >= SEVERAL_FROM and not call.may(AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER):
        refused = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        call.answer(response(version=version, error_code=refused, results_by_transaction=[]))
        return
    gather = Gather(call, respond)
    for name, producer, topics, verifies in _asked(request, version):
        yield
        keys = [(topic.name, index) for topic in topics for index in topic.partitions]
        by_client = version < SEVERAL_FROM
        forbidden = _forbidden(call, topics) if by_client else set()
        unknown = {key for key in keys if call.image.partition(*key) is None}
        place = gather.place()

        def put(
            code: ErrorCode, place: int = place, name: str = name, keys: list[TopicPartition] = keys
        ) -> None:
            gather.put(place, (name, [(topic, (index, code)) for topic, index in keys]))

        if by_client and not call.may(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, name):
            put(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        elif unknown or forbidden:
            codes = [_not_added(key, unknown, forbidden) for key in keys]
            rows = [(topic, (index, code)) for (topic, index), code in zip(keys, codes, strict=True)]
            gather.put(place, (name, rows))
        elif verifies:
            coordinator = call.cluster.transactions(call.broker)
            codes = coordinator.verify(name, producer, keys)
            rows = [(topic, (index, code)) for (topic, index), code in zip(keys, codes, strict=True)]
            gather.put(place, (name, rows))
        else:
            client = BUMPS_FROM if version >= SEVERAL_FROM else 0
            coordinator = call.cluster.transactions(call.broker)
            coordinator.add_partitions(name, producer, keys, client, call.later(put))
    gather.close()


def _forbidden(call: Call, topics: Any) -> set[str]:
    """Return the topics that the client may not write to in a transaction."""
    return {
        topic.name
        for topic in topics
        if topic.name in INTERNAL_TOPICS or not call.may(AclOperation.WRITE, ResourceType.TOPIC, topic.name)
    }


def _not_added(key: TopicPartition, unknown: set[TopicPartition], forbidden: set[str]) -> ErrorCode:
    """Return the error of a partition of a transaction, to which nothing is added because of one of them."""
    if key[0] in forbidden:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if key in unknown else ErrorCode.OPERATION_NOT_ATTEMPTED


def _asked(request: Any, version: int) -> list[tuple[str, tuple[int, int], Any, bool]]:
    """Return the transactions of a request: name, producer, topics, and whether it only asks."""
    if version < SEVERAL_FROM:
        producer = (request.v3_and_below_producer_id, request.v3_and_below_producer_epoch)
        return [(request.v3_and_below_transactional_id, producer, request.v3_and_below_topics, False)]
    return [
        (each.transactional_id, (each.producer_id, each.producer_epoch), each.topics, each.verify_only)
        for each in request.transactions
    ]


def _results(call: Call, topic: str, rows: Sequence[tuple[int, ErrorCode]]) -> Any:
    version, response = call.version, AddPartitionsToTxnResponse
    several = version >= SEVERAL_FROM
    per_topic = (response.AddPartitionsToTxnResult if several else response).AddPartitionsToTxnTopicResult
    return per_topic(
        version=version,
        name=topic,
        results_by_partition=[
            per_topic.AddPartitionsToTxnPartitionResult(
                version=version, partition_index=index, partition_error_code=_for_version(call, code)
            )
            for index, code in rows
        ],
    )


def add_offsets(call: Call) -> None:
    """Add the partition with a group's offsets to the transaction."""
    request, cluster = call.request, call.cluster
    key = (OFFSETS_TOPIC, cluster.groups(call.broker).partition_of(request.group_id))

    def done(code: ErrorCode) -> None:
        call.answer(AddOffsetsToTxnResponse(version=call.version, error_code=_for_version(call, code)))

    if not call.may(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id):
        done(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        return
    if not call.may(AclOperation.READ, ResourceType.GROUP, request.group_id):
        done(ErrorCode.GROUP_AUTHORIZATION_FAILED)
        return
    producer = (request.producer_id, request.producer_epoch)
    cluster.transactions(call.broker).add_partitions(
        request.transactional_id, producer, (key,), 0, call.later(done)
    )


def end(call: Call) -> None:
    """Commit or abort a transaction."""
    request, version = call.request, call.version

    def done(result: EndResult) -> None:
        call.answer(
            EndTxnResponse(
                version=version,
                error_code=_for_version(call, result.error_code),
                producer_id=result.producer_id,
                producer_epoch=result.producer_epoch,
            )
        )

    if not call.may(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id):
        done(EndResult(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
        return
    call.cluster.transactions(call.broker).end(
        request.transactional_id,
        (request.producer_id, request.producer_epoch),
        request.committed,
        BUMPS_FROM if version >= BUMPS_WITH_END else 0,
        call.later(done),
    )


def write_markers(call: Call) -> Steps:
    """Write markers to partitions that this broker leads, for an admin that ends a hanging transaction."""
    version, response = call.version, WriteTxnMarkersResponse
    per_marker = response.WritableTxnMarkerResult
    per_topic = per_marker.WritableTxnMarkerTopicResult
    per_partition = per_topic.WritableTxnMarkerPartitionResult

    def respond(rows: list[tuple[int, str, int, ErrorCode]]) -> Any:
        by_marker: dict[int, list[tuple[str, Any]]] = {}
        for number, topic, index, code in rows:
            row = per_partition(version=version, partition_index=index, error_code=code)
            by_marker.setdefault(number, []).append((topic, row))
        return response(
            version=version,
            markers=[
                per_marker(
                    version=version,
                    producer_id=marker.producer_id,
                    topics=[
                        per_topic(version=version, name=name, partitions=partitions)
                        for name, partitions in by_topic(by_marker.get(number, [])).items()
                    ],
                )
                for number, marker in enumerate(call.request.markers)
            ],
        )

    gather = Gather(call, respond)
    may = any(
        call.may(each, ResourceType.CLUSTER) for each in (AclOperation.ALTER, AclOperation.CLUSTER_ACTION)
    )
    for number, marker in enumerate(call.request.markers):
        ended = EndedTransaction(
            marker.producer_id,
            marker.producer_epoch,
            Marker(marker.transaction_result, marker.coordinator_epoch),
        )
        for topic in marker.topics:
            for index in topic.partition_indexes:
                yield
                place = gather.place()

                def put(
                    code: ErrorCode,
                    place: int = place,
                    row: tuple[int, str, int] = (number, topic.name, index),
                ) -> None:
                    gather.put(place, (*row, code))

                if not may:
                    put(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
                    continue
                key = (topic.name, index)
                call.cluster.records.write_marker(call.broker, key, ended, call.later(put))
    gather.close()


def commit_offsets(call: Call) -> Steps:
    """Commit a group's offsets as part of a transaction, for partitions that exist."""
    request, version, commits = call.request, call.version, Commits(call)
    yield from commits.read()
    has_member = version >= 3
    whole = partial(
        CommitRequest,
        request.group_id,
        generation=request.generation_id if has_member else -1,
        member_id=request.member_id if has_member else "",
        group_instance_id=request.group_instance_id if has_member else None,
        producer=(request.producer_id, request.producer_epoch),
    )

    groups, records = call.cluster.groups(call.broker), call.cluster.records
    key = (OFFSETS_TOPIC, groups.partition_of(request.group_id))
    guard = records.guard(call.broker, key, request.producer_id)

    def ask(part: Sequence[OffsetToCommit], done: Callable[[Sequence[int]], None]) -> None:
        if records.guard(call.broker, key, request.producer_id) != guard:
            done([ErrorCode.INVALID_TXN_STATE] * len(part))  # The transaction has ended in the meantime.
            return
        groups.commit(whole(offsets=tuple(part)), call.later(lambda result: done(result.error_codes)))

    def committed(codes: Sequence[int]) -> None:
        call.run(_answer_commit(call, commits.errors(codes)))

    def admitted(code: ErrorCode) -> None:
        if code is ErrorCode.NONE:
            call.run(ask_in_parts(commits.offsets, ask, committed))
        else:
            committed([code] * len(commits.offsets))

    if not call.may(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id):
        refused = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    elif not call.may(AclOperation.READ, ResourceType.GROUP, request.group_id):
        refused = ErrorCode.GROUP_AUTHORIZATION_FAILED
    else:
        refused = ErrorCode.NONE
    if refused is not ErrorCode.NONE:
        call.run(_answer_commit(call, commits.all_errors(refused)))
        return
    refused = groups.refusal(request.group_id)
    if refused is not ErrorCode.NONE:
        admitted(refused)
        return
    call.cluster.asking.admit(
        call.broker,
        request.transactional_id,
        (request.producer_id, request.producer_epoch),
        key,
        version >= ADDS_WITH_COMMIT,
        call.later(admitted),
        version >= ABORTABLE_FROM,
    )


def _answer_commit(call: Call, errors: list[list[int]]) -> Steps:
    per_topic = TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic
    topics = []
    for entry, topic_errors in zip(call.request.topics, errors, strict=True):
        partitions = [
            per_topic.TxnOffsetCommitResponsePartition(
                version=call.version, partition_index=data.partition_index, error_code=error
            )
            for data, error in zip(entry.partitions, topic_errors, strict=True)
        ]
        topics.append(per_topic(version=call.version, name=entry.name, partitions=partitions))
        yield
    call.answer(TxnOffsetCommitResponse(version=call.version, topics=topics))


APIS = (
    Api(24, AddPartitionsToTxnRequest, (0, 5), add_partitions),
    Api(25, AddOffsetsToTxnRequest, (0, 4), add_offsets),
    Api(26, EndTxnRequest, (0, 5), end),
    Api(27, WriteTxnMarkersRequest, (1, 2), write_markers),
    Api(28, TxnOffsetCommitRequest, (0, 5), commit_offsets),
)
