"""A run with two incidents and what its fold concluded, and the facts read from a recording of it."""

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from kview.derive.facts import Facts
from kview.derive.fold import State, step
from kview.derive.view import View
from kview.model.failures import FailureKind
from kview.model.snapshot import Snapshot
from kview.recording.reader import Recording
from kview.recording.writer import RecordingWriter
from tests.worlds import default_world

HEALTHY_S, DOWN_S, AFTER_S = 15, 16, 10
CRASHED, HUNG = 4, 1
SECONDS = HEALTHY_S + 2 * (DOWN_S + AFTER_S)

Row = dict[str, Any]


class Seen(NamedTuple):
    """An observation, and its view."""

    snapshot: Snapshot
    view: View


def two_incidents() -> list[Snapshot]:
    """Return a snapshot per second: a broker crashes, is fenced and returns, then another one hangs, is
    fenced and returns."""
    world = default_world()
    out = [world.tick() for _ in range(HEALTHY_S)]
    for broker, why in ((CRASHED, FailureKind.REFUSED), (HUNG, FailureKind.SILENT)):
        world.crash(broker, why)
        out += [world.tick() for _ in range(DOWN_S)]
        world.back(broker)
        out += [world.tick() for _ in range(AFTER_S)]
    return out


@cache
def two_incidents_seen() -> list[Seen]:
    """Return them with their views."""
    return folded(two_incidents())


def folded(snapshots: Iterable[Snapshot]) -> list[Seen]:
    """Return the snapshots with their views."""
    state, out = State(), []
    for snapshot in snapshots:
        state, view = step(state, snapshot)
        out.append(Seen(snapshot, view))
    return out


def recorded(folder: Path, run: Iterable[Seen], **options: float) -> RecordingWriter:
    """Record a run with its facts, and return the writer, which is still open."""
    writer = RecordingWriter(folder, **options)  # type: ignore[arg-type]
    for seen in run:
        writer.append(seen.snapshot, Facts.of(seen.view))
    return writer


def rows(recording: Recording, part: str, after_sequence: int = -1) -> list[Row]:
    """Return the rows of a part with facts."""
    return [row for table in recording.facts(part, after_sequence) for row in table.to_pylist()]


def last_of_each(incidents: list[Row]) -> dict[str, Row]:
    """Return the last row of each incident."""
    return {row["id"]: row for row in incidents}
