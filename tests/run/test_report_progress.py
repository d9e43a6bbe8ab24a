"""The line with a report's progress: what it says, that it fits, and that it moves when nothing else does."""

import io
import re

import pytest

from kview.model.reporting import ReportProgress
from kview.run.report_progress import ProgressLine
from tests.waiting import wait_until

BUSY = ReportProgress("roll_up", 3, 12, 2, 1_234, 5_678)


class Terminal(io.StringIO):
    """A terminal that remembers everything."""

    def isatty(self) -> bool:
        """It is one."""
        return True

    @property
    def line(self) -> str:
        """What stands on the line now."""
        return self.getvalue().rpartition("\r\x1b[K")[2]


@pytest.mark.parametrize("columns", [10, 40, 60, 100, 120])
@pytest.mark.parametrize("ascii_only", [False, True])
def test_it_stays_on_one_line(columns: int, ascii_only: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    terminal, now_s = Terminal(), iter(range(0, 10_000, 95))
    line = ProgressLine(terminal, ascii_only, lambda: next(now_s))
    line.show(BUSY)
    drawn = terminal.line
    assert "1 m 35 s" in drawn and len(drawn) < columns
    assert ("rolling up the recordings, 3 of 12" in drawn) == (columns >= 60)
    assert ("1,234 of 5,678 tasks in 2 stages" in drawn) == (columns >= 100)
    assert (drawn.startswith(("━━━━━━╌", "######."))) == (columns >= 120)
    assert drawn.isascii() or not ascii_only
    line.end()
    assert terminal.line == ""


def test_its_clock_goes_on_during_a_long_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    terminal, now_s = Terminal(), [0.0]
    line = ProgressLine(terminal, clock_s=lambda: now_s[0])
    line.show(ReportProgress())
    assert re.search(r"starting Spark · 0 s$", terminal.line)
    now_s[0] = 62.0
    wait_until(lambda: terminal.line.endswith("starting Spark · 1 m 2 s"), "the time that has passed")
    line.end()
    now_s[0] = 99.0
    line.show(BUSY)
    assert terminal.line == ""


def test_a_pipe_gets_none_of_it() -> None:
    pipe = io.StringIO()
    line = ProgressLine(pipe)
    line.show(BUSY)
    line.end()
    assert pipe.getvalue() == ""
