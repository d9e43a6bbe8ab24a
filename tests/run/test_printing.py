"""What text mode prints, and when."""

import pytest
from msgspec.structs import replace

from kview.run.printing import MOST_OBSERVATIONS_ONCE, OBSERVATIONS_FOR_RATES, Printed, print_all
from kview.run.settings import Display
from tests.run.fakes import ScriptedSource
from tests.worlds.small import ends, reader, small_world


@pytest.mark.parametrize(
    ("unread", "observations"),
    [(0, OBSERVATIONS_FOR_RATES), (3, 4), (MOST_OBSERVATIONS_ONCE + 1, MOST_OBSERVATIONS_ONCE)],
)
def test_once_prints_when_the_groups_that_are_read_in_turn_have_been_read(
    unread: int, observations: int, capsys: pytest.CaptureFixture[str]
) -> None:
    world = small_world(reader("mails", *ends()))
    steps = []
    for number in range(MOST_OBSERVATIONS_ONCE + 1):
        seen = world.tick()
        steps.append(
            replace(seen, groups=replace(seen.groups, unread=seen.groups.unread | (number < unread)))
        )
    source = ScriptedSource(steps)
    assert print_all([Printed(source, "a cluster", Display(interval_ms=1, once=True))]) == 0
    left = sum(1 for _ in source._steps)
    assert MOST_OBSERVATIONS_ONCE + 1 - left == observations
    assert capsys.readouterr().out.count("kview ") == 1
