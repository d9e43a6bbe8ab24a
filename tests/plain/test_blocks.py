"""The text block: the figures of the first screen, in its order."""

from datetime import UTC
from functools import cache

import pytest

from kview.language.glyphs import plain
from kview.plain.blocks import MAX_PARTITIONS, block
from tests.worlds import crash_script, views, wide_snapshots

NAME = "127.0.0.1:9092"


@cache
def blocks() -> list[str]:
    """A block a second: healthy for 20 s, then broker 4 is silent for 9 s and fenced."""
    return [
        block(view, NAME, UTC) for view in views(crash_script(broker=4, healthy_s=20, silent_s=15, after_s=0))
    ]


def line_of(text: str, start: str) -> str:
    return next(line for line in text.splitlines() if line.split()[: len(start.split())] == start.split())


def test_a_healthy_cluster() -> None:
    text = blocks()[19]
    assert NAME in text.splitlines()[0] and "6 brokers" in text
    assert "● up" in line_of(text, "R2 4")
    assert text.index("BROKER") < text.index("TOPIC") < text.index("GROUP")


def test_silence_then_fencing() -> None:
    silent, fenced = blocks()[24], blocks()[31]
    assert "silent" in line_of(silent, "R2 4") and "fenced in ≈" in line_of(silent, "R2 4")
    assert "leader silent" in silent and "4✕·" in silent
    assert "fenced" in line_of(fenced, "R2 4") and "leader silent" not in fenced
    before = next(line for line in silent.splitlines() if "leader silent" in line and "invoice" in line)
    topic, partition, leader = before.split()[:3]
    after = line_of(fenced, f"{topic} {partition}")
    assert int(after.split()[2].split("·")[1]) == int(leader.split("·")[1]) + 1, "the epoch rose by one"


def test_each_finding_has_the_sign_of_its_own_severity() -> None:
    fenced = blocks()[31].splitlines()
    assert next(line for line in fenced if "broker 4 fenced" in line).startswith("▲ ")
    assert next(line for line in fenced if "no leader" in line).startswith("✕ ")


def test_events_stand_only_in_the_block_in_which_they_were_seen() -> None:
    found = [text for text in blocks() if "EVENTS" in text and "broker 4" in text.partition("EVENTS")[2]]
    assert found and len(found) < len(blocks()) / 2


def test_ascii_stand_ins_keep_the_columns() -> None:
    for text in blocks():
        assert plain(text).isascii()
        assert list(map(len, plain(text).splitlines())) == list(map(len, text.splitlines()))


@pytest.mark.parametrize("partitions", [1_000])
def test_a_wide_cluster_makes_a_short_block(partitions: int) -> None:
    *_, last = views(wide_snapshots(partitions, 3))
    text = block(last, NAME, UTC)
    assert text.count("topic-") <= MAX_PARTITIONS
    assert f"+ {partitions - MAX_PARTITIONS:,} more" in text
