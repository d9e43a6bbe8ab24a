"""Measures how many simulated seconds per second the engine runs.

Run it with `python -m tests.benchmarks.bench_engine [SECONDS]`.
"""

import sys
import time

from kview.simulate.cluster import build
from kview.simulate.world import default_world
from tests.simulate.invariants import Checker

START_MS = 1_700_000_000_000


def main(seconds: int = 60) -> float:
    """Run the default world with invariants, a crash and a restart. Print and return the seconds per
    second."""
    cluster = build(default_world(), 1, START_MS)
    checker = Checker(cluster)
    begin = time.perf_counter()
    for second in range(seconds):
        if second == seconds // 4:
            cluster.faults.crash(0)
        if second == seconds // 2:
            cluster.faults.start(0)
        cluster.run_until((START_MS + (second + 1) * 1000) * 1000)
    took = time.perf_counter() - begin
    ratio = seconds / took
    print(f"{ratio:.0f} simulated seconds a second, {checker.checked} partitions checked in {took:.2f} s")
    return ratio


if __name__ == "__main__":
    main(*(int(arg) for arg in sys.argv[1:2]))
