"""Lines about a group's position in a partition: its verdict, and what is known of the record there."""

import numpy as np

from kview.derive.groups.verdicts import severity
from kview.derive.lookup import partition_row
from kview.derive.transactions.findings import held_partition
from kview.derive.view import Verdict, View
from kview.language import glyphs, verdicts, words
from kview.language import position as said
from kview.model.decoded import DecodedRecord
from kview.model.inspection import RecordsAnswer
from kview.model.units import UNKNOWN
from kview.tui.rows.common import verdict
from kview.tui.rows.partition_heading import held_back
from kview.tui.text import TITLE_MARGIN, Line, Role, Span, Title, cut, joined, line, middle

UNEXPLAINED = frozenset({Verdict.STUCK, Verdict.FALLING_BEHIND})
"""The verdicts that do not say themselves why reading does not go on."""


def offset_row(view: View | None, group: str, topic: str, partition: int) -> int | None:
    """Return the row of a group's offset in a partition."""
    if view is None:
        return None
    table = view.snapshot.offsets
    rows = np.flatnonzero((table.group == group) & (table.topic == topic) & (table.partition == partition))
    return int(rows[0]) if len(rows) else None


def committed(view: View | None, group: str, topic: str, partition: int) -> int:
    """Return a group's committed offset, UNKNOWN if there is none."""
    row = offset_row(view, group, topic, partition)
    if view is None or row is None or view.snapshot.offsets.committed[row] < 0:
        return UNKNOWN
    return int(view.snapshot.offsets.committed[row])


def is_held_at(view: View, topic: str, partition: int, offset: int) -> bool:
    """Return whether an open transaction holds back the record at an offset."""
    row = partition_row(view, topic, partition)
    if row is None:
        return False
    table = view.snapshot.partitions
    last_stable = int(table.last_stable[row])
    return last_stable != UNKNOWN and last_stable <= offset < int(table.high_watermark[row])


def heading(
    view: View,
    group: str,
    topic: str,
    partition: int,
    offset: int,
    answer: RecordsAnswer | None,
    decoded: DecodedRecord,
    cells: int,
) -> tuple[Title, list[Line]]:
    """Return the title and the lines, the most important first. `offset` is where the group was when the
    records were asked for."""
    row = offset_row(view, group, topic, partition)
    title = line(
        Span(middle(group, max(8, cells - 40)), Role.BRIGHT), Span(f" in {topic}-{partition}", Role.DIM)
    )
    if row is None:
        return Title(title), [line("  ", Span(said.NOT_THERE, Role.WARN))]
    table, figures = view.snapshot.offsets, view.offsets
    now = int(table.committed[row])
    facts = [f"committed {words.count(now)}"]
    facts += [f"lag {words.at_least(words.count(int(figures.lag[row])), bool(figures.lag_is_bound[row]))}"]
    facts += [f"committed {words.count(offset)} when this was read"] if offset not in (now, UNKNOWN) else []
    title = joined(
        [title, *(line(Span(fact, Role.DIM)) for fact in facts)],
        Span(f" {glyphs.DOT} ", Role.DIM),
        cells - TITLE_MARGIN,
    )
    kind, lost = Verdict(str(figures.verdict[row])), int(figures.lost[row])
    why = verdicts.of_offset(figures, row)
    lines = [line("  ", *verdict(kind, why, severity(kind, lost, is_old=False), lost=lost))]
    at = partition_row(view, topic, partition)
    if at is not None and is_held_at(view, topic, partition, now):
        held = held_partition(view.snapshot, view.offsets, at)
        lines += held_back(held, view.snapshot.observation.ended_ms, cells) if held is not None else []
    is_explained = len(lines) > 1 or kind not in UNEXPLAINED
    if answer is not None:
        lines += [
            line(Span(f"  {glyphs.UP if wrong else glyphs.DOT} {fact}", Role.WARN if wrong else Role.TEXT))
            for wrong, fact in said.of_record(answer, decoded, offset, is_explained)
        ]
    return Title(title), [cut(each, cells) for each in lines]
