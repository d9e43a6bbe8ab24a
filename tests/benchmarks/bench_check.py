"""Measures a judgement and the impact of all losses: `python -m tests.benchmarks.bench_check [PARTITIONS…]`.

The cluster has six brokers in two racks and three replicas per partition. Every fifth partition has lost a
replica, so that the loss of a broker takes something away.
"""

import statistics
import sys
import time
from collections.abc import Callable
from functools import partial

import numpy as np

from kview.derive.brokers.log_dirs import stranded
from kview.derive.checks.impact import Loss, Standing, broker_domains, losses, rack_domains, standing
from kview.derive.checks.judge import Watch
from kview.derive.checks.judge import step as judge
from kview.derive.fold import State, step
from kview.model.snapshot import Longs
from tests.worlds import wide_snapshots

PARTITIONS = (10_000, 100_000)
TIMES = 9


def median_ms(call: Callable[[], object]) -> float:
    """Return the median of the processor time that `call` takes, in ms."""
    took = []
    for _ in range(TIMES):
        begin = time.process_time()
        call()
        took.append((time.process_time() - begin) * 1000)
    return statistics.median(took)


def _losses(left: Standing, domain: Longs) -> list[Loss]:
    return list(losses(left, domain))


def main(sizes: tuple[int, ...] = PARTITIONS) -> None:
    """Print one line for each number of partitions."""
    for partitions in sizes:
        (snapshot,) = wide_snapshots(partitions, 1, groups=1)
        _, view = step(State(), snapshot)
        table, brokers = snapshot.partitions, snapshot.brokers
        left = standing(table, view.partitions, stranded(snapshot))
        short = np.arange(len(table)) % 5 == 0
        left.eligible[short, 1:], left.in_sync[short, 1:] = False, False
        by_broker = median_ms(partial(_losses, left, broker_domains(table, brokers)))
        by_rack = median_ms(partial(_losses, left, rack_domains(table, brokers)))
        whole = median_ms(partial(judge, Watch(), view))
        print(
            f"{partitions:>7,} partitions: losses of brokers {by_broker:.1f} ms, of racks {by_rack:.1f} ms;"
            f" a whole judgement {whole:.1f} ms"
        )


if __name__ == "__main__":
    main(tuple(map(int, sys.argv[1:])) or PARTITIONS)
