"""How far a key changes a setting: rates in round numbers, bandwidth by half, the rest by one. Pure."""

import math

from kview.language.lab import MIN_ISR, Setting
from kview.model.lab import (
    Command,
    CommandKind,
    GroupSetting,
    LinkSetting,
    ProducerSetting,
    TopicSetting,
)

TIMES = 1.5
"""By about how much a key multiplies a rate."""

ROUND = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)
"""The round numbers of each power of ten."""

MOST_RATE = 1_000_000
MOST_BYTES, LEAST_BYTES = 10_000_000_000, 1_000
MOST_MEMBERS = 100
"""Limits of the simulated cluster, which refuses what is beyond them."""


def rate_step(rate: float, up: bool) -> float:
    """Return the round rate that is nearest to 1.5 times as high (or low), and not the same.

    Below 1 there is only 0.
    """
    if rate < 1:
        return 1.0 if up else 0.0
    power = 10.0 ** math.floor(math.log10(rate))
    ladder = [each * scale for scale in (power / 10, power, power * 10) for each in ROUND]
    wanted = rate * TIMES if up else rate / TIMES
    beyond = [each for each in ladder if (each > rate if up else each < rate)]
    nearest = min(beyond, key=lambda each: abs(math.log(each / wanted)))
    return min(nearest, MOST_RATE) if nearest >= 1 else 0.0


def step(of: Setting, up: bool) -> Command | None:
    """Return the command of a step up or down, or None if the setting is at its limit."""
    match of:
        case ProducerSetting():
            rate = rate_step(of.rate, up)
            stays = of.paused or rate == of.rate
            return None if stays else Command(CommandKind.RATE, name=of.name, amount=rate)
        case GroupSetting():
            if of.members >= MOST_MEMBERS if up else not of.members:
                return None
            return Command(CommandKind.ADD_MEMBER if up else CommandKind.REMOVE_MEMBER, name=of.name)
        case LinkSetting():
            wanted = of.bytes_per_second * 2 if up else of.bytes_per_second / 2
            amount = max(LEAST_BYTES, min(MOST_BYTES, round(wanted)))
            if amount == of.bytes_per_second:
                return None
            return Command(CommandKind.BANDWIDTH, node=of.broker, amount=amount)
        case TopicSetting():
            value = of.min_isr + (1 if up else -1)
            if not 1 <= value <= (max(of.replicas, of.min_isr - 1)):
                return None
            return Command(CommandKind.SET, name=of.name, key=MIN_ISR, value=str(value))


def pause(of: Setting) -> Command | None:
    """Return the command that pauses a producer or a group, or resumes it, or None if that is neither."""
    match of:
        case ProducerSetting():
            kind = CommandKind.RESUME_PRODUCER if of.paused else CommandKind.PAUSE_PRODUCER
            return Command(kind, name=of.name)
        case GroupSetting() if of.members:
            return Command(CommandKind.RESUME if of.paused else CommandKind.PAUSE, name=of.name)
    return None


def kill(of: Setting) -> Command | None:
    """Return the command that kills a member of a group, or None if there is none."""
    if isinstance(of, GroupSetting) and of.members:
        return Command(CommandKind.KILL_MEMBER, name=of.name)
    return None
