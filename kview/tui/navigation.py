"""The ways between screens: the number keys, what a row opens, help, and the palette."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from textual.app import App
from textual.screen import Screen

from kview.tui.actions import Keys
from kview.tui.colours import Colours
from kview.tui.command_list import commands
from kview.tui.keys import REPLAY_HELP
from kview.tui.places import Places
from kview.tui.profile_commands import ProfileCommands
from kview.tui.screens.commands import CommandScreen
from kview.tui.screens.group import GroupScreen
from kview.tui.screens.groups import GroupsScreen
from kview.tui.screens.help import HelpScreen
from kview.tui.screens.overview import OverviewScreen
from kview.tui.screens.placement import PlacementScreen
from kview.tui.screens.throughput import ThroughputScreen
from kview.tui.screens.topic import TopicScreen
from kview.tui.time_keys import TimeKeys

FIRST = "overview"
"""The screen that is shown first."""

SCREENS: dict[str, Callable[[], Screen[Any]]] = {
    FIRST: OverviewScreen,
    "placement": PlacementScreen,
    "groups": GroupsScreen,
    "throughput": ThroughputScreen,
}
"""The screens of the number keys."""

NAMES = {
    FIRST: "Overview",
    "placement": "Placement",
    "groups": "Groups",
    "throughput": "Throughput",
}


class Navigation:
    """Switches between the screens of an app."""

    def __init__(self, app: App[int]) -> None:
        self._app = app

    async def to(self, mode: str) -> None:
        """Go to the screen of a number key, without the screens above it."""
        await self._app.switch_mode(mode)
        while len(self._app.screen_stack) > 1:
            await self._app.pop_screen()

    def open_topic(self, topic: str, partition: int) -> None:
        """Go to a topic's partitions, with `partition` selected if it is not −1."""
        self._app.push_screen(TopicScreen(topic, partition))

    def open_group(self, group: str) -> None:
        """Go to a group."""
        self._app.push_screen(GroupScreen(group))

    def open_broker(self, broker: int) -> None:
        """Go to a broker in the placement table."""

        async def show() -> None:
            await self.to("placement")
            if isinstance(self._app.screen, PlacementScreen):
                self._app.screen.show_broker(broker)

        self._app.run_worker(show(), exclusive=True, group="go")

    def open_help(self, is_replay: bool, keys: Keys) -> None:
        """Show the keys of the screen shown."""
        shown = [entry.binding for entry in self._app.screen.active_bindings.values() if entry.enabled]
        others = REPLAY_HELP if is_replay else {}
        explained = [
            replace(b, tooltip=keys.said(others.get(b.action, b.tooltip))) for b in shown if not b.system
        ]
        self._app.push_screen(HelpScreen(explained, keys, NAMES.get(self._app.current_mode, "")))

    def open_palette(
        self, time: TimeKeys, profiles: ProfileCommands, colours: Colours, places: Places, keys: Keys
    ) -> None:
        """Offer to jump to anything by its name. If nothing is chosen, the colours are those from before."""
        before = colours.palette
        active = self._app.screen.active_bindings.values()
        offered = commands(active, self._app.run_action, time, profiles, colours, keys)
        self._app.push_screen(CommandScreen(offered, places.found, lambda: colours.back_to(before)))
