"""Shows a source: as a dashboard on a terminal, as text elsewhere."""

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct
from msgspec.structs import replace

from kview.config.hooks import Hook
from kview.errors import KviewError
from kview.model.lab import Lab
from kview.model.notices import Notice
from kview.run import terminal
from kview.run.log import start_log
from kview.run.observing import AttentiveSource, Taker
from kview.run.settings import Display

if TYPE_CHECKING:
    from kview.run.hooks import Hooks
    from kview.school.demos import Demos, Opening


class Shown(Struct, frozen=True, kw_only=True):
    """What is shown, and how."""

    source: AttentiveSource
    name: str
    """What the source is called on the screen."""
    display: Display
    opening: Sequence[Notice] = ()
    """Notices to begin with."""
    lab: Lab | None = None
    demos: "Demos | None" = None
    demo: "Opening | None" = None
    """The demo that a dashboard begins with."""
    hook: Hook | None = None
    """What is called for findings."""
    takers: Sequence[Taker] = ()
    """What gets every snapshot and its view, too."""


class Others(Protocol):
    """The clusters that a user can go to besides those that are shown at first."""

    def names(self) -> Sequence[str]:
        """Return their names."""
        ...

    def shown(self, name: str) -> Shown:
        """Return what is shown of one of them. Raises KviewError if its settings are wrong."""
        ...


def show(shown: Sequence[Shown], others: Others | None = None) -> int:
    """Show sources until the user ends it, and return the exit code. A dashboard offers `others`, too.

    With `once`, text output ends after one block of each. Raises KviewError if there was never anything to
    show.
    """
    start_log()
    try:
        is_dashboard = terminal.fitted(shown[0].display)[0]
        with ExitStack() as stack:
            shown = _with_metrics(shown, stack)
            shown = [replace(each, display=terminal.fitted(each.display)[1]) for each in shown]
            if is_dashboard and not shown[0].display.quiet:
                from kview.run.fleet import run_dashboard

                return run_dashboard(shown, others)
            return _print(shown, stack)
    except KviewError:
        for each in shown:
            each.source.close()
        raise


def _with_metrics(shown: Sequence[Shown], stack: ExitStack) -> Sequence[Shown]:
    """Return what is shown with what serves its metrics until the stack ends, if they are asked for."""
    address = shown[0].display.metrics
    if address is None:
        return shown
    from kview.plain.own_series import Names
    from kview.run.exporter import Exporter, FleetPages, serve

    exporters = {
        each.name: Exporter(
            each.display.interval_ms / 1000,
            Names(each.display.metrics_include, each.display.metrics_exclude),
        )
        for each in shown
    }
    pages = FleetPages(exporters) if len(shown) > 1 else exporters[shown[0].name]
    stack.callback(serve(pages, address).stop)
    return [replace(each, takers=(*each.takers, exporters[each.name].take)) for each in shown]


def hooked(shown: Shown, stack: ExitStack) -> "tuple[Shown, Hooks | None]":
    """Return what is shown with what calls its hook until the stack ends, if there is one."""
    if shown.hook is None or shown.display.once:
        return shown, None
    from kview.run.hooks import Hooks

    hooks = Hooks(shown.hook, shown.name)
    hooks.start()
    stack.callback(hooks.stop)
    return replace(shown, takers=(*shown.takers, hooks.take)), hooks


def _print(shown: Sequence[Shown], stack: ExitStack) -> int:
    from kview.run.printing import Printed, end_on_signals, note, print_all

    printed = []
    for each in shown:
        each, hooks = hooked(each, stack)
        display = each.display
        say = partial(note, ascii_only=display.ascii_only, cluster=each.name if len(shown) > 1 else "")
        for notice in each.opening:
            say(notice)
        if hooks is not None:
            hooks.on_notice = say
        hear = None if hooks is None else hooks.hear
        printed.append(Printed(each.source, each.name, display, each.takers, hear))
        if hooks is not None or display.record.folder is not None:
            end_on_signals()
    return print_all(printed)
