"""The security settings are read again while kview runs."""

from pathlib import Path

from kview.config.security import Security
from kview.observe.access import access
from kview.observe.loop import Loop
from kview.observe.renewal import Renewal
from tests.clocks import SetClock
from tests.secured.settings import login, read


def test_a_file_that_is_empty_for_a_moment_or_a_pipe_that_has_been_read_changes_nothing(
    loop: Loop, tmp_path: Path
) -> None:
    """`--command-config <(vault read …)` can be read once. Without its login, kview could never come back."""
    text, clock = login("PLAIN", "bob", "first"), SetClock()

    def reread() -> Security:
        return read(tmp_path, text).security

    renewal = Renewal(access(reread()), reread, clock)
    first = renewal.access

    text = ""
    loop.run(lambda: renewal.renew(loop))
    assert renewal.access is first
    text = login("PLAIN", "bob", "second")
    clock.now_s += 10
    loop.run(lambda: renewal.renew(loop))
    assert renewal.access.login["sasl_plain_password"] == "second"
