"""Records on a terminal, from the brokers of a simulated cluster, and the flag that forbids them."""

import pytest

from tests.e2e.pseudo_terminal import PseudoTerminal, kview_on_a_terminal


def open_records(terminal: PseudoTerminal) -> None:
    """Go from the overview to a partition's topic, and from there to its records."""
    terminal.wait_for_text(r"invoice\b[^\n]*\d")
    terminal.press("\t\r")
    terminal.wait_for_text(r"min\.insync\.replicas|min isr|partitions × ")
    terminal.press("m")


def test_records_and_a_record_in_full() -> None:
    with kview_on_a_terminal("--simulate", columns=120, rows=40) as terminal:
        open_records(terminal)
        terminal.wait_for_text("No record is read until you ask for it")
        terminal.press("l")
        terminal.wait_for_text(r"50 records, \d+ kB fetched")
        terminal.press("\r")
        terminal.wait_for_text(r"RECORD \S+ offset [\d,]+")
        terminal.press("\x1b")
        terminal.wait_for_text("50 records")
        terminal.press("q")
        assert terminal.wait_for_end() == 0


@pytest.mark.slow  # tests/tui/test_records.py has each screen
def test_no_records() -> None:
    with kview_on_a_terminal("--simulate", "--no-records", columns=120, rows=40) as terminal:
        open_records(terminal)
        terminal.wait_for_text(r"reading records is switched off \(--no-records")
        assert b"fetched" not in terminal.raw
