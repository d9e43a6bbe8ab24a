"""Everything undocumented that the tests use of Textual, each with its reason.

`test_textual_internals.py` fails if one of these changes.
"""

from collections.abc import Sequence

from textual.screen import Screen
from textual.strip import Strip


def drawn_strips(screen: Screen[object]) -> Sequence[Strip]:
    """The screen's lines as they are drawn: Textual only exports pictures, without styles and without the
    spaces at the ends of lines."""
    return screen._compositor.render_strips()
