"""Looking for records: what is found, what is left out, what is not read, and that this is said."""

import time
import uuid
from struct import pack

import pytest

from kview.model.inspection import DamageKind, InspectionFailureKind, Isolation
from kview.model.murmur2 import partition_for_key
from kview.model.search import (
    Begin,
    BeginKind,
    SearchAnswer,
    SearchPlan,
    SearchPlanRequest,
    SearchRequest,
    Span,
)
from kview.model.units import UNKNOWN
from kview.observe import search
from kview.observe.apis import READ_ONLY, READ_RECORDS
from kview.observe.observer import ObserveSettings
from kview.observe.record_answers import KEPT_ALL, Keeper
from kview.simulate.records import encode_batch
from kview.wire import records as wire
from kview.wire.compression import ZSTD
from tests.observe.asking import FETCH, RecordBroker, answered
from tests.observe.counting_proxy import CountingProxies
from tests.observe.observing import observing
from tests.observe.searching import filtered, searched
from tests.observe.test_fetched_batches import asked, batch, placed, transactions
from tests.observe.test_records_on_demand import delete_before
from tests.serve.clients import deliver, producer
from tests.served import Served
from tests.simulate.client_batches import compressed, raw_batch

SETTINGS = ObserveSettings(interval_s=0.3)
ORDER = b'{"order": %d, "customer": {"id": %d}, "status": "%s"}'


@pytest.fixture(scope="module")
def orders(shared_simulated: Served) -> str:
    """A topic of three partitions, whose 600 records come in all codecs, by Kafka's default partitioner."""
    name = f"find-{uuid.uuid4().hex[:8]}"
    shared_simulated.create(name, [[0, 1, 2], [1, 2, 0], [2, 0, 1]], retention_ms="-1")  # its records are old
    for place, codec in enumerate(("none", "gzip", "snappy", "lz4", "zstd")):
        client = producer(shared_simulated.bootstrap, compression_type=codec, linger_ms=50)
        for number in range(place * 120, place * 120 + 120):
            key = b"order-%d" % number
            value = ORDER % (number, number % 7, b"FAILED" if number % 100 == 3 else b"PAID")
            at_ms = 1_700_000_000_000 + number * 1_000
            client.produce(name, value, key, partition_for_key(key, 3), timestamp=at_ms)
        assert client.flush(20) == 0
    return name


def numbers(found: list[bytes | None]) -> list[int]:
    """The numbers of the orders in values, sorted."""
    return sorted(int((value or b"").split(b",")[0].split(b":")[1]) for value in found)


def test_by_key_field_text_and_pattern_in_all_codecs(simulated_cluster: Served, orders: str) -> None:
    failed = [3, 103, 203, 303, 403, 503]
    with observing(simulated_cluster.addresses, SETTINGS) as observer:
        by_key = searched(observer, orders, "key = order-417")
        own = partition_for_key(b"order-417", 3)
        assert numbers(by_key.values) == [417]
        assert by_key.plan.own == (own,) and by_key.plan.spans[0].partition == own
        assert by_key.tally.records == 600 and all(span.size > 0 for span in by_key.plan.spans)
        assert by_key.found[0].record.key.data == b"order-417"
        for where in ("value.status = FAILED", "FAILED", "value ~ /FAIL.D/", "key ~ /3$/ and not PAID"):
            assert numbers(searched(observer, orders, where).values) == failed, where
        where = "value.customer.id >= 6.0 and value.order < 20"
        assert numbers(searched(observer, orders, where).values) == [6, 13]
        everything = searched(observer, orders)
        assert numbers(everything.values) == list(range(600)) == sorted(range(600))
        assert everything.places == sorted(everything.places)


def test_ranges_by_offset_time_and_number(simulated_cluster: Served, orders: str) -> None:
    with observing(simulated_cluster.addresses, SETTINGS) as observer:
        last = searched(observer, orders, begin=Begin(BeginKind.LAST, 5))
        assert len(last.found) == 15
        one = searched(observer, orders, partitions=(1,), begin=Begin(BeginKind.OFFSET, 100))
        assert one.places[0] == (1, 100) and {partition for partition, _ in one.places} == {1}
        begin_ms, until_ms = 1_700_000_000_000 + 100_000, 1_700_000_000_000 + 110_000
        timed = searched(
            observer,
            orders,
            begin=Begin(BeginKind.TIME, begin_ms),
            more={"from_ms": begin_ms, "until_ms": until_ms},
        )
        assert numbers(timed.values) == list(range(100, 110))
        later = searched(observer, orders, begin=Begin(BeginKind.TIME, until_ms + 10**9))
        assert not later.found and not later.steps and all(span.is_over for span in later.spans)


def test_steps_of_few_records_bytes_and_a_pace_come_to_the_same(
    simulated_cluster: Served, orders: str
) -> None:
    with observing(simulated_cluster.addresses, SETTINGS) as observer:
        whole = searched(observer, orders, "value.status = PAID")
        few = searched(observer, orders, "value.status = PAID", more={"most": 7, "request_bytes": 2_000})
        assert few.places == whole.places and len(whole.places) == 594
        assert max(len(step.found) for step in few.steps) == 7
        assert few.tally.records == whole.tally.records == 600
        tight = searched(observer, orders, most_steps=1, more={"most_bytes": 1_000, "request_bytes": 500})
        assert any(not span.is_over for span in tight.spans)
        assert 1_000 <= tight.tally.bytes < 60_000
        began_s = time.monotonic()
        slow = searched(
            observer, orders, "nothing", more={"bytes_per_second": 20_000, "request_bytes": 4_000}
        )
        assert time.monotonic() - began_s > slow.tally.bytes / 20_000 - 0.6
        assert slow.tally.records == 600


def test_records_deleted_meanwhile_are_counted(simulated_cluster: Served) -> None:
    name = f"find-{uuid.uuid4().hex[:8]}"
    simulated_cluster.create(name, [[0, 1, 2]])
    deliver(producer(simulated_cluster.bootstrap), name, [b"%d" % n for n in range(40)])
    with observing(simulated_cluster.addresses, SETTINGS) as observer:
        cut = searched(observer, name, between=lambda plan: delete_before(simulated_cluster, name, 25))
        assert cut.tally.deleted == 25 and [offset for _, offset in cut.places] == list(range(25, 40))


def test_a_topic_that_is_not_there_and_records_that_are_not_to_be_read(
    simulated_cluster: Served, orders: str
) -> None:
    with observing(simulated_cluster.addresses, SETTINGS) as observer:
        for request in (SearchPlanRequest("nope"), SearchPlanRequest(orders, (7,))):
            plan: SearchPlan = answered(observer, request)
            assert plan.failure.kind is InspectionFailureKind.UNKNOWN_TOPIC and not plan.spans
    with observing(simulated_cluster.addresses, SETTINGS, with_records=False) as observer:
        off: SearchPlan = answered(observer, SearchPlanRequest(orders))
        assert off.failure.kind is InspectionFailureKind.SWITCHED_OFF
        step: SearchAnswer = answered(observer, SearchRequest(orders, (Span(0, 0, 9),)))
        assert step.failure.kind is InspectionFailureKind.SWITCHED_OFF and not step.found


def test_a_search_sends_what_only_reads(simulated_cluster: Served, orders: str) -> None:
    ports = {n: (address.host, address.port) for n, address in enumerate(simulated_cluster.addresses)}
    with CountingProxies(ports) as proxies:
        servers = [proxy.address for proxy in proxies.proxies.values()]
        with observing(servers, SETTINGS) as observer:
            assert searched(observer, orders, "key = order-5").found
        sent = {key for _, key, _ in proxies.asked}
        assert FETCH in sent <= READ_RECORDS and {FETCH} == READ_RECORDS - READ_ONLY


def test_a_broker_that_is_dead_is_named_and_the_others_are_read(simulated_cluster: Served) -> None:
    name = f"find-{uuid.uuid4().hex[:8]}"
    simulated_cluster.create(name, [[0, 1, 2], [5, 4, 3]])
    client = producer(simulated_cluster.bootstrap)
    for partition in (0, 1):
        deliver(client, name, [b"a", b"b"], partition)
    with observing(simulated_cluster.addresses, SETTINGS) as observer:
        try:
            got = searched(observer, name, between=lambda plan: simulated_cluster.do("crash 5"))
            dead = next(span for span in got.spans if span.partition == 1)
            if dead.failure:  # or another one leads it already
                assert dead.failure.kind in (
                    InspectionFailureKind.NO_ANSWER,
                    InspectionFailureKind.NO_LEADER,
                )
                assert not dead.at and dead.is_over
            assert (0, 0) in got.places and (0, 1) in got.places
            assert (len(got.places) == 2) == bool(dead.failure)
        finally:
            simulated_cluster.do("start 5")


def test_transactions_are_left_out_and_counted() -> None:
    broker = transactions()
    with asked(broker) as observer:
        got = searched(observer, "invoice")
        assert got.values == [b"plain", b"kept", b"again"]
        assert (got.tally.aborted, got.tally.control, got.tally.damaged) == (1, 3, 0)
        dirty = searched(observer, "invoice", "lost", isolation=Isolation.READ_UNCOMMITTED)
        assert dirty.values == [b"lost", b"lost too"] and dirty.tally.aborted == 0
        assert not searched(observer, "invoice", "lost").found
    assert {request.replica_id for request in broker.fetched} == {-1}


def test_damaged_batches_and_bombs_are_counted_and_the_others_are_read() -> None:
    flipped = bytearray(batch(2, [b"bad"]))
    flipped[-2] ^= 1
    bombs = [(n, placed(raw_batch(ZSTD, compressed(ZSTD, bytes(1 << 25)), 1), n)) for n in range(3, 6)]
    log = [(0, batch(0, [b"first", b"second"])), (2, bytes(flipped)), *bombs, (6, batch(6, [b"last"]))]
    with asked(RecordBroker(log, end=7)) as observer:
        for where in ("", "value ~ /s/", "value contains s"):
            got = searched(observer, "invoice", where)
            assert got.values == [b"first", b"second", b"last"]
            assert got.tally.damaged == 4
        assert [(damage.offset, damage.kind) for _, damage in got.steps[0].damage][:2] == [
            (2, DamageKind.CORRUPT),
            (3, DamageKind.TOO_LARGE),
        ]


def test_bytes_that_are_no_batch_end_the_partition_and_are_said() -> None:
    with asked(RecordBroker([(0, batch(0, [b"a"])), (1, b"\xff" * 80)], end=2)) as observer:
        got = searched(observer, "invoice")
        assert got.values == [b"a"] and got.tally.damaged == 1 and got.spans[0].is_over


def test_a_compacted_log_has_few_records_in_many_offsets() -> None:
    log = [(n, batch(n, [b"v"])) for n in range(0, 10_000, 100)]
    with asked(RecordBroker(log, end=10_050)) as observer:
        got = searched(observer, "invoice", more={"request_bytes": 1_000})
        assert [offset for _, offset in got.places] == list(range(0, 10_000, 100))
        assert got.spans[0].is_over and not got.spans[0].failure


@pytest.mark.parametrize(("error", "kind"), [(29, "not_authorized"), (2, "no_answer")])
def test_a_refusal_is_the_partition_s_and_says_why(error: int, kind: str) -> None:
    broker = RecordBroker([(0, batch(0, [b"a"]))], end=1)
    with asked(broker) as observer:
        broker.errors = [error] * 5
        got = searched(observer, "invoice")
        assert got.spans[0].failure.kind == kind and not got.found


def test_an_answer_without_records_because_of_a_quota_is_not_the_end() -> None:
    broker = RecordBroker([(0, batch(0, [b"a", b"b"]))], end=2)
    with asked(broker) as observer:
        broker.throttled = [30, 30]
        got = searched(observer, "invoice")
        assert got.values == [b"a", b"b"] and not broker.throttled


def test_a_new_leader_that_is_behind_is_not_the_end() -> None:
    broker = RecordBroker([(0, batch(0, [b"a"])), (1, batch(1, [b"b"]))], end=2)
    with asked(broker) as observer:
        broker.behind = [0, 1]
        got = searched(observer, "invoice", more={"request_bytes": 1})
        assert got.values == [b"a", b"b"] and not broker.behind


@pytest.mark.slow
def test_a_leader_that_stays_behind_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "DEADLINE_S", 2.0)
    broker = RecordBroker([(0, batch(0, [b"a"]))], end=2)
    with asked(broker) as observer:
        got = searched(observer, "invoice", between=lambda plan: setattr(broker, "high_watermark", 1))
        assert got.values == [b"a"] and got.spans[0].at == 1
        assert got.spans[0].failure.kind is InspectionFailureKind.NO_ANSWER


def test_what_was_fetched_is_judged_when_the_bytes_are_spent() -> None:
    log = [(n, batch(n, [b"v" * 100])) for n in range(20)]
    with asked(RecordBroker(log, end=20)) as observer:
        got = searched(observer, "invoice", more={"most_bytes": 800, "request_bytes": 700, "most": 1})
        assert len(got.found) == got.spans[0].at == got.tally.records > 1
        assert got.steps[-1].is_spent and not got.spans[0].is_over
        assert 800 <= got.tally.bytes == sum(len(data) for _, data in log[: len(got.found)])


def test_records_whose_times_are_not_in_order_are_all_found() -> None:
    times_ms = [1_000, 5_000, 2_000, 6_000, 3_000]
    log = [(n, placed(encode_batch([(b"k", b"v", at_ms)]), n)) for n, at_ms in enumerate(times_ms)]
    with asked(RecordBroker(log, end=5)) as observer:
        got = searched(observer, "invoice", more={"until_ms": 4_000})
        assert [offset for _, offset in got.places] == [0, 2, 4] and got.spans[0].is_over


@pytest.mark.parametrize("offset", [2, 8])
def test_an_offset_that_does_not_exist_is_said(offset: int) -> None:
    broker = RecordBroker([(3, batch(3, [b"v"] * 4))], end=7)
    broker.log_start = 3
    with asked(broker) as observer:
        plan: SearchPlan = answered(
            observer, SearchPlanRequest("invoice", begin=Begin(BeginKind.OFFSET, offset))
        )
        [span] = plan.spans
        assert (span.begin, span.end, span.failure.offset) == (3, 7, offset)
        assert span.is_over and span.failure.kind is InspectionFailureKind.OFFSET_OUT_OF_RANGE
        for valid, count in ((3, 4), (7, 0)):
            assert len(searched(observer, "invoice", begin=Begin(BeginKind.OFFSET, valid)).found) == count


def test_the_same_records_are_counted_with_a_filter_and_without() -> None:
    with asked(RecordBroker([(0, batch(0, [b"v"] * 8)), (8, batch(8, [b"v"] * 8))], end=12)) as observer:
        begin = Begin(BeginKind.OFFSET, 3)
        for where in ("", "v", "nothing"):
            assert searched(observer, "invoice", where, begin=begin).tally.records == 9, where


def test_a_record_is_kept_in_part_or_whole() -> None:
    [record] = wire.records(next(wire.batches(batch(0, [b"v" * 5_000]))), 0, 1, 1, newest=False)
    keeper, some = Keeper(), next(wire.batches(batch(0, [b"v"])))
    keeper.record(record._replace(value=b"x" * KEPT_ALL), some)
    while not keeper.is_full:
        kept = keeper.record(record._replace(key=b"x" * (1 << 20)), some)
    assert kept.value.data == b"v" * 5_000
    cut = keeper.record(record, some)
    assert (cut.key.data, cut.value.data, cut.value.size) == (b"k", b"v" * 4_096, 5_000)


def test_what_needs_a_schema_is_counted_if_there_is_none() -> None:
    framed = b"\0" + pack(">i", 7) + b"\x54FAILED"
    values = [b'{"id": 42}', framed, b'{"id": 4.2e1}', b'{"id": 42', b"42"]
    with asked(RecordBroker([(0, batch(0, values))], end=5)) as observer:
        got = searched(observer, "invoice", "value.id = 42")
        assert got.values == [values[0], values[2]]
        assert got.tally.undecoded == 2  # with the JSON that ends too early
        text = searched(observer, "invoice", "value contains FAILED")
        assert text.values == [framed] and text.tally.undecoded == 0
        assert searched(observer, "invoice", "not value.id exists").values == [values[4]]


def test_a_large_value_is_judged_whole_and_kept_in_part() -> None:
    large = b'{"pad": "%s", "id": 7}' % (b"x" * 3_000_000)
    with asked(RecordBroker([(n, batch(n, [large])) for n in range(12)], end=12)) as observer:
        got = searched(observer, "invoice", "value.id = 7")
        assert len(got.found) == 12
        kept = [each.record.value for each in got.found]
        assert {payload.size for payload in kept} == {len(large)}
        assert {len(payload.data or b"") for payload in kept} == {1 << 20}


def test_nothing_goes_on_that_nobody_asks_for() -> None:
    broker = RecordBroker([(n, batch(n, [b"v" * 500])) for n in range(200)], end=200)
    with asked(broker) as observer:
        plan: SearchPlan = answered(observer, SearchPlanRequest("invoice"))
        request = SearchRequest("invoice", plan.spans, filtered("v"), most=10, request_bytes=2_000)
        answers: list[SearchAnswer] = []
        ticket = observer.inspect(request, answers.append)  # type: ignore[arg-type]
        ticket.cancelled = True
        got = searched(observer, "invoice", most_steps=1, more={"most": 10, "request_bytes": 2_000})
        assert len(got.found) == 10 and got.spans[0].at != UNKNOWN
        fetched = len(broker.fetched)
        assert fetched < 40 and answers
        observer.observe()
        assert len(broker.fetched) == fetched or len(broker.fetched) == fetched + 1  # the one sent ahead
