"""The requests for metadata, as coroutines that put their answer or failure into the state."""

import logging
from collections.abc import Sequence
from functools import partial
from typing import Any

from msgspec import Struct

from kview.model.failures import Cause, FailureKind, Part
from kview.model.units import NO_BROKER
from kview.observe import apis, brokers, sources, topics
from kview.observe.believing import is_newer
from kview.observe.causes import LinkError, Refused
from kview.observe.link import Link
from kview.observe.loop import Loop
from kview.observe.state import State
from kview.wire import metadata
from kview.wire.metadata import MetadataAnswer
from kview.wire.primitives import MalformedBytes

_log = logging.getLogger(__name__)

OUTDATED_MOST_S = 60.0
"""If there is nothing but outdated metadata for this long, it is believed: a cluster that was restored from a
backup continues in an older state."""


class MetadataRequests(Struct):
    """The requests for metadata of one observation.

    Network errors are not raised but become failures.
    """

    loop: Loop
    state: State
    _opinion: tuple[int, MetadataAnswer] | None = None
    """What a second broker says about the cluster, until it is compared."""
    _outdated_since_s: float = 0.0
    """Since when there have been only outdated metadata (monotonic), 0 if the last ones were not."""

    async def ask_source(self, link: Link, broker: int) -> None:
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

    def _ask(self, link: Link, request: Any) -> Any:
        """Send the request at once, so that several requests go out together, and return a future."""
        return self.loop.begin(partial(link.ask, request))
