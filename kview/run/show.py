"""Shows a source: as a dashboard on a terminal, as text elsewhere."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from kview.config.hooks import Hook
from kview.errors import BadUse
from kview.model.lab import Lab
from kview.model.notices import Notice
from kview.model.ports import Profiles
from kview.run import terminal
from kview.run.log import start_log
from kview.run.observing import AttentiveSource, Taker
from kview.run.settings import Display

if TYPE_CHECKING:
    from kview.run.hooks import Hooks
    from kview.school.demos import Demos, Opening


@dataclass(frozen=True, kw_only=True)
class Shown:
    """What is shown, and how."""

    source: AttentiveSource
    name: str
    """What the source is called on the screen."""
    display: Display
    opening: Sequence[Notice] = ()
    """Notices to begin with."""
    profiles: Profiles | None = None
    """The clusters that a dashboard offers instead."""
    lab: Lab | None = None
    demos: "Demos | None" = None
    demo: "Opening | None" = None
    """The demo that a dashboard begins with."""
    hook: Hook | None = None
    """What is called for findings."""
    takers: Sequence[Taker] = ()
    """What gets every snapshot and its view, too."""


def show(shown: Shown) -> int:
    """Show a source until the user ends it or chooses another cluster, and return the exit code.

    With `once`, text output ends after one block. Raises KviewError if there was never anything to show.
    """
    start_log()
    with ExitStack() as stack:
        metrics, hook = shown.display.metrics, None if shown.display.once else shown.hook
        hooks: Hooks | None = None
        if metrics is not None:
            from kview.plain.own_series import Names
            from kview.run.exporter import Exporter

            names = Names(shown.display.metrics_include, shown.display.metrics_exclude)
            exporter = Exporter(shown.display.interval_ms / 1000, names)
            try:
                exporter.start(metrics)
            except BadUse:
                shown.source.close()
                raise
            stack.callback(exporter.stop)
            shown = replace(shown, takers=(*shown.takers, exporter.take))
        if hook is not None:
            from kview.run import hooks as calls

            hooks = calls.Hooks(hook, shown.name)
            hooks.start()
            stack.callback(hooks.stop)
            shown = replace(shown, takers=(*shown.takers, hooks.take))
        return _show(shown, hooks)


def _show(shown: Shown, hooks: "Hooks | None") -> int:
    is_dashboard, display = terminal.fitted(shown.display)
    shown = replace(shown, display=display)
    if is_dashboard and not display.quiet:
        from kview.run.dashboard import run_dashboard

        return run_dashboard(shown, hooks)
    from kview.run.printing import end_on_signals, note, print_source, record_and_print

    for notice in shown.opening:
        note(notice, display.ascii_only)
    print_it = record_and_print if display.record.folder is not None else print_source
    if hooks is None:
        return print_it(shown.source, shown.name, display, shown.takers)
    hooks.on_notice = partial(note, ascii_only=display.ascii_only)
    end_on_signals()
    return print_it(shown.source, shown.name, display, shown.takers, hooks.hear)
