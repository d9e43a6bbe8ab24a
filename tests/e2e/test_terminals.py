"""Terminals and encodings: what cannot be shown has a stand-in, and what cannot be drawn on gets text."""

import os
import re
import signal
from pathlib import Path

import pytest

from tests.e2e.pseudo_terminal import kview_on_a_terminal

MOUSE = b"\x1b[?1000h"
"""What asks a terminal for the mouse."""


@pytest.mark.parametrize(
    ("environment", "flags"),
    [
        pytest.param({"TERM": "linux"}, [], id="TERM=linux", marks=pytest.mark.slow),
        pytest.param({"PYTHONIOENCODING": "latin-1"}, [], id="latin-1"),
        pytest.param({}, ["--ascii"], id="--ascii", marks=pytest.mark.slow),
    ],
)
def test_where_glyphs_cannot_be_shown_only_ascii_gets_out(
    environment: dict[str, str], flags: list[str]
) -> None:
    with kview_on_a_terminal("--simulate", *flags, environment=environment) as terminal:
        terminal.wait_for_text(r"invoice\b[^\n]*\d")
        terminal.press("?")
        terminal.wait_for_text("SIGNS|FAULTS")
        os.kill(terminal.pid, signal.SIGTERM)
        terminal.wait_for_end()
        assert terminal.raw.isascii()
        assert b"Traceback" not in terminal.raw


def test_no_color() -> None:
    with kview_on_a_terminal("--simulate", environment={"NO_COLOR": "1"}) as terminal:
        terminal.wait_for_text(r"invoice\b[^\n]*\d")
        colours = {
            code
            for sgr in re.findall(rb"\x1b\[([\d;]*)m", bytes(terminal.raw))
            for code in re.findall(rb"(?:^|;)([34]8;[25];[\d;]+)", sgr)
        }
        assert colours == set() and MOUSE in terminal.raw


def test_a_dumb_terminal_gets_text() -> None:
    with kview_on_a_terminal("--simulate", "--once", environment={"TERM": "dumb"}) as terminal:
        assert terminal.wait_for_end() == 0
        assert b"\x1b" not in terminal.raw
        assert "BROKER" in terminal.raw.decode() and "invoice" in terminal.raw.decode()


@pytest.mark.slow  # tests/tui has a storm of resizes
def test_a_window_of_any_size_that_shrinks_to_nothing_and_grows_again() -> None:
    with kview_on_a_terminal("--simulate", "--no-mouse", columns=60, rows=15) as terminal:
        terminal.wait_for_text(r"6 of 6 answer")
        assert MOUSE not in terminal.raw
        for columns, rows in [(1, 1), (10, 3), (80, 24), (200, 50)]:
            terminal.child.setwinsize(rows, columns)
            terminal.screen.reset()
            terminal.screen.resize(rows, columns)
            terminal.wait_for_text(r"6 of 6 answer" if columns > 10 else r"\S")
        terminal.press("q")
        assert terminal.wait_for_end() == 0
        assert b"Traceback" not in terminal.raw


@pytest.mark.slow  # tests/tui/test_keymap.py has what is wrong with one
def test_a_wrong_key_file_is_refused_where_keys_matter(tmp_path: Path) -> None:
    keys = tmp_path / "kview" / "keys.toml"
    keys.parent.mkdir()
    keys.write_text('sort = "y"\n')
    with kview_on_a_terminal(
        "--simulate", columns=200, environment={"XDG_CONFIG_HOME": str(tmp_path)}
    ) as terminal:
        assert terminal.wait_for_end() == 2
        assert f"{keys}, line 1: sort and copy both use the key y" in terminal.text().replace("\n", "")
        assert b"Traceback" not in terminal.raw
