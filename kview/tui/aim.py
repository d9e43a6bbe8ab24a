"""The target of a fault's key: the selected broker, its rack, or the leader of the selected partition.

All functions here are pure.
"""

from collections.abc import Sequence
from typing import NamedTuple

from kview.derive.lookup import partition_row
from kview.derive.view import View
from kview.language.commands import NO_FAULT
from kview.model.lab import ActiveFault, Command
from kview.model.units import NO_BROKER
from kview.tui.keys import FaultKey


class Target(NamedTuple):
    """The broker that a fault would hit; `why` says why it is this broker if another row was selected."""

    broker: int
    why: str = ""


def leader_of(view: View, topic: str, partition: int) -> Target | None:
    """Return the leader of a partition as a fault's target, or None if it has no known leader."""
    row = partition_row(view, topic, partition)
    leader = NO_BROKER if row is None else int(view.snapshot.partitions.leader[row])
    return Target(leader, f"leader of {topic}-{partition}") if leader > NO_BROKER else None


def rack_of(view: View, broker: int) -> str:
    """Return a broker's rack, or '' if it has none."""
    table = view.snapshot.brokers
    return next((str(rack) for id, rack in zip(table.id, table.rack, strict=True) if id == broker), "")


def to_bring_back(
    selected: Target | None, given: Sequence[int], faults: Sequence[ActiveFault]
) -> Target | None:
    """Return the node that the key `restore` brings back, or None if there is none.

    It is the selected broker if it has a fault, otherwise the node that was hit last (`given`, in order) and
    still has a fault. Without any fault it is the selected broker, so that the answer says so.
    """
    nodes = [fault.node for fault in faults]
    if selected is not None and selected.broker in nodes:
        return selected
    last = next((node for node in reversed(given) if node in nodes), nodes[-1] if nodes else None)
    return selected if last is None else Target(last)


def command_for(fault: FaultKey, key: str, target: Target | None, view: View | None) -> Command | str:
    """Return the command of a fault for what is selected, or a sentence that says why there is none.

    `key` is what the fault's key is called.
    """
    if not fault.aims:
        return Command(fault.kind)
    if fault.aims == "fault":
        return Command(fault.kind, target.broker) if target is not None else NO_FAULT
    if target is None or view is None:
        return f"{key} needs a broker: select one (Tab changes the panel), or a partition with a leader"
    if fault.aims == "broker":
        return Command(fault.kind, target.broker, amount=fault.amount)
    rack = rack_of(view, target.broker)
    if rack:
        return Command(fault.kind, name=rack)
    is_broker = bool((view.snapshot.brokers.id == target.broker).any())
    return f"{'broker' if is_broker else 'controller'} {target.broker} has no rack"
