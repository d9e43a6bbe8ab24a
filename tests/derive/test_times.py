"""Times as people type them."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kview.derive.times import moment_of

LAST = datetime(2026, 3, 2, 14, 30, 15, tzinfo=UTC)
HOUR = timezone(timedelta(hours=1))


def ms(when: datetime) -> int:
    return round(when.timestamp() * 1000)


def read(text: str, zone: timezone = UTC) -> int | None:
    return moment_of(text, minus_from_ms=1_000_000, plus_from_ms=2_000_000, last_ms=ms(LAST), zone=zone)


@pytest.mark.parametrize(
    ("text", "when"),
    [
        ("14:30", LAST.replace(second=0)),
        (" 14:30:15 ", LAST),
        ("9:05", LAST.replace(hour=9, minute=5, second=0)),
        ("14:30:16", LAST.replace(second=16) - timedelta(days=1)),
        ("23:59", datetime(2026, 3, 1, 23, 59, tzinfo=UTC)),
        ("2026-03-01T08:00", datetime(2026, 3, 1, 8, tzinfo=UTC)),
        ("2026-03-01 08:00:30+02:00", datetime(2026, 3, 1, 6, 0, 30, tzinfo=UTC)),
    ],
)
def test_times_of_day_are_the_last_ones_and_dates_are_themselves(text: str, when: datetime) -> None:
    assert read(text) == ms(when)


def test_times_of_day_are_in_the_zone() -> None:
    assert read("15:30", HOUR) == ms(LAST.replace(second=0))
    assert read("15:31", HOUR) == ms(LAST.replace(minute=31, second=0) - timedelta(days=1))
    assert read("2026-03-01T08:00", HOUR) == ms(datetime(2026, 3, 1, 7, tzinfo=UTC))


@pytest.mark.parametrize(
    ("text", "at_ms"),
    [
        ("-5m", 700_000),
        ("−5m", 700_000),
        ("- 1.5 s", 998_500),
        ("-250ms", 999_750),
        ("+30s", 2_030_000),
        ("+1h", 5_600_000),
    ],
)
def test_a_signed_duration_counts_from_the_moment_given(text: str, at_ms: int) -> None:
    assert read(text) == at_ms


@pytest.mark.parametrize(
    "text", [f"-{'9' * 4400}s", "", "noon", "25:00", "12:60", "5m", "+5", "-m", "2026-13-01", "1", "-"]
)
def test_invalid_times(text: str) -> None:
    assert read(text) is None


@given(st.text(max_size=12))
def test_nothing_fails(text: str) -> None:
    read(text)
