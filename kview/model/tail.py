"""The end of a topic, as it grows: questions that follow it, each from where the last answer ended."""

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

DEFAULT_TAIL_RECORDS = 100
"""The most records of an answer: more than anybody reads in the time to the next one."""
DEFAULT_TAIL_BYTES = 512 << 10
"""How many bytes of records an answer fetches from all brokers together, besides batches that are larger."""

Positions = tuple[tuple[int, int], ...]
"""(partition, offset of the next record), UNKNOWN for the end. Partitions in front are read first."""


class TailRequest(Question["TailAnswer"], frozen=True):
    """A request for what has been written to a topic since `positions`, or from its end on if there are none.

    It brings at most `count` records, the newest ones, of those that `where` describes. What goes beyond
    `most_bytes` is passed over, so that the next answer begins at the end again.
    """

    topic: str
    positions: Positions = ()
    count: int = DEFAULT_TAIL_RECORDS
    most_bytes: int = DEFAULT_TAIL_BYTES
    isolation: Isolation = Isolation.READ_COMMITTED
    where: Where | None = None


class Held(Struct, frozen=True):
    """A partition whose newest records an open transaction holds back: from `offset` up to below `end`."""

    partition: int
    offset: int
    end: int


class TailAnswer(Struct, frozen=True):
    """What was written to a topic since the last answer, the newest last.

    `passed` records were read, as their batches count them, of which `records` are the newest. The records
    with `skipped` offsets were not read: there are at most as many, because some offsets have none.
    """

    request: TailRequest
    records: tuple[Candidate, ...] = ()
    positions: Positions = ()
    passed: int = 0
    skipped: int = 0
    unknown: int = 0
    """Records of which it is not known whether the filter describes them: they do not decode, or were cut."""
    held: tuple[Held, ...] = ()
    damage: tuple[tuple[int, Damage], ...] = ()
    """(partition, batch that cannot be shown)."""
    unread: tuple[tuple[int, InspectionFailure], ...] = ()
    """(partition, why it could not be read)."""
    restarted: tuple[int, ...] = ()
    """Partitions whose log no longer has the offset that was to be read: they go on from their end."""
    refused: Condition | None = None
    """With MASKED: the condition about something hidden."""
    failure: InspectionFailure = NO_INSPECTION_FAILURE
    """Why no partition could be read."""
    cost: Cost = Cost()
    asked_ms: int = UNKNOWN
    matched: int = 0
    """The number of records that the filter describes, of which `records` are the newest. Without a filter,
    that is the number of `records`."""
