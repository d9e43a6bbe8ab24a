"""The ways between screens: the number keys, what a row opens, help, and the palette."""

import re
from collections.abc import Callable, Hashable, Iterator
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from textual.binding import ActiveBinding
from textual.screen import Screen

from kview.config.profiles import read_config
from kview.errors import KviewError
from kview.language import glossary
from kview.language.errors import message, remedy
from kview.language.payloads import Form
from kview.language.preferences import NO_FILE
from kview.model import lab
from kview.model.events import Severity
from kview.model.reporting import MadeReport
from kview.model.units import NO_BROKER
from kview.tui.faults import FAULTS_BY_KEY
from kview.tui.fuzzy import Names, rank
from kview.tui.keys import REPLAY_HELP
from kview.tui.rows.sorting import by_number
from kview.tui.screens.base import KviewScreen
from kview.tui.screens.commands import Command, CommandScreen, Found
from kview.tui.screens.overview import OverviewScreen
from kview.tui.screens.themes import ThemeScreen
from kview.tui.time_keys import LAST_HELP
from kview.tui.widgets.bottom import StatusMessage, key_name
from kview.tui.widgets.inspecting import Detail

if TYPE_CHECKING:
    from kview.tui.app import KviewApp

FIRST = "overview"
"""The screen that is shown first."""

FLEET = "fleet"
"""The screen with all clusters."""

LATER = {
    "FleetScreen": "fleet",
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
    "WrongScreen": "wrong",
    "RecordsScreen": "inspect",
    "PositionScreen": "position",
    "SettingsScreen": "inspect",
    "QuotasScreen": "inspect",
    "DetailScreen": "detail",
    "ReportScreen": "report",
    "LabScreen": "lab",
    "HelpScreen": "help",
    "PreferencesScreen": "preferences",
}
"""The screens that are imported when they are first shown, or by `preload`, and their modules: to import them
takes 50 ms, for which the first frame does not wait."""

MOST_PLACES = 30
"""The most places of a kind that are offered: more than the list has lines."""

_PARTITION = re.compile(r"(?P<topic>.*\S)[-\s](?P<number>\d{1,6})")


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
    FLEET: partial(made, "FleetScreen"),
}
"""The screens of the number keys, and that of all clusters."""

NAMES = {
    FIRST: "Overview",
    "placement": "Placement",
    "topics": "Topics",
    "partitions": "Partitions",
    "groups": "Groups",
    "throughput": "Throughput",
    "events": "Events",
    "lab": "Lab",
    FLEET: "All clusters",
}


QUOTAS_HELP = "client quotas: what users, client ids and IP addresses may use at most"


class Navigation:
    """Switches between the screens of an app."""

    def __init__(self, app: "KviewApp") -> None:
        self._app = app

    async def to(self, mode: str) -> None:
        """Go to the screen of a number key, without the screens above it."""
        left = self._app.drawn_screen()
        if left is not None and mode != self._app.current_mode:
            left.let_go()  # Textual tells it only to a list over it
        await self._app.switch_mode(mode)
        while len(self._app.screen_stack) > 1:
            await self._app.pop_screen()
        if isinstance(self._app.screen, KviewScreen):
            self._app.screen.take_up()

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

    def wrong(self) -> None:
        """Say what is wrong in whole sentences."""
        self._app.push_screen(made("WrongScreen"))

    def records(self, topic: str, partition: int) -> None:
        """Go to the records of a partition."""
        self._app.push_screen(made("RecordsScreen", topic, partition))

    def position(self, group: str, topic: str, partition: int) -> None:
        """Go to the record at a group's committed offset, and what follows. It is read at once."""
        self._app.push_screen(made("PositionScreen", group, topic, partition))

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

    def preferences(self) -> None:
        """Show what is kept for the next time."""
        app = self._app
        file = app.session.config_file
        if file is None:
            app.say(StatusMessage(NO_FILE))
            return
        try:
            kept = read_config(file).display
        except KviewError as error:
            app.say(StatusMessage(message(error), remedy(error), Severity.WARN))
            return
        app.push_screen(made("PreferencesScreen", file, kept, app.source.interval_ms))

    def palette(self) -> None:
        """Offer to jump to anything by its name. If nothing is chosen, the colours are those from before."""
        app, before = self._app, self._app.colours.palette
        offered = [*_commands(app), Command("quotas", "", QUOTAS_HELP, self.quotas), *app.teaching.commands()]
        app.push_screen(CommandScreen(offered, _Places(app).found, lambda: app.colours.back_to(before)))


# -- what the palette offers


def _commands(app: "KviewApp") -> list[Command]:
    """Return every command that is available on the screen shown."""
    available: list[Command] = []
    seen: set[str] = set()
    for entry in app.screen.active_bindings.values():
        binding = entry.binding
        if entry.enabled and not binding.system and binding.show and binding.action not in ("find", *seen):
            seen.add(binding.action)
            available.append(_bound(entry, app))
    if app.time.allows("last"):
        available.append(Command("end of recording", "", LAST_HELP, partial(app.time.do, "last")))
    available += _profiles(app)
    for name in app.colours.names:
        use = partial(app.colours.use, name)
        explanation = "switch to this theme (highlight to preview)"
        available.append(Command(f"theme {name}", "", explanation, use, use))
    return available


def _profiles(app: "KviewApp") -> list[Command]:
    """Return a command for each cluster that kview can switch to."""
    clusters = app.session.clusters
    return [
        Command(f"connect {name}", "", "show this profile's cluster instead", partial(app.open_cluster, name))
        for name in (clusters.names() if clusters is not None else ())
    ]


def _bound(entry: ActiveBinding, app: "KviewApp") -> Command:
    binding = entry.binding

    async def run() -> None:
        await app.run_action(binding.action, entry.node)

    return Command(binding.description, key_name(binding), app.keys.said(binding.tooltip), run)


class _Places:
    """What is found in a view besides commands: topics, partitions, groups, brokers, and faults of brokers.

    They are collected once, when the list is opened. Partitions are not listed: `invoice-3` is partition 3 of
    a topic that matches `invoice`.
    """

    def __init__(self, app: "KviewApp") -> None:
        self._app = app
        self._view = view = app.view
        self._topics = Names(view.topics.topic.tolist() if view else [])
        self._groups = Names(view.snapshot.groups.group.tolist() if view else [])
        counts = view.topics.partitions.tolist() if view else []
        self._counts = dict(zip(view.topics.topic.tolist(), counts, strict=True)) if view else {}

    def found(self, typed: str) -> list[Found]:
        """Return the places that match what was typed, with their ranks."""
        if not typed.strip() or self._view is None:
            return []
        return [
            *self._partitions(typed),
            *(
                (at, Command(name, "", "topic", partial(self._app.go.topic, name)))
                for at, name in self._topics.found(typed)[:MOST_PLACES]
            ),
            *(
                (at, Command(name, "", "consumer group", partial(self._app.go.group, name)))
                for at, name in self._groups.found(typed)[:MOST_PLACES]
            ),
            *self._of_brokers(typed),
        ]

    def _partitions(self, typed: str) -> Iterator[Found]:
        asked = _PARTITION.fullmatch(typed.strip())
        if asked is None:
            return
        number = int(asked["number"])
        for at, topic in self._topics.found(asked["topic"])[:MOST_PLACES]:
            if number < self._counts[topic]:
                show = partial(self._app.go.topic, topic, number)
                yield at, Command(f"{topic}-{number}", "", "partition", show)

    def _of_brokers(self, typed: str) -> Iterator[Found]:
        """Yield brokers and, on a simulated cluster, what can be done to them and to their racks."""
        assert self._view is not None
        table = self._view.snapshot.brokers
        commands: list[Command] = []
        for broker in table.id.tolist():
            commands.append(Command(f"broker {broker}", "", "broker", partial(self._app.go.broker, broker)))
        for fault in FAULTS_BY_KEY.values() if self._app.faults.has_lab else ():
            if fault.aims in ("broker", "fault"):
                for broker in table.id.tolist():
                    command = lab.Command(fault.kind, broker, amount=fault.amount)
                    commands.append(self._fault(f"{fault.label} broker {broker}", command))
            elif fault.aims == "rack":
                for rack in sorted({str(rack) for rack in table.rack if rack}, key=by_number):
                    commands.append(self._fault(f"lose rack {rack}", lab.Command(fault.kind, name=rack)))
        for command_ in commands:
            if (at := rank(typed, command_.name)) is not None:
                yield at, command_

    def _fault(self, name: str, command: lab.Command) -> Command:
        return Command(name, "", "fault on this simulated cluster", partial(self._app.faults.give, command))
