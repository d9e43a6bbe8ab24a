"""The connections to all brokers on both lanes: which exist, which can be asked, which serves metadata."""

from collections.abc import Iterable, Sequence
from functools import partial

from kview.model.address import Address
from kview.model.units import NO_BROKER
from kview.observe import sources
from kview.observe.brokers import GRACE_MS
from kview.observe.link import MOST_WAITING, STALE_S, Link
from kview.observe.loop import Loop
from kview.observe.settings import ObserveSettings
from kview.observe.state import State
from kview.wire.metadata import BrokerAddress


class Links:
    """The links of both lanes, `fast` and `slow`, by broker.

    `source` is the broker that is asked for metadata.
    """

    def __init__(self, loop: Loop, settings: ObserveSettings, state: State, slow: dict[int, Link]) -> None:
        self.fast: dict[int, Link] = {}
        self.slow = slow
        self.source = NO_BROKER
        self._witness = NO_BROKER
        """The last broker whose metadata were compared. Each gets its turn."""
        self._witness_at_s = 0.0
        self._loop = loop
        self._settings = settings
        self._state = state

    def open(self) -> None:
        """Open a link to every broker that is listed or registered."""
        wanted: dict[int, BrokerAddress] = {b: r.address for b, r in self._state.cluster.items()}
        wanted.update({address.id: address for address in self._state.listed})
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
            link.open()

    def expect(self, brokers: Iterable[int], within_s: float) -> None:
        """Retry these brokers at once and often, on both lanes, because they are coming back."""
        self.open()
        for broker in brokers:
            self.fast[broker].expect(within_s)
            self.slow[broker].expect(within_s)

    def close(self) -> None:
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

        The source stays the same while it answers in time and is not cut off from the controllers. Otherwise
        it is the first broker that does and is not, if any.
        """
        choice = self._fit()
        if self.source not in choice:
            self.source = min(choice, default=self.source)
        return self.source

    def _fit(self) -> Sequence[int]:
        doubted, now_s = self._state.doubted_until_s, self._loop.monotonic()
        for broker in [broker for broker, until_s in doubted.items() if until_s < now_s]:
            del doubted[broker]
        return sources.fit(self.healthy(), self._state.quorum, doubted)

    def witness(self) -> int | None:
        """Return the broker whose metadata to compare with the source's, None if there is no need now.

        There is none while the quorum tells which brokers are cut off.
        """
        now_s = self._loop.monotonic()
        others = [broker for broker in self._fit() if broker != self.source]
        quorum_tells = sources.told(self._state.quorum, self.fast)
        if quorum_tells or not others or now_s < self._witness_at_s:
            return None
        self._witness_at_s = now_s + sources.WITNESS_S
        self._witness = min((b for b in others if b > self._witness), default=others[0])
        return self._witness

    def _came_up(self, broker: int) -> None:
        """Drop the failures of an earlier connection, because they do not apply to the new connection.

        If every other broker fails to answer, all were out of reach, and what was in the way is gone.
        """
        for key in [key for key in self._state.failures if key[1] == broker]:
            del self._state.failures[key]
        others = [other for other in self.fast if other != broker]
        if all(self.fast[other].failing for other in others):
            self.expect(others, GRACE_MS / 1000)
