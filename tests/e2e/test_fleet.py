"""Several clusters on a terminal: one is killed and started again while the others go on."""

from pathlib import Path

import pytest

from tests.e2e.pseudo_terminal import kview_on_a_terminal
from tests.observe.fake_broker import FakeBroker


@pytest.mark.slow  # kview starts on a terminal; its parts have quick tests
def test_a_fleet_on_a_terminal(tmp_path: Path) -> None:
    config = tmp_path / "config" / "kview" / "config.toml"
    config.parent.mkdir(parents=True)
    homes = {f"XDG_{kind}_HOME": str(tmp_path / kind.lower()) for kind in ("CONFIG", "STATE")}
    with FakeBroker(0) as one, FakeBroker(0) as other:
        address = one.address
        config.write_text(
            f'[clusters.eu]\nservers = "{address}"\n[clusters.us]\nservers = "{other.address}"\n'
        )
        with kview_on_a_terminal("connect", "--all", "--no-spark", environment=homes) as terminal:
            terminal.wait_for_text("2 of 2 current")
            one.close()
            terminal.wait_for_text("eu: no broker answers")
            terminal.wait_for_text("1 of 2 current")
            terminal.press("j\r")
            terminal.wait_for_text("kview ▸ us")
            with FakeBroker(0, port=address.port):
                terminal.press("\x1b")
                terminal.wait_for_text("2 of 2 current")
                terminal.press("\x10")
                terminal.wait_for_text("GO TO")
                terminal.press("connect eu")
                terminal.wait_for_text("▸ *connect eu")
                terminal.press("\r")
                terminal.wait_for_text("kview ▸ eu")
                terminal.wait_for_text("stopped answering")
                terminal.press("q")
                assert terminal.wait_for_end() == 0
        assert b"Traceback" not in terminal.raw
        assert terminal.raw.count(b"\x1b[?1049l") == 1, "the shell's screen does not flash up"
