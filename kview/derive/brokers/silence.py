"""Brokers: since when they have been silent, when the cluster will fence them, and their leaders and
rates."""

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kview.derive.align import positions, take
from kview.derive.groups.unheard import unheard
from kview.derive.partitions.rates import sum_by, total
from kview.derive.view import Floats, View
from kview.model.snapshot import Brokers, Flags, Ids, Longs, Snapshot
from kview.model.states import CUT_OFF_MS, BrokerState
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


def cut_off(snapshot: Snapshot) -> Longs:
    """Return ≈ since when each broker that answers us has not fetched metadata from the quorum.

    UNKNOWN for those that fetch, or of whom the quorum tells nothing. As in `still_heard`, only the quorum's
    own times are compared.
    """
    brokers, seen = snapshot.brokers, snapshot.observation
    latest = snapshot.quorum.last_fetch_ms.max(initial=UNKNOWN)
    told = (brokers.last_fetch_ms != UNKNOWN) & (latest != UNKNOWN)
    behind = np.where(told, latest - np.where(told, brokers.last_fetch_ms, 0), 0)
    answered = brokers.answers & (brokers.answered_ms >= seen.quorum_received_ms - HEARD_MARGIN_MS)
    alone = np.asarray((brokers.state == BrokerState.UP) & answered & (behind >= CUT_OFF_MS), np.bool_)
    return np.where(alone, seen.quorum_received_ms - behind, UNKNOWN).astype(np.int64)


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
    heard = brokers.answers & np.asarray(brokers.state != BrokerState.SILENT, np.bool_)
    if heard.any() or not len(brokers):
        return UNKNOWN
    quiet = silence(brokers)
    if not quiet.silent.all():
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


class Held(Struct, frozen=True):
    """How many partitions each broker leads and keeps, those of internal topics apart, and how many it would
    lead if all preferred leaders led. The arrays have the rows of `Brokers`."""

    leads: Longs
    leads_internal: Longs
    replicas: Longs
    replicas_internal: Longs
    preferred: Longs


def held(snapshot: Snapshot) -> Held:
    """Return what each broker leads and keeps, according to metadata."""
    ids, table = snapshot.brokers.id, snapshot.partitions
    leader, replica = positions(ids, table.leader), positions(ids, table.replicas)
    internal = np.broadcast_to(table.internal[:, None], replica.shape)

    def counts(index: Longs, mask: Flags) -> Longs:
        counted: Longs = np.bincount(index[mask & (index >= 0)], minlength=len(ids)).astype(np.int64)
        return counted

    first = replica[:, 0] if replica.shape[1] else leader[:0]
    return Held(
        counts(leader, ~table.internal),
        counts(leader, table.internal),
        counts(replica, ~internal),
        counts(replica, internal),
        counts(first, np.ones(len(first), np.bool_)),
    )


def user_leader(snapshot: Snapshot) -> Longs:
    """Return the row of each partition's leader, −1 for internal topics."""
    table = snapshot.partitions
    return np.where(table.internal, -1, positions(snapshot.brokers.id, table.leader))


def led_rates(snapshot: Snapshot, in_rate: Floats, quiet: Silence) -> Floats:
    """Return the records per second appended to the partitions that each broker leads.

    `in_rate` has the rates of partitions.
    """
    rates = sum_by(user_leader(snapshot), in_rate, len(snapshot.brokers))
    rates[quiet.silent] = np.nan
    return rates


def total_out(
    snapshot: Snapshot, offset_rows: Longs, read_rate: Floats, quiet: Silence
) -> tuple[float, bool]:
    """Return the records per second that groups committed on the user's topics, where the leader answers, and
    whether that leaves out partitions.

    `offset_rows` and `read_rate` are rows of `snapshot.offsets`. NaN if groups have offsets there, but no
    rate is known, and if there may be groups of which nothing is known: also if no broker answers.
    """
    if unheard(snapshot.observation):
        return np.nan, False
    of_user = take(~snapshot.partitions.internal, offset_rows, False)
    leader = take(user_leader(snapshot), offset_rows, -1)
    answered = take(~quiet.silent, leader, False)
    rates = np.where(answered, read_rate, np.nan)[of_user]
    if not len(rates):
        return (np.nan if quiet.silent.all() else 0.0), False
    return total(rates), not bool(np.isfinite(rates).all())


def other_apis(snapshot: Snapshot) -> Flags:
    """Return which brokers offer other APIs than most, as in a rolling upgrade. None if there is no
    difference, or one that is over."""
    table = snapshot.brokers
    nobody = np.zeros(len(table), np.bool_)
    if snapshot.observation.apis_differ_since_ms == UNKNOWN:
        return nobody
    listed = np.asarray(table.apis != "", np.bool_)
    for state in (BrokerState.FENCED, BrokerState.GONE):
        listed &= np.asarray(table.state != state, np.bool_)
    kinds, counts = np.unique(table.apis[listed].astype(str), return_counts=True)
    if len(kinds) < 2:
        return nobody
    return listed & np.asarray(table.apis != str(kinds[counts.argmax()]), np.bool_)
