"""A report as text: what is worth knowing first, plots, and tables."""

import math
import re
import textwrap
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, tzinfo

import numpy as np

from kview.derive.series import stretches
from kview.language import glyphs, reports, words
from kview.language.glyphs import SIGNS, printable
from kview.model.report import Period, Report
from kview.model.report_tables import TableName
from kview.model.reporting import LineKind, ReportLine
from kview.model.units import UNKNOWN
from kview.plain.report.cells import moment
from kview.plain.report.notes import sentences
from kview.plain.report.plots import MOST_NAME, Plot, plots, short
from kview.plain.report.shown import MOST_ROWS, ShownTable, fitting, tables
from kview.plain.report.summary import lines

_GAP = "  "

ROWS = 12
"""The height of a plot, its axes included."""

_LEAST_NAME = 5
"""Names in the legend are never shorter than this."""

_MARKERS = ("braille", "·", "x", "+", "o")
_ASCII_MARKERS = ("*", ".", "x", "+", "o")
_CORNERS = str.maketrans("┌┐└┘┬┴├", "+++++++")
_SAMPLES = ("⣀⡠⠔", "···", "xxx", "+++", "ooo")


def text(
    report: Report,
    width: int,
    ascii_only: bool = False,
    zone: tzinfo | None = None,
    most_rows: int = MOST_ROWS,
) -> Iterator[str]:
    """Yield the lines of a report, each at most `width` cells wide where its names allow that."""
    for line in text_lines(report, width, ascii_only, zone, most_rows):
        yield line.text


def text_lines(
    report: Report,
    width: int,
    ascii_only: bool = False,
    zone: tzinfo | None = None,
    most_rows: int = MOST_ROWS,
) -> Iterator[ReportLine]:
    """Yield the same lines with what each of them is."""
    for line in _lines(report, width, ascii_only, zone, most_rows):
        yield line._replace(text=glyphs.plain(line.text)) if ascii_only else line


_EMPTY = ReportLine(LineKind.TEXT, "")


def _lines(
    report: Report, width: int, ascii_only: bool, zone: tzinfo | None, most_rows: int
) -> Iterator[ReportLine]:
    for said in title(report, zone):
        yield from _of(LineKind.TITLE, _wrapped(said, width))
    yield _EMPTY
    for severity, said in lines(report, zone):
        for part in _wrapped(f"{SIGNS[severity]} {said}", width):
            yield ReportLine(LineKind.SUMMARY, part, severity)
    for plot in plots(report):
        yield _EMPTY
        yield from _of(LineKind.HEAD, _wrapped(glyphs.printable(plot.title), width))
        yield from _of(LineKind.TEXT, _drawn(plot, width, ascii_only, zone))
    for table in tables(report, zone, most_rows):
        yield _EMPTY
        name, heads, *rows = _table(table, width)
        yield from (ReportLine(LineKind.HEAD, name), ReportLine(LineKind.COLUMNS, heads))
        yield from _of(LineKind.TEXT, rows)
    if notes := sentences(report):
        yield _EMPTY
        yield ReportLine(LineKind.HEAD, "Notes")
        for said in notes:
            yield from _of(LineKind.TEXT, _wrapped(f"{glyphs.DOT} {said}", width))


def _of(kind: LineKind, said: Iterable[str]) -> Iterator[ReportLine]:
    return (ReportLine(kind, sentence) for sentence in said)


def title(report: Report, zone: tzinfo | None) -> tuple[str, str]:
    """Return what the report is about: the clusters; from when to when, and of which topics and groups."""
    clusters = sorted(set(report[TableName.PERIODS]["cluster"]))
    named = glyphs.printable(clusters[0]) if len(clusters) == 1 else words.plural(len(clusters), "cluster")
    about = [_period(report.period, zone, report.against)]
    if report.topics:
        about.append(reports.about_line("topics", report.topics))
    if report.groups:
        about.append(reports.about_line("groups", report.groups))
    said = f" {glyphs.DOT} ".join(part for part in about if part)
    return f"kview report: {named}", glyphs.printable(said)


def _period(period: Period, zone: tzinfo | None, against: Period | None) -> str:
    if UNKNOWN in (period.since_ms, period.until_ms):
        return ""
    length = words.duration(period.until_ms - period.since_ms, tenths=False)
    since, until = moment(period.since_ms, zone), moment(period.until_ms, zone)
    day, time = until.split()
    until = time if since.startswith(day) else until
    said = f"{since} to {until} {zone_name(period.until_ms, zone)} ({length})"
    return f"{said}, compared with {_period(against, zone, None)}" if against is not None else said


def zone_name(at_ms: int, zone: tzinfo | None) -> str:
    """Return the name of a time zone, None for the machine's own, as it is called at a moment."""
    return datetime.fromtimestamp(max(at_ms, 0) // 1000, UTC).astimezone(zone).tzname() or "local time"


def _table(table: ShownTable, width: int) -> Iterator[str]:
    places = list(fitting(table, width, len))
    shown = [table.columns[at] for at in places]
    texts = [[row[at].text for at in places] for row in table.rows]
    widths = [max([len(column.head), *(len(row[at]) for row in texts)]) for at, column in enumerate(shown)]
    _narrow(widths, [column.left for column in shown], width)
    yield table.title
    for row in [[column.head for column in shown], *texts]:
        cells = [
            _cut(cell, size).ljust(size) if column.left else cell.rjust(size)
            for cell, size, column in zip(row, widths, shown, strict=True)
        ]
        yield _GAP.join(cells).rstrip()
    if table.total > len(table.rows):
        more = f"… {table.total - len(table.rows):,} more rows: --format csv, json or parquet has all of them"
        yield from _wrapped(more, width)
    if table.hint:
        yield from _wrapped(table.hint, width)


def _wrapped(said: str, width: int) -> list[str]:
    """Return a sentence in lines, all but the first indented by as much as its sign takes.

    A number stays with its unit.
    """
    held = _IN_FIGURE.sub("\xa0", said)
    wrapped = textwrap.wrap(held, max(width, 20), subsequent_indent=_GAP, break_on_hyphens=False)
    return [line.replace("\xa0", " ") for line in wrapped]


_IN_FIGURE = re.compile(r"(?<=\d) (?=(?:ms|[smhd]|[kMGTP]?B|%|records?)(?!\w))|(?<=\d [mhd]) (?=\d)")
"""The spaces within a figure, such as `1 m 37 s`."""


def _narrow(widths: list[int], left: list[bool], width: int) -> None:
    """Make columns of names narrower, the widest first, until the table fits or they cannot shrink."""
    least = 12
    while sum(widths) + len(_GAP) * (len(widths) - 1) > width:
        names = [at for at, is_left in enumerate(left) if is_left and widths[at] > least]
        if not names:
            return
        widths[max(names, key=lambda at: widths[at])] -= 1


def _cut(name: str, size: int) -> str:
    """Return a name in `size` cells. If it is cut, its end stays, which is what differs."""
    return name if len(name) <= size else f"{glyphs.ELLIPSIS}{name[len(name) - size + 1 :]}"


# -- plots, drawn by plotext


def _drawn(plot: Plot, width: int, ascii_only: bool, zone: tzinfo | None = None) -> list[str]:
    """Return a plot in lines of at most `width` cells: its legend and its curves with their axes."""
    import plotext

    plotext.terminal.limit(False, False)  # the output may be a pipe, which has no size
    figure = plotext.figure
    figure.clear()
    figure.plot_size(width, ROWS)
    greatest = max((float(np.nanmax(line.values)) for line in plot.lines if line.is_known), default=0.0)
    top = _nice(greatest)
    markers = _ASCII_MARKERS if ascii_only else _MARKERS
    # The first line is _drawn last, so that it is not covered.
    for number, line in reversed(list(enumerate(plot.lines))):
        for first, values in stretches(line.values.tolist()):
            places = list(range(first, first + len(values)))
            figure.draw(figure.signal(places, values, marker=markers[number % len(markers)]).lines())
    last = len(plot.at_ms) - 1
    across, up = figure.ruler(0, 0), figure.ruler(1, 0)
    across.lim(0, last)
    across.ticks(*_times(plot, last, zone))
    up.lim(0, top)
    up.ticks([0, top / 2, top], ["0", words.si(top / 2), words.si(top)])
    rows = plotext.uncolorize(figure.build().string()).splitlines()
    samples = _ASCII_MARKERS if ascii_only else _SAMPLES
    count = len(plot.lines)
    room = max(_LEAST_NAME, min(MOST_NAME, (width + 3) // count - 7))
    legend = "   ".join(
        f"{samples[number % len(samples)]} {short(printable(line.name), room)}"
        for number, line in enumerate(plot.lines)
    )
    return [legend, *(row.rstrip().translate(_CORNERS if ascii_only else {}) for row in rows)]


def _nice(value: float) -> float:
    """Return a round number that is not below `value`: 1, 2, 3, 5 × a power of ten."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next((step * power for step in (1, 1.5, 2, 3, 5, 7.5) if step * power >= value), 10 * power)


def _times(plot: Plot, last: int, zone: tzinfo | None) -> tuple[list[int], list[str]]:
    """Return the places of the labels on the axis of time, and the labels: three
    moments, with the day if it differs."""
    places = sorted({0, last // 2, last})
    moments = [datetime.fromtimestamp(int(plot.at_ms[at]) // 1000, zone) for at in places]
    form = "%H:%M" if len({moment.date() for moment in moments}) == 1 else "%m-%d %H:%M"
    if moments[-1] - moments[0] < _SHORT:
        form = "%H:%M:%S"
    return places, [moment.strftime(form) for moment in moments]


_SHORT = datetime(2000, 1, 1, 0, 10) - datetime(2000, 1, 1)
"""Below this, seconds matter on the axis of time."""
