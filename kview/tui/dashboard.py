"""What screens and keys may ask of their dashboard. `kview.tui.app` implements it."""

from collections.abc import Coroutine, Hashable, Iterable, Sequence
from datetime import tzinfo
from typing import Any, Protocol

from textual.geometry import Size

from kview.derive.view import View
from kview.language.lab import Setting
from kview.model.lab import LabSettings
from kview.model.notices import Notice
from kview.model.ports import Timeline
from kview.model.reporting import MadeReport
from kview.model.units import NO_BROKER
from kview.tui.actions import Keys
from kview.tui.aim import Target
from kview.tui.looks import Look
from kview.tui.options import Options
from kview.tui.rows.row import Rows
from kview.tui.widgets.bottom import StatusMessage
from kview.tui.widgets.caption import Caption
from kview.tui.widgets.header import SourceInfo
from kview.tui.widgets.prompt import Question
from kview.tui.widgets.table import Table


class Selecting(Protocol):
    """A screen, as seen by keys that act on what is selected or focused."""

    @property
    def has_targets(self) -> bool:
        """Whether the screen has rows that a fault could hit."""
        ...

    def target(self) -> Target | None:
        """Return what a fault would hit now."""
        ...

    def selected_broker(self) -> int | None:
        """Return the broker whose row is selected."""
        ...

    def point(self, looks: Sequence[Look], broker: int | None) -> bool:
        """Select the rows that are marked, so that they are in sight, and focus the row of `broker`.

        Returns False if they are not there yet.
        """
        ...

    @property
    def is_filtered(self) -> bool:
        """Whether a filter hides rows of the screen."""
        ...

    def begin_filter(self) -> None:
        """Ask for the part of a name to filter by."""
        ...

    @property
    def is_typing(self) -> bool:
        """Whether a line is being typed: a filter, or the answer to a question."""
        ...

    def focused_rows(self) -> tuple[str, Rows] | None:
        """Return the focused table's name and its rows, or None if no table is focused."""
        ...

    def focused_table(self) -> Table | None:
        """Return the table that has the focus, or the first one if none has it."""
        ...


class Going(Protocol):
    """Goes to a screen of one thing, from which Escape leads back."""

    def topic(self, topic: str, partition: int = -1) -> None:
        """Go to a topic's partitions, with `partition` selected if it is not −1."""
        ...

    def group(self, group: str) -> None:
        """Go to a group."""
        ...

    def partition(self, topic: str, partition: int) -> None:
        """Go to a partition's log."""
        ...

    def broker(self, broker: int) -> None:
        """Go to a broker."""
        ...

    def incident(self, key: Hashable) -> None:
        """Go to the incident with that key."""
        ...

    def records(self, topic: str, partition: int) -> None:
        """Go to the records of a partition."""
        ...

    def settings(self, topic: str = "", broker: int = NO_BROKER) -> None:
        """Go to the settings of a topic, or of a broker."""
        ...

    def report(self, report: MadeReport, typed: str) -> None:
        """Show a report that was made with the filter `typed`."""
        ...


class Adjusting(Protocol):
    """What is set in the simulated cluster, and the keys that change it."""

    settings: LabSettings | None
    """What was set when the cluster said so last, None if it has not yet."""
    asked_ms: int
    """When that was, epoch ms by the wall clock."""
    failed: bool
    """Whether the cluster did not say when it was asked last."""
    is_locked: bool
    """Whether nothing may be seen or changed, because a drill asks for what was changed."""

    def ask(self) -> None:
        """Ask the cluster what is set. The screen is drawn again with the answer."""
        ...

    def do(self, what: str, of: Setting | None) -> None:
        """Carry out a key of the lab for the setting in the selected row."""
        ...

    def undone(self) -> None:
        """Take note that all changes were undone, or that another cluster takes the place of this one."""
        ...


class Dashboard(Protocol):
    """The app, as seen by its screens and its keys."""

    # -- what is shown

    source: SourceInfo
    started_ms: int
    """When the dashboard started, epoch ms by the wall clock."""
    zone: tzinfo | None
    timeline: Timeline | None
    view: View | None
    """The view shown, None before the first view."""
    notice: Notice | None
    """The latest notice about kview itself."""
    options: Options
    hidden_incidents: frozenset[Hashable]
    """The keys of the incidents that the strip no longer shows."""
    keys: Keys
    """The keys in force."""
    ascii_only: bool
    """Whether only ASCII characters are drawn."""

    @property
    def lab(self) -> Adjusting:
        """What can be adjusted in the simulated cluster."""
        ...

    @property
    def caption(self) -> Caption | None:
        """What the caption strip shows, None if nothing."""
        ...

    @property
    def looks(self) -> Sequence[Look]:
        """Where a demo says to look on the screen shown."""
        ...

    def watch_figures(self, are_shown: bool) -> None:
        """Say whether the screen shows what Spark calculates."""
        ...

    def redraw_caption(self) -> None:
        """Draw the caption strip again, because its clock has moved."""
        ...

    def leave_lesson(self, depth: int) -> bool:
        """Leave the demo that is shown.

        Returns False if there is none, or if the user has opened one of the `depth` screens.
        """
        ...

    @property
    def go(self) -> Going:
        """What goes to the screen of one thing."""
        ...

    @property
    def size(self) -> Size:
        """The size of the terminal."""
        ...

    @property
    def live(self) -> bool:
        """Whether the live moment is shown."""
        ...

    def now_ms(self) -> int:
        """Return the time at the moment shown, epoch ms, by the clock of the snapshots."""
        ...

    def wall_ms(self) -> int:
        """Return the current time, epoch ms."""
        ...

    # -- the status line

    @property
    def status_message(self) -> StatusMessage:
        """The message in the status line."""
        ...

    @property
    def active_faults(self) -> tuple[str, ...]:
        """The faults in force."""
        ...

    def say(self, message: StatusMessage, keep: bool = False) -> None:
        """Show a message in the status line. With `keep`, the message stays until the next one."""
        ...

    def forget_inert(self) -> None:
        """Remove the message that a key does nothing, because it is about another screen."""
        ...

    def clear_message(self, kept: bool = True) -> None:
        """Remove the message from the status line, because it is about another moment. Without `kept`, one
        that stays until the next message stays."""
        ...

    def opened(self, key: Hashable) -> None:
        """Note that the incident with that key was opened, or with None the list of all."""
        ...

    def redraw(self) -> None:
        """Draw the screen again, because something that is not in the view has changed."""
        ...

    def redraw_status(self) -> None:
        """Draw the two bottom lines again, because the faults in force have changed."""
        ...

    def ask(self, question: Question) -> None:
        """Ask for a line of text."""
        ...

    # -- screens and moments

    def shown(self) -> Selecting | None:
        """Return the screen that draws views, or None while help or the palette covers it."""
        ...

    def show_moment(self, at_ms: int, why: str = "") -> None:
        """Show the cluster at a moment (epoch ms), if it was recorded. `why` says what is to be seen."""
        ...

    def hide_incidents(self, keys: Iterable[Hashable]) -> None:
        """Show these incidents in the strip no longer."""
        ...

    def cancel_work(self) -> bool:
        """Cancel the export of a table, or the report that is being made. Returns False if there is none."""
        ...

    def return_to_live(self) -> None:
        """Return to the live moment, if there is one and another one is shown."""
        ...

    # -- how it is shown

    def set_options(self, options: Options) -> None:
        """Redraw everything with other options."""
        ...

    def sort_by(self, table: Table, column: str) -> None:
        """Sort a table by a column, or reverse its order if it is sorted by that column."""
        ...

    def copy_to_clipboard(self, text: str) -> None:
        """Put a text into the clipboard of the user's terminal."""
        ...

    # -- work

    def run_worker(self, work: Coroutine[Any, Any, None], *, group: str) -> object:
        """Run `work` while the dashboard continues."""
        ...
