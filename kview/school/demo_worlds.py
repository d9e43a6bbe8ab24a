"""The cluster of a demo by the demo's name."""

from kview.school.demos import INCIDENT
from kview.school.drills import drill_world
from kview.school.files import lesson_of
from kview.school.worlds import duration, world
from kview.simulate.world import World


def demo_world(name: str, seed: int) -> tuple[World, int, int]:
    """Return the cluster of a demo, its seed, and how long it has lived at the first step, in ms.

    `seed` is that of a drill. Raises BadUse if there is no such demo.
    """
    words = drill_world() if name == INCIDENT else lesson_of(name).world
    return world(words), seed if name == INCIDENT else words.seed, duration(words.watched)
