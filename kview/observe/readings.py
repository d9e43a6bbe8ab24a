"""Offsets as brokers answered them, in the rows of a layout, each with the time it was received."""

from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kview.model.failures import Cause, FailureKind
from kview.model.snapshot import Ids, Longs
from kview.model.units import UNKNOWN
from kview.observe.causes import Refused
from kview.observe.layout import Layout, Rows, old_replica_rows, old_rows, same_partitions, same_replicas
from kview.wire.list_offsets import ListOffsetsAnswer

MOST_OFFSET = 2**62
"""A larger offset is nonsense, and sums of such offsets would overflow. No log gets there in 10,000 years at
10,000,000 records per second."""


def _unknown(rows: int) -> Longs:
    return np.full(rows, UNKNOWN, np.int64)


def _no_error(rows: int) -> Ids:
    return np.zeros(rows, np.int32)


class Readings(Struct):
    """The offsets that brokers reported last: one row for each partition, and for each replica.

    Columns named `…_ms` say when the offset next to them was received. The functions below change the arrays
    in place.
    """

    log_start: Longs
    log_start_ms: Longs
    high_watermark: Longs
    high_watermark_ms: Longs
    last_stable: Longs
    last_stable_ms: Longs
    last_stable_since_ms: Longs
    """When the last stable offset was first read with this value, UNKNOWN unless the watermark was beyond it
    when it was last read."""
    log_end: Longs
    log_end_ms: Longs
    error_code: Ids
    """Kafka's error number in the leader's last answer, or 0 if the answer had an offset."""
    replica_log_end: Longs
    replica_log_end_ms: Longs
    replica_size_bytes: Longs


def nothing_read(layout: Layout) -> Readings:
    """Return the readings of a layout before any answer."""
    rows, replicas = len(layout), len(layout.replica_row)
    return Readings(
        log_start=_unknown(rows),
        log_start_ms=_unknown(rows),
        high_watermark=_unknown(rows),
        high_watermark_ms=_unknown(rows),
        last_stable=_unknown(rows),
        last_stable_ms=_unknown(rows),
        last_stable_since_ms=_unknown(rows),
        log_end=_unknown(rows),
        log_end_ms=_unknown(rows),
        error_code=_no_error(rows),
        replica_log_end=_unknown(replicas),
        replica_log_end_ms=_unknown(replicas),
        replica_size_bytes=_unknown(replicas),
    )


def carried(readings: Readings, old: Layout, new: Layout) -> Readings:
    """Move the readings to the rows of a new layout.

    A topic recreated under its name starts without readings.
    """
    if same_replicas(old, new):
        return readings
    partition_rows = None if same_partitions(old, new) else old_rows(new, old)
    replica_rows = old_replica_rows(new, old)
    moved: dict[str, Any] = {}
    for name in readings.__struct_fields__:
        rows = replica_rows if name.startswith("replica_") else partition_rows
        values = getattr(readings, name)
        moved[name] = values if rows is None else _moved(values, rows)
    return Readings(**moved)


def _moved(values: NDArray[Any], rows: Rows) -> NDArray[Any]:
    empty: NDArray[Any] = _no_error(len(rows)) if values.dtype == np.int32 else _unknown(len(rows))
    if len(values):
        known = rows >= 0
        empty[known] = values[rows[known]]
    return empty


def checked(answer: ListOffsetsAnswer) -> ListOffsetsAnswer:
    """Return an answer whose offsets can be offsets. Raises Refused."""
    if (answer.offset > MOST_OFFSET).any():
        raise Refused(Cause(FailureKind.MALFORMED))
    return answer


def answered_rows(layout: Layout, answer: ListOffsetsAnswer) -> tuple[Rows, NDArray[np.int16], Longs]:
    """Return an answer's partition rows, error codes and offsets, for the partitions in the layout."""
    if not answer.names:
        return np.empty(0, np.intp), np.empty(0, np.int16), np.empty(0, np.int64)
    begins = (0, *answer.ends[:-1])
    rows = np.concatenate(
        [
            layout.rows_of(name, answer.partition[begin:end])
            for name, begin, end in zip(answer.names, begins, answer.ends, strict=True)
        ]
    )
    there = rows >= 0
    return rows[there], answer.error[there], answer.offset[there]


def replica_rows(layout: Layout, broker: int, rows: Rows) -> Rows:
    """Return the rows of `broker`'s replicas of these partition rows, with −1 where it has none."""
    held = np.flatnonzero(layout.replica_broker == broker)
    if not len(held):
        return np.full(len(rows), -1, np.intp)
    of = layout.replica_row[held]
    candidates = np.minimum(np.searchsorted(of, rows), len(held) - 1)
    return np.where(of[candidates] == rows, held[candidates], -1).astype(np.intp)


def read_replicas(
    readings: Readings, layout: Layout, broker: int, answer: ListOffsetsAnswer, at_ms: int
) -> int:
    """Store the log ends that `broker` answered for its own replicas, and return their number."""
    return _store_replicas(readings, layout, broker, *answered_rows(layout, answer), at_ms)


def _store_replicas(
    readings: Readings,
    layout: Layout,
    broker: int,
    rows: Rows,
    errors: NDArray[np.int16],
    offsets: Longs,
    at_ms: int,
) -> int:
    places = replica_rows(layout, broker, rows)
    good = (errors == 0) & (offsets >= 0) & (places >= 0)
    readings.replica_log_end[places[good]] = offsets[good]
    readings.replica_log_end_ms[places[good]] = at_ms
    return int(good.sum())


def read_log_start(readings: Readings, layout: Layout, answer: ListOffsetsAnswer, at_ms: int) -> None:
    """Store a leader's log starts."""
    rows, errors, offsets = answered_rows(layout, answer)
    good = (errors == 0) & (offsets >= 0)
    readings.log_start[rows[good]] = offsets[good]
    readings.log_start_ms[rows[good]] = at_ms


def read_last_stable(readings: Readings, layout: Layout, answer: ListOffsetsAnswer, at_ms: int) -> None:
    """Store a leader's last stable offsets, which were read right after its high watermarks."""
    rows, errors, offsets = answered_rows(layout, answer)
    good = (errors == 0) & (offsets >= 0)
    rows, offsets = rows[good], offsets[good]
    held = offsets < readings.high_watermark[rows]
    still = (offsets == readings.last_stable[rows]) & (readings.last_stable_since_ms[rows] != UNKNOWN)
    since_ms = np.where(still, readings.last_stable_since_ms[rows], at_ms)
    readings.last_stable[rows] = offsets
    readings.last_stable_ms[rows] = at_ms
    readings.last_stable_since_ms[rows] = np.where(held, since_ms, UNKNOWN)


def read_leader(
    readings: Readings,
    layout: Layout,
    broker: int,
    high_watermarks: tuple[ListOffsetsAnswer, int],
    log_ends: tuple[ListOffsetsAnswer, int] | None,
) -> None:
    """Store a leader's high watermarks and log ends, each with the time it was received.

    For a partition, either both values are stored or neither. A new leader knows its log end before its high
    watermark (KIP-207), and a new log end next to an old watermark would look like uncommitted records.
    """
    answer, at_ms = high_watermarks
    rows, errors, offsets = answered_rows(layout, answer)
    readings.error_code[rows] = errors
    good = (errors == 0) & (offsets >= 0)
    if log_ends is not None:
        ends, ends_ms = log_ends
        end_rows, end_errors, end_offsets = answered_rows(layout, ends)
        _store_replicas(readings, layout, broker, end_rows, end_errors, end_offsets, ends_ms)
        end_good = (end_errors == 0) & (end_offsets >= 0)
        if np.array_equal(rows, end_rows):  # as almost always, and much quicker
            good &= end_good
            end_good = good
        else:
            both = np.intersect1d(rows[good], end_rows[end_good])
            good &= np.isin(rows, both)
            end_good &= np.isin(end_rows, both)
        readings.log_end[end_rows[end_good]] = end_offsets[end_good]
        readings.log_end_ms[end_rows[end_good]] = ends_ms
    readings.high_watermark[rows[good]] = offsets[good]
    readings.high_watermark_ms[rows[good]] = at_ms


class Share(Struct, frozen=True):
    """The rows of `layout` to ask one broker for: those of partitions it leads, and those it follows."""

    layout: Layout
    leads: Rows
    follows: Rows


def shares(layout: Layout, chosen: NDArray[np.bool_] | None = None) -> dict[int, Share]:
    """Return what to ask each broker to read the offsets of the `chosen` rows (None: all)."""
    led_by = layout.leader[layout.replica_row]
    wanted = np.ones(len(layout), np.bool_) if chosen is None else chosen
    out = {}
    for broker in np.unique(np.concatenate((layout.replica_broker, layout.leader))).tolist():
        if broker < 0:
            continue
        held = layout.replica_row[(layout.replica_broker == broker) & (led_by != broker)]
        leads = np.flatnonzero((layout.leader == broker) & wanted)
        out[broker] = Share(layout, leads, held[wanted[held]].astype(np.intp))
    return out


def slice_of(layout: Layout, slices: int, number: int, always: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return a mask of the rows to read when reading all would cost too much.

    These are the rows in slice `number` of `slices`, and the rows in `always`.
    """
    chosen = always.copy()
    bounds = np.linspace(0, len(layout), slices + 1).astype(int)
    chosen[bounds[number % slices] : bounds[number % slices + 1]] = True
    return chosen
