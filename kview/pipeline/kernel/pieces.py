"""Rows of deltas as numpy columns, and their parts in the seconds that they touch.

The increase over an interval is split over the seconds of that interval, in proportion to the part of each
second that the interval covers. The shares are integers, rounded by the largest-remainder method (if two
remainders are equal, the earlier second gets more). So nothing is lost or invented, and the roll-ups of parts
add up to the roll-ups of everything.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kview.model.sums import BLOCK_S, INTERNAL_TOPICS
from kview.pipeline.kernel.tables import AT_END, SPREAD, STATES
from kview.pipeline.kernel.words import Bools, Longs, Words

SetBacks = Sequence[tuple[int, int]]
"""(sequence, second) of each time the clock was set back: observations before that sequence do not count from
that second on."""

NAMES_IN_ROWS = {
    "since_ms": "began_ms",
    "records_in": "records",
    "records_out": "records",
    "truncated": "fell",
    "rewound": "fell",
    "records_in_gap": "in_gap",
    "records_out_gap": "in_gap",
}
"""Column of a recording's deltas (`kview.recording.schema`) → column of `Rows`, where the two differ. Those
of partitions and of groups' offsets become one: `records` are incoming or outgoing, `fell` are truncated or
rewound."""

_NUMBERS = (*SPREAD, *AT_END, "record_centibytes", "state_ms", *STATES)

NO_ID = -(1 << 31)
"""Stands for a leader that is null."""

FALSE, TRUE, NULL = range(3)
"""Whether a row is about an internal topic. Rows of observations are about none."""


@dataclass(slots=True)
class Rows:
    """Rows of the deltas of partitions and of groups, and one per observation. Words are codes of `Words`, −1
    for null, and other nulls are 0."""

    sequence: Longs
    observed_ms: Longs
    topic: Longs
    partition: Longs
    leader: Longs
    rack: Longs
    group: Longs
    internal: Longs
    topic_partitions: Longs
    began_ms: Longs
    ended_ms: Longs
    numbers: dict[str, Longs]
    """The columns that are not 0 in every row."""

    @classmethod
    def of(cls, batch: pa.RecordBatch, words: Words) -> "Rows":
        """Return the rows of a batch of a part of a segment."""
        there = {NAMES_IN_ROWS.get(name, name): batch.column(name) for name in batch.schema.names}
        if "topic" not in there:
            there = {"sequence": there["sequence"], "observed_ms": there["ended_ms"]}
        count = batch.num_rows

        def longs(name: str, null: int = 0) -> Longs:
            if name not in there:
                return np.full(count, null, np.int64)
            column = there[name].cast(pa.int64())
            column = pc.fill_null(column, null) if column.null_count else column
            numbers: Longs = column.to_numpy(zero_copy_only=False)
            return numbers

        def codes(name: str) -> Longs:
            return words.codes(there[name]) if name in there else np.full(count, -1, np.int64)

        def counts(name: str) -> bool:
            column = there.get(name)
            return column is not None and not (pa.types.is_boolean(column.type) and not column.true_count)

        ended_ms = longs("ended_ms")
        topic, internal = codes("topic"), longs("internal", NULL)
        if (unknown := internal == NULL).any():
            places = [words.place(name) for name in INTERNAL_TOPICS]
            guessed = np.where(topic < 0, NULL, np.isin(topic, places))
            internal = np.where(unknown, guessed, internal)
        return cls(
            sequence=longs("sequence"),
            observed_ms=longs("observed_ms"),
            topic=topic,
            partition=longs("partition"),
            leader=longs("leader", NO_ID),
            rack=codes("leader_rack"),
            group=codes("group"),
            internal=internal,
            topic_partitions=longs("topic_partitions", -1),
            # A row that ends before it begins has no seconds: it must not end the report on all the others.
            began_ms=np.minimum(longs("began_ms"), ended_ms),
            ended_ms=ended_ms,
            numbers={name: values for name in _NUMBERS if counts(name) and (values := longs(name)).any()},
        )

    def __len__(self) -> int:
        return len(self.sequence)

    def number(self, name: str) -> Longs:
        """Return a column that may be 0 in every row."""
        column = self.numbers.get(name)
        return np.zeros(len(self), np.int64) if column is None else column

    def counted(self) -> Bools:
        """Return which rows have something that counts in the seconds of their intervals."""
        names = ("records", "replicated", *AT_END)
        some = (self.numbers[name] for name in names if name in self.numbers)
        return np.asarray(sum(some, np.zeros(len(self), np.int64)) > 0, np.bool_)

    def take(self, at: Longs) -> "Rows":
        """Return the rows at these places."""
        names = [name for name in self.__slots__ if name != "numbers"]
        numbers = {name: values[at] for name, values in self.numbers.items()}
        return Rows(**{name: getattr(self, name)[at] for name in names}, numbers=numbers)


class Spans:
    """The seconds that rows touch."""

    def __init__(self, rows: Rows) -> None:
        began_ms, ended_ms = rows.began_ms, rows.ended_ms
        counted = rows.counted()
        records, state_ms = rows.number("records"), rows.number("state_ms")
        held = state_ms > 0
        seen_s = rows.observed_ms // 1000
        self.held_from_ms = rows.observed_ms - state_ms
        self.length_ms = ended_ms - began_ms
        self.first_s = began_ms // 1000
        self.last_s = (np.maximum(ended_ms, began_ms + 1) - 1) // 1000
        self.end_s = ended_ms // 1000
        """The second to which `fell` and `in_gap` belong."""
        # A delta without an interval belongs to the second in which it was seen.
        far = np.iinfo(np.int64).max
        from_s = np.minimum(
            np.where(counted, self.first_s, far), np.where(held, self.held_from_ms // 1000, far)
        )
        to_s = np.maximum(
            np.where(counted, self.end_s, -1), np.where(held, (rows.observed_ms - 1) // 1000, -1)
        )
        self.from_s = np.where(from_s == far, seen_s, from_s)
        self.to_s = np.where(to_s < 0, seen_s, to_s)
        self.rate = records * 1000 // np.maximum(self.length_ms, 1)
        self.has_rate = (records > 0) & (self.length_ms > 0)


class Pieces:
    """The parts of rows in the seconds that they touch.

    `at` is the row of each piece, `second` its second.
    """

    def __init__(self, rows: Rows, spans: Spans, set_backs: SetBacks) -> None:
        self._rows, self._spans = rows, spans
        counts = spans.to_s - spans.from_s + 1
        at = np.repeat(np.arange(len(rows)), counts)
        second = np.repeat(spans.from_s - (np.cumsum(counts) - counts), counts) + np.arange(len(at))
        for sequence, since_s in set_backs:
            kept = (rows.sequence[at] >= sequence) | (second < since_s)
            at, second = at[kept], second[kept]
        self.at: Longs = at
        self.second: Longs = second
        self.overlap_ms = self._overlap_ms(rows.began_ms, rows.ended_ms)
        place, length = second - spans.first_s[at], (spans.last_s - spans.first_s)[at]
        self._is_first, self._is_last = place == 0, place == length
        self._is_only = np.flatnonzero(self._is_first & self._is_last)
        self._place = place

    def _overlap_ms(self, began_ms: Longs, ended_ms: Longs, some: Longs | slice = slice(None)) -> Longs:
        at, begins_ms = self.at[some], self.second[some] * 1000
        overlap = np.minimum(ended_ms[at], begins_ms + 1000) - np.maximum(began_ms[at], begins_ms)
        overlap_ms: Longs = np.maximum(overlap, 0)
        return overlap_ms

    def share(self, name: str) -> Longs | None:
        """Return the pieces' shares of a figure, by the largest remainder. None if they are all 0."""
        value, spans = self._rows.numbers.get(name), self._spans
        if value is None:
            return None
        length_ms = np.maximum(spans.length_ms, 1)
        between = spans.last_s - spans.first_s - 1
        first_ms = spans.first_s * 1000 + 1000 - self._rows.began_ms
        last_ms = self._rows.ended_ms - spans.last_s * 1000
        # Of two seconds, the one with the larger remainder gets what is left over, so shares are rounded.
        first = (2 * value * first_ms + length_ms) // (2 * length_ms)
        last = value - first
        shares: Longs = np.where(self._is_first, first[self.at], last[self.at])
        shares[self._is_only] = value[self.at[self._is_only]]
        if (between > 0).any():
            many = np.flatnonzero((between > 0)[self.at])
            rows = self.at[many]
            shares[many] = self._of_many(
                value[rows], length_ms[rows], between[rows], first_ms[rows], last_ms[rows], many
            )
        shares[self.overlap_ms == 0] = 0
        return shares

    def _of_many(
        self, value: Longs, length_ms: Longs, between: Longs, first_ms: Longs, last_ms: Longs, many: Longs
    ) -> Longs:
        """Return the shares of pieces whose interval has full seconds between the first and the last one."""
        first, mid, last = (value * ms % length_ms for ms in (first_ms, 1000, last_ms))
        left_over = (first + between * mid + last) // length_ms
        is_first, is_last = self._is_first[many], self._is_last[many]
        turn = np.where(
            is_first,
            np.where(mid > first, between, 0) + (last > first),
            np.where(
                is_last,
                (first >= last) + np.where(mid >= last, between, 0),
                self._place[many] - 1 + (first >= mid) + (last > mid),
            ),
        )
        share: Longs = value * self.overlap_ms[many] // length_ms + (turn < left_over)
        return share

    def at_end(self, name: str) -> Longs | None:
        """Return a figure that belongs to the second in which its interval ended."""
        value = self._rows.numbers.get(name)
        if value is None:
            return None
        return np.where(self.second == self._spans.end_s[self.at], value[self.at], 0)

    def held_ms(self, name: str) -> Longs | None:
        """Return for how many ms a state held in each piece, None if no row has the state."""
        state = self._rows.numbers.get(name)
        if state is None:
            return None
        some = np.flatnonzero(state[self.at])
        held_ms = np.zeros(len(self.at), np.int64)
        held_ms[some] = self._overlap_ms(self._spans.held_from_ms, self._rows.observed_ms, some)
        return held_ms

    def active_ms(self) -> Longs | None:
        """Return how long records came in."""
        records = self._rows.numbers.get("records")
        return None if records is None else np.where(records[self.at] > 0, self.overlap_ms, 0)

    @property
    def has_rate(self) -> Bools:
        """Whether records came in at a known rate."""
        has_rate: Bools = self._spans.has_rate[self.at] & (self.overlap_ms > 0)
        return has_rate


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
        begun, ended = (_slots(shares.second, tail_s) for shares in (self.first, self.last))
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
            Shares(rest.at, _slots(rest.second, tail_s), rest.sums, rest.rates),
        )


def _slots(second: Longs, tail_s: int) -> Longs:
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
