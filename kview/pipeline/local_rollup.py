"""The roll-ups of `kview.pipeline.rollup` and `kview.pipeline.minutes` in numpy, for what this process reads
itself. They are the same rows, to the last record.

Spark takes fifteen seconds to plan, compile and warm up for a million rows, and this takes one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kview.model.aggregates import BLOCK_S, INTERNAL_TOPICS
from kview.model.snapshot import Longs
from kview.pipeline.minutes import PEAK_SHIFT
from kview.pipeline.rollup import HOTTEST_SHIFT, NAMES_IN_DELTAS
from kview.pipeline.words import Words

Bools = np.ndarray[tuple[int], np.dtype[np.bool_]]
SetBacks = Sequence[tuple[int, int]]

STATES = ("offline", "silent", "under_min_isr", "under_replicated")
SPREAD = ("records", "replicated", "cross_rack")
_NUMBERS = (*SPREAD, "fell", "in_gap", "record_centibytes", "state_ms", *STATES)

NO_ID = -(1 << 31)
"""Stands for a leader that is null."""

FALSE, TRUE, NULL = range(3)
"""Whether a row is about an internal topic. Rows of observations are about none."""


@dataclass(slots=True)
class Rows:
    """Rows of DELTAS. Words are codes of `Words`, −1 for null, and other nulls are 0."""

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

    @classmethod
    def of(cls, batch: pa.RecordBatch, words: Words) -> "Rows":
        """Return the rows of a batch of a part of a segment."""
        there = {NAMES_IN_DELTAS.get(name, name): batch.column(name) for name in batch.schema.names}
        if "topic" not in there:
            there = {"sequence": there["sequence"], "observed_ms": there["ended_ms"]}
        count = batch.num_rows

        def longs(name: str, null: int = 0) -> Longs:
            if name not in there:
                return np.full(count, null, np.int64)
            found: Longs = pc.fill_null(there[name].cast(pa.int64()), null).to_numpy(zero_copy_only=False)
            return found

        def codes(name: str) -> Longs:
            return words.codes(there[name]) if name in there else np.full(count, -1, np.int64)

        topic, internal = codes("topic"), longs("internal", NULL)
        places = [words.place(name) for name in INTERNAL_TOPICS]
        guessed = np.where(topic < 0, NULL, np.isin(topic, places))
        return cls(
            sequence=longs("sequence"),
            observed_ms=longs("observed_ms"),
            topic=topic,
            partition=longs("partition"),
            leader=longs("leader", NO_ID),
            rack=codes("leader_rack"),
            group=codes("group"),
            internal=np.where(internal == NULL, guessed, internal),
            topic_partitions=longs("topic_partitions", -1),
            began_ms=longs("began_ms"),
            ended_ms=longs("ended_ms"),
            numbers={name: longs(name) for name in _NUMBERS},
        )

    def __len__(self) -> int:
        return len(self.sequence)

    def take(self, at: Longs) -> "Rows":
        """Return some rows."""
        names = [name for name in self.__slots__ if name != "numbers"]
        numbers = {name: values[at] for name, values in self.numbers.items()}
        return Rows(**{name: getattr(self, name)[at] for name in names}, numbers=numbers)


class Spans:
    """The seconds that rows touch, like `rollup.BOUNDED`."""

    def __init__(self, rows: Rows) -> None:
        numbers, began_ms, ended_ms = rows.numbers, rows.began_ms, rows.ended_ms
        counts = numbers["records"] + numbers["replicated"] + numbers["fell"] + numbers["in_gap"]
        counted, held = counts > 0, numbers["state_ms"] > 0
        seen_s = rows.observed_ms // 1000
        self.held_from_ms = rows.observed_ms - numbers["state_ms"]
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
        self.rate = numbers["records"] * 1000 // np.maximum(self.length_ms, 1)
        self.has_rate = (numbers["records"] > 0) & (self.length_ms > 0)


class Pieces:
    """The parts of rows in the seconds that they touch, like `rollup.PIECES`.

    `at` is the row of each piece, `second` its second.
    """

    def __init__(self, rows: Rows, spans: Spans, set_backs: SetBacks, head_s: int = 0) -> None:
        self._rows, self._spans = rows, spans
        counts = spans.to_s - spans.from_s + 1
        at = np.repeat(np.arange(len(rows)), counts)
        second = np.repeat(spans.from_s - (np.cumsum(counts) - counts), counts) + np.arange(len(at))
        kept = second >= head_s if head_s else None
        for sequence, since_s in set_backs:
            its = (rows.sequence[at] >= sequence) | (second < since_s)
            kept = its if kept is None else kept & its
        if kept is not None:
            at, second = at[kept], second[kept]
        self.at: Longs = at
        self.second: Longs = second
        self.overlap_ms = self._overlap_ms(rows.began_ms, rows.ended_ms)
        place, length = second - spans.first_s[at], (spans.last_s - spans.first_s)[at]
        self._is_first, self._is_last = place == 0, place == length
        self._place = place

    def _overlap_ms(self, began_ms: Longs, ended_ms: Longs) -> Longs:
        begins_ms = self.second * 1000
        overlap = np.minimum(ended_ms[self.at], begins_ms + 1000) - np.maximum(began_ms[self.at], begins_ms)
        found: Longs = np.maximum(overlap, 0)
        return found

    def share(self, name: str) -> Longs:
        """Return the pieces' shares of a figure, by the largest remainder, as `rollup.share` does."""
        value, spans = self._rows.numbers[name], self._spans
        if not value.any():
            return np.zeros(len(self.at), np.int64)
        length_ms = np.maximum(spans.length_ms, 1)
        between = spans.last_s - spans.first_s - 1
        first_ms = spans.first_s * 1000 + 1000 - self._rows.began_ms
        last_ms = self._rows.ended_ms - spans.last_s * 1000
        # Of two seconds, the one with the larger remainder gets what is left over, so shares are rounded.
        first = (2 * value * first_ms + length_ms) // (2 * length_ms)
        last = value - first
        found = np.where(self._is_first, first[self.at], last[self.at])
        found[self._is_first & self._is_last] = value[self.at[self._is_first & self._is_last]]
        if (between > 0).any():
            many = np.flatnonzero((between > 0)[self.at])
            rows = self.at[many]
            found[many] = self._of_many(
                value[rows], length_ms[rows], between[rows], first_ms[rows], last_ms[rows], many
            )
        found[self.overlap_ms == 0] = 0
        return found

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

    def at_end(self, name: str) -> Longs:
        """Return a figure that belongs to the second in which its interval ended."""
        value = self._rows.numbers[name]
        if not value.any():
            return np.zeros(len(self.at), np.int64)
        return np.where(self.second == self._spans.end_s[self.at], value[self.at], 0)

    def held_ms(self, name: str) -> Longs:
        """Return how long a state held in the pieces."""
        state = self._rows.numbers[name]
        if not state.any():
            return np.zeros(len(self.at), np.int64)
        overlap_ms = self._overlap_ms(self._spans.held_from_ms, self._rows.observed_ms)
        return np.where(state[self.at] > 0, overlap_ms, 0)

    @property
    def active_ms(self) -> Longs:
        """How long records came in."""
        return np.where(self._rows.numbers["records"][self.at] > 0, self.overlap_ms, 0)

    @property
    def has_rate(self) -> Bools:
        """Whether records came in at a known rate."""
        found: Bools = self._spans.has_rate[self.at] & (self.overlap_ms > 0)
        return found


def by_topic(rows: Rows, set_backs: SetBacks) -> tuple[Rows, dict[str, Longs]]:
    """Return sums by second, topic, leader, rack, group and whether it is internal: a row that has these
    names for each, and the columns."""
    spans = Spans(rows)
    pieces = Pieces(rows, spans, set_backs)
    keys = (rows.topic + 1, _near(rows.leader), rows.rack + 1, rows.group + 1, rows.internal)
    combined = Index(*keys)
    index = Index(_near(pieces.second), combined.at[pieces.at])
    centibytes = rows.numbers["record_centibytes"][pieces.at]
    records = pieces.share("records")
    sums = {
        "records": records,
        "centibytes": records * centibytes,
        **{name: pieces.share(name) for name in ("replicated", "cross_rack")},
        "active_ms": pieces.active_ms,
        **{name: pieces.at_end(name) for name in ("fell", "in_gap")},
        **{f"{name}_ms": pieces.held_ms(name) for name in STATES},
    }
    rate = spans.rate * HOTTEST_SHIFT + rows.partition
    found = {name: index.sums(values) for name, values in sums.items()}
    found["hottest"] = index.most(np.where(pieces.has_rate, rate[pieces.at], -1))
    found["topic_partitions"] = index.most(rows.topic_partitions[pieces.at])
    found["second"] = pieces.second[index.example]
    return rows.take(pieces.at[index.example]), found


def by_partition(
    rows: Rows, head_s: int, tail_s: int, set_backs: SetBacks
) -> tuple[Longs, Longs, Mapping[str, Longs]]:
    """Return sums by minute, topic and partition: topics, partitions, and the columns of `minutes`."""
    rows = (
        rows
        if (rows.group < 0).all() and (rows.topic >= 0).all()
        else rows.take(np.flatnonzero((rows.group < 0) & (rows.topic >= 0)))
    )
    spans = Spans(rows)

    def slot(second: Longs) -> Longs:
        return np.where(second >= tail_s, second, second // BLOCK_S * BLOCK_S)

    whole = (spans.from_s >= head_s) & (slot(spans.from_s) == slot(spans.to_s))
    for sequence, since_s in set_backs:
        whole &= (rows.sequence >= sequence) | (spans.to_s < since_s)
    at, cut = np.flatnonzero(whole), rows.take(np.flatnonzero(~whole))
    pieces = Pieces(cut, cut_spans := Spans(cut), set_backs, head_s)
    numbers = rows.numbers
    parts: dict[str, tuple[Longs, Longs]] = {
        **{name: (numbers[name][at], pieces.share(name)) for name in SPREAD},
        **{name: (numbers[name][at], pieces.at_end(name)) for name in ("fell", "in_gap")},
        "active_ms": (np.where(numbers["records"] > 0, spans.length_ms, 0)[at], pieces.active_ms),
        **{
            f"{name}_ms": (np.where(numbers[name] > 0, numbers["state_ms"], 0)[at], pieces.held_ms(name))
            for name in STATES
        },
        "centibytes": (numbers["record_centibytes"][at], cut.numbers["record_centibytes"][pieces.at]),
        "slot": (slot(spans.from_s)[at], slot(pieces.second)),
        "topic": (rows.topic[at], cut.topic[pieces.at]),
        "partition": (rows.partition[at], cut.partition[pieces.at]),
        "internal": (rows.internal[at], cut.internal[pieces.at]),
        "peak": (
            np.where(spans.has_rate, (spans.rate << PEAK_SHIFT) + spans.first_s, -1)[at],
            np.where(pieces.has_rate, ((cut_spans.rate << PEAK_SHIFT) + cut_spans.first_s)[pieces.at], -1),
        ),
    }
    of = {name: np.concatenate(two) for name, two in parts.items()}
    index = Index(_near(of["slot"]), of["topic"], of["partition"])
    sums = {
        "records_in": of["records"],
        "centibytes_in": of["records"] * of["centibytes"],
        "replicated": of["replicated"],
        "replicated_centibytes": of["replicated"] * of["centibytes"],
        "cross_rack": of["cross_rack"],
        "cross_rack_centibytes": of["cross_rack"] * of["centibytes"],
        "active_ms": of["active_ms"],
        "truncated": of["fell"],
        "records_in_gap": of["in_gap"],
        **{f"{name}_ms": of[f"{name}_ms"] for name in STATES},
    }
    found = {name: index.sums(values) for name, values in sums.items()}
    found |= {"peak": index.most(of["peak"])}
    found |= {name: of[name][index.example] for name in ("slot", "internal")}
    return of["topic"][index.example], of["partition"][index.example], found


class Index:
    """Numbers the different combinations of some keys, which are 0 or more."""

    def __init__(self, *keys: Longs) -> None:
        key, size = np.zeros(len(keys[0]), np.int64), 1
        for one in keys:
            width = int(one.max()) + 1 if len(one) else 1
            key, size = key * width + one, size * width
        if size <= 4 * len(key) + 1_000:
            # A table of all combinations takes less time than sorting the keys.
            last = np.full(size, -1, np.int64)
            last[key] = np.arange(len(key))
            there = np.flatnonzero(last >= 0)
            places = np.empty(size, np.int64)
            places[there] = np.arange(len(there))
            self.at, self.example = places[key], last[there]
        else:
            _, self.example, self.at = np.unique(key, return_index=True, return_inverse=True)
        self.count = len(self.example)
        """`at` is the number of each row's combination, `example` a row of each combination."""

    def sums(self, values: Longs) -> Longs:
        """Return the sums of values per combination."""
        found = np.zeros(self.count, np.int64)
        if values.any():
            np.add.at(found, self.at, values)
        return found

    def most(self, values: Longs) -> Longs:
        """Return the greatest value per combination, at least −1."""
        found = np.full(self.count, -1, np.int64)
        np.maximum.at(found, self.at, values)
        return found


def _near(values: Longs) -> Longs:
    """Return values as small numbers from 0 on."""
    if not len(values):
        return values
    least, most = int(values.min()), int(values.max())
    if most - least <= len(values) + 1_000:
        return values - least
    return np.unique(values, return_inverse=True)[1]
