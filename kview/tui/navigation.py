"""The ways between screens: the number keys, what a row opens, help, and the palette."""

from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from textual.screen import Screen

from kview.language import glossary
from kview.language.payloads import Form
from kview.model.reporting import MadeReport
from kview.model.units import NO_BROKER
from kview.tui.command_list import commands
from kview.tui.keys import REPLAY_HELP
from kview.tui.places import Places
from kview.tui.screens.base import KviewScreen
from kview.tui.screens.commands import Command, CommandScreen
from kview.tui.screens.overview import OverviewScreen
from kview.tui.screens.themes import ThemeScreen
from kview.tui.widgets.inspecting import Detail

if TYPE_CHECKING:
    from kview.tui.app import KviewApp

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

    def __init__(self, app: "KviewApp") -> None:
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
        self._app.push_screen(made("QuotasScreen"))

    def detail(self, detail: Detail, form: Form) -> None:
        """Show a record or a setting in full."""
        self._app.push_screen(made("DetailScreen", detail, form))

    def report(self, report: MadeReport, typed: str) -> None:
        """Show a report that was made with the filter `typed`."""
        self._app.push_screen(made("ReportScreen", report, typed))

    def broker(self, broker: int) -> None:
        self._app.push_screen(made("BrokerScreen", broker))

    def help(self) -> None:
        """Show the keys of the screen shown."""
        app = self._app
        shown = [entry.binding for entry in app.screen.active_bindings.values() if entry.enabled]
        others = REPLAY_HELP if app.timeline is not None and app.timeline.replay else {}
        explained = [
            replace(b, tooltip=app.keys.said(others.get(b.action, b.tooltip))) for b in shown if not b.system
        ]
        meanings = glossary.figures(app.screen.figures()) if isinstance(app.screen, KviewScreen) else []
        name = NAMES.get(app.current_mode, "")
        app.push_screen(made("HelpScreen", explained, app.keys, name, meanings))

    def themes(self) -> None:
        """Show the themes. The selected one is in use while the list is open."""
        colours = self._app.colours
        if colours.can_choose():
            self._app.push_screen(ThemeScreen(colours.names, colours.palette.name, colours.use))

    def palette(self) -> None:
        """Offer to jump to anything by its name. If nothing is chosen, the colours are those from before."""
        app, before = self._app, self._app.colours.palette
        offered = [*commands(app), Command("quotas", "", QUOTAS_HELP, self.quotas), *app.teaching.commands()]
        app.push_screen(CommandScreen(offered, Places(app).found, lambda: app.colours.back_to(before)))
