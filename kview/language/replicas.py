"""The signs of replicas and leaders in a list of partitions."""

from kview.derive.view import PartitionFigures
from kview.language import glyphs, words
from kview.model.snapshot import Partitions
from kview.model.units import UNKNOWN


def sign(table: Partitions, figures: PartitionFigures, row: int, position: int) -> str:
    """Return the sign of the replica at that position in a partition's replica list."""
    broker = int(table.replicas[row, position])
    if figures.replica_unreached[row, position]:
        return words.UNSEEN
    if figures.replica_silent[row, position]:
        return glyphs.DEAD
    if broker == table.leader[row]:
        return glyphs.LEADER
    if figures.being_added[row, position]:
        return glyphs.ADDED
    if not figures.in_isr[row, position]:
        return glyphs.OUT_OF_SYNC
    return glyphs.REMOVED if figures.being_removed[row, position] else glyphs.FOLLOWER


def leader_sign(table: Partitions, figures: PartitionFigures, row: int) -> str:
    """Return the sign of a partition's leader that does not answer kview, '' if it answers."""
    if figures.leader_unreached[row]:
        return words.UNSEEN
    return glyphs.DEAD if figures.leader_silent_since_ms[row] != UNKNOWN else ""
