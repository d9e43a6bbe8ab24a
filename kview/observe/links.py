"""The connections to all brokers on both lanes: which exist, which can be asked, which serves metadata."""

from functools import partial

from kview.model.address import Address
from kview.model.states import BrokerState
from kview.model.units import NO_BROKER
from kview.observe.link import MOST_WAITING, Link
from kview.observe.loop import Loop
from kview.observe.settings import ObserveSettings
from kview.observe.state import State
from kview.wire.metadata import BrokerAddress

STALE_S = 0.9
"""A broker that owes an answer for this long gets no more requests until the answer arrives."""


class Links:
    """The links of both lanes, `fast` and `slow`, by broker.

    `source` is the broker that is asked for metadata.
    """

    def __init__(self, loop: Loop, settings: ObserveSettings, state: State, slow: dict[int, Link]) -> None:
        self.fast: dict[int, Link] = {}
        self.slow = slow
        self.source = NO_BROKER
        self._loop = loop
        self._settings = settings
        self._state = state

    def open(self) -> None:
        """Open a link to every broker that is listed or registered."""
        wanted: dict[int, BrokerAddress] = {b: r.address for b, r in self._state.cluster.items()}
        listed = {address.id: address for address in self._state.listed}
        wanted.update(listed)
        s = self._settings
        for broker, address in wanted.items():
            for links, silence_s in ((self.fast, s.silence_s), (self.slow, s.slow_silence_s)):
                link = links.get(broker)
                where = Address(address.host, address.port)
                if link is not None and link.address != where:
                    link.close()
                    link = None
                if link is None:
                    links[broker] = Link(self._loop, where, silence_s, s.retry_first_s, s.retry_most_s)
        for broker in [broker for broker in self.fast if broker not in wanted]:
            self.fast.pop(broker).close()
            self.slow.pop(broker).close()
        for broker, link in self.fast.items():
            link.on_up = partial(self._came_up, broker)
            facts = self._state.brokers.get(broker)
            was_away = facts is not None and facts.state in (BrokerState.FENCED, BrokerState.GONE)
            if was_away and link.failing and broker in listed:
                link.retry_now()
            else:
                link.open()

    def close(self) -> None:
        """Close all links."""
        for link in [*self.fast.values(), *self.slow.values()]:
            link.close()

    def askable(self) -> dict[int, Link]:
        """Return the fast links that are connected and do not owe an answer for too long."""
        return {
            broker: link
            for broker, link in self.fast.items()
            if link.connected and link.owed_s < STALE_S and link.waiting < MOST_WAITING
        }

    def healthy(self) -> list[int]:
        """Return the brokers that answer in time."""
        return [broker for broker, link in self.askable().items() if link.owed_s < self._settings.phase_s]

    def choose_source(self) -> int:
        """Choose the broker to ask for metadata.

        The source stays the same while it answers in time. Otherwise it is the first broker that does, if
        any.
        """
        in_time = self.healthy()
        if self.source not in in_time:
            self.source = min(in_time, default=self.source)
        return self.source

    def _came_up(self, broker: int) -> None:
        """Drop the failures of an earlier connection, because they do not apply to the new connection."""
        for key in [key for key in self._state.failures if key[1] == broker]:
            del self._state.failures[key]
