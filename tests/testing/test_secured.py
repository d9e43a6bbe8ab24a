"""Secured clusters for tests: what clients are set to, and users with and without rights."""

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from kview.lab.ways import WAYS
from kview.testing import Cluster, ClusterError


@pytest.fixture(scope="module")
def secured() -> Iterator[Cluster]:
    with Cluster(security="sasl_ssl:scram-sha-512") as cluster:
        yield cluster


def write(conf: dict[str, str], topic: str) -> list[str]:
    """Write a record, and return the errors that there were."""
    errors: list[str] = []
    client = Producer(conf)
    client.produce(topic, b"1", on_delivery=lambda error, _: errors.append(error.name()) if error else None)
    return [*errors, *["not delivered"] * client.flush(20), *errors]


def test_the_admin_may_do_everything_and_alice_nothing_until_she_may(secured: Cluster) -> None:
    topic, group = secured.new_topic("orders", 2), secured.new_group()
    alice = secured.users["alice"]
    assert write(secured.librdkafka_conf, topic) == []
    assert "TOPIC_AUTHORIZATION_FAILED" in write(alice.librdkafka_conf, topic)
    rule = AclBinding(
        ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, "User:alice", "*",
        AclOperation.WRITE, AclPermissionType.ALLOW,
    )  # fmt: skip
    client = AdminClient(secured.librdkafka_conf)
    for future in client.create_acls([rule]).values():
        future.result(20)
    secured.wait(lambda: write(alice.librdkafka_conf, topic) == [], "alice may write")
    secured.crash(secured.leader(topic))
    secured.heal()
    with pytest.raises(ClusterError, match="has no partition"):
        secured.leader(topic)
    assert group


def test_what_clients_are_set_to_names_users_passwords_and_files(secured: Cluster) -> None:
    admin, alice = secured.users["admin"], secured.users["alice"]
    assert list(secured.users) == ["admin", "alice"]
    assert secured.client_properties == admin.client_properties != alice.client_properties
    assert admin.client_properties["bootstrap.servers"] == secured.bootstrap_servers
    assert f'password="{alice.password}"' in alice.client_properties["sasl.jaas.config"]
    assert alice.password and alice.password not in repr(alice) and alice.password != admin.password
    assert alice.client_properties_file is not None
    assert alice.client_properties_file.name == "alice.properties" and alice.client_properties_file.exists()


@pytest.mark.quick(2)
@pytest.mark.parametrize("way", [way for way in WAYS if way not in ("sasl_ssl", "sasl_plaintext")])
def test_every_way_has_topics_and_clients(way: str) -> None:
    with Cluster(security=way.upper() if way == "mtls" else way, brokers=1) as kafka:
        topic = kafka.new_topic()
        assert kafka.leader(topic) == 0
        assert write(kafka.librdkafka_conf, topic) == []


def test_without_security_clients_are_set_to_the_servers_alone() -> None:
    with Cluster(brokers=1) as kafka:
        assert kafka.users == {}
        assert kafka.librdkafka_conf == kafka.client_properties == {
            "bootstrap.servers": kafka.bootstrap_servers, "security.protocol": "PLAINTEXT"
        }  # fmt: skip
    with pytest.raises(ClusterError, match="security 'tls' is not one of ssl, mtls, sasl_ssl"):
        Cluster(security="tls")
