"""A view whose past is still being read.

The view shows what the snapshot itself contains, and marks everything else as pending.
"""

from dataclasses import replace

import numpy as np

from kview.derive.view import Floats, PartitionStatus, Reason, Verdict, View
from kview.model.events import Severity
from kview.model.findings import Finding, FindingKind
from kview.model.snapshot import Longs, Strings
from kview.model.units import PENDING, PENDING_RATE, UNKNOWN


def pending(view: View) -> View:
    """Return `view`, which was folded from its own snapshot only, with its unfinished figures marked.

    Every figure that depends on another snapshot becomes PENDING (PENDING_RATE, Verdict.PENDING …). Findings
    from the snapshot itself stay, but the view does not say that all is well.
    """
    brokers, table, topics = view.brokers, view.partitions, view.topics
    groups, offsets, head = view.groups, view.offsets, view.headline
    wrong = tuple(finding for finding in head.findings if finding.severity is not Severity.CALM)
    rest = FindingKind.REST_PENDING if wrong else FindingKind.PAST_PENDING
    fine = table.status == PartitionStatus.OK
    frozen = table.status == PartitionStatus.FROZEN
    return replace(
        view,
        headline=replace(
            head,
            findings=(*wrong, Finding(rest, Severity.CALM)),
            requests_per_second=PENDING_RATE,
        ),
        brokers=replace(
            brokers,
            in_rate=_rates(brokers.in_rate),
            out_rate=_rates(brokers.out_rate),
            in_series=_series(len(brokers.in_series)),
        ),
        partitions=replace(
            table,
            status=_words(table.status, fine, PartitionStatus.PENDING),
            in_rate=_rates(table.in_rate),
            frozen_since_ms=np.where(frozen, PENDING, UNKNOWN),
        ),
        topics=replace(
            topics,
            in_rate=_rates(topics.in_rate),
            in_series=_series(len(topics.in_series)),
        ),
        groups=replace(
            groups,
            verdict=_words(groups.verdict, None, Verdict.PENDING),
            reason=_words(groups.reason, None, Reason.NONE),
            reason_ms=_unknown(groups.reason_ms),
            reason_count=_unknown(groups.reason_count),
            behind_ms=_times(groups.behind_ms),
            behind_is_bound=np.zeros_like(groups.behind_is_bound),
            behind_trend=np.zeros_like(groups.behind_trend),
            read_rate=_rates(groups.read_rate),
            write_rate=_rates(groups.write_rate),
            lag_series=_series(len(groups.lag_series)),
        ),
        offsets=replace(
            offsets,
            verdict=_words(offsets.verdict, None, Verdict.PENDING),
            reason=_words(offsets.reason, None, Reason.NONE),
            reason_ms=_unknown(offsets.reason_ms),
            reason_count=_unknown(offsets.reason_count),
            behind_ms=_times(offsets.behind_ms),
            behind_is_bound=np.zeros_like(offsets.behind_is_bound),
            read_rate=_rates(offsets.read_rate),
            write_rate=_rates(offsets.write_rate),
            catch_up_ms=_times(offsets.catch_up_ms),
        ),
        throughput=replace(
            view.throughput,
            at_ms=(),
            in_rates=tuple(() for _ in view.throughput.topics),
            total_in=PENDING_RATE,
            total_out=PENDING_RATE,
        ),
        events=(),
        new_events=(),
    )


def _rates(figures: Floats) -> Floats:
    return np.full(len(figures), PENDING_RATE)


def _times(figures: Longs) -> Longs:
    return np.full(len(figures), PENDING, np.int64)


def _unknown(figures: Longs) -> Longs:
    return np.full(len(figures), UNKNOWN, np.int64)


def _series(rows: int) -> tuple[tuple[float, ...], ...]:
    return ((PENDING_RATE,),) * rows


def _words(words: Strings, where: np.ndarray[tuple[int], np.dtype[np.bool_]] | None, word: str) -> Strings:
    made = words.copy()
    made[slice(None) if where is None else where] = word
    return made
