"""Rows of a report's text."""

from collections.abc import Mapping, Sequence

from kview.model.reporting import LineKind, ReportLine
from kview.tui.rows.columns import Column
from kview.tui.rows.common import ROLES, Keyed
from kview.tui.rows.row import Row
from kview.tui.text import Role, Span, line

_ROLES: Mapping[LineKind, Role] = {
    LineKind.TITLE: Role.BRIGHT,
    LineKind.HEAD: Role.HEAD,
    LineKind.COLUMNS: Role.DIM,
    LineKind.TEXT: Role.TEXT,
}


class ReportRows(Keyed[int]):
    """The lines of a report. The key is the line's number."""

    def __init__(self, lines: Sequence[ReportLine]) -> None:
        super().__init__(range(len(lines)))
        self._lines = lines
        self.columns: Sequence[Column] = (Column("line", "", 40, flex=1),)

    def row(self, index: int, now_ms: int) -> Row:
        report_line = self._lines[index]
        if report_line.kind is not LineKind.SUMMARY:
            role = _ROLES[report_line.kind]
        else:
            role = ROLES[report_line.severity]
            if role is Role.DIM:
                role = Role.TEXT
        return Row((line(Span(report_line.text, role)),))
