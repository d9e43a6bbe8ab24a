"""The plots of a report as numbers: rates over time. The terminal and the page draw the same ones."""

from dataclasses import dataclass

import numpy as np

from kview.derive.view import Floats
from kview.language import glyphs, report_names
from kview.model.report import Report
from kview.model.report_tables import Array, TableName
from kview.model.snapshot import Longs
from kview.model.sums import INTERNAL_TOPICS
from kview.plain.report.summary import ended_ms

MOST_LINES = 5
"""The most topics of a plot: more lines cannot be told apart."""

MOST_CLUSTERS = 3
"""The most clusters that get plots of their own, the busiest ones: a fleet of hundreds fills pages."""

MOST_NAME = 40
"""The longest name in a legend, in characters."""


@dataclass(frozen=True, slots=True)
class PlotLine:
    """A line: its name and a value per step, NaN where nothing is known."""

    name: str
    values: Floats

    @property
    def is_known(self) -> bool:
        """Whether some value is known."""
        return bool(np.isfinite(self.values).any())


@dataclass(frozen=True, slots=True)
class Plot:
    """Lines over time. `at_ms` are the beginnings of the steps (epoch ms).

    If it is `mirrored`, the second line says what goes out of what the first line says comes in.
    """

    title: str
    at_ms: Longs
    lines: tuple[PlotLine, ...]
    mirrored: bool = False
    cluster: str = ""
    """The cluster that it is about, '' for several."""


def plots(report: Report) -> list[Plot]:
    """Return records per second: of the busiest clusters if there are several, in and out of each of them,
    and of their busiest topics."""
    table = report[TableName.THROUGHPUT]
    clusters = _busiest(table["cluster"], table["records_in"], table["topic"] == "")
    drawn = []
    if len(clusters) > 1:
        grid = _grid(table["at_ms"][table["topic"] == ""], report.step_s)
        some = clusters[:MOST_LINES]
        if len(grid) > 1:
            drawn.append(
                Plot(report_names.PLOTS["clusters"], grid, _lines(report, "cluster", "topic", "", some, grid))
            )
    for cluster in clusters[:MOST_CLUSTERS]:
        mine = table["cluster"] == cluster
        named = f" of {short(cluster)}" if len(clusters) > 1 else ""
        whole = np.flatnonzero(mine & (table["topic"] == ""))
        grid = _grid(table["at_ms"][whole], report.step_s)
        if len(grid) < 2:
            continue
        lines = (
            PlotLine(report_names.LINES["records_in"], _rates(report, whole, grid, "records_in", "known_s")),
            PlotLine(
                report_names.LINES["records_out"], _rates(report, whole, grid, "records_out", "out_known_s")
            ),
        )
        title = f"{report_names.PLOTS['throughput']}{named}"
        drawn.append(Plot(title, grid, lines, mirrored=True, cluster=cluster))
        users = mine & ~np.isin(table["topic"].astype(str), ["", *INTERNAL_TOPICS])
        busiest = _busiest(table["topic"], table["records_in"], users)[:MOST_LINES]
        if len(busiest) > 1:
            topic_lines = _lines(report, "topic", "cluster", cluster, busiest, grid)
            drawn.append(Plot(f"{report_names.PLOTS['topics']}{named}", grid, topic_lines, cluster=cluster))
    return drawn


def incident_spans(report: Report, cluster: str) -> list[tuple[int, int]]:
    """Return from when to when there were incidents of a cluster, epoch ms, '' for those of all."""
    table = report[TableName.INCIDENTS]
    if not len(table):
        return []
    mine = (table["cluster"] == cluster) | (cluster == "")
    return list(zip(table["began_ms"][mine].tolist(), ended_ms(report, table)[mine].tolist(), strict=True))


def short(name: str, most: int = MOST_NAME) -> str:
    """Return a name for a legend. If it is too long, its end stays, which is what differs, and some of its
    beginning."""
    if len(name) <= most:
        return name
    head = most // 3
    return f"{name[:head]}{glyphs.ELLIPSIS}{name[len(name) - (most - head - 1) :]}"


def _busiest(names: Array, records: Array, which: Array) -> list[str]:
    """Return the names in these rows, those with the most records first."""
    some, places = np.unique(names[which].astype(str), return_inverse=True)
    totals = np.bincount(places, weights=records[which].astype(np.float64), minlength=len(some))
    return [str(some[at]) for at in np.lexsort([some, -totals])]


def _lines(
    report: Report, column: str, other: str, value: str, names: list[str], grid: Longs
) -> tuple[PlotLine, ...]:
    """Return a line for each name in `column`, of the rows with `value` in the `other` column."""
    table = report[TableName.THROUGHPUT]
    mine = table[other] == value
    return tuple(
        PlotLine(
            name,
            _rates(report, np.flatnonzero(mine & (table[column] == name)), grid, "records_in", "known_s"),
        )
        for name in names
    )


def _grid(at_ms: Longs, step_s: int) -> Longs:
    if not len(at_ms):
        return np.zeros(0, np.int64)
    grid: Longs = np.arange(at_ms.min(), at_ms.max() + 1, step_s * 1000)
    return grid


def _rates(report: Report, rows: Longs, grid: Longs, column: str, known: str) -> Floats:
    """Return a column ÷ its known seconds at the steps of `grid`."""
    table = report[TableName.THROUGHPUT]
    values = np.full(len(grid), np.nan)
    places = (table["at_ms"][rows] - grid[0]) // (report.step_s * 1000)
    seconds = table[known][rows].astype(np.float64)
    seconds[seconds <= 0] = np.nan
    values[places] = table[column][rows] / seconds
    return values
