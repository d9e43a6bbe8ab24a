"""The observer, which asks a cluster at intervals and makes a snapshot each time.

An observation has four phases, each of which waits at most a third of a second: metadata and lists of groups;
groups and their committed offsets; log ends of followers; high watermarks and log ends of leaders. So commits
are older than ends, and the readings of a partition belong together. A later answer is processed when it
arrives, with its own time. A broker that is late still gets requests, but nothing waits for its answers. A
broker that does not answer gets no request until a connection attempt is answered, and it affects only the
age of its own cells.
"""

import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Sequence
from functools import partial
from typing import Any

from kview.model.address import Address
from kview.model.failures import NO_FAILURE, Cause, FailureKind, Part, refused
from kview.model.snapshot import Observation, Snapshot
from kview.model.states import BrokerState, GroupType
from kview.model.units import NO_BROKER, UNKNOWN, UNKNOWN_ID
from kview.observe import apis, brokers, groups
from kview.observe.bootstrap import NoContact, first_contact, no_advertised, until, why_not
from kview.observe.brokers import Health
from kview.observe.budget import Budget
from kview.observe.fast_lane import FastLane
from kview.observe.link import Link
from kview.observe.links import Links
from kview.observe.loop import Loop
from kview.observe.settings import ObserveSettings
from kview.observe.slow_lane import SlowLane
from kview.observe.state import State, failures

__all__ = ["ObserveSettings", "Observer"]

BOOTSTRAP_SHARE = 0.6
"""Share of the time to connect. The rest is for the addresses that the cluster advertises."""
FIRST_LINKS_S = 0.5
"""Longest time the first observation waits for further brokers to accept connections."""
FIRST_SLOW_S = 0.3
"""Longest time the first observation waits for the slow lane, so that the first view is complete."""
REBOOTSTRAP_S = 5.0
"""Pause between attempts to find the cluster again when none of its brokers answers."""

MOST_DISMISSED = 1_000
"""Limit of dismissed brokers, which is more than a person can dismiss between two observations."""

Ask = Callable[[], Coroutine[Any, Any, None]]


def system_clock_ms() -> int:
    """Return the current time in epoch milliseconds."""
    return time.time_ns() // 1_000_000


class Observer:
    """Observes one cluster.

    Call `connect`, `observe` and `close` from one thread. `dismiss` and `prefer` may be called from any
    thread.
    """

    def __init__(
        self,
        bootstrap: Sequence[Address],
        settings: ObserveSettings | None = None,
        clock_ms: Callable[[], int] = system_clock_ms,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._bootstrap = tuple(bootstrap)
        self._settings = settings or ObserveSettings()
        self._loop = Loop(clock_ms, monotonic)
        self._state = State()
        self._fast = FastLane(self._loop, self._state)
        self._slow = SlowLane(self._loop, self._settings, self._state)
        self._links = Links(self._loop, self._settings, self._state, self._slow.links)
        self._sequence = 0
        self._counted = (0, 0, 0)
        self._budget = Budget(self._settings)
        self._rebootstrap_at_s = 0.0
        self._dismissed: deque[int] = deque(maxlen=MOST_DISMISSED)
        """Brokers to forget in the next observation. A deque, because its `append` is safe from any
        thread."""
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
            raise none.error() from none
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
        """Read these (topic, partition) pairs in every observation.

        They are read even if there are too many partitions to read all.
        """
        self._budget.prefer(partitions)

    async def _connect(self, deadline_s: float) -> None:
        began_s = self._loop.monotonic()
        answer, server = await first_contact(
            self._loop, self._bootstrap, self._settings, began_s + BOOTSTRAP_SHARE * deadline_s
        )
        self._state.take_metadata(answer)
        self._links.open()
        links = list(self._links.fast.values())
        await until(
            self._loop,
            lambda: any(link.connected for link in links) or all(link.failing for link in links),
            began_s + deadline_s,
        )
        if not any(link.connected for link in links):
            raise no_advertised(server, [(link.address, why_not(link)) for link in links])
        await until(
            self._loop,
            lambda: not any(link.connecting for link in links),
            min(self._loop.monotonic() + FIRST_LINKS_S, began_s + deadline_s),
        )
        self._links.choose_source()
        self._update_brokers()
        self._slow.step(self._links.healthy(), self._links.source)

    async def _close_links(self) -> None:
        self._links.close()

    async def _observe(self) -> Snapshot:
        if self._loop.bugs:
            bugs, self._loop.bugs[:] = list(self._loop.bugs), []
            raise bugs[0]
        while self._dismissed:
            self._dismiss(self._dismissed.popleft())
        began_ms = self._loop.clock_ms()
        fast, state = self._fast, self._state
        fast.ends_asked = False
        late, fast.late = fast.late, []
        for take in late:
            take()
        self._links.open()
        await self._ask_metadata_and_groups()
        self._links.open()
        await self._ask_groups()
        fast.ends_asked = True
        await self._ask_offsets()
        self._update_brokers()
        self._update_groups()
        state.points.expire(self._loop.clock_ms(), state.layout)
        self._slow.step(self._links.healthy(), self._links.source)
        if not self._sequence:
            await until(self._loop, lambda: self._slow.idle, self._loop.monotonic() + FIRST_SLOW_S)
        snapshot = self._snapshot(began_ms)
        self._sequence += 1
        return snapshot

    async def _phase(self, asks: Sequence[tuple[Link, Ask]], wait_s: float) -> None:
        """Send all requests at once, and wait for those that are not already late."""
        waited = []
        for link, ask in asks:
            prompt = link.owed_s < self._settings.phase_s
            future = self._loop.spawn(ask)
            if prompt:
                waited.append(future)
        await self._loop.settle(waited, wait_s)

    async def _ask_metadata_and_groups(self) -> None:
        asks: list[tuple[Link, Ask]] = []
        source = self._links.choose_source()
        askable = self._links.askable()
        if source in askable:
            link = askable[source]
            asks.append((link, partial(self._fast.metadata, link, source)))
        else:
            self._find_cluster_again()
        listing = self._sequence % self._settings.list_groups_rounds == 0
        if listing or self._fast.moved or any(g.cause.kind for g in self._state.groups.values()):
            self._fast.moved = False
            asks += [
                (link, partial(self._fast.list_groups, link, b))
                for b, link in askable.items()
                if apis.LIST_GROUPS in link.versions
            ]
        await self._phase(asks, self._settings.phase_s)
        groups.forget(self._state.groups, self._fast.group_lists, (a.id for a in self._state.listed))

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
            except NoContact as none:
                self._state.failed(Part.BOOTSTRAP, NO_BROKER, Cause(none.tried[0][1]))
            else:
                self._state.take_metadata(answer)
                self._state.succeeded(Part.BOOTSTRAP, NO_BROKER, self._loop.clock_ms())

        self._loop.spawn(find)

    async def _ask_groups(self) -> None:
        askable = self._links.askable()
        asks: list[tuple[Link, Ask]] = []
        for broker, link in askable.items():
            own = [g for g in self._state.groups.values() if g.coordinator == broker]
            commit = [g.group for g in own if g.type != GroupType.SHARE]
            classic = [g.group for g in own if g.type == GroupType.CLASSIC]
            if commit:
                asks.append((link, partial(self._fast.commits, link, broker, commit)))
            if classic:
                asks.append((link, partial(self._fast.describe_groups, link, broker, classic)))
        await self._phase(asks, self._settings.phase_s)

    async def _ask_offsets(self) -> None:
        state, settings = self._state, self._settings
        failing = [broker for broker, link in self._links.fast.items() if link.failing]
        parts, whole = self._budget.shares(state.layout, self._sequence, failing)
        if not parts:
            return
        log_start = self._sequence % settings.log_start_rounds == 0
        if self._fast.debugging is not False:
            follow: list[tuple[Link, Ask]] = [
                (link, partial(self._fast.followers, link, broker, parts[broker], whole))
                for broker, link in self._links.askable().items()
                if broker in parts and len(parts[broker].follows)
            ]
            await self._phase(follow, settings.offsets_phase_s)
        unread = state.readings.log_start == UNKNOWN
        lead: list[tuple[Link, Ask]] = []
        for broker, link in self._links.askable().items():
            share = parts.get(broker)
            if share is not None and len(share.leads):
                starts = log_start or bool(unread[share.leads].any())
                lead.append((link, partial(self._fast.leaders, link, broker, share, whole, starts)))
        await self._phase(lead, settings.offsets_phase_s)

    def _update_brokers(self) -> None:
        state = self._state
        health = {
            b: Health(k.failing_since_ms, k.answered_ms, k.cause.kind) for b, k in self._links.fast.items()
        }
        brokers.update(state.brokers, state.listed, state.cluster, health, self._loop.clock_ms())

    def _update_groups(self) -> None:
        for known in self._state.groups.values():
            link = self._links.fast.get(known.coordinator)
            if link is None:
                known.cause = Cause(FailureKind.COORDINATOR_GONE)
            elif link.failing:
                known.cause = Cause(FailureKind.COORDINATOR_SILENT)
            else:
                known.cause = refused(known.refused) if known.refused else NO_FAILURE
        self._state.group_tables.update(self._state.groups)

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
        elif state.metadata is not None and known and "quorum" not in known:
            controller_id = state.metadata.controller_id  # with ZooKeeper, this is the real one
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
            asked=self._asked(),
            requests=cost[0],
            bytes_sent=cost[1],
            bytes_received=cost[2],
            failures=failures(state, silent),
            capabilities=known,
        )
        return state.snapshot(observation, self._fast.debugging is not False)

    def _asked(self) -> tuple[Part, ...]:
        """Return the parts of the cluster that have been answered at least once."""
        return tuple(sorted({part for part, _ in self._state.received_ms}))

    def _capabilities(self) -> frozenset[str]:
        link = self._links.fast.get(self._links.source)
        versions = link.versions if link else {}
        known = apis.capabilities(versions)
        return known | {"debugging_replica"} if self._fast.debugging is not False else known
