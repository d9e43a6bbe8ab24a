"""The simulated cluster on the network, with a listener per broker and an engine driven by the wall clock."""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from ipaddress import ip_address

from kview.errors import BadUse, ErrorKind
from kview.model.address import HIGHEST_PORT, Address, Place
from kview.serve.apis import all_apis
from kview.serve.broker import WireBroker
from kview.serve.call import Wire
from kview.serve.clock import Clock
from kview.serve.driver import Driver
from kview.serve.listener import HOST, Port, interface_of
from kview.serve.memory import Requests, Unread
from kview.serve.rules import OnDemand
from kview.serve.security import PLAINTEXT, ListenerSecurity
from kview.serve.slices import Slices
from kview.simulate.cluster import Cluster
from kview.simulate.nodes import ProcessState

FREE_PORTS = Place(HOST)
"""Any ports of the loopback interface."""

LONGEST_HOST = 253
"""Limit of characters in a host name."""

log = logging.getLogger(__name__)


class Server:
    """A simulated cluster that clients can connect to.

    Create, start and close the server on the same running event loop. `ports` has one port per broker (see
    `reserve_ports`), all with the same `security`. `failed` is called with the exception of a bug, after
    which the cluster has stopped for good.
    """

    def __init__(
        self,
        cluster: Cluster,
        ports: Sequence[Port],
        failed: Callable[[Exception], None],
        security: ListenerSecurity = PLAINTEXT,
    ) -> None:
        self.cluster = cluster
        cluster.kernel.unblamed = _event_failed
        self.clock = Clock(time.monotonic_ns, cluster.kernel.now_us)
        endpoints, listening = {}, {}
        for broker, port in zip(cluster.broker_ids(), ports, strict=True):
            endpoints[broker], listening[broker] = port.advertised, Address(port.interface.host, port.number)
        self.bootstrap_servers = ",".join(map(str, endpoints.values()))
        loop = asyncio.get_running_loop()
        self.driver = Driver(cluster.kernel, self.clock, loop, failed)
        apis = all_apis(cluster.world.release)
        self.on_demand = OnDemand(cluster, apis)
        wire = Wire(cluster, endpoints, apis, security, listening, on_demand=self.on_demand)
        unread, requests = Unread(), Requests()
        slices = Slices(loop.call_soon, loop.time, self.driver.rearm)
        self._brokers = {
            broker: WireBroker(broker, port, wire, self.driver, failed, unread, requests, slices)
            for broker, port in zip(cluster.broker_ids(), ports, strict=True)
        }

    def start(self) -> None:
        """Start listening for every broker whose process runs, and let time pass.

        Raises BadUse if a port was taken in the meantime.
        """
        for broker, on_wire in self._brokers.items():
            if self.cluster.nodes.serves(broker):
                on_wire.listen()
        self.cluster.nodes.on_process_change(self._process_changed)
        self.cluster.nodes.on_port_open(lambda broker: self._brokers[broker].listen())
        self.driver.start()

    def skip(self, us: int, with_sessions: bool) -> None:
        """Let so much time pass at once. Members that are connected keep their sessions, and clients their
        logins, because they had no time for heartbeats, unless those are to end, too: `with_sessions`."""
        if not with_sessions:
            members = {member for broker in self._brokers.values() for member in broker.members()}
            for broker in self.cluster.broker_ids():
                self.cluster.groups(broker).hold_sessions(members, us)
            for on_wire in self._brokers.values():
                on_wire.hold_logins(us)
        kernel, stands = self.cluster.kernel, self.cluster.kernel.stands
        kernel.go_on()
        self.clock.skip(us)
        self.cluster.run_until(kernel.now_us + us)
        if stands:
            kernel.stand()

    def stand(self, stands: bool) -> bool:
        """Let the cluster's clock stand, or go on. Return whether that is new.

        While it stands, requests are served, records are replicated and committed, and the metadata changes,
        as all of that takes less than half a second. Nothing else happens: no heartbeat, session, lock,
        transaction, retention or longer poll is due, and nothing times out. Afterwards, all of that has as
        much time left as it had.
        """
        kernel = self.cluster.kernel
        if kernel.stands == stands:
            return False
        if stands:
            kernel.stand()
        else:
            kernel.go_on()
        return True

    def close(self) -> None:
        """Close every socket and stop the engine."""
        self.driver.stop()
        for broker in self._brokers.values():
            broker.shut()

    def _process_changed(self, node: int, state: ProcessState) -> None:
        broker = self._brokers.get(node)
        if broker is not None:  # controllers have no clients
            broker.process_changed(state)


def _event_failed(error: Exception) -> None:
    """Log a bug in an event that no client's request has scheduled. The other events go on."""
    log.error("an event of the simulated cluster failed", exc_info=error)


def reserve_ports(brokers: int, at: Place = FREE_PORTS, advertised: Sequence[Place] = ()) -> list[Port]:
    """Reserve a port for each broker.

    The ports are that of `at`, the next one, and so on, or free ports. Clients are told to connect to these
    or, if there is one `advertised` place, to its host, at its port, the next one, and so on. Otherwise each
    broker has its own. A place without a port has that of the broker. Raises BadUse if a port is out of range
    or cannot be reserved, and for what cannot be advertised.
    """
    _check_room(at.port, brokers)
    interface = interface_of(at.host)
    if advertised and len(advertised) not in (1, brokers):
        raise BadUse(ErrorKind.ADVERTISED_TOO_FEW, given=len(advertised), brokers=brokers)
    if interface.is_every and not advertised:
        raise BadUse(ErrorKind.ADVERTISE_MISSING, host=at.host)
    if len(advertised) == 1 < brokers:
        host, first = advertised[0]
        _check_room(first, brokers)
        advertised = [Place(host, None if first is None else first + broker) for broker in range(brokers)]
    ports: list[Port] = []
    try:
        for broker in range(brokers):
            ports.append(Port(0 if at.port is None else at.port + broker, interface))
        if advertised:
            _advertise(ports, advertised)
    except BadUse:
        for port in ports:
            port.give_back()
        raise
    return ports


def _check_room(first: int | None, brokers: int) -> None:
    if first is not None and not 1 <= first <= HIGHEST_PORT - brokers + 1:
        raise BadUse(ErrorKind.PORTS_OUT_OF_RANGE, port=first, highest=HIGHEST_PORT - brokers + 1)


def _advertise(ports: Sequence[Port], places: Sequence[Place]) -> None:
    taken: set[Address] = set()
    for port, place in zip(ports, places, strict=True):
        port.advertised = Address(place.host, port.number if place.port is None else place.port)
        if port.advertised in taken:
            raise BadUse(ErrorKind.ADVERTISED_TWICE, address=str(port.advertised))
        taken.add(port.advertised)
        if not _is_advertisable(place.host):
            raise BadUse(ErrorKind.NOT_ADVERTISABLE, host=place.host)


def _is_advertisable(host: str) -> bool:
    """Whether clients on other machines can understand a host."""
    if not host.isascii() or len(host) > LONGEST_HOST or "%" in host:  # A zone is one of this machine.
        return False
    try:
        return not ip_address(host).is_unspecified
    except ValueError:
        return all(host.removesuffix(".").split("."))  # a name
