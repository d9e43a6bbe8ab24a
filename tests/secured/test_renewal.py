"""The security settings are read again while kview runs."""

from pathlib import Path

from kview.config.security import Security
from kview.observe.access import access
from kview.observe.loop import Loop
from kview.observe.renewal import Renewal
from tests.clocks import SetClock
from tests.secured.certificates import Authority
from tests.secured.settings import login, read, trusting


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


def test_a_key_store_that_is_overwritten_is_used_once_it_is_complete(loop: Loop, tmp_path: Path) -> None:
    authority, alice, clock = Authority(), tmp_path / "alice.pem", SetClock()
    text = f"security.protocol=SSL\n{trusting(authority.write(tmp_path / 'ca.pem'))}"
    text += f"ssl.keystore.type=PEM\nssl.keystore.location={alice}\n"

    def reread() -> Security:
        return read(tmp_path, text).security

    authority.issue("alice").write(alice)
    renewal = Renewal(access(reread()), reread, clock)
    first = renewal.access

    loop.run(lambda: renewal.renew(loop))
    assert renewal.access is first, "nothing has changed"
    issued = authority.issue("alice")
    alice.write_text(issued.key_pem()[:100])
    clock.now_s += 10
    loop.run(lambda: renewal.renew(loop))
    assert renewal.access is first, "half of it is written"
    issued.write(alice)
    loop.run(lambda: renewal.renew(loop))
    assert renewal.access is first, "it was read just now"
    clock.now_s += 10
    loop.run(lambda: renewal.renew(loop))
    tls = renewal.access.security.tls
    assert tls is not None and tls.identity is not None
    assert issued.chain_pem.strip() in tls.identity.chain.strip()
    assert renewal.access.context is not first.context
