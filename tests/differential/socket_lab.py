"""A cluster that listens on ports: a real one, or the simulated one as `kview serve` runs it."""

import select
import socket
import time
from struct import unpack
from typing import Any, Protocol

from kview.model.address import Address
from tests.real_kafka.cluster import RealKafka
from tests.served import Served
from tests.waiting import pause, wait_until

CONNECT_S = 5.0
STOP_LIMIT_S = 30.0
CORRELATION_ID = 1
CLIENT_ID = "tests"


class SocketAnswer:
    """The answer to a request on a connection of its own."""

    def __init__(self, connection: socket.socket, request: Any) -> None:
        self._connection = connection
        self._request = request
        self._bytes = bytearray()
        self._ended: OSError | None = None

    def arrived(self) -> bool:
        while not self._complete() and self._ended is None:
            if not select.select([self._connection], [], [], 0)[0]:
                return False
            try:
                part = self._connection.recv(1 << 20)
            except OSError as error:
                self._ended = error
                break
            if not part:
                self._ended = ConnectionResetError("the connection has ended")
            self._bytes += part
        self._connection.close()
        return True

    def message(self) -> Any:
        if not self._complete():
            raise self._ended or ConnectionResetError("no answer yet")
        return self._request.header.get_response_class().decode(bytes(self._bytes[4:]), header=True)

    def _complete(self) -> bool:
        return len(self._bytes) >= 4 and len(self._bytes) >= 4 + unpack(">i", self._bytes[:4])[0]


class Machine(Protocol):
    """The processes behind the ports."""

    def crash(self, *nodes: int) -> None: ...
    def stop(self, node: int) -> None: ...
    def hang(self, node: int) -> None: ...
    def start(self, *nodes: int) -> None: ...
    def address(self, broker: int) -> Address: ...
    def heal(self) -> None: ...


class SocketLab:
    """Requests go over sockets, each on a connection of its own, and time is the machine's."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def crash(self, *nodes: int) -> None:
        self._machine.crash(*nodes)

    def stop(self, node: int) -> None:
        self._machine.stop(node)

    def hang(self, node: int) -> None:
        self._machine.hang(node)

    def start(self, *nodes: int) -> None:
        self._machine.start(*nodes)

    def heal(self) -> None:
        self._machine.heal()

    def refuses(self, broker: int) -> bool:
        try:
            socket.create_connection(self._machine.address(broker), CONNECT_S).close()
        except ConnectionRefusedError:
            return True
        except TimeoutError:  # it hangs, and its queue of connections is full
            return False
        return False

    def send(self, broker: int, request: Any) -> SocketAnswer:
        request.with_header(correlation_id=CORRELATION_ID, client_id=CLIENT_ID)
        connection = socket.create_connection(self._machine.address(broker), CONNECT_S)
        connection.sendall(request.encode(header=True, framed=True))
        return SocketAnswer(connection, request)

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def let_pass(self, seconds: float) -> None:
        pause(seconds)


class RealMachine:
    """Processes of Apache Kafka."""

    def __init__(self, cluster: RealKafka) -> None:
        self._cluster = cluster

    def address(self, broker: int) -> Address:
        return self._cluster.address(broker)

    def stop(self, node: int) -> None:
        self._cluster.stop(node)

    def hang(self, node: int) -> None:
        self._cluster.pause(node)

    def heal(self) -> None:
        self._cluster.heal()

    def crash(self, *nodes: int) -> None:
        for node in nodes:
            self._cluster.kill(node)

    def start(self, *nodes: int) -> None:
        for number in nodes:
            node = self._cluster.nodes[number]
            if node.paused:
                self._cluster.resume(number)
            elif node.process is None:
                self._cluster.restart(number)


class ServedMachine:
    """Nodes of `kview serve`, disturbed over its control channel."""

    def __init__(self, cluster: Served) -> None:
        self._cluster = cluster

    def heal(self) -> None:
        self._cluster.heal()

    def address(self, broker: int) -> Address:
        return self._cluster.addresses[broker]

    def crash(self, *nodes: int) -> None:
        for node in nodes:
            self._cluster.do(f"crash {node}")

    def stop(self, node: int) -> None:
        self._cluster.do(f"stop {node}")
        wait_until(lambda: self._stopped(node), f"{node} has stopped", STOP_LIMIT_S)

    def hang(self, node: int) -> None:
        self._cluster.do(f"hang {node}")

    def start(self, *nodes: int) -> None:
        for node in nodes:
            self._cluster.do(f"start {node}")

    def _stopped(self, node: int) -> bool:
        try:
            socket.create_connection(self.address(node), CONNECT_S).close()
        except ConnectionRefusedError:
            return True
        return False
