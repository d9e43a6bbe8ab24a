"""Adjustments of a simulated cluster that are not faults: its traffic, its links and its settings."""

from enum import StrEnum

from msgspec import Struct

from kview.errors import ErrorFacts
from kview.model.units import UNKNOWN_ID


class AdjustmentKind(StrEnum):
    """What can be adjusted, named as people type it."""

    RATE = "rate"
    """A producer creates `amount` records per second from now on."""
    PAUSE = "pause"
    """The members of a group go on sending heartbeats, but read nothing."""
    RESUME = "resume"
    PAUSE_PRODUCER = "pause-producer"
    """A producer creates no records until it is resumed, or gets another rate."""
    RESUME_PRODUCER = "resume-producer"
    ADD_MEMBER = "add-member"
    REMOVE_MEMBER = "remove-member"
    """The youngest member commits and leaves its group."""
    KILL_MEMBER = "kill-member"
    """The youngest member ends without a word: its group waits until its session ends."""
    SET = "set"
    """A topic's setting `key` has the value `value`."""
    UNSET = "unset"
    """A topic has no value of its own for the setting `key` any more."""
    BANDWIDTH = "bandwidth"
    """A broker's network carries `amount` bytes per second in each direction."""
    ELECT = "elect"
    """Partitions of a topic that have no leader get one, even if it lacks committed records."""


class Adjustment(Struct, frozen=True):
    """One adjustment. `name` is that of a producer, group or topic, and `broker` a broker's id."""

    kind: AdjustmentKind
    name: str = ""
    broker: int = UNKNOWN_ID
    amount: float = 0.0
    key: str = ""
    value: str = ""


class AdjustmentReply(Struct, frozen=True):
    """The outcome of an adjustment: None if it was made, else why it was refused.

    `undone_by` undoes what was made. It is None if nothing does, or if nothing has changed.
    """

    refused: ErrorFacts | None = None
    undone_by: Adjustment | None = None
