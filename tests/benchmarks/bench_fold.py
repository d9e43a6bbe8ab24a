"""Measures one step of the fold: `python -m tests.benchmarks.bench_fold [PARTITIONS…]`.

The cluster has three replicas per partition, and five groups, or a thousand, read half of its partitions.
Broker 4 crashes in the last third, so that both healthy steps and steps during an incident are measured.
"""

import gc
import statistics
import sys
import time

from kview.derive.fold import State, advance, sample, step
from tests.worlds import wide_snapshots
from tests.worlds.scripts import growing_snapshots

PARTITIONS = (1_000, 10_000, 100_000)
STEPS = 12
FEW, MANY = 5, 1_000
"""Numbers of groups. Only up to MANY_PARTITIONS are there many, because a world makes them slowly."""
MANY_PARTITIONS = 10_000


def measured(partitions: int, groups: int = FEW) -> tuple[float, float, float]:
    """Return the ms of the first step, the median of the healthy steps after it, and the median during the
    incident."""
    snapshots = wide_snapshots(partitions, STEPS, groups=groups)
    gc.freeze()
    state, took = State(), []
    for snapshot in snapshots:
        begin = time.perf_counter()
        state, _ = step(state, snapshot)
        took.append((time.perf_counter() - begin) * 1000)
    troubled = STEPS * 2 // 3
    return took[0], statistics.median(took[1:troubled]), statistics.median(took[troubled:])


def parts(partitions: int) -> tuple[float, float]:
    """Return the median ms of `advance` and of `sample` in healthy steps, which are the parts of a
    look-back."""
    state, advances, samples = State(), [], []
    for snapshot in growing_snapshots(partitions, STEPS):
        begin = time.perf_counter()
        state = advance(state, snapshot)
        advances.append((time.perf_counter() - begin) * 1000)
        begin = time.perf_counter()
        state, _ = sample(state)
        samples.append((time.perf_counter() - begin) * 1000)
    return statistics.median(advances), statistics.median(samples)


def main(sizes: tuple[int, ...] = PARTITIONS) -> None:
    """Print one line for each number of partitions."""
    for partitions in sizes:
        first, healthy, troubled = measured(partitions)
        line = f"first {first:.1f} ms, healthy {healthy:.1f} ms, troubled {troubled:.1f} ms"
        if partitions <= MANY_PARTITIONS:
            line += f"; with {MANY:,} groups: healthy {measured(partitions, MANY)[1]:.1f} ms"
        advanced, sampled = parts(partitions)
        print(f"{partitions:>7,} partitions: {line}; advance {advanced:.2f} ms, sample {sampled:.2f} ms")


if __name__ == "__main__":
    main(tuple(int(size) for size in sys.argv[1:]) or PARTITIONS)
