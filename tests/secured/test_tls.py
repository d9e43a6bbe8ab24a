"""Servers that speak TLS, or do not: what kview sees, and what it says."""

import http.server
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from kview.config.security import Security
from kview.errors import BadUse, ClusterUnreachable
from kview.language.errors import sentence
from kview.model.address import Address
from kview.model.snapshot import Snapshot
from kview.observe.observer import Observer
from tests.errors import raises_saying
from tests.observe.fake_broker import FakeBroker, Server, silent
from tests.observe.observing import until
from tests.secured.certificates import DAY, Authority, Issued
from tests.secured.fakes import TlsBroker, server_context
from tests.secured.settings import security, trusting

DEADLINE_S = 3.0


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture
def trusted(authority: Authority, tmp_path: Path) -> str:
    """The lines with which kview trusts the authority's certificates."""
    return "security.protocol=SSL\n" + trusting(authority.write(tmp_path / "ca.pem"))


def refusal(address: Address, settings: Security) -> str:
    """What kview says instead of connecting."""
    with pytest.raises(ClusterUnreachable) as caught:
        Observer([address], security=settings).connect(DEADLINE_S)
    return sentence(caught.value)


def seen(address: Address, settings: Security) -> Snapshot:
    """An observation with the high watermark of the one partition."""
    observer = Observer([address], security=settings)
    observer.connect(DEADLINE_S)
    try:
        return until(observer, lambda one: one.partitions.high_watermark.tolist() == [100], "the watermark")
    finally:
        observer.close()


def test_a_broker_behind_tls(authority: Authority, trusted: str, tmp_path: Path) -> None:
    with TlsBroker(server_context(authority.issue("broker"), tmp_path)) as broker:
        snapshot = seen(broker.address, security(tmp_path, trusted))
    assert snapshot.brokers.state.tolist() == ["up"]
    assert snapshot.brokers.port.tolist() == [broker.port]


def test_a_server_certificate_can_be_trusted_by_itself(authority: Authority, tmp_path: Path) -> None:
    issued = authority.issue("broker")
    own = tmp_path / "own.pem"
    own.write_text("Name: Müller\n" + issued.chain_pem.partition("-----END CERTIFICATE-----")[0])
    own.write_text(own.read_text() + "-----END CERTIFICATE-----\n")
    with TlsBroker(server_context(issued, tmp_path)) as broker:
        assert len(
            seen(broker.address, security(tmp_path, "security.protocol=SSL\n" + trusting(own))).brokers
        )


OTHER_NAME = (
    "is for another host name: give the host name that the certificate is for; if it cannot be reached"
)


def test_a_certificate_for_another_host(authority: Authority, trusted: str, tmp_path: Path) -> None:
    issued = authority.issue("broker", hosts=("kafka.example.com",))
    with TlsBroker(server_context(issued, tmp_path)) as broker:
        assert OTHER_NAME in refusal(broker.address, security(tmp_path, trusted))
        lax = trusted + "ssl.endpoint.identification.algorithm=\n"
        assert len(seen(broker.address, security(tmp_path, lax)).brokers)


def test_a_certificate_that_has_expired(authority: Authority, trusted: str, tmp_path: Path) -> None:
    issued = authority.issue("broker", ends_in=-DAY)
    with TlsBroker(server_context(issued, tmp_path)) as broker:
        said = refusal(broker.address, security(tmp_path, trusted))
    assert f"the certificate of {broker.address}, or of an authority that signed it, has expired" in said
    assert "this machine's clock" in said


def test_a_server_with_an_old_version_of_tls(authority: Authority, trusted: str, tmp_path: Path) -> None:
    context = server_context(authority.issue("broker"), tmp_path, ssl.TLSVersion.TLSv1_1)
    with TlsBroker(context) as broker:
        said = refusal(broker.address, security(tmp_path, trusted))
    assert "have no TLS version or cipher in common: kview uses TLS 1.2 and 1.3" in said


def test_a_port_that_accepts_and_never_answers_the_handshake(trusted: str, tmp_path: Path) -> None:
    with Server(silent) as server:
        said = refusal(server.address, security(tmp_path, trusted))
    assert "accepts connections but does not answer" in said


def test_a_plaintext_broker_where_tls_is_expected(trusted: str, tmp_path: Path) -> None:
    with FakeBroker() as broker:
        said = refusal(broker.address, security(tmp_path, trusted))
    assert f"{broker.address} is a plaintext listener, but kview was asked to use TLS" in said


@pytest.fixture
def web_server() -> Iterator[Address]:
    class Quiet(http.server.BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            """Nothing: the test's output is not an access log."""

    with http.server.HTTPServer(("127.0.0.1", 0), Quiet) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield Address("127.0.0.1", server.server_address[1])
        server.shutdown()
        thread.join()


def test_a_web_server_where_tls_is_expected(web_server: Address, trusted: str, tmp_path: Path) -> None:
    assert "is the port of an HTTP server" in refusal(web_server, security(tmp_path, trusted))


def test_an_address_that_is_mapped_is_checked_against_the_name_that_is_advertised(
    authority: Authority, trusted: str, tmp_path: Path
) -> None:
    """As with containers: brokers advertise `kafka:9092`, which only they can reach."""
    settings = security(tmp_path, trusted)
    advertised = Address("kafka.invalid", 9092)
    issued = authority.issue("broker", hosts=("kafka.invalid",))
    with TlsBroker(server_context(issued, tmp_path), advertised={0: advertised}) as broker:
        routes = {advertised: broker.address}
        snapshot = seen(advertised, Security(settings.protocol, settings.tls, routes=routes))
    assert snapshot.brokers.host.tolist() == ["kafka.invalid"]
    assert snapshot.brokers.state.tolist() == ["up"]


def test_an_advertised_address_that_cannot_be_reached_says_how_to_map_it() -> None:
    advertised = Address("kafka.invalid", 9092)
    with FakeBroker(advertised={0: advertised}) as broker:
        said = refusal(broker.address, Security())
        assert f"{broker.address} answers, but none of the addresses that the cluster advertises does" in said
        assert said.endswith("map each one: --map kafka.invalid:9092=HOST:PORT")
        assert len(seen(broker.address, Security(routes={advertised: broker.address})).brokers)


def certificates(issued: Issued, other: Issued, path: Path, password: str) -> dict[str, str]:
    """Identities that cannot be used, with what is said of each."""
    mixed = path / "mixed.pem"
    mixed.write_text(other.key_pem() + issued.chain_pem)
    encrypted = issued.write(path / "encrypted.pem", password)
    return {
        str(mixed): "does not belong to the certificate",
        str(encrypted): "cannot be read: check the file",
    }


def test_keys_that_cannot_be_used_are_bad_use(authority: Authority, trusted: str, tmp_path: Path) -> None:
    issued, other = authority.issue("alice"), authority.issue("alice")
    for path, said in certificates(issued, other, tmp_path, "wonderland").items():
        for password in ("", "ssl.key.password=tea-party\n"):
            settings = security(tmp_path, f"{trusted}ssl.keystore.location={path}\n{password}")
            with raises_saying(BadUse, said) as caught:
                Observer([Address("127.0.0.1", 1)], security=settings)
            assert path in sentence(caught.value)
