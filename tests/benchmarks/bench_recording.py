"""What recording costs: `python -m tests.benchmarks.bench_recording [FILE]`.

The time of an append, at 1,000 and 10,000 partitions that all change every second; of closing a segment; of `snapshot_at`
in Parquet and in a stream; and the bytes that a changed partition takes in each observation, over ten minutes. That one is
of the world of `tests.worlds` with noise, or of the real snapshots in FILE: a pickled list that `--record`ed observers make
with `capture`.
"""

import pickle
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from kview.model.snapshot import Snapshot
from kview.recording.reader import Recording
from kview.recording.writer import RecordingWriter
from tests.worlds import default_world, wide_snapshots

SIZES = (1_000, 10_000)
SECONDS = 60
TEN_MINUTES_S = 600
SEED = 1


def milliseconds(began: float) -> float:
    """Since `began` of the performance counter."""
    return (time.perf_counter() - began) * 1000


def moved(snapshot: Snapshot, chance: np.random.Generator) -> Snapshot:
    """As a real cluster gives it: readings some ms and records beside the clockwork's."""
    table, replicas = snapshot.partitions, snapshot.replicas
    leads = table.leader[replicas.row] == replicas.broker
    noise = chance.poisson(8.0, len(table)) * (table.internal == 0)
    behind = chance.poisson(8.0, len(replicas)) * (table.internal == 0)[replicas.row]
    log_end = table.log_end + noise
    jitter = chance.integers(0, 12, 64)
    at_ms = table.log_end_ms + jitter[table.leader]
    ends = np.where(leads, log_end[replicas.row], replicas.log_end + behind)
    times = np.where(leads, at_ms[replicas.row], replicas.log_end_ms + jitter[replicas.broker + 20])
    watermark = np.minimum(log_end, table.high_watermark + chance.poisson(6.0, len(table)) * (table.internal == 0))
    return replace(
        snapshot,
        partitions=replace(
            table,
            log_end=log_end,
            log_end_ms=at_ms,
            high_watermark=watermark,
            high_watermark_ms=at_ms,
            last_stable=watermark,
        ),
        replicas=replace(replicas, log_end=ends, log_end_ms=times),
    )


def changed_partitions(snapshots: Sequence[Snapshot]) -> int:
    """Over all observations, the partitions of which an offset or a replica's log end changed."""
    count = 0
    for a, b in zip(snapshots, snapshots[1:], strict=False):
        if len(a.replicas) != len(b.replicas) or len(a.partitions) != len(b.partitions):
            continue
        changed = (a.partitions.high_watermark != b.partitions.high_watermark) | (
            a.partitions.log_end != b.partitions.log_end
        )
        changed[b.replicas.row[a.replicas.log_end != b.replicas.log_end]] = True
        count += int(changed.sum())
    return count


def size_of(folder: Path) -> int:
    """Of all files in it."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


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
    return (
        f"{partitions:>6} partitions: append {median:.1f} ms median, {worst:.1f} ms p95, key {appends[0]:.0f} ms; "
        f"close {closing:.0f} ms; snapshot_at {found[0]:.0f} ms in a stream, {found[1]:.0f} ms in Parquet"
    )


def main() -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as name:
        for partitions in SIZES:
            print(speeds(partitions, Path(name) / str(partitions)))
        if len(sys.argv) > 1:
            snapshots = pickle.loads(Path(sys.argv[1]).read_bytes())
        else:
            world, chance = default_world(), np.random.default_rng(SEED)
            snapshots = [moved(world.tick(), chance) for _ in range(TEN_MINUTES_S)]
        each = bytes_each(snapshots, Path(name) / "size")
        print(f"{each:.1f} bytes for each changed partition and observation, {len(snapshots)} observations")


if __name__ == "__main__":
    main()
