"""The settings of a resource as rows of a response."""

from collections.abc import Callable, Sequence
from typing import Any

from kview.simulate.results import ConfigEntry


class ConfigRows:
    """Makes the rows of a response. Resources with the same settings share them, as most topics do.

    Without that, the settings of 20,000 topics would take 200 MB. `make` makes one row.
    """

    def __init__(self, make: Callable[[ConfigEntry], Any]) -> None:
        self._make = make
        self._rows: dict[tuple[ConfigEntry, ...], list[Any]] = {}

    def of(self, entries: Sequence[ConfigEntry]) -> list[Any]:
        """Return a row for each setting."""
        key = tuple(entries)
        if key not in self._rows:
            self._rows[key] = [self._make(entry) for entry in entries]
        return self._rows[key]


def config_row(kind: Any, version: int, entry: ConfigEntry, **more: Any) -> Any:
    """Return a row of the class `kind`, with the fields that every response has and with `more`."""
    return kind(
        version=version,
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.sensitive,
        **more,
    )
