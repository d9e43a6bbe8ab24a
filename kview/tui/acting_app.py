"""What the keys of every screen do. Each action is carried out by the part of the app that it is about."""

from collections.abc import Iterable
from typing import Any, cast

from textual.app import SystemCommand
from textual.screen import Screen

from kview.model.ports import SparkJob, Timeline
from kview.tui.attention import AttentionKeys
from kview.tui.choices import Choices
from kview.tui.colours import Colours
from kview.tui.dashboard import Dashboard
from kview.tui.keys import SCREEN_ACTIONS
from kview.tui.lesson_keys import LessonKeys
from kview.tui.list_keys import ListKeys
from kview.tui.navigation import Navigation
from kview.tui.places import Places
from kview.tui.profile_commands import ProfileCommands
from kview.tui.report_keys import ReportKeys
from kview.tui.save_keys import SaveKeys
from kview.tui.showing_app import ShowingApp
from kview.tui.time_keys import TimeKeys
from kview.tui.widgets.bottom import StatusMessage

_NUMBERED = [action.name for action in SCREEN_ACTIONS]
"""The screens of the number keys, in order."""


class ActingApp(ShowingApp, inherit_bindings=False):
    """An app with the actions that `kview.tui.keys` binds everywhere. Textual finds them by their names."""

    attention: AttentionKeys
    timeline: Timeline | None
    spark: SparkJob | None
    time: TimeKeys
    go: Navigation
    lessons: LessonKeys
    colours: Colours
    _choices: Choices
    _lists: ListKeys
    _profiles: ProfileCommands
    _reports: ReportKeys
    _saves: SaveKeys

    def action_themes(self) -> None:
        """Let the user choose a theme."""
        self.go.themes(self.colours)

    async def action_go(self, mode: str) -> None:
        """Go to another screen and start at its top, so that a number key always shows the same thing."""
        await self.go.to(mode)

    def action_help(self) -> None:
        """Show the keys of this screen."""
        self.go.help(self.timeline is not None and self.timeline.replay, self.keys)

    def action_find(self) -> None:
        """Offer to jump to anything by its name, and every command."""
        places = Places(cast(Dashboard, self), self.faults, self.view)
        self.go.palette(self.time, self._profiles, self.colours, places, self.keys, self.lessons.commands())

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
        if self.spark is not None:
            self.spark.restart()
            self.say(StatusMessage("starting Spark", f"{self.keys.name('throughput')} shows its progress"))

    def watch_figures(self, are_shown: bool) -> None:
        """Say whether the screen shows what Spark calculates."""
        if self.spark is not None:
            self.spark.watch(are_shown)

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
        lessons = self.lessons
        if action == "lesson":
            return lessons.allows(str(parameters[0]))
        if action == "go" and parameters[0] == "lab" and not self.lab.possible:
            return False
        if action == "go" and parameters[0] in _NUMBERED:
            return not lessons.takes_screen(_NUMBERED.index(str(parameters[0])) + 1)
        if action == "show" and parameters[0] == "groups":
            return not lessons.is_demo
        if action == "time" and parameters[0] in ("pause", "play", "live") and lessons.is_on:
            return False
        if action == "spark":
            return self.spark is not None and not lessons.is_demo
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
        self.lessons.do(what)

    def action_fault(self, key: str) -> None:
        """Carry out a fault key: apply a fault, or end one."""
        self.faults.do(key)
