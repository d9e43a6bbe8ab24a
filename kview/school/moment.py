"""A view and the cluster's own counters at one time, of which lessons name figures."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from kview.derive.view import View

Value = int | str | bool | tuple[int, ...] | tuple[str, ...] | None
"""A figure's value. None if it is not known, or if there is no such thing."""

_WHOLE = re.compile(r"[0-9]{1,18}")

Counters = Mapping[str, Any]
"""What the simulated cluster itself counts (`Cluster.counters`)."""


class Moment(NamedTuple):
    """A view, and what the cluster had counted at that time."""

    view: View
    counters: Counters


class Asked(NamedTuple):
    """A figure of a subject: the names after the subject, the figure's name, and a broker, or −1."""

    of: tuple[str, ...]
    name: str
    at: int = -1


def split(name: str) -> tuple[str, int]:
    """Return topic and number of a partition in `invoice-3`. The number is −1 if there is none."""
    topic, _, number = name.rpartition("-")
    return topic, whole(number)


def whole(text: str) -> int:
    """Return a number that is not negative, or −1."""
    return int(text) if _WHOLE.fullmatch(text) else -1
