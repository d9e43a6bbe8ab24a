"""`kview serve --listen` and `--advertise`: where brokers listen, and where they tell clients to connect."""

import socket
import ssl
from typing import Any

import pytest
from kafka.protocol.admin import DescribeClusterRequest, DescribeConfigsRequest
from kafka.protocol.metadata import FindCoordinatorRequest, MetadataRequest

from kview.config.client_properties import read_client_properties
from kview.model.address import Address, Place
from tests.real_kafka.asking import ask
from tests.serve.secured import SecuredServed
from tests.serve.test_flags import first_port, free_ports, serving
from tests.served import Served

HERE = "127.0.0.2"
SMALL = ("--empty", "--brokers", "2", "--racks", "1")


def told(address: tuple[str, int]) -> list[list[tuple[str, int]]]:
    """Where Metadata, DescribeCluster and FindCoordinator say that the brokers are."""
    asked: list[Any] = [
        ask(address, MetadataRequest(version=9, topics=[], allow_auto_topic_creation=False)).brokers,
        ask(address, DescribeClusterRequest(version=1)).brokers,
        ask(address, FindCoordinatorRequest(version=4, key_type=0, coordinator_keys=["g"])).coordinators,
    ]
    return [sorted((each.host, each.port) for each in brokers) for brokers in asked]


def test_clients_are_told_the_advertised_addresses_whose_ports_are_counted_up() -> None:
    first = free_ports(2)
    with Served("--listen", f"{HERE}:{first}", "--advertise", "kafka.test:9092", *SMALL) as cluster:
        assert cluster.bootstrap == "kafka.test:9092,kafka.test:9093"
        everybody = [("kafka.test", 9092), ("kafka.test", 9093)]
        for broker in range(2):
            *all_brokers, coordinator = told((HERE, first + broker))
            assert all_brokers == [everybody, everybody]
            assert coordinator[0] in everybody
        resource = DescribeConfigsRequest.DescribeConfigsResource(
            resource_type=4, resource_name="1", configuration_keys=["listeners", "advertised.listeners"]
        )
        (row,) = ask((HERE, first + 1), DescribeConfigsRequest(version=4, resources=[resource])).results
        assert {each.name: each.value for each in row.configs} == {
            "listeners": f"PLAINTEXT://{HERE}:{first + 1}",
            "advertised.listeners": "PLAINTEXT://kafka.test:9093",
        }
        with pytest.raises(OSError):
            socket.create_connection(("127.0.0.1", first), 5)


def test_each_broker_may_have_an_advertised_address_and_one_without_a_port_has_the_brokers() -> None:
    with Served("--listen", "[::1]", "--advertise", "[::1],localhost:9092", *SMALL) as cluster:
        first, second = cluster.addresses
        assert first.host == "::1" and second == ("localhost", 9092)
        assert told(first)[0] == sorted([first, second])


def test_certificates_name_the_advertised_hosts_and_the_files_the_advertised_servers() -> None:
    first = free_ports(2)
    flags = ("--listen", f"{HERE}:{first}", "--advertise", "kafka.test:9092,192.0.2.7:9092")
    with SecuredServed("ssl", *flags, *SMALL) as cluster:
        assert cluster.bootstrap == "kafka.test:9092,192.0.2.7:9092"
        for name in ("client.properties", "librdkafka.conf"):
            lines = (cluster.folder / name).read_text().splitlines()
            assert f"bootstrap.servers={cluster.bootstrap}" in lines
        assert read_client_properties(cluster.client_file(), {}).unused == ()
        context = ssl.create_default_context(cafile=str(cluster.folder / "ca.pem"))
        for name in ("kafka.test", "192.0.2.7", HERE, "127.0.0.1", "localhost"):
            with socket.create_connection((HERE, first)) as plain:
                context.wrap_socket(plain, server_hostname=name).close()
        with socket.create_connection((HERE, first)) as plain, pytest.raises(ssl.SSLCertVerificationError):
            context.wrap_socket(plain, server_hostname="kafka.example")


def test_every_address_of_the_machine_is_warned_of() -> None:
    with serving("--listen", "0.0.0.0", "--advertise", "127.0.0.1") as process:
        port = first_port(process)
        socket.create_connection((HERE, port)).close()
        assert process.stderr is not None
        warning = process.stderr.readline()
        assert f"warning: everybody who can connect to 0.0.0.0:{port} " in warning
        assert "Nothing protects it, unless you add --security" in warning


def test_places_are_hosts_with_or_without_a_port() -> None:
    texts = ["kafka", "kafka:1", "[::1]", "[::1]:1", "127.0.0.1:1"]
    assert [str(Place.parse(text)) for text in texts] == texts
    assert str(Address("::1", 1)) == "[::1]:1"
