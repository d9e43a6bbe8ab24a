"""A demo on a terminal, with its own simulated cluster, from its first step to its last."""

import re

import pytest

from tests.e2e.pseudo_terminal import PseudoTerminal, kview_on_a_terminal

STEP_S = 60
"""What a step may take: its own time, at most 20 s here, on a busy machine."""


@pytest.mark.slow  # a demo takes its time; tests/school plays them without a terminal
def test_a_demo_is_played_to_its_end_and_the_next_one_begins_on_a_fresh_cluster() -> None:
    with kview_on_a_terminal("demo", "leader-crash") as terminal:
        terminal.wait_for_text("step 1 of 6", STEP_S)
        terminal.wait_for_text("space next step", STEP_S)
        terminal.press(" ")
        terminal.wait_for_text("which broker do the others say", STEP_S)
        terminal.press("2")
        terminal.wait_for_text("Right. A broker that crashes tells nobody", STEP_S)
        terminal.wait_for_text(r"press K \(Shift\+k\) to crash broker 4", STEP_S)
        terminal.press("K")
        terminal.wait_for_text("broker 4 silent", STEP_S)
        for number in (3, 4, 5):
            _next(terminal, number)
        terminal.wait_for_text(r"press B \(Shift\+b\) to bring broker 4 back", STEP_S)
        terminal.press("B")
        terminal.wait_for_text(r"invoice-3 ISR: 2, 5 → 2, 4, 5", STEP_S)
        _next(terminal, 6)
        terminal.wait_for_text("space finish", STEP_S)
        terminal.press(" ")
        terminal.wait_for_text(r"Your answer was right", STEP_S)
        terminal.press(" ")
        terminal.wait_for_text("side by side · step 1 of 4", STEP_S)
        terminal.wait_for_text("● WELL|● cluster healthy", STEP_S)
        assert not re.search("broker 4 (silent|fenced)", terminal.text())
        terminal.press("q")
        assert terminal.wait_for_end() == 0


def _next(terminal: PseudoTerminal, number: int) -> None:
    terminal.wait_for_text("space next step", STEP_S)
    terminal.press(" ")
    terminal.wait_for_text(f"step {number} of 6", STEP_S)
