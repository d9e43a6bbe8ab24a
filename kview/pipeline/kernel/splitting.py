"""Rows of deltas, split over the seconds that they touch."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from kview.model.sums import BLOCK_S
from kview.pipeline.kernel.pieces import Pieces, Rows, SetBacks, Spans
from kview.pipeline.kernel.tables import AT_END, SPREAD, STATES
from kview.pipeline.kernel.words import Bools, Longs


@dataclass(frozen=True, slots=True)
class Shares:
    """What some rows have in some seconds. Columns that are 0 everywhere are left out of `sums`."""

    at: Longs | slice
    """The row of each share."""
    second: Longs
    sums: Mapping[str, Longs]
    rates: Longs | None
    """Records per second in the row's interval; −1 if the share has no part of it, or nothing came in."""

    def some(self, mask: Bools) -> "Shares":
        """Return the shares for which the mask is true."""
        at = np.flatnonzero(mask) if isinstance(self.at, slice) else self.at[mask]
        sums = {name: values[mask] for name, values in self.sums.items()}
        return Shares(at, self.second[mask], sums, None if self.rates is None else self.rates[mask])


class Split:
    """Rows split over the seconds that they touch.

    Nearly all rows touch one second, or two that follow each other. Their shares are columns as long as the
    rows, so nothing has to be expanded: `first` are those of the seconds in which their intervals begin,
    `last` those of the seconds in which they end (zeros if that is the same one). `rest` is what remains:
    other rows, among them those that begin before `head_s`, and how long states held.
    """

    def __init__(self, rows: Rows, head_s: int, set_backs: SetBacks) -> None:
        length_ms = rows.ended_ms - rows.began_ms
        first_s, end_s = rows.began_ms // 1000, rows.ended_ms // 1000
        simple = rows.counted() & (length_ms > 0) & (end_s - first_s <= 1) & (first_s >= head_s)
        for sequence, since_s in set_backs:
            simple &= (rows.sequence >= sequence) | (end_s < since_s)
        others = ~simple
        if "state_ms" in rows.numbers:
            others |= rows.numbers["state_ms"] > 0
        self.rest = _rest(rows, np.flatnonzero(others), simple, set_backs)
        numbers, began_ms = rows.numbers, rows.began_ms
        at: Longs | slice = slice(None)
        if not simple.all():
            at = np.flatnonzero(simple)
            length_ms, first_s, end_s, began_ms = (
                values[at] for values in (length_ms, first_s, end_s, began_ms)
            )
            numbers = {name: values[at] for name, values in numbers.items()}
        first_ms = np.minimum(first_s * 1000 + 1000 - began_ms, length_ms)
        last_ms = length_ms - first_ms
        spread = {name: numbers[name] for name in SPREAD if name in numbers}
        # Of two seconds, the one with the larger remainder gets what is left over, so shares are rounded.
        twice_first_ms, twice_ms = 2 * first_ms, 2 * length_ms
        begun = {name: (values * twice_first_ms + length_ms) // twice_ms for name, values in spread.items()}
        ended = {name: values - begun[name] for name, values in spread.items()}
        at_end = {name: numbers[name] for name in AT_END if name in numbers}
        rates = last_rates = None
        whole: dict[str, Longs] = {}
        if (records := numbers.get("records")) is not None:
            came = records > 0
            begun["active_ms"], ended["active_ms"] = first_ms * came, last_ms * came
            whole["active_ms"] = length_ms * came
            rates = records * 1000 // length_ms
            rates[~came] = -1
            last_rates = np.where(last_ms > 0, rates, -1)
        self.first = Shares(at, first_s, begun, rates)
        self.last = Shares(at, end_s, ended | at_end, last_rates)
        self._whole = spread | at_end | whole

    def by_slot(self, tail_s: int, head_s: int) -> tuple[Shares, Shares, Shares]:
        """Return the same shares with minutes in place of seconds, but with seconds from `tail_s` on.
        What is before the second `head_s` is left out."""
        begun, ended = (slots(shares.second, tail_s) for shares in (self.first, self.last))
        is_cut = begun != ended
        whole, last = self._whole, self.last.some(is_cut)
        if is_cut.any():
            whole = {name: values.copy() for name, values in whole.items()}
            for name, values in last.sums.items():
                whole[name][is_cut] -= values
        rest = self.rest.some(self.rest.second >= head_s)
        return (
            Shares(self.first.at, begun, whole, self.first.rates),
            Shares(last.at, ended[is_cut], last.sums, last.rates),
            Shares(rest.at, slots(rest.second, tail_s), rest.sums, rest.rates),
        )


def slots(second: Longs, tail_s: int) -> Longs:
    """Return the minutes of seconds, or these themselves from `tail_s` on."""
    minute = second // BLOCK_S * BLOCK_S
    return np.where(second >= tail_s, second, minute) if (second >= tail_s).any() else minute


def _rest(rows: Rows, at: Longs, simple: Bools, set_backs: SetBacks) -> Shares:
    """Return what `first` and `last` do not have of these rows, which may be simple: of those, the states."""
    some = rows.take(at)
    spans = Spans(some)
    others = ~simple[at]
    for name in (*SPREAD, *AT_END):
        if name in some.numbers:
            some.numbers[name] = some.numbers[name] * others
    pieces = Pieces(some, spans, set_backs)
    columns = {name: pieces.share(name) for name in SPREAD}
    columns |= {"active_ms": pieces.active_ms()}
    columns |= {name: pieces.at_end(name) for name in AT_END}
    columns |= {f"{name}_ms": pieces.held_ms(name) for name in STATES}
    sums = {name: values for name, values in columns.items() if values is not None}
    rates = np.where(pieces.has_rate & others[pieces.at], spans.rate[pieces.at], -1)
    return Shares(at[pieces.at], pieces.second, sums, rates)
