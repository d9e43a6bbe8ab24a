"""What every widget needs to know about the app that it is drawn in."""

from datetime import tzinfo
from typing import Protocol, cast

from textual.widget import Widget

from kview.tui.actions import Action, Keys
from kview.tui.options import Options
from kview.tui.paint import Palette


class Canvas(Protocol):
    """The app, as seen by widgets."""

    palette: Palette
    options: Options
    keys: Keys
    """The keys in force."""
    ascii_only: bool
    zone: tzinfo | None
    log_file: str
    """Where tracebacks are logged, or '' if they are not logged."""

    @property
    def live(self) -> bool:
        """Whether the live moment is shown."""
        ...

    @property
    def back_name(self) -> str:
        """What the key that ends a fault does now, '' if no node has a fault."""
        ...

    def key_label(self, action: Action) -> str | None:
        """Return what a demo says that a key does now, '' if the key line leaves it out, None if the demo
        says nothing about it."""
        ...

    def now_ms(self) -> int:
        """Return the time at the moment shown, epoch ms, by the clock of the snapshots."""
        ...

    def wall_ms(self) -> int:
        """Return the current time, epoch ms, by the same clock."""
        ...


def canvas(widget: Widget) -> Canvas:
    """Return the app that a widget is drawn in."""
    return cast(Canvas, widget.app)
