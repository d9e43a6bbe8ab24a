"""Durations and bootstrap servers as they are typed."""

import click
import pytest

from kview.cli.values import Duration, bootstrap_servers, words


@pytest.mark.parametrize(
    ("text", "duration_ms"),
    [("500ms", 500), ("1s", 1_000), ("1.5s", 1_500), ("2m", 120_000), ("3", 3_000), (" 1s ", 1_000)],
)
def test_durations(text: str, duration_ms: int) -> None:
    assert Duration(100, 600_000).convert(text, None, None) == duration_ms


@pytest.mark.parametrize("text", ["", "s", "1 h", "1e3s", "١s", "99ms", "601s", "nan"])
def test_what_is_no_duration_or_out_of_bounds(text: str) -> None:
    with pytest.raises(click.BadParameter):
        Duration(100, 600_000).convert(text, None, None)


@pytest.mark.parametrize(
    ("duration_ms", "text"), [(100, "100ms"), (1_000, "1s"), (1_500, "1500ms"), (600_000, "10m")]
)
def test_durations_in_sentences(duration_ms: int, text: str) -> None:
    assert words(duration_ms) == text


def test_bootstrap_servers_keep_their_order_and_each_comes_once() -> None:
    assert bootstrap_servers("b:2, a:1,b:2") == ("b:2", "a:1")
    assert bootstrap_servers("[::1]:9092") == ("[::1]:9092",)
