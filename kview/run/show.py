"""Shows a source: as a dashboard on a terminal, as text elsewhere."""

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kview.errors import BadUse
from kview.model.lab import Lab
from kview.model.notices import Notice
from kview.model.ports import Profiles
from kview.run import terminal
from kview.run.folding import Taker
from kview.run.log import start_log
from kview.run.observing import AttentiveSource
from kview.run.settings import Display

if TYPE_CHECKING:
    from kview.school.demos import Demos, Opening


def show(
    source: AttentiveSource,
    lab: Lab | None,
    name: str,
    display: Display,
    opening: Sequence[Notice] = (),
    profiles: Profiles | None = None,
    demos: "Demos | None" = None,
    demo: "Opening | None" = None,
) -> int:
    """Show `source`, called `name` on the screen, until the user ends it or chooses one of `profiles`.

    `opening` are notices to begin with. A dashboard offers `demos` and begins with `demo`. With `once`, text
    output ends after one block. Returns the exit code.
    Raises KviewError if there was never anything to show.
    """
    start_log()
    if display.metrics is None:
        return _show(source, lab, name, display, opening, profiles, None, demos, demo)
    from kview.run.exporter import Exporter

    exporter = Exporter(display.interval_ms / 1000)
    try:
        exporter.start(display.metrics)
    except BadUse:
        source.close()
        raise
    try:
        return _show(source, lab, name, display, opening, profiles, exporter.take, demos, demo)
    finally:
        exporter.stop()


def _show(
    source: AttentiveSource,
    lab: Lab | None,
    name: str,
    display: Display,
    opening: Sequence[Notice],
    profiles: Profiles | None,
    take: Taker | None = None,
    demos: "Demos | None" = None,
    demo: "Opening | None" = None,
) -> int:
    output = terminal.detect(
        terminal.streams_are_terminals(),
        os.environ,
        getattr(sys.stdout, "encoding", None),
        display.ascii_only,
    )
    if output.dashboard and display.format is None and not display.once and not display.quiet:
        from kview.run.dashboard import run_dashboard

        return run_dashboard(
            source, lab, name, display, output.ascii_only, opening, profiles, take, demos, demo
        )
    from kview.run.printing import note, print_source, record_and_print

    for notice in opening:
        note(notice, output.ascii_only)
    if display.record.folder is not None:
        return record_and_print(source, name, display, output.ascii_only, take)
    return print_source(source, name, display, output.ascii_only, take)
