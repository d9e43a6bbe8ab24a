"""Rows of records, and of a single record in full."""

from collections.abc import Sequence
from datetime import tzinfo

from rich.cells import chop_cells

from kview.language import decoded as schemas
from kview.language import glyphs, payloads, trees, words
from kview.language import inspection as said
from kview.language.payloads import Form
from kview.language.trees import Token
from kview.model.decoded import NOT_DECODED, DecodeAnswer, Decoded, DecodedRecord
from kview.model.inspection import Damage, Isolation, Payload, Record, RecordsAnswer, RecordsRequest
from kview.model.masking import MASKED
from kview.model.units import UNKNOWN
from kview.tui.rows.columns import Column
from kview.tui.rows.common import Keyed
from kview.tui.rows.figures import count_figure, figure, moment_figure, size_figure
from kview.tui.rows.row import Row
from kview.tui.text import EMPTY, Line, Role, Span, line, line_width, width


def records_title(
    request: RecordsRequest,
    answer: RecordsAnswer | None,
    decoded: DecodeAnswer | None,
    form: Form,
    zone: tzinfo | None,
) -> Line:
    """Return the panel's title: the partition, what was asked for, the isolation, the cost, the range and the
    schemas."""
    uncommitted = request.isolation is Isolation.READ_UNCOMMITTED
    parts: list[Span] = [Span(f" {request.topic}-{request.partition}", Role.BRIGHT)]
    if uncommitted:
        parts.append(Span(f" {glyphs.DOT} {said.UNCOMMITTED}", Role.WARN))
    is_held = answer is not None and said.is_held(answer)
    if answer is not None and is_held:
        parts.append(Span(f" {glyphs.DOT} {said.has(answer)}", Role.WARN))
    notes = [said.MASKED] if answer is not None and any(each.masked for each in answer.records) else []
    if answer is not None and answer.cost.requests:
        notes += [said.asked(answer.request, zone), said.cost(answer)]
        notes += schemas.written_with(decoded) if decoded is not None else []
        notes += [left] if (left := said.left_out(answer)) else []
    if form is not Form.AUTO:
        notes.append(f"as {form.value}")
    if not uncommitted:
        notes.append(said.COMMITTED)
    if answer is not None and not is_held and answer.log_start != UNKNOWN and answer.end != UNKNOWN:
        notes.append(said.has(answer))
    if decoded is not None and decoded.cost.requests:
        notes.append(schemas.cost(decoded.cost))
    if answer is not None and answer.asked_ms != UNKNOWN:
        notes.append(f"asked at {words.clock(answer.asked_ms, zone, tenths=False)}")
    return (Span("RECORDS", Role.HEAD), *parts, *(Span(f" {glyphs.DOT} {note}", Role.DIM) for note in notes))


class RecordRows(Keyed[int]):
    """The records of an answer, and what stands in place of damaged batches. The key is the offset."""

    def __init__(
        self,
        request: RecordsRequest,
        answer: RecordsAnswer | None,
        form: Form,
        zone: tzinfo | None,
        decoded: DecodeAnswer | None = None,
    ) -> None:
        items: list[Record | Damage] = [] if answer is None else [*answer.records, *answer.damage]
        self._items = sorted(items, key=lambda item: item.offset)
        super().__init__([item.offset for item in self._items])
        self._form, self._zone = form, zone
        self._decoded: dict[int, DecodedRecord] = {}
        if decoded is not None:
            pairs = zip(decoded.request.records, decoded.decoded, strict=False)
            self._decoded = {record.offset: made for record, made in pairs}
        self.title = records_title(request, answer, decoded, form, zone)
        times = [item.timestamp_ms for item in self._items if isinstance(item, Record)]
        days = {said.moment(at, zone)[:10] for at in times if at != UNKNOWN}
        now = answer.asked_ms if answer is not None else UNKNOWN
        self._with_day = bool(days - {said.moment(now, zone)[:10]})
        first = [item for item in self._items[:100] if isinstance(item, Record)]
        keys = [line_width(line(self._key(record))) for record in first]
        # A head above nothing would look like a table that failed to fill.
        self.columns: Sequence[Column] = self._shown(keys) if self._items else ()

    def _shown(self, keys: Sequence[int]) -> Sequence[Column]:
        return (
            Column("offset", "offset", max([8, *(len(words.count(k)) for k in self.keys)]), right=True),
            Column("time", "time", 23 if self._with_day else 12, rank=1),
            Column("key", "key", min(12, max([6, *keys])), flex=1, most=min(60, max([6, *keys]))),
            Column("value", "value", 30, flex=2),
            Column("size", "size", 7, right=True, rank=2, exported=("size bytes",)),
            Column("headers", "headers", 7, right=True, rank=3),
        )

    def record(self, index: int) -> Record | None:
        """Return the record of a row, None for a damaged batch."""
        item = self._items[index]
        return item if isinstance(item, Record) else None

    def decoded(self, index: int) -> DecodedRecord:
        """Return what was decoded of the record of a row."""
        return self._decoded.get(self.keys[index], NOT_DECODED)

    def _key(self, record: Record) -> Span:
        made = self._decoded.get(record.offset, NOT_DECODED)
        return payload(record.key, self._form, decoded=made.key)

    def why(self, index: int) -> str:
        """Return why the batch of a row cannot be shown, '' for a record."""
        item = self._items[index]
        return said.damage(item) if isinstance(item, Damage) else ""

    def row(self, index: int, now_ms: int) -> Row:
        item = self._items[index]
        offset = count_figure(item.offset, Role.DIM)
        if isinstance(item, Damage):
            why = line(Span(f"{glyphs.DEAD} {said.damage(item)}", Role.WARN))
            return Row((offset, EMPTY, EMPTY, why, EMPTY, EMPTY))
        moment = said.moment(item.timestamp_ms, self._zone)
        is_moment = item.timestamp_ms != UNKNOWN and len(moment) == 23
        return Row(
            (
                offset,
                moment_figure(moment[11:] if is_moment and not self._with_day else moment, item.timestamp_ms),
                line(self._key(item)),
                line(payload(item.value, self._form, "null (tombstone)", self.decoded(index).value)),
                size(item),
                figure(
                    words.count(item.header_count) if item.header_count else "",
                    item.header_count,
                    role=Role.DIM,
                ),
            )
        )


def size(record: Record) -> Line:
    """Return the size of a record's key and value, nothing if a mask hides something of them."""
    if record.key.masked or record.value.masked:
        return EMPTY
    return size_figure(record.key.size + record.value.size, Role.DIM)


def payload(shown: Payload, form: Form, null: str = "null", decoded: Decoded | None = None) -> Span:
    """Return a payload in one line. What is not a text of somebody's is dim, and what does not go together
    with its schema has a sign."""
    if decoded is not None and form in (Form.AUTO, Form.JSON):
        made = schemas.row(decoded)
        if schemas.is_data_failure(decoded):
            why = schemas.failure(decoded.failure, decoded)
            return Span(f"{glyphs.UP} {why}{f' {glyphs.DOT} {made}' if made else ''}", Role.WARN)
        if made is not None:
            return Span(made)
    text = payloads.one_line(shown, form, null)
    is_text = bool(shown.size) and not text.startswith("0x") and text != MASKED
    return Span(text, Role.TEXT if is_text else Role.DIM)


class RecordDetail:
    """A record in full: where and when, its key, its value and its headers, each with its size and form."""

    forms = True

    def __init__(
        self,
        request: RecordsRequest,
        record: Record,
        zone: tzinfo | None,
        decoded: DecodedRecord = NOT_DECODED,
    ) -> None:
        self._decoded = decoded
        self._record = record
        self._zone = zone
        self._partition = f"{request.topic}-{request.partition}"

    def title(self) -> Line:
        """Return the line above: the partition and the offset."""
        return line(
            Span("RECORD ", Role.HEAD),
            Span(f"{self._partition} offset {words.count(self._record.offset)}", Role.BRIGHT),
        )

    def lines(self, form: Form, cells: int) -> list[Line]:
        record = self._record
        epoch = "" if record.leader_epoch == UNKNOWN else f" {glyphs.DOT} leader epoch {record.leader_epoch}"
        facts = f"{said.time_of(record, self._zone)}{epoch}"
        if record.producer_id != UNKNOWN:
            facts += f" {glyphs.DOT} {said.producer(record)}"
        if record.transactional:
            facts += f" {glyphs.DOT} written in a transaction"
        lines: list[Line] = [*_wrapped(facts, cells, Role.DIM), EMPTY]
        lines += _part("key", record.key, form, cells, decoded=self._decoded.key)
        lines += _part("value", record.value, form, cells, said.TOMBSTONE, self._decoded.value)
        if record.header_count:
            lines.append(line(Span(words.plural(record.header_count, "header"), Role.HEAD)))
        for header in record.headers:
            name = payloads.one_line(header.name)
            shown = payloads.one_line(header.value, form)
            text = line(Span(f"{name}: ", Role.DIM), payload(header.value, form))
            lines += [text] if len(name) + len(shown) + 2 <= cells else _wrapped(f"{name}: {shown}", cells)
        if record.header_count > len(record.headers):
            more = record.header_count - len(record.headers)
            lines.append(line(Span(f"{glyphs.ELLIPSIS} and {words.plural(more, 'more header')}", Role.DIM)))
        return lines


def _part(
    name: str, shown: Payload, form: Form, cells: int, null: str = "null", decoded: Decoded | None = None
) -> list[Line]:
    facts = payloads.shown_as(shown, form)
    is_json = facts == payloads.SHOWN_AS_JSON
    texts, why = None, ""
    if decoded is not None and form in (Form.AUTO, Form.JSON):
        texts = schemas.lines(decoded, unfolded=form is Form.JSON)
        facts, why = schemas.schema(decoded), schemas.failure(decoded.failure, decoded)
        if texts is None:
            facts, why = schemas.hex_note(decoded, shown.masked), ""
    if shown.data is not None and shown.size and not shown.masked:
        facts = f"{words.count(shown.size)} bytes {glyphs.DOT} {facts}"
    lines: list[Line] = [
        line(Span(name, Role.HEAD), Span(f"  {null if shown.data is None else facts}", Role.DIM))
    ]
    if why:
        lines += _wrapped(f"{glyphs.UP} {why}", cells, Role.WARN)
    if texts is not None:
        for text in texts:
            lines += _coloured(text, cells)
    elif shown.data is not None:
        for text in payloads.lines(shown, form, 16 if cells >= 76 else 8):
            lines += _coloured(text, cells) if is_json else _wrapped(text, cells)
    return [*lines, EMPTY]


_ROLES = {Token.NAME: Role.KEY, Token.MARK: Role.DIM, Token.CONSTANT: Role.DIM, Token.VALUE: Role.BRIGHT}


def _coloured(text: str, cells: int) -> list[Line]:
    """Break a line that is laid out like JSON where it is full, with the names in a colour of their own."""
    lines: list[Line] = []
    spans: list[Span] = []
    room = cells
    for piece in trees.pieces(text):
        role = _ROLES.get(piece.token, Role.TEXT)
        first, *others = _broken(piece.text, room, cells)
        spans += [Span(first, role)] if first else []
        room -= width(first)
        for part in others:
            lines.append(tuple(spans))
            spans, room = [Span(part, role)], cells - width(part)
    return [*lines, tuple(spans)] if spans or not lines else lines


def _broken(text: str, room: int, cells: int) -> list[str]:
    """Break a text into a first part that takes at most `room` cells, and others that take `cells`."""
    if width(text) <= room:
        return [text]
    if text.isascii():
        return [text[:room], *(text[at : at + cells] for at in range(room, len(text), cells))]
    first = chop_cells(text, room)[0] if room > 1 else ""
    return [first, *chop_cells(text[len(first) :], cells)]


def _wrapped(text: str, cells: int, role: Role = Role.TEXT) -> list[Line]:
    """Break a line where it is full, because what comes from a cluster need not have spaces."""
    return [line(Span(part, role)) for part in _broken(text, cells, cells)]


class DetailRows(Keyed[int]):
    """Lines of text as rows, which scroll."""

    def __init__(self, lines: Sequence[Line]) -> None:
        super().__init__(range(len(lines)))
        self._lines = lines
        self.columns: Sequence[Column] = (Column("line", "", 20, flex=1),)

    def row(self, index: int, now_ms: int) -> Row:
        return Row((self._lines[index],))
