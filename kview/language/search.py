"""A search for records in words: what it will read, how far it is, and what it has not read."""

from collections.abc import Sequence
from itertools import groupby

from kview.language import inspection, words
from kview.model.inspection import Cost, Damage, InspectionFailure, InspectionFailureKind
from kview.model.search import SearchPlan, SearchPlanRequest, Span, Tally
from kview.model.units import UNKNOWN

MOST_NUMBERS = 8
"""The most partitions that are listed."""


def left_size(spans: Sequence[Span]) -> int:
    """Return about how many bytes are left to read, UNKNOWN if some broker does not tell."""
    sizes = [
        UNKNOWN if span.size == UNKNOWN else span.size * (span.end - span.at) // (span.end - span.begin)
        for span in spans
        if not span.is_over
    ]
    return UNKNOWN if UNKNOWN in sizes else sum(sizes)


def plan(planned: SearchPlan, most_bytes: int) -> str:
    """Return what a search will read at most: `up to 10,000,000 records in 4 partitions, ≈ 1.2 GB`."""
    offsets = sum(span.end - span.begin for span in planned.spans if not span.failure)
    many = len(planned.spans)
    size = left_size(planned.spans)
    about = "" if size == UNKNOWN else f", ≈ {words.size(size)}"
    stops = "" if size != UNKNOWN and size <= most_bytes else f"; it stops at {words.size(most_bytes)}"
    first = f"; partition {', '.join(map(str, planned.own))} first" if planned.own and many > 1 else ""
    return (
        f"up to {words.plural(offsets, 'record')} in {words.plural(many, 'partition')}{about}{stops}{first}"
    )


def progress(spans: Sequence[Span], tally: Tally, cost: Cost, found: int) -> str:
    """Return how far a search is: `38 %, 3,800,000 records, 456 MB, 56 requests: 2 found`."""
    whole = sum(span.end - span.begin for span in spans if not span.failure)
    done = sum(span.at - span.begin for span in spans if not span.failure)
    share = 100 * done // whole if whole else 100
    parts = (
        f"{share} %",
        words.plural(tally.records, "record"),
        words.size(tally.bytes),
        words.plural(cost.requests, "request"),
    )
    return f"{', '.join(parts)}: {found:,} found"


def unread(plan_request: SearchPlanRequest, spans: Sequence[Span]) -> list[str]:
    """Return which partitions were not read to their end, and why, a line for each reason."""
    failed = sorted((span for span in spans if span.failure), key=lambda span: (_why(span), span.partition))
    lines = []
    for _, some in groupby(failed, key=_why):
        of_reason = list(some)
        first = of_reason[0]
        why = inspection.failure(first.failure, SearchPlan(plan_request))
        is_gone = first.failure.kind is InspectionFailureKind.OFFSET_OUT_OF_RANGE
        if is_gone and not first.begin <= first.failure.offset <= first.end:
            there = f"{first.begin:,} to {first.end - 1:,}" if first.end > first.begin else "none"
            why += f": the partition has {there}"
        lines.append(f"not all was read: {partitions([span.partition for span in of_reason])}: {why}")
    return lines


def _why(span: Span) -> tuple[str, int, str]:
    failure: InspectionFailure = span.failure
    return (failure.kind, failure.broker, failure.cause.kind)


def partitions(numbers: Sequence[int]) -> str:
    """Return the first of these partitions: `partition 3, 5 + 2 more`."""
    listed = ", ".join(map(str, numbers[:MOST_NUMBERS]))
    more = f" + {len(numbers) - MOST_NUMBERS:,} more" if len(numbers) > MOST_NUMBERS else ""
    return f"partition {listed}{more}"


def notes(tally: Tally, damage: Sequence[tuple[int, Damage]] = ()) -> list[str]:
    """Return what was read but not judged, or could not be read: of the damage, the first few places."""
    lines = []
    if tally.undecoded:
        some = words.plural(tally.undecoded, "record")
        lines.append(f"{some} could not be decoded, so the filter may have missed them")
    if tally.damaged:
        batches = "batch" if tally.damaged == 1 else "batches"
        lines.append(f"not all was read: {tally.damaged:,} damaged {batches}{_places(damage)}")
    if tally.deleted:
        lines.append(f"not all was read: {words.plural(tally.deleted, 'offset')} deleted meanwhile")
    return lines


def _places(damage: Sequence[tuple[int, Damage]]) -> str:
    some = ", ".join(f"{partition}:{each.offset} {each.kind}" for partition, each in damage[:MOST_NUMBERS])
    return f" ({some}{', …' if len(damage) > MOST_NUMBERS else ''})" if some else ""


def left_out(tally: Tally) -> str:
    """Return what a reader with read_committed does not see, '' if there is nothing."""
    if not tally.aborted:
        return ""
    batches = "batch" if tally.aborted == 1 else "batches"
    return f"{tally.aborted:,} aborted {batches} left out"


def stopped(spans: Sequence[Span], most_bytes: int) -> str:
    """Return that the limit of bytes was reached, '' if all was read."""
    if all(span.is_over for span in spans):
        return ""
    left = sum(span.end - span.at for span in spans if not span.failure)
    return (
        f"not all was read: stopped after {words.size(most_bytes)}, with {words.plural(left, 'offset')} left"
    )


def ended(
    plan_request: SearchPlanRequest,
    spans: Sequence[Span],
    tally: Tally,
    found: int,
    is_full: bool,
    most_bytes: int,
) -> list[str]:
    """Return what a search that has ended came to on a screen, and what it has not read or judged."""
    failed = unread(plan_request, spans)
    notes_ = [*failed, *notes(tally)]
    if is_full:
        notes_.insert(0, f"not all was read: more than {found:,} are not shown; narrow the filter")
    elif over := stopped(spans, most_bytes):
        notes_.insert(0, f"{over}; kview records reads more")
    what = words.plural(found, "record") if found else "no record"
    whole = "" if notes_ else ": all was read"
    return [f"{what} found{whole}", *filter(None, (*notes_, left_out(tally)))]
