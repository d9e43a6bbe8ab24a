"""Rows of the records that a search has found in the partitions of a topic."""

from collections.abc import Sequence
from datetime import tzinfo

from msgspec import Struct

from kview.language import glyphs, words
from kview.language import inspection as said
from kview.language import where as fields
from kview.language.payloads import Form
from kview.model.inspection import Cost, Isolation, Payload
from kview.model.search import SearchPlan, Span, Tally
from kview.model.units import UNKNOWN
from kview.model.where import Candidate, Field
from kview.tui.rows.columns import Column
from kview.tui.rows.common import Keyed
from kview.tui.rows.figures import count_figure, figure, moment_figure
from kview.tui.rows.records import payload, size
from kview.tui.rows.row import Row
from kview.tui.text import Line, Role, line, line_width
from kview.tui.text import Span as Text
from kview.where.judge import value_at

MOST_KEPT = 1_000
"""Limit of the records that are kept. A person who reads this many wants another filter."""


OWN_AT = 4
"""The columns of one's own stand before the value's."""
OWN_CELLS = 30
"""The most cells of a column of one's own."""


class Found(Struct, frozen=True):
    """A search as far as it is. `typed` is its filter."""

    typed: str
    topic: str
    isolation: Isolation
    columns: tuple[Field, ...] = ()
    """Fields that have columns of their own."""
    plan: SearchPlan | None = None
    spans: tuple[Span, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    cells: tuple[tuple[Text, ...], ...] = ()
    """What those columns show of each candidate."""
    tally: Tally = Tally()
    cost: Cost = Cost()


class FoundRows(Keyed[tuple[int, int]]):
    """The records that were found, in the order in which they were read. The key is (partition, offset)."""

    def __init__(self, found: Found, form: Form, zone: tzinfo | None) -> None:
        self._candidates = found.candidates
        super().__init__([(each.partition, each.record.offset) for each in found.candidates])
        self._form, self._zone = form, zone
        self.title = _title(found, form)
        days = {said.moment(each.record.timestamp_ms, zone)[:10] for each in found.candidates}
        self._with_day = len(days) > 1
        self._own, self._cells = found.columns, found.cells
        shown = list(candidate_columns(found.candidates, form, self._with_day))
        own = [self._column(place, field) for place, field in enumerate(self._own)] if shown else []
        self.columns: Sequence[Column] = [*shown[:OWN_AT], *own, *shown[OWN_AT:]]

    def _column(self, place: int, field: Field) -> Column:
        title = fields.name(field)
        cells = [line_width(line(of_row[place])) for of_row in self._cells[:100]]
        return Column(f"own-{place}", title, min(OWN_CELLS, max([6, len(title), *cells])))

    def candidate(self, index: int) -> Candidate:
        """Return the record of a row."""
        return self._candidates[index]

    def row(self, index: int, now_ms: int) -> Row:
        cells = candidate_cells(self._candidates[index], self._form, self._zone, self._with_day)
        own = (line(cell) for cell in (self._cells[index] if self._own else ()))
        return Row((*cells[:OWN_AT], *own, *cells[OWN_AT:]))


def candidate_columns(
    candidates: Sequence[Candidate], form: Form, with_day: bool = False
) -> Sequence[Column]:
    """Return the columns of records of several partitions, none if there are no records."""
    keys = [line_width(line(_key(each, form))) for each in candidates[:100]]
    offsets = [len(words.count(each.record.offset)) for each in candidates]
    if not candidates:
        return ()  # a head above nothing would look like a table that failed to fill
    return (
        Column("partition", "part.", 5, right=True),
        Column("offset", "offset", max([8, *offsets]), right=True),
        Column("time", "time", 23 if with_day else 12, rank=1),
        Column("key", "key", min(12, max([6, *keys])), flex=1, most=min(60, max([6, *keys]))),
        Column("value", "value", 30, flex=2),
        Column("size", "size", 7, right=True, rank=2, exported=("size bytes",)),
        Column("headers", "headers", 7, right=True, rank=3),
    )


def candidate_cells(
    each: Candidate, form: Form, zone: tzinfo | None, with_day: bool = False
) -> tuple[Line, ...]:
    """Return the cells of a record for `candidate_columns`."""
    record = each.record
    moment = said.moment(record.timestamp_ms, zone)
    if record.timestamp_ms != UNKNOWN and len(moment) == 23 and not with_day:
        moment = moment[11:]
    headers = words.count(record.header_count) if record.header_count else ""
    return (
        count_figure(each.partition, Role.DIM),
        count_figure(record.offset, Role.DIM),
        moment_figure(moment, record.timestamp_ms),
        line(_key(each, form)),
        line(payload(record.value, form, "null (tombstone)", each.decoded.value)),
        size(record),
        figure(headers, record.header_count, role=Role.DIM),
    )


def _key(each: Candidate, form: Form) -> Text:
    return payload(each.record.key, form, decoded=each.decoded.key)


def own_cells(some: Sequence[Candidate], columns: Sequence[Field]) -> tuple[tuple[Text, ...], ...]:
    """Return what columns show of records. Large JSON takes some time: this may run on a thread."""
    return tuple(tuple(_own_cell(each, field) for field in columns) for each in some)


def _own_cell(each: Candidate, field: Field) -> Text:
    is_there, node = value_at(each, field)
    if not is_there:
        return Text(words.NONE, Role.DIM)
    if isinstance(node, Payload):
        return payload(node, Form.AUTO)
    return Text(fields.value(node), Role.DIM if node is None else Role.TEXT)


def _title(found: Found, form: Form) -> Line:
    """Return the panel's title: the topic, the filter, how many were found, and what that has cost."""
    uncommitted = found.isolation is Isolation.READ_UNCOMMITTED
    parts = [Text("RECORDS", Role.HEAD), Text(f" {found.topic}", Role.BRIGHT)]
    if uncommitted:
        parts.append(Text(f" {glyphs.DOT} {said.UNCOMMITTED}", Role.WARN))
    parts.append(Text(f" {glyphs.DOT} {found.typed}", Role.KEY))
    notes = [said.MASKED] if any(each.record.masked for each in found.candidates) else []
    notes.append(f"{len(found.candidates):,} found")
    if found.tally.records:
        notes.append(f"of {words.plural(found.tally.records, 'record')}")
        notes.append(f"{words.size(found.tally.bytes)}, {words.plural(found.cost.requests, 'request')}")
    if form is not Form.AUTO:
        notes.append(f"as {form.value}")
    return (*parts, *(Text(f" {glyphs.DOT} {note}", Role.DIM) for note in notes))
