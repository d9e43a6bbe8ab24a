"""What the tests read of Textual beyond its documented interface, each with its reason.

`test_textual_internals.py` fails when one of these moves.
"""

from collections.abc import Sequence

from textual.screen import Screen
from textual.strip import Strip


def drawn_strips(screen: Screen[object]) -> Sequence[Strip]:
    """The screen's lines as they are drawn: Textual exports pictures only, which have neither styles nor the
    spaces at the ends of lines."""
    return screen._compositor.render_strips()
