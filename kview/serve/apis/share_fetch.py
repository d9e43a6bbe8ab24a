"""ShareFetch (78) 1–2 and ShareAcknowledge (79) 1–2: members of share groups acquire and acknowledge records.

v2 adds that a member wants no more records than it says even if a batch has more, and that it renews its
locks (KIP-1206, KIP-1222).
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from kview.serve.call import Api, Call, id_bytes, topic_uuid
from kview.simulate.acls import AclOperation, ResourceType
from kview.simulate.codes import ErrorCode
from kview.simulate.features import SHARE_VERSION
from kview.simulate.metadata import NO_LEADER
from kview.simulate.sharing.in_flight import Acknowledgement, Wanted
from kview.simulate.sharing.leader import Code, FetchedShare, ShareAcknowledged, ShareFetch, ShareFetched
from kview.simulate.sharing.sessions import NEW, Place
from kview.wire.member_messages import (
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)

RENEWS_FROM = 2
BATCH_OPTIMIZED, RECORD_LIMIT = 0, 1
PLACES_MAX = 100_000
"""Limit of the partitions that a request names, as many as a cluster has."""


def fetch(call: Call) -> None:
    """Answer with the records that the member has acquired, when there are some or the time is over."""
    request, version = call.request, call.version

    def answer(result: ShareFetched) -> None:
        call.answer(_fetched(call, result))

    mode = request.share_acquire_mode if version >= RENEWS_FROM else BATCH_OPTIMIZED
    added = [place for place, _ in _places(request.topics)]
    if request.group_id is None or request.member_id is None or len(added) > PLACES_MAX:
        answer(ShareFetched(ErrorCode.INVALID_REQUEST))
        return
    if refused := _refusal(call, request.group_id):
        answer(ShareFetched(refused))
        return
    if mode not in (BATCH_OPTIMIZED, RECORD_LIMIT) or _has_unknown_topic(call, added):
        answer(ShareFetched(ErrorCode.UNKNOWN_SERVER_ERROR))  # as in Kafka, where nobody expects it
        return
    leader = call.cluster.share_leader(call.broker)
    connection = call.connection
    if request.share_session_epoch == NEW:
        call.when_disconnected(lambda: leader.disconnected(connection))
    wait = leader.fetch(
        ShareFetch(
            request.group_id,
            request.member_id,
            request.share_session_epoch,
            connection,
            request.max_wait_ms,
            request.min_bytes,
            request.max_bytes,
            Wanted(request.max_records, max(1, request.batch_size), mode == RECORD_LIMIT),
            added,
            [
                (id_bytes(t.topic_id), number)
                for t in request.forgotten_topics_data
                for number in t.partitions
            ],
            {place: said for place, said in _acknowledgements(request.topics) if said},
            version >= RENEWS_FROM and request.is_renew_ack,
            may_read=_may_read(call),
        ),
        call.later(answer),
    )
    if wait is not None:
        call.when_client_leaves(wait.cancel)


def _refusal(call: Call, group: str) -> ErrorCode:
    if not call.image.features.get(SHARE_VERSION):
        return ErrorCode.UNSUPPORTED_VERSION
    may = call.may(AclOperation.READ, ResourceType.GROUP, group)
    return ErrorCode.NONE if may else ErrorCode.GROUP_AUTHORIZATION_FAILED


def _may_read(call: Call) -> Callable[[str], bool]:
    return partial(call.may, AclOperation.READ, ResourceType.TOPIC)


def _has_unknown_topic(call: Call, places: Iterable[Place]) -> bool:
    names = call.image.topic_names
    return any(topic_id not in names for topic_id, _ in places)


def _places(topics: Any) -> Iterable[tuple[Place, Any]]:
    for topic in topics:
        topic_id = id_bytes(topic.topic_id)
        for partition in topic.partitions:
            yield (topic_id, partition.partition_index), partition


def _acknowledgements(topics: Any) -> Iterable[tuple[Place, list[Acknowledgement]]]:
    for place, partition in _places(topics):
        yield (
            place,
            [
                Acknowledgement(said.first_offset, said.last_offset, said.acknowledge_types)
                for said in partition.acknowledgement_batches
            ],
        )


def _fetched(call: Call, result: ShareFetched) -> Any:
    response, version = ShareFetchResponse, call.version
    topics: dict[bytes, list[Any]] = {}
    for row in result.partitions:
        topics.setdefault(row.place[0], []).append(_fetched_partition(call, row))
    failed = [row.place for row in result.partitions if _is_moved(row.error) or _is_moved(row.acknowledged)]
    per_topic = response.ShareFetchableTopicResponse
    return response(
        version=version,
        error_code=result.error_code,
        error_message=None,
        acquisition_lock_timeout_ms=result.lock_ms,
        responses=[
            per_topic(version=version, topic_id=topic_uuid(topic_id), partitions=rows)
            for topic_id, rows in topics.items()
        ],
        node_endpoints=_endpoints(call, response, failed),
    )


def _fetched_partition(call: Call, row: FetchedShare) -> Any:
    per_partition = ShareFetchResponse.ShareFetchableTopicResponse.PartitionData
    version = call.version
    return per_partition(
        version=version,
        partition_index=row.place[1],
        error_code=row.error[0],
        error_message=row.error[1] if not _is_moved(row.error) else None,
        acknowledge_error_code=row.acknowledged[0],
        acknowledge_error_message=row.acknowledged[1],
        current_leader=_current_leader(call, per_partition, row.place, row.error, row.acknowledged),
        records=row.records,
        acquired_records=[
            per_partition.AcquiredRecords(
                version=version,
                first_offset=acquired.first,
                last_offset=acquired.last,
                delivery_count=acquired.deliveries,
            )
            for acquired in row.acquired
        ],
    )


def _is_moved(code: Code) -> bool:
    return code[0] is ErrorCode.NOT_LEADER_OR_FOLLOWER


def _current_leader(call: Call, kind: Any, place: Place, *codes: Code) -> Any:
    """Return the leader as this broker knows it, for a client that has asked the wrong one."""
    leader, epoch = 0, 0
    if any(map(_is_moved, codes)):
        topic = call.image.topic_by_id(place[0])
        if topic is not None and 0 <= place[1] < len(topic.partitions):
            image = topic.partitions[place[1]]
            leader, epoch = image.leader, image.leader_epoch
    return kind.LeaderIdAndEpoch(version=call.version, leader_id=leader, leader_epoch=epoch)


def _endpoints(call: Call, kind: Any, places: Iterable[Place]) -> list[Any]:
    """Return where the leaders of these partitions are."""
    leaders: dict[int, None] = {}
    for topic_id, number in places:
        topic = call.image.topic_by_id(topic_id)
        if topic is not None and 0 <= number < len(topic.partitions):
            leaders[topic.partitions[number].leader] = None
    leaders.pop(NO_LEADER, None)
    endpoints = []
    for node in leaders:
        host, port = call.wire.endpoint(node)
        rack = call.image.brokers[node].rack if node in call.image.brokers else None
        endpoints.append(
            kind.NodeEndpoint(version=call.version, node_id=node, host=host, port=port, rack=rack or None)
        )
    return endpoints


def acknowledge(call: Call) -> None:
    """Acknowledge records, and answer when that is written."""
    request, version = call.request, call.version

    def answer(result: ShareAcknowledged) -> None:
        call.answer(_acknowledged(call, result))

    said = dict(_acknowledgements(request.topics))
    if request.group_id is None or request.member_id is None or len(said) > PLACES_MAX:
        answer(ShareAcknowledged(ErrorCode.INVALID_REQUEST))
        return
    if refused := _refusal(call, request.group_id):
        answer(ShareAcknowledged(refused))
        return
    call.cluster.share_leader(call.broker).acknowledge(
        request.group_id,
        request.member_id,
        request.share_session_epoch,
        said,
        version >= RENEWS_FROM and request.is_renew_ack,
        call.later(answer),
        _may_read(call),
    )


def _acknowledged(call: Call, result: ShareAcknowledged) -> Any:
    response, version = ShareAcknowledgeResponse, call.version
    per_topic = response.ShareAcknowledgeTopicResponse
    topics: dict[bytes, list[Any]] = {}
    for place, code in result.partitions:
        topics.setdefault(place[0], []).append(
            per_topic.PartitionData(
                version=version,
                partition_index=place[1],
                error_code=code[0],
                error_message=code[1],
                current_leader=_current_leader(call, per_topic.PartitionData, place, code),
            )
        )
    lock = {"acquisition_lock_timeout_ms": result.lock_ms} if version >= RENEWS_FROM else {}
    return response(
        version=version,
        error_code=result.error_code,
        error_message=None,
        responses=[
            per_topic(version=version, topic_id=topic_uuid(topic_id), partitions=rows)
            for topic_id, rows in topics.items()
        ],
        node_endpoints=_endpoints(
            call, response, [place for place, code in result.partitions if _is_moved(code)]
        ),
        **lock,
    )


APIS = (
    Api(78, ShareFetchRequest, (1, 2), fetch),
    Api(79, ShareAcknowledgeRequest, (1, 2), acknowledge),
)
