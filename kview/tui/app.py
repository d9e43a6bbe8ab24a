"""The app. It receives views from the feed's thread, shows them on its screens, and takes the keys."""

import os
import threading
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, ClassVar

import numpy as np
from msgspec.structs import replace
from textual.app import ScreenStackError, SystemCommand
from textual.await_complete import AwaitComplete
from textual.binding import BindingType
from textual.message import Message
from textual.screen import Screen
from textual.theme import Theme
from textual.timer import Timer

from kview.config.themes import load_themes, theme_folders
from kview.derive.headline import opened_with, with_unclean
from kview.derive.view import View
from kview.errors import KviewError
from kview.language.errors import message as message_of
from kview.language.errors import remedy
from kview.language.notices import text
from kview.model.events import Severity
from kview.model.notices import Notice
from kview.model.units import UNKNOWN
from kview.tui.attention import AttentionKeys
from kview.tui.choices import Choices
from kview.tui.colours import Colours
from kview.tui.fault_keys import FaultKeys
from kview.tui.keys import APP_BINDINGS, SCREEN_ACTIONS
from kview.tui.lab_keys import LabKeys
from kview.tui.list_keys import ListKeys, holding
from kview.tui.navigation import FIRST, FLEET, NAMES, SCREENS, Navigation, preload
from kview.tui.options import Options
from kview.tui.remembering import Remembering
from kview.tui.report_keys import ReportKeys
from kview.tui.save_keys import SaveKeys
from kview.tui.screens.base import KviewScreen
from kview.tui.screens.over import OverScreen
from kview.tui.session import Session
from kview.tui.teaching import Teaching
from kview.tui.text import Palette
from kview.tui.textual_internals import OwnApp, drawn_text
from kview.tui.time_keys import TimeKeys
from kview.tui.widgets.bottom import Status, StatusMessage, shown_key
from kview.tui.widgets.header import Member
from kview.tui.widgets.key_line import KeyLine
from kview.tui.widgets.prompt import Question
from kview.tui.widgets.table import Table

READING_AFTER_S = 0.08
"""After this time it is said that another moment is being read, so that the head does not flicker at every
step."""


PRELOAD_AFTER_S = 0.2
"""The time from the first view to the import of what is shown later. At once, it would slow down the drawing
of that view, and the end of kview if somebody ends it then."""

MOUNT_AFTER_S = 4.0
"""The time from the first view until the screen of another number key is mounted. The first lags are there by
then."""

MOUNT_EVERY_S = 1.0
"""The time from one of them to the next: a key waits for at most one."""

TICKS_A_SECOND = 5
"""How often ages and countdowns are redrawn: often enough that tenths of a second seem to run. This is cheap
because only two lines show tenths."""

BETWEEN = "between"
"""The mode without panels that is shown while the screens of a session are replaced."""

_NUMBERED = [action.name for action in SCREEN_ACTIONS]
"""The screens of the number keys, in order."""


class ViewArrived(Message):
    """A view of a session. The latest view replaces earlier ones."""

    def __init__(self, view: View, session: Session) -> None:
        super().__init__()
        self.view, self.session = view, session

    def can_replace(self, message: Message) -> bool:
        """Return whether `message` is a view, because a newer view replaces one that has not been drawn
        yet."""
        return isinstance(message, ViewArrived)


class NoticeArrived(Message):
    """A notice of a session about kview itself."""

    def __init__(self, notice: Notice, session: Session) -> None:
        super().__init__()
        self.notice, self.session = notice, session


class Arrivals:
    """Calls `show` with the latest views: at once, or, if a view says that another moment is being read, if
    that one does not follow within `wait_s`."""

    def __init__(
        self, show: Callable[[View], None], set_timer: Callable[[float, Callable[[], None]], Timer]
    ) -> None:
        self.wait_s = READING_AFTER_S
        self._show = show
        self._set_timer = set_timer
        self._waiting: View | None = None
        self._timer: Timer | None = None

    @property
    def waits(self) -> bool:
        """Whether the view that arrived last has not been shown yet."""
        return self._waiting is not None

    def take(self, view: View) -> None:
        """Show a view that has arrived, either now or after the wait."""
        if view.moment.reading_ms == UNKNOWN:
            self._done()
            self._show(view)
        else:
            self._waiting = view
            if self._timer is None:  # a key held down produces many views
                self._timer = self._set_timer(self.wait_s, self._late)

    def _late(self) -> None:
        view = self._waiting
        self._done()
        if view is not None:
            self._show(view)

    def stop(self) -> None:
        """Show nothing that waits."""
        self._done()

    def _done(self) -> None:
        self._waiting = None
        if self._timer is not None:
            self._timer.stop()
            self._timer = None


def _is_about_one(action: str, parameters: tuple[object, ...]) -> bool:
    """Return whether an action is about a single cluster."""
    return action == "go" or (action, *parameters) in (
        ("save", "export"),
        ("show", "groups"),
        ("show", "internal"),
        ("rows", "sort"),
        ("rows", "reverse"),
    )


def _first(session: Session) -> str:
    """Return the mode that a session begins with."""
    return FIRST if session.members is None else FLEET


class KviewApp(OwnApp, inherit_bindings=False):
    """The dashboard of a session, and of those that the user goes to.

    Each of its keys' actions is carried out by the part of it that the action is about.
    """

    ENABLE_COMMAND_PALETTE = False
    DEFAULT_MODE = FIRST
    MODES: ClassVar[dict[str, str | Callable[[], Screen[Any]]]] = {**SCREENS, BETWEEN: Screen}
    BINDINGS: ClassVar[list[BindingType]] = list(APP_BINDINGS)
    CSS = """
    Screen { background: $background; color: $foreground; layers: base; }
    #page, #body { height: 1fr; }
    #filter, #prompt, #small { display: none; }
    #small { height: 1fr; }
    Screen.-filtering #filter, Screen.-asking #prompt { display: block; }
    Screen.-filtering #status, Screen.-asking #status { display: none; }
    Screen.-filtering.-wrong #status, Screen.-asking.-refused #status { display: block; }
    Input { background: $background; color: $foreground; border: none; padding: 0 1; height: 1; }
    Input:focus { border: none; background-tint: transparent 0%; }
    """

    def __init__(self, session: Session) -> None:
        colourless = bool(os.environ.get("NO_COLOR")) if session.no_color is None else session.no_color
        super().__init__(colourless)
        self._ticks = 0
        self._is_changing = False
        self._theme = ""
        """The theme that the user has chosen for all sessions, '' for that of each."""
        self.set_keymap(session.keys.textual())
        self._take(session)

    def _take(self, session: Session) -> None:
        """Have the parts that a session needs."""
        self.session = session
        self.keys = session.keys
        self.source, self.timeline, self.inspector = session.source, session.timeline, session.inspector
        self.clock_ms, self.wall_ms = session.clock_ms, session.wall_ms or session.clock_ms
        self.ascii_only, self.log_file, self.zone = session.ascii_only, session.log_file, session.zone
        self.faults, self.lab = FaultKeys(self), LabKeys(self)
        self.teaching = Teaching() if session.teaching is None else session.teaching(self)
        self.attention, self.time, self.go = AttentionKeys(self), TimeKeys(self), Navigation(self)
        self._choices, self._lists, self._remembering = Choices(self), ListKeys(self), Remembering(self)
        self._saves, self._reports = SaveKeys(self), ReportKeys(self)
        self.arrivals = Arrivals(self._show, self.set_timer)
        themes = load_themes(theme_folders()) if session.themes is None else session.themes
        few = self.console.color_system == "standard" if session.few_colors is None else session.few_colors
        self.colours = Colours(
            themes,
            self._theme or session.theme,
            self.colourless,
            few,
            session.source.colour,
            self._set_theme,
            self.say,
        )
        self.started_ms = self.wall_ms()
        """When the dashboard started, epoch ms by the wall clock."""
        self.view: View | None = None
        """The view shown, None before the first view."""
        self.notice: Notice | None = None
        """The latest notice about kview itself."""
        self.options = Options(stale_ms=self.source.late_ms, keys=self.keys)
        self.status = Status()
        self._inert_on: Screen[Any] | None = None
        """The screen about which the status line says that a key does nothing there."""
        self.colours.begin()  # before the first frame, which would be made a second time otherwise

    @property
    def palette(self) -> Palette:
        """The styles of the theme in use."""
        return self.colours.palette

    @property
    def live(self) -> bool:
        """Whether the live moment is shown."""
        return self.view is None or self.view.moment.live

    @property
    def reads_records(self) -> bool:
        """Whether records may be read: a recording has none, and a user may switch it off."""
        return self.inspector is not None and self.inspector.reads_records

    def now_ms(self) -> int:
        """Return the time at the moment shown, epoch ms. Ages on the screen are counted up to this time."""
        if self.view is not None and self.arrivals.waits:  # the clock belongs to a view that is not shown yet
            return self.wall_ms() if self.live else self.view.snapshot.observation.ended_ms
        return self.clock_ms()

    # -- start and end

    def on_mount(self) -> None:
        """Start the timer and the feed."""
        self.set_interval(1 / TICKS_A_SECOND, self._tick)
        self.teaching.begin()
        self._begin()

    def on_unmount(self) -> None:
        """Stop the feed, and keep the user's choices."""
        self._leave()

    def _begin(self) -> None:
        session = self.session
        if session.opening is not None:
            self._arrived(NoticeArrived(session.opening, session))
        session.feed.start(
            lambda view: self._arrived(ViewArrived(view, session)),
            lambda notice: self._arrived(NoticeArrived(notice, session)),
        )

    def _leave(self) -> None:
        self._remembering.keep(self.options, self.current_mode)
        self.attention.report_none()
        self.session.feed.stop()

    def _ask_for(self, session: Callable[[], Session | None]) -> None:
        """Show another session soon, in place of this one. If another change comes first, this one is not
        wanted any more.

        The app's queue carries it out: no key, click or other change comes between its steps.
        """
        self.call_later(self._change, session, self.session)

    async def _change(self, wanted: Callable[[], Session | None], asked_in: Session) -> None:
        if self.session is not asked_in:
            return
        try:
            session = wanted()
        except KviewError as error:
            self.say(StatusMessage(message_of(error), remedy(error), Severity.RISK))
            return
        if session is not None:
            await self._change_to(session)

    async def _change_to(self, session: Session) -> None:
        self._is_changing = True
        with self.batch_update():
            self.arrivals.stop()
            self.cancel_work()
            self._leave()
            # Textual removes no mode that is shown.
            await self.switch_mode(BETWEEN)
            for mode in SCREENS:
                await self.remove_mode(mode)
                self.add_mode(mode, SCREENS[mode])
            self._theme = self.colours.chosen or self._theme
            self._take(session)
            await self.switch_mode(_first(session))
        self._is_changing = False
        self._begin()

    def _arrived(self, message: ViewArrived | NoticeArrived) -> None:
        self.post_message(message)

    def on_view_arrived(self, message: ViewArrived) -> None:
        """Take over a view from the feed."""
        if message.session is self.session:  # and not of a cluster that was shown before
            self.arrivals.take(message.view)

    def _show(self, view: View) -> None:
        """Show a view. This is the only place where the view shown changes."""
        if self.view is None:
            self.set_timer(PRELOAD_AFTER_S, threading.Thread(target=preload, daemon=True).start)
            self._mount_ahead(MOUNT_AFTER_S, _NUMBERED)
        self.view = view = self._without_opened(view)
        restored = self._remembering.restored(self.options, view.snapshot.observation.cluster_id)
        self.options = holding(restored, view)
        self.faults.follow(view)
        self.time.arrived(view)
        self.teaching.see()
        self.redraw()
        if screen := self.shown():
            self.attention.report_in_sight(screen.partitions_in_sight())

    def _mount_ahead(self, after_s: float, modes: Sequence[str]) -> None:
        """Mount the screens of the number keys, one after another."""
        session = self.session

        async def mount() -> None:
            if self.session is session:
                if self.check_action("go", (modes[0],)):
                    await self.mount_ahead(modes[0])
                self._mount_ahead(MOUNT_EVERY_S, modes[1:])

        if modes:
            self.set_timer(after_s, lambda: self.call_later(mount))

    def _without_opened(self, view: View) -> View:
        """Return a view whose headline tells the unclean elections until somebody has opened them."""
        if not len(view.unclean):
            return view
        which = ~np.isin(view.unclean.at_ms, list(self.session.opened.unclean_ms))
        return replace(view, headline=with_unclean(view.headline, view.unclean, which))

    def opened(self, key: Hashable) -> None:
        """Take note that an incident was opened: its unclean elections leave the headline, and so does its
        stopwatch once it is over.

        `key` is the incident's. Unclean elections that belong to no incident are opened with the list of all
        (None).
        """
        over = (
            {incident.key for incident in self.view.incidents if not incident.is_open} if self.view else set()
        )
        opened = self.session.opened
        opened.incidents |= over & {key}
        if self.view is not None and len(self.view.unclean):
            opened.unclean_ms |= opened_with(self.view.unclean, self.view.incidents, key)
            self.view = self._without_opened(self.view)
        self.redraw()

    @property
    def opened_incidents(self) -> frozenset[Hashable]:
        """The keys of the incidents that somebody has opened."""
        return self.session.opened.incidents

    def on_notice_arrived(self, message: NoticeArrived) -> None:
        """Show a notice in the status line, or in the headline before the first view."""
        if message.session is not self.session:
            return
        self.notice = message.notice
        self.say(
            StatusMessage(text(message.notice, self.zone), severity=message.notice.severity),
            keep=message.notice.sticky,
        )
        self.redraw()

    def _tick(self) -> None:
        if self._is_changing:
            return
        if self.session.clusters is not None:
            self._ask_for(self.session.clusters.instead)
        screen = self.drawn_screen()
        self.teaching.tick()
        self._ticks += 1
        is_counting = self._reports.is_busy and self._ticks % TICKS_A_SECOND == 0
        if (self.status.expire(self.wall_ms()) or is_counting) and screen is not None:
            screen.say()
        if self._ticks % TICKS_A_SECOND == 0:
            self._remembering.keep(self.options, self.current_mode)
        if screen is not None:
            screen.tick(self._ticks % TICKS_A_SECOND == 0)

    # -- the clusters

    def members(self) -> Sequence[Member]:
        """Return the clusters of the fleet as they are now, none if a single cluster is shown."""
        return () if self.session.members is None else self.session.members()

    def open_cluster(self, name: str) -> None:
        """Show a cluster, or say why it cannot be shown."""
        clusters = self.session.clusters
        assert clusters is not None
        self._ask_for(lambda: clusters.open(name))

    def leave_cluster(self) -> None:
        """Go to the screen with all clusters, if there is one and another is shown."""
        clusters = self.session.clusters
        if clusters is not None and self.session.members is None:
            self._ask_for(clusters.fleet)

    # -- the status line

    def say(self, message: StatusMessage, keep: bool = False) -> None:
        """Show a message in the status line. With `keep`, the message stays until the next one."""
        self._inert_on = None
        self.status.say(message, self.wall_ms(), keep)
        self.redraw_status()

    def forget_inert(self) -> None:
        """Remove the message that a key does nothing, because it is about another screen."""
        if self._inert_on not in (None, self.screen):
            self._inert_on = None
            self.clear_message()

    def clear_message(self, kept: bool = True) -> None:
        """Remove the message from the status line, because it is about another moment. Without `kept`, one
        that stays until the next message stays."""
        if not kept and self.status.is_kept:
            return
        self.status.say(StatusMessage(), self.wall_ms(), keep=False)
        self.redraw_status()

    def say_inert(self, key: str, character: str | None) -> None:
        """Say in the status line that a key does nothing here."""
        if self.shown() is None or self.unseen:
            return
        fault = self.faults.inert(key) or self.lab.inert(key)
        self.say(
            StatusMessage(
                fault or f"{shown_key(key, character)} does nothing here",
                f"{self.keys.name('help')} lists the keys",
            )
        )
        self._inert_on = self.screen

    def redraw_status(self) -> None:
        """Redraw the status line and the key line."""
        if screen := self.shown():
            screen.say()

    def save_lines(self, name: str, lines: Iterable[str]) -> None:
        """Save lines of JSON in a file of the folder for what is saved."""
        self._saves.save_lines(name, lines)

    def ask(self, question: Question) -> None:
        """Ask for a line of text."""
        if screen := self.shown():
            screen.ask(question)

    @property
    def status_message(self) -> StatusMessage:
        """The message in the status line."""
        # A screen that was opened from the lab has none of its keys.
        in_lab = self.current_mode == "lab" and len(self.screen_stack) == 1
        message = self.lab.with_undo(self.faults.with_undo(self.status.message), in_lab)
        return self._reports.told_with(message)

    def redraw_caption(self) -> None:
        """Draw the caption strip again, because its clock has moved."""
        if screen := self.drawn_screen():
            screen.redraw_caption()

    # -- colours

    def _set_theme(self, theme: Theme) -> None:
        self.register_theme(theme)
        self.theme = theme.name

    # -- screens

    def shown(self) -> KviewScreen | None:
        """Return the screen that draws views.

        None while help or the palette covers the screen, and before the screen exists.
        """
        try:
            screen = self.screen
        except ScreenStackError:
            return None
        return screen if isinstance(screen, KviewScreen) and screen.is_mounted else None

    @property
    def unseen(self) -> bool:
        """Whether only the sentence is drawn that the terminal is too small."""
        screen = self.shown()
        return screen is not None and screen.is_small

    def drawn_screen(self) -> KviewScreen | None:
        """Return the screen that draws views, also if the list of `:` or of themes lies over it."""
        below = self.screen_stack[-2:-1]
        if below and isinstance(self.screen, OverScreen) and isinstance(below[0], KviewScreen):
            return below[0]
        return self.shown()

    def pop_screen(self) -> AwaitComplete:
        """Leave a screen. The one below is drawn at once."""
        popped = super().pop_screen()
        if screen := self.drawn_screen():
            screen.take_up()
        return popped

    def redraw(self) -> None:
        """Draw the screen again, because the view or something that is not in it has changed."""
        if screen := self.drawn_screen():
            screen.update()
            return
        for over in self.screen_stack[1:]:  # Help shows which keys work.
            for keys in over.query(KeyLine):
                keys.redraw()

    def go_soon(self, mode: str) -> None:
        """Go to the screen of a number key, if there is one of that name here."""
        if mode in NAMES and mode not in (FLEET, self.current_mode) and self.check_action("go", (mode,)):
            self.call_later(self._go_in, self.session, mode)

    async def _go_in(self, session: Session, mode: str) -> None:
        if self.session is session:
            await self.go.to(mode)

    def show_moment(self, at_ms: int, why: str = "") -> None:
        """Show the cluster at a moment (epoch ms), if it was recorded. `why` says what is to be seen."""
        self.time.show(at_ms, why)

    def where(self) -> tuple[str, int]:
        """Return the mode shown, and how many screens lie on each other."""
        return self.current_mode, len(self.screen_stack)

    # -- what is shown

    def set_options(self, options: Options) -> None:
        """Redraw everything with other options."""
        self.options = options
        self.redraw()

    def sort_by(self, table: Table, column: str) -> None:
        """Sort a table by a column, or reverse its order if it is sorted by that column."""
        self._lists.sort_by(table, column)

    def return_to_live(self) -> None:
        """Return to the live moment, if there is one and another one is shown."""
        if self.time.allows("live"):
            self.time.do("live")

    # -- what is saved

    def picture(self) -> tuple[str, str]:
        """Return the screen as SVG and as text."""
        return self.export_screenshot(title="kview"), drawn_text(self.screen)

    def cancel_work(self) -> bool:
        """Cancel the export of a table, or the report that is being made. Returns False if there is none."""
        return self._saves.cancel() or self._reports.cancel()

    # -- actions, which Textual finds by their names

    def action_themes(self) -> None:
        """Let the user choose a theme."""
        self.go.themes()

    async def action_go(self, mode: str) -> None:
        """Go to another screen and start at its top, so that a number key always shows the same thing."""
        await self.go.to(mode)

    def action_help(self) -> None:
        """Show the keys of this screen."""
        self.go.help()

    def action_wrong(self) -> None:
        """Say what is wrong in whole sentences."""
        self.go.wrong()

    def action_preferences(self) -> None:
        """Show what is kept for the next time."""
        self.go.preferences()

    def action_fleet(self) -> None:
        """Go to the screen with all clusters."""
        self.leave_cluster()

    def action_find(self) -> None:
        """Offer to jump to anything by its name, and every command."""
        self.go.palette()

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """Omit Textual's own commands, because the palette is made from the key bindings."""
        return ()

    def action_show(self, what: str) -> None:
        """Carry out a display key: filter, internal topics or ignored groups."""
        self._choices.do(what)

    def action_rows(self, what: str) -> None:
        """Carry out a key of the focused list."""
        self._lists.do(what)

    def action_spark(self) -> None:
        """Start the Spark job, or restart it."""
        if self.session.spark is not None:
            self.session.spark.restart()
            self.say(StatusMessage("starting Spark", f"{self.keys.name('throughput')} shows its progress"))

    def watch_figures(self, are_shown: bool) -> None:
        """Say whether the screen shows what Spark calculates."""
        if self.session.spark is not None:
            self.session.spark.watch(are_shown)

    def action_time(self, what: str) -> None:
        """Carry out an action of the time keys."""
        self.time.do(what)

    def action_dismiss_broker(self) -> None:
        """Forget the selected broker, which the cluster no longer lists."""
        self.attention.delete()

    def action_save(self, what: str) -> None:
        """Carry out a key that saves what is on the screen."""
        self._saves.do(what)

    def action_report(self) -> None:
        """Make a report of what is shown, or cancel the one that is being made."""
        self._reports.do()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether an action works now.

        The keys for faults, time and Spark exist only while they can do something.
        """
        teaching = self.teaching
        if self._is_changing and action != "quit":
            return False
        if self.session.members is not None and _is_about_one(action, parameters):
            return False
        if action == "lesson":
            return teaching.allows(str(parameters[0]))
        if action == "wrong":
            hides = teaching.caption is not None and bool(teaching.caption.headline)
            screen = self.shown()
            return (
                self.view is not None and screen is not None and not screen.says_what_is_wrong and not hides
            )
        if action == "go" and parameters[0] == "lab" and not self.lab.possible:
            return False
        if action == "go" and parameters[0] in _NUMBERED:
            return not teaching.takes_screen(_NUMBERED.index(str(parameters[0])) + 1)
        if action == "show" and parameters[0] == "groups":
            return not teaching.is_demo
        if action == "time" and parameters[0] in ("pause", "play", "live") and teaching.is_on:
            return False
        if action == "fleet":
            return self.session.has_fleet and self.session.members is None
        if action == "spark":
            return self.session.spark is not None and not teaching.is_demo
        if action == "save":
            return self._saves.possible
        if action == "report":
            return self._reports.possible
        if action == "time":
            return self.time.allows(str(parameters[0]))
        if action == "dismiss_broker":
            return self.attention.allows_delete
        if action == "fault":
            return self.faults.allows(str(parameters[0]))
        return True

    def action_lesson(self, what: str) -> None:
        """Carry out a key of demos."""
        self.teaching.do(what)

    def action_fault(self, key: str) -> None:
        """Carry out a fault key: apply a fault, or end one."""
        self.faults.do(key)


class FleetApp(KviewApp):
    """The dashboard that begins with the fleet."""

    DEFAULT_MODE = FLEET
