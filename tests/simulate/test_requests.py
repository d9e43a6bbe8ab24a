"""How a broker answers producers and consumers: idempotence, long polls, times and limits."""

from kview.simulate.codes import ErrorCode
from kview.simulate.records import encode_batch
from kview.simulate.requests.records import Acks
from kview.simulate.results import ProduceResult
from kview.simulate.stream import NewRun
from tests.simulate.engine import START_MS, TOPIC, batch, cluster_of, go, produce, replica, seconds_until


def numbered(sequence: int, records: int = 2, producer: int = 7, epoch: int = 0) -> bytes:
    values = [(None, b"v", START_MS)] * records
    return encode_batch(values, producer_id=producer, producer_epoch=epoch, base_sequence=sequence)


def test_a_duplicate_is_answered_with_its_first_offset() -> None:
    cluster = cluster_of()
    answers: list[ProduceResult] = []
    for sequence in (0, 2, 4, 2, 0):
        answers += produce(cluster, 0, data=numbered(sequence), acks=1)
    assert [a.base_offset for a in answers] == [0, 2, 4, 2, 0]
    assert replica(cluster, 0).log.end == 6
    assert (
        produce(cluster, 0, data=numbered(8), acks=1)[0].error_code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    )
    assert produce(cluster, 0, data=numbered(0, epoch=1), acks=1)[0].base_offset == 6
    assert produce(cluster, 0, data=numbered(6), acks=1)[0].error_code is ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_batch_older_than_the_last_five_is_out_of_order() -> None:
    cluster = cluster_of()
    for n in range(6):
        produce(cluster, 0, data=numbered(n, 1), acks=1)
    assert produce(cluster, 0, data=numbered(1, 1), acks=1)[0].base_offset == 1
    answer = produce(cluster, 0, data=numbered(0, 1), acks=1)[0]
    assert answer.error_code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_what_a_producer_has_written_moves_with_the_leadership() -> None:
    cluster = cluster_of()
    go(cluster, 5)
    produce(cluster, 0, data=numbered(0))
    produce(cluster, 0, data=numbered(2))
    go(cluster, 0.1)
    cluster.faults.crash(0)
    seconds_until(cluster, lambda p: p.leader == 1)
    again = produce(cluster, 1, data=numbered(2))
    more = produce(cluster, 1, data=numbered(4))
    seconds_until(cluster, lambda p: p.isr == (1, 2))
    go(cluster, 0.1)
    assert (again[0].base_offset, more[0].base_offset) == (2, 4)


def test_what_was_cut_is_forgotten_by_its_producers_state() -> None:
    cluster = cluster_of()
    go(cluster, 5)
    produce(cluster, 0, data=numbered(0))
    go(cluster, 0.1)
    cluster.faults.hang(1)
    cluster.faults.hang(2)
    produce(cluster, 0, [b"sent"], acks=1)  # answers the followers' waiting fetches, into their sockets
    produce(cluster, 0, data=numbered(2), acks=1)
    cluster.faults.crash(0)
    cluster.faults.start(1)
    cluster.faults.start(2)
    seconds_until(cluster, lambda p: p.leader == 1)
    assert produce(cluster, 1, data=numbered(2), acks=1)[0].base_offset == 3, "new to this log: appended"


def test_a_leader_that_was_cut_and_leads_again_takes_what_it_has_lost() -> None:
    cluster = cluster_of()
    go(cluster, 5)
    produce(cluster, 0, data=numbered(0))
    go(cluster, 0.1)
    cluster.faults.hang(1)
    cluster.faults.hang(2)
    produce(cluster, 0, [b"sent"], acks=1)  # answers the followers' waiting fetches, into their sockets
    produce(cluster, 0, data=numbered(2), acks=1)
    produce(cluster, 0, data=numbered(4), acks=1)
    cluster.faults.hang(0)
    cluster.faults.start(1)
    cluster.faults.start(2)
    seconds_until(cluster, lambda p: p.leader == 1)
    produce(cluster, 1, [b"other"] * 9)
    cluster.faults.start(0)
    seconds_until(cluster, lambda p: p.isr == (0, 1, 2))
    cluster.faults.stop(1)
    seconds_until(cluster, lambda p: p.leader == 0)
    assert produce(cluster, 0, data=numbered(2), acks=1)[0].base_offset == 12


def test_producer_ids_are_never_given_twice() -> None:
    cluster = cluster_of()
    ids = [cluster.records.init_producer_id(b % 3).producer_id for b in range(2500)]
    assert len(set(ids)) == 2500


def test_bad_batches_are_refused_whole() -> None:
    cluster = cluster_of()
    good = batch([b"a"])
    damaged = good[:-1] + bytes([good[-1] ^ 1])
    assert produce(cluster, 0, data=good + damaged)[0].error_code is ErrorCode.INVALID_RECORD
    assert produce(cluster, 0, data=damaged)[0].error_code is ErrorCode.CORRUPT_MESSAGE
    assert produce(cluster, 0, data=b"")[0].error_code is ErrorCode.INVALID_RECORD
    assert produce(cluster, 0, data=batch([b"x" * 2_000_000]))[0].error_code is ErrorCode.MESSAGE_TOO_LARGE
    assert produce(cluster, 1)[0].error_code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert replica(cluster, 0).log.end == 0


def test_a_long_poll_ends_when_enough_is_committed_or_time_runs_out() -> None:
    cluster = cluster_of()
    go(cluster, 5)
    done: list[str] = []
    cluster.records.when_readable(0, [(TOPIC, 0, 0)], 1, 500, lambda: done.append("one"))
    cluster.records.when_readable(0, [(TOPIC, 0, 0)], 100_000, 500, lambda: done.append("many"))
    dropped = cluster.records.when_readable(0, [(TOPIC, 0, 0)], 1, 500, lambda: done.append("dropped"))
    cluster.records.cancel(dropped)
    produce(cluster, 0, [b"a"] * 3, acks=1)
    assert done == [], "appended, not committed"
    go(cluster, 0.1)
    assert done == ["one"]
    go(cluster, 0.5)
    assert done == ["one", "many"]
    assert not replica(cluster, 0).readers


def test_a_long_poll_ends_when_its_leader_changes() -> None:
    cluster = cluster_of()
    go(cluster, 5)
    done: list[int] = []
    cluster.records.when_readable(0, [(TOPIC, 0, 0)], 1, 60_000, lambda: done.append(1))
    cluster.faults.stop(0)
    go(cluster, 0.2)
    assert done == [1]


def test_offsets_by_time() -> None:
    cluster = cluster_of()
    go(cluster, 5)
    data = encode_batch([(None, b"v", START_MS + n * 1000) for n in range(5)])
    produce(cluster, 0, data=data)
    producer = cluster.records.register_producer("p", None)
    cluster.records.append_run(
        0, TOPIC, 0, NewRun(10, (START_MS + 10_000) * 1000, 500_000, 100, producer), Acks(1, 1000)
    )
    go(cluster, 0.1)
    asked = [
        -2,
        -1,
        -3,
        START_MS - 1,
        START_MS + 2_500,
        START_MS + 9_000,
        START_MS + 10_200,
        START_MS + 99_000,
    ]
    found = [cluster.records.list_offset(0, TOPIC, 0, t) for t in asked]
    assert [f.offset for f in found] == [0, 15, 14, 0, 3, 5, 6, -1]
    assert found[2].timestamp_ms == START_MS + 14_500 and found[4].timestamp_ms == START_MS + 3_000


def test_a_batch_is_read_as_it_came_with_its_offset_and_epoch() -> None:
    cluster = cluster_of()
    go(cluster, 5)
    produce(cluster, 0, [b"first"])
    data = batch([b"a", b"b"])
    produce(cluster, 0, data=data)
    go(cluster, 0.1)
    read = cluster.records.read(0, TOPIC, 0, 2, 1000)  # this offset is in the middle of the batch
    assert read.records[:8] == (1).to_bytes(8, "big") and read.records[12:16] == (0).to_bytes(4, "big")
    assert read.records[16:] == data[16:]
    assert (read.high_watermark, read.log_start_offset) == (3, 0)
    assert cluster.records.take(0, TOPIC, 0, 0, 2)[:3] == (ErrorCode.NONE, 2, 3)


def test_a_dead_broker_answers_what_waits_once() -> None:
    cluster = cluster_of()
    go(cluster, 5)
    answers = produce(cluster, 0)
    cluster.faults.crash(0)
    go(cluster, 60)
    assert [a.error_code for a in answers] == [ErrorCode.BROKER_NOT_AVAILABLE]
    assert produce(cluster, 0)[0].error_code is ErrorCode.BROKER_NOT_AVAILABLE
