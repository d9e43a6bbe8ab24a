"""Responses packed by hand equal those of kafka-python's codec, byte for byte."""

from collections.abc import Sequence, Set
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.protocol.consumer import (
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetFetchResponse,
)
from kafka.protocol.metadata import MetadataResponse

from kview.serve.apis.fetch import Endpoint, FetchedPartition, FetchedTopic, lists_aborted, pack_response
from kview.serve.apis.group_offsets import NO_TAGS, pack_group
from kview.serve.apis.group_offsets import FetchedTopic as CommittedTopic
from kview.serve.apis.list_offsets import asked_of, decode, pack_partition
from kview.serve.apis.metadata import Packer
from kview.serve.apis.operations import NOT_ASKED, bits
from kview.serve.call import NO_ID
from kview.simulate.acls import OPERATIONS, ResourceType
from kview.simulate.codes import ErrorCode
from kview.simulate.groups.results import FetchedOffset
from kview.simulate.metadata import BrokerImage, MetadataImage, PartitionImage, TopicImage
from kview.simulate.results import OffsetResult, ReadResult
from kview.wire.kafka_requests import request_decoder
from kview.wire.primitives import INT32, array_length

TOPIC_ID = bytes(range(16))

partitions = st.builds(
    FetchedPartition,
    st.integers(0, 2**31 - 1),
    st.builds(
        ReadResult,
        st.sampled_from(list(ErrorCode)),
        st.integers(-1, 2**63 - 1),
        st.integers(-1, 2**63 - 1),
        st.integers(-1, 2**63 - 1),
        st.binary(max_size=300),
        st.lists(st.tuples(st.integers(0, 2**63 - 1), st.integers(0, 2**63 - 1)), max_size=3).map(tuple),
        st.none() | st.tuples(st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1)),
        st.integers(-1, 2**31 - 1),
    ),
    st.none() | st.tuples(st.integers(0, 2**31 - 1), st.integers(0, 2**31 - 1)),
)
endpoints = st.builds(
    Endpoint,
    st.integers(0, 2**31 - 1),
    st.text(max_size=200),
    st.integers(0, 65_535),
    st.none() | st.text(max_size=20),
)


def fetch_by_codec(
    version: int,
    committed: bool,
    topics: list[FetchedTopic],
    error_code: int,
    session_id: int = 0,
    nodes: Sequence[Endpoint] = (),
) -> bytes:
    per_topic = FetchResponse.FetchableTopicResponse
    per_partition = per_topic.PartitionData
    responses = [
        per_topic(
            version=version,
            topic=key if isinstance(key, str) else "",
            topic_id=UUID(bytes=key) if isinstance(key, bytes) else None,
            partitions=[
                per_topic.PartitionData(
                    version=version,
                    partition_index=index,
                    error_code=result.error_code,
                    high_watermark=result.high_watermark,
                    last_stable_offset=result.last_stable_offset,
                    log_start_offset=result.log_start_offset,
                    aborted_transactions=[
                        per_topic.PartitionData.AbortedTransaction(
                            version=version, producer_id=producer_id, first_offset=first
                        )
                        for producer_id, first in result.aborted
                    ]
                    if lists_aborted(result.error_code, committed)
                    else None,
                    records=result.records,
                    preferred_read_replica=result.preferred if version >= 11 else -1,
                    **tagged(per_partition, version, result, leader),
                )
                for index, result, leader in found
            ],
        )
        for key, found in topics
    ]
    response = FetchResponse(
        version=version, error_code=error_code, session_id=session_id, responses=responses
    )
    if nodes:
        response.node_endpoints = [
            FetchResponse.NodeEndpoint(
                version=version, node_id=node.broker, host=node.host, port=node.port, rack=node.rack
            )
            for node in nodes
        ]
    return bytes(response.encode(version=version))


def tagged(kind: Any, version: int, result: ReadResult, leader: tuple[int, int] | None) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if version >= 12 and result.diverging is not None:
        epoch, end = result.diverging
        fields["diverging_epoch"] = kind.EpochEndOffset(version=version, epoch=epoch, end_offset=end)
    if version >= 12 and leader is not None:
        fields["current_leader"] = kind.LeaderIdAndEpoch(
            version=version, leader_id=leader[0], leader_epoch=leader[1]
        )
    return fields


@pytest.mark.quick(5)
@pytest.mark.parametrize("version", range(4, 19))
@given(
    names=st.lists(st.text(min_size=1, max_size=200), max_size=3),
    found=st.lists(partitions, max_size=4),
    committed=st.booleans(),
    error_code=st.sampled_from([0, 70]),
    session_id=st.sampled_from([0, 77, 2**31 - 1]),
    nodes=st.lists(endpoints, max_size=3),
)
def test_fetch_answers(
    version: int,
    names: list[str],
    found: list[FetchedPartition],
    committed: bool,
    error_code: int,
    session_id: int,
    nodes: list[Endpoint],
) -> None:
    topics = [FetchedTopic(TOPIC_ID if version >= 13 else name, found) for name in names]
    nodes = nodes if version >= 16 else []
    packed = b"".join(pack_response(version, committed, topics, error_code, session_id, nodes))
    assert packed == fetch_by_codec(version, committed, topics, error_code, session_id, nodes)


def test_a_fetch_answer_of_many_partitions_and_large_records() -> None:
    result = ReadResult(ErrorCode.NONE, 10, 10, 0, bytes(70_000))
    topics = [FetchedTopic("wide", [FetchedPartition(p, result) for p in range(200)])]
    assert b"".join(pack_response(12, False, topics)) == fetch_by_codec(12, False, topics, 0)


@pytest.mark.parametrize("version", range(1, 12))
@pytest.mark.parametrize("error", [ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER])
def test_list_offsets_answers(version: int, error: ErrorCode) -> None:
    answer = pack_partition(version, 3, OffsetResult(error, 1_700_000_000_000, 2**40, 5))
    per_partition = ListOffsetsResponse.ListOffsetsTopicResponse.ListOffsetsPartitionResponse
    row = per_partition(
        version=version,
        partition_index=3,
        error_code=error,
        timestamp=1_700_000_000_000,
        offset=2**40,
        leader_epoch=5,
    )
    topic = ListOffsetsResponse.ListOffsetsTopicResponse(version=version, name="t", partitions=[row])
    whole = bytes(ListOffsetsResponse(version=version, topics=[topic]).encode(version=version))
    assert whole.removesuffix(b"\0\0" if version >= 6 else b"").endswith(answer)


@pytest.mark.parametrize(("version", "error"), [(1, 5), (4, 5), (5, 78), (11, 78)])
def test_an_offset_that_is_not_available_yet_is_told_in_the_words_of_the_version(
    version: int, error: int
) -> None:
    answer = pack_partition(version, 0, OffsetResult(ErrorCode.OFFSET_NOT_AVAILABLE))
    assert int.from_bytes(answer[4:6], "big") == error


def image() -> MetadataImage:
    """Return metadata with two brokers, one of them fenced, and with a partition that has a leader and one
    that has none."""
    topic = TopicImage(
        "invoice",
        TOPIC_ID,
        (
            PartitionImage(leader=0, leader_epoch=7, partition_epoch=9, replicas=(0, 1), isr=(0,)),
            PartitionImage(leader=-1, leader_epoch=8, partition_epoch=9, replicas=(1,), isr=(1,)),
        ),
        internal=True,
    )
    brokers = {0: BrokerImage(0, "R1", False, 1), 1: BrokerImage(1, "R2", True, 2)}
    return MetadataImage("cluster", 5, brokers, {"invoice": topic}, {TOPIC_ID: "invoice"})


def topics_by_codec(version: int, operations: Set[int] | None) -> list[Any]:
    per_topic = MetadataResponse.MetadataResponseTopic

    def partition(error: int, index: int, leader: int, epoch: int, nodes: tuple[list[int], ...]) -> Any:
        replicas, isr, offline = nodes
        return per_topic.MetadataResponsePartition(
            version=version,
            error_code=error,
            partition_index=index,
            leader_id=leader,
            leader_epoch=epoch,
            replica_nodes=replicas,
            isr_nodes=isr,
            offline_replicas=offline,
        )

    there = per_topic(
        version=version,
        name="invoice",
        topic_id=UUID(bytes=TOPIC_ID),
        is_internal=True,
        partitions=[partition(0, 0, 0, 7, ([0, 1], [0], [1])), partition(5, 1, -1, 8, ([1], [1], [1]))],
        authorized_operations=operations,
    )
    absent = per_topic(
        version=version,
        error_code=3,
        name="none",
        topic_id=None,
        partitions=[],
        authorized_operations=operations,
    )
    return [there, absent]


@pytest.mark.parametrize("operations", [False, True])
@pytest.mark.parametrize("version", range(14))
def test_metadata_topics(version: int, operations: bool) -> None:
    of_topic = bits(OPERATIONS[ResourceType.TOPIC]) if operations else NOT_ASKED
    of_cluster = bits(OPERATIONS[ResourceType.CLUSTER]) if operations else NOT_ASKED
    packer, there = Packer(version, of_topic), image()
    packed = b"".join(
        (
            array_length(2, packer.flexible),
            packer.topic(there, there.topics["invoice"]),
            packer.no_topic(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "none", bytes(16)),
            packer.end(of_cluster),
        )
    )
    response = MetadataResponse(
        version=version,
        brokers=[],
        cluster_id="c",
        controller_id=0,
        topics=topics_by_codec(version, OPERATIONS[ResourceType.TOPIC] if operations else None),
        authorized_operations=OPERATIONS[ResourceType.CLUSTER] if operations else None,
    )
    assert bytes(response.encode(version=version)).endswith(packed)


@pytest.mark.parametrize("version", [8, 9, 10])
def test_committed_offsets(version: int) -> None:
    """One group with two topics, of which one row has metadata and one an error, and a group that failed."""
    rows = [
        FetchedOffset("a", 0, 7, 3, "wide é"),
        FetchedOffset("a", 1, -1, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    rows += [FetchedOffset("a", p, p) for p in range(2, 140)]
    groups = {"g": (0, [("a", TOPIC_ID, rows), ("b", NO_ID, [])]), "ü" * 100: (16, [])}
    pieces: list[bytes] = []
    codec = []
    for name, (error, topics) in groups.items():
        for _ in pack_group(version, name, error, [CommittedTopic(*topic) for topic in topics], pieces):
            pass
        codec.append(committed_by_codec(version, name, error, topics))
    whole = bytes(OffsetFetchResponse(version=version, groups=codec).encode(version=version))
    assert INT32.pack(0) + array_length(2, compact=True) + b"".join(pieces) + NO_TAGS == whole


def committed_by_codec(version: int, name: str, error: int, topics: list[Any]) -> Any:
    per_group = OffsetFetchResponse.OffsetFetchResponseGroup
    per_topic = per_group.OffsetFetchResponseTopics

    def partition(row: FetchedOffset) -> Any:
        return per_topic.OffsetFetchResponsePartitions(
            version=version,
            partition_index=row.partition,
            committed_offset=row.offset,
            committed_leader_epoch=row.leader_epoch,
            metadata=row.metadata,
            error_code=row.error_code,
        )

    made = [
        per_topic(
            version=version,
            name=topic,
            topic_id=UUID(bytes=topic_id),
            partitions=[partition(row) for row in rows],
        )
        for topic, topic_id, rows in topics
    ]
    return per_group(version=version, group_id=name, topics=made, error_code=error)


@settings(max_examples=200)
@given(st.data())
def test_list_offsets_requests_are_decoded_as_the_codec_does(data: st.DataObject) -> None:
    """Whole requests, and requests that are cut off or changed in one byte."""
    version = data.draw(st.integers(2, 5))
    per_topic = ListOffsetsRequest.ListOffsetsTopic
    row = st.tuples(st.integers(-1, 2**31 - 1), st.integers(-1, 9), st.integers(-6, 2**40))
    asked = data.draw(st.lists(st.tuples(st.text(max_size=5), st.lists(row, max_size=4)), max_size=3))
    topics = [
        per_topic(
            version=version,
            name=name,
            partitions=[
                per_topic.ListOffsetsPartition(
                    version=version, partition_index=p, current_leader_epoch=epoch, timestamp=at
                )
                for p, epoch, at in rows
            ],
        )
        for name, rows in asked
    ]
    request = ListOffsetsRequest(version=version, replica_id=-2, isolation_level=1, topics=topics)
    frame = bytearray(request.encode(version=version))
    is_changed = data.draw(st.booleans())
    if is_changed and len(frame) > 5:
        frame[data.draw(st.integers(5, len(frame) - 1))] ^= data.draw(st.integers(1, 255))
    frame = frame[: len(frame) - data.draw(st.integers(0, 6))]
    ours, theirs = decoded(version, decode, frame), decoded(version, by_codec, frame)
    assert ours == theirs or (is_changed and ours is None), "a length of −2 is refused, as in Kafka"


def decoded(version: int, how: Any, frame: bytearray) -> Any:
    """What a decoder makes of a frame, None if it refuses it."""
    try:
        found = how(version, memoryview(bytes(frame)), 0)
    except Exception:
        return None
    return None if found is None or found[1] > len(frame) else (asked_of(found[0], version), found[1])


def by_codec(version: int, frame: memoryview, begin: int) -> Any:
    steps = request_decoder(ListOffsetsRequest, version, False)(frame, begin)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value
