"""The end of a topic, as it grows: what passes is counted, what is shown is the newest, trouble is said."""

import time
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, cast

import pytest
from confluent_kafka import Producer
from kafka.protocol.admin import DeleteTopicsRequest
from msgspec.structs import replace

from kview.config.masks import masks
from kview.config.security import PLAINTEXT
from kview.model.failures import FailureKind
from kview.model.inspection import DamageKind, InspectionFailureKind, Isolation
from kview.model.tail import Held, TailAnswer, TailRequest
from kview.model.units import UNKNOWN
from kview.model.where import Condition, Where
from kview.observe.asking import MOST_BYTES_AN_ANSWER
from kview.observe.observer import Observer, ObserveSettings
from kview.observe.tail import DEADLINE_S, EXAMINED_RECORDS, TailPart, newest, visible
from kview.where.parse import parse
from kview.wire.compression import ZSTD
from tests.observe.asking import RecordBroker, answered
from tests.observe.observing import observing
from tests.observe.test_fetched_batches import asked, batch, placed
from tests.serve.clients import deliver, producer
from tests.served import Served
from tests.simulate.client_batches import compressed, raw_batch
from tests.waiting import wait_until

SETTINGS = ObserveSettings(interval_s=0.3)


class Following:
    """A topic that is followed."""

    def __init__(self, observer: Observer, topic: str, **more: Any) -> None:
        self._observer = observer
        self._request = TailRequest(topic, **more)
        self.answers: list[TailAnswer] = []

    def again(self, **more: Any) -> TailAnswer:
        """What was written since the last time."""
        positions = self.answers[-1].positions if self.answers else ()
        request = replace(self._request, **({"positions": positions} | more))
        self.answers.append(cast(TailAnswer, answered(self._observer, request)))
        return self.answers[-1]


def values(answer: TailAnswer) -> list[bytes | None]:
    """The values of an answer's records."""
    return [each.record.value.data for each in answer.records]


def filter_of(text: str) -> Where:
    """A filter as somebody types it."""
    where = parse(text)
    assert isinstance(where, Condition)
    return where


@pytest.fixture
def topic(simulated_cluster: Served) -> str:
    """A topic of the test's own, with three partitions on different brokers."""
    name = f"tail-{uuid.uuid4().hex[:8]}"
    simulated_cluster.create(name, [[0, 1, 2], [1, 2, 3], [2, 3, 4]])
    return name


@pytest.fixture
def observer(simulated_cluster: Served) -> Iterator[Observer]:
    with observing(simulated_cluster.addresses, SETTINGS) as observer:
        yield observer


def write(cluster: Served, topic: str, *records: tuple[int, bytes | None], **options: Any) -> None:
    """Write values to partitions, each in a batch of its own unless options say otherwise."""
    client = producer(cluster.bootstrap, **options)
    for partition, value in records:
        client.produce(topic, value=value, partition=partition)
        if "linger_ms" not in options:
            assert client.flush(20) == 0
    assert client.flush(20) == 0


def test_what_is_new_comes_from_all_partitions_and_in_order(
    simulated_cluster: Served, topic: str, observer: Observer
) -> None:
    write(simulated_cluster, topic, (0, b"old"), (1, b"old"))
    observer.observe()
    tail = Following(observer, topic)
    first = tail.again()
    assert (first.records, first.passed, first.skipped, first.failure) == ((), 0, 0, first.failure)
    assert not first.failure and sorted(first.positions) == [(0, 1), (1, 1), (2, 0)]
    write(simulated_cluster, topic, (0, b"a"), (2, b"b"), (1, None), (0, b"c"))
    second = tail.again()
    assert [(each.partition, each.record.value.data) for each in second.records] == [
        (0, b"a"), (2, b"b"), (1, None), (0, b"c"),
    ]  # fmt: skip
    assert (second.passed, second.skipped, second.unread, second.held) == (4, 0, (), ())
    assert second.cost.requests == 3  # one for each leader
    third = tail.again()
    assert (third.records, third.passed) == ((), 0)


def test_only_the_newest_are_shown_but_all_are_counted(
    simulated_cluster: Served, topic: str, observer: Observer
) -> None:
    observer.observe()
    tail = Following(observer, topic, count=5)
    tail.again()
    write(
        simulated_cluster,
        topic,
        *((0, b"%d" % n) for n in range(1_000)),
        linger_ms=50,
        compression_type="zstd",
    )
    answer = tail.again()
    assert (answer.passed, answer.skipped) == (1_000, 0)
    assert values(answer) == [b"995", b"996", b"997", b"998", b"999"]


def test_what_does_not_fit_is_passed_over_and_counted(
    simulated_cluster: Served, topic: str, observer: Observer
) -> None:
    observer.observe()
    tail = Following(observer, topic, most_bytes=1)  # which is raised to the least
    tail.again()
    write(simulated_cluster, topic, *((0, b"%4d" % n * 500) for n in range(200)))  # 2 kB each
    answer = tail.again()
    assert 0 < answer.passed < 100 and answer.passed + answer.skipped == 200
    assert answer.cost.bytes < 100_000
    write(simulated_cluster, topic, (0, b"next"))
    assert values(tail.again()) == [b"next"]


def test_a_huge_value_comes_whole(simulated_cluster: Served, topic: str, observer: Observer) -> None:
    observer.observe()
    tail = Following(observer, topic, most_bytes=1)
    tail.again()
    write(simulated_cluster, topic, (1, b"x" * 900_000), (0, b"small"), (0, b"y" * 900_000))
    seen = [value for _ in range(3) for value in values(tail.again())]
    assert sorted(len(value or b"") for value in seen) == [5, 900_000, 900_000]


def test_a_filter_says_what_is_shown(simulated_cluster: Served, topic: str, observer: Observer) -> None:
    observer.observe()
    tail = Following(observer, topic, where=filter_of("value.n >= 7"))
    tail.again()
    write(
        simulated_cluster,
        topic,
        *((n % 3, b'{"n": %d}' % n) for n in range(10)),
        (0, b'{"n": '),
        linger_ms=20,
    )
    answer = tail.again()
    assert sorted(value or b"" for value in values(answer)) == [b'{"n": 7}', b'{"n": 8}', b'{"n": 9}']
    assert (answer.passed, answer.unknown) == (11, 1)


def test_an_open_transaction_holds_the_end_back(
    simulated_cluster: Served, topic: str, observer: Observer
) -> None:
    observer.observe()
    tail, all_of_it = (
        Following(observer, topic),
        Following(observer, topic, isolation=Isolation.READ_UNCOMMITTED),
    )
    tail.again()
    all_of_it.again()
    for ends_well in (True, False):
        client = Producer({"bootstrap.servers": simulated_cluster.bootstrap, "transactional.id": topic})
        client.init_transactions(20)
        client.begin_transaction()
        client.produce(topic, value=b"in it", partition=0)
        assert client.flush(20) == 0
        write(simulated_cluster, topic, (0, b"behind it"))
        held = tail.again()
        assert held.records == () and [(each.partition, each.end - each.offset) for each in held.held] == [
            (0, 2)
        ]
        assert isinstance(held.held[0], Held)
        assert values(all_of_it.again()) == [b"in it", b"behind it"]
        if ends_well:
            client.commit_transaction(20)
        else:
            client.abort_transaction(20)
        expected = [b"in it", b"behind it"] if ends_well else [b"behind it"]
        seen: list[bytes | None] = []
        passed = 0

        def all_seen(expected: Sequence[bytes] = expected, seen: list[bytes | None] = seen) -> bool:
            nonlocal passed
            answer = tail.again()
            passed += answer.passed
            seen += values(answer)
            return seen == expected

        wait_until(all_seen, "the records of the transaction")
        assert passed == len(expected)  # markers and aborted records are nobody's
        all_of_it.again()


def test_a_leader_that_dies_is_said_and_followed(
    simulated_cluster: Served, topic: str, observer: Observer
) -> None:
    observer.observe()
    tail = Following(observer, topic)
    tail.again()
    simulated_cluster.do("crash 0")
    try:
        lost = tail.again()
        assert [partition for partition, _ in lost.unread] == [0] and not lost.failure
        assert lost.unread[0][1].kind in (InspectionFailureKind.NO_ANSWER, InspectionFailureKind.TIMEOUT)
        assert dict(lost.positions) == {0: 0, 1: 0, 2: 0}
        # Nobody observes any more: the new leader is found by the tail itself.
        wait_until(lambda: not tail.again().unread, "the new leader", 30)
        write(simulated_cluster, topic, (0, b"again"))
        assert b"again" in values(tail.again())
    finally:
        simulated_cluster.do("start 0")


def test_a_topic_that_is_deleted_and_made_again(
    simulated_cluster: Served, topic: str, observer: Observer
) -> None:
    observer.observe()
    write(simulated_cluster, topic, *((0, b"x") for _ in range(5)))
    tail = Following(observer, topic)
    tail.again()
    simulated_cluster.ask(0, DeleteTopicsRequest(version=3, topic_names=[topic], timeout_ms=5_000))
    wait_until(
        lambda: tail.again().failure.kind is InspectionFailureKind.UNKNOWN_TOPIC, "the end of the topic"
    )
    simulated_cluster.create(topic, [[0, 1, 2]])
    wait_until(lambda: not tail.again().failure and tail.answers[-1].positions == ((0, 0),), "the new topic")
    write(simulated_cluster, topic, (0, b"new"))
    assert values(tail.again()) == [b"new"]


def test_a_position_that_is_gone_goes_on_from_the_end(
    simulated_cluster: Served, topic: str, observer: Observer
) -> None:
    observer.observe()
    write(simulated_cluster, topic, (0, b"x"))
    request = TailRequest(topic, ((0, 99), (1, 0), (2, 0)))
    answer = cast(TailAnswer, answered(observer, request))
    assert answer.restarted == (0,) and dict(answer.positions)[0] == UNKNOWN
    assert (
        dict(cast(TailAnswer, answered(observer, replace(request, positions=answer.positions))).positions)[0]
        == 1
    )


def test_nothing_is_followed_without_leave(simulated_cluster: Served, topic: str) -> None:
    with observing(simulated_cluster.addresses, SETTINGS, with_records=False) as observer:
        observer.observe()
        assert Following(observer, topic).again().failure.kind is InspectionFailureKind.SWITCHED_OFF


def test_a_mask_holds_for_what_is_followed(simulated_cluster: Served, topic: str) -> None:
    canary = b"CANARY-41"
    security = replace(PLAINTEXT, masks=masks({"tail-*": ["value.email", "key"]}))
    with observing(simulated_cluster.addresses, SETTINGS, security=security) as observer:
        observer.observe()
        tail = Following(observer, topic)
        tail.again()
        deliver(producer(simulated_cluster.bootstrap), topic, [b'{"id": 1, "email": "%b"}' % canary, canary])
        answer = tail.again()
        assert values(answer) == [b'{"id": 1, "email": "<masked>"}', b"<masked>"]
        refused = tail.again(where=filter_of("value.email = CANARY-41"))
        assert refused.failure.kind is InspectionFailureKind.MASKED and refused.refused is not None
        assert tail.again(where=filter_of("CANARY-41")).records == ()


def test_damage_is_named_and_does_not_count() -> None:
    flipped = bytearray(batch(2, [b"bad"] * 3))
    flipped[-2] ^= 1
    lies = bytearray(batch(5, [b"many"]))
    lies[57:61] = (2**31 - 1).to_bytes(4, "big")
    bomb = placed(raw_batch(ZSTD, compressed(ZSTD, bytes(1 << 25)), 1), 6)
    log = [
        (0, batch(0, [b"a", b"b"])),
        (2, bytes(flipped)),
        (5, bytes(lies)),
        (6, bomb),
        (7, batch(7, [b"c"])),
    ]
    with asked(RecordBroker(log, end=8)) as observer:
        tail = Following(observer, "invoice")
        answer = tail.again(positions=((0, 0),))
        assert values(answer) == [b"a", b"b", b"c"]
        assert [(partition, each.offset, each.kind) for partition, each in answer.damage] == [
            (0, 2, DamageKind.CORRUPT),
            (0, 5, DamageKind.CORRUPT),
            (0, 6, DamageKind.TOO_LARGE),
        ]
        assert (answer.passed, answer.skipped, answer.positions) == (
            4,
            0,
            ((0, 8),),
        )  # the bomb says that it has one


def test_what_is_not_an_answer_is_said_and_asked_for_again() -> None:
    broker = RecordBroker([(0, batch(0, [b"a"])), (1, b"\xff" * 80)], end=2)
    with asked(broker) as observer:
        tail = Following(observer, "invoice")
        broker.nonsense = b"\0" * 3
        answer = tail.again(positions=((0, 0),))
        assert answer.failure.cause.kind is FailureKind.MALFORMED and answer.positions == ((0, 0),)
        broker.nonsense = b""
        answer = tail.again()
        assert values(answer) == [b"a"] and [each.offset for _, each in answer.damage] == [1]
        for code, kind in ((29, InspectionFailureKind.NOT_AUTHORIZED), (6, InspectionFailureKind.NO_ANSWER)):
            broker.errors = [code]
            assert tail.again(positions=((0, 0),)).failure.kind is kind
        broker.errors = [1]
        assert tail.again(positions=((0, 0),)).restarted == (0,)
        assert tail.again().positions == ((0, 2),)


def test_a_place_that_cannot_be_read_is_left_and_said() -> None:
    broker = RecordBroker([(0, b"\xff" * 80)], end=5)
    with asked(broker) as observer:
        tail = Following(observer, "invoice")
        broken = tail.again(positions=((0, 0),))
        assert (broken.skipped, broken.positions, len(broken.damage)) == (5, ((0, 5),), 1)
        broker.batches, broker.high_watermark = [(5, batch(5, [b"a"]))], 6
        assert values(tail.again()) == [b"a"]
        broker.nonsense = bytes(MOST_BYTES_AN_ANSWER + 1)
        large = tail.again()
        assert large.failure.kind is InspectionFailureKind.TOO_LARGE and large.positions == ((0, UNKNOWN),)
        broker.nonsense, broker.high_watermark = b"", 7
        broker.batches = [(7, batch(7, [b"b"]))]
        wait_until(lambda: tail.again().positions == ((0, 7),), "the end, behind the large batch")
        broker.high_watermark = 8
        assert values(tail.again()) == [b"b"]


def test_records_that_are_not_looked_at_are_counted_as_skipped() -> None:
    values_of = [b"%d" % n for n in range(EXAMINED_RECORDS + 1_000)]
    with asked(RecordBroker([(0, batch(0, values_of))], end=len(values_of))) as observer:
        tail = Following(observer, "invoice", where=filter_of("value >= 20000"), most_bytes=1 << 22, count=7)
        answer = tail.again(positions=((0, 0),))
        assert (answer.passed, answer.skipped, answer.matched) == (EXAMINED_RECORDS, 1_000, 1_000)
        assert values(answer) == values_of[-7:]
        without = Following(observer, "invoice", count=7).again(positions=((0, 0),))
        assert (without.passed, without.skipped, without.matched) == (len(values_of), 0, 7)


def test_partitions_share_what_a_filter_looks_at() -> None:
    def part(records: int) -> TailPart:
        return visible(batch(0, [b"x"] * records), (), 0)

    examined = newest({0: part(90), 1: part(3), 2: part(30)}, 50, 1 << 20, all_of_them=True)
    assert Counter(number for number, _ in examined.records) == {1: 3, 2: 23, 0: 24}
    assert examined.left == 123 - 50


def test_a_broker_that_hangs_holds_up_nobody_for_long(
    simulated_cluster: Served, topic: str, observer: Observer
) -> None:
    observer.observe()
    tail = Following(observer, topic)
    tail.again()
    simulated_cluster.do("hang 1")
    try:
        write(simulated_cluster, topic, (0, b"a"), (2, b"b"))
        hung = tail.again()
        assert [partition for partition, _ in hung.unread] == [1] and values(hung) == [b"a", b"b"]
        began_s = time.monotonic()
        tail.again()  # the broker is left out for a while, or another one leads by now
        assert time.monotonic() - began_s < DEADLINE_S
    finally:
        simulated_cluster.do("start 1")
