"""Rows of a topic that is followed: the records of all its partitions, the newest last."""

from collections.abc import Sequence
from datetime import tzinfo

from kview.derive.following import Following, Gap
from kview.language import glyphs
from kview.language import inspection as said
from kview.language import tail as tail_words
from kview.language.glyphs import printable
from kview.language.payloads import Form
from kview.model.inspection import Isolation
from kview.model.where import Candidate
from kview.tui.rows.columns import Column
from kview.tui.rows.common import Keyed
from kview.tui.rows.found import candidate_cells, candidate_columns
from kview.tui.rows.row import Row
from kview.tui.text import EMPTY, Line, Role, Span, line


def tail_title(followed: Following, is_over: bool, form: Form) -> Line:
    """Return the panel's title: the topic, how much of it is shown, and what that costs."""
    state = "PAUSED" if followed.paused else "FOLLOWED" if is_over else "FOLLOWING"
    role = Role.WARN if followed.paused else Role.DIM if is_over else Role.GOOD
    parts = [Span("RECORDS", Role.HEAD), Span(f" {followed.topic}", Role.BRIGHT), Span(f" {state}", role)]
    if followed.typed:
        parts.append(Span(f" {glyphs.DOT} {printable(followed.typed)}", Role.BRIGHT))
    notes, rates = [], followed.rates()
    if any(isinstance(item, Candidate) and item.record.masked for _, item in followed.items):
        notes.append(said.MASKED)
    if rates is not None and not is_over:
        notes.append(tail_words.rates(rates.shown, rates.passing, rates.is_estimate))
        notes.append(tail_words.cost(rates.bytes))
    if followed.isolation is Isolation.READ_UNCOMMITTED:
        parts.append(Span(f" {glyphs.DOT} {said.UNCOMMITTED}", Role.WARN))
    else:
        notes.append(said.COMMITTED)
    if form is not Form.AUTO:
        notes.append(f"as {form.value}")
    return (*parts, *(Span(f" {glyphs.DOT} {note}", Role.DIM) for note in notes))


class TailRows(Keyed[int]):
    """Records of a topic that is followed. The key counts them."""

    def __init__(self, followed: Following, is_over: bool, form: Form, zone: tzinfo | None) -> None:
        self._items = list(followed.items)
        super().__init__([number for number, _ in self._items])
        self._form, self._zone = form, zone
        self.title = tail_title(followed, is_over, form)
        last = [item for _, item in self._items[-100:] if isinstance(item, Candidate)]
        self.columns: Sequence[Column] = candidate_columns(last, form)

    def candidate(self, index: int) -> Candidate | None:
        """Return the record of a row, None for a gap."""
        item = self._items[index][1]
        return item if isinstance(item, Candidate) else None

    def why(self, index: int) -> str:
        """Return what a row without a record stands for."""
        item = self._items[index][1]
        return tail_words.missed(item.records) if isinstance(item, Gap) else ""

    def row(self, index: int, now_ms: int) -> Row:
        item = self._items[index][1]
        if isinstance(item, Gap):
            gap = line(Span(f"{glyphs.ELLIPSIS} {self.why(index)}", Role.WARN))
            return Row((EMPTY, EMPTY, EMPTY, EMPTY, gap, EMPTY, EMPTY))
        return Row(candidate_cells(item, self._form, self._zone))
