"""Small clusters that exist only as snapshots: what tests of derive, tui and run look at.

`World` is a clockwork, not the simulated cluster: rates are constant, replicas follow at a fixed delay, and
time passes only when `tick` is called. A silent broker is fenced nine seconds after its first silence.
"""

from tests.worlds.scripts import crash_script, views, wide_snapshots
from tests.worlds.tables import START_MS
from tests.worlds.world import World, default_world

__all__ = ["START_MS", "World", "crash_script", "default_world", "views", "wide_snapshots"]
