"""Windows over one-second roll-ups: sums, rates, skew and percentiles, and series for plots.

These are what the screen shows. Reports ask the same of whole periods in Spark's tasks
(`kview.pipeline.kernel.figures`); percentiles and skew are defined in `kview.model.sums`.

Seconds are whole epoch seconds UTC. A window of `length_s` that ends at `end_s` consists of the seconds
`end_s − length_s` … `end_s − 1`. Only complete seconds count: those that began after the roll-ups did, and
ended before the last observation in them.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct

from kview.derive.view import Floats
from kview.model.aggregates import Block, Key, Rollups
from kview.model.snapshot import Longs
from kview.model.sums import BLOCK_S, PERCENTS, SUMS, Kind, Sum, nearest_rank, skew
from kview.model.units import UNKNOWN

WINDOWS_S = (10, 60, 300)
"""The lengths of the windows shown, in seconds."""

OUT_SETTLES_S = 6
"""The age from which a second of `records_out` is settled. Commits are usually made every 5 s, so for younger
seconds it is not known yet how much was read."""


class Window(Struct, frozen=True):
    """A window's figures, one row per key.

    Sums are int64. Rates are per second, NaN if no second of the window is known. Times are partitions ×
    milliseconds.
    """

    names: tuple[str, ...]
    covered_s: int
    """The number of known seconds of the window."""
    out_covered_s: int
    """The number of known seconds of `records_out`, whose window ends OUT_SETTLES_S earlier."""
    records_in: Longs
    bytes_in: Longs
    replicated: Longs
    cross_rack: Longs
    records_out: Longs
    in_rate: Floats
    bytes_rate: Floats
    replicated_rate: Floats
    cross_rack_rate: Floats
    out_rate: Floats
    skew: Floats
    """What came into the hottest partition ÷ the mean per partition.

    The mean is over all partitions for topics, and over the active partitions otherwise. NaN if nothing came
    in, and for groups.
    """
    hottest: tuple[tuple[str, int] | None, ...]
    """The (topic, partition) with the greatest sum of rates over the seconds in which it was the hottest. The
    rates are those of records in, or for groups of records out."""
    in_p50: Longs
    """Percentiles of the records in per second, by nearest rank over the known seconds. So they are whole
    numbers that actually occurred. UNKNOWN if no second is known."""
    in_p95: Longs
    in_p99: Longs
    offline_ms: Longs
    silent_ms: Longs
    under_min_isr_ms: Longs
    under_replicated_ms: Longs
    truncated: Longs
    records_in_gap: Longs
    rewound: Longs
    records_out_gap: Longs


def whole_until_s(rollups: Rollups, at_ms: int) -> int:
    """Return the epoch second before which all seconds are complete at a moment (epoch ms).

    The readings of one observation are spread over its duration, so the second before the one in which the
    observation ended does not count either.
    """
    return min(at_ms, rollups.until_ms) // 1000 - 1


def window(rollups: Rollups, kind: Kind, end_s: int, length_s: int) -> Window:
    """Return the figures of all keys of a kind, by name, over the `length_s` seconds before `end_s`
    (epoch)."""
    return window_of(rollups, sorted(key for key in rollups.keys if key.kind is kind), end_s, length_s)


def window_of(rollups: Rollups, keys: Sequence[Key], end_s: int, length_s: int) -> Window:
    """Return the figures of `keys`, in that order, over the `length_s` seconds before `end_s` (epoch).

    A key that is not in the roll-ups has zeros.
    """
    rows = _rows(rollups, keys)
    known = _known(rollups, end_s - length_s, end_s)
    settled = _known(rollups, end_s - OUT_SETTLES_S - length_s, end_s - OUT_SETTLES_S)
    sums = np.zeros((len(SUMS), len(keys)), np.int64)
    for block, here, there, _ in _pieces(rollups, rows, known):
        sums[:, here] += _summed(block.sums, rows[here], there)
    sums[_AT[Sum.RECORDS_OUT]] = 0
    for block, here, there, _ in _pieces(rollups, rows, settled):
        out = _AT[Sum.RECORDS_OUT]
        sums[out, here] += _summed(block.sums[out : out + 1], rows[here], there)[0]
    column = dict(zip(SUMS, sums, strict=True))
    a_second = len(known) or np.nan
    percentiles = _percentiles(_seconds(rollups, rows, known, Sum.RECORDS_IN))
    of_group = np.array([key.kind is Kind.GROUP for key in keys], np.bool_)
    hottest = _Hottest(rollups, np.where(of_group, -1, rows), known)
    hottest_out = _Hottest(rollups, np.where(of_group, rows, -1), settled)
    return Window(
        names=tuple(key.name for key in keys),
        covered_s=len(known),
        out_covered_s=len(settled),
        records_in=column[Sum.RECORDS_IN],
        bytes_in=column[Sum.CENTIBYTES_IN] // 100,
        replicated=column[Sum.REPLICATED],
        cross_rack=column[Sum.CROSS_RACK],
        records_out=column[Sum.RECORDS_OUT],
        in_rate=column[Sum.RECORDS_IN] / a_second,
        bytes_rate=column[Sum.CENTIBYTES_IN] / 100 / a_second,
        replicated_rate=column[Sum.REPLICATED] / a_second,
        cross_rack_rate=column[Sum.CROSS_RACK] / a_second,
        out_rate=column[Sum.RECORDS_OUT] / (len(settled) or np.nan),
        skew=_skew(rollups, keys, rows, known, column[Sum.RECORDS_IN], hottest.total),
        hottest=tuple(hottest.names[row] or hottest_out.names[row] for row in range(len(keys))),
        in_p50=percentiles[0],
        in_p95=percentiles[1],
        in_p99=percentiles[2],
        offline_ms=column[Sum.OFFLINE_MS],
        silent_ms=column[Sum.SILENT_MS],
        under_min_isr_ms=column[Sum.UNDER_MIN_ISR_MS],
        under_replicated_ms=column[Sum.UNDER_REPLICATED_MS],
        truncated=column[Sum.TRUNCATED],
        records_in_gap=column[Sum.RECORDS_IN_GAP],
        rewound=column[Sum.REWOUND],
        records_out_gap=column[Sum.RECORDS_OUT_GAP],
    )


def series(rollups: Rollups, key: Key, column: Sum, end_s: int, length_s: int, step_s: int) -> Floats:
    """Return a column's rates per second for `length_s` seconds, one value per step of `step_s`.

    The last step contains second `end_s − 1`. NaN if no second of a step is known. Steps begin at multiples
    of `step_s`, so that a value does not change as time passes. The last step counts the seconds up to
    `end_s`, or for records out, the seconds up to where they are known.
    """
    rates: Floats = series_of(rollups, [key], column, end_s, length_s, step_s)[0]
    return rates


def series_of(
    rollups: Rollups, keys: Sequence[Key], column: Sum, end_s: int, length_s: int, step_s: int
) -> Floats:
    """Return the series of each of `keys`: [keys, steps]."""
    steps = length_s // step_s
    last_s = -(-end_s // step_s) * step_s
    first_s = last_s - steps * step_s
    known = _known(rollups, first_s, end_s - (OUT_SETTLES_S if column is Sum.RECORDS_OUT else 0))
    values = np.zeros((len(keys), steps * step_s))
    counts = np.zeros(steps * step_s)
    if known:
        at = slice(known.start - first_s, known.stop - first_s)
        values[:, at] = _seconds(rollups, _rows(rollups, keys), known, column)
        counts[at] = 1
    counted = counts.reshape(steps, step_s).sum(axis=1)
    counted[counted == 0] = np.nan
    rates: Floats = values.reshape(len(keys), steps, step_s).sum(axis=2) / counted
    return rates


_AT = {column: at for at, column in enumerate(SUMS)}


def _rows(rollups: Rollups, keys: Sequence[Key]) -> Longs:
    """Return the keys' rows in blocks, −1 for a key that is not there."""
    places = {key: row for row, key in enumerate(rollups.keys)}
    return np.array([places.get(key, -1) for key in keys], np.int64)


def _known(rollups: Rollups, begin_s: int, end_s: int) -> range:
    """Return the complete seconds among begin_s … end_s − 1."""
    if rollups.from_ms == UNKNOWN or rollups.until_ms == UNKNOWN:
        return range(begin_s, begin_s)
    first = max(begin_s, -(-rollups.from_ms // 1000))
    return range(first, max(first, min(end_s, whole_until_s(rollups, rollups.until_ms))))


def _pieces(
    rollups: Rollups, rows: Longs, seconds: range
) -> Iterator[tuple[Block, np.ndarray[tuple[int], np.dtype[np.int64]], slice, slice]]:
    """Yield the blocks that contain some of these seconds.

    Each block comes with the indices of `rows` that it has, and with the slices of these seconds in the block
    and in the range.
    """
    for block in rollups.blocks:
        begin_s = block.minute * BLOCK_S
        first, last = max(begin_s, seconds.start), min(begin_s + BLOCK_S, seconds.stop)
        if first < last:
            here = np.flatnonzero((rows >= 0) & (rows < block.topic_partitions.shape[0]))
            yield (
                block,
                here,
                slice(first - begin_s, last - begin_s),
                slice(first - seconds.start, last - seconds.start),
            )


def _summed(figures: Longs, rows: Longs, there: slice) -> Longs:
    """Return sums over seconds of some rows of [columns, rows, seconds].

    Picking rows copies them. So if there are many rows, all rows are summed up first.
    """
    if 2 * len(rows) < figures.shape[1]:
        few: Longs = figures[:, rows, there].sum(axis=2)
        return few
    every: Longs = figures[:, :, there].sum(axis=2)
    return every[:, rows]


def _seconds(rollups: Rollups, rows: Longs, seconds: range, column: Sum) -> Longs:
    """Return a column's value in each second: [rows, seconds]."""
    values = np.zeros((len(rows), len(seconds)), np.int64)
    for block, here, there, at in _pieces(rollups, rows, seconds):
        values[here, at] = block.sums[_AT[column]][rows[here], there]
    return values


def _percentiles(values: Longs) -> list[Longs]:
    """Return PERCENTS of each row by nearest rank."""
    count = values.shape[1]
    if not count:
        return [np.full(len(values), UNKNOWN, np.int64) for _ in PERCENTS]
    ranks = [nearest_rank(percent, count) - 1 for percent in PERCENTS]
    ordered = np.partition(values, ranks, axis=1)
    return [ordered[:, rank] for rank in ranks]


class _Hottest:
    """The hottest partition of each row, and its rate.

    `names` has the partition with the greatest sum of rates over the seconds in which it was the hottest. Of
    equally hot partitions it is the first by name, and it is None if nothing came in. `total` is the sum of
    every second's hottest rate.
    """

    def __init__(self, rollups: Rollups, rows: Longs, seconds: range) -> None:
        self.total = np.zeros(len(rows), np.int64)
        self.names: list[tuple[str, int] | None] = [None] * len(rows)
        owners, places, rates = [], [], []
        for block, here, there, _ in _pieces(rollups, rows, seconds):
            rate, place = block.hottest_rate[rows[here], there], block.hottest[rows[here], there]
            self.total[here] += rate.sum(axis=1)
            # An entry is a run of seconds with the same hottest partition. Usually there is one per minute.
            starts = np.flatnonzero(_begins(place))
            owners.append(here[starts // place.shape[1]])
            places.append(place.ravel()[starts])
            rates.append(np.add.reduceat(rate.ravel(), starts) if len(starts) else starts)
        if owners:
            self._find(rollups, np.concatenate(owners), np.concatenate(places), np.concatenate(rates))

    def _find(self, rollups: Rollups, owners: Longs, places: Longs, rates: Longs) -> None:
        there = places >= 0
        owners, places, rates = owners[there], places[there], rates[there]
        if not len(owners):
            return
        # Sorting numbers that combine row, partition and entry is much faster than sorting indices.
        entries = len(owners)
        ordered = np.sort((owners * len(rollups.partitions) + places) * entries + np.arange(entries))
        pair, entry = np.divmod(ordered, entries)
        starts = np.flatnonzero(np.diff(pair, prepend=-1))
        sums = np.add.reduceat(rates[entry], starts)
        row, place = np.divmod(pair[starts], len(rollups.partitions))
        begins = np.flatnonzero(np.diff(row, prepend=-1))
        greatest = np.repeat(np.maximum.reduceat(sums, begins), np.diff(begins, append=len(row)))
        best = sums == greatest
        for owner, at in zip(row[best].tolist(), place[best].tolist(), strict=True):
            held, named = self.names[owner], rollups.partitions[at]
            if held is None or named < held:
                self.names[owner] = named


def _begins(places: Longs) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return a flat mask, row after row, of the seconds in which the hottest partition changed."""
    begins = np.ones(places.shape, np.bool_)
    begins[:, 1:] = places[:, 1:] != places[:, :-1]
    return begins.ravel()


def _skew(
    rollups: Rollups, keys: Sequence[Key], rows: Longs, seconds: range, records: Longs, hottest: Longs
) -> Floats:
    """Return all hottest rates ÷ (all records in ÷ mean partitions).

    The mean leaves out seconds without any partition.
    """
    partitions = np.zeros(len(rows))
    counted = np.zeros(len(rows))
    of_topic = np.array([key.kind is Kind.TOPIC for key in keys], np.bool_)
    for block, here, there, _ in _pieces(rollups, rows, seconds):
        active = block.sums[_AT[Sum.ACTIVE_MS]][rows[here], there] / 1000
        held = np.where(of_topic[here, None], block.topic_partitions[rows[here], there], active)
        partitions[here] += held.sum(axis=1)
        counted[here] += (held > 0).sum(axis=1)
    skews = np.full(len(rows), np.nan)
    some = (records > 0) & (counted > 0) & (hottest > 0)
    skews[some] = skew(hottest[some], partitions[some], counted[some], records[some])
    return skews
