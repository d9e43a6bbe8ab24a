"""The outcome of a check of a small world with broker 4 down, a group in trouble, and hostile names."""

from functools import cache

from kview.derive.checks.judge import Watch, step
from kview.derive.checks.outcome import Outcome, Rules, outcome_of
from kview.derive.fold import State
from kview.derive.fold import step as fold
from tests.worlds import default_world

HOSTILE = "a" * 40 + "\x00\x1b[31m\n\ud800\ufffe<&\"']]>"
"""Forty letters, what a terminal obeys, what XML forbids, and what XML means something by."""

SECONDS, CRASH_AT = 12, 8


@cache
def outcome(group: str = "audit-export", rules: Rules | None = None) -> Outcome:
    """What a check finds four seconds after the crash. `group` is the name of the group that stopped."""
    world, watch, state = default_world(), Watch(), State()
    world.group("audit-export").name = group
    for second in range(SECONDS):
        if second == CRASH_AT:
            world.crash(4)
        state, view = fold(state, world.tick())
        watch, judgement = step(watch, view)
    return outcome_of(view, judgement, (SECONDS - 1) * 1000, rules or Rules())
