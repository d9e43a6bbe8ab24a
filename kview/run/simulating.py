"""`kview --simulate`, and the demos on such a cluster."""

from collections.abc import Sequence

from kview.run.demos import RunDemos, arguments_of
from kview.run.recorder import check_target
from kview.run.settings import Display
from kview.run.show import show
from kview.run.shown import Shown
from kview.run.simulated import SimulatedSource
from kview.school.demos import Opening


def simulate(arguments: Sequence[str], display: Display, demo: str = "", seed: int | None = None) -> int:
    """Run `kview --simulate` and return the exit code. Raises KviewError.

    `arguments` are the flags for `kview serve`. With `demo`, the dashboard begins with the demo of that name,
    on its own cluster. `seed` is that of the demo, None for any.
    """
    check_target(display.record)
    opening = None
    if demo:
        seed = RunDemos.seed_of(demo, seed)
        arguments, opening = arguments_of(demo, seed), Opening(demo, seed)
    source = SimulatedSource(arguments, display.interval_ms / 1000, not display.no_records)
    demos = RunDemos(source)
    return show(
        Shown(source=source, name="simulated", display=display, lab=source, demos=demos, demo=opening)
    )
