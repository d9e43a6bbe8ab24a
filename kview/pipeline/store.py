"""Adds up the roll-ups that have arrived, within limits of time and memory."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec.structs import replace
from numpy.typing import NDArray

from kview.model.aggregates import SET_BACK_MS, Block, Key, Rollups, no_rows
from kview.model.sums import BLOCK_S, SUMS, Kind
from kview.model.units import UNKNOWN

MAX_BYTES = 96 << 20
"""Room for an hour of 200 keys, or for the last minutes of thousands. The oldest minutes are dropped
first."""

MAX_MINUTES = 60
"""Limit of minutes in the store. The flight recorder reaches back just as far."""

LEAST_MINUTES = 6
"""Number of minutes that the size limit never drops, so that the longest window (five minutes) is
complete."""

MUCH_USED = 0.75
"""If a smaller share of a block's keys than this has figures, the block is rebuilt without the other keys."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """The rows of an arrived table that belong to one minute. `key` and `second` are indices into the
    block."""

    key: NDArray[np.int64]
    second: NDArray[np.int64]
    row: NDArray[np.int64]


class RollupStore:
    """Adds up what the live job sends. `rollups` is the frozen result."""

    def __init__(self) -> None:
        self.rollups = Rollups()
        self.last_sequence = -1
        """The number of the last observation in the roll-ups."""
        self._keys: dict[Key, int] = {}
        self._partitions: dict[tuple[str, int], int] = {}

    def add(self, arrived: pa.Table) -> None:
        """Add what `kview.pipeline.reading.next_rollups` returns, from observations after those already
        added."""
        columns = {
            name: arrived[name].to_numpy() for name in ("second", "last_sequence", "first_ms", "last_ms")
        }
        first_ms, last_ms = int(columns["first_ms"].min()), int(columns["last_ms"].max())
        if self.rollups.until_ms - first_ms > SET_BACK_MS:
            self._forget_from(first_ms)
        keys = np.array(
            [
                self._keys.setdefault(Key(Kind(kind), name), len(self._keys))
                for kind, name in zip(arrived["kind"].to_pylist(), arrived["name"].to_pylist(), strict=True)
            ]
        )
        sums = np.array([arrived[column].to_numpy() for column in SUMS])
        hottest = self._hottest(arrived["hottest"].to_pylist())
        parts = arrived["topic_partitions"].fill_null(0).to_numpy()
        blocks = {block.minute: block for block in self.rollups.blocks}
        minutes = columns["second"] // BLOCK_S
        for minute in np.unique(minutes).tolist():
            rows = np.flatnonzero(minutes == minute)
            piece = _Piece(keys[rows], columns["second"][rows] % BLOCK_S, rows)
            before = _grown(blocks.get(minute) or no_rows(minute, 0), len(self._keys))
            blocks[minute] = self._with(before, piece, sums, hottest, parts)
        kept = _newest([blocks[minute] for minute in sorted(blocks)])
        if len(kept) < len(blocks):
            kept = self._without_gone(kept)
        begin_ms = self.rollups.from_ms if self.rollups.from_ms != UNKNOWN else first_ms
        self.rollups = Rollups(
            keys=tuple(self._keys),
            partitions=tuple(self._partitions),
            blocks=kept,
            from_ms=max(begin_ms, kept[0].minute * BLOCK_S * 1000),
            until_ms=last_ms,
        )
        self.last_sequence = int(columns["last_sequence"].max())

    def _hottest(
        self, hottest_of_rows: list[dict[str, Any] | None]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return rates, and indices into `partitions`."""
        rates, places = np.zeros(len(hottest_of_rows), np.int64), np.full(len(hottest_of_rows), -1)
        for row, hottest in enumerate(hottest_of_rows):
            if hottest is not None:
                partition = (hottest["topic"], hottest["partition"])
                rates[row] = hottest["rate"]
                places[row] = self._partitions.setdefault(partition, len(self._partitions))
        return rates, places

    def _with(
        self,
        block: Block,
        piece: _Piece,
        sums: NDArray[np.int64],
        hottest: tuple[NDArray[np.int64], NDArray[np.int64]],
        parts: NDArray[np.int64],
    ) -> Block:
        """Add the rows of `piece` to the block and return it. The block must not share its arrays with an
        earlier one."""
        at = (piece.key, piece.second)
        block.sums[:, *at] += sums[:, piece.row]
        block.topic_partitions[at] = np.maximum(block.topic_partitions[at], parts[piece.row])
        rate, place = hottest[0][piece.row], hottest[1][piece.row]
        was, was_place = block.hottest_rate[at], block.hottest[at]
        hotter = rate > was
        names = tuple(self._partitions)
        for row in np.flatnonzero((rate == was) & (place >= 0) & (place != was_place)).tolist():
            # As in Spark, the greater name wins if two partitions are equally hot.
            hotter[row] = was_place[row] < 0 or names[place[row]] > names[was_place[row]]
        block.hottest_rate[at] = np.where(hotter, rate, was)
        block.hottest[at] = np.where(hotter, place, was_place)
        return block

    def _without_gone(self, blocks: tuple[Block, ...]) -> tuple[Block, ...]:
        """Return the blocks without keys that no longer have figures, if there are many such keys.

        Such keys are topics that were deleted long ago.
        """
        used = np.zeros(len(self._keys), np.bool_)
        for block in blocks:
            used[: block.hottest.shape[0]] |= block.sums.any((0, 2)) | block.topic_partitions.any(1)
        if used.sum() > MUCH_USED * len(used):
            return blocks
        self._keys = {
            key: at
            for at, key in enumerate(key for key, is_used in zip(self._keys, used, strict=True) if is_used)
        }
        hottest = np.unique(np.concatenate([block.hottest[block.hottest >= 0] for block in blocks]))
        partitions = list(self._partitions)
        self._partitions = {partitions[was]: at for at, was in enumerate(hottest.tolist())}
        return tuple(_of_rows(block, used[: block.hottest.shape[0]], hottest) for block in blocks)

    def _forget_from(self, ms: int) -> None:
        """Drop the seconds from `ms` on, because the clock was set back and they would be counted twice."""
        minute, second = divmod(ms // 1000, BLOCK_S)
        kept = [block for block in self.rollups.blocks if block.minute < minute]
        for block in self.rollups.blocks:
            if block.minute == minute:
                cut = _grown(block, block.hottest.shape[0])
                for column in (cut.sums, cut.hottest_rate, cut.topic_partitions):
                    column[..., second:] = 0
                cut.hottest[:, second:] = -1
                kept.append(cut)
        self.rollups = replace(
            self.rollups, blocks=tuple(kept), from_ms=min(self.rollups.from_ms, ms), until_ms=ms
        )


def _grown(block: Block, rows: int) -> Block:
    """Return a copy of the block with `rows` rows."""
    new = no_rows(block.minute, rows)
    known = block.hottest.shape[0]
    new.sums[:, :known] = block.sums
    new.hottest_rate[:known] = block.hottest_rate
    new.hottest[:known] = block.hottest
    new.topic_partitions[:known] = block.topic_partitions
    return new


def _of_rows(block: Block, rows: NDArray[np.bool_], partitions: NDArray[np.int64]) -> Block:
    """Return the block with only those rows. `partitions` renumbers the hottest partitions."""
    hottest = block.hottest[rows]
    places = np.where(hottest >= 0, np.searchsorted(partitions, hottest), -1)
    columns = block.sums[:, rows], block.hottest_rate[rows], places, block.topic_partitions[rows]
    return Block(block.minute, *columns)


def _newest(blocks: list[Block]) -> tuple[Block, ...]:
    """Return the blocks that are within the limits, oldest first."""
    sizes = np.cumsum([block.sums.nbytes + 3 * block.hottest.nbytes for block in reversed(blocks)])
    fitting = int(np.searchsorted(sizes, MAX_BYTES, "right"))
    return tuple(blocks[-min(max(fitting, LEAST_MINUTES), MAX_MINUTES) :])
