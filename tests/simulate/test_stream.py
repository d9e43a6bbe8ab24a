"""What clients' batches cost: counted as they take memory, and the same for each however many there are."""

import tracemalloc

from kview.simulate.records import encode_batch, header
from kview.simulate.stream import ENTRIES_MAX, Stream
from tests.simulate.engine import START_MS, cluster_of, go, produce


def test_the_bytes_counted_are_the_bytes_held() -> None:
    """A batch of 88 bytes once took 572, of which 88 were counted."""
    cluster = cluster_of()
    go(cluster, 1)
    values = [b"v" * 20]
    produce(cluster, 0, values, acks=1)
    before = cluster.retention.client_bytes
    tracemalloc.start()
    for _ in range(2_000):
        produce(cluster, 0, values, acks=1)
    go(cluster, 1)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    counted = cluster.retention.client_bytes - before
    assert 0.75 * held < counted < 1.5 * held, f"{counted // 2_000} of {held // 2_000} bytes a batch"


class Counting(Stream):
    """A stream that counts the entries it has looked at to merge them."""

    __slots__ = ("looked_at",)

    def __init__(self) -> None:
        super().__init__(0, 0)
        self.looked_at = 0

    def _thin(self) -> None:
        self.looked_at += len(self.base)
        super()._thin()


def test_appending_to_a_long_stream_costs_no_more_than_to_a_short_one() -> None:
    """Above 16,384 batches, each append once looked at all of them."""
    stream = Counting()
    batch = encode_batch([(None, b"v", START_MS)])
    head = header(batch)
    for _ in range(5 * ENTRIES_MAX):
        stream.append_batch(batch, head)
    assert stream.looked_at < 6 * len(stream.base)
    assert stream.end == len(stream.base) == len(stream.batches) == 5 * ENTRIES_MAX


def test_runs_are_still_merged_when_there_are_batches_between_them() -> None:
    stream = Stream(0, 0)
    batch = encode_batch([(None, b"v", START_MS)])
    for n in range(ENTRIES_MAX // 4):
        stream.append_batch(batch, header(batch))
        for part in range(3):
            stream.append_run(10, 1_000_000 * n + 200_000 * part, 7 * part + 1, 100, 0)
    for n in range(3 * ENTRIES_MAX):
        stream.append_run(10, 2_000_000_000 * (n + 2), 3, 100, 0)
    assert len(stream.base) < 3 * ENTRIES_MAX
    assert stream.end == ENTRIES_MAX // 4 * 31 + ENTRIES_MAX * 30
    bases = [base for base, batch in zip(stream.base, stream.batches, strict=True) if batch is not None]
    assert bases == [31 * n for n in range(ENTRIES_MAX // 4)]
