"""Frames: what a person could read on kview's screen, second by second.

The path is the product's own: an `ObservingFeed` over a `ConnectedSource`, its fold, and the header's own
text. A frame keeps the words' facts (kinds, states, verdicts), so that wording may change.
"""

import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC

import numpy as np

from kview.derive.brokers.silence import late
from kview.derive.checks.judge import Watch, step
from kview.derive.view import PartitionStatus, View
from kview.language import checks, glyphs
from kview.model.address import Address
from kview.model.checks import CheckFinding, Level
from kview.model.notices import Notice
from kview.model.snapshot import Brokers
from kview.model.units import UNKNOWN, UNKNOWN_ID
from kview.run.observing import ConnectedSource, ObservingFeed, new_fold
from kview.tui.text import Role, content
from kview.tui.widgets.header import SourceInfo, header_line
from tests.truth.log import Partition
from tests.waiting import paced, wait_until

INTERVAL_S = 1.0
CELLS = 200

SilentEvent = tuple[int, tuple[int, ...]]
"""Time and brokers."""


@dataclass(frozen=True, slots=True)
class Said:
    """A finding of the headline."""

    kind: str
    severity: str
    brokers: tuple[int, ...] = ()
    controllers: tuple[int, ...] = ()
    group: str = ""
    transaction: str = ""
    """The transactional id, if it is about a transaction whose owner is known."""


@dataclass(frozen=True, slots=True)
class GroupSaid:
    """A group's row. None where the row has no figure."""

    verdict: str
    lag: int | None = None
    lag_is_bound: bool = False
    behind_ms: int | None = None
    read_rate: float | None = None
    age_ms: int | None = None
    coordinator: int | None = None
    is_old_verdict: bool = False
    """Whether the row says as of when the verdict is."""
    type: str = ""
    members: int | None = None
    state: str = ""


@dataclass(frozen=True, slots=True)
class CheckSaid:
    """A finding of `kview check`, with its line."""

    kind: str
    name: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Frame:
    """What stood on the screen at `at_ms`; it was observed from `began_ms` to `ended_ms`."""

    at_ms: int
    began_ms: int
    ended_ms: int
    severity: str
    findings: tuple[Said, ...] = ()
    brokers: Mapping[int, str] = field(default_factory=dict)
    groups: Mapping[str, GroupSaid] = field(default_factory=dict)
    badge: str = ""
    badge_is_green: bool = False
    silent_events: tuple[SilentEvent, ...] = ()
    """The events "stopped answering" since the last frame."""
    statuses: Mapping[Partition, str] = field(default_factory=dict)
    """The statuses of partitions that are not well."""
    checks: tuple[CheckSaid, ...] = ()
    """What `kview check` would say, without weaknesses."""


def frame(
    view: View,
    source: SourceInfo,
    at_ms: int,
    silent_events: Sequence[SilentEvent] = (),
    found: Sequence[CheckFinding] = (),
) -> Frame:
    """Return what the screen shows of `view` at a time."""
    seen = view.snapshot.observation
    drawn = header_line(view, source, False, seen.began_ms, at_ms, UTC, CELLS)
    signs = (*glyphs.SIGNS.values(),)
    first = max((n for n, span in enumerate(drawn) if span.text.lstrip().startswith(signs)), default=-1)
    badge = drawn[first:] if first >= 0 else ()
    return Frame(
        at_ms=at_ms,
        began_ms=seen.began_ms,
        ended_ms=seen.ended_ms,
        severity=view.headline.severity.value,
        findings=tuple(
            Said(
                one.kind.value,
                one.severity.value,
                one.brokers,
                one.controllers,
                one.group,
                one.transaction.transactional_id if one.transaction else "",
            )
            for one in view.headline.findings
        ),
        brokers=_brokers(view.snapshot.brokers),
        groups=_groups(view),
        badge=content(badge).strip(),
        badge_is_green=any(span.role is Role.GOOD for span in badge),
        silent_events=tuple(silent_events),
        statuses=_statuses(view),
        checks=tuple(
            CheckSaid(one.kind.value, one.name, checks.sentence(one, seen.ended_ms))
            for one in found
            if one.level is not Level.WEAKNESS
        ),
    )


def _statuses(view: View) -> dict[Partition, str]:
    table, well = view.snapshot.partitions, (PartitionStatus.OK, PartitionStatus.NOT_PREFERRED)
    return {
        (str(table.topic[row]), int(table.partition[row])): str(status)
        for row, status in enumerate(view.partitions.status.tolist())
        if status not in well
    }


def _brokers(table: Brokers) -> dict[int, str]:
    """The state of each broker as its row says it."""
    states = np.where(late(table), "late", table.state.astype(str))
    return dict(zip(table.id.tolist(), states.tolist(), strict=True))


def _groups(view: View) -> dict[str, GroupSaid]:
    table, figures = view.snapshot.groups, view.groups

    def known(value: int) -> int | None:
        return None if value == UNKNOWN else value

    return {
        str(table.group[row]): GroupSaid(
            str(figures.verdict[row]),
            known(int(figures.lag[row])),
            bool(figures.lag_is_bound[row]),
            known(int(figures.behind_ms[row])),
            None if figures.read_rate[row] != figures.read_rate[row] else float(figures.read_rate[row]),
            known(int(figures.age_ms[row])),
            int(table.coordinator[row]),
            known(int(figures.verdict_age_ms[row])) is not None,
            str(table.type[row]),
            None if table.members[row] == UNKNOWN_ID else int(table.members[row]),
            str(table.state[row]),
        )
        for row in range(len(table))
    }


class Watching:
    """kview at work, and somebody who reads its screen every second."""

    def __init__(self, servers: Sequence[Address]) -> None:
        self.frames: list[Frame] = []
        self.notices: list[Notice] = []
        self._info = SourceInfo(",".join(map(str, servers)), round(INTERVAL_S * 1000))
        self._feed = ObservingFeed(ConnectedSource(servers, INTERVAL_S), new_fold, INTERVAL_S)
        self._latest: View | None = None
        self._watch = Watch()
        self._events: deque[SilentEvent] = deque()
        self._ending = threading.Event()
        self._reader = threading.Thread(target=self._read_the_screen, name="reader")

    def start(self) -> None:
        """Start, and wait for the first view."""
        self._feed.start(self._take, self.notices.append)
        wait_until(lambda: self._latest is not None or self._feed.error, "kview's first view")
        if self._feed.error is not None:
            raise self._feed.error
        self._reader.start()

    def close(self) -> None:
        """End both."""
        self._ending.set()
        if self._reader.ident is not None:
            self._reader.join()
        self._feed.stop()

    def _take(self, view: View) -> None:
        self._latest = view
        self._events.extend(
            (event.at_ms, event.brokers) for event in view.new_events if event.kind.value == "broker_silent"
        )

    def _read_the_screen(self) -> None:
        for _ in paced(INTERVAL_S):
            if self._ending.is_set():
                return
            view = self._latest
            assert view is not None
            new = [self._events.popleft() for _ in range(len(self._events))]
            self._watch, judgement = step(self._watch, view)
            at_ms = time.time_ns() // 1_000_000
            self.frames.append(frame(view, self._info, at_ms, new, judgement.findings))


@contextmanager
def watching(servers: Sequence[Address]) -> Iterator[Watching]:
    """kview, connected to a cluster."""
    watched = Watching(servers)
    try:
        watched.start()
        yield watched
    finally:
        watched.close()
