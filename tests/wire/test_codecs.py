"""Array codecs against kafka-python's codec: the same bytes out, the same values in."""

import struct
import uuid
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.consumer import (
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from kafka.protocol.frame import KafkaBytes
from kafka.protocol.metadata import MetadataRequest, MetadataResponse

from kview.wire import list_offsets, metadata, offset_fetch
from kview.wire.kafka_internals import Message
from kview.wire.primitives import MalformedBytes

INT16 = st.integers(-(2**15), 2**15 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
NAMES = st.text("abcxyz-._é", min_size=1, max_size=140)
BROKERS = st.lists(st.integers(0, 300), max_size=5).map(tuple)


def sent(message: Message[Any]) -> bytes:
    message.with_header(77, "kview")
    return message.encode()


def sent_by_library(request: Any) -> bytes:
    request.with_header(77, "kview")
    return bytes(request.encode(framed=True, header=True))


def received(message: Message[Any], body: bytes, flexible: bool) -> Any:
    """What a connection makes of an answer's bytes: the header first, then the body."""
    data = struct.pack(">i", 77) + (b"\x00" if flexible else b"") + body
    buffer = KafkaBytes(len(data))
    buffer[:] = data
    message.with_header(77, "kview")
    assert message.header is not None
    response = message.header.get_response_class()
    assert response.parse_header(buffer).correlation_id == 77
    return response.decode(buffer)


@given(
    version=st.integers(1, 11),
    replica_id=st.sampled_from([-1, -2]),
    timestamp=INT64,
    topics=st.dictionaries(NAMES, st.lists(INT32, max_size=8), max_size=4),
)
def test_list_offsets_requests(
    version: int, replica_id: int, timestamp: int, topics: dict[str, list[int]]
) -> None:
    topic = ListOffsetsRequest.ListOffsetsTopic
    theirs = ListOffsetsRequest(
        version=version,
        replica_id=replica_id,
        isolation_level=0,
        topics=[
            topic(
                name=name,
                partitions=[
                    topic.ListOffsetsPartition(
                        partition_index=p, current_leader_epoch=-1, timestamp=timestamp
                    )
                    for p in partitions
                ],
            )
            for name, partitions in topics.items()
        ],
    )
    asked = [(name, np.array(partitions, np.int32)) for name, partitions in topics.items()]
    ours = list_offsets.request(version, asked, timestamp, replica_id)
    assert sent(ours) == sent_by_library(theirs)
    assert sent(ours) == sent_by_library(theirs)  # a message may be sent again


@given(
    version=st.integers(1, 11),
    topics=st.dictionaries(
        NAMES, st.lists(st.tuples(INT32, INT16, INT64, INT64, INT32), max_size=8), max_size=4
    ),
)
def test_list_offsets_answers(version: int, topics: dict[str, list[tuple[int, int, int, int, int]]]) -> None:
    topic = ListOffsetsResponse.ListOffsetsTopicResponse
    body = ListOffsetsResponse(
        version=version,
        throttle_time_ms=3,
        topics=[
            topic(
                name=name,
                partitions=[
                    topic.ListOffsetsPartitionResponse(
                        partition_index=p, error_code=e, timestamp=t, offset=o, leader_epoch=le
                    )
                    for p, e, t, o, le in rows
                ],
            )
            for name, rows in topics.items()
        ],
    ).encode()
    answer = received(list_offsets.request(version, [], -1), body, version >= 6)
    assert answer.throttle_time_ms == (3 if version >= 2 else answer.throttle_time_ms)
    assert {t.topic: rows_of(t) for t in answer.topics} == {
        name: [row[:4] for row in rows] for name, rows in topics.items()
    }


def rows_of(topic: list_offsets.TopicOffsets) -> list[tuple[int, int, int, int]]:
    columns = (topic.partition, topic.error, topic.timestamp, topic.offset)
    return list(zip(*(column.tolist() for column in columns), strict=True))


@given(version=st.sampled_from([8, 9]), groups=st.lists(NAMES, min_size=1, max_size=200, unique=True))
def test_offset_fetch_requests(version: int, groups: list[str]) -> None:
    group = OffsetFetchRequest.OffsetFetchRequestGroup
    theirs = OffsetFetchRequest(
        version=version,
        groups=[group(group_id=name, member_id=None, member_epoch=-1, topics=None) for name in groups],
        require_stable=False,
    )
    assert sent(offset_fetch.request(version, groups)) == sent_by_library(theirs)


COMMITS = st.lists(
    st.tuples(INT32, INT64, INT16, st.sampled_from([None, "", "", "", "m", "x" * 200])), max_size=6
)


def offset_fetch_body(version: int, groups: dict[str, Any]) -> bytes:
    """An answer with these groups: an error each, and by topic rows of partition, offset, error, metadata."""
    group = OffsetFetchResponse.OffsetFetchResponseGroup
    topic = group.OffsetFetchResponseTopics
    return bytes(
        OffsetFetchResponse(
            version=version,
            throttle_time_ms=1,
            groups=[
                group(
                    group_id=name,
                    error_code=error,
                    topics=[
                        topic(
                            name=topic_name,
                            partitions=[
                                topic.OffsetFetchResponsePartitions(
                                    partition_index=p,
                                    committed_offset=o,
                                    committed_leader_epoch=4,
                                    metadata=m,
                                    error_code=e,
                                )
                                for p, o, e, m in rows
                            ],
                        )
                        for topic_name, rows in topics.items()
                    ],
                )
                for name, (error, topics) in groups.items()
            ],
        ).encode()
    )


@given(
    version=st.sampled_from([8, 9]),
    groups=st.dictionaries(NAMES, st.tuples(INT16, st.dictionaries(NAMES, COMMITS, max_size=3)), max_size=3),
)
def test_offset_fetch_answers_with_and_without_metadata(version: int, groups: dict[str, Any]) -> None:
    body = offset_fetch_body(version, groups)
    answer = received(offset_fetch.request(version, ["g"]), body, True)
    seen = {
        g.group: (
            g.error,
            {
                t.topic: list(zip(t.partition.tolist(), t.offset.tolist(), t.error.tolist(), strict=True))
                for t in g.topics
            },
        )
        for g in answer.groups
    }
    assert seen == {
        name: (error, {t: [row[:3] for row in rows] for t, rows in topics.items()})
        for name, (error, topics) in groups.items()
    }


def test_groups_that_commit_on_the_same_partitions_share_an_array_of_them() -> None:
    rows = [(0, 5, 0, ""), (1, 6, 0, "")]
    body = offset_fetch_body(9, {"a": (0, {"t": rows}), "b": (0, {"u": rows}), "c": (0, {"t": rows[1:]})})
    first, second, third = (
        g.topics[0] for g in received(offset_fetch.request(9, ["a", "b", "c"]), body, True).groups
    )
    assert first.partition is second.partition
    assert first.error is second.error
    assert first.offset is not second.offset
    assert third.partition.tolist() == [1]


@pytest.mark.parametrize("version", [2, 5, 7])
def test_offset_fetch_of_one_group_from_an_old_broker(version: int) -> None:
    message = offset_fetch.request(version, ["billing"])
    theirs = OffsetFetchRequest(version=version, group_id="billing", topics=None, require_stable=False)
    assert sent(message) == sent_by_library(theirs)
    topic = OffsetFetchResponse.OffsetFetchResponseTopic
    body = OffsetFetchResponse(
        version=version,
        topics=[
            topic(
                name="invoice",
                partitions=[
                    topic.OffsetFetchResponsePartition(
                        partition_index=3, committed_offset=40, metadata="", error_code=0
                    )
                ],
            )
        ],
        error_code=0,
    ).encode()
    (group,) = received(message, body, version >= 6).groups
    assert (group.group, group.error, group.topics[0].offset.tolist()) == ("billing", 0, [40])


PARTITIONS = st.lists(st.tuples(INT16, INT32, INT32, INT32, BROKERS, BROKERS, BROKERS), max_size=6)
TOPICS = st.dictionaries(NAMES, st.tuples(INT16, st.uuids(), st.booleans(), PARTITIONS), max_size=4)


def metadata_body(version: int, topics: dict[str, Any], controller: int = 1) -> bytes:
    topic = MetadataResponse.MetadataResponseTopic
    return bytes(
        MetadataResponse(
            version=version,
            throttle_time_ms=0,
            brokers=[
                MetadataResponse.MetadataResponseBroker(node_id=0, host="h0", port=9092, rack=None),
                MetadataResponse.MetadataResponseBroker(node_id=7, host="h7", port=9093, rack="R2"),
            ],
            cluster_id="abc",
            controller_id=controller,
            topics=[
                topic(
                    error_code=error,
                    name=name,
                    topic_id=topic_id,
                    is_internal=internal,
                    partitions=[
                        topic.MetadataResponsePartition(
                            error_code=e,
                            partition_index=p,
                            leader_id=leader,
                            leader_epoch=epoch,
                            replica_nodes=list(replicas),
                            isr_nodes=list(isr),
                            offline_replicas=list(offline),
                        )
                        for e, p, leader, epoch, replicas, isr, offline in partitions
                    ],
                )
                for name, (error, topic_id, internal, partitions) in topics.items()
            ],
        ).encode()
    )


@given(version=st.integers(8, 12), topics=TOPICS)
def test_metadata_answers(version: int, topics: dict[str, Any]) -> None:
    message = metadata.request(version)
    theirs = MetadataRequest(version=version, topics=None, allow_auto_topic_creation=False)
    assert sent(message) == sent_by_library(theirs)
    answer = received(message, metadata_body(version, topics), version >= 9)
    assert answer.brokers == (
        metadata.BrokerAddress(0, "h0", 9092, ""),
        metadata.BrokerAddress(7, "h7", 9093, "R2"),
    )
    assert (answer.cluster_id, answer.controller_id) == ("abc", 1)
    seen = answer.topics()
    assert [(t.name, t.error, t.internal) for t in seen.topics] == [
        (name, error, internal) for name, (error, _, internal, _) in topics.items()
    ]
    if version >= metadata.TOPIC_IDS_FROM:
        ids = [str(topic_id) if topic_id.int else "" for _, topic_id, _, _ in topics.values()]
        assert [t.topic_id for t in seen.topics] == ids
    for row, (_, _, _, partitions) in zip(seen.topics, topics.values(), strict=True):
        of_topic = seen.partitions[row.first : row.first + row.count]
        assert [
            (p.error, p.partition, p.leader, p.leader_epoch, p.replicas, p.isr, p.offline) for p in of_topic
        ] == partitions


def test_two_metadata_answers_that_differ_in_the_controller_alone_have_equal_topics() -> None:
    rows: list[Any] = [(0, 0, 1, 4, (1, 2), (1,), (2,))]
    topics = {"invoice": (0, uuid.UUID(int=5), False, rows)}
    one = received(metadata.request(12), metadata_body(12, topics, controller=1), True)
    two = received(metadata.request(12), metadata_body(12, topics, controller=7), True)
    assert one.topics_bytes == two.topics_bytes
    rows[0] = (0, 0, 1, 4, (1, 2), (1, 2), ())
    three = received(metadata.request(12), metadata_body(12, topics), True)
    assert three.topics_bytes != one.topics_bytes


@given(data=st.binary(max_size=60))
def test_garbage_is_a_value_error_and_nothing_else(data: bytes) -> None:
    def attempt(decode: Any) -> None:
        with suppress(ValueError):  # which kafka-python takes as a protocol error
            decode(memoryview(data))

    attempt(lambda d: list_offsets.decode(5, d))
    attempt(offset_fetch.decode_arrays)
    attempt(lambda d: metadata.decode(12, d))
    attempt(lambda d: metadata.decode_topics(12, bytes(d)))


def test_a_cut_answer_is_malformed() -> None:
    topics = {"invoice": (0, uuid.UUID(int=5), False, [(0, 0, 1, 4, (1, 2), (1,), (2,))])}
    answer = received(metadata.request(12), metadata_body(12, topics), True)
    for length in range(len(answer.topics_bytes)):
        with pytest.raises(MalformedBytes):
            metadata.decode_topics(12, answer.topics_bytes[:length])
