"""A report about recordings: tables of figures, and notes about what the figures rest on."""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct, field

from kview.errors import ErrorValue
from kview.model.report_tables import Table, TableName

MOST_INCIDENTS = 1_000
"""The most incidents of a report, the first ones."""

REPORT_VERSION = 1
"""Increased whenever a column is renamed or removed, or changes its meaning."""


class NoteKind(StrEnum):
    """What a reader has to know about the figures. JSON documents contain the values."""

    STILL_WRITTEN = "still_written"
    """`recording` was still being written: the report goes up to observation `sequence`."""
    NOT_CLOSED = "not_closed"
    """`recording` ended without being closed; it is used up to its last complete observation, `sequence`."""
    TORN = "torn"
    """The same, and `bytes` bytes after that observation are incomplete and were left out."""
    LEFT_OUT = "left_out"
    """`recording` cannot be read (`reason`), so it was left out."""
    SEGMENT_DAMAGED = "segment_damaged"
    """`file` of `recording` is damaged (`reason`), so its segment `segment` was left out."""
    SEGMENT_GONE = "segment_gone"
    """Segment `segment` of `recording` was deleted while it was read."""
    ROLLED_UP_ONLY = "rolled_up_only"
    """Segment `segment` of `recording` is missing or damaged (`reason`): its kept roll-ups were used."""
    FACTS_INCOMPLETE = "facts_incomplete"
    """`recording` lacks facts in some of its segments."""
    OVERLAP = "overlap"
    """`recording` overlaps with `other` of the same cluster: `seconds` s of it were not counted again."""
    GAP = "gap"
    """`recording` has `gaps` pauses of `seconds` s in all, of which nothing is known."""
    CLOCK_SET_BACK = "clock_set_back"
    """In `recording` the clock was set back `times` times: of equal seconds the later one counts."""
    NOT_KEPT = "not_kept"
    """The roll-ups could not be kept in `folder` (`reason`), so the next report rolls up again."""
    CUT_OFF = "cut_off"
    """`table` has only the `rows` busiest of `total` rows."""
    OUTSIDE = "outside"
    """`recording` has nothing in the period asked for."""
    WHOLE_MINUTES = "whole_minutes"
    """The period was widened to whole minutes, the unit in which partitions are summed up: it begins
    `earlier_s` s before and ends `later_s` s after what was asked for."""
    NO_MATCH = "no_match"
    """None of the `kind` ("topics" or "groups") has a name that matches `patterns`."""
    EMPTY = "empty"
    """`recording` has no complete second."""


class Note(Struct, frozen=True):
    """A note of a report: its kind and its values by name."""

    kind: NoteKind
    values: Mapping[str, ErrorValue] = field(default_factory=dict)


class Period(Struct, frozen=True):
    """What a report covers: its tables, and from when to when (epoch ms, UNKNOWN if nothing is known)."""

    since_ms: int
    until_ms: int
    tables: Mapping[TableName, Table]
    notes: tuple[Note, ...] = ()


class Report(Struct, frozen=True):
    """A report. `against` and `comparison` are there if two periods were asked for."""

    period: Period
    step_s: int
    """The length of a step of the table `throughput`, in seconds."""
    threshold_ms: int
    """The lag in time above which `groups.above_ms` counts."""
    price_per_gb: float
    """The price of 10⁹ bytes between racks, NaN if none was given."""
    against: Period | None = None
    comparison: Table | None = None
    topics: tuple[str, ...] = ()
    """Patterns of the topics that it is about, none for all of them."""
    groups: tuple[str, ...] = ()
    """Patterns of the groups that it is about, none for all of them."""
    version: int = REPORT_VERSION

    def __getitem__(self, name: TableName) -> Table:
        return self.period.tables[name]
