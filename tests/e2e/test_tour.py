"""The tour on a terminal: the first run begins with it, the second one does not."""

from pathlib import Path

import pytest

from tests.e2e.pseudo_terminal import kview_on_a_terminal

START_S = 60


@pytest.mark.slow  # tests/school has the tour without a terminal
def test_the_first_run_shows_the_tour_and_the_second_does_not(tmp_path: Path) -> None:
    state = {"XDG_STATE_HOME": str(tmp_path)}
    with kview_on_a_terminal("--simulate", environment=state, tour=True) as terminal:
        terminal.wait_for_text("TOUR · step 1 of 5", START_S)
        terminal.press("K")
        terminal.wait_for_text("it is fenced when its session ends", START_S)
        for number in (2, 3, 4, 5):
            terminal.press(" ")
            terminal.wait_for_text(f"TOUR · step {number} of 5")
        terminal.press(" ")
        terminal.wait_for_text("TOUR · the end", START_S)
        terminal.wait_for_text("brings it back", START_S)
        assert (tmp_path / "kview" / "tour-seen").exists()
        terminal.press("q")
        assert terminal.wait_for_end() == 0
    with kview_on_a_terminal("--simulate", environment=state, tour=True) as terminal:
        terminal.wait_for_text("K crash", START_S)
        assert "TOUR" not in terminal.text()
        terminal.press("q")
        assert terminal.wait_for_end() == 0
