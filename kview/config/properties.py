"""Java's properties files, as `java.util.Properties.load` reads them."""

import re

_LINE = re.compile(r"\r\n|\r|\n")
_KEY = re.compile(r"(?:\\.|[^\\\s=:])*")
_SEPARATOR = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})|\\(.)", re.DOTALL)
_LETTERS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_BLANK = " \t\f"


def parse_properties(text: str) -> dict[str, str]:
    """Return the values by key. If a key is given twice, the last value counts.

    `text` is the file decoded as Latin-1, in which any bytes can be read.
    """
    values = {}
    for line in _logical_lines(text):
        key = _KEY.match(line)
        assert key is not None  # the pattern matches the empty text, too
        separator = _SEPARATOR.match(line, key.end())
        assert separator is not None
        values[_unescaped(key[0])] = _unescaped(line[separator.end() :])
    return values


def _logical_lines(text: str) -> list[str]:
    """Return the lines without blank lines and comments. A backslash at the end continues a line."""
    lines: list[str] = []
    open_line: str | None = None
    for line in _LINE.split(text):
        line = line.lstrip(_BLANK)
        if open_line is None:
            if not line or line[0] in "#!":
                continue
            open_line = ""
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            open_line += line[:-1]
            continue
        lines.append(open_line + line)
        open_line = None
    return lines if open_line is None else [*lines, open_line]


def _unescaped(text: str) -> str:
    def value(escape: re.Match[str]) -> str:
        return chr(int(escape[1], 16)) if escape[1] else _LETTERS.get(escape[2], escape[2])

    return _ESCAPE.sub(value, text)
