"""Shows on one line of a terminal how far a report is."""

from typing import TextIO

from kview.language import reports
from kview.model.reporting import ReportProgress

_BAR = 24
_CLEAR = "\r\x1b[K"


class ProgressLine:
    """A line that is drawn again with each step. It is drawn only on a terminal, and removed at the end."""

    def __init__(self, output: TextIO, ascii_only: bool = False) -> None:
        self._output = output
        self._ascii = ascii_only
        self._is_shown = output.isatty()
        self._last = ""

    def show(self, progress: ReportProgress) -> None:
        """Draw how far the report is."""
        if not self._is_shown:
            return
        said = reports.progress(progress.stage, progress.done, progress.total)
        if progress.tasks:
            said += f" · {reports.tasks(progress.stages, progress.tasks_done, progress.tasks)}"
        line = f"{self._bar(progress)} {said}"
        if self._ascii:
            line = line.encode("ascii", "replace").decode()
        if line != self._last:
            self._output.write(f"{_CLEAR}{line}")
            self._output.flush()
            self._last = line

    def end(self) -> None:
        """Remove the line."""
        if self._last:
            self._output.write(_CLEAR)
            self._output.flush()
            self._last = ""

    def _bar(self, progress: ReportProgress) -> str:
        full = round(progress.share * _BAR)
        on, off = ("#", ".") if self._ascii else ("━", "╌")
        return on * full + off * (_BAR - full)
