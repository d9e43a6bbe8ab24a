"""Shell patterns for the names of topics and groups."""

from enum import StrEnum
from typing import NamedTuple


class Of(StrEnum):
    """What a pattern is about."""

    TOPIC = "topic"
    GROUP = "group"


class BadPattern(ValueError):
    """A pattern that does not say what it is about."""


class NamePattern(NamedTuple):
    """A shell pattern for the names of topics or groups, as people type it: `topic:orders-*`."""

    of: Of
    pattern: str

    @staticmethod
    def parse(text: str) -> "NamePattern":
        """Return the pattern in `topic:PATTERN` or `group:PATTERN`. Raises BadPattern."""
        of, _, pattern = text.partition(":")
        if of not in tuple(Of) or not pattern:
            raise BadPattern(text)
        return NamePattern(Of(of), pattern)
