"""Shows the first-run tour: five captions about the overview, which end with a fault, and what it did."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from kview.derive.incidents.outcome import Led, led_by, outcome, rejoined
from kview.derive.view import Verdict
from kview.language import glyphs
from kview.model.lab import Command, CommandKind, Done, NodeRole, Outcome, Reply
from kview.school.first_run import TourMark
from kview.school.shows.show import Show
from kview.school.words import demo as demo_words
from kview.school.words import tour as said
from kview.tui.actions import Action
from kview.tui.layout import SIDE_BY_SIDE_WIDTH
from kview.tui.looks import Look
from kview.tui.text import Role
from kview.tui.widgets.bottom import StatusMessage
from kview.tui.widgets.caption import Caption, Paragraph

if TYPE_CHECKING:
    from kview.tui.app import KviewApp

OVERVIEW = "overview"
"""The screen that the tour is about."""

GROUPS = "groups"
"""The screen of groups: a narrow overview does not list them."""

_PANELS: tuple[tuple[str, ...], ...] = (
    ("brokers", "strips"),
    ("partitions",),
    ("groups", "groups_below", "groups_line"),
    ("keys",),
    ("brokers", "strips"),
)
"""The widgets that are marked in each step."""

_ENDS = (CommandKind.START, CommandKind.UNDO)
"""The commands that end faults."""

_MOVES = (CommandKind.CRASH, CommandKind.STOP, CommandKind.HANG)
"""The faults after which other brokers lead what a broker led."""


class TourShow(Show):
    """The tour that is shown, on the cluster that is there. `end` is called when the last caption has been
    read."""

    name = "tour"

    def __init__(
        self,
        app: "KviewApp",
        tour: TourMark,
        end: Callable[[], None],
    ) -> None:
        self._app, self._tour, self._end = app, tour, end
        self.number = 0
        """The number of the caption that is shown, from 0."""
        self._done: Done | None = None
        """What was done last to the cluster."""
        self._led: Led | None = None
        self._at_ms = 0
        self._outcome: Outcome | None = None
        self._is_to_point = False
        self._is_whole = False
        """Whether what was restored is in sync again."""

    # -- what is shown

    def caption(self, is_large: bool) -> Caption | None:
        """Return the caption, None before the first view: there is nothing to see yet."""
        keys = self._app.keys
        if self._app.view is None:
            return None
        space, leave = (keys.name("pause"), "next"), (keys.name("back"), said.SKIP)
        before = (keys.name("previous-step"), "back")
        if self.number == len(said.STEPS):
            return Caption(
                said.HEADING,
                said.THE_END,
                tuple(self._told()),
                ((keys.name("pause"), said.ENDS), before),
                is_large,
            )
        text = said.STEPS[self.number].format(**_Names(self._app))
        where = demo_words.step_of(self.number, len(said.STEPS))
        shown = (space, leave, before) if self.number else (space, leave)
        body = [Paragraph(text), *(self._about_groups() if self.number == said.GROUPS_STEP else ())]
        if self._done is not None:
            body.append(Paragraph(said.early(self._done, space[0]), Role.KEY, glyphs.PLAYING))
        elif self.number == len(said.STEPS) - 1:
            body.append(Paragraph(self._prompt(), Role.KEY, glyphs.PLAYING))
            shown = (leave, before)
        return Caption(said.HEADING, where, tuple(body), shown, is_large)

    def _about_groups(self) -> list[Paragraph]:
        """Return what the sign of a group on the screen means, and what else to know about lag."""
        view = self._app.view
        assert view is not None
        stopped = np.flatnonzero(view.groups.verdict == Verdict.STOPPED)
        worst = stopped[view.groups.place[stopped].argsort()][:1].tolist()
        return [
            *(Paragraph(said.stopped(str(view.snapshot.groups.group[row]))) for row in worst),
            Paragraph(said.TRAP, rank=1),
        ]

    def _prompt(self) -> str:
        """Return what to press, for the broker that is selected now."""
        screen, key = self._app.shown(), self._app.keys.name("crash")
        target = screen.target() if screen is not None else None
        if target is None:
            return said.select_first(key)
        return demo_words.to_press(Command(CommandKind.CRASH, target.broker), key, is_aimed=True)

    def _told(self) -> list[Paragraph]:
        """Return what the fault did, what to see now, and how to undo it."""
        keys, done = self._app.keys, self._done
        assert done is not None
        paragraphs = [Paragraph(said.happened(done, self._outcome, self._is_whole))]
        if done.kind not in _ENDS:
            back = said.way_back(keys.name("restore"), self._app.faults.back_name, keys.name("undo-faults"))
            paragraphs.append(Paragraph(back, Role.KEY, glyphs.PLAYING))
        if self._led is None or self._outcome is not None:  # There is nothing to wait for.
            paragraphs.append(Paragraph(said.more(keys.name("demos"), keys.name("find")), Role.DIM, rank=1))
        return paragraphs

    def looks(self) -> Sequence[Look]:
        if self._app.where()[0] != self._mode() or self._app.view is None:
            return ()
        if self.number < len(said.STEPS):
            return (Look(frozenset(_PANELS[self.number])),)
        done = self._done
        if done is None or done.role is not NodeRole.BROKER:
            return (Look(frozenset({"headline"})),)
        rows = [Look(frozenset({"brokers"}), node) for node in done.nodes]
        return (*rows, Look(frozenset({"partitions"})))

    # -- what is seen

    def see(self) -> None:
        view, done = self._app.view, self._done
        if view is None or not view.moment.live:
            return
        if self._led is not None and done is not None and self._outcome is None:
            self._outcome = outcome(view, done.kind, done.nodes[0], self._led, self._at_ms)
        if done is not None and not self._is_whole:
            self._is_whole = rejoined(view, done, self._at_ms)

    def tick(self) -> None:
        """Select a broker, once its row is there."""
        screen, view = self._app.shown(), self._app.view
        if self._is_to_point and screen is not None and view is not None:
            brokers = view.snapshot.brokers.id
            is_aimed = screen.selected_broker() is not None
            if is_aimed or (len(brokers) and screen.point((), int(brokers[0]))):
                self._is_to_point = False
                self._app.redraw()

    def fault_done(self, command: Command, reply: Reply, at_ms: int) -> None:
        """Show what a fault did, whichever was caused. One that is caused before its step waits for that."""
        done, view = reply.done, self._app.view
        if done is None:
            return
        is_early = self.number < len(said.STEPS) - 1
        if done.kind in _ENDS and (self._done is None or is_early):
            self._done = self._led = None  # The last step asks for another one.
            self._app.say(StatusMessage(said.happened(done, None)))
            self._app.redraw()
            return
        self._done, self._at_ms, self._outcome, self._led = done, at_ms, None, None
        self._is_whole = False
        if view is not None and done.kind in _MOVES and done.role is NodeRole.BROKER:
            self._led = led_by(view, done.nodes[0])
        if not is_early:
            self._show(len(said.STEPS))
        self._app.redraw()

    # -- keys

    def allows(self, what: str) -> bool:
        return what == "next" or (what == "before" and self.number > 0)

    def label(self, action: Action) -> str | None:
        if action.run != "lesson('next')":
            return None
        if not self._app.live:
            return demo_words.TO_NOW
        if self.number == len(said.STEPS):
            return said.ENDS
        return "" if self.number == len(said.STEPS) - 1 and self._done is None else demo_words.NEXT_STEP

    def do(self, what: str) -> bool:
        if what == "before":
            self._show(self.number - 1)
        elif not self._app.live:
            self._app.return_to_live()
        elif self.number == len(said.STEPS):
            self._end()
        elif self.number == len(said.STEPS) - 1 and self._done is None:
            keys = self._app.keys
            self._app.say(StatusMessage(said.leave_first(keys.name("crash"), keys.name("back"))))
        else:
            self._show(self.number + 1)
        return True

    def finish(self) -> None:
        """Take note that it is no longer shown."""
        self._tour.done()

    def _mode(self) -> str:
        """Return the screen that shows what the caption is about."""
        is_narrow = self._app.size.width < SIDE_BY_SIDE_WIDTH
        return GROUPS if self.number == said.GROUPS_STEP and is_narrow else OVERVIEW

    def _show(self, number: int) -> None:
        self.number = number
        if number == len(said.STEPS):
            self._tour.done()
        self._is_to_point = number == len(said.STEPS) - 1
        if number < len(said.STEPS) and self._app.where() != (mode := self._mode(), 1):
            self._app.run_worker(self._open(mode), group="lesson place")
        self.tick()
        self._app.redraw()

    async def _open(self, mode: str) -> None:
        await self._app.go.to(mode)
        self._app.redraw()


class _Names(dict[str, str]):
    """The keys that the captions name."""

    def __init__(self, app: "KviewApp") -> None:
        keys = app.keys
        super().__init__(
            {name: keys.name(name) for name in ("open", "back", "find", "help", "crash")},
            screens=f"{keys.name('overview')}–{keys.name('lab')}",
        )
