"""Racks: whether partitions and topics survive the loss of any one rack."""

import numpy as np
from numpy.typing import NDArray

from kview.derive.align import first_that_holds, positions, take
from kview.derive.view import RackSafety
from kview.model.snapshot import Brokers, Longs, Partitions

_YES, _NO, _CANNOT_BE = range(3)
_WORDS: NDArray[np.object_] = np.array([RackSafety.YES, RackSafety.NO, RackSafety.CANNOT_BE, None], object)[
    :-1
]


def rack_safety(table: Partitions, brokers: Brokers) -> NDArray[np.object_]:
    """Return whether each partition survives the loss of any one rack, as a RackSafety."""
    names = {name: number for number, name in enumerate(sorted({rack for rack in brokers.rack if rack}))}
    codes = np.array([names.get(rack, -1) for rack in brokers.rack], np.int64)
    rack = take(codes, positions(brokers.id, table.replicas), -1)
    real = table.replicas >= 0
    high = np.where(real, rack, -1).max(1, initial=-1)
    low = np.where(real & (rack >= 0), rack, len(names)).min(1, initial=len(names))
    pointless = (real.sum(1) < 2) | (len(names) < 2) | (real & (rack < 0)).any(1)
    return np.asarray(_WORDS[first_that_holds([low < high, pointless], [_YES, _CANNOT_BE], _NO)], object)


def topic_safety(not_safe: Longs, cannot_be: Longs) -> NDArray[np.object_]:
    """Return each topic's RackSafety, given how many partitions answer NO, and how many CANNOT_BE."""
    safety = first_that_holds([not_safe > 0, cannot_be > 0], [_NO, _CANNOT_BE], _YES)
    return np.asarray(_WORDS[safety], object)
