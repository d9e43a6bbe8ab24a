"""Reads from the nodes' logs when the controller fenced a broker or let it in, when a controller joined the
quorum, and who coordinates groups."""

import re
from collections.abc import Iterable
from datetime import datetime, timedelta

from tests.truth.log import Coordinator, Fencing, Joined

_CLOCK = r"^(?P<clock>\d\d:\d\d:\d\d\.\d{3}) INFO \w+: "
_FENCING = re.compile(
    _CLOCK + r"\[QuorumController id=\d+\] "
    r"(?:(?P<fenced>Fencing broker (?P<out>\d+) at epoch)"
    r"|(?:Registering a new incarnation of broker|No previous registration found for broker) (?P<new>\d+)"
    r"|The request from broker (?P<back>\d+) to unfence has been granted)"
)
"""Only the active controller says these. A controller that starts replays old records in other words."""
_JOINED = re.compile(
    _CLOCK + r"\[(?:QuorumController id=(?P<leads>\d+)\] Becoming the active controller at epoch "
    r"|RaftManager id=(?P<follows>\d+)\] Completed transition to FollowerState\()"
)
_LOADED = re.compile(
    _CLOCK + r"\[GroupCoordinator id=(?P<broker>\d+)\] "
    r"Finished loading of metadata from __consumer_offsets-0 "
)


def fencings(lines: Iterable[str], began: datetime) -> list[Fencing]:
    """Return what the lines of the controllers' logs tell, in order of time.

    The lines carry a time of day in the machine's own zone; `began` is a local time shortly before the first.
    """
    found = []
    for match in filter(None, map(_FENCING.match, lines)):
        broker = match["out"] or match["new"] or match["back"]
        found.append(Fencing(_at_ms(match["clock"], began), int(broker), match["back"] is None))
    return sorted(found, key=lambda one: one.at_ms)


def joined(lines: Iterable[str], began: datetime) -> list[Joined]:
    """Return which controllers led the quorum or followed its leader from when on, in order of time.

    `lines` and `began` are as above.
    """
    found = [
        Joined(_at_ms(match["clock"], began), int(match["leads"] or match["follows"]))
        for match in filter(None, map(_JOINED.match, lines))
    ]
    return sorted(found, key=lambda one: one.at_ms)


def coordinators(lines: Iterable[str], began: datetime) -> list[Coordinator]:
    """Return who has coordinated the groups of `__consumer_offsets-0` since when, in order of time.

    `lines` and `began` are as above, of the brokers' logs.
    """
    found = [
        Coordinator(_at_ms(match["clock"], began), int(match["broker"]))
        for match in filter(None, map(_LOADED.match, lines))
    ]
    return sorted(found, key=lambda one: one.at_ms)


def _at_ms(clock: str, began: datetime) -> int:
    at = datetime.combine(began.date(), datetime.strptime(clock, "%H:%M:%S.%f").time())
    if at < began - timedelta(hours=1):
        at += timedelta(days=1)
    return round(at.timestamp() * 1000)
