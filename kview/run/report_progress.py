"""Shows on one line of a terminal how far a report is."""

import os
import shutil
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TextIO

from kview.language import glyphs, reports, words
from kview.model.reporting import ReportProgress

_BAR = 24
_CLEAR = "\r\x1b[K"
_COUNTS_EVERY_S = 1.0


class ProgressLine:
    """A line that is drawn again with each step and each second, so that nobody takes a long step for a halt.

    It is drawn only on a terminal, no wider than that, and removed at the end.
    """

    def __init__(
        self, output: TextIO, ascii_only: bool = False, clock_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._output = output
        self._ascii = ascii_only
        self._clock_s = clock_s
        self._began_s = clock_s()
        self._is_shown = output.isatty()
        self._last = ""
        self._now: ReportProgress | None = None
        self._drawing = threading.Lock()
        self._ended = threading.Event()

    def show(self, progress: ReportProgress) -> None:
        """Draw how far the report is."""
        if not self._is_shown:
            return
        with self._drawing:
            is_first, self._now = self._now is None, progress
            self._draw()
        if is_first:
            threading.Thread(target=self._count, name="progress", daemon=True).start()

    def end(self) -> None:
        """Remove the line."""
        self._ended.set()
        with self._drawing:
            if self._last:
                self._write(_CLEAR)
                self._last = ""

    def _count(self) -> None:
        while not self._ended.wait(_COUNTS_EVERY_S):
            with self._drawing:
                self._draw()

    def _draw(self) -> None:
        if self._now is None or self._ended.is_set():
            return
        line = self._line(self._now, self._columns())
        if line != self._last:
            self._write(f"{_CLEAR}{line}")
            self._last = line

    def _write(self, text: str) -> None:
        with suppress(OSError):  # the terminal was closed
            self._output.write(text)
            self._output.flush()

    def _columns(self) -> int:
        try:
            return os.get_terminal_size(self._output.fileno()).columns
        except (OSError, ValueError):
            return shutil.get_terminal_size().columns

    def _line(self, now: ReportProgress, columns: int) -> str:
        """Return the line in less than `columns` cells. What does not fit is left out, the bar first."""
        step = reports.progress(now.stage, now.done, now.total)
        lasted = words.duration(round((self._clock_s() - self._began_s) * 1000), tenths=False)
        tasks = [reports.tasks(now.stages, now.tasks_done, now.tasks)] if now.tasks else []
        dot, bar = f" {glyphs.DOT} ", f"{self._bar(now)} "
        whole = dot.join([step, *tasks, lasted])
        fitting = (bar + whole, whole, dot.join((step, lasted)), lasted)
        line = next((one for one in fitting if len(one) < columns), "")
        return glyphs.plain(line) if self._ascii else line

    def _bar(self, progress: ReportProgress) -> str:
        full = round(progress.share * _BAR)
        on, off = ("#", ".") if self._ascii else ("━", "╌")
        return on * full + off * (_BAR - full)
