"""Shows lessons: their captions, where to look, and their keys."""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from kview.errors import error_of
from kview.language import words
from kview.language.errors import sentence
from kview.model.lab import Command, CommandKind, NodeRole, Reply
from kview.model.units import UNKNOWN
from kview.school.conduct import Conduct, Phase
from kview.school.demos import Demos
from kview.school.look import mark
from kview.school.moment import Moment
from kview.school.shows.captions import answered, paragraphs
from kview.school.shows.places import first_subjects
from kview.school.shows.show import Show
from kview.school.shows.sight import Sight
from kview.school.words import demo as said
from kview.tui.actions import Action, Keys, Kind
from kview.tui.fault_keys import FaultKeys
from kview.tui.faults import FAULTS_BY_KEY
from kview.tui.looks import Look
from kview.tui.text import Role
from kview.tui.widgets.bottom import SHOWN_MS, StatusMessage
from kview.tui.widgets.caption import Caption, Paragraph

if TYPE_CHECKING:
    from kview.tui.app import KviewApp

READ_FIRST_MS, READ_MS_PER_CHARACTER = 2_500, 45
"""How long a caption stays when a lesson runs by itself: about the pace of somebody who reads aloud."""

ANSWERS = ("overview", "placement", "topics", "partitions")
"""The actions whose keys choose an answer."""

_CAUSES = {"crashed": CommandKind.CRASH, "stopped": CommandKind.STOP, "hung": CommandKind.HANG}
"""The fault that brings a node into a state; SLOW for the others."""


class LessonShow(Show):
    """A lesson that is shown."""

    def __init__(self, app: "KviewApp", demos: Demos, name: str) -> None:
        lesson, staged = demos.lesson(name)
        self.name = name
        self.conduct = Conduct(lesson, staged)
        self.is_auto = False
        self._app, self._demos = app, demos
        about = first_subjects([list(map(mark, staged_step.step.look)) for staged_step in staged])
        self._sight = Sight(app, about)
        self._is_asking = False
        self._past: int | None = None
        """The number of the earlier step that is shown."""
        self._away_since_ms = 0
        self._insisted_ms = UNKNOWN
        self._read_from_ms = 0

    # -- what is shown

    @property
    def depth(self) -> int:
        return self._sight.depth

    @property
    def is_asking(self) -> int:
        question = self.conduct.staged.step.question
        asks = self.conduct.phase is Phase.QUESTION and self._past is None and question is not None
        return len(question.answers) if asks and question is not None else 0

    def caption(self, is_large: bool) -> Caption:
        conduct, keys, app = self.conduct, self._app.keys, self._app
        space, back = keys.name("pause"), keys.name("previous-step")
        leave, auto = (keys.name("back"), "leave"), keys.name("ignored-groups")
        title = conduct.lesson.title
        if conduct.phase is Phase.OVER and self._past is None:
            text = said.over(title, conduct.steps, *conduct.right_answers)
            body = [Paragraph(text)]
            if following := self._following:
                body.append(Paragraph(said.next_demo(following[1], space), Role.KEY, rank=1))
            return Caption(
                f"DEMO {title}", "the end", tuple(body),
                ((keys.name("spark"), "again"), leave, (keys.name("demos"), "demos")), is_large,
            )  # fmt: skip
        if self._past is not None:
            played = conduct.played[self._past]
            step = conduct.staged_at(self._past).step
            body = [Paragraph(played.caption)]
            if step.question is not None and played.answered:
                body.append(answered(step.question, played.answered))
            clock = words.clock(played.at_ms, app.zone, tenths=False)
            body.append(Paragraph(said.past(clock, space), Role.KEY))
            return Caption(
                f"DEMO {title}", said.step_of(self._past, conduct.steps), tuple(body),
                ((space, said.TO_NOW), leave, *(((back, "step before"),) if self._past else ())), is_large,
                short=(title, said.short_step(self._past, conduct.steps)),
            )  # fmt: skip
        number = min(conduct.number, conduct.steps - 1)
        again = (_fault_key(conduct, keys), keys.name("spark"))
        body = paragraphs(
            conduct, self._prompt(), _way_back(conduct, keys, self._app.faults), again, app.now_ms()
        )
        where = said.step_of(number, conduct.steps) + (f", {said.BY_ITSELF}" if self.is_auto else "")
        first = [(space, does)] if (does := self._space_does()) else []
        if self.is_asking and app.live:
            first = [(keys.names(ANSWERS[: self.is_asking]), "answer")]
        elif conduct.is_replaced:
            first = [(keys.name("spark"), "start again")]
        rest = [(back, "back")] if number else []
        return Caption(
            f"DEMO {title}", where, tuple(body),
            (*first, leave, *rest, (auto, said.STOP if self.is_auto else said.BY_ITSELF)), is_large,
            short=(title, said.short_step(number, conduct.steps)),
        )  # fmt: skip

    def looks(self) -> Sequence[Look]:
        return () if self.conduct.phase in (Phase.STARTING, Phase.OVER) else self._sight.looks()

    def _prompt(self) -> str:
        return _to_press(self.conduct, self._app.keys, self._app.faults)

    @cached_property
    def _following(self) -> tuple[str, str] | None:
        """Name and title of the next lesson. To list the lessons, all their files are read."""
        listed = [demo for demo in self._demos.listed() if not demo.wrong]
        at = next((at for at, demo in enumerate(listed) if demo.name == self.name), -1)
        return (listed[at + 1].name, listed[at + 1].title) if 0 <= at < len(listed) - 1 else None

    # -- what is seen

    def see(self) -> None:
        app, view = self._app, self._app.view
        if view is None:
            return
        if not view.moment.live:
            self._away_since_ms = self._away_since_ms or app.wall_ms()
            return
        if self._away_since_ms:
            self.conduct.was_away(app.wall_ms() - self._away_since_ms)
            self._away_since_ms, self._past = 0, None
        if view.snapshot.observation.began_ms < self._from_ms or self._is_asking:
            return
        self._is_asking = True
        app.run_worker(self._ask(), group="lesson")

    async def _ask(self) -> None:
        view, conduct = self._app.view, self.conduct
        try:
            counters, in_force = await self._demos.counters(), await self._demos.lab.active()
        finally:
            self._is_asking = False
        if view is None or counters is None or conduct.phase is Phase.OVER:
            return
        seen, before = view.snapshot.observation, conduct.phase
        conduct.see(Moment(view, counters), seen.began_ms, seen.ended_ms, in_force or ())
        if before is Phase.STARTING:
            self._arrive()
        elif before is not conduct.phase:
            self._read_from_ms = self._app.wall_ms()
            if self._insists:  # What was skipped has come true: the key means the next step again.
                self._insisted_ms = UNKNOWN
                self._app.clear_message(kept=False)
        self._act()
        self._app.redraw()

    def _act(self) -> None:
        """Begin what the step does by itself."""
        if self.conduct.phase is Phase.ACT and not self._is_acting:
            self._is_acting = True
            self._app.run_worker(self._carry_out(self.conduct.staged.acts), group="lesson acts")

    _is_acting = False

    async def _carry_out(self, acts: Sequence[Command]) -> None:
        refused = ""
        at_ms = self._app.wall_ms()
        for command in acts:
            reply = await self._demos.lab.apply(command)
            if reply.refused is not None:
                refused = sentence(error_of(reply.refused))
        in_force = await self._demos.lab.active()
        self._is_acting = False
        if self.conduct.phase is Phase.ACT:
            self.conduct.acted(in_force, at_ms, refused)
        self._app.redraw()

    def fault_done(self, command: Command, reply: Reply, at_ms: int) -> None:
        self.conduct.pressed(command, reply.active, at_ms)
        self._app.redraw()

    def tick(self) -> None:
        """Go on if the lesson runs by itself and the caption has been read; point at what is marked."""
        self._sight.tick(self.looks())
        conduct = self.conduct
        if not self.is_auto or self._past is not None or not self._app.live or conduct.is_replaced:
            return
        if conduct.phase in (Phase.STARTING, Phase.ACT, Phase.OVER):
            return
        length = len(conduct.played[-1].caption)
        question = conduct.staged.step.question
        if question is not None and conduct.phase is Phase.QUESTION:
            length += len(question.text) + sum(map(len, question.answers))
        elif question is not None:
            length += len(question.because)
        if self._app.wall_ms() - self._read_from_ms < READ_FIRST_MS + READ_MS_PER_CHARACTER * length:
            return
        self._read_from_ms = self._app.wall_ms()
        match conduct.phase:
            case Phase.QUESTION:
                assert question is not None
                self.answer(question.right)
            case Phase.PRESS:
                assert conduct.staged.key is not None
                self._app.faults.give(conduct.staged.key)
            case Phase.DONE:
                self.next()

    # -- keys

    def allows(self, what: str) -> bool:
        shown = self.conduct.number if self._past is None else self._past
        return what in ("next", "auto", "restart") or (what == "before" and shown > 0)

    def label(self, action: Action) -> str | None:
        if action.run == "lesson('next')":
            return self._space_does()
        return _label(action, self.conduct, self._is_away, self.is_auto)

    @property
    def _is_away(self) -> bool:
        """Whether an earlier moment is shown."""
        return self._past is not None or not self._app.live

    @property
    def _insists(self) -> bool:
        """Whether the key of the next step was pressed early, and that is not forgotten yet."""
        return self._insisted_ms != UNKNOWN and self._app.wall_ms() - self._insisted_ms <= SHOWN_MS

    def _space_does(self) -> str:
        if self._is_away:
            return said.TO_NOW
        if self.conduct.phase is Phase.OVER and self._following is not None:
            return said.NEXT_DEMO
        return _next_does(self.conduct, self._insists)

    def do(self, what: str) -> bool:
        match what:
            case "next":
                return self.next()
            case "before":
                self.before()
            case "auto":
                self.toggle_auto()
            case _:
                self.answer(int(what.removeprefix("answer")))
        return True

    def next(self) -> bool:
        """Go to the next step, or return to it from an earlier one. Returns False after the last step."""
        conduct, app = self.conduct, self._app
        if self._past is not None or not app.live:
            self._past = None
            app.return_to_live()
            self._show()
            return True
        match conduct.phase:
            case Phase.OVER:
                return False
            case _ if conduct.is_replaced:
                app.say(StatusMessage(said.replaced(app.keys.name("spark"))))
            case Phase.QUESTION:
                app.say(StatusMessage(said.NO_ANSWER))
            case Phase.PRESS:
                app.say(StatusMessage(self._prompt(), f"{app.keys.name('ignored-groups')} does it for you"))
            case Phase.WATCH if not self._insists:
                self._insisted_ms = app.wall_ms()
                app.say(StatusMessage(said.still_waits(app.keys.name("pause"))))
            case Phase.WATCH | Phase.DONE:
                app.clear_message(kept=False)  # It is about the step before.
                conduct.next(app.now_ms())
                self._arrive()
                self._act()
        self._app.redraw()
        return True

    def before(self) -> None:
        """Show the step before the one that is shown, from the recording."""
        number = min(self.conduct.number, self.conduct.steps) if self._past is None else self._past
        if number == 0:
            return
        self._past = number - 1
        self._show()
        self._app.show_moment(self.conduct.played[self._past].at_ms)
        self._app.redraw()

    def answer(self, number: int) -> None:
        """Answer the question. `number` counts from 1, and does nothing beyond the last answer."""
        if 0 < number <= self.is_asking:
            self.conduct.answer(number, self._app.now_ms())
            self._read_from_ms = self._app.wall_ms()
            self._sight.point_again()
            self._act()
            self._app.redraw()

    def toggle_auto(self) -> None:
        """Let the lesson run by itself, or stop that."""
        self.is_auto = not self.is_auto
        self._read_from_ms = self._app.wall_ms()
        if self.is_auto and self.conduct.phase is Phase.PRESS:
            self._read_from_ms = 0  # The person asked for the key to be pressed.
        self._app.redraw()

    def _arrive(self) -> None:
        """Show what the step is about."""
        self._insisted_ms = UNKNOWN
        self._read_from_ms = self._app.wall_ms()
        if self.conduct.phase is not Phase.OVER:
            self._show()

    def _show(self) -> None:
        number = self._past if self._past is not None else min(self.conduct.number, self.conduct.steps - 1)
        key = self.conduct.staged.key
        presses = self._past is None and key is not None and self._app.faults.aims(key)
        marks = [mark(text) for text in self.conduct.staged_at(number).step.look]
        self._sight.show(marks, key if presses else None)


# -- what the keys do


def _next_does(conduct: Conduct, insists: bool) -> str:
    """Return what the key of the next step does, '' if it only says what to do instead.

    While the step waits, the key asks first, unless somebody `insists`: it was pressed once.
    """
    if conduct.is_replaced:
        return ""
    match conduct.phase:
        case Phase.WATCH:
            return said.SKIP_WAIT if insists else said.SKIP_ASKS
        case Phase.DONE:
            return said.FINISH if conduct.number == conduct.steps - 1 else said.NEXT_STEP
    return ""


def _label(action: Action, conduct: Conduct, is_away: bool, is_auto: bool) -> str | None:
    """Return what another key does, '' if the key line leaves it out, None if that is as always.

    `is_away` says whether an earlier moment is shown, and `is_auto` whether the lesson runs by itself.
    """
    if action.run == "lesson('auto')":
        return "" if conduct.phase is Phase.OVER or is_away else said.STOP if is_auto else None
    key = conduct.staged.key
    if conduct.phase is not Phase.PRESS or is_away or key is None or action.kind is not Kind.FAULT:
        return None
    fault = FAULTS_BY_KEY.get(action.keys[0])
    return action.label if fault is not None and fault.kind is key.kind else None


# -- which keys a step asks for, and which ones end or repeat what was done besides


def _to_press(conduct: Conduct, keys: Keys, faults: FaultKeys) -> str:
    """Return what to press for the step, '' if it asks for no key."""
    key = conduct.staged.key
    if key is None:
        return ""
    fault = next(fault for fault in FAULTS_BY_KEY.values() if fault.kind is key.kind)
    return said.to_press(key, keys.name(fault.name), faults.would_do(key))


def _way_back(conduct: Conduct, keys: Keys, faults: FaultKeys) -> str:
    """Return how to end the faults that the step did not ask for, '' if there are none."""
    name, extra = faults.back_name, conduct.extra
    if not extra:
        return ""
    if name and any(name.endswith(f" {fault.node}") for fault in extra):
        return said.way_back(keys.name("restore"), name)
    last = extra[-1]
    return said.way_back_selected(keys.name("restore"), last.node, last.role is NodeRole.BROKER)


def _fault_key(conduct: Conduct, keys: Keys) -> str:
    """Return the key that causes a fault which was ended too early."""
    state = conduct.missing[0][2] if conduct.missing else ""
    kind = _CAUSES.get(state, CommandKind.SLOW)
    return keys.name(next(fault.name for fault in FAULTS_BY_KEY.values() if fault.kind is kind))
