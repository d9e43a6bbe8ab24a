"""A broker in a few lines, for what a cluster does not do on demand: hang, refuse, say nonsense, count
requests."""

import socket
import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

from kafka.protocol.admin import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    ListGroupsRequest,
    ListGroupsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from kafka.protocol.consumer import (
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from kafka.protocol.metadata import ApiVersionsResponse, MetadataResponse

from kview.model.address import Address
from kview.wire.list_offsets import DEBUGGING_REPLICA

VERSIONS = {18: (0, 3), 3: (0, 12), 2: (1, 5)}
COORDINATOR_VERSIONS = {**VERSIONS, 9: (1, 5), 15: (0, 3), 16: (0, 2)}
REASSIGNMENTS = 46
NOT_CONTROLLER = 41
ZOOKEEPER_VERSIONS = {**VERSIONS, 6: (0, 7), 32: (0, 3), REASSIGNMENTS: (0, 0)}
"""Those of a broker in ZooKeeper mode: 6 is UpdateMetadata, with which its controller sends it metadata."""
MOST_BYTES = 100 * 1024 * 1024
"""Kafka's default of socket.request.max.bytes. A client that speaks TLS seems to send more."""
OFFSETS_TOPIC = "__consumer_offsets"
Handler = Callable[[Any], Any]


class Server:
    """Listens on a loopback port and gives every connection to `serve` on a thread, until it is closed."""

    def __init__(self, serve: Callable[[socket.socket], None], port: int = 0) -> None:
        self._serve = serve
        self._listener = socket.create_server(("127.0.0.1", port))
        self.port: int = self._listener.getsockname()[1]
        self._connections: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> Address:
        return Address("127.0.0.1", self.port)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._connections.append(connection)
            threading.Thread(target=self._run, args=(connection,), daemon=True).start()

    def _run(self, connection: socket.socket) -> None:
        try:
            self._serve(connection)
        except OSError:
            pass  # the other side went away, or close() ended it
        finally:
            connection.close()

    def drop_connections(self) -> None:
        """End the connections there are; new ones are accepted."""
        dropped, self._connections = self._connections, []
        for connection in dropped:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue

    def close(self) -> None:
        """End listening and connections; again is nothing."""
        if self._listener.fileno() < 0:
            return
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.drop_connections()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class FakeBroker(Server):
    """Answers ApiVersions, Metadata and ListOffsets as broker `node`; `hang` makes it answer nothing more.

    It leads the one partition of topic `invoice`, unless `advertised` names other brokers.
    """

    def __init__(
        self,
        node: int = 0,
        advertised: dict[int, Address] | None = None,
        versions: Mapping[int, tuple[int, int]] = VERSIONS,
        port: int = 0,
    ) -> None:
        self.node = node
        self.versions = versions
        self.advertised = advertised
        self.asked: list[tuple[int, int]] = []
        """API key and version of every request, in order."""
        self.answered: list[int] = []
        """API key of every answer sent, in order."""
        self.going = threading.Event()
        self.going.set()
        self.log_start, self.high_watermark = 0, 100
        self.committed = 40
        self.coordinator: int | None = None
        """The leader of the one partition of `__consumer_offsets`, None if that topic does not exist."""
        self.groups: tuple[str, ...] = ()
        """The groups that it lists and describes; it describes others as dead."""
        self.group_error = 0
        """The error with which it answers questions about groups, but not for their list."""
        self.controller: int | None = None
        """The controller in its Metadata answers: the leader of `invoice` unless a test says another."""
        self.settings: Mapping[str, str] = {}
        """Its own settings; no topic has any."""
        self.change: dict[int, Callable[[Any], None]] = {}
        """API key → what is changed in its answers to Metadata, ListOffsets and about groups."""
        self.delay: dict[int, threading.Event] = {}
        """API key → what its answers wait for."""
        self.wait_for_ends: threading.Event | None = None
        """What the answers about log ends, for the debugging replica, wait for."""
        super().__init__(self._speak, port)

    def hang(self) -> None:
        self.going.clear()

    def go_on(self) -> None:
        self.going.set()

    def _speak(self, connection: socket.socket) -> None:
        stream = connection.makefile("rb")
        while length := stream.read(4):
            if int.from_bytes(length, "big") > MOST_BYTES:
                return
            frame = stream.read(int.from_bytes(length, "big"))
            key, version = int.from_bytes(frame[:2], "big"), int.from_bytes(frame[2:4], "big")
            correlation_id = int.from_bytes(frame[4:8], "big")
            self.asked.append((key, version))
            self.going.wait()
            if key in self.delay:
                self.delay[key].wait()
            body, flexible = self._answer(key, version, frame)
            header = correlation_id.to_bytes(4, "big") + (b"\0" if flexible else b"")
            data = header + body
            connection.sendall(len(data).to_bytes(4, "big") + data)
            self.answered.append(key)

    def _answer(self, key: int, version: int, frame: bytes) -> tuple[bytes, bool]:
        if key == 18:
            return self._api_versions(version), False
        if key == 3:
            return self._metadata(version), version >= 9
        if key == 2:
            request = ListOffsetsRequest.decode(frame, version=version, header=True)
            return self._list_offsets(request, version), False
        if key in ANSWERS:
            request_type, answer = ANSWERS[key]
            request = request_type.decode(frame, version=version, header=True)
            return self._encoded(key, answer(self, request, version)), key == REASSIGNMENTS
        raise OSError(f"API {key} is not served")

    def _encoded(self, key: int, answer: Any) -> bytes:
        self.change.get(key, lambda _: None)(answer)
        return bytes(answer.encode())

    def _api_versions(self, version: int) -> bytes:
        keys = [
            ApiVersionsResponse.ApiVersion(api_key=key, min_version=low, max_version=high)
            for key, (low, high) in self.versions.items()
        ]
        if version not in range(self.versions[18][0], self.versions[18][1] + 1):
            return bytes(ApiVersionsResponse(version=0, error_code=35, api_keys=keys).encode())
        return bytes(ApiVersionsResponse(version=version, error_code=0, api_keys=keys).encode())

    def _metadata(self, version: int) -> bytes:
        brokers = self.advertised if self.advertised is not None else {self.node: self.address}
        topic = MetadataResponse.MetadataResponseTopic
        broker = MetadataResponse.MetadataResponseBroker
        leaders = {"invoice": min(brokers, default=-1)}
        if self.coordinator is not None:
            leaders[OFFSETS_TOPIC] = self.coordinator
        return self._encoded(
            3,
            MetadataResponse(
                version=version,
                throttle_time_ms=0,
                brokers=[
                    broker(node_id=b, host=host, port=port, rack=None) for b, (host, port) in brokers.items()
                ],
                cluster_id="fake",
                controller_id=leaders["invoice"] if self.controller is None else self.controller,
                topics=[
                    topic(
                        error_code=0,
                        name=name,
                        is_internal=name == OFFSETS_TOPIC,
                        partitions=[
                            topic.MetadataResponsePartition(
                                error_code=0,
                                partition_index=0,
                                leader_id=leader,
                                leader_epoch=0,
                                replica_nodes=[leader],
                                isr_nodes=[leader],
                                offline_replicas=[],
                            )
                        ],
                    )
                    for name, leader in leaders.items()
                ],
            ),
        )

    def _list_offsets(self, request: Any, version: int) -> bytes:
        if request.replica_id == DEBUGGING_REPLICA and self.wait_for_ends is not None:
            self.wait_for_ends.wait()
        topic = ListOffsetsResponse.ListOffsetsTopicResponse
        offset = self.log_start if request.topics[0].partitions[0].timestamp == -2 else self.high_watermark
        return self._encoded(
            2,
            ListOffsetsResponse(
                version=version,
                throttle_time_ms=0,
                topics=[
                    topic(
                        name=asked.name,
                        partitions=[
                            topic.ListOffsetsPartitionResponse(
                                partition_index=0, error_code=0, timestamp=-1, offset=offset, leader_epoch=0
                            )
                        ],
                    )
                    for asked in request.topics
                ],
            ),
        )


def _list_groups(broker: FakeBroker, request: Any, version: int) -> Any:
    group = ListGroupsResponse.ListedGroup
    listed = [group(group_id=name, protocol_type="consumer") for name in broker.groups]
    return ListGroupsResponse(version=version, throttle_time_ms=0, error_code=0, groups=listed)


def _describe_groups(broker: FakeBroker, request: Any, version: int) -> Any:
    group = DescribeGroupsResponse.DescribedGroup
    described = [
        group(
            error_code=broker.group_error,
            group_id=name,
            group_state="" if broker.group_error else "Empty" if name in broker.groups else "Dead",
            protocol_type="consumer",
            protocol_data="",
            members=[],
        )
        for name in request.groups
    ]
    return DescribeGroupsResponse(version=version, throttle_time_ms=0, groups=described)


def _offset_fetch(broker: FakeBroker, request: Any, version: int) -> Any:
    topic = OffsetFetchResponse.OffsetFetchResponseTopic
    partition = topic.OffsetFetchResponsePartition(
        partition_index=0,
        committed_offset=broker.committed,
        committed_leader_epoch=0,
        metadata="",
        error_code=0,
    )
    committed = [topic(name="invoice", partitions=[partition])]
    return OffsetFetchResponse(
        version=version,
        throttle_time_ms=0,
        topics=[] if broker.group_error else committed,
        error_code=broker.group_error,
    )


def _describe_configs(broker: FakeBroker, request: Any, version: int) -> Any:
    result = DescribeConfigsResponse.DescribeConfigsResult
    described = [
        result(
            error_code=0,
            error_message="",
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
            configs=[
                result.DescribeConfigsResourceResult(
                    name=name, value=value, read_only=True, config_source=5, is_sensitive=False
                )
                for name, value in broker.settings.items()
                if resource.resource_name == str(broker.node) and name in resource.configuration_keys
            ],
        )
        for resource in request.resources
    ]
    return DescribeConfigsResponse(version=version, throttle_time_ms=0, results=described)


def _reassignments(broker: FakeBroker, request: Any, version: int) -> Any:
    return ListPartitionReassignmentsResponse(
        version=version,
        throttle_time_ms=0,
        error_code=0 if broker.node == broker.controller else NOT_CONTROLLER,
        error_message=None,
        topics=[],
    )


ANSWERS: Mapping[int, tuple[Any, Callable[[FakeBroker, Any, int], Any]]] = {
    9: (OffsetFetchRequest, _offset_fetch),
    15: (DescribeGroupsRequest, _describe_groups),
    16: (ListGroupsRequest, _list_groups),
    32: (DescribeConfigsRequest, _describe_configs),
    REASSIGNMENTS: (ListPartitionReassignmentsRequest, _reassignments),
}


def silent(connection: socket.socket) -> None:
    """Read and never answer."""
    while connection.recv(4096):
        continue


def says(answer: bytes) -> Callable[[socket.socket], None]:
    """Answer the first bytes with `answer` and end the connection."""

    def serve(connection: socket.socket) -> None:
        connection.recv(4096)
        connection.sendall(answer)

    return serve
