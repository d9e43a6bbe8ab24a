"""Shows a drill: the clock, the hints, the answer, and the debriefing."""

from enum import StrEnum
from typing import TYPE_CHECKING

from kview.language import glyphs
from kview.language import incidents as incident_words
from kview.model.lab import Command, Reply
from kview.model.units import UNKNOWN
from kview.school.demos import INCIDENT, Demos
from kview.school.exercise import HINT_COSTS_MS, Hit, Target
from kview.school.moment import Moment, Value
from kview.school.shows.answer_list import AnswerScreen
from kview.school.shows.captions import sentence
from kview.school.shows.show import Show
from kview.school.words import demo as demo_words
from kview.school.words import drills as said
from kview.tui.actions import Action
from kview.tui.rows.sorting import by_number
from kview.tui.text import Role
from kview.tui.widgets.bottom import StatusMessage
from kview.tui.widgets.caption import Caption, Paragraph

if TYPE_CHECKING:
    from kview.tui.app import KviewApp

QUIET_MS = 6_000
"""How long the cluster is seen healthy before the fault, so that its figures can be compared."""


class Stage(StrEnum):
    """What a drill waits for."""

    STARTING = "starting"
    HEALTHY = "healthy"
    RUNNING = "running"
    SOLVED = "solved"
    GIVEN_UP = "given up"


class DrillShow(Show):
    """A drill that is shown. Where to look is what it is about, so it marks nothing."""

    name = INCIDENT

    def __init__(self, app: "KviewApp", demos: Demos, seed: int) -> None:
        self.exercise = demos.exercise(seed)
        self.stage = Stage.STARTING
        self._app, self._demos = app, demos
        self._began_ms = self._ended_ms = UNKNOWN
        self._hints = self._wrong = 0
        self._said_wrong = self._gives_up = False
        self._then: list[Value] = []
        self._seen: dict[int, int] = {}
        self._is_asking_cluster = False

    # -- what is shown

    @property
    def _clock_ms(self) -> int:
        """The time since the fault, and what the hints have cost."""
        if self._began_ms == UNKNOWN:
            return 0
        now_ms = self._app.wall_ms() if self._ended_ms == UNKNOWN else self._ended_ms
        return now_ms - self._began_ms + self._hints * HINT_COSTS_MS

    @property
    def asks_to_leave(self) -> bool:  # as long as the fault is not found
        return self.stage not in (Stage.SOLVED, Stage.GIVEN_UP)

    def caption(self, is_large: bool) -> Caption:
        keys, exercise = self._app.keys, self.exercise
        space, hint, leave = keys.name("pause"), keys.name("hint"), (keys.name("back"), "leave")
        body: list[Paragraph] = []
        if self.stage is Stage.STARTING:
            body.append(Paragraph(demo_words.STARTING, Role.DIM))
        elif self.stage is Stage.HEALTHY:
            body.append(Paragraph(said.HEALTHY))
        elif self.stage is Stage.RUNNING:
            body.append(Paragraph(said.INTRO))
            body += [
                Paragraph(said.hint(text), Role.BRIGHT, rank=1) for text in exercise.hints[: self._hints]
            ]
            if self._said_wrong:
                body.append(Paragraph(said.wrong(self._wrong), Role.WARN, glyphs.DEAD))
            left = len(exercise.hints) - self._hints
            body.append(Paragraph(said.keys(space, hint, left, HINT_COSTS_MS), Role.KEY, glyphs.PLAYING))
        else:
            body += self._debriefing()
        shown: tuple[tuple[str, str], ...] = (leave,)
        if self._app.view is not None and not self._app.live:
            shown = ((space, demo_words.TO_NOW), leave)
        elif self.stage in (Stage.SOLVED, Stage.GIVEN_UP):
            shown = ((space, said.MOMENT), leave, (keys.name("spark"), said.ANOTHER))
        elif self.stage is Stage.RUNNING:
            hints = ((hint, "hint"),) if self._hints < len(exercise.hints) else ()
            shown = ((space, "answer"), leave, *hints, (keys.name("ignored-groups"), "give up"))
        clock = said.clock(self._clock_ms)
        return Caption(
            f"INCIDENT {clock}",
            f"seed {exercise.seed}",
            tuple(body),
            shown,
            is_large,
            keeps_order=False,
            headline=said.HEADLINE if self.stage is Stage.RUNNING else "",
        )

    def _debriefing(self) -> list[Paragraph]:
        exercise, view = self.exercise, self._app.view
        if self.stage is Stage.SOLVED:
            text = said.solved(exercise.cause, self._clock_ms, self._hints, self._wrong)
            body = [Paragraph(text, Role.GOOD, glyphs.YES)]
        else:
            body = [Paragraph(said.given_up(exercise.cause), Role.WARN, glyphs.DEAD)]
        seen = [self._seen.get(at, UNKNOWN) for at in range(len(exercise.symptoms))]
        in_order = sorted(range(len(seen)), key=lambda at: (seen[at] == UNKNOWN, seen[at]))
        symptoms = [said.seen_after(sentence(exercise.symptoms[at]), seen[at]) for at in in_order]
        body.append(Paragraph(f"what could be seen: {f' {glyphs.DOT} '.join(symptoms)}", rank=1))
        for incident in (view.incidents if view is not None else ())[-2:]:
            stages = [f"{stage.when} {stage.text}" for stage in incident_words.stages(incident, terse=True)]
            summary = f" {glyphs.MARK} ".join([incident_words.title(incident), *stages])
            body.append(Paragraph(f"incident: {summary}", Role.DIM, rank=2))
        name = self._app.keys.name
        goes = said.debriefing(name("pause"), name("events"), name("that-moment"))
        if not self._app.live:
            goes = said.returns(name("pause"))
        body.append(Paragraph(goes, Role.KEY, glyphs.PLAYING, rank=3))
        return body

    # -- what is seen

    def see(self) -> None:
        view = self._app.view
        if view is None or not view.moment.live or self._is_asking_cluster:
            return
        if view.snapshot.observation.began_ms < self._from_ms:
            return
        if self.stage is Stage.STARTING:
            self.stage, self._from_ms = Stage.HEALTHY, view.snapshot.observation.began_ms
            self._app.run_worker(self._go_first(), group="lesson place")
        self._is_asking_cluster = True
        self._app.run_worker(self._take(), group="lesson")

    async def _go_first(self) -> None:
        await self._app.go.to("overview")

    async def _take(self) -> None:
        view = self._app.view
        try:
            counters = await self._demos.counters()
        finally:
            self._is_asking_cluster = False
        if view is None or counters is None:
            return
        moment, at_ms = Moment(view, counters), view.snapshot.observation.ended_ms
        if self.stage is Stage.HEALTHY and at_ms - self._from_ms >= QUIET_MS:
            self._then = [symptom.figure.value(moment) for symptom in self.exercise.symptoms]
            await self._begin()
        elif self._began_ms != UNKNOWN and view.snapshot.observation.began_ms > self._began_ms:
            for at, symptom in enumerate(self.exercise.symptoms):
                if at not in self._seen and symptom.holds(self._then[at], symptom.figure.value(moment)):
                    self._seen[at] = at_ms - self._began_ms

    async def _begin(self) -> None:
        """Cause the fault, without a word about it."""
        self.stage, self._began_ms = Stage.RUNNING, self._app.wall_ms()
        for wanted, _ in self.exercise.acts:
            await self._demos.lab.apply(wanted)

    def tick(self) -> None:
        """Draw the clock again, which shows seconds."""
        if self.stage is Stage.RUNNING:
            self._app.redraw_caption()

    def fault_done(self, command: Command, reply: Reply, at_ms: int) -> None:
        """Take no notice: a person may try whatever helps to find the cause."""

    # -- keys

    def allows(self, what: str) -> bool:
        is_over = self.stage in (Stage.SOLVED, Stage.GIVEN_UP)
        if is_over or not self._app.live:
            return what in ("next", "restart")
        return what in ("solve", "give-up", "hint", "restart")

    def label(self, action: Action) -> str | None:
        match action.run:
            case "lesson('next')":
                return said.MOMENT if self._app.live else demo_words.TO_NOW
            case "lesson('restart')":
                return said.ANOTHER
            case "lesson('solve')" | "lesson('give-up')" if self.stage is not Stage.RUNNING:
                return ""
            case "lesson('hint')" if not self._has_hints:
                return ""
        return None

    def do(self, what: str) -> bool:
        gives_up, self._gives_up = self._gives_up, False
        match what:
            case "next" if not self._app.live:
                self._app.return_to_live()
            case "next":
                self._app.show_moment(self._began_ms)
            case "solve":
                self._app.push_screen(AnswerScreen(said.WHERE, self._targets(), self._choose_cause))
            case "hint":
                self._hint()
            case "give-up" if self.stage is not Stage.RUNNING:
                self._app.say(StatusMessage(said.QUIET))
            case "give-up" if not gives_up:
                self._gives_up = True
                self._app.say(StatusMessage(said.give_up(self._app.keys.name("ignored-groups"))))
            case "give-up":
                self._app.clear_message(kept=False)
                self.stage, self._ended_ms = Stage.GIVEN_UP, self._app.wall_ms()
        self._app.redraw()
        return True

    @property
    def _has_hints(self) -> bool:
        return self._hints < len(self.exercise.hints) and self.stage is Stage.RUNNING

    def _hint(self) -> None:
        if self._has_hints:
            self._hints += 1
        else:
            text = said.QUIET if self.stage is not Stage.RUNNING else said.NO_HINTS
            self._app.say(StatusMessage(text))

    def _targets(self) -> list[tuple[str, str]]:
        view = self._app.view
        if view is None:
            return []
        brokers = [f"broker {id}" for id in view.snapshot.brokers.id.tolist()]
        racks = [f"rack {rack}" for rack in sorted(set(map(str, view.snapshot.brokers.rack)), key=by_number)]
        groups = [f"group {name}" for name in view.snapshot.groups.group.tolist()]
        return [*((name, name) for name in (*brokers, *racks, *groups)), (Hit.OTHER, said.SOMETHING_ELSE)]

    def _choose_cause(self, chosen: str) -> None:
        target = Target.of(chosen)

        def answer(kind: str) -> None:
            if self.stage is not Stage.RUNNING:
                return
            self._app.clear_message(kept=False)  # It is about a hint.
            if self.exercise.is_right(kind, target):
                self.stage, self._ended_ms = Stage.SOLVED, self._app.wall_ms()
            else:
                self._wrong += 1
                self._said_wrong = True
            self._app.redraw()

        choices = [(kind.name, kind.choice) for kind in self.exercise.choices(target.hit)]
        self._app.push_screen(AnswerScreen(said.cause(target.hit, target.name), choices, answer))
