"""Shows a source: as a dashboard on a terminal, as text elsewhere."""

from dataclasses import replace

from kview.errors import BadUse
from kview.run import terminal
from kview.run.log import start_log
from kview.run.shown import Shown


def show(shown: Shown) -> int:
    """Show a source until the user ends it or chooses another cluster, and return the exit code.

    With `once`, text output ends after one block. Raises KviewError if there was never anything to show.
    """
    start_log()
    metrics = shown.display.metrics
    if metrics is None:
        return _show(shown)
    from kview.run.exporter import Exporter

    exporter = Exporter(shown.display.interval_ms / 1000)
    try:
        exporter.start(metrics)
    except BadUse:
        shown.source.close()
        raise
    try:
        return _show(replace(shown, takers=(exporter.take,)))
    finally:
        exporter.stop()


def _show(shown: Shown) -> int:
    is_dashboard, display = terminal.fitted(shown.display)
    shown = replace(shown, display=display)
    if is_dashboard and not display.quiet:
        from kview.run.dashboard import run_dashboard

        return run_dashboard(shown)
    from kview.run.printing import note, print_source, record_and_print

    for notice in shown.opening:
        note(notice, display.ascii_only)
    print_it = record_and_print if display.record.folder is not None else print_source
    return print_it(shown.source, shown.name, display, shown.takers)
