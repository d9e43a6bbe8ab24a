"""Measures the cost of recording and replay: `python -m tests.benchmarks.bench_recording [SECONDS]`.

- The time of an append with 1,000 and 10,000 partitions that all change every second, of closing a segment,
  and of finding a moment in Parquet and in a stream.
- The time of a jump in a recording in which every offset changes every second: until the moment is painted
  (without the drawing itself), and until the figures that need earlier observations are complete. The best
  and the worst of several jumps are printed, with their share of the limit.
- The bytes per changed partition and observation. For this, the default world of `kview serve` is observed
  for SECONDS (default: ten minutes; 0 skips this part).
"""

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from kview.derive.fold import State, fold_to, step
from kview.model.snapshot import Snapshot
from kview.observe.observer import Observer
from kview.recording.reader import Recording
from kview.recording.replay import Replay
from kview.recording.writer import RecordingWriter
from tests.recording.snapshots import changed_partitions, size_of
from tests.served import Served
from tests.worlds import wide_snapshots
from tests.worlds.scripts import growing_snapshots

SIZES = (1_000, 10_000)
SECONDS = 60
TEN_MINUTES_S = 600
JUMPS = 4
PAINT_LIMIT_MS, COMPLETE_LIMIT_MS = 300, 3_000


def milliseconds(began: float) -> float:
    """Return the ms that have passed since `began` on the performance counter."""
    return (time.perf_counter() - began) * 1000


def bytes_each(snapshots: Sequence[Snapshot], folder: Path) -> float:
    """Return the bytes of the closed recording per changed partition and observation."""
    writer = RecordingWriter(folder)
    for snapshot in snapshots:
        writer.append(snapshot)
    writer.close()
    return size_of(folder) / changed_partitions(snapshots)


def speeds(partitions: int, folder: Path) -> str:
    """Measure appending, closing and finding a moment with that number of partitions."""
    snapshots = wide_snapshots(partitions, SECONDS)
    writer, appends = RecordingWriter(folder), []
    for snapshot in snapshots:
        began = time.perf_counter()
        writer.append(snapshot)
        appends.append(milliseconds(began))
    before_last = int(Recording.open(folder).moments()[-2])
    found = []
    for close in (False, True):
        began = time.perf_counter()
        if close:
            writer.close()
        closing = milliseconds(began)
        began = time.perf_counter()
        recording = Recording.open(folder)
        recording.at_place(recording.place_of(before_last))
        found.append(milliseconds(began))
    median, worst = statistics.median(appends), statistics.quantiles(appends[1:], n=20)[-1]
    append = f"append {median:.1f} ms median, {worst:.1f} ms p95, {appends[0]:.0f} ms for a key"
    find = f"snapshot_at {found[0]:.0f} ms in a stream, {found[1]:.0f} ms in Parquet"
    return f"{partitions:>6} partitions: {append}; close {closing:.0f} ms; {find}"


def jumps(partitions: int, folder: Path) -> str:
    """Measure jumps to the end of a recording of ten and a half minutes, including opening it."""
    writer = RecordingWriter(folder)
    for snapshot in growing_snapshots(partitions, TEN_MINUTES_S + 30):
        writer.append(snapshot)
    writer.close()
    painted, complete, cpu = [], [], []
    for _ in range(JUMPS):
        began = time.perf_counter()
        replay = Replay(Recording.open(folder))
        jump = replay.seek(2**62, 0.0)
        step(State(), jump.snapshot)
        painted.append(milliseconds(began))
        began, cpu_began = time.perf_counter(), time.process_time()
        look_back = jump.look_back()
        fold_to(jump.snapshot, look_back, lambda: False)
        complete.append(milliseconds(began))
        cpu.append((time.process_time() - cpu_began) * 1000)
    paint = f"painted in {shares(painted, PAINT_LIMIT_MS)}"
    whole = f"complete in {shares(complete, COMPLETE_LIMIT_MS)}, CPU {min(cpu):,.0f}–{max(cpu):,.0f} ms"
    load = f"load {os.getloadavg()[0]:.1f}"
    return f"{partitions:>6} partitions, {len(look_back)} observations: {paint}; {whole}; {load}"


def shares(took: list[float], limit_ms: float) -> str:
    """Format the best and the worst time, and the worst one's share of the limit."""
    return f"{min(took):,.0f}–{max(took):,.0f} ms ({max(took) / limit_ms:.2f} of {limit_ms:,.0f})"


def observed(seconds: int) -> list[Snapshot]:
    """Observe the default world with Kafka's own times, once a second."""
    with Served(settings=()) as cluster:
        observer = Observer(cluster.addresses)
        observer.connect()
        out, began = [], time.monotonic()
        for second in range(seconds):
            time.sleep(max(0.0, began + second - time.monotonic()))
            out.append(observer.observe())
        observer.close()
    return out


def main() -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as name:
        for partitions in SIZES:
            print(speeds(partitions, Path(name) / str(partitions)))
        for partitions in SIZES:
            print(jumps(partitions, Path(name) / f"jump-{partitions}"))
        seconds = int(sys.argv[1]) if len(sys.argv) > 1 else TEN_MINUTES_S
        if not seconds:
            return
        snapshots = observed(seconds)
        each = bytes_each(snapshots, Path(name) / "size")
        print(f"{each:.1f} bytes for each changed partition and observation, {len(snapshots)} observations")


if __name__ == "__main__":
    main()
