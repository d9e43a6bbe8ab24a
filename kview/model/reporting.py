"""The interface through which the screen has reports made about the recording behind what it shows.

The room `run` implements it.
"""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import NamedTuple, Protocol

from msgspec import Struct

from kview.model.events import Severity


class ReportProgress(Struct, frozen=True, tag="progress"):
    """How far a report is.

    `stage` is "start", "roll_up", "figures" or "page". `done` and `total` count segments or figures,
    `tasks_done` and `tasks` are Spark's tasks in the `stages` that run.
    """

    stage: str = "start"
    done: int = 0
    total: int = 0
    stages: int = 0
    tasks_done: int = 0
    tasks: int = 0

    @property
    def share(self) -> float:
        """The share of the stage that is done, 0 to 1."""
        if self.stage == "page":
            return 1.0
        return min(1.0, self.done / self.total) if self.total else 0.0


class ReportScope(Struct, frozen=True):
    """What a report is about: topics and groups by their exact names, none for all of them."""

    topics: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()


class LineKind(StrEnum):
    """What a line of a report's text is."""

    TITLE = "title"
    SUMMARY = "summary"
    HEAD = "head"
    """The title of a table or a plot."""
    COLUMNS = "columns"
    """The heads of a table's columns."""
    TEXT = "text"


class ReportLine(NamedTuple):
    """A line of a report's text. `severity` is that of a line of the summary."""

    kind: LineKind
    text: str
    severity: Severity = Severity.CALM


class MadeReport(Protocol):
    """A report that is complete."""

    @property
    def path(self) -> str:
        """The path of the report as a page of HTML."""
        ...

    @property
    def url(self) -> str:
        """The page's address, for a terminal's link."""
        ...

    def lines(self, width: int, ascii_only: bool) -> Sequence[ReportLine]:
        """Return the report as text of `width` cells. This draws its plots, which takes a tenth of a
        second."""
        ...


class Reports(Protocol):
    """Makes reports, one at a time, while the dashboard continues."""

    async def make(self, scope: ReportScope, on_progress: Callable[[ReportProgress], None]) -> MadeReport:
        """Make a report about all of the recording so far. Awaited on the screen's loop, where `on_progress`
        is called too. Raises KviewError, REPORT_CANCELLED after `cancel`.
        """
        ...

    def cancel(self) -> None:
        """Cancel the report that is being made, if there is one. Returns at once."""
        ...
