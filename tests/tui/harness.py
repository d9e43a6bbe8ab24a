"""The dashboard without a terminal: a feed and a lab that tests hold in their hands, and the screen as
text."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from datetime import UTC
from functools import cache, wraps
from typing import Any

from textual.events import Key
from textual.pilot import Pilot

from kview.config.themes import Themes, load_themes, theme_folders
from kview.derive.view import View
from kview.model.faults import ActiveFault, FaultCommand, FaultDone, FaultKind, FaultReply, FaultState
from kview.model.notices import Notice
from kview.model.units import UNKNOWN_ID
from kview.tui.app import KviewApp
from kview.tui.widgets.header import SourceInfo
from tests.tui.textual_internals import drawn_strips
from tests.waiting import PATIENCE_S
from tests.worlds import crash_script, views

HEALTHY, CRASH, FENCED, BACK = "healthy", "crash", "fenced", "back"

SECONDS = {HEALTHY: 50, CRASH: 63, FENCED: 70, BACK: 93}
"""Seconds of the script: broker 4 is silent from second 60 on, fenced from 69, answers again from 90."""

SEEN_AFTER_MS = 300
"""How old a picture is when it is looked at."""

LOG_FILE = "kview.log"
"""Where panels say that tracebacks are."""

AGO_MS = 200_000
"""How long ago a moment is that is held."""


@cache
def script() -> tuple[View, ...]:
    """The views of the crash of broker 4, one a second."""
    return tuple(views(crash_script()))


def state(name: str) -> View:
    """One of the four states."""
    return script()[SECONDS[name]]


class HeldFeed:
    """A feed that shows what the test gives it."""

    def __init__(self, *first: View) -> None:
        self.first = first
        self.show: Callable[[View], None] = lambda view: None
        self.note: Callable[[Notice], None] = lambda notice: None
        self.stopped = 0

    def start(self, on_view: Callable[[View], None], on_notice: Callable[[Notice], None]) -> None:
        """Show the first pictures at once."""
        self.show, self.note = on_view, on_notice
        for view in self.first:
            on_view(view)

    def stop(self) -> None:
        """Count the ends."""
        self.stopped += 1


class HeldLab:
    """Faults that only note what they were told."""

    def __init__(self, reply: FaultReply | None = None) -> None:
        self.commands: list[FaultCommand] = []
        self.reply = reply

    async def apply(self, command: FaultCommand) -> FaultReply:
        """Note the command."""
        self.commands.append(command)
        if self.reply is not None:
            return self.reply
        ends = command.kind in (FaultKind.UNDO, FaultKind.START)
        nodes = () if command.node == UNKNOWN_ID else (command.node,)
        return FaultReply(
            FaultDone(command.kind, nodes or (4,), rack=command.rack, slow_ms=command.slow_ms),
            undone_by=None if ends else FaultCommand(FaultKind.UNDO),
            active=() if ends else tuple(ActiveFault(node, FaultState.CRASHED) for node in nodes),
        )


class HeldTimeline:
    """Controls of time that only note what they were told."""

    def __init__(self, replay: bool = False) -> None:
        self.replay = replay
        self.asked: list[tuple[str | int, ...]] = []

    def toggle(self) -> None:
        """Note it, as all of them."""
        self.asked.append(("toggle",))

    def step(self, by: int) -> None:
        """`by` observations."""
        self.asked.append(("step", by))

    def faster(self, steps: int) -> None:
        """Or slower."""
        self.asked.append(("faster", steps))

    def seek(self, ms: int) -> None:
        """To a moment."""
        self.asked.append(("seek", ms))

    def seek_event(self, direction: int) -> None:
        """To an event."""
        self.asked.append(("seek_event", direction))

    def live(self) -> None:
        """To the last moment."""
        self.asked.append(("live",))

    def keep(self, name: str) -> None:
        """Under a name."""
        self.asked.append(("keep", name))


class HeldAttention:
    """An observer's ear that only notes what it heard."""

    def __init__(self) -> None:
        self.dismissed: list[int] = []
        self.preferred: list[set[tuple[str, int]]] = []

    def dismiss(self, broker: int) -> None:
        """Note the broker."""
        self.dismissed.append(broker)

    def prefer(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Note the partitions."""
        self.preferred.append(set(partitions))


class HeldClock:
    """A clock that stands still until it is moved."""

    def __init__(self, now_ms: int) -> None:
        self.now_ms = now_ms

    def __call__(self) -> int:
        return self.now_ms


def own_themes() -> Themes:
    """Kview's own themes, whatever the user who runs the tests has."""
    return load_themes(theme_folders()[:1])


@asynccontextmanager
async def dashboard(
    *pictures: View, size: tuple[int, int] = (120, 40), lab: HeldLab | None = None, **options: Any
) -> AsyncIterator[tuple[KviewApp, Pilot[int]]]:
    """The running app that has drawn `pictures`, the clock SEEN_AFTER_MS after the last one; where that is
    not the live moment, the clock stands at it, and the wall's is AGO_MS after it."""
    feed = HeldFeed(*pictures)
    now_ms = 1_760_000_000_000
    settings: dict[str, Any] = {"no_color": False, "themes": own_themes(), "zone": UTC, "log_file": LOG_FILE}
    if pictures and pictures[-1].moment.live:
        now_ms = pictures[-1].snapshot.observation.ended_ms + SEEN_AFTER_MS
    elif pictures:
        now_ms = pictures[-1].snapshot.observation.ended_ms
        settings["wall_ms"] = HeldClock(now_ms + AGO_MS)
    source = options.pop("source", SourceInfo("simulated"))
    app = KviewApp(feed, lab, source, HeldClock(now_ms), **settings | options)
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        yield app, pilot


def text(app: KviewApp) -> str:
    """What stands on the screen, a line per line, without the spaces at their ends."""
    return "\n".join(line.rstrip() for line in lines(app)) + "\n"


def lines(app: KviewApp) -> list[str]:
    """The screen's lines as they are drawn."""
    return ["".join(segment.text for segment in strip) for strip in drawn_strips(app.screen)]


async def until(pilot: Pilot[int], probe: Callable[[], Any], what: str) -> Any:
    """Let the app work until `probe` is true; returns its answer."""
    deadline_s = asyncio.get_running_loop().time() + PATIENCE_S
    while True:
        await pilot.pause()
        if found := probe():
            return found
        assert asyncio.get_running_loop().time() < deadline_s, f"never: {what}\n{text(pilot.app)}"  # type: ignore[arg-type]


async def press(pilot: Pilot[int], keys: Iterable[str]) -> None:
    """Press keys, one after the other, each drawn."""
    for key in keys:
        await pilot.press(key)
        await pilot.pause()


def press_at_once(app: KviewApp, keys: Iterable[str]) -> None:
    """Hand the app keys as a terminal does that has read them in one go."""
    for key in keys:
        app.post_message(Key(key, {"slash": "/"}.get(key, key if len(key) == 1 else None)))


def running(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """A test that is a coroutine, run in a loop of its own."""

    @wraps(test)
    def run(*arguments: Any, **named: Any) -> None:
        asyncio.run(test(*arguments, **named))

    return run
