"""The app. It receives views from the feed's thread, remembers the user's choices, and manages the
screens."""

import os
import threading
from collections.abc import Callable, Hashable, Iterable, Sequence
from datetime import tzinfo
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from msgspec.structs import replace
from textual.binding import BindingType
from textual.screen import Screen
from textual.theme import Theme

from kview.config.themes import Themes, load_themes, theme_folders
from kview.derive.headline import opened_with, with_unclean
from kview.derive.view import View
from kview.language.notices import text
from kview.model.choices import Memory
from kview.model.lab import Lab
from kview.model.notices import Notice
from kview.model.ports import Attention, Feed, Inspector, Profiles, Saves, SparkJob, Timeline
from kview.model.reporting import Reports
from kview.model.tour import Tour
from kview.tui.acting_app import ActingApp
from kview.tui.actions import Action, Keys
from kview.tui.arrivals import Arrivals, NoticeArrived, ViewArrived
from kview.tui.attention import AttentionKeys
from kview.tui.choices import Choices
from kview.tui.colours import Colours
from kview.tui.fault_keys import FaultKeys
from kview.tui.keys import APP_BINDINGS, DEFAULT_KEYS
from kview.tui.lab_keys import LabKeys
from kview.tui.lesson_keys import LessonKeys
from kview.tui.list_keys import ListKeys, holding
from kview.tui.looks import Look
from kview.tui.navigation import FIRST, SCREENS, Navigation, preload
from kview.tui.options import Options
from kview.tui.paint import Palette
from kview.tui.profile_commands import ProfileCommands
from kview.tui.remembering import Remembering
from kview.tui.report_keys import ReportKeys
from kview.tui.save_keys import SaveKeys
from kview.tui.status import Status
from kview.tui.textual_internals import drawn_text
from kview.tui.time_keys import TimeKeys
from kview.tui.widgets.bottom import StatusMessage
from kview.tui.widgets.caption import Caption
from kview.tui.widgets.header import SourceInfo
from kview.tui.widgets.table import Table

if TYPE_CHECKING:
    from kview.school.demos import Demos, Opening

TICKS_A_SECOND = 5
"""How often ages and countdowns are redrawn: often enough that tenths of a second seem to run. This is cheap
because only two lines show tenths."""


class KviewApp(ActingApp, inherit_bindings=False):
    """The dashboard.

    `lab` is None on a cluster that we did not start, `attention` is None in a replay,
    `inspector` is None if there is no cluster to ask, `profiles` is None if kview cannot switch to another
    cluster, `saves` is None if nothing can be saved, and `reports` is None if no reports can be made. `demos`
    and `tour` are None without a simulated cluster, and `demo` is the one to begin with. A `theme` of '' or
    None selects the default theme. `log_file` is where tracebacks are logged, or '' if they are not logged.

    `clock_ms` returns the time at the moment shown, by the snapshots' clock, which stands still while time is
    paused and runs as fast as a recording is played. `wall_ms` returns what that clock shows live (None: the
    same as `clock_ms`). `zone` is the time zone of the times of day shown (None: the machine's own).
    """

    ENABLE_COMMAND_PALETTE = False
    DEFAULT_MODE = FIRST
    MODES: ClassVar[dict[str, str | Callable[[], Screen[Any]]]] = {**SCREENS}
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

    def __init__(
        self,
        feed: Feed[View],
        source: SourceInfo,
        clock_ms: Callable[[], int],
        theme: str | None = None,
        ascii_only: bool = False,
        no_color: bool | None = None,
        zone: tzinfo | None = None,
        themes: Themes | None = None,
        timeline: Timeline | None = None,
        spark: SparkJob | None = None,
        wall_ms: Callable[[], int] | None = None,
        attention: Attention | None = None,
        log_file: str = "",
        profiles: Profiles | None = None,
        inspector: Inspector | None = None,
        saves: Saves | None = None,
        reports: Reports | None = None,
        keys: Keys = DEFAULT_KEYS,
        memory: Memory | None = None,
        lab: Lab | None = None,
        demos: "Demos | None" = None,
        demo: "Opening | None" = None,
        tour: Tour | None = None,
    ) -> None:
        colourless = bool(os.environ.get("NO_COLOR")) if no_color is None else no_color
        super().__init__(colourless)
        self.keys = keys
        self.set_keymap(keys.textual())
        self.feed = feed
        self.faults = FaultKeys(self, lab)
        self.lab = LabKeys(self, lab)
        self.attention = AttentionKeys(self, attention)
        self.timeline = timeline
        self.spark = spark
        self.inspector = inspector
        self.source = source
        self.clock_ms = clock_ms
        self.wall_ms = wall_ms or clock_ms
        self.time = TimeKeys(self)
        self._choices = Choices(self)
        self._lists = ListKeys(self)
        self._remembering = Remembering(self, memory, self._go_soon)
        self.go = Navigation(self)
        self._profiles = ProfileCommands(profiles, self.say, self.exit)
        self._saves = SaveKeys(self, saves, self._picture, self.wall_ms)
        self._reports = ReportKeys(self, reports, log_file)
        self.lessons = LessonKeys(
            self, self.faults, demos, demo, self.go.to, self.push_screen, self._where, self._update, tour
        )
        self.arrivals = Arrivals(self._show, self.set_timer)
        self.ascii_only = ascii_only
        self.log_file = log_file
        self.zone = zone
        loaded = load_themes(theme_folders()) if themes is None else themes
        self.colours = Colours(loaded, theme, colourless, self._set_theme, self.say)
        self.started_ms = self.wall_ms()
        self.view: View | None = None
        self.notice: Notice | None = None
        self.options = Options(stale_ms=source.late_ms, keys=keys)
        self.status = Status()
        self.hidden_incidents: frozenset[Hashable] = frozenset()
        self._opened_ms: set[int] = set()
        """When the unclean elections were whose incidents have been opened."""
        self._ticks = 0
        self.colours.begin()  # before the first frame, which would be made a second time otherwise

    @property
    def palette(self) -> Palette:
        """The styles of the theme in use."""
        return self.colours.palette

    @property
    def live(self) -> bool:
        """Whether the live moment is shown."""
        return self.view is None or self.view.moment.live

    def now_ms(self) -> int:
        """Return the time at the moment shown, epoch ms. Ages on the screen are counted up to this time."""
        if self.view is not None and self.arrivals.waits:  # the clock belongs to a view that is not shown yet
            return self.wall_ms() if self.live else self.view.snapshot.observation.ended_ms
        return self.clock_ms()

    # -- start and end

    def on_mount(self) -> None:
        """Start the timer and the feed."""
        self.set_interval(1 / TICKS_A_SECOND, self._tick)
        self.lessons.begin()
        self.feed.start(self._on_view, self._on_notice)

    def on_unmount(self) -> None:
        """Stop the feed, and keep the user's choices."""
        self._remembering.keep(self.options, self.current_mode)
        self.feed.stop()

    def _on_view(self, view: View) -> None:
        self.post_message(ViewArrived(view))

    def _on_notice(self, notice: Notice) -> None:
        self.post_message(NoticeArrived(notice))

    def on_view_arrived(self, message: ViewArrived) -> None:
        """Take over a view from the feed."""
        self.arrivals.take(message.view)

    def _show(self, view: View) -> None:
        """Show a view. This is the only place where the view shown changes."""
        if self.view is None:
            self.call_after_refresh(threading.Thread(target=preload, daemon=True).start)
        self.view = view = self._without_opened(view)
        restored = self._remembering.restored(self.options, view.snapshot.observation.cluster_id)
        self.options = holding(restored, view)
        self.faults.follow(view)
        self.time.arrived(view)
        self.lessons.see()
        self._update()
        if screen := self.shown():
            self.attention.report_in_sight(screen.partitions_in_sight())

    def _without_opened(self, view: View) -> View:
        """Return a view whose headline tells the unclean elections until somebody has opened them."""
        if not len(view.unclean):
            return view
        which = ~np.isin(view.unclean.at_ms, list(self._opened_ms))
        return replace(view, headline=with_unclean(view.headline, view.unclean, which))

    def opened(self, key: Hashable) -> None:
        """Take the unclean elections of an incident out of the headline, because it was opened.

        `key` is the incident's. Those that belong to no incident are opened with the list of all (None).
        """
        if self.view is None or not len(self.view.unclean):
            return
        self._opened_ms |= opened_with(self.view.unclean, self.view.incidents, key)
        self.view = self._without_opened(self.view)
        self._update()

    def on_notice_arrived(self, message: NoticeArrived) -> None:
        """Show a notice in the status line, or in the headline before the first view."""
        self.notice = message.notice
        self.say(
            StatusMessage(text(message.notice, self.zone), severity=message.notice.severity),
            keep=message.notice.sticky,
        )
        self._update()

    def _tick(self) -> None:
        screen = self._visible()
        self.lessons.tick()
        self._ticks += 1
        is_counting = self._reports.is_busy and self._ticks % TICKS_A_SECOND == 0
        if (self.status.expire(self.wall_ms()) or is_counting) and screen is not None:
            screen.say()
        if self._ticks % TICKS_A_SECOND == 0:
            self._remembering.keep(self.options, self.current_mode)
        if screen is not None:
            screen.tick(self._ticks % TICKS_A_SECOND == 0)

    # -- the status line

    @property
    def status_message(self) -> StatusMessage:
        """The message in the status line."""
        # A screen that was opened from the lab has none of its keys.
        in_lab = self.current_mode == "lab" and len(self.screen_stack) == 1
        message = self.lab.with_undo(self.faults.with_undo(self.status.message), in_lab)
        return self._reports.told_with(message)

    @property
    def caption(self) -> Caption | None:
        """What the caption strip shows, None if nothing."""
        return self.lessons.caption

    @property
    def looks(self) -> Sequence[Look]:
        """Where a demo says to look on the screen shown."""
        return self.lessons.looks

    def redraw_caption(self) -> None:
        """Draw the caption strip again, because its clock has moved."""
        if screen := self._visible():
            screen.redraw_caption()

    def leave_lesson(self, depth: int) -> bool:
        """Leave the demo that is shown.

        Returns False if there is none, or if the user has opened one of the `depth` screens.
        """
        return self.lessons.leave(depth)

    @property
    def active_faults(self) -> tuple[str, ...]:
        """The faults in force."""
        return self.faults.active

    @property
    def back_name(self) -> str:
        """What the key that ends a fault does now, '' if no node has a fault."""
        return self.faults.back_name

    def key_label(self, action: Action) -> str | None:
        """Return what a demo says that a key does now, '' if the key line leaves it out, None if nothing."""
        return self.lessons.label(action)

    # -- colours

    def _set_theme(self, theme: Theme) -> None:
        self.register_theme(theme)
        self.theme = theme.name

    # -- screens

    def _go_soon(self, mode: str) -> None:
        if mode in SCREENS and mode != self.current_mode and self.check_action("go", (mode,)):
            self.run_worker(self.go.to(mode), exclusive=True, group="go")

    def show_moment(self, at_ms: int, why: str = "") -> None:
        """Show the cluster at a moment (epoch ms), if it was recorded. `why` says what is to be seen."""
        self.time.show(at_ms, why)

    def hide_incidents(self, keys: Iterable[Hashable]) -> None:
        """Show these incidents in the strip no longer."""
        self.hidden_incidents |= frozenset(keys)
        self._update()

    def _where(self) -> tuple[str, int]:
        """Return the mode shown, and how many screens lie on each other."""
        return self.current_mode, len(self.screen_stack)

    # -- what is shown

    def set_options(self, options: Options) -> None:
        """Redraw everything with other options."""
        self.options = options
        self._update()

    def sort_by(self, table: Table, column: str) -> None:
        """Sort a table by a column, or reverse its order if it is sorted by that column."""
        self._lists.sort_by(table, column)

    def return_to_live(self) -> None:
        """Return to the live moment, if there is one and another one is shown."""
        if self.time.allows("live"):
            self.time.do("live")

    # -- what is saved

    def _picture(self) -> tuple[str, str]:
        """Return the screen as SVG and as text."""
        return self.export_screenshot(title="kview"), drawn_text(self.screen)

    def cancel_work(self) -> bool:
        """Cancel the export of a table, or the report that is being made. Returns False if there is none."""
        return self._saves.cancel() or self._reports.cancel()
