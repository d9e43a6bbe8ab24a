"""What conducts a lesson on the screen agrees with what plays it without one."""

import pytest

from kview.school.acts import staged
from kview.school.checking import stage_of
from kview.school.conduct import Conduct, Phase
from kview.school.files import lesson_of

MOST_S = 400


@pytest.mark.parametrize(
    ("name", "answers"),
    [("isr", True), ("groups", True), ("last-replica", True), ("delivery", True), ("leader-crash", False)],
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
