"""Racks: whether partitions and topics survive the loss of any one rack."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kview.derive.align import first_that_holds, positions, take
from kview.derive.view import RackSafety
from kview.model.snapshot import Brokers, Longs, Partitions

_YES, _NO, _CANNOT_BE = range(3)
_WORDS: NDArray[np.object_] = np.array([RackSafety.YES, RackSafety.NO, RackSafety.CANNOT_BE, None], object)[
    :-1
]


RackCodes = NDArray[np.int8]


def rack_codes(table: Partitions, brokers: Brokers) -> RackCodes:
    """Return whether each partition survives the loss of any one rack, as a code of `safety_words`."""
    names = {name: number for number, name in enumerate(sorted({rack for rack in brokers.rack if rack}))}
    codes = np.array([names.get(rack, -1) for rack in brokers.rack], np.int64)
    rack = take(codes, positions(brokers.id, table.replicas), -1)
    real = table.replicas >= 0
    high = np.where(real, rack, -1).max(1, initial=-1)
    low = np.where(real & (rack >= 0), rack, len(names)).min(1, initial=len(names))
    pointless = (real.sum(1) < 2) | (len(names) < 2) | (real & (rack < 0)).any(1)
    return first_that_holds([low < high, pointless], [_YES, _CANNOT_BE], _NO).astype(np.int8)


def safety_words(codes: NDArray[np.integer[Any]]) -> NDArray[np.object_]:
    """Return the RackSafety of each code."""
    return np.asarray(_WORDS[codes], object)


def topic_safety(codes: RackCodes, first: Longs) -> tuple[NDArray[np.object_], Longs]:
    """Return each topic's RackSafety, and how many of its partitions answer NO. Topics begin at `first`."""
    if not len(first):
        return np.empty(0, object), np.empty(0, np.int64)
    not_safe, cannot_be = (
        np.add.reduceat(codes == code, first, dtype=np.int64) for code in (_NO, _CANNOT_BE)
    )
    return safety_words(first_that_holds([not_safe > 0, cannot_be > 0], [_NO, _CANNOT_BE], _YES)), not_safe
