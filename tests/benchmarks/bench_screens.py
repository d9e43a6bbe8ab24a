"""Measures keys and ticks: `python -m tests.benchmarks.bench_screens [PARTITIONS…] [--only NAME]`.

From a key to the last thing that is painted for it, and from a new view likewise, with the processor time of
the main thread next to the wall time, which counts on a quiet machine only. A person feels a delay from 50 ms
on.
"""

import argparse
import asyncio
import gc
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kview.derive.view import View
from tests.benchmarks.painting import Took, terminal
from tests.worlds import views, wide_snapshots

PARTITIONS = (10_000, 100_000)

ROUNDS = 25
TICKS = 6


class Kind(NamedTuple):
    """Keys that are measured together, after the keys of `before`, which go to their screen."""

    before: Sequence[str]
    keys: Sequence[str]
    after: Sequence[str] = ()


SWITCH = ("2", "3", "4", "5", "6", "7", "1")

KINDS = {
    "switch": Kind((), SWITCH),
    "cursor, 1": Kind(("1", "tab"), ("j", "j", "k", "j")),
    "cursor, 4": Kind(("4",), ("j", "j", "k", "j")),
    "scroll, 4": Kind(("4",), ("pagedown", "ctrl+d", "pagedown", "ctrl+u")),
    "scroll with i": Kind(("4", "i"), ("pagedown", "ctrl+d", "pagedown", "ctrl+u"), ("i",)),
    "sort, 4": Kind(("4",), ("s", "r")),
    "filter, 4": Kind(("4", "slash"), ("t", "1", "backspace", "backspace"), ("escape",)),
    "filter, 3": Kind(("3", "slash"), ("t", "1", "backspace", "backspace"), ("escape",)),
}


async def measured(seen: Sequence[View], only: str) -> dict[str, list[Took]]:
    """Return how long each key took, by kind, and each new view on each screen."""
    found: dict[str, list[Took]] = {}
    async with terminal(seen[0]) as at:
        for key in SWITCH:  # screens are built when they are first shown
            found.setdefault("first shown", []).append(await at.press(key))
        gc.freeze()  # as the dashboard does some seconds after its start
        for name, kind in KINDS.items():
            if only not in name:
                continue
            for key in kind.before:
                await at.press(key)
            for _ in range(max(1, ROUNDS * 4 // len(kind.keys))):
                for key in kind.keys:
                    found.setdefault(name, []).append(await at.press(key))
            for key in kind.after:
                await at.press(key)
        for key in SWITCH if only in "tick" else ():
            await at.press(key)
            for number in range(TICKS):
                found.setdefault(f"tick, {key}", []).append(await at.show(seen[number % len(seen)]))
    return found


def line(name: str, took: Sequence[Took]) -> str:
    """Return one line of the table."""
    wall, cpu = zip(*took, strict=True)
    cells = [f"{np.percentile(column, at):7.1f}" for column in (wall, cpu) for at in (50, 99)]
    return f"  {name:14} {cells[0]} {cells[1]}   {cells[2]} {cells[3]}"


def main() -> None:
    """Print a table for each number of partitions."""
    parser = argparse.ArgumentParser()
    parser.add_argument("partitions", type=int, nargs="*", default=PARTITIONS)
    parser.add_argument("--only", default="", help="a part of the names of the keys to measure")
    arguments = parser.parse_args()
    for partitions in arguments.partitions:
        seen = list(views(wide_snapshots(partitions, 6)))[-2:]
        print(f"{partitions:,} partitions        wall ms: p50, p99   CPU ms: p50, p99")
        for name, took in asyncio.run(measured(seen, arguments.only)).items():
            print(line(name, took))


if __name__ == "__main__":
    main()
