"""kview's end of the control channel, over which it sends commands to a simulated cluster."""

import asyncio
import socket
from typing import TypeVar

from kview.config.messages import MAX_MESSAGE_BYTES, encode, next_message
from kview.errors import ErrorKind, KviewError
from kview.lab.messages import Answer, Ask, Counters, Request, answers
from kview.model.lab import ActiveFault, Command, LabSettings, Reply, Status

ANSWER_TIMEOUT_S = 5.0
"""A command takes microseconds, so a cluster that has not answered within this time is stuck or has ended."""

A = TypeVar("A", bound=Answer)


class ControlClient:
    """Sends commands to a simulated cluster, over our end of the socket pair to the cluster.

    Implements `Lab`. Requests are sent one at a time, in the order in which they were
    made. A request that is not answered in time fails, and the next one is sent once the late answer has
    come. If the channel is closed, or carries anything but answers, this request and all later ones fail.
    """

    def __init__(self, control: socket.socket, timeout_s: float = ANSWER_TIMEOUT_S) -> None:
        self._timeout_s = timeout_s
        self._control = control
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._one_at_a_time = asyncio.Lock()
        self._owed = 0
        """The number of answers that have not come yet."""
        self._broken: KviewError | None = None

    async def apply(self, command: Command) -> Reply:
        """Carry out `command`. Never raises, because errors are part of the reply."""
        try:
            return await self._ask(command, Reply)
        except KviewError as error:
            return Reply(refused=error.facts)

    async def settings_now(self) -> LabSettings | None:
        """Return what is set and can be adjusted, or None if the cluster does not say. Never raises."""
        try:
            return await self._ask(Ask.SETTINGS, LabSettings)
        except KviewError:
            return None

    async def active(self) -> tuple[ActiveFault, ...] | None:
        """Return the faults in force, or None if the cluster does not say. Never raises."""
        try:
            return (await self.status()).active
        except KviewError:
            return None

    async def status(self) -> Status:
        """Return the state of the cluster. Raises KviewError."""
        return await self._ask(Ask.STATUS, Status)

    async def counters(self) -> Counters:
        """Return the numbers of records appended, acknowledged and consumed. Raises KviewError."""
        return await self._ask(Ask.COUNTERS, Counters)

    async def close(self) -> None:
        """Close the channel. A cluster that was started for this channel ends with it."""
        if self._streams is None:
            self._control.close()
        else:
            self._streams[1].close()

    async def _ask(self, request: Request, expected: type[A]) -> A:
        async with self._one_at_a_time:
            if self._broken is not None:
                raise self._broken
            is_sent = False
            try:
                async with asyncio.timeout(self._timeout_s):
                    await self._catch_up()
                    is_sent = True
                    answer = await self._exchange(request)
                if not isinstance(answer, expected):
                    raise KviewError(ErrorKind.CLUSTER_GARBLED)
            except TimeoutError:
                if not is_sent:
                    raise KviewError(ErrorKind.CLUSTER_BUSY) from None
                raise KviewError(ErrorKind.CLUSTER_SILENT, within_s=self._timeout_s) from None
            except KviewError as error:
                self._broken = error
            except (OSError, EOFError):
                self._broken = KviewError(ErrorKind.CLUSTER_ENDED)
            except ValueError:
                self._broken = KviewError(ErrorKind.CLUSTER_GARBLED)
            else:
                return answer
            raise self._broken

    async def _catch_up(self) -> None:
        """Read the answers that are late, before anything else is sent.

        So a cluster that hangs finds one request when it wakes up, and not every key that was pressed
        meanwhile.
        """
        if self._streams is not None:
            while self._owed:
                await self._answer(self._streams[0])

    async def _exchange(self, request: Request) -> Answer:
        if self._streams is None:
            self._streams = await asyncio.open_connection(sock=self._control, limit=MAX_MESSAGE_BYTES)
        reader, writer = self._streams
        writer.write(encode(request))
        self._owed += 1
        await writer.drain()
        return await self._answer(reader)

    async def _answer(self, reader: asyncio.StreamReader) -> Answer:
        answer = await next_message(reader, answers)
        self._owed -= 1
        return answer
