"""What recordings have of the past: who led a partition, and the course of lag and traffic."""

from typing import NamedTuple

from msgspec import Struct

from kview.model.units import UNKNOWN


class Led(NamedTuple):
    """Who led a partition, and who was in sync, from `at_ms` (epoch ms) on. A leader of −1 is none."""

    at_ms: int
    leader: int
    epoch: int
    isr: tuple[int, ...]


class PartitionHistory(Struct, frozen=True):
    """What a partition went through, the newest first. The last one was so when reading began."""

    led: tuple[Led, ...] = ()
    since_ms: int = UNKNOWN
    """How far back was read, epoch ms, UNKNOWN if nothing was."""
    complete: bool = True
    """Whether the whole recording was read. Reading ends after some seconds."""


MOST_GROUPS = 100
"""The most groups of a course, because each is followed by itself."""


class CourseOf(Struct, frozen=True):
    """What a course is asked for: a topic with the groups that read it, or (with an empty `topic`) groups
    alone. Groups beyond MOST_GROUPS are left out."""

    topic: str
    groups: tuple[str, ...]
    span_ms: int
    """How much time before `until_ms`, UNKNOWN for everything."""
    until_ms: int


class Peak(NamedTuple):
    """The greatest lag of a course, whose it was and when."""

    lag: int
    is_bound: bool
    group: str
    at_ms: int
    """The epoch ms at which the second of the greatest lag begins."""


class Course(Struct, frozen=True):
    """What recordings have of a topic or of groups over time, in steps of equal length, oldest first.

    Each step has the greatest value of its seconds, so that no spike is averaged away, and NaN if nothing is
    known of any of them: a gap that is shorter than a step is not seen.
    """

    from_ms: int = 0
    step_ms: int = 1000
    lag: tuple[float, ...] = ()
    """Records, of the group that was furthest behind then."""
    behind_s: tuple[float, ...] = ()
    """Lag in time, seconds, of the group that was furthest behind in time then."""
    records_in: tuple[float, ...] = ()
    """Records per second into the topic, () for groups alone."""
    records_out: tuple[float, ...] = ()
    """Records per second that groups read of the topic, by their commits."""
    peak: Peak | None = None
    since_ms: int = UNKNOWN
    """The first recorded moment, epoch ms; UNKNOWN if nothing is recorded."""
    behind_is_bound: bool = False
    """Whether some of `behind_s` are lower bounds."""

    @property
    def until_ms(self) -> int:
        """Where the last step ends."""
        return self.from_ms + self.step_ms * len(self.lag)
