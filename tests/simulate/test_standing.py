"""A cluster whose clock stands: what is served then, what waits, and how it goes on."""

from kview.simulate.codes import ErrorCode
from kview.simulate.requests.records import Acks
from kview.simulate.results import ProduceResult
from kview.simulate.world import CLIENT_BYTES_MAX
from tests.simulate.engine import TOPIC, batch, cluster_of, go, partition, produce, replica, seconds_until

HOUR_US = 3_600_000_000


def test_records_are_committed_and_nothing_times_out_while_the_clock_stands() -> None:
    cluster = cluster_of()
    go(cluster, 1)
    cluster.faults.crash(2)
    kernel, began_us = cluster.kernel, cluster.kernel.now_us
    kernel.stand()
    late: list[ProduceResult] = []
    cluster.records.produce(0, TOPIC, 0, batch([b"a"]), Acks(-1, 30_000, late.append))
    kernel.work(HOUR_US)
    assert not late, "broker 2 is still in the ISR"
    assert partition(cluster).isr == (0, 1, 2) and not cluster.metadata.image.brokers[2].fenced
    kernel.go_on()
    assert kernel.now_us == began_us
    assert 6 < seconds_until(cluster, lambda one: one.isr == (0, 1)) < 11, "the session that it had left"
    assert [result.error_code for result in late] == [ErrorCode.NONE]

    kernel.stand()
    answers = produce(cluster, 0, [b"b"])
    kernel.work(200_000)
    assert answers and answers[0].error_code is ErrorCode.NONE
    cluster.topics.create_internal_topic(1, "__transaction_state")
    kernel.work(200_000)
    assert all("__transaction_state" in cluster.image(b).topics for b in (0, 1))
    kernel.go_on()
    cluster.faults.undo()
    go(cluster, 10)
    assert cluster.healthy()


def test_links_carry_as_much_as_ever_while_the_clock_stands() -> None:
    cluster = cluster_of(client_bytes_max=CLIENT_BYTES_MAX)
    link = cluster.brokers[0].out_link
    cluster.kernel.stand()
    size = link.rate // 50
    for _ in range(120):  # more than two seconds' worth
        answers = produce(cluster, 0, [b"x" * min(size, 900_000)])
        cluster.kernel.work(100_000)
        assert answers
    assert replica(cluster, 0).high_watermark == 120


def test_brokers_start_once_the_clock_goes_on() -> None:
    cluster = cluster_of()
    cluster.faults.stop(1)
    go(cluster, 3)
    cluster.kernel.stand()
    cluster.faults.start(1)
    cluster.kernel.work(HOUR_US)
    assert cluster.metadata.image.brokers[1].fenced
    cluster.kernel.go_on()
    go(cluster, 5)
    assert cluster.healthy()


def test_no_request_times_out_while_the_clock_stands_however_short_its_patience() -> None:
    cluster = cluster_of()
    cluster.faults.hang(1)
    cluster.kernel.stand()
    answers = produce(cluster, 0, [b"1"], timeout_ms=300)
    cluster.kernel.work(HOUR_US)
    assert not answers
    cluster.kernel.go_on()
    go(cluster, 0.29)
    assert not answers
    go(cluster, 0.02)
    assert answers[0].error_code is ErrorCode.REQUEST_TIMED_OUT
