"""A table as CSV or JSON: all rows in their order, not only those in sight. All functions here are pure."""

import csv
import io
import json
import re
from collections.abc import Hashable, Sequence
from enum import StrEnum

from kview.language import words
from kview.language.glyphs import MINUS, printable
from kview.tui.rows.columns import Column
from kview.tui.rows.row import Rows
from kview.tui.text import content

Value = str | int | float | None

_NUMBER = re.compile(r"[+-]?\d{1,3}(,\d{3})*(\.\d+)?|[+-]?\d+(\.\d+)?")


class Format(StrEnum):
    """The formats of an exported table."""

    CSV = "csv"
    JSON = "json"


def titles(columns: Sequence[Column]) -> list[str]:
    """Return a name for each column: its title, or its key if it has none or shares it."""
    named = [column.title for column in columns]
    return [
        column.title if column.title and named.count(column.title) == 1 else column.key for column in columns
    ]


def values(rows: Rows, index: int, now_ms: int) -> list[Value]:
    """Return a row's values: numbers for plain figures, None for what is not known, otherwise text.

    Names are as the cluster has them, also if they contain what cannot be shown on a screen.
    """
    names = _names(rows.key(index))
    cells = zip(rows.row(index, now_ms).cells, rows.columns, strict=True)
    return [_value(content(cell).strip(), column, names) for cell, column in cells]


def _names(key: Hashable) -> dict[str, str]:
    """Return the names in a row's key, by how they look on the screen."""
    parts = key if isinstance(key, tuple) else (key,)
    return {printable(str(part)): str(part) for part in parts if isinstance(part, str)}


def _value(text: str, column: Column, names: dict[str, str]) -> Value:
    if column.name or not column.right:
        return names.get(text, text)
    if text in (words.NONE, words.NOT_YET, ""):
        return None
    number = text.replace(MINUS, "-")
    if not _NUMBER.fullmatch(number):
        return text
    number = number.replace(",", "")
    return float(number) if "." in number else int(number)


class Writer:
    """Makes the text of a file, row by row."""

    def __init__(self, format: Format, columns: Sequence[Column]) -> None:
        self._format = format
        self._titles = titles(columns)
        self._rows = 0

    def begin(self) -> str:
        """Return the beginning of the file."""
        return "[" if self._format is Format.JSON else _csv_line(self._titles)

    def row(self, row: Sequence[Value]) -> str:
        """Return the text of a row."""
        self._rows += 1
        if self._format is Format.CSV:
            return _csv_line(row)
        document = json.dumps(dict(zip(self._titles, row, strict=True)), ensure_ascii=False)
        return f"{',' if self._rows > 1 else ''}\n{document}"

    def end(self) -> str:
        """Return the end of the file."""
        return "\n]\n" if self._format is Format.JSON else ""


def _csv_line(row: Sequence[Value]) -> str:
    """Return a line of CSV as RFC 4180 has it. Text is always quoted, and an unknown value is empty."""
    made = io.StringIO()
    csv.writer(made, quoting=csv.QUOTE_NONNUMERIC).writerow(["" if value is None else value for value in row])
    return made.getvalue()
