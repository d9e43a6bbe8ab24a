"""The table below the plots of the throughput screen: rates and their distribution by window."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from kview.derive.windows import WINDOWS_S, Window, window_of
from kview.language import words
from kview.model.aggregates import Key, Kind, Rollups
from kview.model.units import UNKNOWN
from kview.tui.text import Line, Role, Span, line, pad

LABEL_CELLS, WINDOW_CELLS = 14, 8
LONG_RATE = 99_999.5
"""From this value on, a rate is shown with a prefix instead of its last digits."""
TABLE_CELLS = LABEL_CELLS + len(WINDOWS_S) * WINDOW_CELLS


def figure_lines(rollups: Rollups, key: Key, end_s: int, longest_s: int, size: tuple[int, int]) -> list[Line]:
    """Return rates and their distribution by window. The longest window covers at least `longest_s`, the
    time that the plots show.

    They are in two columns if there is room, otherwise as many as fit in one column.
    """
    is_longer = longest_s > WINDOWS_S[-1]
    lengths_s = (*WINDOWS_S[1:], longest_s) if is_longer else WINDOWS_S
    windows = [window_of(rollups, [key], end_s, length_s) for length_s in lengths_s]
    figures = list(_figure_lines(windows, key))
    cells, rows = size
    covered_s = windows[-1].covered_s
    so_far = f"/s ({words.state_age(0, covered_s * 1000, False)} so far)"
    label = so_far if covered_s < lengths_s[-1] else "RECORDS /s"
    lengths = [words.duration(length_s * 1000, tenths=False) for length_s in lengths_s]
    head = _table_line(label, lengths, Role.HEAD, Role.DIM)
    if cells < 2 * TABLE_CELLS or len(figures) < 4:
        kept = sorted(sorted(figures)[: max(0, rows - 1)], key=figures.index)
        return [pad(made, cells) for made in (head, *(figure.line for figure in kept))][:rows]
    half = -(-len(figures) // 2)
    lefts, rights = [[head, *(figure.line for figure in side)] for side in (figures[:half], figures[half:])]
    wide = cells // 2
    return [(*pad(left, wide), *right) for left, right in zip(lefts, rights, strict=True)][:rows]


class Figure(NamedTuple):
    """A line of figures. If there is no room for all lines, those of the highest rank are left out."""

    rank: int
    line: Line


def _figure_lines(windows: Sequence[Window], key: Key) -> Iterator[Figure]:
    """Yield the ten lines of the cluster, a topic, a rack or a broker, or the two lines of a group."""

    def of(rank: int, label: str, read: Callable[[Window], str]) -> Figure:
        return Figure(rank, _table_line(label, [read(found) for found in windows]))

    out = of(1, "out", lambda found: _rate(float(found.out_rate[0])))
    if key.kind is Kind.GROUP:
        yield from (out, Figure(2, _hottest(windows[-1])))
        return
    yield of(0, "in", lambda found: _rate(float(found.in_rate[0])))
    yield out
    yield of(9, "replicated", lambda found: _rate(float(found.replicated_rate[0])))
    yield of(3, "across racks", lambda found: _rate(float(found.cross_rack_rate[0])))
    yield of(2, "bytes in ≈", lambda found: _bytes(float(found.bytes_rate[0])))
    yield of(4, "in, p50", lambda found: _rate(float(found.in_p50[0])))
    yield of(8, "in, p95", lambda found: _rate(float(found.in_p95[0])))
    yield of(5, "in, p99", lambda found: _rate(float(found.in_p99[0])))
    yield of(6, "hottest ÷ mean", lambda found: _ratio(float(found.skew[0])))
    yield Figure(7, _hottest(windows[-1]))


def _hottest(found: Window) -> Line:
    """Return the line of the partition that was the hottest in the longest window."""
    hottest = found.hottest[0]
    name = f"{hottest[0]}-{hottest[1]}" if hottest else words.NONE
    room = TABLE_CELLS - LABEL_CELLS
    return line(Span(f" {'hottest':<{LABEL_CELLS - 1}}", Role.DIM), *pad(line(name), room, right=True))


def _table_line(label: str, values: Sequence[str], role: Role = Role.DIM, of: Role = Role.TEXT) -> Line:
    head = f" {label:<{LABEL_CELLS - 1}}"
    first = LABEL_CELLS + WINDOW_CELLS - len(head)  # A long label takes cells from a short figure.
    cells = (f"{value:>{WINDOW_CELLS if place else first}}" for place, value in enumerate(values))
    return line(Span(head, role), *(Span(cell, of) for cell in cells))


def _rate(per_second: float) -> str:
    """Return a rate in at most seven cells."""
    if per_second == UNKNOWN:
        return words.NONE
    return words.si(per_second) if per_second >= LONG_RATE else words.rate(per_second)


def _ratio(value: float) -> str:
    return f"{value:.1f}" if math.isfinite(value) else words.NONE


def _bytes(rate: float) -> str:
    return words.size(round(rate)) if math.isfinite(rate) else words.NONE
