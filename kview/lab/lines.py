"""The client's end of the line protocol: faults on a simulated cluster, asked for over a socket.

A command is one line, its answer one line that begins with `ok ` or `error `. `status` answers
`ok …; faults: 4 crashed, 2 slow 200ms`, or `faults: none`.
"""

import asyncio
import socket

from kview.errors import BadUse
from kview.lab.commands import parse
from kview.language.errors import sentence
from kview.model.ports import FaultCommand, FaultReply

REPLY_TIMEOUT_S = 5.0
"""A fault is a few microseconds' work: a cluster that has not answered by then is stuck or gone."""

MAX_LINE_BYTES = 1 << 20
"""An answer of `counters` on a cluster of thousands of topics fits."""


class LineFaults:
    """`kview.model.ports.Faults` over one end of a socket pair, whose other end the simulated cluster reads.

    Commands are sent one at a time, in the order they were given. One that ran out of time poisons the
    connection, for its answer could come later and be taken for another's: from then on every reply says that
    the cluster does not answer.
    """

    def __init__(self, control: socket.socket, timeout_s: float = REPLY_TIMEOUT_S) -> None:
        self._timeout_s = timeout_s
        self._control = control
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._one_at_a_time = asyncio.Lock()
        self._broken = ""

    async def apply(self, command: FaultCommand) -> FaultReply:
        """Carry out `command`; never raises: what went wrong is in the reply."""
        try:
            parse(command.line())
        except BadUse as error:
            return FaultReply(False, sentence(error))
        async with self._one_at_a_time:
            try:
                answer = await self._ask(command.line())
                status = await self._ask("status")
            except (OSError, ValueError, EOFError, TimeoutError) as error:
                self._broken = self._broken or str(error) or "it did not answer in time"
                return FaultReply(False, f"the simulated cluster cannot be told: {self._broken}")
        ok, _, text = answer.partition(" ")
        return FaultReply(ok == "ok", text, active_faults(status))

    async def status(self) -> str:
        """The cluster's own line about itself. Raises OSError, EOFError or TimeoutError."""
        async with self._one_at_a_time:
            return await self._ask("status")

    async def counters(self) -> str:
        """What was appended, acknowledged and consumed, as one line of JSON. Raises OSError, EOFError or
        TimeoutError."""
        async with self._one_at_a_time:
            return (await self._ask("counters")).removeprefix("ok ")

    async def close(self) -> None:
        """End the connection, and with it a cluster that was started for it."""
        if self._streams is None:
            self._control.close()
        else:
            self._streams[1].close()

    async def _ask(self, line: str) -> str:
        if self._broken:
            raise OSError(self._broken)
        async with asyncio.timeout(self._timeout_s):
            if self._streams is None:
                self._streams = await asyncio.open_connection(sock=self._control, limit=MAX_LINE_BYTES)
            reader, writer = self._streams
            writer.write(line.encode() + b"\n")
            await writer.drain()
            answer = await reader.readline()
        if not answer.endswith(b"\n"):
            raise EOFError("it has ended")
        return answer.decode().rstrip("\n")


def active_faults(status: str) -> tuple[str, ...]:
    """The faults in force, from a line of status: `4 crashed`, `2 slow 200ms`."""
    _, found, faults = status.rpartition("; faults: ")
    return () if not found or faults == "none" else tuple(faults.split(", "))
