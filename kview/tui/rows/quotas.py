"""Rows of client quotas."""

from collections.abc import Sequence
from datetime import tzinfo

from kview.language import glyphs, words
from kview.language import quotas as said
from kview.model.inspection import Quota, QuotaKey, QuotasAnswer
from kview.model.units import UNKNOWN
from kview.tui.rows.columns import Column
from kview.tui.rows.common import Keyed, name_width, title
from kview.tui.rows.figures import figure, finite
from kview.tui.rows.row import Row
from kview.tui.text import Line, Role, line

LIMITS = {
    QuotaKey.PRODUCER: Column("produce", "produce", 8, right=True, exported=("produce bytes/s",)),
    QuotaKey.CONSUMER: Column("consume", "consume", 8, right=True, exported=("consume bytes/s",)),
    QuotaKey.REQUEST: Column("requests", "requests", 8, right=True, exported=("requests %",)),
    QuotaKey.MUTATIONS: Column("mutations", "mutate", 7, right=True, exported=("mutate/s",)),
    QuotaKey.CONNECTIONS: Column("connections", "connect", 7, right=True, exported=("connect/s",)),
}
"""The columns of what quotas limit."""


class QuotaRows(Keyed[tuple[tuple[str, str | None], ...]]):
    """The client quotas of an answer. The key is the entity."""

    def __init__(self, answer: QuotasAnswer | None, zone: tzinfo | None) -> None:
        self._quotas: Sequence[Quota] = answer.quotas if answer is not None else ()
        super().__init__([quota.entity for quota in self._quotas])
        notes = []
        if answer is not None and answer.asked_ms != UNKNOWN:
            if not answer.failure:
                notes.append(f"{glyphs.DOT} {words.plural(len(self._quotas), 'quota')}")
            notes.append(f"{glyphs.DOT} asked at {words.clock(answer.asked_ms, zone, tenths=False)}")
        self.title: Line = title("QUOTAS", *notes)
        self._limits = [key for key in QuotaKey if any(key in dict(quota.limits) for quota in self._quotas)]
        names = map(said.named, self._quotas)
        self.columns: Sequence[Column] = (
            Column("entity", "who", name_width(names, 12, 28), flex=1, most=200, name=True),
            *(LIMITS[key] for key in self._limits),
        )

    def row(self, index: int, now_ms: int) -> Row:
        quota = self._quotas[index]
        limits = dict(quota.limits)
        return Row(
            (
                line(said.named(quota)),
                *(
                    figure(said.limit(key, limits[key]), finite(limits[key]))
                    if key in limits
                    else figure(said.NOT_SET, None, role=Role.DIM)
                    for key in self._limits
                ),
            )
        )
