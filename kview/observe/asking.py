"""Connections for what somebody asks on demand, separate from those of the observations.

A large answer or a slow broker therefore delays no observation, and its cost is counted separately.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from kview.model.address import Address
from kview.model.failures import Cause, FailureKind
from kview.model.inspection import Cost
from kview.model.units import NO_BROKER
from kview.observe import topics
from kview.observe.apis import READ_ONLY, READ_RECORDS
from kview.observe.bootstrap import until
from kview.observe.causes import LinkError
from kview.observe.link import Link
from kview.observe.links import Links
from kview.observe.loop import Loop, Meter
from kview.observe.settings import ObserveSettings
from kview.observe.state import State

DEADLINE_S = 15.0
"""Limit of the time for an answer with all its requests. Somebody waits for it, and can cancel it."""
SILENCE_S = 12.0
"""A broker that sends nothing for this long is silent. A large answer over a slow network takes some time."""
CONNECT_S = 4.0
IDLE_S = 30.0
"""Connections stay open for this long, for the next question."""
POLL_S = 0.05
MOST_BYTES_AN_ANSWER = 48 << 20
"""Limit of an answer's frame. A batch comes whole even if it is larger than what was asked for."""


class Cancelled(Exception):
    """Raised when the user does not want the answer any more."""


class OutOfTime(Exception):
    """Raised at the deadline."""


class Ticket(Struct):
    """A question on its way. Any thread may set `cancelled`."""

    cancelled: bool = False
    deadline_s: float = 0.0
    """The monotonic time until which it has to be answered."""


class Asking:
    """Asks brokers, one question at a time. `with_records` says whether records may be fetched at all."""

    def __init__(
        self, loop: Loop, settings: ObserveSettings, state: State, links: Links, with_records: bool
    ) -> None:
        self.loop = replace(loop, meter=Meter())
        self._settings = settings
        self._state = state
        self._observing = links
        self._allowed = READ_RECORDS if with_records else READ_ONLY
        self._links: dict[int, Link] = {}
        self._named_addresses: dict[int, Address] = {}
        """Broker → its address as the last answer to `leader` had it."""
        self._last_s = 0.0

    @property
    def cost(self) -> Cost:
        """What all questions have cost so far."""
        meter = self.loop.meter
        return Cost(meter.requests, meter.bytes_sent + meter.bytes_received)

    def spent_since(self, before: Cost) -> Cost:
        """Return what was spent since the cost was `before`."""
        now = self.cost
        return Cost(now.requests - before.requests, now.bytes - before.bytes)

    def close(self) -> None:
        """Close all connections."""
        for link in self._links.values():
            link.close()
        self._links.clear()

    def brokers(self) -> Sequence[int]:
        """Return the brokers that can be asked what any broker knows, the best one first."""
        healthy = self._observing.healthy()
        return sorted(healthy, key=lambda broker: broker != self._observing.source)

    async def ask(self, broker: int, make: Callable[[Link], Any], ticket: Ticket) -> Any:
        """Send the request that `make` makes for a broker, and return its answer.

        Raises LinkError, Cancelled or OutOfTime.
        """
        link = await self._connected(broker, ticket)
        future = self.loop.begin(partial(link.ask, make(link)))
        future.add_errback(lambda _: None)  # It is raised below, unless nobody waits any more.
        try:
            while not future.is_done:
                self._check(broker, ticket)
                await self.loop.settle([future], POLL_S)
        except BaseException:
            self._drop(broker)
            raise
        answer, _ = await future
        return answer

    async def leader(self, topic: str, partition: int, ticket: Ticket, but: int) -> Any:
        """Return the partition's row in the metadata of a broker, preferably another one than `but`.

        It is None if there is no such partition. Raises LinkError, Cancelled or OutOfTime.
        """
        rows = await self.partitions(topic, ticket, but)
        return next((row for row in rows if row.partition_index == partition), None)

    async def partitions(self, topic: str, ticket: Ticket, but: int = NO_BROKER) -> Sequence[Any]:
        """Return a topic's rows in the metadata of a broker, preferably another one than `but`.

        There are none if there is no such topic. Raises LinkError, Cancelled or OutOfTime.
        """
        brokers = sorted(self.brokers(), key=lambda broker: broker == but)
        if not brokers:
            raise LinkError(Cause(FailureKind.NOT_CONNECTED))
        answer = await self.metadata(brokers[0], topic, ticket)
        return [row for entry in answer.topics if entry.name == topic for row in entry.partitions]

    async def metadata(self, broker: int, topic: str, ticket: Ticket) -> Any:
        """Return what a broker knows about a topic. Raises LinkError, Cancelled or OutOfTime."""
        answer = await self.ask(broker, lambda _: topics.request([topic]), ticket)
        self._named_addresses = {b.node_id: Address(b.host, b.port) for b in answer.brokers}
        return answer

    def idle(self) -> None:
        """Close the connections some time after the last question."""
        self._last_s = self.loop.monotonic()

        def close() -> None:
            if self.loop.monotonic() - self._last_s >= IDLE_S:
                self.close()

        self.loop.net.call_later(IDLE_S + POLL_S, close)

    async def _connected(self, broker: int, ticket: Ticket) -> Link:
        address = self._address(broker)
        link = self._links.get(broker)
        if link is None or link.failing or link.address != address:
            self._drop(broker)
            s = self._settings
            link = self._links[broker] = Link(
                self.loop,
                address,
                SILENCE_S,
                s.retry_first_s,
                s.retry_most_s,
                self._allowed,
                MOST_BYTES_AN_ANSWER,
            )
        link.open()
        until_s = min(ticket.deadline_s, self.loop.monotonic() + CONNECT_S)
        while not link.connected and not link.failing:
            self._check(broker, ticket)
            await until(self.loop, lambda: link.connected or link.failing, self.loop.monotonic() + POLL_S)
            if self.loop.monotonic() >= until_s and not link.connected:
                self._drop(broker)
                raise LinkError(Cause(FailureKind.SILENT))
        if not link.connected:
            raise LinkError(link.cause)
        return link

    def _address(self, broker: int) -> Address:
        """Return a broker's address. Raises LinkError if the cluster does not list the broker."""
        listed = {address.id: Address(address.host, address.port) for address in self._state.listed}
        broker_address = listed.get(broker) or self._named_addresses.get(broker)
        if broker_address is None:
            raise LinkError(Cause(FailureKind.NOT_CONNECTED))
        return broker_address

    def _check(self, broker: int, ticket: Ticket) -> None:
        """Raise if there is no point in waiting any longer: the observations may know that, too."""
        if ticket.cancelled:
            raise Cancelled
        if self.loop.monotonic() >= ticket.deadline_s:
            raise OutOfTime
        fast = self._observing.fast.get(broker)
        if fast is not None and fast.failing:
            raise LinkError(fast.cause)

    def _drop(self, broker: int) -> None:
        link = self._links.pop(broker, None)
        if link is not None:
            link.close()
