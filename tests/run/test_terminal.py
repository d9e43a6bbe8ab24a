"""The choice between dashboard and text, and between glyphs and ASCII, by the streams, TERM and the
encoding."""

import pytest

from kview.run.terminal import Terminal, detect


@pytest.mark.parametrize(
    ("terminals", "term", "encoding", "ascii_flag", "expected"),
    [
        (True, "xterm-256color", "utf-8", False, Terminal(dashboard=True, ascii_only=False)),
        (True, "xterm-256color", "UTF8", False, Terminal(dashboard=True, ascii_only=False)),
        (True, "xterm-256color", "utf-8", True, Terminal(dashboard=True, ascii_only=True)),
        (True, "xterm-256color", "iso8859-1", False, Terminal(dashboard=True, ascii_only=True)),
        (True, "xterm-256color", None, False, Terminal(dashboard=True, ascii_only=True)),
        (True, "linux", "utf-8", False, Terminal(dashboard=True, ascii_only=True)),
        (True, "dumb", "utf-8", False, Terminal(dashboard=False, ascii_only=False)),
        (True, "", "utf-8", False, Terminal(dashboard=False, ascii_only=False)),
        (False, "xterm-256color", "utf-8", False, Terminal(dashboard=False, ascii_only=False)),
        (False, "xterm-256color", "ascii", False, Terminal(dashboard=False, ascii_only=True)),
    ],
)
def test_what_can_be_drawn(
    terminals: bool, term: str, encoding: str | None, ascii_flag: bool, expected: Terminal
) -> None:
    assert detect(terminals, {"TERM": term}, encoding, ascii_flag) == expected
