"""Durations and bootstrap servers as they are typed."""

import click
import pytest

from kview.cli.values import Duration, bootstrap_servers, words
from kview.errors import BadUse
from kview.lab.worlds import topic_of
from kview.language.errors import sentence
from kview.model.address import Address
from kview.simulate.settings import check_broker_settings
from tests.errors import raises_saying


@pytest.mark.parametrize(
    ("text", "duration_ms"),
    [("500ms", 500), ("1s", 1_000), ("1.5s", 1_500), ("2m", 120_000), ("3", 3_000), (" 1s ", 1_000)],
)
def test_durations(text: str, duration_ms: int) -> None:
    assert Duration(100, 600_000).convert(text, None, None) == duration_ms


@pytest.mark.parametrize("text", ["", "s", "1 h", "1e3s", "١s", "99ms", "601s", "nan", "9" * 5000])
def test_what_is_no_duration_or_out_of_bounds(text: str) -> None:
    with pytest.raises(click.BadParameter):
        Duration(100, 600_000).convert(text, None, None)


@pytest.mark.parametrize(
    ("duration_ms", "text"), [(100, "100ms"), (1_000, "1s"), (1_500, "1500ms"), (600_000, "10m")]
)
def test_durations_in_sentences(duration_ms: int, text: str) -> None:
    assert words(duration_ms) == text


def test_bootstrap_servers_keep_their_order_and_each_comes_once() -> None:
    assert bootstrap_servers("b:2, a:1,b:2") == (Address("b", 2), Address("a", 1))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "a:1,,b:2",
            "'a:1,,b:2' contains an empty bootstrap server: write HOST:PORT, such as localhost:9092",
        ),
        ("http://a:1", "'http://a:1' is a URL"),
        ("kafka", "'kafka' has no port: write HOST:PORT, such as kafka:9092"),
        ("::1:9092", "'::1:9092' has more than one colon: put an IPv6 address in brackets: [::1]:9092"),
        (":9092", "':9092' has no valid host name"),
        ("a:0", "'0' in 'a:0' is not a valid port: give a number from 1 to 65535"),
    ],
)
def test_what_is_not_a_bootstrap_server_is_said(text: str, said: str) -> None:
    with pytest.raises(BadUse) as caught:
        bootstrap_servers(text)
    assert said in sentence(caught.value)


@pytest.mark.parametrize("sizes", [f"{'1' * 5000}:1", f"1:{'1' * 5000}"])
def test_a_number_of_thousands_of_digits_is_none(sizes: str) -> None:
    with raises_saying(BadUse, r"topic a cannot have '1+' (partitions|replicas)"):
        topic_of(f"a:{sizes}", brokers=3)


@pytest.mark.parametrize("value", ["1_000", "١٢", "1.5", "", "9" * 5000])
def test_a_setting_is_a_number_in_ascii_digits(value: str) -> None:
    with raises_saying(BadUse, "num.partitions=.* is not a whole number"):
        check_broker_settings({"num.partitions": value})
