"""Fleets of clusters in the states of the script, with a dashboard of all of them."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from msgspec.structs import replace
from textual.pilot import Pilot

from kview.derive.view import View
from kview.errors import ErrorFacts, ErrorKind
from kview.model.notices import Notice, NoticeKind
from kview.tui.app import FleetApp, KviewApp
from kview.tui.session import NoFeed, Session
from kview.tui.widgets.header import Member, SourceInfo
from tests.tui.harness import (
    CRASH,
    HEALTHY,
    SEEN_AFTER_MS,
    FakeClock,
    FakeFeed,
    own_themes,
    running_app,
    state,
)

NOW_MS = state(CRASH).snapshot.observation.ended_ms + SEEN_AFTER_MS
"""Now, by the clock of every fleet."""

LONG = "staging-with-a-very-long-name-of-its-own-that-never-ends"


def seen(name: str, ago_ms: int = 0) -> View:
    """A state of the script as if it had been observed just now, or some time ago."""
    view = state(name)
    snapshot = view.snapshot
    by_ms = NOW_MS - SEEN_AFTER_MS - ago_ms - snapshot.observation.ended_ms
    observation = replace(snapshot.observation, ended_ms=snapshot.observation.ended_ms + by_ms)
    brokers = replace(snapshot.brokers, answered_ms=snapshot.brokers.answered_ms + by_ms)
    return replace(view, snapshot=replace(snapshot, observation=observation, brokers=brokers))


def member(name: str, view: View | None = None, notice: Notice | None = None, **of: Any) -> Member:
    """A cluster that has been observed for twelve seconds."""
    return Member(SourceInfo(name, **of), NOW_MS - 12_000, view, notice)


def unreached(name: str) -> Member:
    """A cluster that could not be reached."""
    error = ErrorFacts(ErrorKind.CONNECTION_REFUSED, {"where": (f"{name}:9092",)}, 3)
    return member(name, notice=Notice(NoticeKind.SOURCE_NOT_REACHED, {"error": error, "wait_s": 4.0}))


def healthy() -> list[Member]:
    """Three clusters that are well, but for a group."""
    return [
        member("prod-eu", seen(HEALTHY), production=True),
        member("prod-us", seen(HEALTHY)),
        member(LONG, seen(HEALTHY)),
    ]


def troubled() -> list[Member]:
    """A cluster that is well, and one each that could not be reached, has old figures, and has lost a
    broker."""
    well = member("prod-eu", seen(HEALTHY), production=True)
    return [
        well,
        unreached("prod-us"),
        member(LONG, seen(HEALTHY, ago_ms=30_000)),
        member("dev", seen(CRASH)),
    ]


class FakeFleet:
    """Clusters whose state a test changes. Opening one shows its view."""

    def __init__(self, members: Sequence[Member]) -> None:
        self.members = list(members)
        self.clock = FakeClock(NOW_MS)
        self.opened: list[str] = []

    def names(self) -> list[str]:
        """The names."""
        return [member.source.label for member in self.members]

    def open(self, name: str) -> Session:
        """Return the session of a cluster."""
        self.opened.append(name)
        (found,) = (member for member in self.members if member.name == name)
        feed = FakeFeed(*([found.view] if found.view is not None else []))
        return self._session(feed=feed, source=found.source)

    def fleet(self) -> Session:
        """Return the session of the screen of all clusters."""
        return self._session(
            feed=NoFeed(),
            source=SourceInfo("fleet"),
            members=lambda: self.members,
            selected="".join(self.opened[-1:]),
        )

    def instead(self) -> Session | None:
        """Every cluster can be shown."""
        return None

    def _session(self, **of: Any) -> Session:
        return Session(
            clock_ms=self.clock,
            clusters=self,
            has_fleet=True,
            no_color=False,
            few_colors=False,
            themes=own_themes(),
            **of,
        )


@asynccontextmanager
async def fleet(
    *members: Member, size: tuple[int, int] = (120, 40), **options: Any
) -> AsyncIterator[tuple[KviewApp, Pilot[int], FakeFleet]]:
    """The running app that has drawn a fleet."""
    clusters = FakeFleet(members)
    app = FleetApp(replace(clusters.fleet(), **options))
    async with running_app(app, size) as pilot:
        yield app, pilot, clusters
