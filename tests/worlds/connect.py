"""Kafka Connect as an observer sees it, if the profile names its REST API."""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from kview.model.failures import Cause, Part
from kview.model.snapshot import Connectors, Failure, Snapshot
from kview.model.units import CONNECTOR_TASK, NO_BROKER, UNKNOWN
from kview.school.camera.columns import table
from tests.worlds.kinds import CONNECT

SQL = 'java.sql.SQLException: relation "orders" does not exist'
EXITING = (
    "org.apache.kafka.connect.errors.ConnectException: Exiting WorkerSinkTask due to unrecoverable exception."
)

Row = tuple[str, int, str, str, str, str, str]


def connector(
    name: str, state: str, *tasks: str, kind: str = "sink", trace: str = EXITING, root: str = SQL
) -> list[Row]:
    """The rows of a connector and its tasks in these states; what has failed has a trace."""
    return [
        (name, at, kind, one, f"worker-{max(1, at)}:8083", *((trace, root) if one == "FAILED" else ("", "")))
        for at, one in enumerate((state, *tasks), CONNECTOR_TASK)
    ]


RUNNING = [
    *connector("billing", "RUNNING", "RUNNING", "RUNNING"),
    *connector("crm", "RUNNING", "RUNNING", kind="source"),
    *connector("old", "STOPPED"),
]
FAILED = [
    *connector("billing", "RUNNING", "FAILED", "RUNNING"),
    *connector(
        "crm", "FAILED", kind="source", trace="java.lang.IllegalStateException: cannot start", root=""
    ),
    *connector("old", "PAUSED", "PAUSED", "UNASSIGNED"),
]


def with_connectors(
    seen: Snapshot,
    rows: Sequence[tuple[Any, ...]] = RUNNING,
    age_ms: int | None = 0,
    cause: Cause | None = None,
    group: str = CONNECT,
) -> Snapshot:
    """Return the snapshot with these states, read `age_ms` ago, None for never.

    The last request failed because of `cause`, if there is one.
    """
    now_ms = seen.observation.ended_ms
    received_ms = UNKNOWN if age_ms is None else now_ms - age_ms
    observation = replace(seen.observation, connectors_received_ms=received_ms)
    if cause is not None:
        failure = Failure(Part.CONNECTORS, NO_BROKER, *cause, received_ms)
        observation = replace(observation, failures=(*observation.failures, failure))
    made = table(Connectors, [(group, *row) for row in sorted(rows)] if age_ms is not None else [])
    return replace(seen, observation=observation, connectors=made)
