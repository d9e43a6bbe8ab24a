"""One run: shows a source as a dashboard on a terminal, as text elsewhere."""

import os
import sys

from kview.model.faults import Faults
from kview.run import terminal
from kview.run.log import start_log
from kview.run.observing import AttentiveSource
from kview.run.settings import Display


def show(source: AttentiveSource, faults: Faults | None, name: str, display: Display) -> int:
    """Shows `source`, called `name` on the screen, until the user ends it or, with `once`, after one block.

    Returns the exit code. Raises KviewError where there was never anything to show.
    """
    start_log()
    can = terminal.look(
        terminal.streams_are_terminals(),
        os.environ,
        getattr(sys.stdout, "encoding", None),
        display.ascii_only,
    )
    if can.dashboard and display.format is None and not display.once:
        from kview.run.dashboard import run_dashboard

        return run_dashboard(source, faults, name, display, can.ascii_only)
    from kview.run.text import print_pictures, print_recorded

    if display.record.folder is not None:
        return print_recorded(source, name, display, can.ascii_only)
    return print_pictures(source, name, display, can.ascii_only)
