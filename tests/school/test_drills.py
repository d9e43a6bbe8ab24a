"""Every drill can be solved from what the view shows, and only its cause solves it."""

import pytest

from kview.school.drills import LONGEST_MS, Answer, Running, drill, exercise, faults
from kview.school.exercise import HINT_COSTS_MS, Hit, Target

NAMES = [fault.name for fault in faults()]


def test_there_are_twenty() -> None:
    assert len(set(NAMES)) == 20


@pytest.mark.quick(6)
@pytest.mark.parametrize("name", NAMES)
def test_a_drill_is_visible_in_time(name: str) -> None:
    running = Running(drill(3, name))
    assert not running.stage.moment.view.incidents, "nothing is wrong before"
    while not running.is_all_seen and running.passed_ms < LONGEST_MS:
        running.on()
    told = running.debriefing()
    assert told.is_visible, told.seen
    assert "$" not in told.cause and len(running.drill.hints) >= 2


def test_a_class_gets_the_same_drill_and_another_seed_another_one() -> None:
    assert drill(5) == drill(5)
    assert len({(one.fault.name, one.targets) for one in map(drill, range(30))}) > 15
    assert {drill(seed).fault.name for seed in range(300)} == set(NAMES)


def test_only_the_cause_and_its_place_are_right_and_hints_cost_time() -> None:
    running = Running(drill(3, "hang"))
    right = running.drill.answer
    assert right.name == "hang" and right.target.isdigit()
    assert running.is_right(right)
    assert not running.is_right(Answer("crash", right.target))
    assert not running.is_right(Answer("hang", str(int(right.target) + 1)))
    for _ in range(4):
        running.on()
    assert running.clock_ms == running.passed_ms == 4_000
    hints = [running.hint(), running.hint(), running.hint()]
    assert hints[0] and hints[1] and hints[2] is None
    assert running.clock_ms == 4_000 + 2 * HINT_COSTS_MS
    (incident,) = running.debriefing().incidents
    assert incident.brokers == (int(right.target),)


def test_a_choice_of_what_was_hit_leaves_the_kinds_that_can_hit_it() -> None:
    for name in NAMES:
        made = exercise(drill(3, name))
        assert made.targets
        for target in made.targets:
            assert made.is_right(name, target)
            assert name in [kind.name for kind in made.choices(target.hit)]
    assert {kind.name for kind in made.choices(Hit.RACK)} == {"rack", "hung-rack"}
    others = {kind.name for kind in made.choices(Hit.OTHER)}
    assert others == {"controller", "quorum", "voter", "burst", "silence", "retention", "strict-setting"}
    hung = exercise(drill(3, "hung-rack"))
    assert hung.is_right("hung-rack", Target(Hit.RACK, "R2"))
    assert not hung.is_right("hung-rack", Target(Hit.RACK, "R1"))
