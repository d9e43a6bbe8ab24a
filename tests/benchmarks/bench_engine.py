"""How many simulated seconds a second the engine runs: `python -m tests.benchmarks.bench_engine
[SECONDS]`."""

import sys
import time

from kview.simulate.cluster import build
from kview.simulate.invariants import Checker
from kview.simulate.world import default_world

START_MS = 1_700_000_000_000


def main(seconds: int = 60) -> float:
    """Run the default world, invariants on, with a crash and a return in it; print and return the ratio."""
    cluster = build(default_world(), 1, START_MS)
    checker = Checker(cluster)
    begin = time.perf_counter()
    for second in range(seconds):
        if second == seconds // 4:
            cluster.crash(0)
        if second == seconds // 2:
            cluster.start(0)
        cluster.run_until((START_MS + (second + 1) * 1000) * 1000)
    took = time.perf_counter() - begin
    ratio = seconds / took
    print(f"{ratio:.0f} simulated seconds a second, {checker.checked} partitions checked in {took:.2f} s")
    return ratio


if __name__ == "__main__":
    main(*(int(arg) for arg in sys.argv[1:2]))
