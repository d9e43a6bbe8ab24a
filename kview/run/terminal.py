"""What the output can show: a dashboard or only text, and whether it must be ASCII."""

import os
import sys
from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from kview.run.settings import Display

PLAIN_TERMINALS = ("linux",)
"""Terminals whose fonts lack most of the glyphs. The kernel's own console has only 256 or 512 of them."""

DUMB = "dumb"


class Terminal(Struct, frozen=True):
    """What the output can show.

    `dashboard`: a dashboard can be drawn. `ascii_only`: glyphs, lines and plots need ASCII stand-ins.
    """

    dashboard: bool
    ascii_only: bool


def fitted(display: Display) -> tuple[bool, Display]:
    """Return whether to show a dashboard, because there is room for it and nothing else was asked for, and
    `display` for this output."""
    # While a dashboard runs, Textual has a stream without an encoding in the place of standard output.
    encoding = getattr(sys.stdout, "encoding", None) or getattr(sys.__stdout__, "encoding", None)
    output = detect(streams_are_terminals(), os.environ, encoding, display.ascii_only)
    is_dashboard = output.dashboard and display.format is None and not display.once
    return is_dashboard, replace(display, ascii_only=output.ascii_only)


def detect(
    terminals: bool, environment: Mapping[str, str], encoding: str | None, ascii_only: bool
) -> Terminal:
    """Return what the output can show.

    `terminals` says whether all standard streams are terminals. `encoding` is that of standard output.
    `ascii_only` says whether the user asked for ASCII.
    """
    term = environment.get("TERM", "")
    unicode = (encoding or "ascii").lower().replace("-", "").replace("_", "") in ("utf8", "utf8sig")
    return Terminal(
        dashboard=terminals and term not in ("", DUMB),
        ascii_only=ascii_only or not unicode or term in PLAIN_TERMINALS,
    )


def streams_are_terminals() -> bool:
    """Return whether all three standard streams are terminals.

    A dashboard needs all of them. Keys come from standard input, the dashboard is drawn on standard error,
    and a user who redirects standard output wants text.
    """
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))
