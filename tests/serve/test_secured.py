"""`kview serve --security`: clients of other libraries, and kview itself, get in with its files."""

import os
import socket
import ssl
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer

from kview.config.security import PLAINTEXT
from kview.errors import ClusterUnreachable
from kview.lab.ways import WAYS, Way
from kview.language.errors import sentence
from kview.observe.observer import Observer
from tests.cli.commands import run_kview
from tests.serve.clients import consumer, deliver, producer
from tests.serve.secured import ADMIN, ALICE, SecuredServed

SMALL = ("--no-traffic", "--brokers", "1", "--racks", "1", "--topic", "orders:2:1")
RECORDS = [b"one", b"two"]
API_VERSIONS = bytes.fromhex("0000000a 0012 0000 00000007 ffff")
NOT_TLS = bytes.fromhex("15030300020250")


@pytest.fixture(scope="module")
def served() -> Iterator[SecuredServed]:
    """A cluster with TLS and logins."""
    with SecuredServed("sasl_ssl", *SMALL) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def mutual() -> Iterator[SecuredServed]:
    """A cluster whose clients need a certificate."""
    with SecuredServed("mtls", *SMALL) as cluster:
        yield cluster


def librdkafka(cluster: SecuredServed, user: str = ADMIN) -> Mapping[str, str]:
    """The settings of a client of librdkafka, from the file for it."""
    name = "librdkafka.conf" if user == ADMIN else f"{user}.conf"
    lines = (cluster.folder / name).read_text().splitlines()
    return dict(line.split("=", 1) for line in lines)


def underscored(settings: Mapping[str, str]) -> dict[str, Any]:
    return {key.replace(".", "_"): value for key, value in settings.items()}


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_librdkafka_writes_and_reads(served: SecuredServed, mechanism: str) -> None:
    settings = underscored({**librdkafka(served), "sasl.mechanism": mechanism})
    partition = 1 if mechanism == "PLAIN" else 0
    offsets = deliver(producer(served.bootstrap, **settings), "orders", RECORDS, partition)
    client = consumer(served.bootstrap, f"readers-{mechanism}", **settings)
    client.assign([confluent_kafka.TopicPartition("orders", partition, offsets[0])])
    messages: list[Any] = []
    while len(messages) < len(RECORDS):
        messages += client.consume(1, timeout=10.0)
    client.close()
    assert [message.value() for message in messages] == RECORDS


def test_kafka_python_writes_and_reads(served: SecuredServed) -> None:
    settings: dict[str, Any] = {
        "bootstrap_servers": served.bootstrap,
        "security_protocol": "SASL_SSL",
        "ssl_cafile": str(served.folder / "ca.pem"),
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": ADMIN,
        "sasl_plain_password": served.password(),
    }
    with KafkaAdminClient(**settings) as admin:
        admin.create_topics({"python": {"num_partitions": 1, "replication_factor": 1}})
    sender = KafkaProducer(**settings)
    for value in RECORDS:
        sender.send("python", value)
    sender.close()
    reader = KafkaConsumer("python", auto_offset_reset="earliest", consumer_timeout_ms=20_000, **settings)
    got = [next(reader).value for _ in RECORDS]
    reader.close()
    assert got == RECORDS


def test_kview_itself_gets_in_and_says_what_is_wrong(served: SecuredServed) -> None:
    address = served.addresses[0]
    observer = Observer([address], security=served.security())
    observer.connect(10.0)
    observer.close()
    with pytest.raises(ClusterUnreachable) as caught:
        Observer([address], security=PLAINTEXT).connect(10.0)
    assert f"{address} is a TLS listener" in sentence(caught.value)
    alice = served.client_file(ALICE).read_text().replace(served.password(ALICE), "wrong")
    wrong = served.folder / "wrong.properties"
    wrong.write_text(alice)
    done = run_kview("check", str(address), "--command-config", str(wrong))
    assert done.returncode == 3 and "does not accept this user name and password" in done.stderr


def test_other_bytes_on_a_tls_port_end_their_own_connection_only(served: SecuredServed) -> None:
    handshake = bytes.fromhex("0000000e 0011 0001 00000007 ffff 0002 5858")
    for other in (handshake, b"GET / HTTP/1.0\r\n\r\n"):
        with socket.create_connection(served.addresses[0], timeout=10) as connection:
            connection.sendall(other)
            assert connection.recv(99) == NOT_TLS
            assert connection.recv(99) == b""
    assert (
        "orders"
        in AdminClient({"bootstrap.servers": served.bootstrap, **librdkafka(served)})
        .list_topics(timeout=10)
        .topics
    )


def test_tls_on_a_plain_port_ends_its_own_connection_only(simulated_cluster: Any) -> None:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with (
        socket.create_connection(simulated_cluster.addresses[0], timeout=10) as connection,
        pytest.raises((ssl.SSLError, ConnectionResetError)),
    ):
        context.wrap_socket(connection)
    assert simulated_cluster.fenced() == set()


def test_a_client_certificate_says_who_the_client_is(mutual: SecuredServed) -> None:
    admin = AdminClient({"bootstrap.servers": mutual.bootstrap, **librdkafka(mutual)})
    assert "orders" in admin.list_topics(timeout=10).topics
    alice = AdminClient({"bootstrap.servers": mutual.bootstrap, **librdkafka(mutual, ALICE)})
    assert not alice.list_topics(timeout=10).topics
    kinds: Any = confluent_kafka.admin
    rule = kinds.AclBinding(
        kinds.ResourceType.TOPIC,
        "orders",
        kinds.ResourcePatternType.LITERAL,
        "User:CN=alice",
        "*",
        kinds.AclOperation.DESCRIBE,
        kinds.AclPermissionType.ALLOW,
    )
    for future in admin.create_acls([rule]).values():
        future.result(10)
    assert set(alice.list_topics(timeout=10).topics) == {"orders"}


def test_without_a_certificate_the_client_is_told_so(mutual: SecuredServed) -> None:
    context = ssl.create_default_context(cafile=str(mutual.folder / "ca.pem"))
    with socket.create_connection(mutual.addresses[0], timeout=10) as connection:
        wrapped = context.wrap_socket(connection, server_hostname="127.0.0.1")
        with pytest.raises(ssl.SSLError, match="CERTIFICATE_REQUIRED"):
            wrapped.recv(1)


def test_the_files_are_the_users_own_and_go_with_the_cluster() -> None:
    with SecuredServed("sasl_ssl:plain", *SMALL) as cluster:
        folder: Path = cluster.folder
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
        said = cluster.line + cluster.errors()
        assert cluster.line.startswith(f"command.config={folder}/client.properties")
        for user in (ADMIN, ALICE):
            assert user in cluster.line and cluster.password(user) not in said
    assert not folder.exists()


@pytest.mark.parametrize("way", WAYS)
def test_each_way_is_a_protocol_and_perhaps_a_mechanism(way: str) -> None:
    parsed = Way.of(way)
    assert parsed.knows_users == (way != "ssl")
    assert parsed.protocol.has_login == (parsed.mechanism is not None) == way.startswith("sasl")
    assert parsed.protocol.has_tls == (not way.startswith("sasl_plaintext"))


def test_a_broker_that_crashes_resets_its_tls_connections_and_one_that_hangs_is_silent() -> None:
    flags = ("--no-traffic", "--brokers", "2", "--racks", "1", "--topic", "orders:1:1")
    with SecuredServed("ssl", *flags) as cluster:
        context = ssl.create_default_context(cafile=str(cluster.folder / "ca.pem"))
        context.verify_flags |= ssl.VERIFY_X509_STRICT  # as clients of Python 3.13
        for broker, fault in ((0, "hang"), (1, "crash")):
            with (
                socket.create_connection(cluster.addresses[broker], timeout=10) as plain,
                context.wrap_socket(plain, server_hostname="127.0.0.1") as connection,
                socket.create_connection(cluster.addresses[broker], timeout=10) as silent,
            ):
                connection.sendall(API_VERSIONS)
                assert len(connection.recv(9999)) > 4
                cluster.do(f"{fault} {broker}")
                if fault == "hang":
                    connection.sendall(API_VERSIONS)
                    for one in (connection, silent):
                        one.settimeout(0.3)
                    with pytest.raises(TimeoutError):
                        connection.recv(1)
                    with pytest.raises(TimeoutError), silent.dup() as copy:
                        context.wrap_socket(copy, server_hostname="127.0.0.1")
                    cluster.do(f"start {broker}")
                    connection.settimeout(10)
                    assert connection.recv(1)
                    silent.settimeout(10)
                    assert silent.recv(1) == b"\x16", "the handshake goes on"
                else:
                    # Python's TLS says only that the connection has ended.
                    with socket.socket(fileno=os.dup(connection.fileno())) as raw:
                        raw.settimeout(10)
                        for each in (raw, silent):
                            with pytest.raises(ConnectionResetError):
                                each.recv(1)
