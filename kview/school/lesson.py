"""A lesson as it stands in its file: a world, and steps with captions, questions and expectations."""

from typing import Annotated

import msgspec
from msgspec import Meta

MOST_STEPS, MOST_SENTENCES, MOST_MINUTES = 30, 3, 3
MOST_CHARACTERS = 400
"""Limit of a caption: six lines of 76 columns, which leave room for what they are about."""
MOST_BROKERS = 100

Title = Annotated[str, Meta(min_length=1, max_length=60)]
Answer = Annotated[str, Meta(min_length=1, max_length=100)]
Sentences = Annotated[str, Meta(min_length=1, max_length=300)]
"""Limits of texts, so that a question and its answers fit under an 80-column screen."""


class LessonWorld(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, rename="kebab"):
    """The cluster of a lesson, in the words of the flags of `kview --simulate`.

    A producer is `NAME:TOPIC:RECORDS_PER_SECOND[:KEY=VALUE…]` with the keys acks, keys, skew, bytes,
    transaction (ms until it commits) and abort-every (it aborts each n-th transaction). A group is
    `NAME:TOPIC:MEMBERS[:KEY=VALUE…]` with the keys rate (records per second of a member), commit (ms), lag
    (seconds), deliver (at-least-once or at-most-once), isolation (read_committed or read_uncommitted, as in
    isolation.level) and protocol (classic or consumer, as in group.protocol, or share). Without any, each
    topic has a producer and a group of its own, as with the flags.
    `watched` is how long the cluster has been observed at the first step, and `latency` the network's.
    """

    brokers: Annotated[int, Meta(ge=1, le=MOST_BROKERS)] = 6
    racks: Annotated[int, Meta(ge=1, le=MOST_BROKERS)] = 2
    topics: tuple[str, ...] = ()
    placement: str = "teaching"
    set: tuple[str, ...] = ()
    seed: int = 1
    producers: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    watched: str = "5s"
    latency: str = "0ms"


class Question(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A question that is asked before its step happens. `right` is the number of the right answer, from 1."""

    text: Sentences
    answers: Annotated[tuple[Answer, ...], Meta(min_length=2, max_length=4)]
    right: int
    because: Sentences


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One step: what is said, where to look, what happens, and what must follow.

    `press` is what the person presses, by the name of the key's action and what is selected: `crash 4`.
    `does` is what happens by itself, as typed at `kview serve`. `expect` are expectations
    (`kview.school.expectations`), which must come true before `wait` is over. `compare` are figures that are
    shown as they were before the step and after it.
    """

    caption: str
    look: tuple[str, ...] = ()
    press: str = ""
    does: tuple[str, ...] = ()
    wait: str = ""
    expect: tuple[str, ...] = ()
    compare: tuple[str, ...] = ()
    question: Question | None = None


class Lesson(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A lesson. `about` is one sentence on what it teaches, `minutes` how long it takes a person."""

    title: Title
    about: Sentences
    minutes: Annotated[int, Meta(ge=1, le=MOST_MINUTES)]
    world: LessonWorld = LessonWorld()
    steps: Annotated[tuple[Step, ...], Meta(min_length=1, max_length=MOST_STEPS)]
