"""Measures scrapes: `python -m tests.benchmarks.bench_metrics [PARTITIONS GROUPS]`.

The cluster has three replicas per partition, and the groups read half of its partitions. Broker 4 crashes in
the last third. It prints how long a page takes and how large it is, the memory, and what scrapes without a
pause cost the fold on its own thread.
"""

import gc
import itertools
import resource
import statistics
import sys
import threading
import time
from collections.abc import Callable, Sequence

from kview.derive.fold import State, step
from kview.model.snapshot import Snapshot
from kview.run.dashboard import SWITCH_INTERVAL_S
from kview.run.exporter import LEAST_SERVED_S, Exporter
from tests.worlds import wide_snapshots

PARTITIONS, GROUPS = 39_000, 2_200
STEPS = 12


def folded(snapshots: Sequence[Snapshot], exporter: Exporter, after: Callable[[], object]) -> list[float]:
    """Fold snapshots, and return the ms of each step. `after` is called after each step."""
    state, took = State(), []
    for snapshot in snapshots:
        began = time.perf_counter()
        state, view = step(state, snapshot)
        exporter.take(snapshot, view)
        took.append((time.perf_counter() - began) * 1000)
        after()
    return took


def main(partitions: int = PARTITIONS, groups: int = GROUPS) -> None:
    """Print the figures."""
    snapshots = wide_snapshots(partitions, STEPS, groups=groups)
    gc.freeze()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    now_s = itertools.count(0.0, LEAST_SERVED_S)
    exporter = Exporter(1.0, clock_s=lambda: next(now_s))
    pages: list[tuple[float, int, int]] = []

    def scrape() -> None:
        began = time.perf_counter()
        page = exporter.page()
        pages.append(((time.perf_counter() - began) * 1000, len(page), page.count(b"\n")))

    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    alone = folded(snapshots, exporter, scrape)
    more_mb = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb) / 1024
    crash = STEPS * 2 // 3
    for when, some in (("healthy", pages[1:crash]), ("a crash", pages[crash:])):
        ms, size, lines = (statistics.median(column) for column in zip(*some, strict=True))
        figures = f"{ms:.0f} ms, {size / 1e6:.1f} MB, {lines:,.0f} lines"
        print(f"{partitions:,} partitions, {groups:,} groups, {when}: {figures}")
    print(f"memory of all steps and scrapes: {more_mb:.0f} MB")
    ends, busy = threading.Event(), Exporter(1.0)

    def scrape_on() -> None:
        while not ends.is_set():
            busy.page()

    thread = threading.Thread(target=scrape_on)
    thread.start()
    beside = folded(snapshots, busy, lambda: time.sleep(0.05))
    ends.set()
    thread.join()
    print(
        f"a step of the fold takes {statistics.median(alone):.0f} ms, while scrapes go on without a pause"
        f" {statistics.median(beside):.0f} ms, {max(beside[1:]):.0f} ms at most"
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
