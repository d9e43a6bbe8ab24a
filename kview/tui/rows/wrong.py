"""Rows of what is wrong: every finding in a whole sentence, and the stopwatch of every open incident."""

from collections.abc import Hashable, Sequence
from datetime import tzinfo
from textwrap import wrap
from typing import NamedTuple

from kview.derive.view import View
from kview.language import incidents as said
from kview.language.findings import sentences
from kview.model.incidents import Incident
from kview.tui.rows.columns import Column
from kview.tui.rows.common import ROLES, SIGNS, Keyed, title
from kview.tui.rows.incidents import stage_lines, state
from kview.tui.rows.row import Row
from kview.tui.text import EMPTY, Line, Role, Span, line

INDENT = "  "


class WrongKey(NamedTuple):
    """The key of a row: `about` is the key of the incident that it is about, None if it is about none."""

    about: Hashable | None
    number: int


class WrongRows(Keyed[WrongKey]):
    """The findings of a view and the incidents `shown`, over as many rows of `cells` as they need."""

    def __init__(
        self, view: View, shown: Sequence[Incident], now_ms: int, zone: tzinfo | None, cells: int
    ) -> None:
        lines: list[tuple[Hashable | None, Line]] = []
        findings = view.headline.findings
        for finding, sentence in zip(findings, sentences(findings, now_ms), strict=True):
            role = ROLES[finding.severity]
            sign = Span(f"{SIGNS[finding.severity]} ", Role.GOOD if role is Role.DIM else role)
            for at, text in enumerate(wrap(sentence, cells - len(INDENT))):
                lines.append((None, line(Span(INDENT) if at else sign, Span(text, role))))
        for incident in shown:
            lines.append((None, EMPTY))
            name = line(Span(said.title(incident), Role.BRIGHT), Span(INDENT), *state(incident))
            lines.append((incident.key, name))
            lines += [(incident.key, stage) for stage in stage_lines(incident, now_ms, zone)]
            for text in said.consequences(incident):
                lines += [
                    (incident.key, line(Span(f"{INDENT}{part}", Role.DIM)))
                    for part in wrap(text, cells - len(INDENT))
                ]
        super().__init__([WrongKey(about, number) for number, (about, _) in enumerate(lines)])
        self.closed = frozenset(key for key in self.keys if key.about is None)
        self._lines = [text for _, text in lines]
        self.title: Line = title("WHAT IS WRONG", "worst first")
        self.columns: Sequence[Column] = (Column("line", "", 40, flex=1),)

    def row(self, index: int, now_ms: int) -> Row:
        return Row((self._lines[index],))
