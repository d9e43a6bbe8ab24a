"""What a new leader knows about idempotent producers, and how much of its log it reads for it."""

import random
from collections.abc import Iterator

from kview.simulate.log import Log
from kview.simulate.producers import SNAPSHOT_BATCHES, ProducerStates
from kview.simulate.records import encode_batch, header
from tests.simulate.engine import START_MS, TOPIC, cluster_of, go, produce

BATCHES = 12 * SNAPSHOT_BATCHES
PRODUCERS = 7


class CountingLog(Log):
    """A log that counts the batches read from it."""

    read = 0

    def batches(self, start: int, stop: int) -> Iterator[tuple[int, bytes, int]]:
        for batch in super().batches(start, stop):
            self.read += 1
            yield batch


def batch_of(producer: int, sequence: int) -> bytes:
    return encode_batch([(b"k", b"v", START_MS)], 0, -1, producer, 0, sequence)


def written(batches: int = BATCHES) -> Log:
    """Return a leader's log of single records from several producers, and of one without an id."""
    log, states = Log(), ProducerStates(0)
    stream = log.begin_epoch(0)
    for n in range(batches):
        producer = n % (PRODUCERS + 1) - 1
        batch = batch_of(producer, n // (PRODUCERS + 1) if producer >= 0 else -1)
        stream.append_batch(batch, header(batch))
        log.end = stream.end
        states.read(log)
    return log


def copy_of(leader: Log, end: int) -> CountingLog:
    log = CountingLog()
    log.copy(leader, end)
    return log


def answers(states: ProducerStates, sequences: range) -> list[tuple[int, int | None]]:
    return [checked(states, batch_of(p, s)) for p in range(PRODUCERS) for s in sequences]


def checked(states: ProducerStates, batch: bytes) -> tuple[int, int | None]:
    """Return the error number of a batch, and the offset of the one of which it is a duplicate."""
    error, duplicate = states.check(header(batch))
    return error, None if duplicate is None else duplicate.base_offset


def test_a_new_leader_reads_the_end_of_its_log_alone() -> None:
    log = copy_of(written(), BATCHES)
    ProducerStates.load(log, log.end).read(log)
    assert log.read <= SNAPSHOT_BATCHES


def test_a_new_leader_whose_log_is_shorter_knows_what_is_in_it() -> None:
    leader, source = written(), random.Random(1)
    for _ in range(20):
        end = BATCHES - source.choice((0, 1, 5, 900, 1_100, 2_900))
        log = copy_of(leader, end)
        loaded = ProducerStates.load(log, log.end)
        loaded.read(log)
        assert log.read <= SNAPSHOT_BATCHES
        whole = ProducerStates(0)
        whole.read(log)
        near = end // (PRODUCERS + 1)
        assert answers(loaded, range(near - 12, near + 3)) == answers(whole, range(near - 12, near + 3))


def test_a_log_without_idempotent_producers_is_not_read_at_all() -> None:
    log = CountingLog()
    stream = log.begin_epoch(0)
    batch = encode_batch([(b"k", b"v", START_MS)])
    for _ in range(5_000):
        stream.append_batch(batch, header(batch))
    log.end = stream.end
    states = ProducerStates.load(log, log.end)
    states.read(log)
    assert (log.read, states.read_to) == (0, 5_000)


def test_a_first_batch_that_was_cut_off_hides_no_later_one() -> None:
    leader = Log()
    stream = leader.begin_epoch(0)
    for batch in (encode_batch([(b"k", b"v", START_MS)] * 5), batch_of(1, 0)):
        stream.append_batch(batch, header(batch))
    leader.end = stream.end
    log = copy_of(leader, 3)
    states = ProducerStates.load(log, log.end)
    again = batch_of(1, 0)
    log.begin_epoch(1).append_batch(again, header(again))
    log.end = 4
    states.read(log)
    assert checked(states, again) == (0, 3)


def test_what_a_leader_wrote_after_a_snapshot_of_an_earlier_one_counts() -> None:
    first = written()
    log = copy_of(first, BATCHES - 500)
    stream = log.begin_epoch(1)
    batch = batch_of(3, 1_000_000)
    stream.append_batch(batch, header(batch))
    log.end = stream.end
    states = ProducerStates.load(log, log.end)
    states.read(log)
    assert checked(states, batch) == (0, BATCHES - 500)


def test_a_producer_goes_on_after_its_last_batch_was_deleted() -> None:
    cluster = cluster_of(replication=1)
    go(cluster, 1)
    for sequence in range(3):
        (answer,) = produce(cluster, 0, data=batch_of(1, sequence), acks=1)
        assert answer.error_code == 0
    go(cluster, 1)
    cluster.deletion.delete_records(0, TOPIC, 0, -1, 5_000, lambda result: None)
    go(cluster, 1)
    assert [int(produce(cluster, 0, data=batch_of(1, n), acks=1)[0].error_code) for n in (5, 3)] == [45, 0]
