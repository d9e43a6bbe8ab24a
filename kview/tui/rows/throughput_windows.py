"""The table below the plots of the throughput screen: rates and their distribution by window."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from kview.derive.windows import OUT_SETTLES_S, WINDOWS_S, Window, window_of
from kview.language import words
from kview.model.aggregates import Key, Rollups
from kview.model.sums import Kind
from kview.model.units import UNKNOWN
from kview.tui.text import EMPTY, Line, Role, Span, line, pad

LABEL_CELLS, WINDOW_CELLS = 14, 8
FIGURE_LINES = 12
"""The most lines of figures in one column."""
LONG_RATE = 99_999.5
"""From this value on, a rate is shown with a prefix instead of its last digits."""
TABLE_CELLS = LABEL_CELLS + len(WINDOWS_S) * WINDOW_CELLS


def figure_lines(rollups: Rollups, key: Key, end_s: int, size: tuple[int, int]) -> list[Line]:
    """Return rates and their distribution over the windows before `end_s`, one block per unit.

    A window that is longer than what there is shows "–". The blocks are in two columns if there is room,
    otherwise as many lines as fit in one column.
    """
    cells, rows = size
    blocks = _blocks(_Windows(rollups, key, end_s))
    if cells >= 2 * TABLE_CELLS and len(blocks) > 1:
        lefts, rights = ([each.line for block in side for each in block] for side in (blocks[:1], blocks[1:]))
        taller = max(len(lefts), len(rights))
        lefts += [EMPTY] * (taller - len(lefts))
        rights += [EMPTY] * (taller - len(rights))
        wide = cells // 2
        return [(*pad(left, wide), *right) for left, right in zip(lefts, rights, strict=True)][:rows]
    every = [each for block in blocks for each in block]
    kept = sorted(every, key=lambda each: each.rank)[: max(0, rows)]
    return [pad(each.line, cells) for each in every if each in kept]


class Figure(NamedTuple):
    """A line of figures. If there is no room for all lines, those of the highest rank are left out."""

    rank: int
    line: Line


class _Windows:
    """The figures of a key in each window."""

    def __init__(self, rollups: Rollups, key: Key, end_s: int) -> None:
        self.key = key
        self.by_length = [window_of(rollups, [key], end_s, length_s) for length_s in WINDOWS_S]
        known_s = end_s - -(-rollups.from_ms // 1000)
        self._is_whole = [length_s <= known_s for length_s in WINDOWS_S]
        self._out_is_whole = [length_s <= known_s - OUT_SETTLES_S for length_s in WINDOWS_S]

    def row(self, rank: int, label: str, read: Callable[[Window], str], out: bool = False) -> Figure:
        """Return a line of figures, "–" for windows that are not full yet."""
        whole = self._out_is_whole if out else self._is_whole
        texts = [
            read(window) if full else words.NONE for window, full in zip(self.by_length, whole, strict=True)
        ]
        return Figure(rank, _table_line(label, texts))


def _blocks(windows: _Windows) -> list[list[Figure]]:
    """Return the blocks of figures: rates, and what is not a rate. A group only has a rate out."""
    lengths = [words.duration(length_s * 1000, tenths=False) for length_s in WINDOWS_S]
    head = Figure(-1, _table_line("RECORDS /s", lengths, Role.HEAD, Role.DIM))
    out = windows.row(1, "out", lambda window: _rate(float(window.out_rate[0])), out=True)
    hottest = Figure(7, _hottest(windows.by_length[-1]))
    if windows.key.kind is Kind.GROUP:
        return [[head, out, hottest]]
    rates = [
        head,
        windows.row(0, "in", lambda window: _rate(float(window.in_rate[0]))),
        out,
        windows.row(9, "replicated", lambda window: _rate(float(window.replicated_rate[0]))),
        windows.row(3, "across racks", lambda window: _rate(float(window.cross_rack_rate[0]))),
        windows.row(2, "bytes in ≈", lambda window: _bytes(float(window.bytes_rate[0]))),
    ]
    spread = [
        Figure(10, _table_line("IN, by second", lengths, Role.HEAD, Role.DIM)),
        windows.row(4, "p50", lambda window: _rate(float(window.in_p50[0]))),
        windows.row(8, "p95", lambda window: _rate(float(window.in_p95[0]))),
        windows.row(5, "p99", lambda window: _rate(float(window.in_p99[0]))),
        windows.row(6, "× mean", lambda window: _ratio(float(window.skew[0]))),
        hottest,
    ]
    return [rates, spread]


def _hottest(window: Window) -> Line:
    """Return the line of the partition that was the hottest in the longest window."""
    hottest = window.hottest[0]
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
