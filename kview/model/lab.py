"""What is set in a simulated cluster and can be adjusted while it runs: producers, groups, links, topics."""

from typing import Protocol

from msgspec import Struct

from kview.model.adjustments import Adjustment, AdjustmentReply
from kview.model.faults import Faults


class ProducerSetting(Struct, frozen=True):
    """A simulated producer. `rate` and `initial_rate` are in records per second, also while it is paused.

    `acks` is −1 for all. With `keys` 0 its records have null keys, otherwise that many, Zipf-distributed by
    `skew`.
    """

    name: str
    topic: str
    rate: float
    initial_rate: float
    paused: bool
    record_bytes: int
    acks: int
    keys: int
    skew: float


class GroupSetting(Struct, frozen=True):
    """A simulated consumer group. `rate` is what one member can process per second, 0 for no limit."""

    name: str
    topics: tuple[str, ...]
    members: int
    initial_members: int
    paused: bool
    rate: float
    commit_interval_ms: int


class LinkSetting(Struct, frozen=True):
    """A broker's network: bytes per second in each direction, and the latency to any other node."""

    broker: int
    bytes_per_second: int
    initial_bytes_per_second: int
    latency_us: int


class TopicSetting(Struct, frozen=True):
    """A topic's min.insync.replicas in force, and how many replicas a partition has."""

    name: str
    min_isr: int
    initial_min_isr: int
    replicas: int


class LabSettings(Struct, frozen=True):
    """Everything that can be adjusted, in the order of the cluster's description."""

    producers: tuple[ProducerSetting, ...] = ()
    groups: tuple[GroupSetting, ...] = ()
    links: tuple[LinkSetting, ...] = ()
    topics: tuple[TopicSetting, ...] = ()


class Lab(Faults, Protocol):
    """Carries out faults on a simulated cluster that kview started, and adjusts it."""

    async def adjust(self, wanted: Adjustment) -> AdjustmentReply:
        """Carry out an adjustment. Never raises, because errors are part of the reply."""
        ...

    async def settings_now(self) -> LabSettings | None:
        """Return what is set now, or None if the cluster does not say. Never raises."""
        ...
