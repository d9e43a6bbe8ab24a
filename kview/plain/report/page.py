"""A report as one HTML page that needs nothing besides itself."""

from datetime import tzinfo
from importlib.metadata import version
from pathlib import Path

from kview.language import glyphs
from kview.language.glyphs import SIGNS, printable
from kview.model.report import Report
from kview.plain.report.charts import svg
from kview.plain.report.notes import sentences
from kview.plain.report.plots import plots
from kview.plain.report.shown import tables
from kview.plain.report.summary import lines
from kview.plain.report.text import title, zone_name

MOST_ROWS = 100
"""The most rows of a table on the page."""

_TEMPLATE = Path(__file__).with_name("page.html")


def page(report: Report, zone: tzinfo | None = None) -> str:
    """Return the page. Names are escaped, and it loads nothing."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=False)
    template = environment.from_string(_TEMPLATE.read_text(encoding="utf-8"))
    drawn = [
        {"title": printable(plot.title), "svg": Markup(svg(plot, zone))}  # matplotlib escapes names itself
        for plot in plots(report)
        if any(line.is_known for line in plot.lines)
    ]
    name, about = title(report, zone)
    html = template.render(
        title=name,
        about=about,
        summary=lines(report, zone),
        signs={severity: glyphs.printable(sign) for severity, sign in SIGNS.items()},
        plots=drawn,
        tables=tables(report, zone, MOST_ROWS),
        notes=sentences(report),
        version=version("kview"),
        zone=zone_name(report.period.until_ms, zone),
    )
    return html.encode(errors="replace").decode()
