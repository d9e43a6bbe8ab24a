"""A broker in a few lines, for what a cluster does not do on demand: hang, refuse, say nonsense, count
requests."""

import socket
import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

from kafka.protocol.consumer import ListOffsetsRequest, ListOffsetsResponse
from kafka.protocol.metadata import ApiVersionsResponse, MetadataResponse

from kview.model.address import Address

VERSIONS = {18: (0, 3), 3: (0, 12), 2: (1, 5)}
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
    ) -> None:
        self.node = node
        self.versions = versions
        self.advertised = advertised
        self.asked: list[tuple[int, int]] = []
        """API key and version of every request, in order."""
        self.going = threading.Event()
        self.going.set()
        self.high_watermark = 100
        super().__init__(self._speak)

    def hang(self) -> None:
        self.going.clear()

    def go_on(self) -> None:
        self.going.set()

    def _speak(self, connection: socket.socket) -> None:
        stream = connection.makefile("rb")
        while length := stream.read(4):
            frame = stream.read(int.from_bytes(length, "big"))
            key, version = int.from_bytes(frame[:2], "big"), int.from_bytes(frame[2:4], "big")
            correlation_id = int.from_bytes(frame[4:8], "big")
            self.asked.append((key, version))
            self.going.wait()
            body, flexible = self._answer(key, version, frame)
            header = correlation_id.to_bytes(4, "big") + (b"\0" if flexible else b"")
            data = header + body
            connection.sendall(len(data).to_bytes(4, "big") + data)

    def _answer(self, key: int, version: int, frame: bytes) -> tuple[bytes, bool]:
        if key == 18:
            return self._api_versions(version), False
        if key == 3:
            return self._metadata(version), version >= 9
        if key == 2:
            request = ListOffsetsRequest.decode(frame, version=version, header=True)
            return self._list_offsets(request, version), False
        raise OSError(f"API {key} is not served")

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
        leader = min(brokers, default=-1)
        return bytes(
            MetadataResponse(
                version=version,
                throttle_time_ms=0,
                brokers=[
                    broker(node_id=b, host=host, port=port, rack=None) for b, (host, port) in brokers.items()
                ],
                cluster_id="fake",
                controller_id=leader,
                topics=[
                    topic(
                        error_code=0,
                        name="invoice",
                        is_internal=False,
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
                ],
            ).encode()
        )

    def _list_offsets(self, request: Any, version: int) -> bytes:
        topic = ListOffsetsResponse.ListOffsetsTopicResponse
        offset = 0 if request.topics[0].partitions[0].timestamp == -2 else self.high_watermark
        return bytes(
            ListOffsetsResponse(
                version=version,
                throttle_time_ms=0,
                topics=[
                    topic(
                        name="invoice",
                        partitions=[
                            topic.ListOffsetsPartitionResponse(
                                partition_index=0, error_code=0, timestamp=-1, offset=offset, leader_epoch=0
                            )
                        ],
                    )
                ],
            ).encode()
        )


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
