"""Measures the cost of the live Spark job.

    python -m tests.benchmarks.bench_spark [--runs 5] [--seconds 150]

- first: the time from the job's start to its first roll-ups, while 100 partitions are observed once a second.
- steady: 100, 1,000 and 10,000 partitions whose offsets all change every second, observed once a second.
  After the first minute, the time from recording an observation to the callback that includes it, and the
  processor time of the job's processes. At the end, their memory, with shared pages counted once.
- frame: the time from the start of `kview --simulate` to its first frame and first data, with and without
  Spark in turns. Also the processor time and memory of kview with its simulated cluster over a minute.

Each figure is printed with its share of the limit. This runs on Linux only. For bytes on disk, see
bench_recording.
"""

import argparse
import logging
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from kview.model.aggregates import Aggregates, SparkState
from kview.model.snapshot import Snapshot
from kview.pipeline.process import LiveJob
from kview.recording.writer import RecordingWriter
from tests.benchmarks.bench_start import GIVE_UP_S, measure
from tests.e2e.processes import TICKS_PER_S, cpu_s, resident_bytes, tree
from tests.e2e.pseudo_terminal import kview_on_a_terminal
from tests.worlds.scripts import growing_snapshots

SIZES = (100, 1_000, 10_000)
FIRST_PARTITIONS = 100
WARM_S = 60
FRAME_RUNS = 9
WATCHED_S = 60

FIRST_LIMIT_S, DELAY_LIMIT_S, FRAME_LIMIT = 8.0, 3.0, 1.05
CORES_LIMIT, RESIDENT_LIMIT_MB = 0.5, 900.0

TOLD_WITHIN_S = 60.0


def load() -> str:
    """Return the load of the machine, including this script."""
    return f"load {os.getloadavg()[0]:.1f}"


def others_cpu_s() -> float:
    """Return the processor time in seconds that all other processes have used since the machine started."""
    words = Path("/proc/stat").read_text().split(maxsplit=9)
    user, nice, system, _, _, interrupts, soft_interrupts = map(int, words[1:8])
    busy_s = (user + nice + system + interrupts + soft_interrupts) / TICKS_PER_S
    return busy_s - cpu_s(tree(os.getpid()))


def share(value: float, limit: float) -> str:
    """Format the value's share of its limit."""
    return f"{value / limit:.2f} of {limit:g}"


class Hearing:
    """A job, with the times of its roll-ups. `told` is set by the first roll-ups."""

    def __init__(self, recording: Path) -> None:
        self._now_ms = 0
        self.arrivals: list[tuple[float, int]] = []
        """(monotonic time in seconds, end of the roll-ups in the recording's ms)."""
        self.told = threading.Event()
        self.job = LiveJob(recording, self._hear, lambda: self._now_ms)

    def _hear(self, aggregates: Aggregates) -> None:
        if aggregates.status.state is SparkState.FAILED:
            print(f"the job failed: {aggregates.status.error}", file=sys.stderr)
        if aggregates.status.state is SparkState.RUNNING and aggregates.rollups.blocks:
            self.arrivals.append((time.monotonic(), aggregates.rollups.until_ms))
            self.told.set()


def first_s(snapshots: Sequence[Snapshot], folder: Path) -> float:
    """Return the seconds from the job's start to the first roll-ups."""
    writer = RecordingWriter(folder)
    hearing = Hearing(folder)
    began_s = time.monotonic()
    hearing.job.start()
    try:
        for number, snapshot in enumerate(snapshots, 1):
            writer.append(snapshot)
            if hearing.told.wait(max(0.0, began_s + number - time.monotonic())):
                return hearing.arrivals[0][0] - began_s
    finally:
        hearing.job.stop()
        writer.abandon()
    raise SystemExit("no roll-ups came")


def first(runs: int, folder: Path) -> str:
    """Measure how long the first roll-ups take."""
    snapshots = list(growing_snapshots(FIRST_PARTITIONS, int(TOLD_WITHIN_S)))
    times = [first_s(snapshots, folder / f"first-{run}") for run in range(runs)]
    median, worst = statistics.median(times), max(times)
    return (
        f"first roll-ups: {median:.1f} s median, {worst:.1f} s worst of {runs} "
        f"({share(worst, FIRST_LIMIT_S)}); {load()}"
    )


def steady(partitions: int, seconds: int, folder: Path) -> str:
    """Measure delay, processor time and memory with that number of partitions."""
    snapshots = list(growing_snapshots(partitions, seconds))
    writer = RecordingWriter(folder)
    hearing = Hearing(folder)
    job, appended = hearing.job, []
    began_s = time.monotonic()
    job.start()
    for number, snapshot in enumerate(snapshots):
        time.sleep(max(0.0, began_s + number - time.monotonic()))
        if number == WARM_S:
            assert job.pid is not None
            cpu_began, warm_s, batches = cpu_s(tree(job.pid)), time.monotonic(), len(hearing.arrivals)
            others_began = others_cpu_s()
        appended.append((time.monotonic(), snapshot.observation.ended_ms))
        writer.append(snapshot)
    assert job.pid is not None
    pids = tree(job.pid)
    elapsed_s = time.monotonic() - warm_s
    cores = (cpu_s(pids) - cpu_began) / elapsed_s
    others = (others_cpu_s() - others_began) / elapsed_s
    batches = len(hearing.arrivals) - batches
    resident = resident_bytes(pids) / (1 << 20)
    last_ms, deadline_s = appended[-1][1], time.monotonic() + TOLD_WITHIN_S
    while hearing.arrivals[-1][1] < last_ms and time.monotonic() < deadline_s:
        time.sleep(0.05)
    job.stop()
    writer.abandon()
    delays = [
        next(at_s for at_s, until_ms in hearing.arrivals if until_ms >= ended_ms) - began_s
        for began_s, ended_ms in appended[WARM_S:]
    ]
    p50, p95, most = np.percentile(delays, [50, 95, 100])
    return (
        f"{partitions:>6} partitions: delay {p50:.2f} s p50, {p95:.2f} s p95 ({share(p95, DELAY_LIMIT_S)}), "
        f"{most:.2f} s worst; {cores:.2f} cores ({share(cores, CORES_LIMIT)}); {resident:.0f} MB "
        f"({share(resident, RESIDENT_LIMIT_MB)}); a batch every {elapsed_s / batches:.1f} s; others took "
        f"{others:.1f} cores"
    )


def frame(compiled: Path) -> None:
    """Measure how Spark affects the start of kview, and print it."""
    command = [sys.executable, "-m", "kview", "--simulate"]
    commands = {"with": command, "without": [*command, "--no-spark"]}
    taken: dict[str, list[tuple[float, ...]]] = {name: [] for name in commands}
    for turn in range(FRAME_RUNS + 1):
        for name, words in commands.items():
            times = measure(words, str(compiled))
            if turn:  # The first turn compiles modules.
                taken[name].append(times)
    for what, column in (("first frame", 0), ("first data", 1)):
        spark, plain = (statistics.median(times[column] for times in taken[name]) for name in commands)
        least, others = (min(times[column] for times in taken[name]) for name in commands)
        print(
            f"{what}: {spark:.3f} s with Spark, {plain:.3f} s without, medians of {FRAME_RUNS}; "
            f"{spark / plain:.3f} of it (limit {FRAME_LIMIT}), the quickest {least / others:.3f}; {load()}"
        )


def whole(spark: bool, state: Path) -> str:
    """Measure the processor time and memory of all kview processes over a minute."""
    with kview_on_a_terminal(
        "--simulate", environment={"XDG_STATE_HOME": str(state)}, spark=spark
    ) as terminal:
        terminal.wait_for_text("invoice", GIVE_UP_S)
        began_s = time.monotonic()

        def wait_to(second: float) -> float:
            # This also reads the terminal in the meantime.
            terminal.wait_for(lambda: time.monotonic() - began_s >= second or None, "the time", 2 * second)
            return cpu_s(tree(terminal.pid))

        took_s = -wait_to(WATCHED_S / 2) + wait_to(1.5 * WATCHED_S)
        resident = resident_bytes(tree(terminal.pid)) >> 20
        terminal.press("q")
        terminal.wait_for_end(GIVE_UP_S)
    name = "with Spark" if spark else "without"
    return f"all of kview --simulate {name}: {took_s / WATCHED_S:.2f} cores, {resident} MB; {load()}"


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=150)
    given = parser.parse_args()
    # Spark's warnings go to kview's log file in a normal run. Here only a failed job is reported.
    logging.getLogger("kview.pipeline").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print(first(given.runs, folder))
        for partitions in SIZES:
            print(steady(partitions, given.seconds, folder / f"steady-{partitions}"))
        frame(folder / "compiled")
        for spark in (True, False):
            print(whole(spark, folder / f"state-{spark}"))


if __name__ == "__main__":
    main()
