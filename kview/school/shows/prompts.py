"""Which keys a lesson's step asks for, and which ones end or repeat what was done besides."""

from kview.model.lab import CommandKind, NodeRole
from kview.school.conduct import Conduct
from kview.school.words import demo as said
from kview.tui.actions import Keys
from kview.tui.fault_actions import FAULTS_BY_KEY
from kview.tui.fault_keys import FaultKeys

_CAUSES = {"crashed": CommandKind.CRASH, "stopped": CommandKind.STOP, "hung": CommandKind.HANG}
"""The fault that brings a node into a state; SLOW for the others."""


def to_press(conduct: Conduct, keys: Keys, faults: FaultKeys) -> str:
    """Return what to press for the step, '' if it asks for no key."""
    key = conduct.staged.key
    if key is None:
        return ""
    fault = next(fault for fault in FAULTS_BY_KEY.values() if fault.kind is key.kind)
    return said.to_press(key, keys.name(fault.name), faults.would_do(key))


def way_back(conduct: Conduct, keys: Keys, faults: FaultKeys) -> str:
    """Return how to end the faults that the step did not ask for, '' if there are none."""
    name, extra = faults.back_name, conduct.extra
    if not extra:
        return ""
    if name and any(name.endswith(f" {fault.node}") for fault in extra):
        return said.way_back(keys.name("restore"), name)
    last = extra[-1]
    return said.way_back_selected(keys.name("restore"), last.node, last.role is NodeRole.BROKER)


def fault_key(conduct: Conduct, keys: Keys) -> str:
    """Return the key that causes a fault which was ended too early."""
    state = conduct.missing[0][2] if conduct.missing else ""
    kind = _CAUSES.get(state, CommandKind.SLOW)
    return keys.name(next(fault.name for fault in FAULTS_BY_KEY.values() if fault.kind is kind))
