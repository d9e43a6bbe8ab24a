"""The requests of the fast lane, as coroutines that put their answer or failure into the state."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from kafka.protocol.admin import DescribeGroupsRequest, ListGroupsRequest

from kview.model.failures import Part, refused
from kview.observe import apis, brokers, groups, readings
from kview.observe.causes import LinkError, Refused
from kview.observe.layout import Layout, Rows
from kview.observe.link import Link
from kview.observe.loop import Loop
from kview.observe.readings import Share
from kview.observe.state import State
from kview.wire import list_offsets, metadata, offset_fetch

GROUPS_A_REQUEST = 500
"""Groups per request. With ten members each, the answer is about 100 KB."""
SINGLE_FETCHES = 3
"""Groups requested per observation from brokers before 3.0, which take only one group per request."""


@dataclass(slots=True)
class FastLane:
    """The requests of one observation, by subject.

    Network errors are not raised but become failures.
    """

    loop: Loop
    state: State
    debugging: bool | None = None
    """Whether followers answer the debugging replica id. None until a follower was asked."""
    group_lists: dict[int, frozenset[str]] = field(default_factory=dict)
    """Broker → the groups in its last list, which is dropped when the broker does not answer."""
    moved: bool = False
    """True if a coordinator reported that it no longer is one, so that groups have to be listed again."""
    late: list[Callable[[], None]] = field(default_factory=list)
    """Commits that arrived after end offsets were requested. The next observation processes them first."""
    ends_asked: bool = False
    _turn: int = 0
    _prepared: dict[tuple[int, str], tuple[Any, Any]] = field(default_factory=dict)

    async def metadata(self, link: Link, broker: int) -> None:
        """Ask for metadata and, at the same time, for the registered brokers."""
        version = min(apis.highest(link.versions, apis.METADATA), metadata.HIGHEST)
        first = self._ask(link, metadata.request(version))
        cluster = None
        if apis.highest(link.versions, apis.DESCRIBE_CLUSTER) >= apis.FENCED_BROKERS_FROM:
            cluster = self._ask(link, brokers.cluster_request())
        try:
            answer, at_ms = await first
            listed = (await cluster)[0] if cluster else None
        except LinkError as error:
            self.state.failed(Part.METADATA, broker, error.cause)
            return
        try:
            self.state.cluster = brokers.registered(listed) if listed else {}
        except Refused as error:
            self.state.cluster = {}
            self.state.failed(Part.REGISTERED_BROKERS, broker, error.cause)
        self.state.take_metadata(answer)
        self.state.succeeded(Part.METADATA, broker, at_ms)

    async def list_groups(self, link: Link, broker: int) -> None:
        """Ask which groups a broker coordinates."""
        self.group_lists.pop(broker, None)
        answer, at_ms = await self._answer(Part.GROUPS, link, broker, ListGroupsRequest())
        if answer is None:
            return
        if answer.error_code:
            self.state.failed(Part.GROUPS, broker, refused(answer.error_code))
            return
        groups.listed(self.state.groups, broker, answer, at_ms)
        self.group_lists[broker] = frozenset(entry.group_id for entry in answer.groups)

    async def describe_groups(self, link: Link, broker: int, names: Sequence[str]) -> None:
        """Ask the coordinator of classic groups for their members and states."""
        for start in range(0, len(names), GROUPS_A_REQUEST):
            request = DescribeGroupsRequest(
                groups=list(names[start : start + GROUPS_A_REQUEST]), include_authorized_operations=False
            )
            answer, at_ms = await self._answer(Part.GROUPS, link, broker, request)
            if answer is None:
                return
            for entry in answer.groups:
                known = self.state.groups.get(entry.group_id)
                if known is None:
                    continue
                if entry.error_code:
                    self._refused(known, entry.error_code)
                else:
                    groups.described(known, entry, at_ms)

    async def commits(self, link: Link, broker: int, names: Sequence[str]) -> None:
        """Ask the coordinator of groups for their committed offsets."""
        version = min(apis.highest(link.versions, apis.OFFSET_FETCH), offset_fetch.HIGHEST)
        if version >= offset_fetch.BATCHED_FROM:
            batches = [names[i : i + GROUPS_A_REQUEST] for i in range(0, len(names), GROUPS_A_REQUEST)]
        else:
            self._turn += 1
            doubled = [*names, *names]
            at = self._turn * SINGLE_FETCHES % len(names)
            batches = [[name] for name in dict.fromkeys(doubled[at : at + SINGLE_FETCHES])]
        for batch in batches:
            request = offset_fetch.request(version, batch)
            answer, at_ms = await self._answer(Part.COMMITS, link, broker, request)
            if answer is None:
                return
            take = partial(self._take_commits, answer, at_ms)
            if self.ends_asked:
                self.late.append(take)
            else:
                take()

    def _take_commits(self, answer: offset_fetch.OffsetFetchAnswer, at_ms: int) -> None:
        for commits in answer.groups:
            known = self.state.groups.get(commits.group)
            if known is None:
                continue
            if commits.error:
                self._refused(known, commits.error)
            else:
                groups.committed(known, commits, at_ms)

    def _refused(self, known: groups.GroupFacts, code: int) -> None:
        known.refused = code
        self.moved |= code == apis.NOT_COORDINATOR

    async def followers(self, link: Link, broker: int, share: Share, whole: bool) -> None:
        """Ask a broker for the log ends of the replicas with which it follows."""
        layout = self.state.layout
        request = self._list_offsets(
            link, broker, "followers", layout, share.follows, whole,
            list_offsets.LATEST, list_offsets.DEBUGGING_REPLICA,
        )  # fmt: skip
        answer, at_ms = await self._answer(Part.LOG_ENDS, link, broker, request)
        if answer is None or not self.state.still(layout):
            return
        errors = np.concatenate([topic.error for topic in answer.topics] or [np.empty(0, np.int16)])
        if (errors == 0).any():
            self.debugging = True
        elif self.debugging is None and len(errors) and (errors == apis.NOT_LEADER).all():
            self.debugging = False
        if self.debugging:
            readings.read_replicas(self.state.readings, self.state.layout, broker, answer, at_ms)

    async def leaders(self, link: Link, broker: int, share: Share, whole: bool, log_start: bool) -> None:
        """Ask a broker for high watermarks and log ends of the partitions it leads, pipelined together."""
        layout = self.state.layout

        def ask(kind: str, timestamp: int, replica_id: int) -> Any:
            request = self._list_offsets(
                link, broker, kind, layout, share.leads, whole, timestamp, replica_id
            )
            return self._ask(link, request)

        watermarks = ask("watermarks", list_offsets.LATEST, list_offsets.CONSUMER)
        ends = starts = None
        if self.debugging is not False:
            ends = ask("ends", list_offsets.LATEST, list_offsets.DEBUGGING_REPLICA)
        if log_start:
            starts = ask("starts", list_offsets.EARLIEST, list_offsets.CONSUMER)
        try:
            first = await watermarks
            second = await ends if ends else None
            third = await starts if starts else None
        except LinkError as error:
            self.state.failed(Part.OFFSETS, broker, error.cause)
            return
        if not self.state.still(layout):
            return
        now = self.state.layout
        readings.read_leader(self.state.readings, now, broker, first, second)
        if third:
            readings.read_log_start(self.state.readings, now, *third)
        self.state.succeeded(Part.OFFSETS, broker, first[1])

    def _list_offsets(
        self, link: Link, broker: int, kind: str, layout: Layout, rows: Rows, whole: bool,
        timestamp: int, replica_id: int,
    ) -> Any:  # fmt: skip
        """Return a request for `rows`. The request for a `whole` share is reused until the layout changes."""
        version = list_offsets.best_version(*link.versions[list_offsets.API_KEY])
        made_for = (layout.leader, layout.replicas, layout.topic, layout.partition, version)
        had, request = self._prepared.get((broker, kind), (None, None))
        if whole and had is not None and all(a is b for a, b in zip(had, made_for, strict=True)):
            return request
        request = list_offsets.request(version, layout.by_topic(rows), timestamp, replica_id)
        if whole:
            self._prepared[broker, kind] = (made_for, request)
        return request

    def _ask(self, link: Link, request: Any) -> Any:
        """Send the request at once, so that several requests go out together, and return a future."""
        return self.loop.begin(partial(link.ask, request))

    async def _answer(self, part: Part, link: Link, broker: int, request: Any) -> tuple[Any, int]:
        """Return an answer and when it was received.

        If the link fails, note the failure and return (None, 0).
        """
        try:
            answer, at_ms = await link.ask(request)
        except LinkError as error:
            self.state.failed(part, broker, error.cause)
            return None, 0
        self.state.succeeded(part, broker, at_ms)
        return answer, at_ms
