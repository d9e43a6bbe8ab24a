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
from kview.tui.rows.figures import count_figure, figure, moment_figure, size_figure
from kview.tui.rows.records import payload
from kview.tui.rows.row import Row
from kview.tui.text import Line, Role, line, line_width
from kview.tui.text import Span as Text
from kview.where.judge import value_at

MOST_FOUND = 1_000
"""Limit of the records that are kept. A person who reads this many wants another filter."""


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
        self.empty = ""
        days = {said.moment(each.record.timestamp_ms, zone)[:10] for each in found.candidates}
        self._with_day = len(days) > 1
        self._own, self._cells = found.columns, found.cells
        keys = [line_width(line(self._key(each))) for each in found.candidates[:100]]
        self.columns: Sequence[Column] = self._shown(keys) if found.candidates else ()

    def _shown(self, keys: Sequence[int]) -> Sequence[Column]:
        offsets = [len(words.count(offset)) for _, offset in self.keys]
        return (
            Column("partition", "part.", 5, right=True),
            Column("offset", "offset", max([8, *offsets]), right=True),
            Column("time", "time", 23 if self._with_day else 12, rank=1),
            Column("key", "key", min(12, max([6, *keys])), flex=1, most=min(60, max([6, *keys]))),
            *(self._column(place, field) for place, field in enumerate(self._own)),
            Column("value", "value", 30, flex=2),
            Column("size", "size", 7, right=True, rank=2, exported=("size bytes",)),
            Column("headers", "headers", 7, right=True, rank=3),
        )

    def _column(self, place: int, field: Field) -> Column:
        title = fields.name(field)
        cells = [line_width(line(of_row[place])) for of_row in self._cells[:100]]
        return Column(f"own-{place}", title, min(OWN_CELLS, max([6, len(title), *cells])))

    def candidate(self, index: int) -> Candidate:
        """Return the record of a row."""
        return self._candidates[index]

    def _key(self, each: Candidate) -> Text:
        return payload(each.record.key, self._form, decoded=each.decoded.key)

    def row(self, index: int, now_ms: int) -> Row:
        each = self._candidates[index]
        record = each.record
        moment = said.moment(record.timestamp_ms, self._zone)
        if record.timestamp_ms != UNKNOWN and len(moment) == 23 and not self._with_day:
            moment = moment[11:]
        headers = words.count(record.header_count) if record.header_count else ""
        return Row(
            (
                count_figure(each.partition, Role.DIM),
                count_figure(record.offset, Role.DIM),
                moment_figure(moment, record.timestamp_ms),
                line(self._key(each)),
                *(line(cell) for cell in (self._cells[index] if self._own else ())),
                line(payload(record.value, self._form, "null (tombstone)", each.decoded.value)),
                size_figure(record.key.size + record.value.size, Role.DIM),
                figure(headers, record.header_count, role=Role.DIM),
            )
        )


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
    notes = [f"{len(found.candidates):,} found"]
    if found.tally.records:
        notes.append(f"of {words.plural(found.tally.records, 'record')}")
        notes.append(f"{words.size(found.tally.bytes)}, {words.plural(found.cost.requests, 'request')}")
    if form is not Form.AUTO:
        notes.append(f"as {form.value}")
    return (*parts, *(Text(f" {glyphs.DOT} {note}", Role.DIM) for note in notes))
