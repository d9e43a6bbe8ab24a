"""Views of moments that are not live: paused, about to change, and of a replay."""

from functools import cache

from msgspec.structs import replace

from kview.derive.view import View
from kview.model.ports import Moment
from kview.tui.widgets.header import SourceInfo
from tests.tui.harness import CRASH, state
from tests.worlds.seen import ROUND_MS
from tests.worlds.tables import START_MS

DAY_MS = 86_400_000

FIRST_MS = START_MS + ROUND_MS
LAST_MS = FIRST_MS + 99_000 + 3_600_000
"""An hour after the end of the script."""

PAUSED = Moment(live=False, playing=False, first_ms=FIRST_MS, last_ms=LAST_MS)
PLAYED = replace(PAUSED, playing=True, speed=4)

REPLAY = SourceInfo("replay friday")


def paused(name: str = CRASH, moment: Moment = PAUSED) -> View:
    """A state as a moment that is not the live one."""
    return replace(state(name), moment=moment)


@cache
def reading(name: str = CRASH) -> View:
    """The same while the moment 13 seconds earlier is being read."""
    view = paused(name)
    at_ms = view.snapshot.observation.ended_ms - 13_000
    return replace(view, moment=replace(PAUSED, reading_ms=at_ms))
