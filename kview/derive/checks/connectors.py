"""What a check finds about Kafka Connect: one finding for each connector with a failure."""

from collections.abc import Iterator

from kview.derive.groups.connect import failed, reason
from kview.derive.view import View
from kview.model.checks import CheckFinding, CheckKind, Level
from kview.model.units import CONNECTOR_TASK


def connector_findings(view: View) -> Iterator[CheckFinding]:
    """Yield the connectors that have failed, or of which tasks have, with the reason of the first."""
    table = view.snapshot.connectors
    by_name: dict[str, list[int]] = {}
    for row in failed(view.snapshot).tolist():
        by_name.setdefault(str(table.connector[row]), []).append(row)
    for name, rows in by_name.items():
        yield CheckFinding(
            CheckKind.CONNECT_TASK_FAILED,
            Level.RISK,
            name=name,
            amount=int((table.task[rows] != CONNECTOR_TASK).sum()),
            trace=reason(view.snapshot, rows[0]),
        )
