"""The slow lane: requests that take a broker long, sent on separate connections.

A broker forwards these requests to the controller or has to work for them. There is at most one request in
flight per broker, and no observation waits for the answer, which the next observation uses. So a missing
controller holds back nothing that a broker can answer by itself.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence

import numpy as np
from msgspec import Struct, field

from kview.model.failures import Cause, FailureKind, Part, refused
from kview.model.snapshot import IdMatrix, Reassignments, Strings
from kview.model.states import GroupType
from kview.model.units import NO_BROKER, UNKNOWN
from kview.observe import apis, configs, elr, log_dirs, quorum, reassignments, topics, transactions
from kview.observe.brokers import saw_quorum
from kview.observe.causes import LinkError, Refused
from kview.observe.groups import facts
from kview.observe.groups.requests import batches_of
from kview.observe.layout import Layout, Rows
from kview.observe.link import Link
from kview.observe.loop import Loop
from kview.observe.offsets import checked, ended_at
from kview.observe.settings import ObserveSettings
from kview.observe.state import State
from kview.observe.time_points import AGES_S
from kview.wire import list_offsets

REFUSED_PAUSE_S = 60.0
"""Pause before a part that this cluster will go on refusing is asked for again."""
LASTING = frozenset({29, 30, 31, 35, 58})
"""Kafka's error numbers that stay the same until somebody changes permissions or versions."""
FAILED_PAUSE_S = 1.0
"""Pause after a request that got no answer."""
OVERDUE_S = 3.0
"""A request in flight for this long is reported as failed, while its answer is still accepted."""
QUORUM_OVERDUE_S = 0.5
"""The same for the quorum, which answers within a few ms: a broker that cannot reach the controller says
nothing at all. This is half an interval, because the request of one observation must count as unanswered in
the next one, although observations are not evenly spaced on a busy machine."""
MOST_QUORUM_REQUESTS = 2
"""Limit of overdue requests for the quorum. Without a controller, each one keeps its broker's lane busy."""
POINTS_A_REQUEST = 2_000
"""Partitions per request. A look-up by time takes a broker about 10 µs per partition."""
NOT_CONTROLLER = 41
"""Kafka's error number with which a broker answers that it is not the controller, or not yet or no longer."""
NOT_CONTROLLER_FOR_S, NOT_CONTROLLER_INTERVALS = 3.0, 2.5
"""How long that does not count as a failure, and the same in intervals: a controller is being elected, and
the next metadata says which broker it is."""
HELD_MS = 3_000
"""A last stable offset that did not move for so long is asked about. Most transactions are shorter."""
FORWARDED = (Part.QUORUM, Part.REASSIGNMENTS)


class _Running(Struct):
    part: Part
    since_s: float
    overdue: bool = False


class SlowLane(Struct):
    """Decides once per observation what to ask which broker, and stores the answers as they arrive."""

    loop: Loop
    settings: ObserveSettings
    state: State
    links: dict[int, Link] = field(default_factory=dict)
    in_sight: frozenset[str] = frozenset()
    """The topics on the screen. Any thread may set it."""
    _running: dict[int, _Running] = field(default_factory=dict)
    """Broker → its request in flight."""
    _due_s: dict[tuple[Part, int], float] = field(default_factory=dict)
    """(Part, broker) → the earliest time (monotonic) to ask for the part again."""
    _no_controller_s: float | None = None
    """Since when (monotonic) the reassignments have been refused because a broker was not the controller."""
    _listed: tuple[int, Layout, Reassignments] | None = None
    """The last list of reassignments, if it is not used yet: when it was received, and what metadata said
    when it was asked for."""
    _healthy: Sequence[int] = ()
    _answering: frozenset[int] = frozenset()
    _source: int = NO_BROKER
    _is_brief: bool = False
    _offline: IdMatrix = field(default_factory=lambda: np.empty((0, 0), np.int32))
    """The offline replicas in the last metadata."""
    _due_topics: list[str] = field(default_factory=list)
    """The topics whose settings are due and have not been asked for."""
    _asked_topics: set[str] = field(default_factory=set)
    """The topics whose settings have been asked for and not been answered."""
    _troubled_of: tuple[object, object] = (None, None)
    _troubled: frozenset[str] = frozenset()
    """The topics in trouble, of this layout and these reassignments."""
    _held: Rows = field(default_factory=lambda: np.empty(0, np.intp))
    """The partition rows whose last stable offset stands still."""
    _read: tuple[Layout, Strings, Rows] | None = None
    """The partition rows for which groups have committed offsets, of this layout and these topics."""

    @property
    def idle(self) -> bool:
        """Whether no request is in flight, and no healthy broker is being connected to."""
        return not self._running and not any(
            self.links[b].connecting for b in self._healthy if b in self.links
        )

    def step(
        self, healthy: Sequence[int], answering: Iterable[int], source: int, is_brief: bool = False
    ) -> None:
        """Send the requests that are due to `healthy` brokers, which answer other requests in time.

        `answering` are the brokers that answer other requests at all, so that a missing answer is not their
        fault. `source` is the broker that is asked for Metadata. With `is_brief`, nothing is asked for that
        grows with the number of topics, but settings of topics in trouble.
        """
        self._is_brief = is_brief
        self._healthy, self._answering, self._source = healthy, frozenset(answering), source
        self._mark_overdue(self.loop.monotonic())
        self._take_reassignments()
        self._see_offline()
        self._see_away()
        self._see_moves(healthy)
        self._see_settings()
        read = self.state.readings
        is_held = read.last_stable_since_ms != UNKNOWN
        self._held = np.flatnonzero(is_held & (read.last_stable_since_ms <= read.last_stable_ms - HELD_MS))
        self.state.transactions.settle(self.state.layout, self._held, read.last_stable_ms[self._held])
        for broker in healthy:
            if broker in self.links:
                self.links[broker].on_up = self._pump
                self.links[broker].open()
        self._pump()

    def _see_offline(self) -> None:
        """Ask a broker for its log directories at once when replicas of it go offline or come back.

        If it answers, a directory has failed, which Metadata does not name.
        """
        offline = self.state.layout.offline
        if offline is not self._offline:
            for broker in np.setxor1d(offline, self._offline).tolist():
                self._due_s.pop((Part.LOG_DIRS, broker), None)
            self._offline = offline

    def _see_away(self) -> None:
        """Forget the log directories of brokers that do not answer, and ask for them at once when they do.

        A broker that comes back may have been restarted, and then uses a repaired directory again.
        """
        away = [b for b, facts in self.state.brokers.items() if facts.is_away]
        for broker in away:
            self._due_s.pop((Part.LOG_DIRS, broker), None)
        self.state.log_dirs = log_dirs.without(self.state.log_dirs, away)

    def _see_moves(self, brokers: Sequence[int]) -> None:
        """Ask brokers for their settings soon when a reassignment begins, because their throttles slow it."""
        if len(self.state.reassignments):
            soon_s = self.loop.monotonic() + self.settings.near_configs_s
            for broker in brokers:
                key = Part.SESSION_TIMEOUT, broker
                if key not in self.state.failures:
                    self._due_s[key] = min(self._due_s.get(key, soon_s), soon_s)

    def _pump(self) -> None:
        """Send a due request to every free broker. Also called when a broker becomes free."""
        anyone = [self._source, *(b for b in self._healthy if b != self._source)]
        self._anyone(Part.QUORUM, anyone, apis.DESCRIBE_QUORUM, self._quorum)
        self._anyone(Part.CONFIGS, anyone, apis.DESCRIBE_CONFIGS, self._topic_configs)
        knowing = self._knowing(anyone)
        self._anyone(Part.REASSIGNMENTS, knowing, apis.LIST_PARTITION_REASSIGNMENTS, self._reassignments)
        self._anyone(Part.ELR, anyone, apis.DESCRIBE_TOPIC_PARTITIONS, self._elr)
        doubtful = topics.may_be_hidden(self.state, self.loop.access)
        able = [b for b in anyone if doubtful and b in self.links and topics.can_ask(self.links[b].versions)]
        self._anyone(Part.TOPICS, able, apis.METADATA, self._hidden_topics)
        moves = len(self.state.reassignments) > 0
        for broker in self._healthy:
            every_s = self.settings.near_configs_s if moves else self.settings.configs_s
            self._each(Part.SESSION_TIMEOUT, broker, apis.DESCRIBE_CONFIGS, every_s, self._session_timeout)
            every_s = self.settings.log_dirs_s
            if not self._is_brief:
                self._each(Part.LOG_DIRS, broker, apis.DESCRIBE_LOG_DIRS, every_s, self._log_dirs)
            every_s = self.settings.transactions_s
            if len(self._held_by(broker)):
                self._each(Part.PRODUCERS, broker, apis.DESCRIBE_PRODUCERS, every_s, self._producers)
            if self._share_groups(broker):  # in every observation
                every_s = 0.5 * self.settings.interval_s
                api = apis.DESCRIBE_SHARE_GROUP_OFFSETS
                self._each(Part.SHARE_OFFSETS, broker, api, every_s, self._share_offsets)
            if self.state.transactions.held:
                every_s = self.settings.transactions_s
                self._each(Part.TRANSACTIONS, broker, apis.LIST_TRANSACTIONS, every_s, self._transactions)
        if not self._is_brief:
            self._wanted_points()

    def _knowing(self, brokers: Sequence[int]) -> Sequence[int]:
        """Return the brokers that can be asked what only the controller knows.

        Any broker forwards the request, but in ZooKeeper mode all but the controller refuse it.
        """
        controller = self.state.metadata.controller_id if self.state.metadata else NO_BROKER
        return [
            broker
            for broker in brokers
            if broker in self.links
            and (broker == controller or not apis.with_zookeeper(self.links[broker].versions))
        ]

    def _mark_overdue(self, now_s: float) -> None:
        for broker, running in self._running.items():
            most_s = QUORUM_OVERDUE_S if running.part == Part.QUORUM else OVERDUE_S
            if not running.overdue and now_s - running.since_s > most_s:
                running.overdue = self._failed(running.part, broker, Cause(FailureKind.OVERDUE))

    def _failed(self, part: Part, broker: int, cause: Cause) -> bool:
        """Note a failure, unless the part is not of this broker alone and the broker answers nothing else.

        Return whether it was noted.
        """
        reported = self._reported_broker(part, broker)
        if reported == NO_BROKER and broker not in self._answering:
            return False
        self.state.failed(part, reported, cause)
        return True

    def _elects(self, part: Part, cause: Cause) -> bool:
        """Return whether a refusal only means that a controller is being elected.

        What the quorum answers is judged with the controllers, so only reassignments are meant.
        """
        if part != Part.REASSIGNMENTS or cause.code != NOT_CONTROLLER:
            return False
        now_s = self.loop.monotonic()
        if self._no_controller_s is None:
            self._no_controller_s = now_s
        most_s = max(NOT_CONTROLLER_FOR_S, NOT_CONTROLLER_INTERVALS * self.settings.interval_s)
        return now_s - self._no_controller_s <= most_s

    def _free(self, broker: int) -> bool:
        link = self.links.get(broker)
        return link is not None and link.connected and broker not in self._running

    def _reported_broker(self, part: Part, broker: int) -> int:
        """Return the broker to name in a failure, or NO_BROKER for parts that any broker can answer."""
        return NO_BROKER if part in (*FORWARDED, Part.CONFIGS, Part.ELR, Part.TOPICS) else broker

    def _start(self, part: Part, broker: int, ask: Callable[[Link, int], Awaitable[None]]) -> None:
        """Ask `broker`, which must be free, for `part`."""
        self._running[broker] = _Running(part, self.loop.monotonic())
        reported, began_ms = self._reported_broker(part, broker), self.loop.clock_ms()

        async def run() -> None:
            try:
                await ask(self.links[broker], broker)
            except LinkError as error:
                if self.state.received_ms.get((part, reported), UNKNOWN) <= began_ms:
                    self._failed(part, broker, error.cause)
                self._due_s[part, reported] = self.loop.monotonic() + FAILED_PAUSE_S
            except Refused as error:
                if not self._elects(part, error.cause):
                    self.state.failed(part, reported, error.cause)
                lasting = error.cause.kind is not FailureKind.KAFKA_ERROR or error.cause.code in LASTING
                # Topics whose settings kview may not see are due later than others, which need no pause.
                waits = lasting and part != Part.CONFIGS
                pause_s = REFUSED_PAUSE_S if waits else FAILED_PAUSE_S
                self._due_s[part, reported] = self.loop.monotonic() + pause_s
            else:
                if part == Part.REASSIGNMENTS:
                    self._no_controller_s = None
                self.state.succeeded(part, reported, self.loop.clock_ms())
            finally:
                self._running.pop(broker, None)
            self._pump()

        self.loop.spawn(run)

    def _anyone(
        self, part: Part, brokers: Iterable[int], api: int, ask: Callable[[Link, int], Awaitable[None]]
    ) -> None:
        """Ask the first free broker for `part` when it is due.

        It is not asked for while a request for it is in flight at a broker that answers other requests. Only
        the quorum is asked for at a second broker then, because the first one may be cut off from the
        controllers.
        """
        now_s = self.loop.monotonic()
        if now_s < self._due_s.get((part, NO_BROKER), 0.0):
            return
        asked = [r for b, r in self._running.items() if r.part == part and b in self._healthy]
        stuck = part == Part.QUORUM and all(running.overdue for running in asked)
        if (asked and not (stuck and len(asked) < MOST_QUORUM_REQUESTS)) or not self._wanted(part):
            return
        for broker in brokers:
            if self._free(broker) and api in self.links[broker].versions:
                self._due_s[part, NO_BROKER] = now_s + self._pause_s(part)
                self._start(part, broker, ask)
                return

    def _wanted(self, part: Part) -> bool:
        if part == Part.CONFIGS:
            return any(topic in self.state.layout.first for topic in self._due_topics)
        if part == Part.ELR:
            return bool(elr.wanting(self.state.layout, self.state.min_isr()).any())
        return True

    def _pause_s(self, part: Part) -> float:
        """Return how many seconds after a request for `part` the next one may be sent.

        The settings of new topics have no limit. The quorum is asked in every observation, and everything
        else in every `forwarded_rounds`-th one. Half an interval is taken off, so that an observation that
        begins a little early still asks.
        """
        if part == Part.CONFIGS:
            return 0.0
        if part == Part.TOPICS:
            return self.settings.configs_s
        rounds = 1 if part == Part.QUORUM else self.settings.forwarded_rounds
        return (rounds - 0.5) * self.settings.interval_s

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
        layout = self.state.layout
        answer, at_ms = await link.ask(reassignments.request())
        self._listed = at_ms, layout, reassignments.table(answer)
        self._take_reassignments()

    def _take_reassignments(self) -> None:
        """Use the last list of reassignments, as soon as metadata is not older if some have ended.

        Older metadata still have the replicas that these were adding, which would count as out of sync.
        """
        if self._listed is None:
            return
        at_ms, layout, listed = self._listed
        has_ended = reassignments.has_ended(self.state.reassignments, listed)
        if has_ended and self.state.shown_since_ms(Part.METADATA, NO_BROKER) <= at_ms:
            return
        self._listed = None
        self.state.reassignments = reassignments.with_begun(listed, layout, self.state.layout)

    async def _session_timeout(self, link: Link, broker: int) -> None:
        zookeeper = apis.with_zookeeper(link.versions)
        key = configs.ZOOKEEPER_SESSION_TIMEOUT if zookeeper else configs.SESSION_TIMEOUT
        answer, _ = await link.ask(configs.broker_request(broker, key))
        facts = self.state.brokers.get(broker)
        if facts is not None:
            facts.session_timeout_ms = configs.session_timeout_ms(answer, key)
            facts.settings = configs.broker_settings(answer)

    async def _log_dirs(self, link: Link, broker: int) -> None:
        answer, at_ms = await link.ask(log_dirs.request())
        facts = self.state.brokers.get(broker)
        total = log_dirs.read_sizes(self.state.readings, self.state.layout, broker, answer)
        self.state.log_dirs = log_dirs.with_answer(self.state.log_dirs, broker, answer, at_ms)
        if facts is not None:
            facts.disk_bytes = total

    def _held_by(self, broker: int) -> Rows:
        layout = self.state.layout
        rows: Rows = self._held[layout.leader[self._held] == broker]
        return rows

    async def _producers(self, link: Link, broker: int) -> None:
        request = transactions.producers_request(self.state.layout, self._held_by(broker))
        answer, at_ms = await link.ask(request)
        transactions.read_producers(answer, self.state.transactions.held, at_ms)

    async def _transactions(self, link: Link, broker: int) -> None:
        known = self.state.transactions
        producers, leaders = known.producers(), transactions.coordinators(self.state.layout)
        known.coordinated.pop(broker, None)  # unless it answers again
        answer, _ = await link.ask(transactions.list_request(producers))
        names = transactions.listed(answer)
        answer, at_ms = await link.ask(transactions.describe_request(names.values()))
        known.coordinated[broker] = transactions.coordinated(producers, names, answer, broker, leaders, at_ms)

    def _share_groups(self, broker: int) -> list[str]:
        known = self.state.groups.values()
        return [g.group for g in known if g.coordinator == broker and g.type == GroupType.SHARE]

    async def _share_offsets(self, link: Link, broker: int) -> None:
        """Ask the coordinator of share groups where they start, on all partitions that they have read.

        It asks the broker that keeps the state of each, which may be down. Until that is settled, it answers
        nothing else on the same connection.
        """
        from kview.wire.group_messages import DescribeShareGroupOffsetsRequest

        group = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup
        for batch in batches_of(self._share_groups(broker)):
            asked = [group(group_id=name, topics=None) for name in batch]
            answer, at_ms = await link.ask(DescribeShareGroupOffsetsRequest(groups=asked))
            for entry in answer.groups:
                known = self.state.groups.get(entry.group_id)
                if known is None:
                    continue
                if entry.error_code:
                    known.commits_refused = entry.error_code
                else:
                    facts.shared(known, entry.topics, at_ms)

    def _see_settings(self) -> None:
        """Note the topics whose settings are due."""
        now_ms, state, settings = self.loop.clock_ms(), self.state, self.settings
        oldest_ms = now_ms - int(settings.configs_s * 1000)
        troubled = self._troubled_topics()
        # Many topics in trouble take turns, so that they cost one request at a time.
        turns = -(-len(troubled) // configs.TOPICS_A_REQUEST)
        near_ms = now_ms - int(settings.near_configs_s * 1000)
        in_turn_ms = max(oldest_ms, now_ms - int(turns * settings.near_configs_s * 1000))
        near = dict.fromkeys(troubled, in_turn_ms) | dict.fromkeys(self.in_sight, near_ms)
        due = configs.due_topics(state.layout, state.settings, oldest_ms, near)
        if self._is_brief:
            due = [topic for topic in due if topic in troubled][: configs.TOPICS_A_REQUEST]
        self._due_topics = [topic for topic in due if topic not in self._asked_topics]

    def _troubled_topics(self) -> frozenset[str]:
        of = self.state.layout, self.state.reassignments
        if of[0] is not self._troubled_of[0] or of[1] is not self._troubled_of[1]:
            self._troubled_of, self._troubled = of, configs.troubled_topics(of[0], of[1].topic)
        return self._troubled

    async def _topic_configs(self, link: Link, broker: int) -> None:
        layout = self.state.layout
        due = [topic for topic in self._due_topics if topic in layout.first]
        asked, self._due_topics = due[: configs.TOPICS_A_REQUEST], due[configs.TOPICS_A_REQUEST :]
        names = set(asked)
        self._asked_topics |= names
        try:
            answer, at_ms = await link.ask(configs.topics_request(asked))
        finally:
            self._asked_topics -= names
        answered = configs.topic_settings(answer)
        unauthorized = configs.unauthorized(answer)
        if not answered.keys() | unauthorized.keys() <= names:
            raise Refused(Cause(FailureKind.MALFORMED))
        for name, settings in answered.items():
            row, _ = layout.first[name]
            self.state.settings[name] = configs.TopicSettings.after(
                self.state.settings.get(name), layout.topic_id[row], settings, at_ms
            )
        for name, code in unauthorized.items():
            row, _ = layout.first[name]
            self.state.settings[name] = configs.TopicSettings(layout.topic_id[row], (), at_ms, code)
        if answered.keys() | unauthorized.keys() != names:
            raise Refused(Cause(FailureKind.INCOMPLETE))
        known = map(self.state.settings.get, self.state.layout.first)
        if code := next((each.error_code for each in known if each is not None and each.error_code), 0):
            raise Refused(refused(code))

    async def _hidden_topics(self, link: Link, broker: int) -> None:
        """Ask for a topic that does not exist. If that is refused, the list of topics may lack some.

        It is refused unless kview may see topics of any name.
        """
        answer, _ = await link.ask(topics.request())
        if topics.is_refused(answer):
            raise Refused(refused(topics.REFUSED))

    async def _elr(self, link: Link, broker: int) -> None:
        layout = self.state.layout
        names = sorted(set(layout.topic[elr.wanting(layout, self.state.min_isr())].tolist()))
        eligible: dict[tuple[str, int], tuple[elr.Brokers, elr.Brokers]] = {}
        cursor = None
        for _ in range(elr.MOST_PAGES):
            answer, _ = await link.ask(elr.request(names, cursor))
            eligible.update(elr.answered(answer))
            cursor = answer.next_cursor
            if cursor is None:
                break
        self.state.elr = eligible

    def _wanted_points(self) -> None:
        """Ask where the logs that groups read ended some time ago, once per partition."""
        layout, points = self.state.layout, self.state.points
        due = points.due(layout, self._rows_read())
        if not len(due):
            return
        for broker in self._healthy:
            rows = due[layout.leader[due] == broker][:POINTS_A_REQUEST]
            if len(rows) and self._free(broker):
                points.mark(layout, rows)
                self._start(Part.TIME_POINTS, broker, self._points_of(layout, rows))

    def _rows_read(self) -> Rows:
        """Return the partition rows for which groups have committed offsets, ascending.

        They are the same until partitions or committed offsets come or go, and are asked for all the time.
        """
        layout, offsets = self.state.layout, self.state.group_tables.offsets
        known = self._read
        if known is None or known[0] is not layout or known[1] is not offsets.topic:
            rows = layout.rows_at(offsets.topic, offsets.partition)
            known = self._read = layout, offsets.topic, np.unique(rows[rows >= 0])
        return known[2]

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
                    now = self.state.layout
                    ends = ended_at(self.state.readings, now, checked(answer), timestamp_ms)
                    self.state.points.answered(now, *ends, timestamp_ms, at_ms)

        return ask
