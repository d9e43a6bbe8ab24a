"""Logins with a password: accepted, refused, renewed, and never shown."""

import base64
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from kview.config.client_properties import read_client_properties
from kview.config.security import PLAINTEXT, Security
from kview.errors import ClusterUnreachable
from kview.language.errors import sentence
from kview.observe.observer import Observer, ObserveSettings
from kview.plain.blocks import block
from tests.cli.commands import run_kview
from tests.observe.observing import Watched, broker_state, until
from tests.secured.fakes import SaslBroker
from tests.secured.settings import login, security, token_client
from tests.secured.token_endpoint import CLIENT_ID, CLIENT_SECRET, TokenEndpoint

QUICK = ObserveSettings(interval_s=0.2, silence_s=20.0, retry_most_s=0.4)
"""Patient, so that a busy machine is not taken for a silent broker."""
PASSWORD = "xyzzy-1f3a"


@contextmanager
def observing(broker: SaslBroker, settings: Security) -> Iterator[Observer]:
    observer = Observer([broker.address], QUICK, security=settings)
    observer.connect()
    try:
        yield observer
    finally:
        observer.close()


def refusal(broker: SaslBroker, settings: Security) -> str:
    with pytest.raises(ClusterUnreachable) as caught:
        Observer([broker.address], security=settings).connect(3.0)
    return sentence(caught.value)


def test_without_a_login_the_mechanisms_on_offer_are_named_after_few_connections() -> None:
    with SaslBroker(PASSWORD) as broker:
        said = refusal(broker, PLAINTEXT)
    assert f"{broker.address} asks for a login (SASL), and kview was given none" in said
    assert "sasl.mechanism (PLAIN)" in said
    assert broker.connections == 2


def test_a_refused_login_is_not_repeated_at_once(tmp_path: Path) -> None:
    """Brokers and directories lock users out after some wrong passwords."""
    with SaslBroker(PASSWORD) as broker:
        said = refusal(broker, security(tmp_path, login("PLAIN", "bob", "not it")))
    assert f"{broker.address} does not accept this user name and password (PLAIN)" in said
    assert broker.logins == [False]


def test_a_mechanism_that_is_not_offered(tmp_path: Path) -> None:
    with SaslBroker(PASSWORD) as broker:
        said = refusal(broker, security(tmp_path, login("SCRAM-SHA-512", "bob", PASSWORD)))
    assert (
        "does not offer the SASL mechanism SCRAM-SHA-512: set sasl.mechanism to one that it offers: PLAIN"
        in said
    )
    assert broker.logins == []


def test_a_session_is_renewed_on_the_same_connection(tmp_path: Path) -> None:
    with SaslBroker(PASSWORD, session_ms=1_000) as broker:
        with observing(broker, security(tmp_path, login("PLAIN", "bob", PASSWORD))) as observer:
            first = len(broker.logins)
            until(observer, lambda _: len(broker.logins) >= first + 4, "two renewals on each connection")
            snapshot = observer.observe()
        assert broker.connections == 3, "one to find the cluster, and one for each lane"
    assert all(broker.logins)
    assert snapshot.brokers.state.tolist() == ["up"]


def test_a_password_that_changes_during_a_run_is_said_and_the_new_one_heals(tmp_path: Path) -> None:
    settings = security(tmp_path, login("PLAIN", "bob", PASSWORD))
    with SaslBroker(PASSWORD, session_ms=1_000) as broker, observing(broker, settings) as observer:
        watched = Watched(observer)
        watched.until(lambda view: broker_state(view, 0) == "up", "the broker is up")
        broker.password = "rotated"
        watched.until(
            lambda view: "does not accept the user name and password" in block(view, "test"), "it is refused"
        )
        assert broker_state(watched.views[-1], 0) == "silent"
        broker.password = PASSWORD
        watched.until(lambda view: broker_state(view, 0) == "up", "the broker is up again")


def test_a_password_that_is_replaced_in_its_file_is_read_again(tmp_path: Path) -> None:
    """Brokers and files never change at the same moment, so some logins are refused in between."""
    with SaslBroker(PASSWORD, session_ms=1_000) as broker:
        held = tmp_path / "password"
        held.write_text(PASSWORD)
        config = tmp_path / "client.properties"
        config.write_text(login("PLAIN", "bob", f"${{file:{held}}}"))

        def reread() -> Security:
            return read_client_properties(config, {}).security

        observer = Observer([broker.address], QUICK, security=reread(), reread=reread)
        observer.connect()
        with closing(observer):
            watched = Watched(observer)
            watched.until(lambda view: broker_state(view, 0) == "up", "the broker is up")
            broker.password = "rotated-9c1"
            watched.until(lambda view: broker_state(view, 0) == "silent", "it is refused")
            held.unlink()
            refused = broker.logins.count(False)
            watched.until(lambda _: broker.logins.count(False) > refused, "the file is missing")
            held.write_text("rotated-9c1")
            view = watched.until(lambda view: broker_state(view, 0) == "up", "the broker is up again")
            assert "does not accept" not in block(view, "test")
            accepted = len(broker.logins)
            watched.until(lambda _: len(broker.logins) >= accepted + 4, "two renewals on each connection")
            assert all(broker.logins[accepted:])
        assert broker.logins.count(False) <= 8, "two connections, and a pause that grows"


def test_a_token_that_brokers_no_longer_accept_is_replaced_long_before_it_expires(tmp_path: Path) -> None:
    """As after a change of the endpoint's keys."""
    with (
        TokenEndpoint() as endpoint,
        SaslBroker("first", session_ms=1_000, mechanism="OAUTHBEARER") as broker,
    ):
        endpoint.fixed = "first"
        settings = security(tmp_path, token_client(endpoint.url, CLIENT_ID, CLIENT_SECRET))
        with observing(broker, settings) as observer:
            watched = Watched(observer)
            watched.until(lambda view: broker_state(view, 0) == "up", "the broker is up")
            broker.password = endpoint.fixed = "second"
            watched.until(lambda view: broker_state(view, 0) == "silent", "the token is refused")
            watched.until(lambda view: broker_state(view, 0) == "up", "the broker is up again")
        assert len(endpoint.forms) <= 4, "each connection asks for another one, and no more"


def test_the_token_endpoint_is_named_if_it_gives_no_token(tmp_path: Path) -> None:
    with SaslBroker(PASSWORD) as broker, TokenEndpoint() as endpoint:
        said = refusal(broker, security(tmp_path, token_client(endpoint.url, "kview", "not it")))
    assert f"the token endpoint {endpoint.url} does not accept the client id and secret: check both" in said
    assert broker.logins == []


def test_a_token_endpoint_that_cannot_be_reached(tmp_path: Path) -> None:
    with SaslBroker(PASSWORD) as broker:
        said = refusal(broker, security(tmp_path, token_client("http://127.0.0.1:9/token", "kview", "x")))
    assert said.startswith(
        "the token endpoint http://127.0.0.1:9/token did not give a token: check the address"
    )


def contents(folder: Path) -> bytes:
    """Everything in the files of a folder."""
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


@pytest.mark.quick(1)
@pytest.mark.parametrize("right", [True, False])
def test_the_password_is_in_no_output_log_or_recording(tmp_path: Path, right: bool) -> None:
    config, state, recorded = tmp_path / "client.properties", tmp_path / "state", tmp_path / "recorded"
    config.write_text(login("PLAIN", "bob", "${env:PW}"))
    given = PASSWORD if right else PASSWORD + "-wrong"
    with SaslBroker(PASSWORD) as broker:
        done = run_kview(
            "connect", str(broker.address), "--once", "--interval", "200ms", "--format", "json",
            "--command-config", str(config), "--record", str(recorded),
            environment={"PW": given, "XDG_STATE_HOME": str(state)},
        )  # fmt: skip
    assert done.returncode == (0 if right else 3), done.stderr
    assert broker.logins and all(one is right for one in broker.logins)
    log = contents(state)
    assert b"kafka" in log or b"kview" in log, "what kafka-python warns of is in the log"
    written = done.stdout.encode() + done.stderr.encode() + log
    if right:
        assert b"invoice" in written
        written += contents(recorded)
    assert PASSWORD.encode() not in written


def test_a_client_secret_is_in_no_output_or_log(tmp_path: Path) -> None:
    config, state = tmp_path / "client.properties", tmp_path / "state"
    with SaslBroker(PASSWORD) as broker, TokenEndpoint() as endpoint:
        config.write_text(token_client(endpoint.url, "kview", PASSWORD))
        done = run_kview(
            "connect", str(broker.address), "--once", "--command-config", str(config),
            environment={"XDG_STATE_HOME": str(state)},
        )  # fmt: skip
    assert done.returncode == 3
    log = contents(state)
    assert b"the token endpoint answered with status 401" in log
    hidden = (PASSWORD.encode(), base64.b64encode(f"kview:{PASSWORD}".encode()))
    assert not [secret for secret in hidden if secret in done.stdout.encode() + done.stderr.encode() + log]
