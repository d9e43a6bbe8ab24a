"""Measures keys: `python -m tests.benchmarks.bench_screens [PARTITIONS…]`.

The time from a key to its drawn screen on the main thread, wall time on a quiet machine, for keys that move
the cursor, that switch screens and that sort. A person feels a delay from 50 ms on.
"""

import asyncio
import sys
import time

import numpy as np

from kview.derive.view import View
from tests.tui.harness import dashboard
from tests.worlds import views, wide_snapshots

PARTITIONS = (10_000, 100_000)

ROUNDS = 30

KEYS = {
    "cursor": ("down", "up", "pagedown", "pageup"),
    "switch": ("2", "5", "6", "1"),
    "sort": ("s", "r"),
}


async def measured(view: View) -> dict[str, tuple[float, float]]:
    """The median and the 99th percentile of each kind of key, in ms."""
    found = {}
    async with dashboard(view) as (_, pilot):
        for kind, keys in KEYS.items():
            took_ms = []
            for number in range(ROUNDS + 1):
                for key in keys:
                    await pilot.pause()
                    began_s = time.perf_counter()
                    await pilot.press(key)
                    if number:  # screens are built when they are first shown
                        took_ms.append((time.perf_counter() - began_s) * 1000)
            found[kind] = (float(np.median(took_ms)), float(np.percentile(took_ms, 99)))
    return found


def main(sizes: tuple[int, ...] = PARTITIONS) -> None:
    """Print one line for each number of partitions."""
    for partitions in sizes:
        *_, last = views(wide_snapshots(partitions, 2))
        kinds = asyncio.run(measured(last))
        parts = "; ".join(f"{kind} {p50:.0f} ms, p99 {p99:.0f} ms" for kind, (p50, p99) in kinds.items())
        print(f"{partitions:>7,} partitions: {parts}")


if __name__ == "__main__":
    main(tuple(int(size) for size in sys.argv[1:]) or PARTITIONS)
