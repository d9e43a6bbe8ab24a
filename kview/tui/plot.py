"""Curves out of characters: a braille plot of several series, and sparklines. Pure.

Written here and not with plotext because a panel redraws within a key press: 0.3 s to import that library is
a sixth of the time until the first data are on the screen.
"""

import math
from collections.abc import Sequence

from kview.tui.glyphs import BRAILLE, LEVELS

DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""A braille character's bits by row and column of its dots."""

_STEPS = (1, 2, 5)


def sparkline(values: Sequence[float], cells: int) -> str:
    """The last `cells` values as levels from 0 to a round number; a gap where one is not known;
    right-aligned."""
    shown = values[-cells:] if cells > 0 else ()
    greatest = max((v for v in shown if math.isfinite(v)), default=0.0)
    top = nice_top(greatest) if greatest > 0 else 0.0
    signs = [" " if not math.isfinite(v) else level(v, top) for v in shown]
    return "".join(signs).rjust(cells)


def level(value: float, top: float) -> str:
    """One character for `value` between 0 and `top`."""
    if top <= 0:
        return LEVELS[0]
    return LEVELS[min(len(LEVELS) - 1, max(0, int(value / top * len(LEVELS))))]


def nice_top(value: float) -> float:
    """The least of 1, 2, 5 × a power of ten that is not below `value`: an axis that does not jump with every
    sample."""
    if not math.isfinite(value) or value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next((step * power for step in _STEPS if step * power >= value * 0.999), 10 * power)


def curve(values: Sequence[float], cells: int, rows: int, top: float, braille: bool) -> list[str]:
    """`values` over the whole width as `rows` strings of `cells`, the top row first; a gap where one is not
    known.

    Values lie between 0 and `top`; consecutive ones are joined. In ASCII one `*` stands per column.
    """
    if cells <= 0 or rows <= 0:
        return []
    across, down = (2, 4) if braille else (1, 1)
    heights = _heights(values, cells * across, rows * down, top)
    grid = [[0] * cells for _ in range(rows)]
    previous: int | None = None
    for x, height in enumerate(heights):
        if height is not None:
            low, high = (height, height) if previous is None else _between(previous, height)
            for y in range(low, high + 1):
                from_top = rows * down - 1 - y
                bit = DOTS[from_top % down][x % across] if braille else 1
                grid[from_top // down][x // across] |= bit
        previous = height
    if braille:
        return ["".join(chr(BRAILLE + bits) if bits else " " for bits in row) for row in grid]
    return ["".join("*" if bits else " " for bits in row) for row in grid]


def _between(previous: int, height: int) -> tuple[int, int]:
    """The dots from the one after `previous` to `height`, so that a steep curve has no holes and no double
    dots."""
    if height > previous:
        return previous + 1, height
    if height < previous:
        return height, previous - 1
    return height, height


def _heights(values: Sequence[float], columns: int, dots: int, top: float) -> list[int | None]:
    """The dot of each column, from 0 at the bottom, by straight lines between the samples."""
    last = len(values) - 1
    heights: list[int | None] = []
    for x in range(columns):
        at = x * last / max(columns - 1, 1) if last > 0 else 0.0
        left = math.floor(at)
        right = left if at == left else min(left + 1, last)
        if last < 0 or not (math.isfinite(values[left]) and math.isfinite(values[right])):
            heights.append(None)
            continue
        value = values[left] + (values[right] - values[left]) * (at - left)
        heights.append(min(dots - 1, max(0, round(value / top * (dots - 1)))))
    return heights
