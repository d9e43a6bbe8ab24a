"""Two thousand groups, of which many have stopped in the same way."""

from functools import cache

from kview.derive.view import View
from tests.worlds.parts import Consumers
from tests.worlds.small import ends, reader, small_world, watch

GROUPS, STOPPED = 2_200, 194
WAITING = 500
"""How many records wait for each stopped group on each of two partitions, at first."""
AUDIT = [f"audit-{number:04}" for number in range(STOPPED)]


def _crowd(groups: int, stopped: int) -> list[Consumers]:
    at_end = ends(2)
    audit = [reader(name, at_end[0] - WAITING, at_end[1] - WAITING, members=0) for name in AUDIT[:stopped]]
    return audit + [reader(f"reader-{number:04}", *at_end) for number in range(groups - stopped)]


@cache
def crowd(groups: int = GROUPS, stopped: int = STOPPED, observations: int = 3) -> View:
    """A view of groups that keep up, and of some that have no members and do not move."""
    return watch(small_world(*_crowd(groups, stopped), partitions=2), observations)[-1]
