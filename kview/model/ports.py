"""What the screen is handed: a feed of pictures, and, where the cluster is ours, its faults. Implemented by
`run`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from kview.model.notices import Notice
from kview.model.units import UNKNOWN

V = TypeVar("V", covariant=True)


class Feed(Protocol[V]):
    """A source of pictures; calls back on a thread of its own."""

    def start(self, on_view: Callable[[V], None], on_notice: Callable[[Notice], None]) -> None:
        """Begin; returns at once."""
        ...

    def stop(self) -> None:
        """End within a second; no call back after it returns."""
        ...


@dataclass(frozen=True, slots=True)
class Moment:
    """Which moment a picture shows, and how time goes on from there."""

    live: bool = True
    """It is the newest observation, and the next one takes its place."""
    playing: bool = True
    """The next picture comes by itself. Neither live nor playing: paused."""
    speed: int = 1
    """Recorded seconds that pass in one, while it is not live."""
    first_ms: int = UNKNOWN
    last_ms: int = UNKNOWN
    """The first and the last moment one can go to, epoch ms; UNKNOWN where there is no recording."""
    complete: bool = True
    """False while figures that need the past are still being calculated: they are shown as `…`."""


class Timeline(Protocol):
    """The controls of time. Every one returns at once; what it brings is a picture, or a notice about what
    cannot be. They are called on the screen's thread."""

    @property
    def replay(self) -> bool:
        """Whether there is nothing but a recording: no live moment to return to."""
        ...

    def toggle(self) -> None:
        """Pause; or go on: live where there is a cluster, else from the moment shown."""
        ...

    def step(self, by: int) -> None:
        """Pause, and go so many observations on, or back."""
        ...

    def faster(self, steps: int) -> None:
        """Play faster (1) or slower (−1)."""
        ...

    def seek(self, ms: int) -> None:
        """Go to the last observation at or before a time, epoch ms."""
        ...

    def seek_event(self, direction: int) -> None:
        """Pause, and go to the next (1) or the previous (−1) observation at which something happened."""
        ...

    def live(self) -> None:
        """Return to the newest observation; in a replay, go to the last one."""
        ...

    def keep(self, name: str) -> None:
        """Keep what was recorded under a name."""
        ...


class SparkJob(Protocol):
    """The background job that makes aggregates."""

    def restart(self) -> None:
        """Start it, or end it and start it anew; returns at once."""
        ...
