"""Adjustments of a simulated cluster as words."""

from collections.abc import Mapping

from kview.language.faults import Needs
from kview.model.adjustments import AdjustmentKind

NEEDS: Mapping[AdjustmentKind, Needs] = {
    AdjustmentKind.RATE: Needs("needs a producer and records per second", "rate invoice-service 200"),
    AdjustmentKind.PAUSE: Needs("needs one group", "pause billing"),
    AdjustmentKind.RESUME: Needs("needs one group", "resume billing"),
    AdjustmentKind.ADD_MEMBER: Needs("needs one group", "add-member billing"),
    AdjustmentKind.REMOVE_MEMBER: Needs("needs one group", "remove-member billing"),
    AdjustmentKind.KILL_MEMBER: Needs("needs one group", "kill-member billing"),
    AdjustmentKind.SET: Needs("needs a topic and a setting", "set payment min.insync.replicas=1"),
    AdjustmentKind.BANDWIDTH: Needs("needs a broker and bytes per second", "bandwidth 4 200k"),
    AdjustmentKind.ELECT: Needs("needs one topic", "elect payment"),
}
"""What is said about a line that lacks a word or has one too many, with an example of the whole line."""
