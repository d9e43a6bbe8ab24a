"""The key that makes a report of what is shown: its progress, its end, and the screen with its text."""

import asyncio
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from kview.derive.filters import Filter
from kview.derive.passing import Passing
from kview.derive.view import View
from kview.errors import ErrorKind, KviewError
from kview.language import glyphs, reports, words
from kview.language.errors import message, remedy
from kview.model.events import Severity
from kview.model.reporting import MadeReport, ReportProgress, Reports, ReportScope
from kview.model.snapshot import Strings
from kview.tui.widgets.bottom import StatusMessage

if TYPE_CHECKING:
    from kview.tui.app import KviewApp

MOST_NAMES = 500
"""The most topics, or groups, that a filter can choose for a report."""

BAR_CELLS = 12


class ReportKeys:
    """Makes reports in the background, if there is a recording.

    The same key cancels the report that is being made, and opens one that could not be opened when it was
    complete, because something else was being typed or read.
    """

    def __init__(self, app: "KviewApp") -> None:
        self._app = app
        self._reports = app.session.reports
        self._progress: ReportProgress | None = None
        self._began_ms = 0
        self._unread: tuple[MadeReport, str] | None = None

    @property
    def possible(self) -> bool:
        """Whether reports can be made."""
        return self._reports is not None

    @property
    def is_busy(self) -> bool:
        """Whether a report is being made."""
        return self._progress is not None

    def told_with(self, message: StatusMessage) -> StatusMessage:
        """Return how far the report is, or a message that is more important. It says that there is one."""
        now = self._progress
        if now is None:
            return message
        lasted = words.duration(self._app.wall_ms() - self._began_ms, tenths=False)
        if message.text:
            tail = f" {glyphs.DOT} ".join(filter(None, (message.tail, reports.being_made(lasted))))
            return replace(message, tail=tail)
        full = round(now.share * BAR_CELLS)
        bar = glyphs.LINE * full + glyphs.DOTTED * (BAR_CELLS - full)
        said = reports.progress(now.stage, now.done, now.total)
        if now.tasks:
            said += f" {glyphs.DOT} {reports.tasks(now.stages, now.tasks_done, now.tasks)}"
        said += f" {glyphs.DOT} {lasted}"
        return StatusMessage(f"report {bar} {said}", f"{self._app.keys.name('back')} cancels")

    def do(self) -> None:
        """Make a report, cancel the one that is being made, or open the one that waits to be read."""
        if self._unread is not None:
            self._open(*self._unread)
        elif not self.cancel():
            self._begin()

    def cancel(self) -> bool:
        """Cancel the report. Returns False if none is being made."""
        if self._progress is None or self._reports is None:
            return False
        self._reports.cancel()
        return True

    def _begin(self) -> None:
        view, reports = self._app.view, self._reports
        if view is None or reports is None:
            return
        typed = self._app.options.shown_filter
        scope = scope_of(view, self._app.options.wanted) if typed else ReportScope()
        if scope is None:
            self._app.say(StatusMessage(f"nothing matches {typed}", "so there is nothing to report on"))
            return
        if (most := max(len(scope.topics), len(scope.groups))) > MOST_NAMES:
            said = f"{typed} matches {most:,} names: a report is about all of them or at most {MOST_NAMES:,}"
            self._app.say(StatusMessage(said, "narrow the filter, or clear it", Severity.WARN))
            return
        self._app.clear_message()
        self._began_ms = self._app.wall_ms()
        self._tell(ReportProgress())
        self._app.run_worker(self._make(reports, scope, typed), group="report")

    def _tell(self, progress: ReportProgress | None) -> None:
        self._progress = progress
        self._app.redraw_status()

    async def _make(self, reports: Reports, scope: ReportScope, typed: str) -> None:
        try:
            report = await reports.make(scope, self._tell)
        except KviewError as error:
            self._tell(None)
            self._failed(error)
        except asyncio.CancelledError:  # kview ends
            reports.cancel()
            raise
        else:
            self._tell(None)
            self._open(report, typed)
        finally:
            self._progress = None

    def _failed(self, error: KviewError) -> None:
        if error.kind is ErrorKind.REPORT_CANCELLED:
            self._app.say(StatusMessage("report cancelled", "what was rolled up is kept"))
            return
        if error.kind in _TOO_EARLY:
            error = KviewError(ErrorKind.REPORT_NO_RECORDING)
        log_file = self._app.log_file
        why = remedy(error) if error.kind in _ABOUT_USE or not log_file else f"details: {log_file}"
        self._app.say(StatusMessage(f"no report: {message(error)}", why, Severity.WARN))

    def _open(self, report: MadeReport, typed: str) -> None:
        """Open a report, unless something else is being read or typed: then say which key opens it."""
        screen = self._app.shown()
        if screen is None or screen.is_typing:
            self._unread = (report, typed)
            key = self._app.keys.name("report")
            text = f"report ready: {report.path}"
            self._app.say(StatusMessage(text, f"{key} opens it", Severity.GOOD, report.url), True)
            return
        self._unread = None
        self._app.go.report(report, typed)
        self._app.say(StatusMessage(f"report saved: {report.path}", "", Severity.GOOD, report.url))


_ABOUT_USE = frozenset(
    {ErrorKind.REPORT_NO_RECORDING, ErrorKind.NO_JAVA, ErrorKind.FILE_NOT_WRITTEN, ErrorKind.SPARK_DISK_FULL}
)
"""Errors about which the log file says nothing more."""

_TOO_EARLY = frozenset({ErrorKind.NOTHING_RECORDED, ErrorKind.REPORT_NOTHING_KNOWN})
"""A recording that has just begun has no complete second yet."""


def scope_of(view: View, wanted: Filter) -> ReportScope | None:
    """Return the topics and groups that pass a filter, None if none does.

    If all of them pass, or none of one kind, that kind is not limited.
    """
    passing = Passing(view, wanted)
    topics, groups = view.topics.topic[passing.topics], view.snapshot.groups.group[passing.groups]
    if not len(topics) and not len(groups):
        return None
    return ReportScope(
        _names(topics, len(view.topics.topic)), _names(groups, len(view.snapshot.groups.group))
    )


def _names(chosen: Strings, total: int) -> tuple[str, ...]:
    return () if len(chosen) == total else tuple(np.unique(chosen.astype(str)).tolist())
