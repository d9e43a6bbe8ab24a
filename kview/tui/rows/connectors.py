"""Rows of Kafka Connect's connectors and tasks, those that failed first."""

from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from kview.derive.groups.connect import are_known, group_of, reason, unread
from kview.derive.view import View
from kview.language import connectors, glyphs
from kview.model.events import Severity
from kview.model.snapshot import Snapshot
from kview.model.states import ConnectorState
from kview.model.units import CONNECTOR_TASK
from kview.tui.rows.columns import Column
from kview.tui.rows.common import Keyed, name_width, title
from kview.tui.rows.row import Row
from kview.tui.text import Line, Role, Span, line

STATE_CELLS = 12
"""The longest state with its sign: `○ UNASSIGNED`."""


class ConnectorRows(Keyed[str]):
    """The rows of the connectors that a group's workers run, each followed by its tasks."""

    def __init__(self, view: View, group: str) -> None:
        self._view, seen = view, view.snapshot
        table = seen.connectors
        own = np.flatnonzero(table.group == group)
        failed = np.asarray(table.state[own] == ConnectorState.FAILED, np.bool_)
        self._rows = own[np.argsort(~failed, kind="stable")]
        self._groups = {name: row for row, name in enumerate(seen.groups.group.tolist())}
        names = table.connector[self._rows].tolist()
        self._tasks = table.task[self._rows].tolist()
        super().__init__(
            [
                name if task == CONNECTOR_TASK else f"{name} task {task}"
                for name, task in zip(names, self._tasks, strict=True)
            ]
        )
        self._known = are_known(seen.observation)
        if self._known:
            self.severities = np.where(np.sort(~failed), Severity.CALM, Severity.RISK).astype(object)
            self.troubled = int(failed.sum())
        sinks = (table.kind[self._rows] == "sink") & (table.task[self._rows] == CONNECTOR_TASK)
        reads_as = {self.keys[at]: group_of(names[at]) for at in np.flatnonzero(sinks).tolist()}
        self._reads_as: Mapping[Hashable, str] = {
            key: name for key, name in reads_as.items() if name in self._groups
        }
        self.closed = frozenset(self.keys) - self._reads_as.keys()
        self.empty = _empty(seen)
        self.columns: Sequence[Column] = (
            Column("connector", "connector", name_width(names, 9, 24), flex=1, most=40, name=True),
            Column("part", "part", 9),
            Column("state", "state", STATE_CELLS),
            Column("worker", "worker", name_width(table.worker[self._rows], 6, 20), rank=1, name=True),
            Column("why", "reads as, or why it failed", 30, flex=3),
        )
        observed = seen.observation
        age = connectors.old(unread(observed), observed.connectors_received_ms, observed.ended_ms)
        notes = filter(None, ("failed first" if failed.any() else "", age))
        self.title: Line = title("CONNECTORS", f" {glyphs.DOT} ".join(notes))

    def group_of(self, key: Hashable) -> str:
        """Return the group as which the sink with that key reads, '' if no such group is known."""
        return self._reads_as.get(key, "")

    def trace(self, index: int) -> str:
        """Return the first line of the trace of what failed, '' if it has none."""
        return str(self._view.snapshot.connectors.trace[self._rows[index]])

    def row(self, index: int, now_ms: int) -> Row:
        at, table = int(self._rows[index]), self._view.snapshot.connectors
        task, state = self._tasks[index], str(table.state[at])
        is_own = task == CONNECTOR_TASK
        has_failed = state == ConnectorState.FAILED
        role = (Role.RISK if has_failed else Role.TEXT) if self._known else Role.DIM
        sign = _SIGNS.get(state, glyphs.FOLLOWER)
        details = [Span(reason(self._view.snapshot, at) or connectors.NO_TRACE, role)] if has_failed else []
        if group := self.group_of(self.keys[index]):
            figures, row = self._view.groups, self._groups[group]
            text = connectors.read_by(group, int(figures.lag[row]), bool(figures.lag_is_bound[row]))
            details.append(Span(f" {glyphs.DOT} {text}" if details else text, Role.DIM))
        return Row(
            (
                line(Span(str(table.connector[at]), Role.TEXT if is_own else Role.DIM)),
                line(Span((str(table.kind[at]) or "connector") if is_own else f"task {task}", Role.DIM)),
                line(Span(f"{sign} {state}", role)),
                line(Span(str(table.worker[at]), Role.DIM)),
                line(*details),
            )
        )


_SIGNS: Mapping[str, str] = {ConnectorState.FAILED: glyphs.DEAD, ConnectorState.RUNNING: glyphs.OK}


def _empty(seen: Snapshot) -> str:
    """Return why no connector is listed. None is, only if Kafka Connect said so."""
    if not are_known(seen.observation):
        return connectors.unknown(unread(seen.observation))
    return connectors.ELSEWHERE if len(seen.connectors) else connectors.NO_CONNECTORS
