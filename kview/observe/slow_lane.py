"""The slow lane: requests that take a broker long, sent on separate connections.

A broker forwards these requests to the controller or has to work for them. There is at most one request in
flight per broker, and no observation waits for the answer, which the next observation uses. So a missing
controller holds back nothing that a broker can answer by itself.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from kview.model.failures import Cause, FailureKind, Part
from kview.model.units import NO_BROKER
from kview.observe import apis, configs, elr, log_dirs, quorum, reassignments
from kview.observe.brokers import saw_quorum
from kview.observe.causes import LinkError, Refused
from kview.observe.layout import Layout, Rows
from kview.observe.link import Link
from kview.observe.loop import Loop
from kview.observe.settings import ObserveSettings
from kview.observe.state import State
from kview.observe.time_points import AGES_S
from kview.wire import list_offsets

REFUSED_PAUSE_S = 60.0
"""Pause before a refused part (for example for lack of a permission) is asked for again."""
FAILED_PAUSE_S = 1.0
"""Pause after a request that got no answer."""
OVERDUE_S = 3.0
"""A request in flight for this long is reported as failed, while its answer is still accepted."""
POINTS_A_REQUEST = 2_000
"""Partitions per request. A look-up by time takes a broker about 10 µs per partition."""
FORWARDED = (Part.QUORUM, Part.REASSIGNMENTS)


@dataclass(slots=True)
class _Running:
    part: Part
    since_s: float
    overdue: bool = False


@dataclass(slots=True)
class SlowLane:
    """Decides once per observation what to ask which broker, and stores the answers as they arrive."""

    loop: Loop
    settings: ObserveSettings
    state: State
    links: dict[int, Link] = field(default_factory=dict)
    _running: dict[int, _Running] = field(default_factory=dict)
    """Broker → its request in flight."""
    _due_s: dict[tuple[Part, int], float] = field(default_factory=dict)
    """(Part, broker) → the earliest time (monotonic) to ask for the part again."""
    _healthy: Sequence[int] = ()
    _source: int = NO_BROKER

    @property
    def idle(self) -> bool:
        """Whether no request is in flight."""
        return not self._running and not any(
            self.links[b].connecting for b in self._healthy if b in self.links
        )

    def step(self, healthy: Sequence[int], source: int) -> None:
        """Send the requests that are due to `healthy` brokers.

        `source` is the broker that is asked for Metadata.
        """
        self._mark_overdue(self.loop.monotonic())
        self._healthy, self._source = healthy, source
        for broker in healthy:
            if broker in self.links:
                self.links[broker].on_up = self._pump
                self.links[broker].open()
        self._pump()

    def _pump(self) -> None:
        """Send a due request to every free broker. Also called when a broker becomes free."""
        anyone = [self._source, *(b for b in self._healthy if b != self._source)]
        self._anyone(Part.QUORUM, anyone, apis.DESCRIBE_QUORUM, self._quorum)
        self._anyone(Part.CONFIGS, anyone, apis.DESCRIBE_CONFIGS, self._topic_configs)
        self._anyone(Part.REASSIGNMENTS, anyone, apis.LIST_PARTITION_REASSIGNMENTS, self._reassignments)
        self._anyone(Part.ELR, anyone, apis.DESCRIBE_TOPIC_PARTITIONS, self._elr)
        for broker in self._healthy:
            self._each(
                Part.SESSION_TIMEOUT,
                broker,
                apis.DESCRIBE_CONFIGS,
                self.settings.configs_s,
                self._session_timeout,
            )
            every_s = self.settings.log_dirs_s
            self._each(Part.LOG_DIRS, broker, apis.DESCRIBE_LOG_DIRS, every_s, self._log_dirs)
        self._wanted_points()

    def _mark_overdue(self, now_s: float) -> None:
        for broker, running in self._running.items():
            if not running.overdue and now_s - running.since_s > OVERDUE_S:
                running.overdue = True
                reported = self._reported_broker(running.part, broker)
                self.state.failed(running.part, reported, Cause(FailureKind.OVERDUE))

    def _free(self, broker: int) -> bool:
        link = self.links.get(broker)
        return link is not None and link.connected and broker not in self._running

    def _reported_broker(self, part: Part, broker: int) -> int:
        """Return the broker to name in a failure, or NO_BROKER for parts that any broker can answer."""
        return NO_BROKER if part in (*FORWARDED, Part.CONFIGS, Part.ELR) else broker

    def _start(self, part: Part, broker: int, ask: Callable[[Link, int], Awaitable[None]]) -> None:
        """Ask `broker`, which must be free, for `part`."""
        self._running[broker] = _Running(part, self.loop.monotonic())
        reported = self._reported_broker(part, broker)

        async def run() -> None:
            try:
                await ask(self.links[broker], broker)
            except LinkError as error:
                self.state.failed(part, reported, error.cause)
                self._due_s[part, reported] = self.loop.monotonic() + FAILED_PAUSE_S
            except Refused as error:
                self.state.failed(part, reported, error.cause)
                self._due_s[part, reported] = self.loop.monotonic() + REFUSED_PAUSE_S
            else:
                self.state.succeeded(part, reported, self.loop.clock_ms())
            finally:
                self._running.pop(broker, None)
            self._pump()

        self.loop.spawn(run)

    def _anyone(
        self, part: Part, brokers: Iterable[int], api: int, ask: Callable[[Link, int], Awaitable[None]]
    ) -> None:
        """Ask the first free broker for `part` when it is due, unless a request for it is in flight."""
        now_s = self.loop.monotonic()
        if now_s < self._due_s.get((part, NO_BROKER), 0.0):
            return
        if any(running.part == part for running in self._running.values()) or not self._wanted(part):
            return
        for broker in brokers:
            if self._free(broker) and api in self.links[broker].versions:
                self._due_s[part, NO_BROKER] = now_s + self._pause_s(part)
                self._start(part, broker, ask)
                return

    def _wanted(self, part: Part) -> bool:
        if part == Part.CONFIGS:
            return bool(self._due_topics())
        if part == Part.ELR:
            return bool(elr.wanting(self.state.layout, self.state.min_isr()).any())
        return True

    def _pause_s(self, part: Part) -> float:
        """Return the pause in seconds before `part` is asked for again.

        This is 0 for the settings of new topics, and almost `quorum_rounds` observations for other parts.
        """
        return 0.0 if part == Part.CONFIGS else (self.settings.quorum_rounds - 0.5) * self.settings.interval_s

    def _each(
        self,
        part: Part,
        broker: int,
        api: int,
        every_s: float,
        ask: Callable[[Link, int], Awaitable[None]],
    ) -> None:
        """Ask `broker` for `part` if it is free and the last request is at least `every_s` ago."""
        now_s = self.loop.monotonic()
        due = now_s >= self._due_s.get((part, broker), 0.0)
        if due and self._free(broker) and api in self.links[broker].versions:
            self._due_s[part, broker] = now_s + every_s
            self._start(part, broker, ask)

    async def _quorum(self, link: Link, broker: int) -> None:
        answer, at_ms = await link.ask(quorum.request())
        seen = quorum.seen(answer, at_ms)
        self.state.quorum = seen
        saw_quorum(self.state.brokers, seen.nodes)

    async def _reassignments(self, link: Link, broker: int) -> None:
        answer, _ = await link.ask(reassignments.request())
        self.state.reassignments = reassignments.table(answer)

    async def _session_timeout(self, link: Link, broker: int) -> None:
        answer, _ = await link.ask(configs.broker_request(broker))
        facts = self.state.brokers.get(broker)
        if facts is not None:
            facts.session_timeout_ms = configs.session_timeout_ms(answer)

    async def _log_dirs(self, link: Link, broker: int) -> None:
        answer, _ = await link.ask(log_dirs.request())
        facts = self.state.brokers.get(broker)
        total = log_dirs.read_sizes(self.state.readings, self.state.layout, broker, answer)
        if facts is not None:
            facts.disk_bytes = total

    def _due_topics(self) -> list[str]:
        oldest_ms = self.loop.clock_ms() - int(self.settings.configs_s * 1000)
        return configs.due_topics(self.state.layout, self.state.settings, oldest_ms)

    async def _topic_configs(self, link: Link, broker: int) -> None:
        names, layout = self._due_topics()[: configs.TOPICS_A_REQUEST], self.state.layout
        answer, at_ms = await link.ask(configs.topics_request(names))
        answered = configs.topic_settings(answer)
        for name, settings in answered.items():
            row, _ = layout.first[name]
            self.state.settings[name] = configs.TopicSettings(layout.topic_id[row], settings, at_ms)
        if not answered.keys() >= set(names):
            raise Refused(Cause(FailureKind.INCOMPLETE))

    async def _elr(self, link: Link, broker: int) -> None:
        layout = self.state.layout
        topics = sorted(set(layout.topic[elr.wanting(layout, self.state.min_isr())].tolist()))
        found: dict[tuple[str, int], tuple[int, ...]] = {}
        cursor = None
        for _ in range(elr.MOST_PAGES):
            answer, _ = await link.ask(elr.request(topics, cursor))
            found.update(elr.answered(answer))
            cursor = answer.next_cursor
            if cursor is None:
                break
        self.state.elr = found

    def _wanted_points(self) -> None:
        """Ask where the logs that groups read ended some time ago, once per partition."""
        layout, points = self.state.layout, self.state.points
        read = rows_read(layout, self.state)
        due = points.due(layout, read)
        if not len(due):
            return
        for broker in self._healthy:
            rows = due[layout.leader[due] == broker][:POINTS_A_REQUEST]
            if len(rows) and self._free(broker):
                points.mark(layout, rows)
                self._start(Part.TIME_POINTS, broker, self._points_of(layout, rows))

    def _points_of(self, layout: Layout, rows: Rows) -> Callable[[Link, int], Awaitable[None]]:
        async def ask(link: Link, broker: int) -> None:
            version = list_offsets.best_version(*link.versions[list_offsets.API_KEY])
            for age_s in AGES_S:
                timestamp_ms = self.loop.clock_ms() - age_s * 1000
                # Ask as the debugging replica, so that the log's end counts, not the high watermark, as in
                # later readings.
                request = list_offsets.request(
                    version, layout.by_topic(rows), timestamp_ms, list_offsets.DEBUGGING_REPLICA
                )
                answer, at_ms = await link.ask(request)
                if self.state.still(layout):
                    self.state.points.answered(
                        self.state.layout, self.state.readings, timestamp_ms, answer, at_ms
                    )

        return ask


def rows_read(layout: Layout, state: State) -> Rows:
    """Return the partition rows for which groups have committed offsets, ascending."""
    offsets = state.group_tables.offsets
    if not len(offsets):
        return np.empty(0, np.intp)
    topics = set(offsets.topic.tolist())
    rows = [layout.rows_of(topic, np.unique(offsets.partition[offsets.topic == topic])) for topic in topics]
    found = np.concatenate(rows)
    return np.unique(found[found >= 0])
