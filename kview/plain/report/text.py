"""A report as text: what is worth knowing first, plots, and tables."""

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, tzinfo

from kview.language import glyphs, reports, words
from kview.language.curves import area, hanging, tick, top_of
from kview.language.glyphs import SIGNS, printable
from kview.model.report import Period, Report
from kview.model.report_tables import TableName
from kview.model.reporting import LineKind, ReportLine
from kview.model.units import UNKNOWN
from kview.plain.report.notes import sentences
from kview.plain.report.plots import MOST_NAME, Plot, plots, short
from kview.plain.report.shown import MOST_ROWS, ShownTable, fitting, tables
from kview.plain.report.summary import lines

_GAP = "  "

HALF_ROWS = 6
"""The height of what comes in above the axis of a plot, and of what goes out below it."""

LINE_ROWS = 2
"""The height of each line of another plot."""

_LEAST_NAME = 5
"""Names of lines are never shorter than this."""

_AXIS = 8
"""The cells of the figures of an axis, with the axis."""


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
    name, about = title(report, zone)
    for said in (f"kview report: {name}", about):
        yield from _of(LineKind.TITLE, _wrapped(said, width))
    yield _EMPTY
    for severity, said in lines(report, zone):
        for part in _wrapped(f"{SIGNS[severity]} {said}", width):
            yield ReportLine(LineKind.SUMMARY, part, severity)
    for plot in plots(report):
        yield _EMPTY
        yield from _of(LineKind.HEAD, _wrapped(glyphs.printable(plot.title), width))
        yield from _of(LineKind.TEXT, _drawn(plot, width, zone))
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
    """Return the cluster or how many there are; and from when to when, of which topics and groups."""
    clusters = sorted(set(report[TableName.PERIODS]["cluster"]))
    named = glyphs.printable(clusters[0]) if len(clusters) == 1 else words.plural(len(clusters), "cluster")
    about = [_period(report.period, zone, report.against)]
    if report.topics:
        about.append(reports.about_line("topics", report.topics))
    if report.groups:
        about.append(reports.about_line("groups", report.groups))
    said = f" {glyphs.DOT} ".join(part for part in about if part)
    return named, glyphs.printable(said)


def _period(period: Period, zone: tzinfo | None, against: Period | None) -> str:
    if UNKNOWN in (period.since_ms, period.until_ms):
        return ""
    length = words.duration(period.until_ms - period.since_ms, tenths=False)
    since, until = words.moment(period.since_ms, zone), words.moment(period.until_ms, zone)
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


# -- plots


def _drawn(plot: Plot, width: int, zone: tzinfo | None = None) -> list[str]:
    """Return a plot in lines of at most `width` cells: areas with their axes, and the axis of time."""
    values = [line.values.tolist() for line in plot.lines]
    top = top_of(*values)
    names = [printable(line.name) for line in plot.lines]
    if plot.mirrored:
        room = max(_LEAST_ROOM, width - _AXIS)
        rows = area(values[0], room, HALF_ROWS, top) + hanging(values[1], room, HALF_ROWS, top)
        ticks = {0: tick(top), HALF_ROWS - 1: "0", 2 * HALF_ROWS - 1: tick(top)}
        legend = f"↑ {short(names[0])}   ↓ {short(names[1])}"
        return [legend, *_behind(rows, ticks, 0), _time_axis(plot, room, _AXIS, zone)]
    named = min(max(map(len, names)), max(_LEAST_NAME, min(MOST_NAME, width // 4)))
    before = named + 1 + _AXIS
    room = max(_LEAST_ROOM, width - before)
    lines = []
    for name, line in zip(names, values, strict=True):
        rows = _behind(area(line, room, LINE_ROWS, top), {0: tick(top), LINE_ROWS - 1: "0"}, named + 1)
        rows[0] = f"{short(name, named):<{named}}{rows[0][named:]}"
        lines += rows
    return [*lines, _time_axis(plot, room, before, zone)]


_LEAST_ROOM = 10


def _behind(rows: Sequence[str], ticks: Mapping[int, str], indent: int) -> list[str]:
    """Return the rows of an area behind their axis, whose figures are `ticks`."""
    lines = []
    for at, row in enumerate(rows):
        axis = glyphs.TICK if at in ticks else glyphs.BAR
        lines.append(f"{'':{indent}}{ticks.get(at, ''):>{_AXIS - 2}} {axis}{row}".rstrip())
    return lines


def _time_axis(plot: Plot, room: int, indent: int, zone: tzinfo | None) -> str:
    """Return the axis of time below `room` cells: its beginning, its middle and its end."""
    first, *between, last = _times(plot, zone)
    middle = between[0] if between and room > len(first) + len(last) + 2 * len(between[0]) else ""
    ends = f"{first}{last:>{max(len(last) + 1, room - len(first))}}"
    at = (room - len(middle)) // 2
    return f"{'':{indent}}{ends[:at]}{middle}{ends[at + len(middle) :]}"


def _times(plot: Plot, zone: tzinfo | None) -> list[str]:
    """Return the labels of the axis of time: three moments, or two, with the day if it differs."""
    last = len(plot.at_ms) - 1
    places = sorted({0, last // 2, last})
    moments = [datetime.fromtimestamp(int(plot.at_ms[at]) // 1000, zone) for at in places]
    form = "%H:%M" if len({moment.date() for moment in moments}) == 1 else "%m-%d %H:%M"
    if moments[-1] - moments[0] < _SHORT:
        form = "%H:%M:%S"
    return [moment.strftime(form) for moment in moments]


_SHORT = datetime(2000, 1, 1, 0, 10) - datetime(2000, 1, 1)
"""Below this, seconds matter on the axis of time."""
