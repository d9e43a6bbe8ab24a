"""Limits the memory for what clients do not read, and for requests that have not been handled yet."""

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kview.serve.connection import Connection

UNREAD_BYTES_MAX = 256 << 20
"""Limit of the unread bytes of all connections together. One connection has at most one answer unread."""

REQUESTS_BYTES_MAX = 512 << 20
"""Limit of the requests of all connections together, complete or not. One request has 100 MB at most."""

log = logging.getLogger(__name__)


def _too_large(sizes: "Mapping[Connection, int]", total: int, limit_bytes: int) -> "list[Connection]":
    """Return the connections with the largest sizes, without which the others stay within the limit."""
    too_large: list[Connection] = []
    for connection in sorted(sizes, key=lambda connection: -sizes[connection]):
        if total <= limit_bytes:
            break
        total -= sizes[connection]
        too_large.append(connection)
    return too_large


class Unread:
    """The connections of a cluster whose clients read more slowly than they ask. Above the limit, those with
    most unread end."""

    def __init__(self, limit_bytes: int = UNREAD_BYTES_MAX) -> None:
        self._limit_bytes = limit_bytes
        self._slow: dict[Connection, None] = {}

    def paused(self, connection: "Connection") -> None:
        """Add a connection whose client does not keep up, and end connections until the rest fits."""
        self._slow[connection] = None
        sizes = {slow: slow.unread_bytes() for slow in self._slow}
        for slow in _too_large(sizes, sum(sizes.values()), self._limit_bytes):
            log.info("a connection ended, because %d bytes of answers were not read", sizes[slow])
            del self._slow[slow]
            slow.abort()

    def resumed(self, connection: "Connection") -> None:
        """Forget a connection whose client has read everything, or which has ended."""
        self._slow.pop(connection, None)


class Requests:
    """The bytes that each connection of a cluster keeps for its requests. Above the limit, those with most
    end."""

    def __init__(self, limit_bytes: int = REQUESTS_BYTES_MAX) -> None:
        self._limit_bytes = limit_bytes
        self._sizes: dict[Connection, int] = {}
        self.total_bytes = 0

    def keeps(self, connection: "Connection", size: int) -> None:
        """Note that a connection now keeps so many bytes, and end connections until the rest fits."""
        self.total_bytes += size - self._sizes.pop(connection, 0)
        if size:
            self._sizes[connection] = size
        if self.total_bytes <= self._limit_bytes:
            return
        for large in _too_large(self._sizes, self.total_bytes, self._limit_bytes):
            size = self._sizes.pop(large)
            self.total_bytes -= size
            log.warning("a connection ended, because its unfinished request takes %d bytes", size)
            large.abort()
