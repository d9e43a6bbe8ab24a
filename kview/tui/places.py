"""What `:` finds in a view besides commands: topics, partitions, groups and brokers, and faults of brokers.

Partitions are not listed: `invoice-3` is partition 3 of a topic that matches `invoice`.
"""

import re
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from kview.model import lab
from kview.tui.fault_actions import FAULTS_BY_KEY
from kview.tui.fuzzy import Names, rank
from kview.tui.screens.commands import Command, Found

if TYPE_CHECKING:
    from kview.tui.app import KviewApp

MOST_PLACES = 30
"""The most places of a kind that are offered: more than the list has lines."""

_PARTITION = re.compile(r"(?P<topic>.*\S)[-\s](?P<number>\d{1,6})")


class Places:
    """The places of a view, found by name. They are collected once, when the list is opened."""

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
                for rack in sorted({str(rack) for rack in table.rack if rack}):
                    commands.append(self._fault(f"lose rack {rack}", lab.Command(fault.kind, name=rack)))
        for command_ in commands:
            if (at := rank(typed, command_.name)) is not None:
                yield at, command_

    def _fault(self, name: str, command: lab.Command) -> Command:
        return Command(name, "", "fault on this simulated cluster", partial(self._app.faults.give, command))
