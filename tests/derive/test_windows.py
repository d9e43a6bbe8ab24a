"""Windows over roll-ups: the same as plain Python says, second by second."""

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kview.derive.windows import OUT_SETTLES_S, WINDOWS_S, series, whole_until_s, window, window_of
from kview.model.aggregates import Block, Key, Rollups, no_rows
from kview.model.sums import BLOCK_S, SUMS, Kind, Sum
from kview.model.units import UNKNOWN

KEYS = (
    Key(Kind.CLUSTER),
    Key(Kind.TOPIC, "invoice"),
    Key(Kind.GROUP, "billing"),
    Key(Kind.BROKER, "10"),
    Key(Kind.TOPIC, "audit-log"),
    Key(Kind.BROKER, "9"),
    Key(Kind.GROUP, "audit"),
)
PARTITIONS = (("payment", 1), ("invoice", 3), ("invoice", 0))
MINUTE = 29_000_000
START_S = MINUTE * BLOCK_S


def block(minute: int, rows: int, seed: int) -> Block:
    """A minute of small random figures, many of them 0."""
    numbers = np.random.default_rng(seed)
    shape = (rows, BLOCK_S)
    return Block(
        minute,
        numbers.integers(0, 9, (len(SUMS), *shape)) * numbers.integers(0, 2, (1, *shape)),
        numbers.integers(0, 4, shape),
        numbers.integers(-1, len(PARTITIONS), shape),
        numbers.integers(0, 3, shape),
    )


@st.composite
def rollups(draw: st.DrawFn) -> Rollups:
    """A few minutes, some left out, keys that appear later; from and until anywhere in them."""
    minutes = draw(st.lists(st.integers(0, 4), max_size=4, unique=True).map(sorted))
    rows = sorted(draw(st.integers(0, len(KEYS))) for _ in minutes)
    blocks = [
        block(MINUTE + minute, count, draw(st.integers(0, 99)))
        for minute, count in zip(minutes, rows, strict=True)
    ]
    if not blocks:
        return Rollups(KEYS[: draw(st.integers(0, 2))])
    begin_ms, end_ms = START_S * 1000, (START_S + 5 * BLOCK_S) * 1000
    ends = sorted(draw(st.integers(begin_ms, end_ms)) for _ in range(2))
    return Rollups(KEYS, PARTITIONS, tuple(blocks), ends[0], ends[1])


def cell(made: Rollups, key: Key, second: int) -> dict[str, int]:
    """A key's figures in a second, by name."""
    found = next((held for held in made.blocks if held.minute == second // BLOCK_S), None)
    row = made.keys.index(key)
    if found is None or row >= len(found.topic_partitions):
        found, row = no_rows(0, 1), 0
    at = (row, second % BLOCK_S)
    figures = {column.value: int(found.sums[place][at]) for place, column in enumerate(SUMS)}
    return figures | {
        "hottest_rate": int(found.hottest_rate[at]),
        "hottest": int(found.hottest[at]),
        "topic_partitions": int(found.topic_partitions[at]),
    }


def known(made: Rollups, begin_s: int, end_s: int) -> list[int]:
    """The whole seconds of a window."""
    return [
        second
        for second in range(begin_s, end_s)
        if UNKNOWN not in (made.from_ms, made.until_ms)
        and second * 1000 >= made.from_ms
        and (second + 1) * 1000 <= made.until_ms // 1000 * 1000 - 1000
    ]


def nearest_rank(values: list[int], percent: int) -> int:
    """The least value that `percent` of the values do not exceed."""
    return next(
        (value for value in sorted(values) if 100 * sum(v <= value for v in values) >= percent * len(values)),
        UNKNOWN,
    )


def reference(made: Rollups, key: Key, end_s: int, length_s: int) -> dict[str, object]:
    """A row of a window, slowly."""
    cells = [cell(made, key, second) for second in known(made, end_s - length_s, end_s)]
    out_end_s = end_s - OUT_SETTLES_S
    out_cells = [cell(made, key, second) for second in known(made, out_end_s - length_s, out_end_s)]
    figures: dict[str, object] = {
        column.value: sum(held[column.value] for held in cells)
        for column in SUMS
        if column not in (Sum.ACTIVE_MS, Sum.CENTIBYTES_IN)
    }
    figures["records_out"] = sum(held["records_out"] for held in out_cells)
    for percent in (50, 95, 99):
        figures[f"in_p{percent}"] = nearest_rank([held["records_in"] for held in cells], percent)
    by_partition: dict[tuple[str, int], int] = {}
    for held in out_cells if key.kind is Kind.GROUP else cells:
        if held["hottest"] >= 0:
            named = PARTITIONS[held["hottest"]]
            by_partition[named] = by_partition.get(named, 0) + held["hottest_rate"]
    ranked = sorted(by_partition, key=lambda named: (-by_partition[named], named))
    figures["hottest"] = ranked[0] if ranked else None
    counts = [
        held["topic_partitions"] if key.kind is Kind.TOPIC else held["active_ms"] / 1000 for held in cells
    ]
    some = [count for count in counts if count > 0]
    records = sum(held["records_in"] for held in cells)
    figures["skew"] = math.nan
    hottest = sum(held["hottest_rate"] for held in cells)
    if some and records and hottest and key.kind is not Kind.GROUP:
        figures["skew"] = hottest / (records / (sum(some) / len(some)))
    seconds, out_seconds = len(cells) or math.nan, len(out_cells) or math.nan
    figures["in_rate"] = records / seconds
    centibytes = sum(held["centibytes_in"] for held in cells)
    figures["bytes_in"], figures["bytes_rate"] = centibytes // 100, centibytes / 100 / seconds
    figures["replicated_rate"] = sum(held["replicated"] for held in cells) / seconds
    figures["cross_rack_rate"] = sum(held["cross_rack"] for held in cells) / seconds
    figures["out_rate"] = sum(held["records_out"] for held in out_cells) / out_seconds
    return figures


@given(rollups(), st.sampled_from(list(Kind)), st.integers(-20, 330), st.sampled_from((*WINDOWS_S, 1, 7)))
@settings(max_examples=300)
def test_a_window_is_what_its_seconds_say(made: Rollups, kind: Kind, end: int, length_s: int) -> None:
    end_s = START_S + end
    found = window(made, kind, end_s, length_s)
    keys = sorted(key for key in made.keys if key.kind is kind)
    assert found.names == tuple(key.name for key in keys)
    assert found.covered_s == len(known(made, end_s - length_s, end_s))
    out_end_s = end_s - OUT_SETTLES_S
    assert found.out_covered_s == len(known(made, out_end_s - length_s, out_end_s))
    for row, key in enumerate(keys):
        for name, expected in reference(made, key, end_s, length_s).items():
            value = getattr(found, name)[row]
            assert value == pytest.approx(expected, nan_ok=True), name


@given(rollups(), st.data(), st.integers(-20, 330), st.sampled_from(((60, 1), (300, 5), (240, 60), (7, 2))))
@settings(max_examples=200)
def test_a_series_is_what_its_steps_say(
    made: Rollups, data: st.DataObject, end: int, spans: tuple[int, int]
) -> None:
    if not made.keys:
        return
    key, column = data.draw(st.sampled_from(made.keys)), data.draw(st.sampled_from(SUMS))
    (length_s, step_s), end_s = spans, START_S + end
    found = series(made, key, column, end_s, length_s, step_s)
    assert len(found) == length_s // step_s
    last_s = next(second for second in range(end_s, end_s + step_s) if second % step_s == 0)
    settled_s = end_s - OUT_SETTLES_S if column is Sum.RECORDS_OUT else end_s
    for back, value in enumerate(reversed(found.tolist())):
        step_end_s = last_s - back * step_s
        seconds = known(made, step_end_s - step_s, min(step_end_s, settled_s))
        values = [cell(made, key, second)[column.value] for second in seconds]
        assert value == pytest.approx(sum(values) / len(values) if values else math.nan, nan_ok=True)


def test_values_of_a_series_stay_while_time_goes_on() -> None:
    made = Rollups(KEYS, PARTITIONS, (block(MINUTE, 7, 1), block(MINUTE + 1, 7, 2)), START_S * 1000, 2**60)
    before = series(made, KEYS[0], Sum.RECORDS_IN, START_S + 100, 60, 5)
    for later in range(101, 106):
        after = series(made, KEYS[0], Sum.RECORDS_IN, START_S + later, 60, 5)
        assert after[:-1].tolist() == before[1:].tolist()


def test_without_rollups_nothing_is_known() -> None:
    nothing = Rollups()
    end_s = whole_until_s(nothing, START_S * 1000)
    assert window(nothing, Kind.TOPIC, end_s, 60).names == ()
    found = window_of(nothing, [Key(Kind.CLUSTER)], START_S, 60)
    assert found.covered_s == 0 and found.records_in.tolist() == [0] and found.hottest == (None,)
    assert math.isnan(found.in_rate[0]) and found.in_p50[0] == UNKNOWN
    assert np.isnan(series(nothing, Key(Kind.CLUSTER), Sum.RECORDS_IN, START_S, 60, 5)).all()


def test_whole_seconds_end_one_before_the_observation() -> None:
    made = Rollups(from_ms=0, until_ms=10_500)
    assert whole_until_s(made, 60_000) == 9
    assert whole_until_s(made, 5_999) == 4


def test_the_first_second_that_is_not_whole_does_not_count() -> None:
    full = no_rows(MINUTE, 1)
    full.sums[:] = 100
    made = Rollups((Key(Kind.CLUSTER),), (), (full,), START_S * 1000 + 1, (START_S + 60) * 1000)
    found = window(made, Kind.CLUSTER, START_S + 10, 10)
    assert (found.covered_s, found.records_in[0], found.in_rate[0]) == (9, 900, 100.0)


def test_the_hottest_partition_is_found_among_a_thousand_topics() -> None:
    numbers = random.Random(1)
    keys = tuple(Key(Kind.TOPIC, f"topic-{number:04}") for number in range(1_000))
    partitions = tuple((key.name, 3) for key in keys)
    blocks = []
    for minute in range(6):
        full = no_rows(MINUTE + minute, len(keys))
        full.sums[:] = numbers.randrange(1, 100)
        full.hottest[:] = np.arange(len(keys))[:, None]
        full.hottest_rate[:] = 7
        blocks.append(full)
    made = Rollups(keys, partitions, tuple(blocks), START_S * 1000, (START_S + 360) * 1000)
    found = window(made, Kind.TOPIC, START_S + 350, 300)
    assert found.hottest[7] == ("topic-0007", 3)
