"""What a cluster is asked through Kafka's protocol: topics and groups, made and deleted, and who leads.

Each question has a connection of its own, so that nothing of an earlier one is believed.
"""

import socket
import warnings
from collections.abc import Mapping, Sequence
from io import BufferedReader
from struct import unpack
from typing import Any

from kview.model.address import Address
from kview.model.lab import OWN_CLIENT_ID
from kview.testing.cluster import Partition
from kview.testing.credentials import Credentials

with warnings.catch_warnings():  # of kafka-python's own, which would be those of the test that is running
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.protocol.admin.groups import DeleteGroupsRequest
    from kafka.protocol.admin.topics import CreateTopicsRequest, DeleteTopicsRequest
    from kafka.protocol.metadata import MetadataRequest
    from kafka.protocol.sasl import SaslAuthenticateRequest, SaslHandshakeRequest

ANSWERED_WITHIN_S = 10.0
CREATE_TOPICS, DELETE_TOPICS, DELETE_GROUPS, METADATA = 7, 5, 2, 12
SASL_HANDSHAKE, SASL_AUTHENTICATE = 1, 2
"""The versions that are spoken."""

REQUEST_TIMED_OUT, UNKNOWN_TOPIC_OR_PARTITION, GROUP_ID_NOT_FOUND = 7, 3, 69


class Broker:
    """A broker that is asked as a user of the cluster, "" without a login."""

    def __init__(self, address: Address, user: Credentials) -> None:
        self.address = address
        self._user = user

    def ask(self, request: Any) -> Any:
        """Return the answer. Raises OSError if the broker refuses the connection, closes it or does not
        answer."""
        with socket.create_connection((self.address.host, self.address.port), ANSWERED_WITHIN_S) as plain:
            tls = self._user.tls
            if tls is None:
                return self._asked(plain, request)
            with tls.wrap_socket(plain, server_hostname=self.address.host) as secured:
                return self._asked(secured, request)

    def _asked(self, connection: socket.socket, request: Any) -> Any:
        with connection.makefile("rb") as stream:
            if mechanism := self._user.librdkafka_conf.get("sasl.mechanism"):
                self._log_in(connection, stream, mechanism)
            return self._exchange(connection, stream, request)

    def _log_in(self, connection: socket.socket, stream: BufferedReader, mechanism: str) -> None:
        handshake = SaslHandshakeRequest(version=SASL_HANDSHAKE, mechanism=mechanism)
        self._exchange(connection, stream, handshake)

        def step(token: bytes) -> bytes:
            request = SaslAuthenticateRequest(version=SASL_AUTHENTICATE, auth_bytes=token)
            answer = self._exchange(connection, stream, request)
            if answer.error_code:
                why = answer.error_message
                raise PermissionError(f"the broker at {self.address} refuses the login: {why}")
            return bytes(answer.auth_bytes)

        user, password = self._user.user, self._user.password
        if mechanism == "PLAIN":
            step(f"\0{user}\0{password}".encode())
            return
        from kafka.net.sasl.scram import ScramClient

        scram = ScramClient(user, password, mechanism)
        scram.process_server_first_message(step(scram.first_message()))
        scram.process_server_final_message(step(scram.final_message()))

    def _exchange(self, connection: socket.socket, stream: BufferedReader, request: Any) -> Any:
        request.with_header(correlation_id=1, client_id=OWN_CLIENT_ID)
        connection.sendall(request.encode(header=True, framed=True))
        size = stream.read(4)
        answer = stream.read(unpack(">i", size)[0]) if len(size) == 4 else b""
        if not answer:
            raise ConnectionResetError(f"the broker at {self.address} closed the connection")
        return request.header.get_response_class().decode(answer, header=True)


def create_topic(
    broker: Broker,
    name: str,
    partitions: int,
    replication_factor: int,
    assignment: Sequence[Sequence[int]],
    settings: Mapping[str, str],
) -> str:
    """Create a topic, with these replicas a partition if there are any. Return why not, "" if it was made."""
    topic = CreateTopicsRequest.CreatableTopic
    wanted = topic(
        name=name,
        num_partitions=-1 if assignment else partitions,
        replication_factor=-1 if assignment else replication_factor,
        assignments=[
            topic.CreatableReplicaAssignment(partition_index=number, broker_ids=list(replicas))
            for number, replicas in enumerate(assignment)
        ],
        configs=[topic.CreatableTopicConfig(name=key, value=value) for key, value in settings.items()],
    )
    limit_ms = round(ANSWERED_WITHIN_S * 1000) // 2
    request = CreateTopicsRequest(
        version=CREATE_TOPICS, topics=[wanted], timeout_ms=limit_ms, validate_only=False
    )
    (result,) = broker.ask(request).topics
    return (
        f"error {result.error_code}: {result.error_message or 'no reason given'}" if result.error_code else ""
    )


def delete_topics(broker: Broker, names: Sequence[str]) -> None:
    """Delete topics, as far as they are there."""
    limit_ms = round(ANSWERED_WITHIN_S * 1000) // 2
    broker.ask(DeleteTopicsRequest(version=DELETE_TOPICS, topic_names=list(names), timeout_ms=limit_ms))


def delete_groups(broker: Broker, names: Sequence[str]) -> None:
    """Delete groups that a broker coordinates and that have no members."""
    broker.ask(DeleteGroupsRequest(version=DELETE_GROUPS, groups_names=list(names)))


def partitions(broker: Broker, topic: str) -> list[Partition]:
    """Return a topic's partitions in order, as a broker knows them; none if it does not know the topic."""
    named = MetadataRequest.MetadataRequestTopic(version=METADATA, name=topic, topic_id=None)
    request = MetadataRequest(version=METADATA, topics=[named], allow_auto_topic_creation=False)
    (found,) = broker.ask(request).topics
    rows = sorted(found.partitions, key=lambda row: row.partition_index)
    return [Partition(row.leader_id, tuple(row.replica_nodes), tuple(row.isr_nodes)) for row in rows]
