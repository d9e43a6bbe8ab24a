"""Small clusters that exist only as snapshots, for the tests of derive, tui and run.

`World` is a simple model, not the simulated cluster. Rates are constant, replicas follow with a fixed delay,
and time passes only when `tick` is called. A silent broker is fenced nine seconds after its first unanswered
request.
"""

from tests.worlds.scripts import crash_script, views, views_at, wide_snapshots
from tests.worlds.tables import START_MS
from tests.worlds.world import World, default_world, lean_world

__all__ = [
    "START_MS",
    "World",
    "crash_script",
    "default_world",
    "lean_world",
    "views",
    "views_at",
    "wide_snapshots",
]
