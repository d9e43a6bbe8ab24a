"""The live job, which reads a recording while it is being written, and rolls up what is new.

Nothing is kept between its steps. Each yields the roll-ups of its own rows, which are added to earlier ones.
So no state grows, no row comes too late, and a clock that jumps does no harm.
"""

import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from kview.pipeline.reading import ENOUGH_ROWS, MORE, next_rollups

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark import SparkContext

CYCLE_S = 1.0
"""Interval at which steps begin, if a step takes less time than this."""

UNWATCHED_S = 5.0
"""The same while nobody looks at the figures, so that the processor rests."""

REST = 1.6
"""After a longer step, the job pauses for this many times its duration."""

MAX_REST_S = 1.5
"""Limit of that pause. On a busy machine a step takes longer without using more processor time, so a longer
pause would only delay the figures."""

FIRST_ROWS = 1_000
"""The first roll-ups cover as many observations as it takes to have this many rows, or all of them."""


def run(
    context: "SparkContext",
    recording: Path,
    after: int,
    on_rollups: "Callable[[pa.Table], None]",
    watched: threading.Event,
) -> NoReturn:
    """Roll up what comes after observation number `after` (−1: everything), without end.

    `on_rollups` receives what `next_rollups` returns. While `watched` is not set, it rests longer between
    steps, once it has caught up. Each observation is in one step only. Raises whatever Spark raises.
    """
    enough = FIRST_ROWS
    while True:
        began_s = time.monotonic()
        step = partial(next_rollups, str(recording), enough=enough)
        (rollups,) = context.parallelize([after], 1).map(step).collect()
        has_more = rollups is not None and MORE in (rollups.schema.metadata or {})
        if rollups is not None:
            on_rollups(rollups)
            after, enough = rollups["last_sequence"][0].as_py(), ENOUGH_ROWS
        took_s = time.monotonic() - began_s
        time.sleep(max(CYCLE_S - took_s, min(REST * took_s, MAX_REST_S)))
        if not has_more:
            watched.wait(UNWATCHED_S - CYCLE_S)
