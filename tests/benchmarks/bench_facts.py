"""Measures what recording the facts costs: `python -m tests.benchmarks.bench_facts`.

For the default world with a crash, and for 10,000 partitions with 5 and with 1,000 groups of which every
offset changes every second, each run is recorded without facts and with them. Printed are the CPU time of an
append (the fold not included, which the screen needs anyway), the bytes of the stream for each observation,
and those of the closed recording.
"""

import itertools
import statistics
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from kview.derive.facts import Facts
from kview.derive.fold import State, step
from kview.model.snapshot import Snapshot
from kview.recording.writer import RecordingWriter
from tests.recording.snapshots import size_of
from tests.worlds import wide_snapshots
from tests.worlds.scripts import crash_script

SECONDS = 60


class Cost(NamedTuple):
    """What an observation costs: CPU in ms (median), and bytes (mean, without the first observation)."""

    append_ms: float
    stream_bytes: float
    closed_bytes: float


def cost(seen: Iterable[tuple[Snapshot, Facts | None]], folder: Path) -> Cost:
    """Record a run, and return what it cost."""
    writer = RecordingWriter(folder, segment_s=1e6)
    appends, streams = [], [0]
    for snapshot, facts in seen:
        began = time.thread_time()
        writer.append(snapshot, facts)
        appends.append((time.thread_time() - began) * 1000)
        streams.append(writer.stream_bytes)
    each = [b - a for a, b in itertools.pairwise(streams[1:])]
    writer.close()
    return Cost(statistics.median(appends), statistics.mean(each), size_of(folder) / len(appends))


def folded(snapshots: Iterable[Snapshot]) -> list[tuple[Snapshot, Facts | None]]:
    """Return each snapshot with its facts."""
    state = State()
    out: list[tuple[Snapshot, Facts | None]] = []
    for snapshot in snapshots:
        state, view = step(state, snapshot)
        out.append((snapshot, Facts.of(view)))
    return out


def main() -> None:
    """Print the figures."""
    runs = {
        "default world": list(crash_script(4)),
        "10,000 partitions, 5 groups": wide_snapshots(10_000, SECONDS),
        "10,000 partitions, 1,000 groups": wide_snapshots(10_000, SECONDS, groups=1_000),
    }
    with tempfile.TemporaryDirectory() as name:
        for number, (what, snapshots) in enumerate(runs.items()):
            seen = folded(snapshots)
            before = cost([(snapshot, None) for snapshot, _ in seen], Path(name) / f"{number}-without")
            now = cost(seen, Path(name) / f"{number}-with")
            print(
                f"{what}: append {before.append_ms:.1f} → {now.append_ms:.1f} ms CPU; stream "
                f"{before.stream_bytes:,.0f} → {now.stream_bytes:,.0f} bytes; closed "
                f"{before.closed_bytes:,.0f} → {now.closed_bytes:,.0f} bytes for each observation"
            )


if __name__ == "__main__":
    main()
