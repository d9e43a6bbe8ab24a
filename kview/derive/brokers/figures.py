"""The figures of the brokers in a view."""

import numpy as np
from numpy.typing import NDArray

from kview.derive.align import partition_rows, positions, take
from kview.derive.brokers import log_dirs
from kview.derive.brokers.silence import cut_off, fencing_due, overdue, user_leader
from kview.derive.groups.unheard import never_read, unheard
from kview.derive.partitions.rates import leaves_out, sum_by
from kview.derive.sampled import Sample
from kview.derive.seen import Seen
from kview.derive.series import Series
from kview.derive.view import BrokerFigures
from kview.model.events import Severity
from kview.model.snapshot import Brokers, Flags, Longs
from kview.model.states import BrokerState
from kview.model.units import UNKNOWN


def broker_figures(
    seen: Seen,
    sampled: Sample,
    in_series: tuple[Series, ...],
    can_fence: bool | None,
    led_since_ms: int,
    dirs_full_ms: Longs,
) -> BrokerFigures:
    """Return the figures of the brokers.

    `in_series` already ends with the rates that were sampled. `can_fence` says whether there is a controller
    that can fence brokers, None if nobody can tell, and `led_since_ms` since when it has led, UNKNOWN if that
    is long ago. `dirs_full_ms` has the rows of `snapshot.log_dirs`.
    """
    snapshot, quiet, slow_since_ms = seen.snapshot, seen.quiet, seen.slow_since_ms
    unreached, held = seen.known.unreached, seen.held
    offset_rows, read_rate = sampled.offsets.partition_row, sampled.offsets.read_rate
    brokers, table = snapshot.brokers, snapshot.partitions
    size = len(brokers)
    led_by_row = user_leader(snapshot)
    reads_at = take(led_by_row, offset_rows, -1)
    out_rate = sum_by(reads_at, read_rate, size)
    out_is_bound = leaves_out(reads_at, read_rate, size)
    shares_at = take(led_by_row, partition_rows(snapshot.share_offsets, table), -1)
    out_is_bound[shares_at[shares_at >= 0]] = True  # what a share group reads is in no commit
    out_is_bound |= snapshot.groups.unread.any()
    unknown = bool(unheard(snapshot.observation)) or bool(never_read(snapshot).any())
    out_rate[quiet.silent | unknown] = np.nan
    out_is_bound &= np.isfinite(out_rate)
    up = np.asarray(brokers.state == BrokerState.UP, np.bool_)
    due_ms = fencing_due(snapshot, quiet, unreached, led_since_ms)
    owing = overdue(snapshot, slow_since_ms)
    silent = np.asarray(brokers.state == BrokerState.SILENT, np.bool_)
    severity = broker_severity(brokers, unreached, slow_since_ms, owing)
    cut_off_since_ms = np.where((slow_since_ms == UNKNOWN) & ~owing, cut_off(snapshot), UNKNOWN)
    severity[cut_off_since_ms != UNKNOWN] = Severity.WARN
    failed_dirs = np.zeros(size, np.int64)
    for failed in log_dirs.failed_dirs(snapshot):
        at = brokers.id == failed.broker
        failed_dirs[at] = len(failed.paths)
        severity[at] = failed.severity
    of_dirs = positions(brokers.id, snapshot.log_dirs.broker)
    dirs = np.bincount(of_dirs[of_dirs >= 0], minlength=size).astype(np.int64)
    never = np.iinfo(np.int64).max
    full_ms = np.full(size, never)
    there = (of_dirs >= 0) & (dirs_full_ms != UNKNOWN)
    np.minimum.at(full_ms, of_dirs[there], dirs_full_ms[there])
    return BrokerFigures(
        severity=severity,
        leads=held.leads,
        leads_internal=held.leads_internal,
        replicas=held.replicas,
        replicas_internal=held.replicas_internal,
        in_rate=sampled.broker_rates,
        out_rate=out_rate,
        in_is_bound=leaves_out(led_by_row, sampled.in_rate, size),
        out_is_bound=out_is_bound,
        in_series=in_series,
        silent_since_ms=quiet.since_ms,
        fencing_due_ms=due_ms if can_fence else np.full(size, UNKNOWN),
        cannot_be_fenced=silent & ~unreached & (can_fence is False),
        since_is_bound=~up & (brokers.answered_ms == UNKNOWN),
        is_controller=np.asarray(brokers.id == snapshot.observation.controller_id, np.bool_),
        unreached=unreached,
        late=owing,
        slow_since_ms=slow_since_ms,
        cut_off_since_ms=cut_off_since_ms,
        dirs=np.where(dirs == 0, UNKNOWN, dirs),
        failed_dirs=failed_dirs,
        full_ms=np.where(up & (full_ms != never), full_ms, UNKNOWN),
        leads_nothing=up & (held.leads + held.leads_internal == 0) & (held.preferred > 0),
    )


def broker_severity(
    brokers: Brokers, unreached: Flags, slow_since_ms: Longs, owing: Flags
) -> NDArray[np.object_]:
    """Return the severity of each broker.

    RISK for brokers that are silent and listed; WARN for brokers that are late (`owing`), slow, starting,
    fenced, gone, or silent only to us; CALM for all others.
    """
    out = np.full(len(brokers), Severity.CALM, object)
    out[np.asarray(brokers.state == BrokerState.STARTING, np.bool_)] = Severity.WARN
    out[(slow_since_ms != UNKNOWN) | owing] = Severity.WARN
    out[np.asarray(brokers.state == BrokerState.FENCED, np.bool_)] = Severity.WARN
    out[np.asarray(brokers.state == BrokerState.GONE, np.bool_)] = Severity.WARN
    out[np.asarray(brokers.state == BrokerState.SILENT, np.bool_)] = Severity.RISK
    out[unreached] = Severity.WARN
    return out
