"""Shows a source: as a dashboard on a terminal, as text elsewhere."""

import os
import sys

from kview.model.faults import Faults
from kview.run import terminal
from kview.run.log import start_log
from kview.run.observing import AttentiveSource
from kview.run.settings import Display


def show(source: AttentiveSource, faults: Faults | None, name: str, display: Display) -> int:
    """Show `source`, called `name` on the screen, until the user ends it.

    With `once`, text output ends after one block. Returns the exit code. Raises KviewError if there was never
    anything to show.
    """
    start_log()
    output = terminal.detect(
        terminal.streams_are_terminals(),
        os.environ,
        getattr(sys.stdout, "encoding", None),
        display.ascii_only,
    )
    if output.dashboard and display.format is None and not display.once:
        from kview.run.dashboard import run_dashboard

        return run_dashboard(source, faults, name, display, output.ascii_only)
    from kview.run.printing import print_source, record_and_print

    if display.record.folder is not None:
        return record_and_print(source, name, display, output.ascii_only)
    return print_source(source, name, display, output.ascii_only)
