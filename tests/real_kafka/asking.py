"""One request, one connection, one answer: what a broker says, with nothing cached in between."""

import socket
from struct import unpack
from typing import Any

CORRELATION_ID = 1
ANSWER_TIMEOUT_S = 5.0


def ask(address: tuple[str, int], request: Any, timeout_s: float = ANSWER_TIMEOUT_S) -> Any:
    """Send a kafka-python request (made with `version=`) and return the decoded answer.

    Raises OSError when the broker refuses, hangs or closes the connection.
    """
    request.with_header(correlation_id=CORRELATION_ID, client_id="kview-tests")
    with socket.create_connection(address, timeout=timeout_s) as connection:
        connection.sendall(request.encode(header=True, framed=True))
        size = unpack(">i", _read(connection, 4))[0]
        frame = _read(connection, size)
    return request.header.get_response_class().decode(frame, header=True)


def _read(connection: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        part = connection.recv(size - len(parts))
        if not part:
            raise ConnectionResetError("the broker closed the connection")
        parts += part
    return bytes(parts)
