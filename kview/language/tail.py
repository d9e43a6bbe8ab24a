"""A topic that is followed, as words: how much passes, what is left out, and what holds its end back."""

from collections.abc import Sequence

from kview.language import glyphs, inspection, words
from kview.model.inspection import InspectionFailure
from kview.model.tail import Held, TailAnswer
from kview.model.units import UNKNOWN

MOST = 3
"""The most partitions that are named in a sentence."""
NO_COLUMNS = "a topic that is followed has no columns of your own"


def rates(shown: float, passing: float, is_estimate: bool) -> str:
    """Return how much is shown of what passes: `200 of 4,400/s shown`."""
    about = glyphs.ABOUT if is_estimate else ""
    return f"{words.rate(shown)} of {about}{words.rate(passing)}/s shown"


def cost(bytes_per_second: float) -> str:
    """Return what it costs: `0.8 MB/s fetched`."""
    return f"{words.size(round(bytes_per_second))}/s fetched"


def ended(shown: int, passed: int, skipped: int, fetched: int) -> str:
    """Return what following came to."""
    about = glyphs.ABOUT if skipped else ""
    return (
        f"not followed any more: {about}{words.plural(passed + skipped, 'record')} passed,"
        f" {words.count(shown)} shown, {words.size(fetched)} fetched"
    )


def missed(records: int) -> str:
    """Return how many records passed while nothing was read. Only their offsets are known."""
    return f"{glyphs.ABOUT}{words.plural(records, 'record')} passed while it was paused"


def passed_over(records: int, most: int) -> str:
    """Return that more is written than is printed, which is at most `most` records a second."""
    return (
        f"{glyphs.ABOUT}{words.plural(records, 'record')} passed over: more is written than --max-rate and"
        f" {words.count(most)} records a second let through"
    )


def paused(records: int, key: str) -> str:
    """Return that nothing is read, and how many records have passed since, UNKNOWN if that is not known."""
    passing = f": {glyphs.ABOUT}{words.plural(records, 'record')} passed so far" if records != UNKNOWN else ""
    return f"paused, nothing is read{passing}; {key} goes on at the end"


def notes(answer: TailAnswer) -> list[str]:
    """Return what is in the way of following, the most important first."""
    if answer.failure:
        return [f"{inspection.failure(answer.failure, answer)}; kview asks again"]
    lines = [_held(answer.held)] if answer.held else []
    lines += _unread(answer)
    if answer.restarted:
        lines.append(
            f"{_partitions(answer.restarted)}: its log no longer has the next offset; it goes on at the end"
        )
    if answer.damage:
        partition, damage = answer.damage[0]
        more = f" (and {words.count(len(answer.damage) - 1)} more)" if len(answer.damage) > 1 else ""
        lines.append(f"partition {partition}: {inspection.damage(damage)}{more}")
    if answer.unknown:
        lines.append(
            f"of {words.plural(answer.unknown, 'record')} it is not known whether the filter describes them:"
            " they do not decode, or only their beginning is kept"
        )
    return lines


def _held(held: Sequence[Held]) -> str:
    first = held[0]
    waiting = sum(each.end - each.offset for each in held)
    where = _partitions([each.partition for each in held])
    behind = (
        f"{words.plural(waiting, 'offset')} from {words.count(first.offset)} on"
        if len(held) == 1
        else (f"{words.plural(waiting, 'offset')}")
    )
    return f"{where}: an open transaction holds back {behind}"


def _unread(answer: TailAnswer) -> list[str]:
    """Return why partitions are not read, each reason once."""
    by_reason: dict[InspectionFailure, list[int]] = {}
    for partition, failure in answer.unread:
        by_reason.setdefault(failure, []).append(partition)
    return [
        f"{_partitions(partitions)} cannot be read now: {inspection.failure(failure, answer)}"
        for failure, partitions in by_reason.items()
    ]


def _partitions(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, numbers[:MOST]))
    if len(numbers) == 1:
        return f"partition {shown}"
    more = f" + {words.count(len(numbers) - MOST)} more" if len(numbers) > MOST else ""
    return f"partitions {shown}{more}"
