"""The leaders and ISRs that a partition had, as a recording has them."""

from typing import NamedTuple

from msgspec import Struct

from kview.model.units import UNKNOWN


class Led(NamedTuple):
    """Who led a partition, and who was in sync, from `at_ms` (epoch ms) on. A leader of −1 is none."""

    at_ms: int
    leader: int
    epoch: int
    isr: tuple[int, ...]


class PartitionHistory(Struct, frozen=True):
    """What a partition went through, the newest first. The last one was so when reading began."""

    led: tuple[Led, ...] = ()
    since_ms: int = UNKNOWN
    """How far back was read, epoch ms, UNKNOWN if nothing was."""
    complete: bool = True
    """Whether the whole recording was read. Reading ends after some seconds."""
