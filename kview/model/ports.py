"""The interfaces through which the screen receives views and controls what is behind it.

The room `run` implements them.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol, TypeVar

from msgspec import Struct

from kview.model.history import Course, CourseOf, PartitionHistory
from kview.model.inspection import A, Question
from kview.model.notices import Notice
from kview.model.units import UNKNOWN

V = TypeVar("V", covariant=True)


class Feed(Protocol[V]):
    """A source of views, which calls back on its own thread."""

    def start(self, on_view: Callable[[V], None], on_notice: Callable[[Notice], None]) -> None:
        """Start the feed, and return at once."""
        ...

    def stop(self) -> None:
        """Stop the feed within a second. No callback comes after this returns."""
        ...


class TimeMark(NamedTuple):
    """An incident on the time bar. All times are in epoch ms, UNKNOWN for what has not happened yet."""

    began_ms: int
    shown_ms: int
    """When the first observation that shows it ended."""
    healing_ms: int
    """Since when nothing has been lost or frozen any more, while replicas are still catching up."""
    ended_ms: int


class Moment(Struct, frozen=True):
    """Which moment a view shows, and how time continues from there."""

    live: bool = True
    """Whether the view shows the newest observation, and follows the next one."""
    playing: bool = True
    """Whether the next view comes by itself. Time is paused if neither `live` nor `playing` is true."""
    speed: int = 1
    """Recorded seconds per second while not live."""
    first_ms: int = UNKNOWN
    last_ms: int = UNKNOWN
    """The first and last moment the user can step to, in epoch ms. UNKNOWN if there is no recording."""
    marks: tuple[TimeMark, ...] = ()
    """The incidents between these two moments, as far as they are known."""
    reading_ms: int = UNKNOWN
    """The moment that takes the place of this one once it is read, epoch ms. UNKNOWN if there is none."""


class Timeline(Protocol):
    """Controls the moment shown.

    Every method returns at once and is called on the screen's thread. The result arrives as a view, or as a
    notice if the action was not possible.
    """

    @property
    def replay(self) -> bool:
        """Whether a recording is the only source, with no live moment to return to."""
        ...

    def toggle(self) -> None:
        """Pause, or resume: live if there is a cluster, otherwise from the moment shown."""
        ...

    def step(self, by: int) -> None:
        """Pause, and step `by` observations forward (negative: back)."""
        ...

    def faster(self, steps: int) -> None:
        """Play faster (1) or slower (−1)."""
        ...

    def seek(self, ms: int) -> None:
        """Jump to the last observation at or before `ms`, in epoch ms."""
        ...

    def seek_event(self, direction: int) -> None:
        """Pause, and jump to the next (1) or previous (−1) observation at which something happened."""
        ...

    def live(self) -> None:
        """Return to the newest observation. In a replay, jump to the last observation."""
        ...

    def keep(self, name: str) -> None:
        """Keep the recording under `name`."""
        ...

    async def history(self, topic: str, partition: int) -> PartitionHistory:
        """Read the leaders and ISRs that a partition had, as far as the recording goes. Never raises."""
        ...

    async def course(self, asked: CourseOf) -> Course | None:
        """Read the course of a topic or of groups, as far as recordings go.

        Returns an empty one if nothing is recorded, None if it could not be read. Never raises.
        """
        ...


class SparkJob(Protocol):
    """The background job that calculates aggregates with Spark."""

    def restart(self) -> None:
        """Start the job, or end it and start it again. Returns at once."""
        ...

    def watch(self, is_watched: bool) -> None:
        """Say whether its figures are on the screen. Otherwise it takes longer steps. Returns at once."""
        ...


class Attention(Protocol):
    """Requests from the screen to the observer. All methods may be called from any thread and return at
    once."""

    def dismiss(self, broker: int) -> None:
        """Remove the row of a broker that the cluster no longer lists, from the next observation on.

        A broker that the cluster still lists stays.
        """
        ...

    def prefer(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Read these (topic, partition) pairs in every observation, and their topics' settings every few
        seconds.

        They are read even if there are too many partitions to read all of them. They replace the pairs
        preferred before. NO_PARTITION is for a topic of which only the settings are meant.
        """
        ...


class Inspector(Protocol):
    """Requests to a cluster that somebody makes on demand. Nothing that is answered is recorded.

    A question is awaited on the screen's loop, never raises, and ends at its own deadline. A task that is
    cancelled sends no further requests.
    """

    @property
    def reads_records(self) -> bool:
        """Whether records may be read at all."""
        ...

    async def ask(self, question: Question[A]) -> A:
        """Return the answer. Records are read without a group, and nothing is committed."""
        ...


class Saving(Protocol):
    """A file that is being written. It has its name only once it is complete."""

    def add(self, text: str) -> None:
        """Write more text. Raises KviewError if that is not possible. May be called from any thread."""
        ...

    def finish(self) -> str:
        """Complete the file, and return its path. Raises KviewError if that is not possible."""
        ...

    def cancel(self) -> None:
        """Remove what was written."""
        ...


class Saves(Protocol):
    """The folder for what the user saves from the screen."""

    def begin(self, name: str, suffix: str) -> Saving:
        """Begin a file, with a number after its name if there is such a file.

        Raises KviewError if that is not possible.
        """
        ...
