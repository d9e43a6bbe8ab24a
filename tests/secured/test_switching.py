"""From one profile to another, in the same terminal."""

from pathlib import Path

import pytest

from tests.e2e.pseudo_terminal import kview_on_a_terminal
from tests.observe.fake_broker import FakeBroker
from tests.real_kafka.nodes import free_ports
from tests.secured.fakes import SaslBroker
from tests.secured.settings import login

PASSWORDS = ("xyzzy-1f3a", "plugh-77bd")

CONFIG = """
[clusters.first]
servers = "{}"
command-config = "first.properties"
[clusters.second]
servers = "{}"
command-config = "second.properties"
"""


@pytest.mark.slow  # kview starts on a terminal; its parts have quick tests
def test_the_palette_switches_to_another_profile_and_no_screen_shows_a_password(tmp_path: Path) -> None:
    config = tmp_path / "config" / "kview"
    config.mkdir(parents=True)
    for name, password in zip(("first", "second"), PASSWORDS, strict=True):
        (config / f"{name}.properties").write_text(login("PLAIN", "bob", password))
    with SaslBroker(PASSWORDS[0]) as first, SaslBroker(PASSWORDS[1]) as second:
        (config / "config.toml").write_text(CONFIG.format(first.address, second.address))
        homes = {f"XDG_{kind}_HOME": str(tmp_path / kind.lower()) for kind in ("CONFIG", "STATE")}
        with kview_on_a_terminal("connect", "first", environment=homes) as terminal:
            terminal.wait_for_text("kview ▸ first")
            terminal.wait_for_text("invoice")
            terminal.press("\x10")
            terminal.wait_for_text("GO TO")
            terminal.press("connect")
            terminal.wait_for_text("▸ *connect second")
            assert "connect first" not in terminal.text()
            terminal.press("\r")
            terminal.wait_for_text("kview ▸ second")
            terminal.wait_for_text("invoice")
            assert second.logins and all(first.logins) and all(second.logins)
            terminal.press("q")
            assert terminal.wait_for_end() == 0
            assert b"Traceback" not in terminal.raw
    written = bytes(terminal.raw) + b"".join(
        path.read_bytes() for path in (tmp_path / "state").rglob("*") if path.is_file()
    )
    for password in PASSWORDS:
        assert password.encode() not in written


@pytest.mark.slow  # kview starts on a terminal; its parts have quick tests
def test_a_profile_that_cannot_be_reached_leads_back_to_the_one_before(tmp_path: Path) -> None:
    config = tmp_path / "kview"
    config.mkdir()
    environment = {"XDG_CONFIG_HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")}
    with FakeBroker(0) as broker:
        closed = f"127.0.0.1:{free_ports(1)[0]}"
        profiles = (
            f'[clusters.first]\nservers = "{broker.address}"\n[clusters.second]\nservers = "{closed}"\n'
        )
        (config / "config.toml").write_text(profiles)
        with kview_on_a_terminal("connect", "first", environment=environment) as terminal:
            terminal.wait_for_text("invoice")
            terminal.press("\x10")
            terminal.wait_for_text("GO TO")
            terminal.press("connect second")
            terminal.wait_for_text("▸ *connect second")
            terminal.press("\r")
            terminal.wait_for_text(f"second cannot be shown: nothing is listening on {closed}")
            terminal.wait_for_text("invoice")
            assert "first" in terminal.text()
            terminal.press("q")
            assert terminal.wait_for_end() == 0
