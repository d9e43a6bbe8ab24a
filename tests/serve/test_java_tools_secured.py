"""Kafka's own command-line tools, with the client.properties of a secured simulated cluster.

They need a JVM, so these tests are slow. What the tools ask for is guarded by quick tests.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real_kafka.tools import CONFIGS, Tools
from tests.serve.secured import ADMIN, ALICE, SecuredServed

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=["sasl_ssl", "mtls"])
def served(request: pytest.FixtureRequest) -> Iterator[SecuredServed]:
    flags = ("--no-traffic", "--brokers", "1", "--racks", "1", "--topic", "orders:2:1")
    with SecuredServed(request.param, *flags) as cluster:
        yield cluster


class SecuredTools(Tools):
    """The tools, as a user. The one for console clients has another option for its file than the others."""

    def __init__(self, runtime: tuple[Path, Path], cluster: SecuredServed, user: str = ADMIN) -> None:
        super().__init__(runtime, cluster.bootstrap)
        self._file = str(cluster.client_file(user))

    def run(self, main: str, *arguments: str, given: str = "", fails: bool = False) -> str:
        return super().run(main, "--command-config", self._file, *arguments, given=given, fails=fails)


def test_an_admin_grants_rights_and_sets_quotas(
    served: SecuredServed, kafka_runtime: tuple[Path, Path]
) -> None:
    admin = SecuredTools(kafka_runtime, served)
    alice = SecuredTools(kafka_runtime, served, ALICE)
    principal = "User:CN=alice" if served.security(ALICE).login is None else "User:alice"
    assert alice.tool("TopicCommand", "--list").split() == []
    rule = ("--allow-principal", principal, "--operation", "Describe", "--topic", "ord")
    admin.tool("AclCommand", "--add", *rule, "--resource-pattern-type", "prefixed")
    assert alice.tool("TopicCommand", "--list").split() == ["orders"]
    listed = admin.tool("AclCommand", "--list", "--topic", "orders", "--resource-pattern-type", "match")
    assert f"principal={principal}, host=*, operation=DESCRIBE, permissionType=ALLOW" in listed
    admin.tool("AclCommand", "--remove", "--force", *rule, "--resource-pattern-type", "prefixed")
    assert alice.tool("TopicCommand", "--list").split() == []
    users = ("--entity-type", "users", "--entity-name", "carol")
    for change in ("SCRAM-SHA-256=[iterations=8192,password=pw]", "producer_byte_rate=1024"):
        admin.run(CONFIGS, "--alter", *users, "--add-config", change)
    described = admin.run(CONFIGS, "--describe", *users)
    assert "producer_byte_rate=1024.0" in described and "SCRAM-SHA-256=iterations=8192" in described
    features = admin.tool("FeatureCommand", "describe")
    finalized = {line.split()[1]: line for line in features.splitlines()}
    assert "FinalizedVersionLevel: 4.3-IV0" in finalized["metadata.version"]
    assert "FinalizedVersionLevel: 2" in finalized["transaction.version"]


def test_a_token_of_kafkas_tool_logs_in(kafka_runtime: tuple[Path, Path], tmp_path: Path) -> None:
    flags = ("--no-traffic", "--brokers", "1", "--racks", "1", "--topic", "orders:2:1")
    with SecuredServed("sasl_ssl", *flags, settings=("delegation.token.secret.key=k",)) as cluster:
        admin = SecuredTools(kafka_runtime, cluster)
        created = admin.tool("DelegationTokenCommand", "--create", "--max-life-time-period", "-1",
                             "--renewer-principal", f"User:{ALICE}")  # fmt: skip
        token_id, hmac, owner, requester, *_ = created.splitlines()[-1].split()
        assert owner == requester == f"User:{ADMIN}"
        login = f'username="{token_id}" password="{hmac}" tokenauth="true"'
        lines = cluster.client_file().read_text().splitlines()
        lines = [line for line in lines if not line.startswith("sasl.jaas.config")]
        lines.append(
            f"sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required {login};"
        )
        file = tmp_path / "token.properties"
        file.write_text("\n".join(lines))
        by_token = Tools(kafka_runtime, cluster.bootstrap)
        as_owner = ("--command-config", str(file))
        assert "orders" in by_token.tool("TopicCommand", *as_owner, "--list").split()
        alice = SecuredTools(kafka_runtime, cluster, ALICE)
        described = ("DelegationTokenCommand", "--describe", "--owner-principal", owner)
        assert token_id in alice.tool(*described), "who may renew it sees it"
        admin.tool("DelegationTokenCommand", "--expire", "--expiry-time-period", "-1", "--hmac", hmac)
        assert token_id not in admin.tool(*described)
