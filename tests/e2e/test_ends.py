"""The ends of a dashboard: the terminal as it was, no process left, and what was recorded closed and whole.
`bench_start` measures how soon."""

import os
import signal
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kview.recording.reader import Recording
from tests.e2e.processes import children, runs
from tests.e2e.pseudo_terminal import PseudoTerminal, kview_on_a_terminal
from tests.e2e.test_recording import observations
from tests.waiting import wait_until

LEAVE_ALTERNATE_SCREEN = b"\x1b[?1049l"
SHOW_CURSOR = b"\x1b[?25h"
ENABLE_ECHO = termios.ECHO | termios.ICANON


def send(number: signal.Signals) -> Callable[[PseudoTerminal], None]:
    return lambda terminal: os.kill(terminal.pid, number)


def local_modes(terminal: PseudoTerminal) -> Any:
    return termios.tcgetattr(terminal.child.child_fd)[3]


@pytest.mark.parametrize(
    ("end", "code"),
    [
        pytest.param(lambda terminal: terminal.press("q"), 0, id="q"),
        pytest.param(lambda terminal: terminal.press("\x03"), 0, id="ctrl-c", marks=pytest.mark.slow),
        pytest.param(send(signal.SIGINT), 128 + signal.SIGINT, id="SIGINT", marks=pytest.mark.slow),
        pytest.param(send(signal.SIGTERM), 128 + signal.SIGTERM, id="SIGTERM", marks=pytest.mark.slow),
        pytest.param(send(signal.SIGHUP), 128 + signal.SIGHUP, id="SIGHUP", marks=pytest.mark.slow),
    ],
)
def test_a_dashboard_ends_and_its_recording_is_whole(
    tmp_path: Path, end: Callable[[PseudoTerminal], None], code: int
) -> None:
    folder, there = tmp_path / "seen", tmp_path / "there"
    recorded = ("--record", str(folder), "--record-upload", there.as_uri())
    with kview_on_a_terminal("--simulate", *recorded) as terminal:
        before = local_modes(terminal)
        terminal.wait_for_text("invoice")
        assert not local_modes(terminal) & ENABLE_ECHO
        terminal.wait_for(lambda: observations(folder) > 3, "observations on the disk")
        (child,) = children(terminal.pid)
        end(terminal)
        terminal.wait_for(lambda: local_modes(terminal) == before, "line editing works again")
        assert terminal.wait_for_end() == code
        assert LEAVE_ALTERNATE_SCREEN in terminal.raw and SHOW_CURSOR in terminal.raw
        assert b"Traceback" not in terminal.raw and b"has stopped" not in terminal.raw
        wait_until(lambda: not runs(child), "the simulated cluster ends")
    assert observations(folder) > 3
    if [segment.closed for segment in Recording.open(folder).segments()] != [True]:
        # On a busy machine, which a dashboard that ends does not wait for.
        assert f"the upload of {folder} is incomplete" in "".join(terminal.text().split("\n"))
    else:
        assert observations(there) == observations(folder)


def stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def test_ctrl_z_returns_to_the_shell_and_fg_to_the_screen() -> None:
    with kview_on_a_terminal("--simulate") as terminal:
        before = local_modes(terminal)
        terminal.wait_for_text(r"(\d+) of \1 answer")
        (child,) = children(terminal.pid)
        terminal.press("\x1a")
        terminal.wait_for(lambda: stopped(terminal.pid), "kview stops")  # reads, or kview could not write
        terminal.wait_for(lambda: LEAVE_ALTERNATE_SCREEN in terminal.raw, "the terminal is restored")
        assert SHOW_CURSOR in terminal.raw and local_modes(terminal) == before
        assert not stopped(child), "the simulated cluster goes on"
        terminal.screen.reset()
        os.kill(terminal.pid, signal.SIGCONT)
        terminal.wait_for_text(r"invoice\b[^\n]*\d")
        terminal.wait_for_text(r"(\d+) of \1 answer")
        assert not local_modes(terminal) & ENABLE_ECHO
        terminal.press("5")
        terminal.wait_for_text("write/s")
        terminal.press("q")
        assert terminal.wait_for_end() == 0
        wait_until(lambda: not runs(child), "the simulated cluster ends")


def test_a_terminal_that_goes_away_ends_it() -> None:
    with kview_on_a_terminal("--simulate") as terminal:
        terminal.wait_for_text("invoice")
        (child,) = children(terminal.pid)
        terminal.go_away()
        wait_until(lambda: not runs(terminal.pid), "kview ends")
        wait_until(lambda: not runs(child), "the simulated cluster ends")


def test_after_a_kill_of_kview_no_simulated_cluster_is_left() -> None:
    with kview_on_a_terminal("--simulate") as terminal:
        terminal.wait_for_text("invoice")
        (child,) = children(terminal.pid)
        os.kill(terminal.pid, signal.SIGKILL)
        wait_until(lambda: not runs(child), "the simulated cluster ends")


@pytest.mark.quick(2)
@pytest.mark.parametrize("after_s", [0.3, 0.7, 0.03, 0.1, 0.2, 0.45])
def test_ctrl_c_at_any_moment_of_the_start_is_quiet(after_s: float) -> None:
    with kview_on_a_terminal("--simulate") as terminal:
        while time.monotonic() - terminal.began_s < after_s:
            terminal.read()
        begun = children(terminal.pid)
        terminal.press("\x03")
        code = terminal.wait_for_end()
        # Before kview's `main` runs the interpreter itself answers Ctrl-C, with its own code and words, among
        # which is the `main` of its `site`.
        if b"init_import_site" not in terminal.raw:
            if b"Traceback" in terminal.raw:
                assert b", in main" not in terminal.raw
            else:
                assert code in (0, -signal.SIGINT, 128 + signal.SIGINT)
        for child in begun:
            wait_until(lambda child=child: not runs(child), "the simulated cluster ends")  # type: ignore[misc]


@pytest.mark.slow  # tests/run/test_simulated.py has it without a terminal
def test_a_simulated_cluster_that_dies_is_a_sentence_and_starts_again() -> None:
    with kview_on_a_terminal("--simulate") as terminal:
        terminal.wait_for_text("invoice")
        (child,) = children(terminal.pid)
        os.kill(child, signal.SIGKILL)
        terminal.wait_for_text(r"simulated cluster was killed \(SIGKILL\)")
        terminal.wait_for_text("fresh cluster")
        (other,) = children(terminal.pid)
        assert other != child
        terminal.wait_for_text("invoice")
        terminal.press("q")
        assert terminal.wait_for_end() == 0
        wait_until(lambda: not runs(other), "the second one ends, too")
