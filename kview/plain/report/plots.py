"""The plots of a report as numbers: rates over time. The terminal and the page draw the same ones."""

from dataclasses import dataclass

import numpy as np

from kview.derive.view import Floats
from kview.language import reports
from kview.model.aggregates import INTERNAL_TOPICS
from kview.model.report import Report
from kview.model.report_tables import TableName
from kview.model.snapshot import Longs

MOST_LINES = 5
"""The most topics of a plot: more lines cannot be told apart."""


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
    """Lines over time. `at_ms` are the beginnings of the steps (epoch ms)."""

    title: str
    at_ms: Longs
    lines: tuple[PlotLine, ...]


def plots(report: Report) -> list[Plot]:
    """Return records per second in and out of each cluster, and of its busiest topics."""
    table = report[TableName.THROUGHPUT]
    clusters = sorted(set(table["cluster"]))
    made = []
    for cluster in clusters:
        mine = table["cluster"] == cluster
        named = f" of {cluster}" if len(clusters) > 1 else ""
        whole = np.flatnonzero(mine & (table["topic"] == ""))
        grid = _grid(table["at_ms"][whole], report.step_s)
        if len(grid) < 2:
            continue
        lines = (
            PlotLine(reports.LINES["records_in"], _rates(report, whole, grid, "records_in", "known_s")),
            PlotLine(reports.LINES["records_out"], _rates(report, whole, grid, "records_out", "out_known_s")),
        )
        made.append(Plot(f"{reports.PLOTS['throughput']}{named}", grid, lines))
        names = set(table["topic"][mine]) - {"", *INTERNAL_TOPICS}
        totals = {name: int(table["records_in"][mine & (table["topic"] == name)].sum()) for name in names}
        busiest = sorted(totals, key=lambda name: (-totals[name], name))[:MOST_LINES]
        if len(busiest) > 1:
            made.append(Plot(f"{reports.PLOTS['topics']}{named}", grid, _topics(report, mine, busiest, grid)))
    return made


def _topics(
    report: Report, mine: np.ndarray[tuple[int], np.dtype[np.bool_]], names: list[str], grid: Longs
) -> tuple[PlotLine, ...]:
    table = report[TableName.THROUGHPUT]
    return tuple(
        PlotLine(
            name,
            _rates(report, np.flatnonzero(mine & (table["topic"] == name)), grid, "records_in", "known_s"),
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
