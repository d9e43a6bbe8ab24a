"""Compares this checkout with another one from outside: start, observation, time from key to paint, idle
cost.

    python -m tests.benchmarks.bench_against OTHER_CHECKOUT [--runs 7] [--seconds 20] [--partitions 10000]

The two run in turns, use this interpreter's packages and observe the same simulated clusters, which this
checkout serves. The script prints each figure's median for both checkouts, and the median of the ratios of
all pairs (below 1: this checkout needs less).
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.benchmarks.bench_start import measure
from tests.e2e.pseudo_terminal import PseudoTerminal

HERE = Path(__file__).resolve().parents[2]

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")

WARM_UP_S = 4.0
"""Time before a process's cost is measured, for imports and the first observations."""

KEYS = (("2", r"PLACEMENT|Placement|RACK-SAFE|rack-safe"), ("5", r"COORDINATOR|GROUPS"), ("1", r"EVENTS"))
"""Keys, and what the screen shows after each of them."""

Pair = tuple[float, float]


@contextmanager
def served(*flags: str) -> Iterator[str]:
    """Serve a simulated cluster of this checkout, and yield its bootstrap servers."""
    command = [sys.executable, "-m", "kview", "serve", *flags]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, cwd=HERE
    ) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip().removeprefix("bootstrap.servers=")
        finally:
            process.terminate()


def command(checkout: Path, *arguments: str) -> list[str]:
    """Return the command that runs `kview` of a checkout, whatever the interpreter has installed."""
    return ["env", f"PYTHONPATH={checkout}", sys.executable, "-m", "kview", *arguments]


def cpu_s(pid: int) -> float:
    """Return the processor time in seconds of all threads of a process, without its children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND


def observation_ms(checkout: Path, bootstrap: str, seconds: float) -> float:
    """Return the processor time in ms per interval of a `kview connect` whose text output is discarded."""
    arguments = ("connect", bootstrap, "--interval", "1s", "--format", "text")
    with subprocess.Popen(command(checkout, *arguments), stdout=subprocess.DEVNULL, cwd=checkout) as process:
        try:
            time.sleep(WARM_UP_S)
            began_s, began_cpu_s = time.monotonic(), cpu_s(process.pid)
            time.sleep(seconds)
            return (cpu_s(process.pid) - began_cpu_s) / (time.monotonic() - began_s) * 1000
        finally:
            process.terminate()


@contextmanager
def dashboard(checkout: Path, bootstrap: str, state: str) -> Iterator[PseudoTerminal]:
    """Run a dashboard that shows data, on a terminal of 120×40."""
    environment = {**os.environ, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "XDG_STATE_HOME": state}
    arguments = command(checkout, "connect", bootstrap, "--no-spark")
    terminal = PseudoTerminal(arguments, 120, 40, environment, settled_s=0)
    try:
        terminal.wait_for_text(r"THROUGHPUT[\s\S]*\d")
        yield terminal
    finally:
        terminal.press("q")
        terminal.end()


def key_ms(checkout: Path, bootstrap: str, state: str, times: int) -> list[float]:
    """Return the ms from each key to the screen that it opens, `times` for each key, after a first round."""
    took = []
    with dashboard(checkout, bootstrap, state) as terminal:
        for number in range(times + 1):
            for key, shows in KEYS:
                began_s = time.monotonic()
                terminal.press(key)
                terminal.wait_for_text(shows)
                if number:
                    took.append((time.monotonic() - began_s) * 1000)
                settle(terminal)
    return took


def settle(terminal: PseudoTerminal, quiet_s: float = 0.15) -> None:
    """Read until the frame is complete."""
    until_s = time.monotonic() + quiet_s
    while time.monotonic() < until_s:
        terminal.read()


def idle_percent(checkout: Path, bootstrap: str, state: str, seconds: float) -> float:
    """Return how much of a core a dashboard uses while nobody types, in percent."""
    with dashboard(checkout, bootstrap, state) as terminal:
        settle(terminal, WARM_UP_S)
        began_s, began_cpu_s = time.monotonic(), cpu_s(terminal.pid)
        settle(terminal, seconds)
        return (cpu_s(terminal.pid) - began_cpu_s) / (time.monotonic() - began_s) * 100


def row(name: str, pairs: Sequence[Pair]) -> None:
    """Print one figure for both checkouts."""
    ours, theirs = zip(*pairs, strict=True)
    ratio = statistics.median(a / b for a, b in pairs)
    print(
        f"{name:34} {statistics.median(ours):10.2f} {statistics.median(theirs):10.2f} {ratio:8.2f}",
        flush=True,
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("other", type=Path)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--partitions", type=int, default=10_000)
    options = parser.parse_args()
    checkouts = (HERE, options.other.resolve())
    print(f"{'':34} {'this':>10} {'other':>10} {'ratio':>8}   medians of {options.runs}")
    with tempfile.TemporaryDirectory() as state, served() as small:
        for checkout in checkouts:
            measure(command(checkout, "connect", small), state)
        starts = [
            [measure(command(c, "connect", small), state) for c in checkouts] for _ in range(options.runs)
        ]
        row("first frame, s", [(a[0], b[0]) for a, b in starts])
        row("first data, s", [(a[1], b[1]) for a, b in starts])
        idle = [
            [idle_percent(c, small, state, options.seconds) for c in checkouts] for _ in range(options.runs)
        ]
        row("idle dashboard, % of a core", [(a, b) for a, b in idle])
    with tempfile.TemporaryDirectory() as state, served("--topic", f"big:{options.partitions}:3") as big:
        costs = [[observation_ms(c, big, options.seconds) for c in checkouts] for _ in range(options.runs)]
        row(f"{options.partitions:,} partitions: CPU ms/observation", [(a, b) for a, b in costs])
        keys = [[key_ms(c, big, state, 10) for c in checkouts] for _ in range(options.runs)]
        row("key to paint, p50 ms", [(statistics.median(a), statistics.median(b)) for a, b in keys])
        row("key to paint, p95 ms", [(at_95(a), at_95(b)) for a, b in keys])


def at_95(values: list[float]) -> float:
    """Return the 95th percentile."""
    return sorted(values)[int(len(values) * 0.95)]


if __name__ == "__main__":
    main()
