"""Fetch (1) and ListOffsets (2) of one partition, asked of its leader, wherever that is by now."""

from collections.abc import Callable
from typing import Any

import numpy as np

from kview.model.failures import NO_FAILURE, NOT_AUTHORIZED, Cause, FailureKind, refused
from kview.model.inspection import InspectionFailure, Isolation
from kview.model.inspection import InspectionFailureKind as Kind
from kview.model.units import NO_BROKER, UNKNOWN
from kview.observe import apis
from kview.observe.asking import Asking, Ticket
from kview.observe.causes import LinkError
from kview.observe.link import Link
from kview.wire import fetch, list_offsets
from kview.wire.fetch import FetchAnswer

OFFSET_OUT_OF_RANGE, UNKNOWN_TOPIC, LEADER_NOT_AVAILABLE = 1, 3, 5
MOVED = frozenset({3, 5, 6, 9, 56, 74, 75, 100, 103})
"""Kafka's error numbers that say that the partition is led elsewhere, or may be."""


class Failed(Exception):
    """Raised when a request cannot be answered."""

    def __init__(self, kind: Kind, broker: int = NO_BROKER, cause: Cause = NO_FAILURE, offset: int = UNKNOWN):
        super().__init__(kind)
        self.failure = InspectionFailure(kind, broker, cause, offset)


class ErrorCode(Exception):
    """Raised for a partition's error number."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class PartitionReader:
    """Reads one partition. All methods raise Failed, OutOfTime or Cancelled."""

    def __init__(self, asking: Asking, topic: str, partition: int, ticket: Ticket, leader: int) -> None:
        """`leader` is the leader as far as it is known, negative if it is not."""
        self._asking = asking
        self._topic = topic
        self._partition = partition
        self._ticket = ticket
        self.leader = leader
        self._looked_up = False

    async def find(self) -> None:
        """Look up the leader, unless it is known. Raises LinkError, too."""
        if self.leader < 0:
            await self._look_up()

    async def fetch(self, offset: int, limit: int, isolation: Isolation) -> FetchAnswer:
        """Return what the leader has from `offset` on. Raises ErrorCode, too."""

        def make(link: Link) -> Any:
            version = min(apis.highest(link.versions, apis.FETCH), fetch.VERSIONS[1])
            if version < fetch.VERSIONS[0] or link.versions[apis.FETCH][0] > fetch.VERSIONS[1]:
                raise Failed(Kind.UNSUPPORTED, self.leader)
            return fetch.request(version, self._topic, self._partition, offset, limit, isolation)

        def taken(answer: FetchAnswer) -> FetchAnswer:
            if answer.malformed:
                raise Failed(Kind.NO_ANSWER, self.leader, Cause(FailureKind.MALFORMED))
            if code := answer.error or answer.partition_error:
                raise ErrorCode(code)
            if answer.partition_error is None:
                raise Failed(Kind.NO_ANSWER, self.leader, Cause(FailureKind.INCOMPLETE))
            return answer

        answer: FetchAnswer = await self._leader_says(make, taken)
        return answer

    async def listed_offset(self, timestamp: int, committed: bool) -> tuple[int, int]:
        """Return the first offset at that time, or the one that EARLIEST or LATEST stands for, and the
        timestamp of its record. Both are −1 if there is none."""
        topic = [(self._topic, np.array([self._partition], np.int32))]

        def make(link: Link) -> Any:
            version = list_offsets.best_version(*link.versions.get(list_offsets.API_KEY, (0, -1)))
            if version < 2:
                raise Failed(Kind.UNSUPPORTED, self.leader)
            return list_offsets.request(version, topic, timestamp, read_committed=committed)

        def taken(answer: list_offsets.ListOffsetsAnswer) -> tuple[int, int]:
            for of_topic in answer.topics:
                if len(of_topic.error) and of_topic.error[0]:
                    raise ErrorCode(int(of_topic.error[0]))
                if len(of_topic.offset):
                    return int(of_topic.offset[0]), int(of_topic.timestamp[0])
            raise Failed(Kind.NO_ANSWER, self.leader, Cause(FailureKind.INCOMPLETE))

        try:
            pair: tuple[int, int] = await self._leader_says(make, taken)
        except ErrorCode as error:
            raise self.failed(error) from error
        return pair

    async def _leader_says(self, make: Callable[[Link], Any], taken: Callable[[Any], Any]) -> Any:
        """Return what `taken` makes of the leader's answer. If the leader has moved, it is looked up once."""
        while True:
            try:
                return taken(await self._asking.ask(self.leader, make, self._ticket))
            except ErrorCode as error:
                if error.code not in MOVED or self._looked_up:
                    raise
                await self._look_up()
            except LinkError as error:
                before = self.leader
                if not self._looked_up:
                    await self._look_up()
                if self.leader == before:
                    raise self._unanswered(error) from error

    async def _look_up(self) -> None:
        """Ask another broker who leads the partition. Raises Failed if nobody does."""
        self._looked_up = True
        try:
            row = await self._asking.leader(self._topic, self._partition, self._ticket, but=self.leader)
        except LinkError as error:
            raise self._unanswered(error) from error
        if row is None:
            raise Failed(Kind.UNKNOWN_TOPIC)
        if row.leader_id < 0:
            raise Failed(Kind.NO_LEADER)
        self.leader = row.leader_id

    def _unanswered(self, error: LinkError) -> Failed:
        return Failed(Kind.NO_ANSWER, self.leader, error.cause)

    def failed(self, error: ErrorCode) -> Failed:
        """Return what an error number means."""
        if error.code in NOT_AUTHORIZED:
            return Failed(Kind.NOT_AUTHORIZED, self.leader, refused(error.code))
        if error.code == UNKNOWN_TOPIC:
            return Failed(Kind.UNKNOWN_TOPIC, self.leader)
        if error.code == LEADER_NOT_AVAILABLE:
            return Failed(Kind.NO_LEADER)
        return Failed(Kind.NO_ANSWER, self.leader, refused(error.code))
