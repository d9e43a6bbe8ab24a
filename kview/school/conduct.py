"""Conducts a lesson on the screen: which step it is at, what it waits for, and what has come of it.

It knows neither a screen nor a cluster. It learns what is seen and what was done, and says what to do.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from kview.model.lab import ActiveFault, Command, CommandKind, FaultState
from kview.model.units import UNKNOWN, UNKNOWN_ID
from kview.school.captions import filled, is_known, worded
from kview.school.expectations import Expectation, expectation
from kview.school.figures import Figure, parse
from kview.school.lesson import Lesson, Step
from kview.school.moment import Counters, Moment
from kview.school.watching import Watch

GRACE_MS = 6_000
"""How much later than its file says something may be seen: an observation takes time, and a busy machine is
slow."""


@dataclass(frozen=True, slots=True)
class Staged:
    """A step with what it does: the fault whose key the person presses, and what happens by itself."""

    step: Step
    key: Command | None = None
    acts: tuple[Command, ...] = ()


class Phase(StrEnum):
    """What a step waits for."""

    STARTING = "starting"
    """The first view of the lesson's cluster."""
    QUESTION = "question"
    """The person's answer."""
    PRESS = "press"
    """The person's key."""
    ACT = "act"
    """What happens by itself."""
    WATCH = "watch"
    """Its expectations."""
    DONE = "done"
    """The person, who has seen enough."""
    OVER = "over"
    """Nothing: the lesson has ended."""


@dataclass(frozen=True, slots=True)
class Change:
    """A figure as it was before a step and as it is now, in words."""

    figure: Figure
    before: str
    after: str


@dataclass(slots=True)
class Played:
    """A step as the person has seen it. `at_ms` is the last observation that was seen in it, epoch ms."""

    caption: str
    met: list[Expectation] = field(default_factory=list)
    answered: int = 0
    """The number of the answer that was chosen, 0 if none was."""
    at_ms: int = UNKNOWN


class Conduct:
    """A lesson that goes on. All times are epoch ms by the clock of the observations."""

    def __init__(self, lesson: Lesson, staged: Sequence[Staged]) -> None:
        self.lesson = lesson
        self._staged = staged
        self.number = 0
        """The step it is at, from 0."""
        self.phase = Phase.STARTING
        self.moment: Moment | None = None
        self.played: list[Played] = []
        self.watch: Watch | None = None
        self.extra: tuple[ActiveFault, ...] = ()
        """The faults in force that the lesson has not asked for."""
        self.missing: tuple[tuple[str, int, str], ...] = ()
        """The nodes whose faults the lesson needs and somebody has ended: role, number, and fault."""
        self._wanted: frozenset[tuple[str, int, str]] = frozenset()
        self._before: Moment | None = None
        self._seen_from_ms = 0
        self.began_ms = UNKNOWN
        """When the phase began."""
        self.is_replaced = False
        """Whether another cluster has taken the place of the lesson's, which has failed."""
        self._is_vague = False
        """Whether the caption has figures that are not known yet."""
        self.refused = ""
        """Why the cluster refused what the step does, '' if it did not."""

    # -- what is shown

    @property
    def staged(self) -> Staged:
        """The step it is at."""
        return self._staged[min(self.number, len(self._staged) - 1)]

    @property
    def steps(self) -> int:
        """The number of steps."""
        return len(self._staged)

    def staged_at(self, number: int) -> Staged:
        """Return a step by its number, from 0."""
        return self._staged[number]

    @property
    def right_answers(self) -> tuple[int, int]:
        """How many questions were answered right, and how many were answered."""
        asked = [
            (played.answered, staged.step.question.right)
            for played, staged in zip(self.played, self._staged, strict=False)
            if staged.step.question is not None and played.answered
        ]
        return sum(chosen == right for chosen, right in asked), len(asked)

    def changes(self) -> list[Change]:
        """Return the figures to compare that are different now."""
        if self._before is None or self.moment is None:
            return []
        changes = []
        for text in self.staged.step.compare:
            figure = parse(text.split())[0]
            before, after = (worded(figure, figure.value(at)) for at in (self._before, self.moment))
            changes.append(Change(figure, before, after))
        return changes

    # -- what is seen

    def see(self, moment: Moment, began_ms: int, at_ms: int, in_force: Collection[ActiveFault]) -> None:
        """Take over an observation that was made from `began_ms` to `at_ms`, and the faults in force."""
        self.is_replaced |= self.moment is not None and _is_fresh(moment.counters, self.moment.counters)
        if self.is_replaced:
            return
        self.moment = moment
        if self.phase is Phase.STARTING:
            self._begin(at_ms)
        self.played[-1].at_ms = at_ms
        if self._is_vague and self.phase is not Phase.OVER:
            self._fill_in(moment)
        self.missing = tuple(sorted(self._wanted - {_which(fault) for fault in in_force}))
        self.extra = tuple(fault for fault in in_force if _which(fault) not in self._wanted)
        if self.phase is not Phase.WATCH or self.watch is None or self.extra or began_ms < self._seen_from_ms:
            return
        pending = list(self.watch.pending)
        self.watch.see(moment, at_ms)
        self.played[-1].met += [
            awaited
            for awaited in pending
            if awaited not in self.watch.pending and awaited not in self.watch.unmet
        ]
        if self.watch.is_over:
            self._enter(Phase.DONE, at_ms)

    def was_away(self, length_ms: int) -> None:
        """Do not count a time in which nothing was seen, because an earlier moment was shown."""
        if self.watch is not None:
            self.watch.began_ms += length_ms

    # -- what is done

    def answer(self, number: int, at_ms: int) -> None:
        """Take over the answer to the question. `number` counts from 1."""
        if self.phase is Phase.QUESTION:
            self.played[-1].answered = number
            self._prepare(at_ms)

    def expects(self, command: Command) -> bool:
        """Return whether a fault is what the step waits for.

        Who presses its key does not need its question.
        """
        key, waits = self.staged.key, self.phase in (Phase.QUESTION, Phase.PRESS)
        return waits and key is not None and _same(command, key)

    def pressed(self, command: Command, in_force: Collection[ActiveFault], at_ms: int) -> None:
        """Take over a fault that was carried out, and the faults in force after it."""
        self.missing = ()
        left = self._wanted & {_which(fault) for fault in in_force}
        if self.expects(command) and command.kind is CommandKind.START and self._undoes_all and left:
            self._wanted = left  # One of several is back: the step waits for the others.
            return
        undoes_more = command.kind is CommandKind.UNDO and not self._undoes_all and len(self._wanted) > 1
        if not self.expects(command) or undoes_more:
            self.extra = tuple(fault for fault in in_force if _which(fault) not in self._wanted)
            return
        extra = {_which(fault) for fault in self.extra}
        self._wanted = frozenset(_which(fault) for fault in in_force) - extra
        self._watch(at_ms)

    @property
    def _undoes_all(self) -> bool:
        """Whether the step waits for all faults to be undone."""
        return self.staged.key is not None and self.staged.key.kind is CommandKind.UNDO

    def acted(self, in_force: Collection[ActiveFault] | None, at_ms: int, refused: str = "") -> None:
        """Note that what happens by itself has been done, or why the cluster refused it."""
        self.refused = refused
        if in_force is not None:
            extra = {_which(fault) for fault in self.extra}
            self._wanted = frozenset(_which(fault) for fault in in_force) - extra
        self._watch(at_ms)

    def next(self, at_ms: int) -> None:
        """Go to the next step. After the last one, the lesson is over."""
        self.number += 1
        if self.number == self.steps:
            self.phase = Phase.OVER
            return
        self._begin(at_ms)

    # -- phases

    def _begin(self, at_ms: int) -> None:
        assert self.moment is not None
        step = self.staged.step
        self.played.append(Played("", at_ms=at_ms))
        self._fill_in(self.moment)
        self._before, self.watch, self.refused = self.moment, None, ""
        if step.question is not None:
            self._enter(Phase.QUESTION, at_ms)
        else:
            self._prepare(at_ms)

    def _fill_in(self, moment: Moment) -> None:
        """Fill in the caption's figures. It is filled in again until all are known."""
        caption = self.staged.step.caption
        self.played[-1].caption = filled(caption, moment)
        self._is_vague = not is_known(caption, moment)

    def _prepare(self, at_ms: int) -> None:
        staged = self.staged
        if staged.key is not None:
            self._enter(Phase.PRESS, at_ms)
        elif staged.acts:
            self._enter(Phase.ACT, at_ms)
        else:
            self._watch(at_ms)
            assert self.watch is not None and self.moment is not None
            self.watch.see(self.moment, at_ms)
            self.played[-1].met += [
                expected for text in staged.step.expect
                if not (expected := expectation(text)).throughout and expected not in self.watch.pending
            ]  # fmt: skip
            if self.watch.is_over:
                self._enter(Phase.DONE, at_ms)

    def _watch(self, at_ms: int) -> None:
        assert self.moment is not None
        self._before = self.moment
        self._seen_from_ms = at_ms if self.staged.key is not None or self.staged.acts else 0
        self.watch = Watch(self.staged.step, self.moment, at_ms, GRACE_MS)
        self._enter(Phase.WATCH, at_ms)

    def _enter(self, phase: Phase, at_ms: int) -> None:
        self.phase, self.began_ms = phase, at_ms


def _which(fault: ActiveFault) -> tuple[str, int, str]:
    """Return what makes a fault the same while it goes on: a broker that stops is stopped later."""
    state = FaultState.STOPPED if fault.state is FaultState.STOPPING else fault.state
    where = "" if fault.other == UNKNOWN_ID else f" from {fault.other}"
    return fault.role.value, fault.node, f"{state.value}{where}"


def _is_fresh(now: Counters, before: Counters) -> bool:
    """Return whether a producer has made fewer records than before: its cluster has just begun."""
    producers, earlier = now["producers"], before["producers"]
    return any(
        name in producers and producers[name]["created"] < counters["created"]
        for name, counters in earlier.items()
    )


def _same(command: Command, other: Command) -> bool:
    """Return whether two commands do the same, if a single fault is in force: either key undoes that."""
    if {command.kind, other.kind} == {CommandKind.START, CommandKind.UNDO}:
        return True
    return (command.kind, command.node, command.name) == (other.kind, other.node, other.name)
