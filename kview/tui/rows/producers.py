"""Rows of the producers that write to a topic, those in a transaction first."""

from collections.abc import Sequence
from datetime import tzinfo

from kview.language import glyphs, words
from kview.language import inspection as said
from kview.model.inspection import Producer, ProducersAnswer, ProducersRequest
from kview.model.snapshot import Transactions
from kview.model.units import UNKNOWN
from kview.tui.rows.columns import Column
from kview.tui.rows.common import Keyed
from kview.tui.rows.figures import Figure, count_figure, known, moment_figure, number_figure, text_figure
from kview.tui.rows.row import Row
from kview.tui.text import Line, Role, Span


class ProducerRows(Keyed[tuple[int, int]]):
    """The producers of an answer. The key is the partition with the producer's id.

    The names of transactions are those that a view knows: of transactions that hold back a partition.
    """

    def __init__(
        self,
        request: ProducersRequest,
        answer: ProducersAnswer | None,
        transactions: Transactions | None,
        zone: tzinfo | None,
    ) -> None:
        producers: Sequence[Producer] = answer.producers if answer is not None else ()
        self._producers = sorted(
            producers, key=lambda each: (each.start_offset == UNKNOWN, each.partition, each.id)
        )
        super().__init__([(each.partition, each.id) for each in self._producers])
        self._zone = zone
        self._names: dict[int, str] = {}
        if transactions is not None:
            ids, names = transactions.producer_id.tolist(), transactions.transactional_id.tolist()
            self._names = dict(zip(ids, names, strict=True))
        self.title = _title(request, answer, zone)
        self.columns: Sequence[Column] = (
            Column("partition", "p", 3, right=True),
            Column("id", "producer id", 11, right=True),
            Column("epoch", "epoch", 5, right=True),
            Column("sequence", "last seq.", 10, right=True),
            Column("written", "last record", 23, rank=1),
            Column("transaction", "transaction", 20, flex=1, exported=("transaction", "open from offset")),
        )

    def row(self, index: int, now_ms: int) -> Row:
        each = self._producers[index]
        is_open = each.start_offset != UNKNOWN
        transaction = f"open from offset {each.start_offset:,}" if is_open else words.NONE
        name = self._names.get(each.id, "") if is_open else ""
        if name:
            transaction = f"{name}, {transaction}"
        return Row(
            (
                number_figure(each.partition),
                number_figure(each.id),
                number_figure(each.epoch, Role.DIM),
                count_figure(each.last_sequence if each.last_sequence >= 0 else UNKNOWN),
                moment_figure(said.moment(each.written_ms, self._zone), each.written_ms),
                Figure(
                    text_figure(transaction, Role.WARN if is_open else Role.DIM),
                    name,
                    known(each.start_offset),
                ),
            )
        )


def _title(request: ProducersRequest, answer: ProducersAnswer | None, zone: tzinfo | None) -> Line:
    notes = []
    if answer is not None and answer.asked_ms != UNKNOWN:
        count = len({each.id for each in answer.producers})
        least = bool(answer.unread)
        notes.append(f"{'≥' if least else ''}{words.plural(count, 'producer')}")
        notes.append(f"asked at {words.clock(answer.asked_ms, zone, tenths=False)}")
    return (
        Span("PRODUCERS", Role.HEAD),
        Span(f" {request.topic}", Role.BRIGHT),
        *(Span(f" {glyphs.DOT} {note}", Role.DIM) for note in notes),
    )
