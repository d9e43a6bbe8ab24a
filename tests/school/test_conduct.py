"""What conducts a lesson on the screen agrees with what plays it without one."""

import re

import pytest

from kview.model.lab import Command, CommandKind
from kview.school.acts import staged
from kview.school.checking import Stage, stage_of
from kview.school.conduct import Conduct, Phase
from kview.school.files import lesson_of
from kview.school.lesson import Lesson, LessonWorld, Step

MOST_S = 400


@pytest.mark.quick(2)
@pytest.mark.parametrize(
    ("name", "answers"),
    [
        ("isr", True),
        ("groups", True),
        ("last-replica", True),
        ("delivery", True),
        ("exactly-once", True),
        ("share-groups", True),
        ("leader-crash", False),
    ],
)
def test_a_lesson_reaches_its_end_and_misses_nothing(name: str, answers: bool) -> None:
    lesson = lesson_of(name)
    stage, conduct = stage_of(lesson), Conduct(lesson, staged(lesson))
    waited_ms: list[int] = []
    for _ in range(MOST_S):
        began_ms = stage.now_ms
        moment = stage.on()
        conduct.see(moment, began_ms, stage.now_ms, stage.cluster.faults.active())
        question = conduct.staged.step.question
        key = conduct.staged.key
        if conduct.phase is Phase.QUESTION and question is not None and (answers or key is None):
            conduct.answer(question.right, stage.now_ms)
        if conduct.phase in (Phase.QUESTION, Phase.PRESS, Phase.ACT):
            for act in (*([key] if key is not None else []), *conduct.staged.acts):
                assert stage.apply(act) is None
            active = stage.cluster.faults.active()
            if key is not None:
                conduct.pressed(key, active, stage.now_ms)
            else:
                conduct.acted(active, stage.now_ms)
        elif conduct.phase is Phase.DONE:
            assert conduct.watch is not None and not conduct.watch.unmet, conduct.staged.step.caption
            waited_ms.append(stage.now_ms - conduct.began_ms)
            conduct.next(stage.now_ms)
        if conduct.phase is Phase.OVER:
            break
    assert conduct.phase is Phase.OVER and len(waited_ms) == len(lesson.steps)
    right, answered = conduct.right_answers
    assert right == answered
    assert not conduct.extra


def at_last_press(*presses: str) -> tuple[Stage, Conduct]:
    """A lesson of steps with a key each, at the last of them."""
    steps = tuple(Step(caption="Press.", press=text) for text in presses)
    lesson = Lesson(title="t", about="a", minutes=1, steps=steps)
    stage, conduct = stage_of(lesson), Conduct(lesson, staged(lesson))
    while conduct.number < len(presses) - 1 or conduct.phase is not Phase.PRESS:
        see(stage, conduct)
        if conduct.phase is Phase.DONE:
            conduct.next(stage.now_ms)
        elif conduct.number < len(presses) - 1 and conduct.staged.key is not None:
            do(stage, conduct, conduct.staged.key)
    return stage, conduct


def see(stage: Stage, conduct: Conduct) -> None:
    """Let a second pass."""
    began_ms = stage.now_ms
    conduct.see(stage.on(), began_ms, stage.now_ms, stage.cluster.faults.active())


def do(stage: Stage, conduct: Conduct, command: Command) -> None:
    """Press a key."""
    assert stage.apply(command) is None
    conduct.pressed(command, stage.cluster.faults.active(), stage.now_ms)


def test_a_step_that_undoes_everything_waits_for_the_last_broker() -> None:
    stage, conduct = at_last_press("lose-rack R1", "undo-faults")
    for node in (0, 1, 2):
        assert conduct.phase is Phase.PRESS and not conduct.missing
        do(stage, conduct, Command(CommandKind.START, node))
        see(stage, conduct)
    assert conduct.phase is Phase.DONE


def test_undoing_more_than_the_step_asks_for_is_noticed() -> None:
    stage, conduct = at_last_press("crash 0", "crash 1", "restore 0")
    do(stage, conduct, Command(CommandKind.UNDO))
    see(stage, conduct)
    assert conduct.phase is Phase.PRESS
    assert conduct.missing == (("broker", 0, "crashed"), ("broker", 1, "crashed"))


def test_a_caption_waits_for_figures_that_the_first_view_does_not_have() -> None:
    step = Step(caption="invoice gets {topic invoice rate} records a second.", wait="5s")
    lesson = Lesson(title="t", about="a", minutes=1, world=LessonWorld(watched="0s"), steps=(step,))
    stage, conduct = stage_of(lesson), Conduct(lesson, staged(lesson))
    conduct.see(stage.moment, stage.now_ms, stage.now_ms, ())
    assert conduct.played[0].caption == "invoice gets – records a second."
    for _ in range(3):
        see(stage, conduct)
    told = conduct.played[0].caption
    assert re.search(r"gets \d", told)
    see(stage, conduct)
    assert conduct.played[0].caption == told, "it can be read in peace"


def test_a_fresh_cluster_in_place_of_the_lessons_own_is_noticed() -> None:
    stage, conduct = at_last_press("crash 0", "restore 0")
    other = stage_of(conduct.lesson)
    conduct.see(other.moment, stage.now_ms, stage.now_ms + 1, ())
    assert conduct.is_replaced and not conduct.missing
