"""Drills: a fault that the seed chooses, of which only the symptoms are shown; hints, and a debriefing."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from string import Template

import msgspec

from kview.model.incidents import Incident
from kview.model.lab import Command
from kview.model.units import UNKNOWN
from kview.school.acts import act
from kview.school.checking import START_MS, Stage
from kview.school.exercise import HINT_COSTS_MS, Exercise, Hit, Kind, Target
from kview.school.expectations import Expectation, duration_ms, expectation, seen
from kview.school.lesson import LessonWorld
from kview.school.worlds import world
from kview.simulate.cluster import build

LONGEST_MS = 120_000
"""How long a drill is observed at most until its symptoms must have been seen."""
PLACED = (0, 3, 1, 4, 2, 5)
"""The brokers in the order of the teaching placement: neighbours share partitions, and not a rack."""
_IF_THERE_IS_ONE = " ?"
"""Ends a command that may be refused, such as the removal of a third member of a group of two."""


class Fault(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A kind of fault, with `$broker` and other words in place of what the seed chooses.

    `visible` are expectations that are all met in time, because otherwise nobody could find the cause.
    `choice` is what it is called in the list of answers. `brokers` are the brokers that may be chosen, all if
    there are none. `hits` are what it hits, such as `rack R2` or `other`, if `does` does not name that.
    """

    name: str
    choice: str
    cause: str
    does: tuple[str, ...]
    visible: tuple[str, ...]
    hints: tuple[str, ...]
    brokers: tuple[int, ...] = ()
    hits: tuple[str, ...] = ()

    @property
    def targets(self) -> tuple[str, ...]:
        """What it hits, with `$broker` and other words: what `does` names first, and `hits`."""
        words = ("broker", "rack", "group")
        named = [word for word in words if any(f"${word}" in text for text in self.does)][:1]
        named = [f"{word} ${word}" for word in named]
        if any("$other" in text for text in self.does):
            named.append("broker $other")
        return (*named, *self.hits) or (Hit.OTHER,)


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    world: LessonWorld
    faults: tuple[Fault, ...]


@cache
def _file() -> _File:
    return msgspec.toml.decode((Path(__file__).parent / "drills.toml").read_bytes(), type=_File)


def faults() -> tuple[Fault, ...]:
    """Return all kinds of faults."""
    return _file().faults


@dataclass(frozen=True, slots=True)
class Answer:
    """What somebody believes: the name of a kind of fault, and the broker, rack or group, '' if it has
    none."""

    name: str
    target: str = ""


@dataclass(frozen=True, slots=True)
class Drill:
    """One drill. `targets` are what the seed has chosen, by word."""

    seed: int
    fault: Fault
    targets: tuple[tuple[str, str], ...]

    @property
    def cause(self) -> str:
        """What has happened, as a sentence without a full stop."""
        return self._filled(self.fault.cause)

    @property
    def answer(self) -> Answer:
        return Answer(self.fault.name, self.hit[0].name)

    @property
    def hit(self) -> tuple[Target, ...]:
        """What was hit, each of which is a right answer."""
        return tuple(Target.of(self._filled(text)) for text in self.fault.targets)

    @property
    def hints(self) -> tuple[str, ...]:
        """The hints, each of which says more than the one before it."""
        return tuple(map(self._filled, self.fault.hints))

    def acts(self) -> list[tuple[Command, bool]]:
        """Return what happens, each with whether it may be refused."""
        return [
            (act(self._filled(text).removesuffix(_IF_THERE_IS_ONE)), text.endswith(_IF_THERE_IS_ONE))
            for text in self.fault.does
        ]

    def symptoms(self) -> list[Expectation]:
        """Return what must be seen."""
        return [expectation(self._filled(text)) for text in self.fault.visible]

    def _filled(self, text: str) -> str:
        return Template(text).substitute(dict(self.targets))


def drill(seed: int, name: str = "") -> Drill:
    """Return the drill of a seed. `name` chooses the kind of fault, and the seed only the rest."""
    source = random.Random(f"incident/{seed}")
    kinds = faults()
    fault = source.choice(kinds)
    if name:
        fault = next(kind for kind in kinds if kind.name == name)
    at = source.randrange(len(PLACED))
    while fault.brokers and PLACED[at] not in fault.brokers:
        at = (at + 1) % len(PLACED)
    broker, other = PLACED[at], PLACED[(at + 1) % len(PLACED)]
    group, topic, *_ = source.choice(_file().world.groups).split(":")
    targets = {
        "broker": str(broker),
        "other": str(other),
        "rack": source.choice(("R1", "R2")),
        "group": group,
        "topic": topic,
    }
    return Drill(seed, fault, tuple(targets.items()))


def drill_world() -> LessonWorld:
    """Return the cluster on which drills happen."""
    return _file().world


def exercise(chosen: Drill) -> Exercise:
    """Return a drill as the screen needs it."""
    kinds = (
        Kind(kind.name, kind.choice, frozenset(Target.of(text).hit for text in kind.targets))
        for kind in faults()
    )
    return Exercise(
        chosen.seed,
        chosen.cause,
        tuple(kinds),
        chosen.fault.name,
        chosen.hit,
        tuple(chosen.acts()),
        tuple(chosen.symptoms()),
        chosen.hints,
    )


@dataclass(frozen=True, slots=True)
class Seen:
    """A symptom, and how long after the fault it was seen, UNKNOWN if it was not seen in time."""

    symptom: str
    after_ms: int
    value: str


@dataclass(frozen=True, slots=True)
class Debriefing:
    """What had happened, when each symptom was there to be seen, and the incidents that the view reported."""

    cause: str
    answer: Answer
    seen: tuple[Seen, ...]
    incidents: tuple[Incident, ...]

    @property
    def is_visible(self) -> bool:
        """Whether all symptoms were seen in time."""
        return all(symptom.after_ms != UNKNOWN for symptom in self.seen)


class Running:
    """A drill that goes on: its cluster, its clock, and the hints that were given."""

    def __init__(self, chosen: Drill) -> None:
        self.drill = chosen
        self.stage = Stage(build(world(_file().world), chosen.seed, START_MS))
        self.stage.watch(duration_ms(_file().world.watched) or 0)
        self._began_ms = self.stage.now_ms
        self._hints = 0
        self._incidents: dict[tuple[str, int], Incident] = {}
        self._symptoms = [(symptom, symptom.figure.value(self.stage.moment)) for symptom in chosen.symptoms()]
        self._seen: dict[int, int] = {}
        for wanted, may_fail in chosen.acts():
            refused = self.stage.apply(wanted)
            if refused is not None and not may_fail:
                raise AssertionError(f"{chosen.fault.name}: {refused}")

    def on(self) -> None:
        """Let a second pass."""
        moment = self.stage.on()
        self._incidents.update((incident.key, incident) for incident in moment.view.incidents)
        for at, (symptom, then) in enumerate(self._symptoms):
            in_time = symptom.within_ms == UNKNOWN or self.passed_ms <= symptom.within_ms
            if at not in self._seen and in_time and symptom.holds(then, symptom.figure.value(moment)):
                self._seen[at] = self.passed_ms

    @property
    def passed_ms(self) -> int:
        """The time since the fault."""
        return self.stage.now_ms - self._began_ms

    @property
    def clock_ms(self) -> int:
        """The time since the fault, and what the hints have cost."""
        return self.passed_ms + self._hints * HINT_COSTS_MS

    @property
    def is_all_seen(self) -> bool:
        """Whether every symptom was there to be seen."""
        return len(self._seen) == len(self._symptoms)

    def hint(self) -> str | None:
        """Return the next hint, which costs time, or None if there are no more."""
        hints = self.drill.hints
        if self._hints == len(hints):
            return None
        self._hints += 1
        return hints[self._hints - 1]

    def is_right(self, answer: Answer) -> bool:
        """Return whether an answer names the cause."""
        return answer == self.drill.answer

    def debriefing(self) -> Debriefing:
        """Return what had happened and what there was to be seen."""
        return Debriefing(
            self.drill.cause,
            self.drill.answer,
            tuple(
                Seen(symptom.text, self._seen.get(at, UNKNOWN), seen(symptom.figure, self.stage.moment))
                for at, (symptom, _) in enumerate(self._symptoms)
            ),
            tuple(sorted(self._incidents.values(), key=lambda incident: incident.began_ms)),
        )


def check(seed: int) -> Iterator[tuple[Drill, Debriefing]]:
    """Play every kind of fault with this seed, and yield what could be seen of it."""
    for fault in faults():
        running = Running(drill(seed, fault.name))
        while not running.is_all_seen and running.passed_ms < LONGEST_MS:
            running.on()
        yield running.drill, running.debriefing()
