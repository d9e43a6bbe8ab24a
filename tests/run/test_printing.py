"""What text mode prints, and when."""

import math

import pytest
from msgspec.structs import replace

from kview.run.printing import (
    AWAITED_OBSERVATIONS,
    MOST_ONCE_S,
    OBSERVATIONS_FOR_RATES,
    Printed,
    print_all,
)
from kview.run.settings import Display
from tests.run.fakes import Clock, ScriptedSource
from tests.worlds.small import ends, reader, small_world

APART_S = 10
LIMIT = int(MOST_ONCE_S) // APART_S + 1
"""The number of observations after which it is over."""
YET, LEFT_OUT = "1 of 1 groups have not been read yet", "1 of 1 groups have not been read after 300 s"


@pytest.mark.parametrize(
    ("unread", "observations", "said"),
    [
        (0, OBSERVATIONS_FOR_RATES, []),
        (3, 4, []),
        (AWAITED_OBSERVATIONS + 9, AWAITED_OBSERVATIONS + 10, [YET]),
        (
            LIMIT,
            LIMIT,
            [YET, LEFT_OUT],
        ),
    ],
)
def test_once_prints_when_the_groups_that_are_read_in_turn_have_been_read(
    unread: int, observations: int, said: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    world = small_world(reader("mails", *ends()))
    steps = []
    for number in range(observations + 1):
        seen = world.tick()
        groups = replace(seen.groups, unread=seen.groups.unread | (number < unread))
        # The wall clock is set forward again and again, and it does not count.
        at = replace(seen.observation, ended_ms=seen.observation.ended_ms + number * 3_600_000)
        steps.append(replace(seen, groups=groups, observation=at))
    source, clock = ScriptedSource(steps), Clock(math.inf)

    def pass_time() -> None:
        clock.now_s += APART_S

    source.on_observe = pass_time
    assert print_all([Printed(source, "a cluster", Display(interval_ms=1, once=True))], clock) == 0
    left = sum(1 for _ in source._steps)
    assert left == 1
    printed = capsys.readouterr()
    assert printed.out.count("kview ") == 1
    lines = printed.err.splitlines()
    assert len(lines) == len(said) and all(part in line for part, line in zip(said, lines, strict=True))
