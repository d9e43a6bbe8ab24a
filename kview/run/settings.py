"""The user's choices for a run, as a single value."""

from enum import StrEnum
from pathlib import Path

from msgspec import Struct, field

from kview.model.address import Address
from kview.model.name_patterns import NamePattern

DEFAULT_INTERVAL_MS = 1_000

MIN_INTERVAL_MS = 100
"""A shorter interval would burden the cluster, but nobody would see more."""

MAX_INTERVAL_MS = 600_000
"""The fold looks back ten minutes, so with a longer interval it would have no earlier observation to compare
with."""


class Format(StrEnum):
    """How views are printed when there is no dashboard."""

    TEXT = "text"
    JSON = "json"


class Record(Struct, frozen=True):
    """What to record, and where.

    With a `folder`, the complete run is recorded to that folder. Without a folder, a dashboard's last hour is
    recorded to the user's state folder. `upload` is the URL to which closed segments of `folder` are copied,
    or ''.
    """

    folder: Path | None = None
    upload: str = ""


class Display(Struct, frozen=True):
    """How often to observe and how to draw.

    A `format` of None selects a dashboard on a terminal, and text elsewhere.
    """

    interval_ms: int = DEFAULT_INTERVAL_MS
    once: bool = False
    format: Format | None = None
    theme: str = ""
    ascii_only: bool = False
    record: Record = field(default_factory=Record)
    no_spark: bool = False
    ignore_groups: tuple[str, ...] = ()
    """Patterns of the names of groups that count nowhere."""
    no_records: bool = False
    """Whether the records of topics are never fetched."""
    metrics: Address | None = None
    """Where Prometheus metrics are served, if they are."""
    metrics_include: tuple[NamePattern, ...] = ()
    metrics_exclude: tuple[NamePattern, ...] = ()
    """Which topics and groups always and never have metrics of their own."""
    fresh: bool = False
    """Whether the choices kept for the cluster are ignored."""
    quiet: bool = False
    """Whether nothing is shown or printed."""
    production: bool = False
    """Whether the head says that this is a cluster in production."""
    colour: str = ""
    """The colour of the cluster's name in the head, as `#rrggbb`, '' for the theme's."""
    no_tour: bool = False
    """Whether a first run begins without the tour."""
    no_mouse: bool = False
    """Whether the mouse is left to the terminal."""
