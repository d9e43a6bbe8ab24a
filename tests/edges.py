"""What a screen says, without the edges around its panels."""

import re

from rich.cells import cell_len

_EDGE = re.compile(r"[╭╰]─|─ [^ ]|─+$")


def without_edges(line: str) -> str:
    """Return a screen's line as wide as it is. Sides are left out, and an edge is only its words."""
    if _EDGE.match(line):
        text = re.sub(r" ?[─╭╮╰╯]+ ?", "  ", line)
    else:
        text = re.sub(r"^│|│$", "", line).replace("││", " │ ")
    return text + " " * (cell_len(line) - cell_len(text))
