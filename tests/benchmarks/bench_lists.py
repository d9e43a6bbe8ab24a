"""Measures filters, orders and `:` over many partitions: `python -m tests.benchmarks.bench_lists
[PARTITIONS…]`.

The best of some rounds, wall time in ms, of what a key costs the main thread apart from drawing: reading the
filter, which rows of every table pass, the rows of the partitions in their order, and what a text finds. A
list should follow what is typed within 100 ms.
"""

import sys
import time
from collections.abc import Callable

from kview.derive.filters import parse
from kview.derive.passing import Passing
from kview.derive.view import View
from kview.tui.fuzzy import Names
from kview.tui.options import Options, Sort
from kview.tui.rows.partitions import SORTS, PartitionRows
from tests.worlds import views, wide_snapshots

PARTITIONS = (10_000, 100_000)
ROUNDS = 7

FILTERS = ("topic", "/t.*1$/", "broker:2", "rack:R1", "state:trouble", "group:a", "!x broker:1 state:ok /t/")


def best_ms(work: Callable[[], object]) -> float:
    """The shortest time that the work took."""
    took = []
    for _ in range(ROUNDS):
        began_s = time.perf_counter()
        work()
        took.append(time.perf_counter() - began_s)
    return min(took) * 1000


def filtered(view: View, text: str) -> None:
    """Read a filter, and apply it to every table and to the list of partitions."""
    passing = Passing(view, parse(text))
    _ = passing.partitions, passing.topics, passing.groups, passing.brokers
    PartitionRows(view, Options(filter=text))


def main(sizes: tuple[int, ...] = PARTITIONS) -> None:
    """Print one line for each number of partitions and kind of work."""
    for partitions in sizes:
        *_, view = views(wide_snapshots(partitions, 2))
        for text in FILTERS:
            took_ms = best_ms(lambda: filtered(view, text))  # noqa: B023
            print(f"{partitions:>7,} partitions: filter {text}: {took_ms:.0f} ms")
        for column in ("", *SORTS):
            options = Options(sorts={"partitions": Sort(column, True)})
            took_ms = best_ms(lambda: PartitionRows(view, options))  # noqa: B023
            print(f"{partitions:>7,} partitions: sort by {column or 'nothing'}: {took_ms:.0f} ms")
        names = Names([f"{name}-{number}" for name in view.topics.topic for number in range(10)])
        took_ms = best_ms(lambda: names.found("t17-3"))  # noqa: B023
        print(f"{len(view.topics.topic) * 10:>7,} names: `:` finds in {took_ms:.0f} ms")


if __name__ == "__main__":
    main(tuple(int(size) for size in sys.argv[1:]) or PARTITIONS)
