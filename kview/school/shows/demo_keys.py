"""The keys of demos: the list of demos, how one begins on a fresh cluster, and what the keys do in it. The
first-run tour has the same keys."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from kview.errors import KviewError
from kview.language.errors import sentence
from kview.model.events import Severity
from kview.model.lab import Command as LabCommand
from kview.model.lab import Reply
from kview.model.units import UNKNOWN
from kview.school.demos import INCIDENT, Demos, Opening
from kview.school.first_run import TourMark
from kview.school.shows.demo_list import DemoScreen
from kview.school.shows.show import Show
from kview.school.words import demo as said
from kview.school.words import tour as tour_words
from kview.tui.actions import Action
from kview.tui.looks import Look
from kview.tui.screens.commands import Command
from kview.tui.teaching import Teaching
from kview.tui.widgets.bottom import StatusMessage
from kview.tui.widgets.caption import Caption

if TYPE_CHECKING:
    from kview.school.shows.tour import TourShow
    from kview.tui.app import KviewApp

ASKED_FOR_MS = 10_000
"""Within this time, the key that leaves has to be pressed again if it asks first."""


class DemoKeys(Teaching):
    """Carries out the actions `lesson('…')`, and shows demos and the tour.

    `opening` is the demo to begin with, on the cluster that is there. Without it, the tour is shown if it is
    due.
    """

    def __init__(
        self, app: "KviewApp", demos: Demos, opening: Opening | None = None, tour: TourMark | None = None
    ) -> None:
        self._app, self._demos, self._opening, self._tour = app, demos, opening, tour
        self._show: Show | None = None
        self._tour_shown: TourShow | None = None
        self._is_tour_due = False
        self._is_large = False
        self._asked: tuple[str, int] = ("", UNKNOWN)
        """What has to be asked for twice and was asked for once, and when."""

    @property
    def caption(self) -> Caption | None:
        """What the caption strip shows, None if no demo is shown."""
        return None if self._show is None else self._show.caption(self._is_large)

    @property
    def looks(self) -> Sequence[Look]:
        """Where the demo says to look."""
        return () if self._show is None else self._show.looks()

    @property
    def is_on(self) -> bool:
        return self._show is not None

    @property
    def is_demo(self) -> bool:
        return self._show is not None and self._show is not self._tour_shown

    def begin(self) -> None:
        """Begin the demo that the dashboard was started for. The tour begins with the first view, if it is
        due."""
        if self._opening is not None:
            self._set(self._show_of(self._opening.name, self._opening.seed))
        else:
            self._is_tour_due = self._tour is not None and self._tour.is_due

    def _begin_tour(self, tour: TourMark) -> None:
        from kview.school.shows.tour import TourShow

        shown = TourShow(self._app, tour, self._end_tour)
        self._set(shown)
        self._tour_shown = shown
        self._app.faults.is_told_above = True

    async def _show_tour(self, tour: TourMark) -> None:
        self._app.return_to_live()
        self._begin_tour(tour)
        await self._app.go.to("overview")
        self._app.redraw()

    def _end_tour(self) -> None:
        self._set(None)
        self._app.redraw()

    def allows(self, what: str) -> bool:
        if what == "list":
            return True
        if self._show is None:
            return False
        if what.startswith("answer"):
            return int(what.removeprefix("answer")) <= self._show.is_asking
        return what == "large" or self._show.allows(what)

    def label(self, action: Action) -> str | None:
        if self._show is None:
            return None
        if action.run == "back" and self._app.where()[1] <= self._show.depth:
            return said.LEAVE if self.is_demo else tour_words.SKIP
        return self._show.label(action)

    def takes_screen(self, number: int) -> bool:
        return self._show is not None and number <= self._show.is_asking

    def do(self, what: str) -> None:
        if self._asked[0] not in ("", what):
            self._asked = ("", UNKNOWN)
            self._app.clear_message(kept=False)
        if what == "list":
            self._list()
        elif what == "large":
            self._is_large = not self._is_large
            self._app.redraw()
        elif self._show is None:
            return
        elif what == "restart":
            if self._is_sure(what, said.begin_again(self._app.keys.name("spark"))):
                self.start(self._show.name)
        elif not self._show.do(what):
            self._next_demo()

    def leave(self, depth: int) -> bool:
        """Leave the demo or the tour.

        Returns False if there is none, or if the user has opened one of the `depth` screens. Some ask first.
        """
        if self._show is None or depth > self._show.depth:
            return False
        if not self._is_sure("leave", said.leave_again(self._app.keys.name("back"))):
            return True
        left = said.LEFT if self.is_demo else tour_words.LEFT
        self._set(None)
        key = self._app.keys.name("demos")
        self._app.say(StatusMessage(left, f"{key} lists the demos"))
        self._app.redraw()
        return True

    def _is_sure(self, what: str, question: str) -> bool:
        """Return whether to end what is shown. If it has to be asked for twice, `question` is said first."""
        now_ms, (asked, at_ms) = self._app.wall_ms(), self._asked
        if self._show is None or not self._show.asks_to_leave:
            return True
        if asked == what and now_ms - at_ms <= ASKED_FOR_MS:
            return True
        self._asked = (what, now_ms)
        self._app.say(StatusMessage(question))
        return False

    def commands(self) -> list[Command]:
        """Return a command for each demo, and the one that shows the tour."""
        tour = self._tour
        shows = (
            [] if tour is None else [Command("tour", "", tour_words.SHOWS, partial(self._show_tour, tour))]
        )
        listed = self._demos.listed()
        return [
            *shows,
            *(
                Command(
                    f"demo {demo.name}", "", f"{demo.title}: {demo.about}", partial(self.start, demo.name)
                )
                for demo in listed
                if not demo.wrong
            ),
        ]

    def see(self) -> None:
        if self._is_tour_due and self._tour is not None:
            self._begin_tour(self._tour)
        if self._show is not None:
            self._show.see()

    def tick(self) -> None:
        if self._show is not None:
            self._show.tick()

    def start(self, name: str) -> None:
        """Start a demo on a fresh cluster."""
        demos = self._demos
        self._app.return_to_live()
        self._app.clear_message(kept=False)
        seed = demos.seed_of(name)
        try:
            show = self._show_of(name, seed)
        except KviewError as error:
            self._app.say(StatusMessage(sentence(error), severity=Severity.WARN))
            return
        show.begins_at(_NEVER_MS)
        self._set(show)
        self._app.faults.forget()
        self._app.lab.undone()
        self._app.session.opened.incidents = frozenset()
        self._app.redraw()
        self._app.run_worker(self._freshen(demos, show, name, seed), group="demo")

    async def _freshen(self, demos: Demos, show: Show, name: str, seed: int) -> None:
        try:
            show.begins_at(await demos.fresh(name, seed))
        except KviewError as error:
            self._set(None)
            self._app.say(StatusMessage(sentence(error), severity=Severity.WARN))
            self._app.redraw()

    def _set(self, show: Show | None) -> None:
        """Show a demo from now on. In a drill, fault keys and the lab would say what the fault is."""
        self._is_tour_due = False
        self._asked = ("", UNKNOWN)
        if self._tour_shown is not None:
            self._tour_shown.finish()
            self._tour_shown = None
            self._app.faults.is_told_above = False
        self._show = show
        self._app.faults.is_locked = self._app.lab.is_locked = show is not None and show.name == INCIDENT

    def _show_of(self, name: str, seed: int) -> Show:
        """Return a demo that is about to begin. Raises KviewError."""
        from kview.school.shows.drill import DrillShow
        from kview.school.shows.lesson import LessonShow

        if name == INCIDENT:
            return DrillShow(self._app, self._demos, seed)
        return LessonShow(self._app, self._demos, name)

    def _list(self) -> None:
        name = "" if self._show is None else self._show.name
        self._app.push_screen(DemoScreen(self._demos.listed(), name, self.start))

    def _next_demo(self) -> None:
        assert self._show is not None
        names = [demo.name for demo in self._demos.listed() if not demo.wrong]
        at = names.index(self._show.name) + 1 if self._show.name in names else len(names)
        if at < len(names):
            self.start(names[at])

    def fault_done(self, command: LabCommand, reply: Reply, at_ms: int) -> None:
        if self._show is not None:
            self._show.fault_done(command, reply, at_ms)


_NEVER_MS = 1 << 62
"""No observation begins so late: the fresh cluster is not there yet."""
