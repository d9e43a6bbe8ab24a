"""One broker as clients meet it: its port, its connections, and what its process's state does to both."""

import asyncio
import logging
import socket
from collections.abc import Callable, Mapping

from kview.serve.apis.api_versions import answer_unsupported
from kview.serve.call import Api, Call, Wire, take_request
from kview.serve.connection import Connection
from kview.serve.driver import Driver
from kview.serve.frames import Garbage
from kview.serve.listener import Port, reset
from kview.simulate.nodes import ProcessState

MAX_CONNECTIONS = 2_000
"""To one broker; what comes beyond is reset, so that a client in a loop leaves descriptors to the others."""

log = logging.getLogger(__name__)


class WireBroker:
    """Accepts, refuses or stays silent as its process would, and hands requests to their APIs.

    `frozen` while the process hangs; `latency_s` is added to each answer while it is slow. `failed` is called
    with an exception of the engine, a bug: the simulated cluster ends with it.
    """

    def __init__(
        self,
        broker: int,
        port: Port,
        wire: Wire,
        apis: Mapping[int, Api],
        driver: Driver,
        failed: Callable[[Exception], None],
    ) -> None:
        self.frozen = False
        self._id = broker
        self._port = port
        self._wire = wire
        self._apis = apis
        self._driver = driver
        self._failed = failed
        self._loop = asyncio.get_running_loop()
        self._connections: set[Connection] = set()

    @property
    def latency_s(self) -> float:
        """How much later than it could each answer is written."""
        return self._wire.cluster.slow_ms(self._id) / 1000

    def listen(self) -> None:
        """The process is there. Raises BadUse where the port was taken."""
        self._port.listen()
        self._port.accept(self._loop, self._take)

    def process_changed(self, state: ProcessState) -> None:
        """Do to the sockets what the process's new state does to them."""
        if state is ProcessState.RUNNING:
            if self.frozen:
                self.frozen = False
                self._port.accept(self._loop, self._take)
                for connection in list(self._connections):
                    connection.thaw()
            else:
                self.listen()
        elif state is ProcessState.HUNG:
            self.frozen = True
            self._port.pause(self._loop)
            for connection in self._connections:
                connection.freeze()
        else:
            self.frozen = False
            self._port.refuse(self._loop)
            for connection in list(self._connections):
                if state is ProcessState.CRASHED:
                    connection.abort()
                else:
                    connection.close()

    def handle(self, connection: Connection, frame: memoryview) -> None:
        """Have a request answered at the engine's present time."""
        try:
            self._driver.advance()
        except Exception as error:
            self._failed(error)
            return
        if self._wire.cluster.process(self._id) is not ProcessState.RUNNING:
            return  # it has died or frozen just now: the request stays without an answer
        try:
            take_request(self._wire, self._apis, self._unsupported, self._id, connection, frame)
        except Garbage:
            raise
        except Exception:
            log.exception("a request to broker %d failed", self._id)
            connection.close()
        self._driver.rearm()

    def opened(self, connection: Connection) -> None:
        """A connection was taken."""
        self._connections.add(connection)
        if self.frozen:
            connection.freeze()
        elif self._wire.cluster.process(self._id) is not ProcessState.RUNNING:  # it has died
            connection.abort()

    def closed(self, connection: Connection) -> None:
        """A connection has ended."""
        self._connections.discard(connection)

    def shut(self) -> None:
        """The whole cluster ends."""
        self._port.refuse(self._loop)
        self._port.give_back()
        for connection in list(self._connections):
            connection.close()

    def _unsupported(self, call: Call) -> None:
        answer_unsupported(call, self._apis)

    def _take(self, sock: socket.socket) -> None:
        if len(self._connections) >= MAX_CONNECTIONS:
            reset(sock)
            return
        self._loop.create_task(self._connect(sock))

    async def _connect(self, sock: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(lambda: Connection(self, self._loop), sock)
        except OSError as error:  # the client has gone again
            log.info("a connection to broker %d ended at once: %s", self._id, error)
