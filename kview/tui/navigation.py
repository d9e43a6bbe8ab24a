"""The ways between screens: the number keys, what a row opens, help, and the palette."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any

from textual.app import App
from textual.screen import Screen

from kview.language import glossary
from kview.language.payloads import Form
from kview.model.reporting import MadeReport
from kview.model.units import NO_BROKER
from kview.tui.actions import Keys
from kview.tui.colours import Colours
from kview.tui.command_list import commands
from kview.tui.keys import REPLAY_HELP
from kview.tui.places import Places
from kview.tui.profile_commands import ProfileCommands
from kview.tui.screens.base import KviewScreen
from kview.tui.screens.commands import Command, CommandScreen
from kview.tui.screens.overview import OverviewScreen
from kview.tui.screens.themes import ThemeScreen
from kview.tui.time_keys import TimeKeys
from kview.tui.widgets.inspecting import Detail

FIRST = "overview"
"""The screen that is shown first."""

LATER = {
    "PlacementScreen": "placement",
    "TopicsScreen": "topics",
    "PartitionsScreen": "partitions",
    "GroupsScreen": "groups",
    "ThroughputScreen": "throughput",
    "EventsScreen": "events",
    "TopicScreen": "topic",
    "GroupScreen": "group",
    "PartitionScreen": "partition",
    "BrokerScreen": "broker",
    "IncidentScreen": "incident",
    "RecordsScreen": "inspect",
    "SettingsScreen": "inspect",
    "QuotasScreen": "inspect",
    "DetailScreen": "detail",
    "ReportScreen": "report",
    "LabScreen": "lab",
    "HelpScreen": "help",
}
"""The screens that are imported when they are first shown, or by `preload`, and their modules: to import them
takes 50 ms, for which the first frame does not wait."""


def made(screen: str, *given: Any) -> Screen[Any]:
    """Return a new screen of a class in LATER."""
    kind: Callable[..., Screen[Any]] = getattr(import_module(f"kview.tui.screens.{LATER[screen]}"), screen)
    return kind(*given)


def preload() -> None:
    """Import the screens that are shown later, and what draws the second view's curve."""
    for module in dict.fromkeys(LATER.values()):
        import_module(f"kview.tui.screens.{module}")
    import_module("plotext")


SCREENS: dict[str, Callable[[], Screen[Any]]] = {
    FIRST: OverviewScreen,
    "placement": partial(made, "PlacementScreen"),
    "topics": partial(made, "TopicsScreen"),
    "partitions": partial(made, "PartitionsScreen"),
    "groups": partial(made, "GroupsScreen"),
    "throughput": partial(made, "ThroughputScreen"),
    "events": partial(made, "EventsScreen"),
    "lab": partial(made, "LabScreen"),
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
    "lab": "Lab",
}


QUOTAS_HELP = "client quotas: what users, client ids and IP addresses may use at most"


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
        self._app.push_screen(made("TopicScreen", topic, partition))

    def group(self, group: str) -> None:
        """Go to a group."""
        self._app.push_screen(made("GroupScreen", group))

    def partition(self, topic: str, partition: int) -> None:
        """Go to a partition's log."""
        self._app.push_screen(made("PartitionScreen", topic, partition))

    def incident(self, key: Hashable) -> None:
        """Go to the incident with that key."""
        self._app.push_screen(made("IncidentScreen", key))

    def records(self, topic: str, partition: int) -> None:
        """Go to the records of a partition."""
        self._app.push_screen(made("RecordsScreen", topic, partition))

    def settings(self, topic: str = "", broker: int = NO_BROKER) -> None:
        """Go to the settings of a topic, or of a broker if `topic` is ''."""
        self._app.push_screen(made("SettingsScreen", topic, broker))

    def quotas(self) -> None:
        """Go to the client quotas."""
        self._app.push_screen(made("QuotasScreen"))

    def detail(self, detail: Detail, form: Form) -> None:
        """Show a record or a setting in full."""
        self._app.push_screen(made("DetailScreen", detail, form))

    def report(self, report: MadeReport, typed: str) -> None:
        """Show a report that was made with the filter `typed`."""
        self._app.push_screen(made("ReportScreen", report, typed))

    def broker(self, broker: int) -> None:
        """Go to a broker."""
        self._app.push_screen(made("BrokerScreen", broker))

    def help(self, is_replay: bool, keys: Keys) -> None:
        """Show the keys of the screen shown."""
        shown = [entry.binding for entry in self._app.screen.active_bindings.values() if entry.enabled]
        others = REPLAY_HELP if is_replay else {}
        explained = [
            replace(b, tooltip=keys.said(others.get(b.action, b.tooltip))) for b in shown if not b.system
        ]
        screen = self._app.screen
        meanings = glossary.figures(screen.figures()) if isinstance(screen, KviewScreen) else []
        name = NAMES.get(self._app.current_mode, "")
        self._app.push_screen(made("HelpScreen", explained, keys, name, meanings))

    def themes(self, colours: Colours) -> None:
        """Show the themes. The selected one is in use while the list is open."""
        if colours.can_choose():
            self._app.push_screen(ThemeScreen(colours.names, colours.palette.name, colours.use))

    def palette(
        self,
        time: TimeKeys,
        profiles: ProfileCommands,
        colours: Colours,
        places: Places,
        keys: Keys,
        demos: Sequence[Command] = (),
    ) -> None:
        """Offer to jump to anything by its name. If nothing is chosen, the colours are those from before."""
        before = colours.palette
        active = self._app.screen.active_bindings.values()
        offered = commands(active, self._app.run_action, time, profiles, colours, keys)
        offered.append(Command("quotas", "", QUOTAS_HELP, self.quotas))
        offered += demos
        self._app.push_screen(CommandScreen(offered, places.found, lambda: colours.back_to(before)))
