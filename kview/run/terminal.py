"""What can be drawn where kview runs: a dashboard or text, and with which characters."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass

PLAIN_TERMINALS = ("linux",)
"""Terminals whose fonts lack most of the glyphs: the kernel's own console has 256 or 512 of them."""

DUMB = "dumb"


@dataclass(frozen=True, slots=True)
class Terminal:
    """`dashboard`: there is a terminal that can be drawn on. `ascii_only`: with stand-ins for glyphs, lines
    and plots."""

    dashboard: bool
    ascii_only: bool


def look(terminals: bool, environment: Mapping[str, str], encoding: str | None, ascii_only: bool) -> Terminal:
    """What the run can do, from whether its standard streams are terminals, TERM and the output's
    encoding."""
    term = environment.get("TERM", "")
    unicode = (encoding or "ascii").lower().replace("-", "").replace("_", "") in ("utf8", "utf8sig")
    return Terminal(
        dashboard=terminals and term not in ("", DUMB),
        ascii_only=ascii_only or not unicode or term in PLAIN_TERMINALS,
    )


def streams_are_terminals() -> bool:
    """Keys come from standard input, a dashboard is drawn on standard error, and a redirected output wants
    text."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))
