"""Takes the dashboard to where a lesson's step can be seen, and selects what the step marks."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kview.model.lab import Command
from kview.school.look import Mark
from kview.school.moment import split
from kview.school.shows.places import WIDE, Place, Subjects, looks, place
from kview.tui.looks import Look

if TYPE_CHECKING:
    from kview.tui.app import KviewApp

MOST_TRIES = 25
"""How often marked rows are looked for: five seconds, in which any screen is drawn."""


class Sight:
    """What is in sight of a lesson."""

    def __init__(self, app: "KviewApp", about: Subjects) -> None:
        self._app, self._about = app, about
        self._marks: Sequence[Mark] = ()
        self._key: Command | None = None
        """The fault whose key is to be pressed on what is marked."""
        self._place: Place | None = None
        self._is_wide = app.size.width >= WIDE
        self._tries = 0
        """How often the rows that are marked are still looked for."""

    @property
    def depth(self) -> int:
        """How many screens are shown on each other."""
        return 1 if self._place is None else self._place.depth

    def looks(self) -> Sequence[Look]:
        """Return where to look on the screen shown."""
        return () if self._place is None else looks(self._marks, self._place, self._app.view)

    def show(self, marks: Sequence[Mark], key: Command | None) -> None:
        """Go to where `marks` can be seen, and where `key` can be pressed on them if it is not None."""
        self._marks, self._key = marks, key
        self._about = self._about.after(marks)
        wanted = place(marks, key is not None, self._about, self._app.size.width)
        self.point_again()
        if wanted is None:
            self._place = self._place or Place("overview")
        elif wanted != self._place or self._app.where() != (wanted.mode, wanted.depth):
            self._app.run_worker(self._open(wanted), group="lesson place")
            self._place = wanted

    def point_again(self) -> None:
        """Select what is marked as soon as it is drawn."""
        self._tries = MOST_TRIES

    def tick(self, looks: Sequence[Look]) -> None:
        """Select what is marked, if it is not yet; follow the terminal's size."""
        if self._tries:
            self._tries -= 1
            self._point(looks)
        self._follow_size()

    def _follow_size(self) -> None:
        """Show what the step is about where there is room for it, if the terminal has another size now."""
        is_wide, place = self._app.size.width >= WIDE, self._place
        if is_wide == self._is_wide:
            return
        self._is_wide = is_wide
        if place is not None and self._app.where() == (place.mode, place.depth) and self._app.live:
            self.show(self._marks, self._key)

    async def _open(self, wanted: Place) -> None:
        await self._app.go.to(wanted.mode)
        if wanted.partition:
            self._app.go.partition(*split(wanted.partition))
        elif wanted.group:
            self._app.go.group(wanted.group)
        self.point_again()

    def _point(self, looks: Sequence[Look]) -> None:
        """Select the rows that are marked, so that they are in sight, and the broker that a key will hit."""
        screen = self._app.shown()
        if screen is None:
            return
        broker = self._app.faults.broker_for(self._key) if self._key is not None else None
        if screen.point(looks, broker):
            self._tries = 0
            self._app.redraw()
