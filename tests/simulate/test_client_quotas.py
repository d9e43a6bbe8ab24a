"""Quotas of clients: which one counts, and how long a client waits above it, by Kafka's rules."""

import pytest

from kview.simulate.client_quotas import CONSUMER, PRODUCER, Entity, Limit, Rate, TokenBucket, limit_of
from kview.simulate.requests.quota_changes import QUOTAS_MAX, QuotaChange
from tests.simulate.engine import cluster_of, go

USER, DEFAULT_USER = ("user", "dave"), ("user", None)
APP, DEFAULT_APP = ("client-id", "app"), ("client-id", None)
ORDER: list[tuple[Entity, tuple[str, str]]] = [
    ((APP, USER), ("dave", "app")),
    ((DEFAULT_APP, USER), ("dave", "app")),
    ((USER,), ("dave", "")),
    ((APP, DEFAULT_USER), ("dave", "app")),
    ((DEFAULT_APP, DEFAULT_USER), ("dave", "app")),
    ((DEFAULT_USER,), ("dave", "")),
    ((APP,), ("", "app")),
    ((DEFAULT_APP,), ("", "app")),
]


@pytest.mark.parametrize("first", range(len(ORDER)))
def test_the_most_specific_quota_counts(first: int) -> None:
    quotas = {entity: {PRODUCER: 100.0 + place} for place, (entity, _) in enumerate(ORDER) if place >= first}
    assert limit_of(quotas, PRODUCER, "dave", "app") == Limit(100.0 + first, ORDER[first][1])
    assert limit_of(quotas, CONSUMER, "dave", "app") is None


def test_a_burst_is_spread_over_ten_windows() -> None:
    rate = Rate()
    rate.record(10_000, 0)
    assert rate.throttle_ms(1000, 0) == 0, "10,000 in 10 s"
    rate.record(5_000, 0)
    assert rate.throttle_ms(1000, 0) == 5_000
    assert rate.throttle_ms(1000, 500) == 4_500
    assert rate.throttle_ms(1000, 11_000) == 0, "forgotten"


def test_what_is_not_sent_does_not_count() -> None:
    rate = Rate()
    rate.record(20_000, 0)
    rate.record(-20_000, 0)
    assert rate.throttle_ms(1, 0) == 0


def test_credits_come_back_at_their_rate() -> None:
    bucket = TokenBucket()
    bucket.record(10, 2.0, 100_000)
    assert bucket.throttle_ms(2.0, 100_000) == 0, "22 credits at most, of 11 s"
    bucket.record(18, 2.0, 100_000)
    assert bucket.throttle_ms(2.0, 100_000) == 3_000
    assert bucket.throttle_ms(2.0, 102_000) == 1_000
    assert bucket.throttle_ms(2.0, 103_000) == 0


@pytest.mark.parametrize("limit", [5e-324, 1e-9, 1e308, float("inf"), float("nan")])
def test_a_wait_fits_into_an_answer_whatever_the_quota(limit: float) -> None:
    rate, bucket = Rate(), TokenBucket()
    for now_ms in (1_000, 1_000, 1_001):
        rate.record(1e8, now_ms)
        bucket.record(1e8, limit, now_ms)
        waits = rate.throttle_ms(limit, now_ms), bucket.throttle_ms(limit, now_ms)
        assert set(waits) <= ({0, 2**31 - 1} if limit != limit or limit > 1 else {2**31 - 1})


def test_quotas_are_metadata_and_have_a_limit() -> None:
    cluster = cluster_of()
    changes = [QuotaChange((("user", str(n)),), ((PRODUCER, 1.0),)) for n in range(QUOTAS_MAX + 1)]
    results = cluster.quotas.alter(changes, False)
    assert [int(result.error_code) for _, result in results] == [0] * QUOTAS_MAX + [42]
    cluster.quotas.alter([QuotaChange((("user", "0"),), ((PRODUCER, None),))], False)
    cluster.faults.crash_controller()
    go(cluster, 20)
    assert all(len(cluster.image(b).client_quotas) == QUOTAS_MAX - 1 for b in cluster.broker_ids())
