"""Rows of the groups that read one topic, with their figures on that topic only."""

from collections.abc import Sequence

from kview.derive.groups.readers import Readers
from kview.derive.groups.verdicts import severity
from kview.derive.view import View
from kview.language import verdicts, words
from kview.model.units import UNKNOWN
from kview.tui.options import Options
from kview.tui.rows.columns import Column, with_bound
from kview.tui.rows.common import REASON_CELLS, Keyed, name_width, rate_width, title, verdict
from kview.tui.rows.figures import Figure, behind_figure, count_figure, figure, rate_figure
from kview.tui.rows.groups import MEMBERS, is_stale, last_read_ms, listed, members_figure
from kview.tui.rows.row import Row
from kview.tui.text import Line, Role, line, line_width

PANEL = "topic_groups"


class TopicGroupRows(Keyed[str]):
    """The groups that read a topic, the worst first. The key is the group's name."""

    def __init__(self, view: View, topic: str, options: Options) -> None:
        table, figures = view.snapshot.groups, view.groups
        self._readers = Readers(view, topic, listed(view, options))
        super().__init__([str(name) for name in table.group[self._readers.group]])
        self._view = view
        self._options = options
        self.title: Line = title(f"GROUPS of {topic}" if topic else "GROUPS", "worst first")
        unread = "no group has committed offsets of this topic, or shares it"
        self.empty = unread if topic else "no topic is listed"
        rates = figures.read_rate[self._readers.group]
        lags = line_width(count_figure(self._readers.most_lag(), is_bound=True))
        self.columns: Sequence[Column] = (
            Column("group", "group", name_width(self.keys, 8, 24), flex=1, most=50, name=True),
            Column("state", "state", 10, flex=1, most=22, name=True, rank=2, exported=MEMBERS),
            Column("partitions", "partitions", 10, right=True, rank=4),
            Column("lag", "lag", max(9, lags), right=True, exported=with_bound("lag")),
            Column("behind", "behind", 10, right=True, exported=with_bound("behind", "s")),
            Column("read", "read/s", rate_width(rates, 8), right=True, rank=3, exported=with_bound("read/s")),
            Column("verdict", "verdict", REASON_CELLS, flex=3, most=70),
        )

    def _lag(self, index: int, old: bool = False) -> Figure:
        reader = self._readers[index]
        return count_figure(reader.lag, is_bound=reader.lag_is_bound, old=old)

    def row(self, index: int, now_ms: int) -> Row:
        reader, view = self._readers[index], self._view
        read_ms = last_read_ms(view, reader.group)
        old = is_stale(view, read_ms, self._options, now_ms)
        age_ms = int(view.groups.verdict_age_ms[reader.group])
        lost, why, behind = 0, verdicts.of_group(view.groups, reader.group), figure(words.NONE, None)
        if reader.worst >= 0:
            lost, why = int(view.offsets.lost[reader.worst]), verdicts.of_offset(view.offsets, reader.worst)
            behind = behind_figure(view.offsets, reader.behind, old=old)
        notes = [why]
        notes += [f"{words.age(read_ms, now_ms)} old"] if old else []
        return Row(
            (
                line(self.keys[index]),
                members_figure(view, reader.group),
                count_figure(reader.partitions, Role.DIM),
                self._lag(index, old),
                behind,
                rate_figure(reader.read_rate, is_bound=reader.read_is_bound, old=old),
                verdict(
                    reader.verdict,
                    ", ".join(note for note in notes if note),
                    severity(reader.verdict, lost, age_ms != UNKNOWN),
                    age_ms,
                    lost,
                ),
            )
        )
