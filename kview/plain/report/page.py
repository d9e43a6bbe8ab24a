"""A report as one HTML page that needs nothing besides itself."""

import io
import re
from datetime import UTC, datetime, tzinfo
from importlib.metadata import version
from pathlib import Path
from typing import Any

from kview.language import glyphs, words
from kview.language.glyphs import SIGNS, printable
from kview.model.report import Report
from kview.plain.report.cards import bars, cards
from kview.plain.report.notes import sentences
from kview.plain.report.plots import Plot, incident_spans, plots, short
from kview.plain.report.shown import tables
from kview.plain.report.summary import lines
from kview.plain.report.text import title, zone_name

MOST_ROWS = 100
"""The most rows of a table on the page."""

_TEMPLATE = Path(__file__).with_name("page.html")

_DAY_MS = 86_400_000
_WIDTH_IN, _HEIGHT_IN = 10.5, 2.6
_LEGEND_CHARACTERS = 130
"""About as many fit above a plot."""

LEAST_BAND = 0.004
"""The least width of an incident's band, as a share of the plot's."""

_INK, _GRID, _RISK = "#010101", "#020202", "#030303"
_SERIES = tuple(f"#0a0a{number:02x}" for number in range(1, 7))
"""Stand-ins, replaced by the page's variables: matplotlib takes only real colours."""
_DASHES = ("-", "--", "-.", ":", (0, (5, 1)))


def page(report: Report, zone: tzinfo | None = None) -> str:
    """Return the page. Names are escaped, and it loads nothing."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=False)
    template = environment.from_string(_TEMPLATE.read_text(encoding="utf-8"))
    drawn = [
        {
            "title": printable(plot.title),
            "has_incidents": bool(incident_spans(report, plot.cluster)),
            "svg": Markup(_svg(plot, zone, report)),  # matplotlib escapes names itself
        }
        for plot in plots(report)
        if any(line.is_known for line in plot.lines)
    ]
    name, about = title(report, zone)
    shown, more = bars(report)
    html = template.render(
        title=name,
        about=about,
        summary=lines(report, zone),
        cards=cards(report),
        bars=shown,
        more_bars=more,
        signs={severity: glyphs.printable(sign) for severity, sign in SIGNS.items()},
        plots=drawn,
        tables=tables(report, zone, MOST_ROWS),
        notes=sentences(report),
        version=version("kview"),
        zone=zone_name(report.period.until_ms, zone),
    )
    return html.encode(errors="replace").decode()


# -- plots as SVG, drawn by matplotlib in the colours of the page, light and dark


def _svg(plot: Plot, zone: tzinfo | None, report: Report) -> str:
    """Return a plot as an SVG element, with the time of incidents shaded. Its texts are texts, so they can be
    searched and read aloud."""
    import matplotlib as mpl
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter

    settings: dict[Any, Any] = {
        "svg.fonttype": "none",
        "svg.hashsalt": "kview",
        "font.family": "sans-serif",
        "font.size": 9,
        "text.color": _INK,
        "text.parse_math": False,
        "axes.edgecolor": _GRID,
        "axes.labelcolor": _INK,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "xtick.color": _INK,
        "ytick.color": _INK,
        "grid.color": _GRID,
        "grid.linewidth": 0.6,
    }
    with mpl.rc_context(settings):
        figure = Figure((_WIDTH_IN, _HEIGHT_IN), layout="constrained")
        axes = figure.add_subplot()
        where = zone or _local(int(plot.at_ms[0]))
        days = plot.at_ms / _DAY_MS  # matplotlib's unit of time, since 1970
        for began_ms, ended_ms in incident_spans(report, plot.cluster):
            band = max(ended_ms, began_ms + LEAST_BAND * (int(plot.at_ms[-1]) - int(plot.at_ms[0])))
            axes.axvspan(began_ms / _DAY_MS, band / _DAY_MS, color=_RISK, alpha=0.18, linewidth=0)
        for number, line in enumerate(plot.lines):
            if number == 0 and plot.mirrored:
                axes.fill_between(days, line.values, color=_SERIES[0], alpha=0.16, linewidth=0)
            axes.plot(
                days,
                line.values,
                color=_SERIES[number % len(_SERIES)],
                linestyle=_DASHES[number % len(_DASHES)],
                linewidth=1.6,
                label=_shown(line.name),
            )
        axes.set_ylim(bottom=0)
        axes.set_xlim(float(days[0]), (int(plot.at_ms[-1]) + report.step_s * 1000) / _DAY_MS)
        axes.grid(visible=True, axis="y")
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: words.si(value)))
        locator = AutoDateLocator(tz=where)  # type: ignore[no-untyped-call]
        axes.xaxis.set_major_locator(locator)
        concise = ConciseDateFormatter(locator, tz=where)  # type: ignore[no-untyped-call]
        axes.xaxis.set_major_formatter(concise)
        longest = max(len(_shown(line.name)) for line in plot.lines)
        columns = max(1, min(len(plot.lines), _LEGEND_CHARACTERS // (longest + 6)))
        figure.legend(loc="outside upper left", ncols=columns, frameon=False)
        out = io.StringIO()
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return _on_page(out.getvalue())


def _local(at_ms: int) -> tzinfo:
    """Return the machine's time zone at a moment, which matplotlib does not find by itself."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).astimezone().tzinfo or UTC


def _shown(name: str) -> str:
    """Return a name as a label: matplotlib hides labels that begin with an underscore."""
    shown = short(printable(name))
    return f"\u200b{shown}" if shown.startswith("_") else shown


def _on_page(drawn: str) -> str:
    """Return the SVG element alone, with the page's colours, as wide as the page lets it."""
    element = re.sub(r"<metadata>.*?</metadata>", "", drawn[drawn.index("<svg") :], flags=re.DOTALL)
    element = re.sub(r'(<_svg[^>]*?) width="[^"]*"', r"\1", element, count=1)
    element = re.sub(r'(<_svg[^>]*?) height="[^"]*"', r"\1", element, count=1)
    for number, colour in enumerate(_SERIES, 1):
        element = element.replace(colour, f"var(--series-{number})")
    return element.replace(_RISK, "var(--risk)").replace(_INK, "var(--ink)").replace(_GRID, "var(--grid)")
