"""The app, as panels, screens and keys know it."""

from typing import TYPE_CHECKING, cast

from textual.message_pump import MessagePump

if TYPE_CHECKING:
    from kview.tui.app import KviewApp


def app_of(node: MessagePump) -> "KviewApp":
    """Return the app that a widget or a screen belongs to."""
    return cast("KviewApp", node.app)
