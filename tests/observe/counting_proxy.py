"""Stands before every broker of a cluster and notes which APIs it is asked for.

Brokers' addresses in Metadata and DescribeCluster answers are replaced by the proxies', so that everything
goes through them.
"""

import socket
import threading
from collections.abc import Mapping
from typing import Any, Self

from kafka.protocol.admin import DescribeClusterResponse
from kafka.protocol.metadata import MetadataResponse

from tests.observe.fake_broker import Server

METADATA, DESCRIBE_CLUSTER = 3, 60


class CountingProxies:
    """One proxy a broker; `asked` has (broker, API key, version) of every request that came through.

    Requests to the brokers in `cut` are lost: their proxies go on accepting connections, and nothing more.
    """

    def __init__(self, brokers: Mapping[int, tuple[str, int]]) -> None:
        self.asked: list[tuple[int, int, int]] = []
        self.cut: set[int] = set()
        self.proxies = {broker: _Proxy(self, broker, address) for broker, address in brokers.items()}

    def close(self) -> None:
        for proxy in self.proxies.values():
            proxy.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def rewritten(self, key: int, version: int, body: bytes) -> bytes:
        """An answer's body with the proxies' ports for the brokers'."""
        answer: Any
        if key == METADATA:
            answer = MetadataResponse[version].decode(body)
            for broker in answer.brokers:
                broker.port = self.proxies[broker.node_id].port
        else:
            answer = DescribeClusterResponse[version].decode(body)
            for broker in answer.brokers:
                broker.port = self.proxies[broker.broker_id].port
        return bytes(answer.encode())


class _Proxy(Server):
    def __init__(self, all_proxies: CountingProxies, broker: int, address: tuple[str, int]) -> None:
        self._all = all_proxies
        self._broker = broker
        self._address = address
        super().__init__(self._relay)

    def _relay(self, client: socket.socket) -> None:
        with socket.create_connection(self._address) as server:
            waiting: list[tuple[int, int]] = []
            back = threading.Thread(target=self._answers, args=(client, server, waiting), daemon=True)
            back.start()
            for frame in _frames(client):
                if self._broker in self._all.cut:
                    continue
                key, version = int.from_bytes(frame[:2], "big"), int.from_bytes(frame[2:4], "big")
                self._all.asked.append((self._broker, key, version))
                waiting.append((key, version))
                server.sendall(len(frame).to_bytes(4, "big") + frame)

    def _answers(self, client: socket.socket, server: socket.socket, waiting: list[tuple[int, int]]) -> None:
        try:
            for frame in _frames(server):
                key, version = waiting.pop(0)
                if key in (METADATA, DESCRIBE_CLUSTER):
                    flexible = key == DESCRIBE_CLUSTER or version >= 9
                    at = 5 if flexible else 4
                    frame = frame[:at] + self._all.rewritten(key, version, frame[at:])
                client.sendall(len(frame).to_bytes(4, "big") + frame)
        except OSError:
            return  # the client is gone


def _frames(connection: socket.socket) -> Any:
    stream = connection.makefile("rb")
    while length := stream.read(4):
        yield stream.read(int.from_bytes(length, "big"))
