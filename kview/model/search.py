"""Questions for the records of a topic that a filter describes, which are answered step by step.

A plan says what there is to read. Each step reads a part of it, and returns the spans with what is left,
which are the next step's. So nothing runs that nobody waits for, and there are as many results as somebody
takes.
"""

from enum import StrEnum

from msgspec import Struct

from kview.model.inspection import (
    NO_INSPECTION_FAILURE,
    Cost,
    Damage,
    InspectionFailure,
    Isolation,
    Question,
)
from kview.model.units import UNKNOWN
from kview.model.where import Candidate, Condition, Where

MOST_FOUND = 1_000
"""Limit of the records that a step returns."""
REQUEST_BYTES = 8 << 20
"""How many bytes of records one request asks a broker for. A single larger batch comes nevertheless."""


class BeginKind(StrEnum):
    """From where on each partition is searched."""

    START = "start"
    OFFSET = "offset"
    TIME = "time"
    LAST = "last"
    """From so many offsets before the end."""


class Begin(Struct, frozen=True):
    """From where on each partition is searched. `value` is an offset, a time in epoch ms, or a number."""

    kind: BeginKind = BeginKind.START
    value: int = UNKNOWN


class Span(Struct, frozen=True):
    """Offsets of a partition, from `begin` up to, but not including, `end`. Those from `at` on are left.

    `size` are about the bytes that they take in the log, UNKNOWN if no broker tells. A span with a failure is
    not read any further.
    """

    partition: int
    begin: int = 0
    end: int = 0
    at: int = 0
    size: int = UNKNOWN
    failure: InspectionFailure = NO_INSPECTION_FAILURE

    @property
    def is_over(self) -> bool:
        """Whether nothing of it will be read any more."""
        return self.at >= self.end or bool(self.failure)


class SearchPlanRequest(Question["SearchPlan"], frozen=True):
    """A question for the spans to search. `partitions` are all if it is empty.

    `where` says which partition may be the best one to begin with.
    """

    topic: str
    partitions: tuple[int, ...] = ()
    begin: Begin = Begin()
    isolation: Isolation = Isolation.READ_COMMITTED
    where: Where | None = None


class SearchPlan(Struct, frozen=True):
    """The spans in the order in which they are best searched. `own` are those that the default partitioner of
    Kafka's clients chooses for the keys that are looked for."""

    request: SearchPlanRequest
    spans: tuple[Span, ...] = ()
    own: tuple[int, ...] = ()
    failure: InspectionFailure = NO_INSPECTION_FAILURE
    cost: Cost = Cost()
    asked_ms: int = UNKNOWN
    refused: Condition | None = None
    """With MASKED: the condition about something that the topic's mask hides."""


class SearchRequest(Question["SearchAnswer"], frozen=True):
    """A question for the next records. A step ends after some time, after `most` records, and when what was
    fetched has been judged, if that were `most_bytes` bytes of records.

    Records with a timestamp before `from_ms`, or not before `until_ms`, are left out.
    """

    topic: str
    spans: tuple[Span, ...]
    where: Where | None = None
    isolation: Isolation = Isolation.READ_COMMITTED
    from_ms: int = UNKNOWN
    until_ms: int = UNKNOWN
    most: int = MOST_FOUND
    most_bytes: int = 1 << 30
    bytes_per_second: int = 0
    """The pace, 0 for as fast as it goes."""
    request_bytes: int = REQUEST_BYTES


class Tally(Struct, frozen=True):
    """What was read, and what was not judged."""

    records: int = 0
    bytes: int = 0
    """Of records, as brokers store them."""
    undecoded: int = 0
    """Records that the filter could not judge, because they could not be decoded, or were too large."""
    damaged: int = 0
    """Batches that cannot be read."""
    aborted: int = 0
    """Batches that are left out because their transaction was aborted."""
    control: int = 0
    """Batches that only mark the end of a transaction."""
    deleted: int = 0
    """Offsets that were deleted before they were read."""

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(*(getattr(self, name) + getattr(other, name) for name in self.__struct_fields__))


class SearchAnswer(Struct, frozen=True):
    """The records that a step found, in the order in which they were read, and the spans as they are now."""

    request: SearchRequest
    found: tuple[Candidate, ...] = ()
    spans: tuple[Span, ...] = ()
    tally: Tally = Tally()
    damage: tuple[tuple[int, Damage], ...] = ()
    """(partition, damage), of as many as are kept."""
    is_spent: bool = False
    """Whether it ended because there are no bytes left to fetch."""
    failure: InspectionFailure = NO_INSPECTION_FAILURE
    cost: Cost = Cost()
    asked_ms: int = UNKNOWN
    refused: Condition | None = None
    """With MASKED: the condition about something that the topic's mask hides."""
