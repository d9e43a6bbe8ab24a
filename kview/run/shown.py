"""What a run shows, and how."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kview.model.lab import Lab
from kview.model.notices import Notice
from kview.model.ports import Profiles
from kview.run.observing import AttentiveSource, Taker
from kview.run.settings import Display

if TYPE_CHECKING:
    from kview.school.demos import Demos, Opening


@dataclass(frozen=True, kw_only=True)
class Shown:
    """What is shown, and how."""

    source: AttentiveSource
    name: str
    """What the source is called on the screen."""
    display: Display
    opening: Sequence[Notice] = ()
    """Notices to begin with."""
    profiles: Profiles | None = None
    """The clusters that a dashboard offers instead."""
    lab: Lab | None = None
    demos: "Demos | None" = None
    demo: "Opening | None" = None
    """The demo that a dashboard begins with."""
    takers: Sequence[Taker] = ()
    """What gets every snapshot and its view, too."""
