"""From an address to a transport: the TCP connection and the TLS handshake, or what the port is instead."""

import socket
from collections.abc import Callable, Mapping
from ssl import SSLError
from typing import Any

from kview.model.address import Address
from kview.model.failures import Cause, FailureKind
from kview.observe.causes import LinkError, cause_of, cause_of_end
from kview.observe.loop import CLIENT_ID, Loop
from kview.wire.kafka_internals import Connection, ConnectTimedOut, Transport, connect
from kview.wire.kafka_tls import TlsTransport, secured

SOCKET_OPTIONS = [
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
]
SOFTWARE_NAME = "kview-tui"
"""The name sent with ApiVersions. It has nine letters so that the length byte in front of it is a line feed.
A server that reads lines, such as an HTTP server, then replies at once that it did not understand."""
CLIENT: Mapping[str, Any] = {
    "client_id": CLIENT_ID,
    "client_software_name": SOFTWARE_NAME,
    "client_software_version": "1",
}
"""What a connection tells a broker about kview."""


async def reach(
    loop: Loop, address: Address, deadline_s: float, on_accept: Callable[[], None], is_new: bool
) -> Transport:
    """Connect to a broker's address, or to what it is mapped to, before `deadline_s` (monotonic).

    `on_accept` is called once the port has accepted a connection. If the port does not speak TLS and
    `is_new` says that it never did, the error says what it does speak. Raises OSError, Unresolved,
    TooManyLookups, ConnectTimedOut, HandshakeTimedOut or LinkError.
    """
    error: Exception = ConnectTimedOut()
    for resolved in await loop.addresses(*loop.access.security.route(address)):
        try:
            sock = await connect(loop.net, resolved, SOCKET_OPTIONS, deadline_s)
        except (OSError, ConnectTimedOut) as failed:
            error = failed
            continue
        on_accept()
        context = loop.access.context
        if context is None:
            return Transport(loop.net, sock, address.host, loop.meter)
        try:
            # The certificate is for the host that the broker advertises, wherever that is mapped to.
            wrapped = await secured(loop.net, sock, context, address.host, deadline_s)
        except SSLError as failed:
            if is_new and cause_of(failed).kind in (FailureKind.CLOSED, FailureKind.NOT_KAFKA):
                await _raise_what_it_is(loop, resolved, deadline_s)
            raise
        return TlsTransport(loop.net, wrapped, address.host, loop.meter)
    raise error


async def _raise_what_it_is(loop: Loop, resolved: Any, deadline_s: float) -> None:
    """Ask a port that does not speak TLS for its versions in plain text.

    Raises LinkError if the answer tells what the port is.
    """
    probe, errors = Connection(loop.net, loop.meter, **CLIENT), list[BaseException]()
    probe.close_future.add_errback(errors.append)
    try:
        sock = await connect(loop.net, resolved, SOCKET_OPTIONS, deadline_s)
    except (OSError, ConnectTimedOut):
        return
    loop.meter.requests += 1
    probe.connection_made(Transport(loop.net, sock, "", loop.meter))
    await probe.initialize(timeout_at=deadline_s)
    if probe.connected:
        probe.close()
        raise LinkError(Cause(FailureKind.NOT_TLS))
    kind = cause_of_end(errors[0] if errors else None, probe.first_bytes).kind
    if kind in (FailureKind.HTTP, FailureKind.CONTROLLER):
        raise LinkError(Cause(kind))
