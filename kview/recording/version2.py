"""Reads recordings of schema version 2, in which the brokers had no latency."""

from dataclasses import dataclass

import numpy as np

from kview.model.snapshot import Longs
from kview.model.units import UNKNOWN
from kview.recording.columns import NAMES, Array
from kview.recording.moments import Column, Layout

VERSION = 2

ADDED = ("brokers.latency_us", "brokers.id")
"""The column that version 2 lacks, and a column with the same number of rows."""

NAMES_2 = tuple(name for name in NAMES if name != ADDED[0])
"""The column names of version 2, in any order."""


@dataclass(frozen=True, slots=True)
class _Unknown:
    """A column of longs in which no value is known, with the rows of the column `like`."""

    like: Column

    @property
    def moments(self) -> Longs:
        return self.like.moments

    def layer(self, number: int) -> Array:
        return np.full(self.like.layer(number).shape, UNKNOWN, np.int64)


def upgraded(columns: dict[str, Column]) -> dict[str, Column]:
    """Return columns of version 2 as those of the current version."""
    added, like = ADDED
    return {**columns, added: _Unknown(columns[like])}


def layout(names: tuple[str, ...]) -> Layout:
    """Return how the columns of a version-2 recording become those of the current version.

    `names` are the column names in its manifest.
    """
    return Layout(names, upgrade=upgraded)
