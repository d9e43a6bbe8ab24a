"""Brokers: since when they have been silent, when the cluster will fence them, and their leaders and
rates."""

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kview.derive import log_dirs
from kview.derive.align import partition_rows, positions, take
from kview.derive.rates import leaves_out, sum_by, total
from kview.derive.series import Series
from kview.derive.unheard import never_read, unheard
from kview.derive.view import BrokerFigures, Floats, View
from kview.model.events import Severity
from kview.model.snapshot import Brokers, Flags, Ids, Longs, Snapshot
from kview.model.states import BrokerState
from kview.model.units import UNKNOWN

HEARD_MARGIN_MS = 1_500
"""If a broker's last fetch of metadata is this close to the latest fetch of all, the quorum still hears the
broker. Brokers fetch at least every 500 ms."""


class Silence(Struct, frozen=True):
    """Which brokers do not answer us. The arrays have the rows of `Brokers`."""

    ids: Ids
    silent: NDArray[np.bool_]
    since_ms: Longs
    """UNKNOWN for brokers that answer."""

    def of(self, brokers: Ids) -> NDArray[np.bool_]:
        """Return whether each of `brokers` (ids, any shape) is silent. Unknown brokers are not silent."""
        return take(self.silent, positions(self.ids, brokers), False)

    def since_of(self, brokers: Ids) -> Longs:
        """Return since when each of `brokers` has been silent, UNKNOWN if the broker answers or is not
        known."""
        return take(self.since_ms, positions(self.ids, brokers), UNKNOWN)


def silence(brokers: Brokers) -> Silence:
    """Return which brokers are silent.

    These are listed brokers (starting ones too) as well as fenced and gone ones, which have been silent since
    their last answer.
    """
    state = brokers.state
    is_silent = np.asarray((state == BrokerState.SILENT) | (state == BrokerState.STARTING), np.bool_)
    out = np.asarray((state == BrokerState.FENCED) | (state == BrokerState.GONE), np.bool_) & ~brokers.answers
    fallback = np.where(brokers.answered_ms == UNKNOWN, brokers.since_ms, brokers.answered_ms)
    since = np.where(is_silent, brokers.since_ms, np.where(out, fallback, UNKNOWN))
    return Silence(brokers.id, is_silent | out, since)


def still_heard(snapshot: Snapshot, quiet: Silence) -> NDArray[np.bool_]:
    """Return which silent brokers still fetch metadata from the quorum, so that only we cannot reach them.

    This needs DescribeQuorum v1. The quorum's times are only compared with each other, because a controller's
    clock may differ from ours.
    """
    brokers, latest = snapshot.brokers, snapshot.quorum.last_fetch_ms.max(initial=UNKNOWN)
    received = snapshot.observation.quorum_received_ms
    if latest == UNKNOWN or received == UNKNOWN:
        return np.zeros(len(brokers), np.bool_)
    known = quiet.silent & (brokers.last_fetch_ms != UNKNOWN) & (quiet.since_ms != UNKNOWN)
    recent = np.where(known, latest - brokers.last_fetch_ms, UNKNOWN) < HEARD_MARGIN_MS
    heard: NDArray[np.bool_] = known & recent & (received > quiet.since_ms + 2 * HEARD_MARGIN_MS)
    return heard


def fencing_due(snapshot: Snapshot, quiet: Silence, unreached: Flags, led_since_ms: int) -> Longs:
    """Return ≈ when the session of each silent, listed broker ends, UNKNOWN for others.

    A session ends one session timeout after the broker's last fetch of metadata, or after our first silence.
    The last fetch only counts if it is at most one session before our first silence: if it is further away,
    the clocks differ. It also only counts if the quorum reported it after that silence, because the broker
    may have fetched again since an older report. A controller that has led only since `led_since_ms` gives
    every broker a whole session from then on.
    """
    brokers = snapshot.brokers
    listed = np.asarray(brokers.state == BrokerState.SILENT, np.bool_)
    timeout = brokers.session_timeout_ms
    fetched = brokers.last_fetch_ms
    near = (fetched != UNKNOWN) & (quiet.since_ms != UNKNOWN)
    near &= snapshot.observation.quorum_received_ms >= quiet.since_ms
    gap = np.where(near, quiet.since_ms - fetched, 0)
    near &= (gap >= -HEARD_MARGIN_MS) & (gap <= timeout)
    begins = np.where(near, np.minimum(fetched, quiet.since_ms), quiet.since_ms)
    begins = np.where(begins == UNKNOWN, UNKNOWN, np.maximum(begins, led_since_ms))
    usable = listed & (timeout != UNKNOWN) & (begins != UNKNOWN) & ~unreached
    return np.where(usable, begins + timeout, UNKNOWN)


class Answering(Struct, frozen=True):
    """How many brokers answer us, out of how many."""

    answer: int
    all: int
    last_ms: int
    """When the last answer of any broker came, epoch ms; UNKNOWN before the first one."""


def answering(view: View) -> Answering:
    """Return how many brokers answer. A broker that is gone counts while partitions still name it.

    A broker that is only slow answers, even while it owes an answer.
    """
    snapshot = view.snapshot
    table = snapshot.brokers
    counts = np.asarray(table.state != BrokerState.GONE, np.bool_)
    if not counts.all():
        counts |= np.isin(table.id, snapshot.partitions.replicas)
    answer = table.answers & (table.state != BrokerState.SILENT)
    answer |= late(table) & ~view.brokers.late
    last_ms = int(table.answered_ms.max(initial=UNKNOWN))
    return Answering(int((counts & answer).sum()), int(counts.sum()), last_ms)


def none_answer_since(brokers: Brokers) -> int:
    """Return since when no broker has answered kview (epoch ms), UNKNOWN if one answers or only owes us one.

    This is when the last of them fell silent. Fenced brokers and those that are no longer listed count, too.
    """
    quiet = silence(brokers)
    heard = brokers.answers & np.asarray(brokers.state != BrokerState.SILENT, np.bool_)
    if not quiet.silent.any() or not quiet.silent.all() or heard.any():
        return UNKNOWN
    listed = np.asarray(brokers.state != BrokerState.GONE, np.bool_)
    return int(quiet.since_ms[listed].max(initial=UNKNOWN))


def late(brokers: Brokers) -> Flags:
    """Return which brokers count as up but owe us an answer: they may be silent, or only slow."""
    up = np.asarray(brokers.state == BrokerState.UP, np.bool_)
    return np.asarray(up & ~brokers.answers & (brokers.answered_ms != UNKNOWN), np.bool_)


def overdue(snapshot: Snapshot, slow_since_ms: Longs) -> Flags:
    """Return which brokers are late and may be silent: no answer came during the observation, and they are
    not known to be slow."""
    table = snapshot.brokers
    heard = table.answered_ms >= snapshot.observation.began_ms
    return np.asarray(late(table) & ~heard & (slow_since_ms == UNKNOWN), np.bool_)


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


def _counts(index: Longs, mask: NDArray[np.bool_], size: int) -> Longs:
    counted: Longs = np.bincount(index[mask & (index >= 0)], minlength=size).astype(np.int64)
    return counted


def _user_leader(snapshot: Snapshot) -> Longs:
    """Return the row of each partition's leader, −1 for internal topics."""
    table = snapshot.partitions
    return np.where(table.internal, -1, positions(snapshot.brokers.id, table.leader))


def led_rates(snapshot: Snapshot, in_rate: Floats, quiet: Silence) -> Floats:
    """Return the records per second appended to the partitions that each broker leads.

    `in_rate` has the rates of partitions.
    """
    rates = sum_by(_user_leader(snapshot), in_rate, len(snapshot.brokers))
    rates[quiet.silent] = np.nan
    return rates


def total_out(snapshot: Snapshot, offset_rows: Longs, read_rate: Floats, quiet: Silence) -> float:
    """Return the records per second that groups committed on the user's topics, where the leader answers.

    `offset_rows` and `read_rate` are rows of `snapshot.offsets`. NaN if groups have offsets there, but no
    rate is known, and if there may be groups of which nothing is known.
    """
    if unheard(snapshot.observation):
        return np.nan
    of_user = take(~snapshot.partitions.internal, offset_rows, False)
    leader = take(_user_leader(snapshot), offset_rows, -1)
    answered = take(~quiet.silent, leader, False)
    return total(np.where(answered, read_rate, np.nan)[of_user]) if of_user.any() else 0.0


def broker_figures(
    snapshot: Snapshot,
    offset_rows: Longs,
    read_rate: Floats,
    quiet: Silence,
    unreached: Flags,
    slow_since_ms: Longs,
    partition_rate: Floats,
    in_rate: Floats,
    in_series: tuple[Series, ...],
    can_fence: bool | None,
    led_since_ms: int,
    dirs_full_ms: Longs,
) -> BrokerFigures:
    """Return the figures of the brokers.

    `offset_rows` and `read_rate` have the rows of `snapshot.offsets`, and `partition_rate` those of
    `snapshot.partitions`. `in_rate` is the result of `led_rates`, and `in_series` already ends with these
    rates. `dirs_full_ms` has the rows of `snapshot.log_dirs`. `unreached` marks brokers that only we cannot
    reach. `can_fence` says whether there is a controller that can fence brokers, None if nobody can tell, and
    `led_since_ms` since when it has led, UNKNOWN if that is long ago.
    """
    brokers, table = snapshot.brokers, snapshot.partitions
    size = len(brokers)
    leader = positions(brokers.id, table.leader)
    replica = positions(brokers.id, table.replicas)
    internal = np.broadcast_to(table.internal[:, None], replica.shape)
    user_leader = _user_leader(snapshot)
    reads_at = take(user_leader, offset_rows, -1)
    out_rate = sum_by(reads_at, read_rate, size)
    out_is_bound = leaves_out(reads_at, read_rate, size)
    shares_at = take(user_leader, partition_rows(snapshot.share_offsets, table), -1)
    out_is_bound[shares_at[shares_at >= 0]] = True  # what a share group reads is in no commit
    unknown = bool(unheard(snapshot.observation)) or bool(never_read(snapshot).any())
    out_rate[quiet.silent | unknown] = np.nan
    preferred = positions(brokers.id, table.replicas[:, 0]) if table.replicas.shape[1] else leader[:0]
    leads, leads_internal = (_counts(leader, mask, size) for mask in (~table.internal, table.internal))
    wanted = _counts(preferred, np.ones(len(preferred), np.bool_), size)
    up = np.asarray(brokers.state == BrokerState.UP, np.bool_)
    due_ms = fencing_due(snapshot, quiet, unreached, led_since_ms)
    owing = overdue(snapshot, slow_since_ms)
    silent = np.asarray(brokers.state == BrokerState.SILENT, np.bool_)
    severity = broker_severity(brokers, unreached, slow_since_ms, owing)
    failed_dirs = np.zeros(size, np.int64)
    for failed in log_dirs.failed_dirs(snapshot):
        at = brokers.id == failed.broker
        failed_dirs[at] = len(failed.paths)
        severity[at] = failed.severity
    of_dirs = positions(brokers.id, snapshot.log_dirs.broker)
    dirs = _counts(of_dirs, np.ones(len(of_dirs), np.bool_), size)
    never = np.iinfo(np.int64).max
    full_ms = np.full(size, never)
    there = (of_dirs >= 0) & (dirs_full_ms != UNKNOWN)
    np.minimum.at(full_ms, of_dirs[there], dirs_full_ms[there])
    return BrokerFigures(
        severity=severity,
        leads=leads,
        leads_internal=leads_internal,
        replicas=_counts(replica.ravel(), ~internal.ravel(), size),
        replicas_internal=_counts(replica.ravel(), internal.ravel(), size),
        in_rate=in_rate,
        out_rate=out_rate,
        in_is_bound=leaves_out(user_leader, partition_rate, size),
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
        dirs=np.where(dirs == 0, UNKNOWN, dirs),
        failed_dirs=failed_dirs,
        full_ms=np.where(up & (full_ms != never), full_ms, UNKNOWN),
        leads_nothing=up & (leads + leads_internal == 0) & (wanted > 0),
    )


def other_apis(snapshot: Snapshot) -> Flags:
    """Return which brokers offer other APIs than most, as in a rolling upgrade. None if there is no
    difference, or one that is over."""
    table = snapshot.brokers
    nobody = np.zeros(len(table), np.bool_)
    if snapshot.observation.apis_differ_since_ms == UNKNOWN:
        return nobody
    told = np.asarray(table.apis != "", np.bool_)
    for state in (BrokerState.FENCED, BrokerState.GONE):
        told &= np.asarray(table.state != state, np.bool_)
    kinds, counts = np.unique(table.apis[told].astype(str), return_counts=True)
    if len(kinds) < 2:
        return nobody
    return told & np.asarray(table.apis != str(kinds[counts.argmax()]), np.bool_)
