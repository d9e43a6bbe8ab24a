"""What every widget needs to know about the app it is drawn in."""

from datetime import tzinfo
from typing import Protocol, cast

from textual.widget import Widget

from kview.tui.paint import Palette


class Canvas(Protocol):
    """The app, as widgets see it."""

    palette: Palette
    ascii_only: bool
    zone: tzinfo | None
    log_file: str
    """Where tracebacks are logged; '' if nowhere."""

    @property
    def live(self) -> bool:
        """Whether the live moment is shown."""
        ...

    def now_ms(self) -> int:
        """Epoch ms at the moment shown, by the clock of the snapshots' times."""
        ...

    def wall_ms(self) -> int:
        """Epoch ms now, by the same clock."""
        ...


def canvas(widget: Widget) -> Canvas:
    """The app that a widget is drawn in."""
    return cast(Canvas, widget.app)
