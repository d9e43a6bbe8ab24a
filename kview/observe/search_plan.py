"""What there is to search: Metadata (3), ListOffsets (2), and DescribeLogDirs (35) for how much it is."""

from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from kafka.protocol.admin.cluster import DescribeLogDirsRequest
from msgspec.structs import replace

from kview.model.failures import NOT_AUTHORIZED, refused
from kview.model.inspection import NO_INSPECTION_FAILURE, Cost, InspectionFailure, Isolation
from kview.model.inspection import InspectionFailureKind as Kind
from kview.model.murmur2 import partition_for_key
from kview.model.search import BeginKind, SearchPlan, SearchPlanRequest, Span
from kview.model.units import UNKNOWN
from kview.observe.asking import CONNECT_S, DEADLINE_S, POLL_S, Asking, Cancelled, OutOfTime, Ticket
from kview.observe.causes import LinkError
from kview.observe.link import Link
from kview.observe.partition import Failed
from kview.where.needles import wanted_keys
from kview.wire.list_offsets import API_KEY, EARLIEST, LATEST, best_version
from kview.wire.list_offsets import request as list_offsets_request

MOST_PARTITIONS = 10_000
"""Limit of the partitions that are searched."""


class Planner:
    """Answers one request for a plan. `leaders` are those of its partitions, once it is answered."""

    def __init__(self, asking: Asking, request: SearchPlanRequest, ticket: Ticket) -> None:
        self._asking = asking
        self._request = request
        self._ticket = ticket
        self.leaders: dict[int, int] = {}

    async def plan(self, cost_before: Cost, asked_ms: int) -> SearchPlan:
        """Return the spans to search. Raises Cancelled."""
        request, spans, own = self._request, list[Span](), set[int]()
        failure = NO_INSPECTION_FAILURE
        try:
            self.leaders = await self._partitions()
            count = len(self.leaders)
            if not set(request.partitions) <= set(self.leaders):
                raise Failed(Kind.UNKNOWN_TOPIC)
            keys = wanted_keys(request.where) if request.where is not None else ()
            own = {partition_for_key(key, count) for key in keys}
            chosen = request.partitions or sorted(self.leaders)
            left_out = chosen[MOST_PARTITIONS:]
            self.leaders = {partition: self.leaders[partition] for partition in chosen[:MOST_PARTITIONS]}
            spans = await self._spans()
            spans += (Span(partition, failure=InspectionFailure(Kind.TOO_MANY)) for partition in left_out)
        except Failed as failed:
            failure = failed.failure
        except OutOfTime:
            failure = InspectionFailure(Kind.TIMEOUT)
        except LinkError as error:
            failure = InspectionFailure(Kind.NO_ANSWER, cause=error.cause)
        spans.sort(key=lambda span: (span.partition not in own, span.partition))
        first = tuple(span.partition for span in spans if span.partition in own)
        cost = self._asking.spent_since(cost_before)
        return SearchPlan(request, tuple(spans), first, failure, cost, asked_ms)

    async def _partitions(self) -> dict[int, int]:
        """Return the topic's partitions with their leaders."""
        topic, loop = self._request.topic, self._asking.loop
        until_s = min(self._ticket.deadline_s, loop.monotonic() + CONNECT_S)
        while not (brokers := self._asking.brokers()) and loop.monotonic() < until_s:
            if self._ticket.cancelled:
                raise Cancelled
            await loop.net.sleep(POLL_S)  # a broker that is late may answer any moment
        for place, broker in enumerate(brokers):
            try:
                answer = await self._asking.metadata(broker, topic, self._ticket)
            except LinkError:
                if place == len(brokers) - 1:
                    raise
                continue
            entry = next((entry for entry in answer.topics if entry.name == topic), None)
            if entry is not None and entry.error_code in NOT_AUTHORIZED:
                raise Failed(Kind.NOT_AUTHORIZED, broker, refused(entry.error_code))
            if entry is None or not entry.partitions:
                raise Failed(Kind.UNKNOWN_TOPIC)
            return {row.partition_index: row.leader_id for row in entry.partitions}
        raise Failed(Kind.NOT_CONNECTED)

    async def _spans(self) -> list[Span]:
        """Return the spans of all partitions. Those whose leader has moved meanwhile are asked for again."""
        spans = await self._of(self.leaders)
        failed = [partition for partition, span in spans.items() if span.failure]
        if failed:
            self._ticket.deadline_s = self._asking.loop.monotonic() + DEADLINE_S
            try:
                newer = await self._partitions()
            except (Failed, OutOfTime, LinkError):  # the others can be searched nevertheless
                return list(spans.values())
            moved = {p: newer[p] for p in failed if p in newer and newer[p] != self.leaders[p]}
            self.leaders |= moved
            spans |= await self._of(moved)
        return list(spans.values())

    async def _of(self, leaders: dict[int, int]) -> dict[int, Span]:
        by_leader: dict[int, list[int]] = defaultdict(list)
        for partition, leader in leaders.items():
            by_leader[leader].append(partition)
        loop, tickets, futures = self._asking.loop, list[Ticket](), list[Any]()
        for leader, partitions in by_leader.items():
            tickets.append(Ticket(deadline_s=loop.monotonic() + DEADLINE_S))
            futures.append(loop.begin(partial(self._safely, leader, partitions, tickets[-1])))
            futures[-1].add_errback(lambda _: None)  # it is raised below
        while not all(future.is_done for future in futures):
            for ticket in tickets:
                ticket.cancelled = self._ticket.cancelled
            await loop.settle(futures, POLL_S)
        spans: dict[int, Span] = {}
        for future in futures:
            spans |= await future
        return spans

    async def _safely(self, leader: int, partitions: Sequence[int], ticket: Ticket) -> dict[int, Span]:
        """Return the spans of partitions with the same leader, or why it does not tell. Raises Cancelled."""
        try:
            return await self._of_leader(leader, partitions, ticket)
        except Failed as failed:
            failure = failed.failure
        except OutOfTime:
            failure = InspectionFailure(Kind.TIMEOUT, leader)
        except LinkError as error:
            failure = InspectionFailure(Kind.NO_ANSWER, leader, error.cause)
        return {partition: Span(partition, failure=failure) for partition in partitions}

    async def _of_leader(self, leader: int, partitions: Sequence[int], ticket: Ticket) -> dict[int, Span]:
        """Return the spans of partitions with the same leader. Raises Failed, LinkError, OutOfTime or
        Cancelled."""
        if leader < 0:
            raise Failed(Kind.NO_LEADER)
        begin = self._request.begin
        starts = await self._listed(leader, partitions, EARLIEST, ticket)
        ends = await self._listed(leader, partitions, LATEST, ticket)
        firsts = starts
        if begin.kind is BeginKind.TIME:
            firsts = await self._listed(leader, partitions, begin.value, ticket)
        sizes = await self._sizes(leader, partitions, ticket)
        spans: dict[int, Span] = {}
        for partition in partitions:
            listed = [offsets.get(partition, (UNKNOWN, 0)) for offsets in (starts, ends, firsts)]
            code = next((code for _, code in listed if code), 0)
            start, end, first = (offset for offset, _ in listed)
            if code in NOT_AUTHORIZED:
                failure = InspectionFailure(Kind.NOT_AUTHORIZED, leader, refused(code))
                spans[partition] = Span(partition, failure=failure)
            elif code or start < 0 or end < 0:
                failure = InspectionFailure(Kind.NO_ANSWER, leader, refused(code))
                spans[partition] = Span(partition, failure=failure)
            elif begin.kind is BeginKind.OFFSET and not start <= begin.value <= end:
                failure = InspectionFailure(Kind.OFFSET_OUT_OF_RANGE, leader, offset=begin.value)
                spans[partition] = Span(partition, start, end, start, failure=failure)
            else:
                match begin.kind:
                    case BeginKind.OFFSET:
                        first = begin.value
                    case BeginKind.LAST:
                        first = end - begin.value
                    case BeginKind.TIME if first < 0:
                        first = end  # no record is so new
                first = min(max(first, start), max(start, end))
                span = Span(partition, first, max(first, end), first)
                if partition in sizes and end > start:
                    size = sizes[partition] * (span.end - span.begin) // (end - start)
                    span = replace(span, size=size)
                spans[partition] = span
        return spans

    async def _listed(
        self, leader: int, partitions: Sequence[int], timestamp: int, ticket: Ticket
    ) -> dict[int, tuple[int, int]]:
        """Return the offset at a time by partition, each with an error number."""
        committed = self._request.isolation is Isolation.READ_COMMITTED
        asked = [(self._request.topic, np.array(partitions, np.int32))]

        def make(link: Link) -> Any:
            version = best_version(*link.versions.get(API_KEY, (0, -1)))
            if version < 2:
                raise Failed(Kind.UNSUPPORTED, leader)
            return list_offsets_request(version, asked, timestamp, read_committed=committed)

        answer = await self._asking.ask(leader, make, ticket)
        return {
            partition: (offset, error)
            for of_topic in answer.topics
            for partition, offset, error in zip(
                of_topic.partition.tolist(), of_topic.offset.tolist(), of_topic.error.tolist(), strict=True
            )
        }

    async def _sizes(self, leader: int, partitions: Sequence[int], ticket: Ticket) -> dict[int, int]:
        """Return the bytes of each partition's log at its leader, none of those that it does not tell."""
        topic = self._request.topic
        of_topic = DescribeLogDirsRequest.DescribableLogDirTopic
        asked = DescribeLogDirsRequest(topics=[of_topic(topic=topic, partitions=list(partitions))])
        try:
            answer = await self._asking.ask(leader, lambda _: asked, ticket)
        except (LinkError, OutOfTime):  # such as a broker that does not know this request
            return {}
        return {
            row.partition_index: row.partition_size
            for folder in answer.results
            for entry in folder.topics
            if entry.name == topic
            for row in entry.partitions
            if not row.is_future_key
        }
