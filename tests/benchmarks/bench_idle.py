"""Measures what an idle dashboard costs: `python -m tests.benchmarks.bench_idle [--seconds 20]`.

A simulated cluster of 30 brokers in 5 racks has a topic of 10,000 partitions with three replicas, and 60
topics with names of 40 characters, each with a group. Prints the share of a core that `kview connect` takes
while nobody touches it, and its memory, with its recording and without Spark.
"""

import argparse
import tempfile
import time
from pathlib import Path

from tests.benchmarks.bench_against import HERE, WARM_UP_S, cpu_s, dashboard, served

TOPICS = 60
LARGE = ["--brokers", "30", "--racks", "5", "--topic", "big:10000:3"]


def memory_mb(pid: int) -> float:
    """Return the resident memory of a process, in MB."""
    line = next(x for x in Path(f"/proc/{pid}/status").read_text().splitlines() if x.startswith("VmRSS"))
    return int(line.split()[1]) / 1000


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=20)
    arguments = parser.parse_args()
    names = [f"topic-{number:02}-{'x' * 31}" for number in range(TOPICS)]
    flags = [word for name in names for word in ("--topic", f"{name}:3:3")]
    with (
        served(*LARGE, *flags) as bootstrap,
        tempfile.TemporaryDirectory() as state,
        dashboard(HERE, bootstrap, state) as terminal,
    ):
        until_s = time.monotonic() + WARM_UP_S
        terminal.wait_for(lambda: time.monotonic() > until_s, "warm", 30)
        began_s, began_cpu_s = time.monotonic(), cpu_s(terminal.pid)
        until_s = began_s + arguments.seconds
        terminal.wait_for(lambda: time.monotonic() > until_s, "the end", arguments.seconds + 30)
        share = (cpu_s(terminal.pid) - began_cpu_s) / (time.monotonic() - began_s)
        print(f"{share:.0%} of a core, {memory_mb(terminal.pid):.0f} MB")


if __name__ == "__main__":
    main()
