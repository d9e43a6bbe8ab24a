"""The observer, which asks a cluster at intervals and makes a snapshot each time.

An observation has four phases, each of which waits at most a third of a second: metadata, lists of groups,
and log starts near commits; groups and their committed offsets; log ends of followers; high watermarks and
log ends of leaders. So commits are older than ends and younger than log starts, and the readings of a
partition belong together. A later answer is processed when it arrives, with its own time. A broker that is
late still gets requests, but nothing waits for its answers. A broker that does not answer gets no request
until a connection attempt is answered, and it affects only the age of its own cells.
"""

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from kview.config.security import PLAINTEXT, Security
from kview.model.address import Address
from kview.model.answers import Answer, unanswered
from kview.model.failures import Cause, FailureKind, Part
from kview.model.inspection import InspectionFailureKind, Question, SettingsRequest
from kview.model.snapshot import Observation, Snapshot
from kview.model.states import BrokerState
from kview.model.units import NO_BROKER, NO_PARTITION, UNKNOWN, UNKNOWN_ID
from kview.observe import apis, brokers, configs
from kview.observe.access import access
from kview.observe.asking import Ticket
from kview.observe.bootstrap import NoContact, Tried, first_contact, no_advertised, outcome, until
from kview.observe.budget import Budget
from kview.observe.clock import ClockWatch, steady_s, system_clock_ms
from kview.observe.groups.requests import GroupRequests
from kview.observe.groups.rounds import Ask, GroupRounds
from kview.observe.latency import Probes
from kview.observe.link import Link
from kview.observe.links import Links
from kview.observe.loop import Loop
from kview.observe.metadata import MetadataRequests
from kview.observe.offset_rounds import OffsetRounds
from kview.observe.offsets import OffsetRequests
from kview.observe.renewal import Renewal
from kview.observe.settings import ObserveSettings
from kview.observe.slow_lane import SlowLane
from kview.observe.state import State, failures
from kview.wire.primitives import MalformedBytes

if TYPE_CHECKING:
    from kview.observe.connectors import ConnectorReader
    from kview.observe.inspection import Inspection

__all__ = ["ObserveSettings", "Observer"]

_log = logging.getLogger(__name__)

BOOTSTRAP_SHARE = 0.6
"""Share of the time to connect. The rest is for the addresses that the cluster advertises."""
FIRST_LINKS_S = 0.5
"""Longest time the first observation waits for further brokers to accept connections."""
FIRST_SLOW_S = 0.3
"""Longest time the first observation waits for the slow lane and for Kafka Connect, so that the first view is
complete."""
REBOOTSTRAP_S = 5.0
"""Pause between attempts to find the cluster again when none of its brokers answers."""

MOST_DISMISSED = MOST_DOUBTED = 1_000
"""Limit of dismissed brokers, and of topics to read again. A person cannot name as many between two
observations."""


class Observer:
    """Observes one cluster. Raises BadUse if a certificate or key in `security` cannot be used.

    `reread` returns the security settings as their files have them now, for brokers that refuse kview later.
    Without `with_records`, no record is ever fetched. Call `connect`, `observe` and `close` from one thread.
    `dismiss`, `prefer` and `inspect` may be called from any thread.
    """

    def __init__(
        self,
        bootstrap: Sequence[Address],
        settings: ObserveSettings | None = None,
        clock_ms: Callable[[], int] = system_clock_ms,
        monotonic: Callable[[], float] = time.monotonic,
        steady_s: Callable[[], float] = steady_s,
        security: Security = PLAINTEXT,
        reread: Callable[[], Security] | None = None,
        with_records: bool = True,
    ) -> None:
        self._bootstrap = tuple(bootstrap)
        self._settings = settings or ObserveSettings()
        self._loop = Loop(clock_ms, monotonic, renewal=Renewal(access(security), reread, monotonic))
        self._state = State()
        self._metadata = MetadataRequests(self._loop, self._state)
        self._offset_requests = OffsetRequests(self._loop, self._state)
        self._group_requests = GroupRequests(self._loop, self._state)
        self._slow = SlowLane(self._loop, self._settings, self._state)
        self._connectors: ConnectorReader | None = None
        if security.connect is not None:
            from kview.observe import connectors  # with a client of HTTP, which few need

            self._connectors = connectors.ConnectorReader(self._loop, self._settings, self._state)
        self._links = Links(self._loop, self._settings, self._state, self._slow.links)
        self._with_records = with_records
        self._inspection: Inspection | None = None
        self._probes = Probes(self._loop.net.call_later)
        self._known: frozenset[str] = frozenset()
        """The capabilities of the cluster, as far as a broker has told its versions."""
        rounds, interval_s = self._settings.list_groups_rounds, self._settings.interval_s
        self._groups = GroupRounds(self._state, self._group_requests, self._links, rounds, interval_s)
        self._clock = ClockWatch(clock_ms, steady_s)
        self._sequence = 0
        self._counted = (0, 0, 0)
        self._budget = Budget(self._settings)
        self._offsets = OffsetRounds(
            self._state,
            self._offset_requests,
            self._links,
            self._budget,
            self._settings.log_start_rounds,
            self._settings.last_stable_s - 0.5 * interval_s,
        )
        self._rebootstrap_at_s = 0.0
        self._dismissed: deque[int] = deque(maxlen=MOST_DISMISSED)
        """Brokers to forget in the next observation. A deque, because its `append` is safe from any
        thread."""
        self._doubted: deque[str] = deque(maxlen=MOST_DOUBTED)
        """Topics whose settings are read again in the next observation."""
        self._open = False

    def connect(self, deadline_s: float = 10.0) -> None:
        """Find the cluster and connect to at least one of its brokers.

        Raises ClusterUnreachable within `deadline_s`.
        """
        self._loop.start()
        self._open = True
        try:
            self._loop.run(partial(self._connect, deadline_s))
        except NoContact as none:
            self.close()
            raise none.error(self._loop.access.security) from none
        except BaseException:
            self.close()
            raise

    def observe(self) -> Snapshot:
        """Make one observation.

        What was not answered stays at its older value and age. Only a bug raises an exception.
        """
        snapshot = self._loop.run(self._observe)
        assert isinstance(snapshot, Snapshot)
        return snapshot

    def close(self) -> None:
        """Close all connections. Further calls do nothing."""
        if self._open:
            self._open = False
            self._loop.run(self._close_links)
            self._loop.stop()

    def dismiss(self, broker: int) -> None:
        """Forget a broker that has left, from the next observation on.

        A broker that is still listed stays.
        """
        self._dismissed.append(broker)

    def prefer(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Read these (topic, partition) pairs in every observation, and their topics' settings every few
        seconds.

        They are read even if there are too many partitions to read all.
        """
        pairs = tuple(partitions)
        self._slow.in_sight = frozenset(topic for topic, _ in pairs)
        self._budget.prefer(pair for pair in pairs if pair[1] != NO_PARTITION)

    def read_again(self, topic: str) -> None:
        """Read the few settings of a topic that figures depend on again, in the next observation."""
        self._doubted.append(topic)

    def inspect(self, question: Question[Any], on_answer: Callable[[Answer], None]) -> Ticket:
        """Begin to answer a question, and call `on_answer` on the observer's own thread.

        A caller that no longer wants the answer cancels the ticket. Nothing is called once the observer is
        closed.
        """
        ticket = Ticket()
        if isinstance(question, SettingsRequest) and question.topic:
            self.read_again(question.topic)  # so that no screen still shows an older value

        from kview.observe.inspection import Inspection  # the first data does not wait for it

        def begin() -> None:
            if self._inspection is None:
                self._inspection = Inspection(
                    self._loop, self._settings, self._state, self._links, self._with_records
                )
            future = self._loop.spawn(partial(self._inspection.answer, question, ticket))
            future.add_callback(on_answer)

        try:
            self._loop.net.call_soon_threadsafe(begin)
        except RuntimeError:  # the loop has been stopped
            on_answer(unanswered(question, InspectionFailureKind.NOT_CONNECTED))
        return ticket

    async def _connect(self, deadline_s: float) -> None:
        began_s = self._loop.monotonic()
        answer, server = await first_contact(
            self._loop, self._bootstrap, self._settings, began_s + BOOTSTRAP_SHARE * deadline_s
        )
        try:
            self._state.take_metadata(answer)
        except MalformedBytes as error:
            raise NoContact([Tried(server, FailureKind.MALFORMED)]) from error
        self._links.open()
        links = list(self._links.fast.values())
        await until(
            self._loop,
            lambda: any(link.connected for link in links) or all(link.failing for link in links),
            began_s + deadline_s,
        )
        if not any(link.connected for link in links):
            raise no_advertised(server, list(map(outcome, links)))
        await until(
            self._loop,
            lambda: not any(link.connecting for link in links),
            min(self._loop.monotonic() + FIRST_LINKS_S, began_s + deadline_s),
        )
        self._links.choose_source()
        self._update_brokers()
        self._step_slow_lane()

    async def _close_links(self) -> None:
        if self._inspection is not None:
            self._inspection.close()
        self._links.close()

    async def _observe(self) -> Snapshot:
        if self._loop.bugs:
            bugs, self._loop.bugs[:] = list(self._loop.bugs), []
            raise bugs[0]
        while self._dismissed:
            self._dismiss(self._dismissed.popleft())
        while self._doubted:
            configs.doubt(self._state.settings, self._doubted.popleft())
        self._watch_clock()
        began_ms = self._loop.clock_ms()
        requests, state = self._group_requests, self._state
        requests.ends_asked = False
        late, requests.late = requests.late, []
        for take in late:
            take()
        self._links.open()
        await self._ask_metadata_and_groups()
        self._links.open()
        self._update_brokers()
        details = self._groups.details(self._links.askable())
        await self._phase(details, self._patience_s(self._settings.phase_s))
        requests.ends_asked = True
        await self._ask_offsets(began_ms)
        self._probes.plan(self._links.fast, self._settings.interval_s)
        began_ms = self._watch_clock(began_ms)
        self._update_brokers()
        self._groups.update(self._loop.clock_ms())
        state.points.expire(self._loop.clock_ms(), state.layout)
        self._step_slow_lane()
        rest = self._connectors
        if rest is not None:
            rest.step()
        if not self._sequence:
            await until(
                self._loop,
                lambda: self._slow.idle and (rest is None or rest.idle),
                self._loop.monotonic() + FIRST_SLOW_S,
            )
        snapshot = self._snapshot(began_ms)
        self._budget.lags_first = False
        self._sequence += 1
        return snapshot

    def _watch_clock(self, began_ms: int = UNKNOWN) -> int:
        """If the clock was set, move all times to the new clock, and start to count observations again.

        So nothing is calculated from times of both clocks. Return `began_ms` on the new clock.
        """
        jump = self._clock.jump()
        if jump is None:
            return began_ms
        _log.warning("the clock was set by %d ms", jump.by_ms)
        self._group_requests.late.clear()
        self._offsets.clock_set()
        self._state.clock_set(jump)
        for link in (*self._links.fast.values(), *self._slow.links.values()):
            link.clock_set(jump)
        self._sequence = 0
        return jump.time(began_ms)

    async def _phase(self, asks: Sequence[tuple[Link, Ask]], wait_s: float) -> None:
        """Send all requests at once, and wait for those that are not already late."""
        waited = []
        for link, ask in asks:
            prompt = link.owed_s < wait_s
            future = self._loop.spawn(ask)
            if prompt:
                waited.append(future)
        await self._loop.settle(waited, wait_s)

    async def _ask_metadata_and_groups(self) -> None:
        asks: list[tuple[Link, Ask]] = []
        source = self._links.choose_source()
        askable = self._links.askable()
        if source in askable:
            self._state.failures.pop((Part.BOOTSTRAP, NO_BROKER), None)
            link = askable[source]
            asks.append((link, partial(self._metadata.ask_source, link, source)))
            witness = self._links.witness()
            if witness is not None:
                link = askable[witness]
                asks.append((link, partial(self._metadata.second_opinion, link, witness)))
        else:
            self._find_cluster_again()
        asks += self._groups.lists(askable, self._sequence, self._loop.clock_ms())
        asks += self._offsets.early_log_starts(askable, self._sequence)
        await self._phase(asks, self._settings.phase_s)
        newer = self._metadata.newer_source(source)
        if newer is not None:
            self._links.source = newer
        self._groups.settle(askable, self._loop.clock_ms())

    def _step_slow_lane(self) -> None:
        healthy, askable = self._links.healthy(), self._links.askable()
        self._slow.step(healthy, askable, self._links.source, self._budget.is_brief(self._state.layout))

    def _find_cluster_again(self) -> None:
        """Ask the bootstrap servers again, because no known broker answers and addresses may have changed."""
        now_s = self._loop.monotonic()
        if now_s < self._rebootstrap_at_s or any(link.connected for link in self._links.fast.values()):
            return
        self._rebootstrap_at_s = now_s + REBOOTSTRAP_S

        async def find() -> None:
            try:
                answer, _ = await first_contact(
                    self._loop, self._bootstrap, self._settings, now_s + REBOOTSTRAP_S
                )
                self._state.take_metadata(answer, older_too=True)
            except NoContact as none:
                if not any(link.connected for link in self._links.fast.values()):
                    self._state.failed(Part.BOOTSTRAP, NO_BROKER, Cause(none.tried[0].kind))
            except MalformedBytes:
                self._state.failed(Part.BOOTSTRAP, NO_BROKER, Cause(FailureKind.MALFORMED))
            else:
                self._state.succeeded(Part.BOOTSTRAP, NO_BROKER, self._loop.clock_ms())

        self._loop.spawn(find)

    async def _ask_offsets(self, began_ms: int) -> None:
        shares, layout = self._offsets.shares(self._sequence), self._state.layout
        if not shares[0]:
            return
        matters = self._offsets.starts_near_commits(self._sequence)
        await self._phase(self._offsets.followers(shares), self._settings.offsets_phase_s)
        if self._state.still(layout):  # or metadata that came late have other partitions: next time
            within_s = self._patience_s(self._settings.offsets_phase_s)
            await self._phase(self._offsets.leaders(shares, matters, began_ms), within_s)

    def _patience_s(self, usual_s: float) -> float:
        return self._budget.patience_s(self._state.layout, len(self._state.groups), usual_s)

    def _update_brokers(self) -> None:
        """Update the facts about brokers. Those that have just come back are retried at once and often."""
        state = self._state
        health = {broker: link.health() for broker, link in self._links.fast.items()}
        came_back = brokers.update(
            state.brokers, state.listed, state.cluster, health, state.layout.led_by, self._loop.clock_ms()
        )
        offers = [link.offered for link in self._links.fast.values()]
        state.see_offered(offers, self._loop.clock_ms())
        if came_back:
            self._links.expect(came_back, brokers.GRACE_MS / 1000)

    def _dismiss(self, broker: int) -> None:
        facts = self._state.brokers.get(broker)
        if facts is not None and facts.state == BrokerState.GONE:
            del self._state.brokers[broker]

    def _snapshot(self, began_ms: int) -> Snapshot:
        state, meter = self._state, self._loop.meter
        counted = (meter.requests, meter.bytes_sent, meter.bytes_received)
        cost = [now - before for now, before in zip(counted, self._counted, strict=True)]
        self._counted = counted
        known = self._capabilities()
        quorum = state.quorum
        controller_id = UNKNOWN_ID
        if quorum is not None:
            controller_id = quorum.controller_id
        elif state.metadata is not None and "metadata_controller" in known:
            controller_id = state.metadata.controller_id
        silent = {
            broker: (link.answered_ms, link.cause)
            for broker, link in self._links.fast.items()
            if link.failing
        }
        observation = Observation(
            sequence=self._sequence,
            began_ms=began_ms,
            ended_ms=self._loop.clock_ms(),
            cluster_id=state.metadata.cluster_id if state.metadata else "",
            controller_id=controller_id,
            controller_epoch=quorum.controller_epoch if quorum else UNKNOWN_ID,
            quorum_received_ms=quorum.received_ms if quorum else UNKNOWN,
            apis_differ_since_ms=state.apis_differ_since_ms,
            connectors_received_ms=state.received_ms.get((Part.CONNECTORS, NO_BROKER), UNKNOWN),
            asked=self._asked(),
            requests=cost[0],
            bytes_sent=cost[1],
            bytes_received=cost[2],
            failures=failures(state, silent, self._groups.unheard),
            capabilities=known,
        )
        return state.snapshot(observation, self._offset_requests.debugging is not False)

    def _asked(self) -> tuple[Part, ...]:
        """Return the parts of the cluster that have been answered at least once."""
        return tuple(sorted({part for part, _ in self._state.received_ms}))

    def _capabilities(self) -> frozenset[str]:
        """Return what the cluster can answer, empty until a broker has told its versions."""
        link = self._links.fast.get(self._links.source)
        if link is not None and link.versions:
            known = apis.capabilities(link.versions)
            if self._offset_requests.debugging is not False:
                known |= {"debugging_replica"}
            self._known = known
        return self._known
