"""A table as CSV or JSON: all rows in their order, not only those in sight, and values instead of figures as
they are drawn. All functions here are pure."""

import csv
import io
import json
from collections.abc import Hashable, Sequence
from enum import StrEnum

from kview.language.glyphs import printable
from kview.tui.rows.columns import Column
from kview.tui.rows.figures import Figure, Value
from kview.tui.rows.row import Rows
from kview.tui.text import Line, content


class Format(StrEnum):
    """The formats of an exported table."""

    CSV = "csv"
    JSON = "json"


def titles(columns: Sequence[Column]) -> list[str]:
    """Return the names of the exported columns: a title, or a key if a column has none or shares it."""
    shown = [column.title.strip() for column in columns]
    names: list[str] = []
    for column, title in zip(columns, shown, strict=True):
        names += column.exported if column.exported is not None else (_title(column, title, shown),)
    return names


def _title(column: Column, title: str, shown: Sequence[str]) -> str:
    return title if title and shown.count(title) == 1 else column.key


def values(rows: Rows, index: int, now_ms: int) -> list[Value]:
    """Return a row's values: those of figures, None for what is not known, otherwise text.

    Names are as the cluster has them, also if they contain what cannot be shown on a screen.
    """
    names = _names(rows.key(index))
    row_values: list[Value] = []
    for cell, column in zip(rows.row(index, now_ms).cells, rows.columns, strict=True):
        row_values += _values(cell, column, names)
    return row_values


def _names(key: Hashable) -> dict[str, str]:
    """Return the names in a row's key, by how they look on the screen."""
    parts = key if isinstance(key, tuple) else (key,)
    return {printable(str(part)): str(part) for part in parts if isinstance(part, str)}


def _values(cell: Line, column: Column, names: dict[str, str]) -> list[Value]:
    """Return the values of a cell, one for each column that it is exported to."""
    count = 1 if column.exported is None else len(column.exported)
    if isinstance(cell, Figure):
        cell_values = list(cell.values)
    elif not cell and (column.right or column.exported):
        cell_values = []
    else:
        text = content(cell).strip()
        cell_values = [names.get(text, text)]
    return [*cell_values, *[None] * count][:count]


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
    buffer = io.StringIO()
    writer = csv.writer(buffer, quoting=csv.QUOTE_NONNUMERIC)
    writer.writerow(["" if value is None else value for value in row])
    return buffer.getvalue()
