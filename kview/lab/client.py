"""kview's end of the control channel, which requests faults on a simulated cluster over a socket."""

import asyncio
import socket
from typing import TypeVar

import msgspec

from kview.errors import ErrorKind, KviewError
from kview.lab.messages import (
    MAX_REPLY_BYTES,
    AskCounters,
    AskStatus,
    Counters,
    DoFault,
    FaultAnswer,
    Reply,
    Request,
    Status,
    encode,
    reply_of,
)
from kview.model.faults import FaultCommand, FaultReply

REPLY_TIMEOUT_S = 5.0
"""A fault takes microseconds, so a cluster that has not answered within this time is stuck or has ended."""

R = TypeVar("R", bound=Reply)


class ControlClient:
    """The `kview.model.faults.Faults` of a simulated cluster, over our end of the socket pair to the cluster.

    Requests are sent one at a time, in the order in which they were made. A request that fails ends the
    channel, because a late answer could be mistaken for the answer to the next request. From then on, every
    request fails in the same way.
    """

    def __init__(self, control: socket.socket, timeout_s: float = REPLY_TIMEOUT_S) -> None:
        self._timeout_s = timeout_s
        self._control = control
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._one_at_a_time = asyncio.Lock()
        self._broken: KviewError | None = None

    async def apply(self, command: FaultCommand) -> FaultReply:
        """Carry out `command`. Never raises, because errors are part of the reply."""
        try:
            return (await self._ask(DoFault(command), FaultAnswer)).reply
        except KviewError as error:
            return FaultReply(refused=error.facts)

    async def status(self) -> Status:
        """Return the state of the cluster. Raises KviewError."""
        return await self._ask(AskStatus(), Status)

    async def counters(self) -> Counters:
        """Return what was appended, acknowledged and consumed. Raises KviewError."""
        return await self._ask(AskCounters(), Counters)

    async def close(self) -> None:
        """Close the channel. A cluster that was started for this channel ends with it."""
        if self._streams is None:
            self._control.close()
        else:
            self._streams[1].close()

    async def _ask(self, request: Request, expected: type[R]) -> R:
        async with self._one_at_a_time:
            if self._broken is not None:
                raise self._broken
            try:
                async with asyncio.timeout(self._timeout_s):
                    line = await self._exchange(encode(request))
                if not line.endswith(b"\n"):
                    raise KviewError(ErrorKind.CLUSTER_ENDED)
                reply = reply_of(line)
                if not isinstance(reply, expected):
                    raise KviewError(ErrorKind.CLUSTER_GARBLED)
            except KviewError as error:
                self._broken = error
            except TimeoutError:
                self._broken = KviewError(ErrorKind.CLUSTER_SILENT, within_s=self._timeout_s)
            except OSError:
                self._broken = KviewError(ErrorKind.CLUSTER_ENDED)
            except (msgspec.DecodeError, ValueError):  # ValueError: a line longer than MAX_REPLY_BYTES
                self._broken = KviewError(ErrorKind.CLUSTER_GARBLED)
            else:
                return reply
            raise self._broken

    async def _exchange(self, line: bytes) -> bytes:
        if self._streams is None:
            self._streams = await asyncio.open_connection(sock=self._control, limit=MAX_REPLY_BYTES)
        reader, writer = self._streams
        writer.write(line)
        await writer.drain()
        return await reader.readline()
