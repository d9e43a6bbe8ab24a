"""How the overview shares the screen: a pure function of its size. More room shows more, never larger."""

from dataclasses import dataclass

MIN_WIDTH = 60
MIN_HEIGHT = 15
"""Below this the panels that matter do not fit; kview says so in one line."""

BESIDE_WIDTH = 112
"""From here on two panels stand beside each other."""

CHROME = 3
"""Header, status and key line."""


@dataclass(frozen=True, slots=True)
class Overview:
    """Heights in lines and widths in cells; 0: not shown. `beside`: throughput right of brokers, groups
    right of partitions."""

    beside: bool
    headline: int
    rules: int
    brokers: int
    partitions: int
    groups: int
    events: int
    throughput_width: int
    groups_width: int


def headline_height(height: int) -> int:
    """Lines kept for the headline, whether it needs them or not: nothing below may jump when trouble
    starts."""
    return 1 if height < 18 else 2 if height < 45 else 3


def overview(width: int, height: int, brokers: int, groups: int) -> Overview:
    """Shares `height` lines; header, headline, brokers and partitions are always there."""
    beside = width >= BESIDE_WIDTH
    headline = headline_height(height)
    rules = 0 if height < 20 else 2 if height < 28 else 3
    events = 0 if height < 28 else min(10, max(1, (height - 28) // 3))
    most = max(4, height // 3) if height >= 20 else max(4, height // 3 + 1)
    brokers_height = min(max(brokers + 1, 7 if beside else 2), most)
    left = height - CHROME - headline - rules - events - brokers_height
    groups_height = 0
    if beside:
        groups_height = left
    elif height >= 32 and groups:
        groups_height = min(groups + 2, left // 3)
        left -= groups_height
    return Overview(
        beside=beside,
        headline=headline,
        rules=rules,
        brokers=brokers_height,
        partitions=left,
        groups=groups_height,
        events=events,
        throughput_width=min(72, width * 38 // 100) if beside else 0,
        groups_width=(width * 40 // 100 if width < 150 else width * 46 // 100) if beside else 0,
    )
