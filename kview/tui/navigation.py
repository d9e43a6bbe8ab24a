"""The ways between screens: the number keys, what a row opens, help, and the palette."""

from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any

from textual.app import App
from textual.screen import Screen

from kview.language import glossary
from kview.language.payloads import Form
from kview.model.units import NO_BROKER
from kview.tui.actions import Keys
from kview.tui.colours import Colours
from kview.tui.command_list import commands
from kview.tui.keys import REPLAY_HELP
from kview.tui.places import Places
from kview.tui.profile_commands import ProfileCommands
from kview.tui.screens.base import KviewScreen
from kview.tui.screens.broker import BrokerScreen
from kview.tui.screens.commands import CommandScreen
from kview.tui.screens.detail import DetailScreen
from kview.tui.screens.events import EventsScreen
from kview.tui.screens.group import GroupScreen
from kview.tui.screens.groups import GroupsScreen
from kview.tui.screens.help import HelpScreen
from kview.tui.screens.incident import IncidentScreen
from kview.tui.screens.inspect import RecordsScreen, SettingsScreen
from kview.tui.screens.overview import OverviewScreen
from kview.tui.screens.partition import PartitionScreen
from kview.tui.screens.partitions import PartitionsScreen
from kview.tui.screens.placement import PlacementScreen
from kview.tui.screens.themes import ThemeScreen
from kview.tui.screens.throughput import ThroughputScreen
from kview.tui.screens.topic import TopicScreen
from kview.tui.screens.topics import TopicsScreen
from kview.tui.time_keys import TimeKeys
from kview.tui.widgets.inspecting import Detail

FIRST = "overview"
"""The screen that is shown first."""

SCREENS: dict[str, Callable[[], Screen[Any]]] = {
    FIRST: OverviewScreen,
    "placement": PlacementScreen,
    "topics": TopicsScreen,
    "partitions": PartitionsScreen,
    "groups": GroupsScreen,
    "throughput": ThroughputScreen,
    "events": EventsScreen,
}
"""The screens of the number keys."""

NAMES = {
    FIRST: "Overview",
    "placement": "Placement",
    "topics": "Topics",
    "partitions": "Partitions",
    "groups": "Groups",
    "throughput": "Throughput",
    "events": "Events",
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

    def topic(self, topic: str, partition: int = -1) -> None:
        """Go to a topic's partitions, with `partition` selected if it is not −1."""
        self._app.push_screen(TopicScreen(topic, partition))

    def group(self, group: str) -> None:
        """Go to a group."""
        self._app.push_screen(GroupScreen(group))

    def partition(self, topic: str, partition: int) -> None:
        """Go to a partition's log."""
        self._app.push_screen(PartitionScreen(topic, partition))

    def incident(self, key: Hashable) -> None:
        """Go to the incident with that key."""
        self._app.push_screen(IncidentScreen(key))

    def records(self, topic: str, partition: int) -> None:
        """Go to the records of a partition."""
        self._app.push_screen(RecordsScreen(topic, partition))

    def settings(self, topic: str = "", broker: int = NO_BROKER) -> None:
        """Go to the settings of a topic, or of a broker if `topic` is ''."""
        self._app.push_screen(SettingsScreen(topic, broker))

    def detail(self, detail: Detail, form: Form) -> None:
        """Show a record or a setting in full."""
        self._app.push_screen(DetailScreen(detail, form))

    def broker(self, broker: int) -> None:
        """Go to a broker."""
        self._app.push_screen(BrokerScreen(broker))

    def help(self, is_replay: bool, keys: Keys) -> None:
        """Show the keys of the screen shown."""
        shown = [entry.binding for entry in self._app.screen.active_bindings.values() if entry.enabled]
        others = REPLAY_HELP if is_replay else {}
        explained = [
            replace(b, tooltip=keys.said(others.get(b.action, b.tooltip))) for b in shown if not b.system
        ]
        screen = self._app.screen
        meanings = glossary.figures(screen.figures()) if isinstance(screen, KviewScreen) else []
        self._app.push_screen(HelpScreen(explained, keys, NAMES.get(self._app.current_mode, ""), meanings))

    def themes(self, colours: Colours) -> None:
        """Show the themes. The selected one is in use while the list is open."""
        if colours.can_choose():
            self._app.push_screen(ThemeScreen(colours.names, colours.palette.name, colours.use))

    def palette(
        self, time: TimeKeys, profiles: ProfileCommands, colours: Colours, places: Places, keys: Keys
    ) -> None:
        """Offer to jump to anything by its name. If nothing is chosen, the colours are those from before."""
        before = colours.palette
        active = self._app.screen.active_bindings.values()
        offered = commands(active, self._app.run_action, time, profiles, colours, keys)
        self._app.push_screen(CommandScreen(offered, places.found, lambda: colours.back_to(before)))
