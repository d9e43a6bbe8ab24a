"""Responses packed by hand equal those of kafka-python's codec, byte for byte."""

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.consumer import FetchResponse, ListOffsetsResponse
from kafka.protocol.metadata import MetadataResponse

from kview.serve.apis.fetch import FetchedPartition, FetchedTopic, pack_response
from kview.serve.apis.list_offsets import pack_partition
from kview.serve.apis.metadata import Packer
from kview.simulate.codes import ErrorCode
from kview.simulate.metadata import BrokerImage, MetadataImage, PartitionImage, TopicImage
from kview.simulate.results import OffsetResult, ReadResult
from kview.wire.primitives import array_length

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
    ),
)


def fetch_by_codec(version: int, committed: bool, topics: list[FetchedTopic], error_code: int) -> bytes:
    per_topic = FetchResponse.FetchableTopicResponse
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
                    aborted_transactions=[] if committed else None,
                    records=result.records,
                )
                for index, result in found
            ],
        )
        for key, found in topics
    ]
    return bytes(
        FetchResponse(version=version, error_code=error_code, responses=responses).encode(version=version)
    )


@pytest.mark.parametrize("version", range(4, 19))
@given(
    names=st.lists(st.text(min_size=1, max_size=200), max_size=3),
    found=st.lists(partitions, max_size=4),
    committed=st.booleans(),
    error_code=st.sampled_from([0, 70]),
)
def test_fetch_answers(
    version: int, names: list[str], found: list[FetchedPartition], committed: bool, error_code: int
) -> None:
    topics = [FetchedTopic(TOPIC_ID if version >= 13 else name, found) for name in names]
    packed = b"".join(pack_response(version, committed, topics, error_code))
    assert packed == fetch_by_codec(version, committed, topics, error_code)


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


def topics_by_codec(version: int) -> list[Any]:
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
    )
    absent = per_topic(version=version, error_code=3, name="none", topic_id=None, partitions=[])
    return [there, absent]


@pytest.mark.parametrize("version", range(14))
def test_metadata_topics(version: int) -> None:
    packer, there = Packer(version), image()
    packed = b"".join(
        (
            array_length(2, packer.flexible),
            packer.topic(there, there.topics["invoice"]),
            packer.no_topic(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "none", bytes(16)),
            packer.end(),
        )
    )
    response = MetadataResponse(
        version=version, brokers=[], cluster_id="c", controller_id=0, topics=topics_by_codec(version)
    )
    assert bytes(response.encode(version=version)).endswith(packed)
