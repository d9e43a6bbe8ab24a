"""The dashboard without a terminal, with a fake feed, lab, timeline and clock, and its screen as text."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from datetime import UTC
from functools import cache, wraps
from typing import Any, TypeVar

from textual.app import App
from textual.events import Key
from textual.pilot import Pilot

from kview.config.themes import Themes, load_themes, theme_folders
from kview.derive.view import View
from kview.errors import ErrorKind, KviewError
from kview.lab.console import Console
from kview.model.history import Course, CourseOf, PartitionHistory
from kview.model.lab import ActiveFault, Command, CommandKind, Done, FaultState, LabSettings, Reply
from kview.model.notices import Notice
from kview.model.units import UNKNOWN_ID
from kview.simulate.cluster import build
from kview.simulate.world import World, default_world
from kview.tui.app import KviewApp
from kview.tui.session import Session
from kview.tui.widgets.header import SourceInfo
from tests.edges import without_edges
from tests.tui.textual_internals import IdleLoop, IdlePilot, drawn_strips, nothing_composed
from tests.worlds import crash_script, views

T = TypeVar("T")

PATIENCE_S = 20.0
"""Nothing here waits for another process."""

BETWEEN_PROBES_S = 0.01
"""How long a timer or a thread is given before `until` looks again."""

HEALTHY, CRASH, FENCED, BACK = "healthy", "crash", "fenced", "back"

SECONDS = {HEALTHY: 50, CRASH: 63, FENCED: 70, BACK: 93}
"""Seconds of the script: broker 4 is silent from second 60 on, fenced from 69, answers again from 90."""

SEEN_AFTER_MS = 300
"""How old the last view is when a test begins."""

LOG_FILE = "kview.log"
"""The log file that panels name."""

AGO_MS = 200_000
"""How long ago a moment is that is not live."""


@cache
def script() -> tuple[View, ...]:
    """The views of the crash of broker 4, one per second."""
    return tuple(views(crash_script()))


def state(name: str) -> View:
    """One of the four states."""
    return script()[SECONDS[name]]


class FakeFeed:
    """A feed that shows what the test gives it."""

    def __init__(self, *first: View) -> None:
        self.first = first
        self.show: Callable[[View], None] = lambda view: None
        self.note: Callable[[Notice], None] = lambda notice: None
        self.stopped = 0
        self.on_stop: Callable[[], None] = lambda: None

    def start(self, on_view: Callable[[View], None], on_notice: Callable[[Notice], None]) -> None:
        """Show the first views at once."""
        self.show, self.note = on_view, on_notice
        for view in self.first:
            on_view(view)

    def stop(self) -> None:
        """Count how often it was stopped."""
        self.stopped += 1
        self.on_stop()


class FakeLab:
    """A lab that only notes the commands it gets."""

    def __init__(self, reply: Reply | None = None) -> None:
        self.commands: list[Command] = []
        self.reply = reply
        self.in_force: tuple[ActiveFault, ...] = ()

    async def settings_now(self) -> LabSettings | None:
        """Return that nothing can be adjusted."""
        return LabSettings()

    async def active(self) -> tuple[ActiveFault, ...] | None:
        """What the last command left in force, unless a test says something else."""
        return self.in_force

    async def apply(self, command: Command) -> Reply:
        """Note the command."""
        self.commands.append(command)
        if self.reply is not None:
            return self.reply
        ends = command.kind in (CommandKind.UNDO, CommandKind.START)
        nodes = () if command.node == UNKNOWN_ID else (command.node,)
        left = () if command.kind is CommandKind.UNDO else self.in_force
        self.in_force = tuple(fault for fault in left if fault.node not in nodes)
        if not ends:
            self.in_force += tuple(ActiveFault(node, FaultState.CRASHED) for node in nodes)
        undo = Command(CommandKind.START, nodes[0]) if nodes else Command(CommandKind.UNDO)
        return Reply(
            Done(command, nodes or (4,)),
            undone_by=None if ends else undo,
            active=self.in_force,
        )


class EngineLab(FakeLab):
    """A lab on the engine, whose cluster is the default one."""

    def __init__(self, world: World | None = None) -> None:
        super().__init__()
        self.cluster = build(world or default_world(), 1, 1_760_000_000_000)
        self.console = Console(self.cluster, self.cluster.counters, lambda: 0, lambda: None)
        self.answers = True

    async def apply(self, command: Command) -> Reply:
        """Carry out a command."""
        if not self.answers:
            return Reply(refused=KviewError(ErrorKind.CLUSTER_SILENT, within_s=5.0).facts)
        return self.console.apply(command)

    async def active(self) -> tuple[ActiveFault, ...] | None:
        """Return the faults in force."""
        return self.console.status().active

    async def settings_now(self) -> LabSettings | None:
        """Return what is set."""
        return self.cluster.adjustments.settings() if self.answers else None


class FakeTimeline:
    """A timeline that only notes what it is asked."""

    def __init__(self, replay: bool = False) -> None:
        self.replay = replay
        self.asked: list[tuple[str | int, ...]] = []
        self.recorded = PartitionHistory()
        self.courses_asked: list[CourseOf] = []
        self.course_of: Callable[[CourseOf], Course | None] = lambda asked: Course()

    def toggle(self) -> None:
        """Note the call, like all methods here."""
        self.asked.append(("toggle",))

    def step(self, by: int) -> None:
        """Note a step of `by` observations."""
        self.asked.append(("step", by))

    def faster(self, steps: int) -> None:
        """Note a change of speed."""
        self.asked.append(("faster", steps))

    def seek(self, ms: int) -> None:
        """Note a jump to a moment."""
        self.asked.append(("seek", ms))

    def seek_event(self, direction: int) -> None:
        """Note a jump to an event."""
        self.asked.append(("seek_event", direction))

    def live(self) -> None:
        """Note a return to the last moment."""
        self.asked.append(("live",))

    def keep(self, name: str) -> None:
        """Note the name of a kept recording."""
        self.asked.append(("keep", name))

    async def history(self, topic: str, partition: int) -> PartitionHistory:
        """Return what the test says a recording has of every partition."""
        return self.recorded

    async def course(self, asked: CourseOf) -> Course | None:
        """Return what the test says a recording has of everything."""
        self.courses_asked.append(asked)
        return self.course_of(asked)


class FakeAttention:
    """An observer's attention that only notes what it hears."""

    def __init__(self) -> None:
        self.dismissed: list[int] = []
        self.preferred: list[set[tuple[str, int]]] = []

    def dismiss(self, broker: int) -> None:
        """Note the broker."""
        self.dismissed.append(broker)

    def prefer(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Note the partitions."""
        self.preferred.append(set(partitions))


class FakeClock:
    """A clock that stands still until a test moves it."""

    def __init__(self, now_ms: int) -> None:
        self.now_ms = now_ms

    def __call__(self) -> int:
        return self.now_ms


def own_themes() -> Themes:
    """Kview's own themes, without those of the user who runs the tests."""
    return load_themes(theme_folders()[:1])


@asynccontextmanager
async def dashboard(
    *views: View, size: tuple[int, int] = (120, 40), lab: FakeLab | None = None, **options: Any
) -> AsyncIterator[tuple[KviewApp, Pilot[int]]]:
    """The running app that has drawn `views`, with the clock SEEN_AFTER_MS after the last one. If that one is
    not live, the clock stands at its moment, and the wall clock is AGO_MS ahead."""
    feed = FakeFeed(*views)
    now_ms = 1_760_000_000_000
    settings: dict[str, Any] = {"no_color": False, "few_colors": False, "themes": own_themes()}
    settings |= {"zone": UTC, "log_file": LOG_FILE}
    if views and views[-1].moment.live:
        now_ms = views[-1].snapshot.observation.ended_ms + SEEN_AFTER_MS
    elif views:
        now_ms = views[-1].snapshot.observation.ended_ms
        settings["wall_ms"] = FakeClock(now_ms + AGO_MS)
    source = options.pop("source", SourceInfo("simulated"))
    settings |= {"feed": feed, "source": source, "clock_ms": FakeClock(now_ms), "lab": lab}
    app = KviewApp(Session(**settings | options))
    async with running_app(app, size) as pilot:
        yield app, pilot


@asynccontextmanager
async def running_app(app: App[int], size: tuple[int, int]) -> AsyncIterator[Pilot[int]]:
    """Run an app without a terminal until it has drawn what it has."""
    with nothing_composed():
        async with app.run_test(size=size):
            pilot = IdlePilot(app)
            await pilot.pause()
            yield pilot


def text(app: KviewApp) -> str:
    """The text on the screen, with its lines, without the spaces at their ends and the edges of panels."""
    return "\n".join(line.rstrip() for line in lines(app)) + "\n"


def lines(app: KviewApp) -> list[str]:
    """The screen's lines without the edges of panels."""
    return [without_edges(line) for line in drawn_lines(app)]


def drawn_text(app: KviewApp) -> str:
    """The text on the screen as it is drawn, without the spaces at the ends of lines."""
    return "\n".join(line.rstrip() for line in drawn_lines(app)) + "\n"


def drawn_lines(app: KviewApp) -> list[str]:
    """The screen's lines as they are drawn."""
    return ["".join(segment.text for segment in strip) for strip in drawn_strips(app.screen)]


async def until(pilot: Pilot[int], probe: Callable[[], Any], what: str) -> Any:
    """Let the app work until `probe` returns something true; returns that."""
    deadline_s = asyncio.get_running_loop().time() + PATIENCE_S
    while True:
        await pilot.pause()
        if found := probe():
            return found
        await asyncio.sleep(BETWEEN_PROBES_S)
        assert asyncio.get_running_loop().time() < deadline_s, f"never: {what}\n{text(pilot.app)}"  # type: ignore[arg-type]


async def press(pilot: Pilot[int], keys: Iterable[str]) -> None:
    """Press keys one after the other, and let the app draw after each."""
    await pilot.press(*keys)


def press_at_once(app: KviewApp, keys: Iterable[str]) -> None:
    """Post several keys at once, like a terminal that has read them together."""
    for key in keys:
        app.post_message(Key(key, {"slash": "/"}.get(key, key if len(key) == 1 else None)))


def running(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test that is a coroutine in its own event loop."""

    @wraps(test)
    def run_test(*arguments: Any, **named: Any) -> None:
        run(test(*arguments, **named))

    return run_test


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in an event loop of its own."""
    with asyncio.Runner(loop_factory=IdleLoop) as runner:
        return runner.run(coroutine)
