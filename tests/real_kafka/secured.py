"""One real broker, which is its own controller, with a listener for each way to secure one."""

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from kafka.protocol.admin import CreateAclsRequest, DeleteAclsRequest

from kview.model.address import Address
from tests.real_kafka.asking import ask, metadata
from tests.real_kafka.cluster import GUARD, START_TIMEOUT_S, STOP_TIMEOUT_S
from tests.real_kafka.nodes import ClusterFailed, Java, Node, free_ports, log_tails, new_uuid
from tests.real_kafka.settings import LOGGING, LOOPBACK, QUICK, SMALL, properties
from tests.secured.certificates import Authority
from tests.waiting import wait_until

LISTENERS: Mapping[str, str] = {
    "PLAIN": "PLAINTEXT",
    "TLS": "SSL",
    "MTLS": "SSL",
    "SP": "SASL_PLAINTEXT",
    "SS": "SASL_SSL",
    "OAUTH": "SASL_PLAINTEXT",
    "CONTROLLER": "PLAINTEXT",
}
"""Listener → its protocol. MTLS asks for a client certificate, SP and SS for PLAIN or SCRAM."""

USER, PASSWORD = "bob", 'swordfish "7" \\ä'
"""Who may log in, and see everything. The password has letters that configuration files must escape."""
SCRAM_PASSWORD = "marlin-8"
"""His password for SCRAM, which the tool that stores it must be able to read from its command line."""
NOBODY, NOBODYS_PASSWORD = "carol", "guest-guest"
"""Who may log in, but is authorized for nothing."""
SESSION_MS = 4_000
"""After this time, the broker wants a login with PLAIN renewed."""


class Acl(NamedTuple):
    """What a user may do. `resource` and `operation` are Kafka's numbers."""

    resource: int
    name: str
    operation: int


TOPIC, GROUP, CLUSTER = 2, 3, 4
DESCRIBE, DESCRIBE_CONFIGS = 8, 10
SEES_TOPICS = (Acl(TOPIC, "*", DESCRIBE),)
SEES_ALL = (
    *SEES_TOPICS,
    Acl(TOPIC, "*", DESCRIBE_CONFIGS),
    Acl(GROUP, "*", DESCRIBE),
    Acl(CLUSTER, "kafka-cluster", DESCRIBE),
    Acl(CLUSTER, "kafka-cluster", DESCRIBE_CONFIGS),
)
"""The least with which kview sees everything, as the README says."""
ACLS_VERSION, LITERAL, ALLOW = 3, 3, 3

_MODULE = "org.apache.kafka.common.security"
_UNSECURED = f"{_MODULE}.oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"


def _escaped(text: str) -> str:
    """A text as a properties file writes it, in Latin-1."""
    return text.replace("\\", "\\\\")


def _quoted(text: str) -> str:
    """A text between quotation marks as in sasl.jaas.config."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


@dataclass
class SecuredKafka:
    """A broker in `folder` whose certificates are of `authority`. Use it as a context manager.

    `overrides` are settings of its own.
    """

    folder: Path
    java: Path
    jars: Path
    authority: Authority = field(default_factory=Authority)
    overrides: Mapping[str, str] = field(default_factory=dict)
    ports: dict[str, int] = field(init=False, default_factory=dict)
    node: Node = field(init=False)
    _guard: "subprocess.Popen[bytes] | None" = field(init=False, default=None)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def address(self, listener: str) -> Address:
        """Where a listener is."""
        return Address(LOOPBACK, self.ports[listener])

    def start(self) -> None:
        """Format the node, start it and wait until it answers."""
        self.ports = dict(zip(LISTENERS, free_ports(len(LISTENERS)), strict=True))
        self.node = Node(0, self.ports["PLAIN"], self.folder, self.jars)
        (self.folder / "log4j2.xml").write_text(LOGGING)
        server = self.authority.issue("broker").write(self.folder / "server.pem")
        self.authority.write(self.folder / "ca.pem")
        self.node.config.write_text(properties(self._settings(server)), "latin-1")
        self._guard = subprocess.Popen(["sh", "-c", GUARD], stdin=subprocess.PIPE, process_group=0)
        scram = [
            argument
            for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
            for user, password in ((USER, SCRAM_PASSWORD), (NOBODY, NOBODYS_PASSWORD))
            for argument in ("--add-scram", f"{mechanism}=[name={user},password={password}]")
        ]
        formatting = self._run(
            "kafka.tools.StorageTool",
            "format",
            "-t",
            new_uuid(),
            "-c",
            str(self.node.config),
            "--standalone",
            *scram,
        )
        if formatting.wait(START_TIMEOUT_S) != 0:
            raise ClusterFailed(f"the node could not be formatted\n{self.log_tails()}")
        self.node.process = self._run("kafka.Kafka", str(self.node.config))
        wait_until(self._answers, "the broker answers", START_TIMEOUT_S)

    def allow(self, user: str, rules: Sequence[Acl]) -> None:
        """Add rules for a user. Raises ClusterFailed."""
        request = CreateAclsRequest(
            version=ACLS_VERSION,
            creations=[
                CreateAclsRequest.AclCreation(
                    resource_type=rule.resource,
                    resource_name=rule.name,
                    resource_pattern_type=LITERAL,
                    principal=f"User:{user}",
                    host="*",
                    operation=rule.operation,
                    permission_type=ALLOW,
                )
                for rule in rules
            ],
        )
        for result in ask(self.address("PLAIN"), request).results:
            if result.error_code:
                raise ClusterFailed(f"an ACL could not be created: {result.error_message}")

    def withdraw(self, user: str, rules: Sequence[Acl]) -> None:
        """Remove rules for a user. Raises ClusterFailed."""
        request = DeleteAclsRequest(
            version=ACLS_VERSION,
            filters=[
                DeleteAclsRequest.DeleteAclsFilter(
                    resource_type_filter=rule.resource,
                    resource_name_filter=rule.name,
                    pattern_type_filter=LITERAL,
                    principal_filter=f"User:{user}",
                    host_filter="*",
                    operation=rule.operation,
                    permission_type=ALLOW,
                )
                for rule in rules
            ],
        )
        for result in ask(self.address("PLAIN"), request).filter_results:
            if result.error_code or len(result.matching_acls) != 1:
                raise ClusterFailed(f"an ACL could not be deleted: {result.error_message}")

    def close(self) -> None:
        """End all processes at once."""
        if self._guard is None:
            return
        assert self._guard.stdin is not None
        self._guard.stdin.close()
        for process in [self._guard, *([self.node.process] if self.node.process else [])]:
            process.wait(STOP_TIMEOUT_S)
        self._guard = None

    def log_tails(self) -> str:
        """The last lines of the node's log."""
        return log_tails([self.node])

    def _answers(self) -> bool:
        assert self.node.process is not None
        if self.node.process.poll() is not None:
            raise ClusterFailed(f"the node has ended\n{self.log_tails()}")
        try:
            return bool(metadata(self.address("PLAIN"), []).brokers)
        except OSError:
            return False

    def _run(self, main: str, *arguments: str) -> "subprocess.Popen[bytes]":
        assert self._guard is not None
        return Java(self.java, self.folder).run(self.node, self._guard.pid, main, *arguments)

    def _settings(self, server: Path) -> dict[str, str]:
        plain = (
            f"{_MODULE}.plain.PlainLoginModule required user_{USER}={_quoted(PASSWORD)}"
            f" user_{NOBODY}={_quoted(NOBODYS_PASSWORD)};"
        )
        values = {
            "process.roles": "broker,controller",
            "node.id": "0",
            "log.dirs": str(self.folder / "data"),
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": f"{LOOPBACK}:{self.ports['CONTROLLER']}",
            "inter.broker.listener.name": "PLAIN",
            "listeners": ",".join(f"{name}://{LOOPBACK}:{port}" for name, port in self.ports.items()),
            "listener.security.protocol.map": ",".join(f"{name}:{is_}" for name, is_ in LISTENERS.items()),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(server),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.folder / "ca.pem"),
            "listener.name.mtls.ssl.client.auth": "required",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
            "listener.name.oauth.sasl.enabled.mechanisms": "OAUTHBEARER",
            "listener.name.oauth.oauthbearer.sasl.jaas.config": (
                f'{_MODULE}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="b";'
            ),
            "listener.name.oauth.oauthbearer.sasl.server.callback.handler.class": _UNSECURED,
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": f"User:ANONYMOUS;User:{USER};User:CN=alice;User:kview",
            "offsets.topic.replication.factor": "1",
        }
        for listener in ("sp", "ss"):
            prefix = f"listener.name.{listener}"
            values[f"{prefix}.plain.sasl.jaas.config"] = _escaped(plain)
            for scram in ("scram-sha-256", "scram-sha-512"):
                values[f"{prefix}.{scram}.sasl.jaas.config"] = f"{_MODULE}.scram.ScramLoginModule required;"
        values["listener.name.sp.plain.connections.max.reauth.ms"] = str(SESSION_MS)
        replication = {"share.coordinator.state.topic.replication.factor": "1"}
        return {**values, **SMALL, **QUICK, **replication, **self.overrides}
