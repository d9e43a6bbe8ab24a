"""What recording costs: `python -m tests.benchmarks.bench_recording [SECONDS]`.

The time of an append, at 1,000 and 10,000 partitions that all change every second; of closing a segment; of
`snapshot_at` in Parquet and in a stream; and the bytes that a changed partition takes in each observation:
the default world of `kview serve` is observed for so many seconds, ten minutes if none are given.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from kview.model.snapshot import Snapshot
from kview.observe.observer import Observer
from kview.recording.reader import Recording
from kview.recording.writer import RecordingWriter
from tests.recording.snapshots import changed_partitions, size_of
from tests.served import Served
from tests.worlds import wide_snapshots

SIZES = (1_000, 10_000)
SECONDS = 60
TEN_MINUTES_S = 600


def milliseconds(began: float) -> float:
    """Since `began` of the performance counter."""
    return (time.perf_counter() - began) * 1000


def bytes_each(snapshots: Sequence[Snapshot], folder: Path) -> float:
    """Bytes of the closed recording for each changed partition and observation."""
    writer = RecordingWriter(folder)
    for snapshot in snapshots:
        writer.append(snapshot)
    writer.close()
    return size_of(folder) / changed_partitions(snapshots)


def speeds(partitions: int, folder: Path) -> str:
    """Appending, closing and finding a moment at that size."""
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
        Recording.open(folder).snapshot_at(before_last)
        found.append(milliseconds(began))
    median, worst = statistics.median(appends), statistics.quantiles(appends[1:], n=20)[-1]
    append = f"append {median:.1f} ms median, {worst:.1f} ms p95, {appends[0]:.0f} ms for a key"
    find = f"snapshot_at {found[0]:.0f} ms in a stream, {found[1]:.0f} ms in Parquet"
    return f"{partitions:>6} partitions: {append}; close {closing:.0f} ms; {find}"


def observed(seconds: int) -> list[Snapshot]:
    """The simulated cluster's default world with Kafka's own times, seen once a second."""
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
        snapshots = observed(int(sys.argv[1]) if len(sys.argv) > 1 else TEN_MINUTES_S)
        each = bytes_each(snapshots, Path(name) / "size")
        print(f"{each:.1f} bytes for each changed partition and observation, {len(snapshots)} observations")


if __name__ == "__main__":
    main()
