"""How Kafka's consumer takes records with read_committed, and what it must take."""

from collections.abc import Iterator

from kview.simulate.cluster import Cluster
from kview.simulate.codes import ErrorCode
from kview.simulate.metadata import TopicPartition
from kview.simulate.records import CONTROL, TRANSACTIONAL, BatchHeader, decode_marker, header
from kview.simulate.requests.records import Reader

EVERYTHING_BYTES = 1 << 28


def batches_of(data: bytes) -> Iterator[tuple[BatchHeader, bytes]]:
    """Yield each batch with its header."""
    at = 0
    while at < len(data):
        head = header(data, at)
        yield head, data[at : at + head.size_bytes]
        at += head.size_bytes


def taken(data: bytes, aborted: dict[tuple[int, int], None]) -> Iterator[tuple[BatchHeader, bytes]]:
    """Yield the batches that a consumer takes: it leaves out an aborted producer's up to its marker."""
    leaving_out: set[int] = set()
    for head, batch in batches_of(data):
        leaving_out |= {p for p, first in aborted if first <= head.base_offset + head.last_offset_delta}
        if head.attributes & CONTROL:
            leaving_out.discard(head.producer_id)
            aborted = {
                key: None for key in aborted if key[0] != head.producer_id or key[1] > head.base_offset
            }
        elif not (head.attributes & TRANSACTIONAL and head.producer_id in leaving_out):
            yield head, batch


def committed_only(cluster: Cluster, leader: int, key: TopicPartition) -> int:
    """Check that a consumer takes all committed records of a partition that are there, and no others.

    Returns how many of them were written in transactions. A consumer begins at the start of the log.
    """
    start = cluster.records.list_offset(leader, *key, -2).offset
    read = cluster.records.read(leader, *key, start, EVERYTHING_BYTES, Reader(committed=True))
    assert read.error_code is ErrorCode.NONE
    everything = cluster.records.read(leader, *key, start, EVERYTHING_BYTES)
    undecided: dict[int, list[int]] = {}
    expected, records = set[int](), 0
    for head, batch in batches_of(everything.records):
        if head.attributes & CONTROL:
            written, marker = undecided.pop(head.producer_id, []), decode_marker(batch)
            if marker is not None and marker.is_commit:
                expected.update(written)
        elif head.attributes & TRANSACTIONAL:
            undecided.setdefault(head.producer_id, []).append(head.base_offset)
        elif head.base_offset < read.last_stable_offset:
            expected.add(head.base_offset)
    found = set[int]()
    for head, _ in taken(read.records, dict.fromkeys(read.aborted)):
        found.add(head.base_offset)
        records += head.records if head.attributes & TRANSACTIONAL else 0
    open_from = min((written[0] for written in undecided.values()), default=everything.high_watermark)
    assert found == {base for base in expected if base < open_from}, key
    return records
