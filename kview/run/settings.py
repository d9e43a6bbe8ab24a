"""The user's choices for a run, as a single value."""

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

DEFAULT_INTERVAL_MS = 1_000

MIN_INTERVAL_MS = 100
"""A shorter interval would cost the cluster more than it shows a person."""

MAX_INTERVAL_MS = 600_000
"""The fold looks back ten minutes, so with a longer interval it would have no earlier observation to compare
with."""


class Format(StrEnum):
    """How views are printed when there is no dashboard."""

    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class Record:
    """What to record, and where.

    With a `folder`, the complete run is recorded to that folder. Without a folder, a dashboard's last hour is
    recorded to the user's state folder. `upload` is the URL that closed segments of `folder` are copied to,
    or ''.
    """

    folder: Path | None = None
    upload: str = ""


@dataclass(frozen=True, slots=True)
class Display:
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
