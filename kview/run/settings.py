"""What a user may choose about a run, as one value."""

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

DEFAULT_INTERVAL_MS = 1_000

MIN_INTERVAL_MS = 100
"""Shorter ones would cost a cluster more than they show a person."""

MAX_INTERVAL_MS = 600_000
"""The fold looks back ten minutes: of rarer observations it would keep none to compare with."""


class Format(StrEnum):
    """How pictures are printed where there is no dashboard."""

    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class Record:
    """What is recorded: with a `folder` all of the run, there; without one a dashboard's last hour, in the
    user's state folder. `upload`: the URL that closed segments of `folder` are copied to, or ''."""

    folder: Path | None = None
    upload: str = ""


@dataclass(frozen=True, slots=True)
class Display:
    """How often to look and how to draw; `format` None: a dashboard on a terminal, text elsewhere."""

    interval_ms: int = DEFAULT_INTERVAL_MS
    once: bool = False
    format: Format | None = None
    theme: str = ""
    ascii_only: bool = False
    record: Record = field(default_factory=Record)
    no_spark: bool = False
