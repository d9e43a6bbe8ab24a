"""Hours of data through the live job, faster than real time. Its figures stay correct, and nothing
accumulates.

With CI=true, the test uses ten minutes of data. `--soak-minutes 360` makes it six hours.
"""

import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from kview.errors import ErrorFacts
from kview.model.aggregates import Aggregates, Key, SparkState
from kview.model.snapshot import Snapshot
from kview.model.sums import SUMS, Kind, Sum
from kview.model.units import UNKNOWN
from kview.pipeline.process import LiveJob
from kview.pipeline.store import MAX_BYTES, MAX_MINUTES
from kview.recording.writer import RecordingWriter
from tests.e2e.processes import descendants, jvms, resident_bytes
from tests.pipeline.figures import COUNTED, Counted, size_of
from tests.waiting import wait_until
from tests.worlds import default_world
from tests.worlds.histories import HAPPENINGS
from tests.worlds.parts import topic

AHEAD = 30
"""Number of observations that are written before the job has rolled them up, which is the size of a batch.
The job makes one batch a second."""

KEPT_S = 120
"""Older segments of the recording are deleted, as in a ring."""

MEASURED_EVERY = 60

ROLLED_UP_WITHIN_S = 120

GROWS_FILES, GROWS_FILE_BYTES = 12, 64 << 10
"""Files of the current batch, and of the previous batch until they are removed."""

RESIDENT_BYTES, GROWS_JAVA_BYTES, GROWS_PYTHON_BYTES = 900 << 20, 256 << 20, 40 << 20
"""Limits of the job's memory. Java fills its heap before it collects garbage. Python's share of memory that
processes have in common grows when the other processes end."""

EACH_MINUTE = {
    3: "crash 4",
    10: "rewind",
    16: "back 4",
    22: "rebalance",
    30: "truncate",
    36: "come or go",
    41: "create again",
    47: "stop",
    52: "idle",
    55: "rebalance",
}
"""Second of each minute → what happens then."""

HAPPENS = (Sum.RECORDS_IN, Sum.REPLICATED, Sum.CROSS_RACK, Sum.TRUNCATED, Sum.RECORDS_OUT, Sum.REWOUND)


def history(observations: int) -> Iterator[Snapshot]:
    """Yield snapshots of the default world with an incident every few seconds, and a new topic each
    minute."""
    world = default_world()
    world.logs = [log for log in world.logs if not log.internal or log.partition < 4]
    for number in range(observations):
        minute, second = divmod(number, 60)
        if second in EACH_MINUTE:
            HAPPENINGS[EACH_MINUTE[second]](world)
        if second == 58:
            others = [log for log in world.logs if not log.topic.startswith("passing")]
            world.logs = sorted([*others, *topic(f"passing-{minute}", 2, 3, 30.0)], key=lambda log: log.key)
        yield world.tick()


class Heard:
    """The figures that the job has published, including those of minutes that it has dropped since."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_minute: dict[int, dict[Sum, int]] = {}
        self.until_ms = UNKNOWN
        self.batches = 0
        self.store_bytes = 0
        self.minutes = 0
        self.failures: list[ErrorFacts | None] = []

    def hear(self, aggregates: Aggregates) -> None:
        with self._lock:
            rollups = aggregates.rollups
            if aggregates.status.state is SparkState.FAILED:
                self.failures.append(aggregates.status.error)
            if aggregates.status.state is not SparkState.RUNNING or Key(Kind.CLUSTER) not in rollups.keys:
                return
            row = rollups.keys.index(Key(Kind.CLUSTER))
            for block in rollups.blocks:
                sums = block.sums[:, row].sum(1)
                self._by_minute[block.minute] = {column: int(sums[SUMS.index(column)]) for column in COUNTED}
            self.store_bytes = size_of(rollups)
            self.minutes = len(rollups.blocks)
            self.until_ms = rollups.until_ms
            self.batches += 1

    def sums(self) -> dict[Sum, int]:
        with self._lock:
            return {column: sum(of[column] for of in self._by_minute.values()) for column in COUNTED}


@dataclass(frozen=True)
class Held:
    """The resources that the job uses at a moment."""

    observations: int
    batches: int
    files: int
    file_bytes: int
    java_bytes: int
    python_bytes: int
    store_bytes: int
    minutes: int

    def __str__(self) -> str:
        return (
            f"{self.observations:6} observations, {self.batches:5} batches: {self.files:3} files of"
            f" {self.file_bytes >> 10:4} kB, {self.java_bytes >> 20:3} + {self.python_bytes >> 20:3} MB of"
            f" Java and Python, {self.minutes:2} minutes kept in {self.store_bytes / (1 << 20):4.1f} MB"
        )


def held(job: LiveJob, heard: Heard, observations: int) -> Held:
    assert job.pid is not None
    words = dict(descendants(os.getpid()))[job.pid].split()
    below = descendants(job.pid)
    java = set(jvms(job.pid))
    sizes = []
    for folder, _, names in os.walk(words[words.index("--scratch") + 1]):
        for name in names:
            with suppress(FileNotFoundError):  # The job has removed the file in the meantime.
                sizes.append(os.stat(os.path.join(folder, name)).st_size)
    return Held(
        observations,
        heard.batches,
        files=len(sizes),
        file_bytes=sum(sizes),
        java_bytes=resident_bytes(java),
        python_bytes=resident_bytes({job.pid, *(pid for pid, _ in below)} - java),
        store_bytes=heard.store_bytes,
        minutes=heard.minutes,
    )


def forget(writer: RecordingWriter, now_ms: int) -> None:
    """Remove segments older than KEPT_S."""
    old = tuple(s for s in writer.segments if s.closed and now_ms - s.ended_ms > KEPT_S * 1000)
    if old:
        writer.forget(old)
        for segment in old:
            shutil.rmtree(writer.folder / segment.folder)


@pytest.mark.slow  # other tests check a minute of figures; this one checks hours
@pytest.mark.skipif(not os.path.exists("/proc/self/smaps_rollup"), reason="it is Linux that tells memory")
def test_hours_of_data_leave_nothing_behind(pytestconfig: pytest.Config, tmp_path: Path) -> None:
    observations = 60 * pytestconfig.getoption("--soak-minutes")
    reported_every = max(MEASURED_EVERY, observations // 20 // MEASURED_EVERY * MEASURED_EVERY)
    counted, heard, measured = Counted(), Heard(), list[Held]()
    writer = RecordingWriter(tmp_path / "recording", segment_s=60, small_segment_bytes=0)
    now_ms = 0
    job = LiveJob(writer.folder, heard.hear, lambda: now_ms)
    job.start()
    try:
        for number, snapshot in enumerate(history(observations), 1):
            now_ms = snapshot.observation.ended_ms
            writer.append(snapshot)
            forget(writer, now_ms)
            counted.add(snapshot)
            if number < AHEAD:
                continue
            due_ms = now_ms if number == observations else now_ms - (AHEAD - 1) * 1000
            wait_until(lambda: heard.failures or heard.until_ms >= due_ms, "roll-ups", ROLLED_UP_WITHIN_S)  # noqa: B023
            assert not heard.failures
            if number % MEASURED_EVERY == 0:
                measured.append(held(job, heard, number))
                if number % reported_every == 0:
                    print(measured[-1], flush=True)
    finally:
        job.stop()

    assert heard.sums() == counted.sums
    assert all(counted.sums[column] for column in HAPPENS), "the history must have something of everything"
    warm, last = measured[len(measured) // 3], measured[-1]
    assert last.batches > warm.batches + 10
    assert last.files <= warm.files + GROWS_FILES
    assert last.file_bytes <= warm.file_bytes + GROWS_FILE_BYTES
    assert last.java_bytes + last.python_bytes <= RESIDENT_BYTES
    assert last.java_bytes <= warm.java_bytes + GROWS_JAVA_BYTES
    assert last.python_bytes <= warm.python_bytes + GROWS_PYTHON_BYTES
    assert all(one.store_bytes <= MAX_BYTES and one.minutes <= MAX_MINUTES for one in measured)
    assert not heard.failures
