"""Snapshots to record, including any that a cluster might produce, and their comparison after reading."""

import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st
from msgspec.structs import replace

from kview.model.failures import FailureKind, Part
from kview.model.snapshot import Failure, Observation, Replicas, Snapshot, columns, empty
from kview.model.units import UNKNOWN, UNKNOWN_ID
from kview.recording.columns import TABLES
from kview.recording.reader import Recording
from tests.worlds import default_world, views

WORDS = ("", "invoice", "payment", "a", "ü–≈", "up", "silent")
LONGS = (UNKNOWN, -1, 0, 1, 7, 2**62, -(2**62))
IDS = (UNKNOWN_ID, -1, 0, 1, 2, 2**31 - 1)
START_MS = 1_760_000_000_000


def all_of(recording: Recording) -> list[Snapshot]:
    """Return every snapshot of a recording, in the order of recording."""
    return list(recording.stretch(0, len(recording.moments()) - 1))


def assert_equal(read: Snapshot, written: Snapshot) -> None:
    """Check that two snapshots have the same values of the same types in every column."""
    assert read.observation == written.observation
    for name in TABLES:
        for column in TABLES[name].__struct_fields__:
            got, expected = (getattr(getattr(s, name), column) for s in (read, written))
            assert got.dtype == expected.dtype, f"{name}.{column}"
            assert np.array_equal(got, expected), f"{name}.{column}: {got} for {expected}"


def assert_all_equal(read: Sequence[Snapshot], written: Sequence[Snapshot]) -> None:
    """Check that two sequences consist of equal snapshots."""
    assert len(read) == len(written)
    for got, expected in zip(read, written, strict=True):
        assert_equal(got, expected)


def _column(draw: st.DrawFn, name: str, kind: Any, rows: int, moment_ms: int) -> Any:
    shape = (rows, draw(st.integers(0, 3))) if kind.dimensions == 2 else (rows,)
    size = int(np.prod(shape))
    if kind.dtype is np.object_:
        choice: Any = st.sampled_from(WORDS)
    elif kind.dtype is np.bool_:
        choice = st.booleans()
    elif name.endswith("_ms"):
        choice = st.sampled_from((UNKNOWN, moment_ms, moment_ms, moment_ms - 1, moment_ms - 1000))
    elif kind.dtype is np.int64:
        choice = st.sampled_from(LONGS) | st.integers(0, 2**40)
    else:
        choice = st.sampled_from(IDS) | st.integers(0, max(rows, 1))
    values = draw(st.lists(choice, min_size=size, max_size=size))
    return np.array([*values, None], object)[:-1].astype(kind.dtype).reshape(shape)


@st.composite
def histories(draw: st.DrawFn) -> list[Snapshot]:
    """A few consecutive snapshots, in which some columns, tables or complete snapshots are the same objects
    as before."""
    history: list[Snapshot] = []
    moment_ms = START_MS
    for sequence in range(draw(st.integers(1, 5))):
        moment_ms += draw(st.sampled_from((1000, 1000, 61_000, 0, -3_600_000)))
        failures = (Failure(Part.METADATA, 1, FailureKind.KAFKA_ERROR, 7),) if draw(st.booleans()) else ()
        seen = Observation(
            sequence=sequence % 3,
            began_ms=moment_ms - 5,
            ended_ms=moment_ms,
            cluster_id=draw(st.sampled_from(("one", "two"))),
            failures=failures,
            connectors_received_ms=draw(st.sampled_from((UNKNOWN, moment_ms, moment_ms - 1000))),
            asked=(Part.METADATA,),
            capabilities=frozenset({"quorum", "debugging_replica"}) if draw(st.booleans()) else frozenset(),
        )
        before = history[-1] if history else Snapshot(seen)
        tables: dict[str, Any] = {}
        for name in draw(st.sets(st.sampled_from(sorted(TABLES)), max_size=4)):
            kind = TABLES[name]
            same_rows = draw(st.booleans())
            rows = len(getattr(before, name)) if same_rows else draw(st.integers(0, 4))
            table = getattr(before, name) if same_rows else empty(kind)
            made = {
                column: getattr(table, column)
                if same_rows and draw(st.booleans())
                else _column(draw, column, kind_of, rows, moment_ms)
                for column, kind_of in columns(kind).items()
            }
            tables[name] = kind(**made)
        made_up = replace(before, observation=seen, **tables)
        # The replicas belong to existing partitions. Everything else is arbitrary.
        partitions, replicas = len(made_up.partitions), made_up.replicas
        if partitions and (replicas.row % partitions != replicas.row).any():
            made_up = replace(made_up, replicas=replace(replicas, row=replicas.row % np.int32(partitions)))
        elif not partitions:
            made_up = replace(made_up, replicas=empty(Replicas))
        history.append(made_up)
    return history


def ticking(seconds: int, crash_at: int | None = None) -> list[Snapshot]:
    """Return snapshots of a default world, one per second. Broker 4 crashes at second `crash_at`."""
    world = default_world()
    out = []
    for second in range(seconds):
        if second == crash_at:
            world.crash(4)
        out.append(world.tick())
    return out


def moved(snapshot: Snapshot, chance: np.random.Generator) -> Snapshot:
    """Return the snapshot as a real cluster would produce it, with times and offsets slightly shifted."""
    table, replicas = snapshot.partitions, snapshot.replicas
    busy = ~table.internal
    leads = table.leader[replicas.row] == replicas.broker
    noise = chance.poisson(8.0, len(table)) * busy
    behind = chance.poisson(8.0, len(replicas)) * busy[replicas.row]
    log_end = table.log_end + noise
    jitter = chance.integers(0, 12, 64)
    at_ms = table.log_end_ms + jitter[table.leader]
    ends = np.where(leads, log_end[replicas.row], replicas.log_end + behind)
    times = np.where(leads, at_ms[replicas.row], replicas.log_end_ms + jitter[replicas.broker + 20])
    watermark = np.minimum(log_end, table.high_watermark + chance.poisson(6.0, len(table)) * busy)
    return replace(
        snapshot,
        partitions=replace(
            table,
            log_end=log_end,
            log_end_ms=at_ms,
            high_watermark=watermark,
            high_watermark_ms=at_ms,
            last_stable=watermark,
            last_stable_ms=at_ms,
        ),
        replicas=replace(replicas, log_end=ends, log_end_ms=times),
    )


def changed_partitions(snapshots: Sequence[Snapshot]) -> int:
    """Return the number of partitions with a changed offset or replica log end, summed over all
    observations."""
    count = 0
    for a, b in itertools.pairwise(snapshots):
        if len(a.replicas) != len(b.replicas) or len(a.partitions) != len(b.partitions):
            continue
        changed = (a.partitions.high_watermark != b.partitions.high_watermark) | (
            a.partitions.log_end != b.partitions.log_end
        )
        changed[b.replicas.row[a.replicas.log_end != b.replicas.log_end]] = True
        count += int(changed.sum())
    return count


def size_of(folder: Path) -> int:
    """Return the size of all files in the folder, in bytes."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def concluded(snapshots: Iterable[Snapshot]) -> list[Snapshot]:
    """Snapshots with what is concluded of them, as they are recorded with their views."""
    return [replace(view.snapshot, oldest_unread=view.oldest_unread) for view in views(snapshots)]
