"""Requests for metadata and offsets, as coroutines that put their answer or failure into the state."""

import logging
from collections.abc import Sequence
from functools import partial
from typing import Any

from msgspec import Struct, field

from kview.model.failures import Cause, FailureKind, Part
from kview.model.units import NO_BROKER
from kview.observe import apis, brokers, readings, sources, topics
from kview.observe.believing import is_newer
from kview.observe.causes import LinkError, Refused
from kview.observe.layout import Layout, Rows
from kview.observe.link import Link
from kview.observe.loop import Loop
from kview.observe.readings import Share
from kview.observe.state import State
from kview.wire import list_offsets, metadata
from kview.wire.list_offsets import ListOffsetsAnswer
from kview.wire.metadata import MetadataAnswer
from kview.wire.primitives import MalformedBytes

_log = logging.getLogger(__name__)

OUTDATED_MOST_S = 60.0
"""If there is nothing but outdated metadata for this long, it is believed: a cluster that was restored from a
backup continues in an older state."""


class Wanted(Struct, frozen=True):
    """Which offset of each partition a request asks for. `name` tells apart what is asked of one broker."""

    name: str
    timestamp: int
    replica_id: int
    read_committed: bool = False


WATERMARKS = Wanted("watermarks", list_offsets.LATEST, list_offsets.CONSUMER)
LAST_STABLE = Wanted("stable", list_offsets.LATEST, list_offsets.CONSUMER, read_committed=True)
STARTS = Wanted("starts", list_offsets.EARLIEST, list_offsets.CONSUMER)
ENDS = Wanted("ends", list_offsets.LATEST, list_offsets.DEBUGGING_REPLICA)
FOLLOWERS_ENDS = Wanted("followers", list_offsets.LATEST, list_offsets.DEBUGGING_REPLICA)


class FastLane(Struct):
    """The requests of one observation, by subject.

    Network errors are not raised but become failures.
    """

    loop: Loop
    state: State
    debugging: bool | None = None
    """Whether followers answer the debugging replica id. None until a follower was asked."""
    _opinion: tuple[int, MetadataAnswer] | None = None
    """What a second broker says about the cluster, until it is compared."""
    _outdated_since_s: float = 0.0
    """Since when there have been only outdated metadata (monotonic), 0 if the last ones were not."""
    _prepared: dict[tuple[int, Wanted], tuple[Any, Any]] = field(default_factory=dict)

    async def metadata(self, link: Link, broker: int) -> None:
        """Ask for metadata and, at the same time, for the registered brokers."""
        version = min(apis.highest(link.versions, apis.METADATA), metadata.HIGHEST)
        first = self._ask(link, metadata.request(version))
        cluster = None
        if apis.highest(link.versions, apis.DESCRIBE_CLUSTER) >= apis.FENCED_BROKERS_FROM:
            cluster = self._ask(link, brokers.cluster_request())
        try:
            answer, _ = await first
            listed = (await cluster)[0] if cluster else None
        except LinkError as error:
            self.state.failed(Part.METADATA, broker, error.cause)
            return
        before_ms = self.state.shown_since_ms(Part.METADATA, broker)
        names = self._changed_topics(link, answer)
        again = await self._ask_again(link, names) if names else None
        if not self._take_metadata(answer, broker, link.answered_ms):
            return
        if again:
            topics.take(self.state, again[0], names, before_ms, again[1])
        try:
            self.state.cluster = brokers.registered(listed) if listed else {}
            self.state.lists_all_groups = brokers.lists_all_groups(listed) if listed else None
        except Refused as error:
            self.state.cluster = {}
            self.state.failed(Part.REGISTERED_BROKERS, broker, error.cause)

    def _changed_topics(self, link: Link, answer: MetadataAnswer) -> Sequence[str]:
        """Return the topics to ask for again before the answer is used: what kview is authorized to see may
        have changed, and not the topics."""
        state, current = self.state, self.state.metadata
        if current is None or answer.topics_bytes == current.topics_bytes:
            return ()
        if not (topics.can_ask(link.versions) and topics.may_be_hidden(state, self.loop.access)):
            return ()
        try:
            listed = {topic.name for topic in answer.topics().topics if topic.count}
        except MalformedBytes:
            return ()
        return topics.to_ask_again(
            state.layout.first.keys(), listed, (Part.TOPICS, NO_BROKER) in state.failures
        )

    async def _ask_again(self, link: Link, names: Sequence[str]) -> tuple[Any, int] | None:
        try:
            answer: tuple[Any, int] = await self._ask(link, topics.request(names))
        except LinkError:
            return None  # the link knows why
        return answer

    def _take_metadata(self, answer: MetadataAnswer, broker: int, at_ms: int) -> bool:
        """Store the answer of the source of metadata, and return whether it was used."""
        state, now_s = self.state, self.loop.monotonic()
        tolerant = 0 < self._outdated_since_s < now_s - OUTDATED_MOST_S
        try:
            cause = state.take_metadata(answer, tolerant)
        except MalformedBytes:
            _log.warning("metadata of broker %d could not be read", broker, exc_info=True)
            cause = Cause(FailureKind.MALFORMED)
        used = cause.kind not in (FailureKind.MALFORMED, FailureKind.OUTDATED)
        if not used:
            state.doubted_until_s[broker] = now_s + sources.DOUBTED_S
        if cause.kind is FailureKind.OUTDATED:
            self._outdated_since_s = self._outdated_since_s or now_s
        elif used:
            self._outdated_since_s = 0.0
        for key in [key for key in state.failures if key[0] is Part.METADATA]:
            del state.failures[key]  # of earlier sources
        if cause.kind:
            state.failed(Part.METADATA, broker, cause)
        else:
            state.succeeded(Part.METADATA, broker, at_ms)
        return used

    async def second_opinion(self, link: Link, broker: int) -> None:
        """Ask another broker than the source for metadata, which are compared after the source's answer."""
        version = min(apis.highest(link.versions, apis.METADATA), metadata.HIGHEST)
        try:
            answer, _ = await self._ask(link, metadata.request(version))
        except LinkError:
            return
        self._opinion = (broker, answer)

    def newer_source(self, source: int) -> int | None:
        """Return the broker of the second opinion if its metadata are newer, or None.

        Then the `source` of the other metadata has missed something.
        """
        opinion, self._opinion = self._opinion, None
        current = self.state.metadata
        if opinion is None or current is None or opinion[0] == source:
            return None
        broker, answer = opinion
        if answer.topics_bytes == current.topics_bytes:
            return None
        try:
            if not is_newer(answer.topics(), self.state.layout):
                return None
        except MalformedBytes:
            return None
        self.state.doubted_until_s[source] = self.loop.monotonic() + sources.DOUBTED_S
        self._take_metadata(answer, broker, self.loop.clock_ms())
        return broker

    async def followers(self, link: Link, broker: int, share: Share, whole: bool) -> None:
        """Ask a broker for the log ends of the replicas with which it follows."""
        layout = share.layout
        request = self._list_offsets(link, broker, FOLLOWERS_ENDS, layout, share.follows, whole)
        try:
            answer, at_ms = await self._ask_offsets(link, request)
        except (LinkError, Refused) as error:
            self.state.failed(Part.LOG_ENDS, broker, error.cause)
            return
        self.state.succeeded(Part.LOG_ENDS, broker, at_ms)
        if not self.state.still(layout):
            return
        errors = answer.error
        if (errors == 0).any():
            self.debugging = True
        elif self.debugging is None and len(errors) and (errors == apis.NOT_LEADER).all():
            self.debugging = False
        if self.debugging:
            readings.read_replicas(self.state.readings, self.state.layout, broker, answer, at_ms)

    async def log_starts(self, link: Link, broker: int, layout: Layout, rows: Rows) -> None:
        """Ask a broker for the log starts of partitions that it leads: `rows` of `layout`.

        If it does not answer, its failure to answer the rest is noted, too.
        """
        request = self._list_offsets(link, broker, STARTS, layout, rows, False)
        try:
            answer, at_ms = await self._ask_offsets(link, request)
        except (LinkError, Refused):
            return
        if self.state.still(layout):
            readings.read_log_start(self.state.readings, self.state.layout, answer, at_ms)

    async def leaders(
        self, link: Link, broker: int, share: Share, whole: bool, starting: Rows, stable: Rows
    ) -> None:
        """Ask a broker for high watermarks and log ends of the partitions it leads, pipelined together.

        `starting` and `stable` are the rows among them whose log starts and last stable offsets are asked
        for, too.
        """
        layout, clock_sets = share.layout, self.state.clock_sets

        def ask(wanted: Wanted, rows: Rows) -> Any:
            reused = whole and len(rows) == len(share.leads)
            return self._ask_offsets(link, self._list_offsets(link, broker, wanted, layout, rows, reused))

        watermarks = ask(WATERMARKS, share.leads)
        ends = starts = stables = None
        if self.debugging is not False:
            ends = ask(ENDS, share.leads)
        if len(starting):
            starts = ask(STARTS, starting)
        if len(stable):
            stables = ask(LAST_STABLE, stable)
        try:
            first = await watermarks
            second = await ends if ends else None
            third = await starts if starts else None
            fourth = await stables if stables else None
        except (LinkError, Refused) as error:
            self.state.failed(Part.OFFSETS, broker, error.cause)
            return
        if not self.state.still(layout) or clock_sets != self.state.clock_sets:
            return  # or the first answer has a time of the old clock
        now = self.state.layout
        readings.read_leader(self.state.readings, now, broker, first, second)
        if third:
            readings.read_log_start(self.state.readings, now, *third)
        if fourth:
            readings.read_last_stable(self.state.readings, now, *fourth)
        self.state.succeeded(Part.OFFSETS, broker, first[1])

    def _list_offsets(
        self, link: Link, broker: int, wanted: Wanted, layout: Layout, rows: Rows, whole: bool
    ) -> Any:
        """Return a request for `rows` of `layout`, which need not be the current one any more.

        The request for a `whole` share is reused until the layout changes.
        """
        version = list_offsets.best_version(*link.versions[list_offsets.API_KEY])
        made_for = (layout.leader, layout.replicas, layout.topic, layout.partition, version)
        had, request = self._prepared.get((broker, wanted), (None, None))
        if whole and had is not None and all(a is b for a, b in zip(had, made_for, strict=True)):
            return request
        request = list_offsets.request(
            version, layout.by_topic(rows), wanted.timestamp, wanted.replica_id, wanted.read_committed
        )
        if whole:
            self._prepared[broker, wanted] = (made_for, request)
        return request

    def _ask(self, link: Link, request: Any) -> Any:
        """Send the request at once, so that several requests go out together, and return a future."""
        return self.loop.begin(partial(link.ask, request))

    def _ask_offsets(self, link: Link, request: Any) -> Any:
        """Do the same for offsets. The future raises Refused for an answer that is nonsense."""

        async def ask() -> tuple[ListOffsetsAnswer, int]:
            answer, at_ms = await link.ask(request)
            return readings.checked(answer), at_ms

        return self.loop.begin(ask)
