"""What one step of the fold takes: `python -m tests.benchmarks.bench_fold [PARTITIONS…]`.

A cluster with three replicas a partition, half of its partitions read by five groups; broker 4 crashes in the
last third, so that healthy and troubled steps are measured.
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


def measured(partitions: int) -> tuple[float, float, float]:
    """Milliseconds of the first step, of the median healthy one after it and of the median troubled one."""
    snapshots = wide_snapshots(partitions, STEPS)
    gc.freeze()
    state, took = State(), []
    for snapshot in snapshots:
        begin = time.perf_counter()
        state, _ = step(state, snapshot)
        took.append((time.perf_counter() - begin) * 1000)
    troubled = STEPS * 2 // 3
    return took[0], statistics.median(took[1:troubled]), statistics.median(took[troubled:])


def parts(partitions: int) -> tuple[float, float]:
    """Milliseconds of the median `advance` and `sample` of healthy steps: what a look-back is made of."""
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
    """Print one line a size."""
    for partitions in sizes:
        first, healthy, troubled = measured(partitions)
        line = f"first {first:.1f} ms, healthy {healthy:.1f} ms, troubled {troubled:.1f} ms"
        advanced, sampled = parts(partitions)
        print(f"{partitions:>7,} partitions: {line}; advance {advanced:.2f} ms, sample {sampled:.2f} ms")


if __name__ == "__main__":
    main(tuple(int(size) for size in sys.argv[1:]) or PARTITIONS)
