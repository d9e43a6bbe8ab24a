"""A broker as its clients see it, that is, its port and its connections."""

import asyncio
import logging
import socket
from collections.abc import Callable

from kview.serve.call import REQUEST_THROTTLE_MS_MAX, Wire, take_request
from kview.serve.connection import MAPPED, Connection
from kview.serve.driver import Driver
from kview.serve.listener import HOST, Port, reset
from kview.serve.login import Login
from kview.serve.memory import Requests, Unread
from kview.serve.slices import Slices
from kview.serve.tls import TlsLayer
from kview.simulate.client_quotas import CONNECTIONS, IP, NOTHING, Limit
from kview.simulate.nodes import ProcessState

MAX_CONNECTIONS = 2_000
"""Limit of connections per broker. Further connections are reset, so that a client that connects in a loop
does not use up all file descriptors."""

FROZEN_RETRY_S = 0.5
"""How often a hung broker looks whether it may end a throttled connection again."""

log = logging.getLogger(__name__)


class WireBroker:
    """The network side of a broker, which accepts, refuses or ignores connections and answers requests.

    `frozen` is True while the process hangs. `latency_s` delays each answer while the broker is slow.
    `failed` is called with an exception that the engine raised, which is a bug and ends the simulated
    cluster.
    """

    def __init__(
        self,
        broker: int,
        port: Port,
        wire: Wire,
        driver: Driver,
        failed: Callable[[Exception], None],
        unread: Unread,
        requests: Requests,
        slices: Slices,
    ) -> None:
        self.frozen = False
        self.unread = unread
        self.requests = requests
        self.slices = slices
        self._id = broker
        self._port = port
        self._wire = wire
        self._driver = driver
        self._failed = failed
        self._loop = asyncio.get_running_loop()
        self._connections: set[Connection] = set()
        self._handshaking: set[TlsLayer] = set()
        self._throttled: set[socket.socket] = set()
        self._connecting = 0

    @property
    def latency_s(self) -> float:
        """Delay added to each answer, in seconds; 0 unless the broker is slow."""
        return self._wire.cluster.nodes.slow_ms(self._id) / 1000

    def listen(self) -> None:
        """Start accepting connections. Raises BadUse if another process has taken the port."""
        self._port.listen()
        self._port.accept(self._loop, self._take)

    def process_changed(self, state: ProcessState) -> None:
        """Thaw, freeze or close the port and the connections, as the new state of the process requires.

        A started process opens its port later (see `listen`).
        """
        if state is ProcessState.RUNNING:
            if self.frozen:
                self.frozen = False
                self._port.accept(self._loop, self._take)
                for each in self._sockets():
                    each.thaw()
        elif state is ProcessState.HUNG:
            self.frozen = True
            self._port.pause(self._loop)
            for each in self._sockets():
                each.freeze()
        else:
            self.frozen = False
            self._port.refuse(self._loop)
            self._end_all(crashed=state is ProcessState.CRASHED)

    def _sockets(self) -> list[Connection | TlsLayer]:
        return [*self._connections, *self._handshaking]

    def _end_all(self, crashed: bool) -> None:
        for each in self._sockets():
            if crashed:
                each.abort()
            else:
                each.close()
        for sock in list(self._throttled):
            self._end_throttled(sock, crashed)

    def handle(self, connection: Connection, frame: memoryview) -> None:
        """Advance the engine to the present and answer the request in `frame`."""
        try:
            self._driver.advance()
        except Exception as error:
            self._failed(error)
            return
        if self._wire.cluster.nodes.state(self._id) is not ProcessState.RUNNING:
            return  # the broker died or froze during the step above, so the request gets no answer
        take_request(self._wire, self._id, connection, frame)
        self._driver.rearm()

    def new_login(self) -> Login | None:
        """Return the login of a new connection, or None if clients need not log in."""
        cluster, logins = self._wire.cluster, self._wire.security.logins
        if logins is None:
            return None
        return Login(logins, lambda: cluster.image(self._id), lambda: cluster.kernel.now_us)

    def opened(self, connection: Connection) -> None:
        """Register a new connection."""
        self._connecting -= 1
        self._connections.add(connection)
        self._join(connection)

    def handshake_begun(self, layer: TlsLayer) -> None:
        """Register a socket that is not a connection yet."""
        self._handshaking.add(layer)
        self._join(layer)

    def handshake_over(self, layer: TlsLayer, done: bool) -> None:
        """Forget a socket that is a connection now, or has ended."""
        self._handshaking.discard(layer)
        if not done:
            self._not_opened()

    def _join(self, new: Connection | TlsLayer) -> None:
        if self.frozen:
            new.freeze()
        elif self._wire.cluster.nodes.state(self._id) is not ProcessState.RUNNING:  # it has just died
            new.abort()

    def closed(self, connection: Connection) -> None:
        """Forget a connection that has ended."""
        self._connections.discard(connection)

    def members(self) -> list[tuple[str, str]]:
        """Return the (group, member id) whose heartbeats the open connections have brought."""
        return [connection.member for connection in self._connections if connection.member is not None]

    def hold_logins(self, us: int) -> None:
        """Let the logins of the open connections count for longer."""
        for connection in self._connections:
            if connection.login is not None:
                connection.login.hold(us)

    def shut(self) -> None:
        """Close the port and all connections, because the entire cluster ends."""
        self._port.refuse(self._loop)
        self._port.give_back()
        self._end_all(crashed=False)

    def _take(self, sock: socket.socket) -> None:
        if len(self._connections) + self._connecting >= MAX_CONNECTIONS:
            reset(sock)
            return
        self._connecting += 1
        throttle_ms = self._connection_throttle_ms(sock)
        if throttle_ms:
            self._throttled.add(sock)
            self._loop.call_later(throttle_ms / 1000, self._throttled_long_enough, sock)
        else:
            self._loop.create_task(self._connect(sock))

    def _connection_throttle_ms(self, sock: socket.socket) -> int:
        """Return how long to wait with the end of a connection that is above the quota of its address, or 0.

        Source: kafka.network.ConnectionQuotas.
        """
        quotas = self._wire.cluster.image(self._id).client_quotas
        if not quotas:
            return 0
        try:
            host = str(sock.getpeername()[0]).removeprefix(MAPPED)
        except OSError:  # the client has already hung up
            return 0
        names = (host, "localhost", None) if host == HOST else (host, None)
        of_host = next((quotas[entity] for name in names if (entity := ((IP, name),)) in quotas), NOTHING)
        value = of_host.get(CONNECTIONS)
        if value is None:
            return 0
        rate = self._wire.throttles_of(self._id).rate(CONNECTIONS, Limit(value, (IP, host)))
        now_ms = self._wire.cluster.kernel.now_us / 1000
        rate.record(1, now_ms)
        throttle_ms = rate.throttle_ms(value, now_ms)
        if throttle_ms:
            rate.record(-1, now_ms)
        return min(throttle_ms, REQUEST_THROTTLE_MS_MAX)

    def _throttled_long_enough(self, sock: socket.socket) -> None:
        if sock in self._throttled:
            if self.frozen:
                self._loop.call_later(FROZEN_RETRY_S, self._throttled_long_enough, sock)
            else:
                self._end_throttled(sock)

    def _end_throttled(self, sock: socket.socket, crashed: bool = False) -> None:
        self._throttled.discard(sock)
        self._connecting -= 1
        if crashed:
            reset(sock)
        else:
            sock.close()

    def _protocol(self) -> asyncio.BaseProtocol:
        connection, tls = Connection(self, self._loop), self._wire.security.tls
        return connection if tls is None else TlsLayer(tls, connection, self._loop, self)

    def _not_opened(self) -> None:
        self._connecting -= 1

    async def _connect(self, sock: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._protocol, sock)
        except OSError as error:  # the client has already hung up
            self._not_opened()
            log.info("a connection to broker %d ended at once: %s", self._id, error)
