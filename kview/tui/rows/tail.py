"""Rows of a topic that is followed: the records of all its partitions, the newest last."""

from collections.abc import Sequence
from datetime import tzinfo

from kview.derive.following import Following, Gap
from kview.language import glyphs, words
from kview.language import inspection as said
from kview.language import tail as tail_words
from kview.language.payloads import Form
from kview.model.inspection import Isolation, Record
from kview.model.units import UNKNOWN
from kview.model.where import Candidate
from kview.tui.rows.columns import Column
from kview.tui.rows.common import Keyed
from kview.tui.rows.figures import count_figure, figure, moment_figure, number_figure
from kview.tui.rows.records import payload, size
from kview.tui.rows.row import Row
from kview.tui.text import EMPTY, Line, Role, Span, line, line_width


def tail_title(followed: Following, is_over: bool, form: Form) -> Line:
    """Return the panel's title: the topic, how much of it is shown, and what that costs."""
    state = "PAUSED" if followed.paused else "FOLLOWED" if is_over else "FOLLOWING"
    role = Role.WARN if followed.paused else Role.DIM if is_over else Role.GOOD
    parts = [Span("RECORDS", Role.HEAD), Span(f" {followed.topic}", Role.BRIGHT), Span(f" {state}", role)]
    notes, rates = [], followed.rates()
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
        self.empty = ""
        last = [item for _, item in self._items[-100:] if isinstance(item, Candidate)]
        keys = [line_width(line(self._key(item))) for item in last]
        offsets = [len(words.count(item.record.offset)) for item in last]
        self.columns: Sequence[Column] = self._shown(keys, offsets) if self._items else ()

    def _shown(self, keys: Sequence[int], offsets: Sequence[int]) -> Sequence[Column]:
        return (
            Column("time", "time", 12, rank=1),
            Column("partition", "part", 4, right=True),
            Column("offset", "offset", max([8, *offsets]), right=True, rank=2),
            Column("key", "key", min(12, max([6, *keys])), flex=1, most=min(60, max([6, *keys]))),
            Column("value", "value", 30, flex=2),
            Column("size", "size", 7, right=True, rank=3, exported=("size bytes",)),
            Column("headers", "headers", 7, right=True, rank=4),
        )

    def candidate(self, index: int) -> Candidate | None:
        """Return the record of a row, None for a gap."""
        item = self._items[index][1]
        return item if isinstance(item, Candidate) else None

    def why(self, index: int) -> str:
        """Return what a row without a record stands for."""
        item = self._items[index][1]
        return tail_words.missed(item.records) if isinstance(item, Gap) else ""

    def _key(self, item: Candidate) -> Span:
        return payload(item.record.key, self._form, decoded=item.decoded.key)

    def row(self, index: int, now_ms: int) -> Row:
        item = self._items[index][1]
        if isinstance(item, Gap):
            gap = line(Span(f"{glyphs.ELLIPSIS} {self.why(index)}", Role.WARN))
            return Row((EMPTY, EMPTY, EMPTY, EMPTY, gap, EMPTY, EMPTY))
        record = item.record
        return Row(
            (
                self._time(record),
                number_figure(item.partition, Role.DIM),
                count_figure(record.offset, Role.DIM),
                line(self._key(item)),
                line(payload(record.value, self._form, "null (tombstone)", item.decoded.value)),
                size(record),
                figure(
                    words.count(record.header_count) if record.header_count else "",
                    record.header_count,
                    role=Role.DIM,
                ),
            )
        )

    def _time(self, record: Record) -> Line:
        moment = said.moment(record.timestamp_ms, self._zone)
        is_moment = record.timestamp_ms != UNKNOWN and len(moment) == 23
        return moment_figure(moment[11:] if is_moment else moment, record.timestamp_ms)
