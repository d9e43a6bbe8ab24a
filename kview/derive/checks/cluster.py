"""What a check finds about brokers and controllers: who does not answer, and what a loss would break."""

from collections.abc import Iterable, Iterator

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kview.derive.brokers.log_dirs import failed_dirs, stranded
from kview.derive.brokers.quorum import unheard_voters
from kview.derive.brokers.silence import late
from kview.derive.brokers.slowness import SLOW_AFTER_MS
from kview.derive.brokers.throttles import throttles
from kview.derive.checks.causes import cause_of, why_of
from kview.derive.checks.consequences import Causes, Down
from kview.derive.checks.impact import (
    Loss,
    broker_domains,
    losses,
    rack_domains,
    rack_names,
    standing,
)
from kview.derive.checks.partitions import names_of
from kview.derive.transactions.findings import who_holds
from kview.derive.view import View
from kview.model.checks import CheckFinding, CheckKind, Key, Level, NotJudged, NotJudgedWhy
from kview.model.failures import Part
from kview.model.findings import FindingKind
from kview.model.snapshot import Flags, Longs
from kview.model.states import BrokerState
from kview.model.units import UNKNOWN, UNKNOWN_ID

LEADER_SKEW = 1.5
"""A broker that leads this many times the mean, or more, leads too much. Leaders do the work for all clients.
If one of three brokers is lost, each of the others leads 1.5 times as much, so every broker must be able to
do that."""

LEADERS_MORE = 10
"""A broker that leads fewer than this more than the mean is not skewed: with few partitions, each topic's
remainder makes such a difference."""

DISK_SKEW = 1.5
"""A broker that holds this many times the mean, or more, holds too much. If all disks have the same size and
are two thirds full on average, its disk is full."""

DISK_MORE_BYTES = 1_000_000_000
"""A broker that holds less than this more than the mean is not skewed: that is one segment of Kafka's default
size."""

NO_LINK_TAKES_US = 1_000_000
"""A broker that takes this long to answer is slow, or kview's own machine is: no network is."""

_CONTROLLER_KINDS = (CheckKind.NO_CONTROLLER, CheckKind.VOTER_LOST)
_NO_CONTROLLER = (FindingKind.NO_CONTROLLER, FindingKind.QUORUM_LOST, FindingKind.QUORUM_SILENT)


class Limits(Struct, frozen=True):
    """The multiples of the mean from which a broker leads, or holds, too much."""

    leader_skew: float = LEADER_SKEW
    disk_skew: float = DISK_SKEW


def _having(view: View, state: BrokerState) -> Flags:
    return np.asarray(view.snapshot.brokers.state == state, np.bool_)


def nobody_answers(view: View) -> bool:
    """Return whether every broker of the cluster is silent."""
    silent, gone = _having(view, BrokerState.SILENT), _having(view, BrokerState.GONE)
    return bool(silent.any() and (silent | gone).all())


def broker_findings(view: View) -> Iterator[CheckFinding]:
    """Yield the brokers that do not answer, are fenced, have left, or are slow."""
    table, figures = view.snapshot.brokers, view.brokers
    slow = figures.slow_since_ms != UNKNOWN
    for kind, mask, since_ms in (
        (CheckKind.BROKER_SILENT, _having(view, BrokerState.SILENT), figures.silent_since_ms),
        (CheckKind.BROKER_FENCED, _having(view, BrokerState.FENCED), table.since_ms),
        (CheckKind.BROKER_GONE, _having(view, BrokerState.GONE), table.since_ms),
        (CheckKind.BROKER_SLOW, slow, figures.slow_since_ms),
    ):
        for row in np.flatnonzero(mask).tolist():
            unreached = bool(figures.unreached[row])
            lost = kind is CheckKind.BROKER_SILENT and not unreached
            yield CheckFinding(
                kind,
                Level.RISK if lost else Level.WARN,
                name=str(table.id[row]),
                brokers=(int(table.id[row]),),
                partition_count=int(figures.leads[row] + figures.leads_internal[row]),
                amount=int(table.latency_us[row]) if kind is CheckKind.BROKER_SLOW else UNKNOWN,
                unreached=unreached,
                since_ms=int(since_ms[row]),
                since_is_bound=bool(figures.since_is_bound[row]),
            )


def vanished_findings(view: View) -> Iterator[CheckFinding]:
    """Yield the brokers that hold replicas, and that the cluster has not listed since before the check.

    Before Kafka 4.0, a cluster lists only the brokers that are alive.
    """
    replicas = view.snapshot.partitions.replicas
    named = np.setdiff1d(replicas[replicas >= 0], view.snapshot.brokers.id)
    for broker in named.tolist():
        yield CheckFinding(CheckKind.BROKER_GONE, Level.WARN, name=str(broker), brokers=(broker,))


def log_dir_findings(view: View) -> Iterator[CheckFinding]:
    """Yield the brokers that are up and have failed log directories, with what they have lost."""
    for failed in failed_dirs(view.snapshot):
        worst_first = np.concatenate(
            (np.flatnonzero(failed.leaderless), np.flatnonzero(failed.lost & ~failed.leaderless))
        )
        yield CheckFinding(
            CheckKind.LOG_DIR_OFFLINE,
            Level(failed.severity),
            name=str(failed.broker),
            brokers=(failed.broker,),
            paths=failed.paths,
            partitions=names_of(view, worst_first),
            partition_count=len(worst_first),
            leaderless=int(failed.leaderless.sum()),
            amount=failed.all,
        )


def log_dirs_not_judged(view: View, findings: Iterable[CheckFinding]) -> Iterator[NotJudged]:
    """Yield the brokers that are up and have offline replicas, but have not named a failed directory."""
    replicas, offline = view.snapshot.partitions.replicas, stranded(view.snapshot)
    named = [int(finding.name) for finding in findings if finding.kind is CheckKind.LOG_DIR_OFFLINE]
    ids = tuple(np.setdiff1d(replicas[offline], named).tolist())
    if ids:
        cause = cause_of(view.snapshot.observation, Part.LOG_DIRS)
        yield NotJudged((CheckKind.LOG_DIR_OFFLINE,), why_of(cause), _named(ids), ids, cause)


def controller_findings(view: View, down: Down) -> Iterator[CheckFinding]:
    """Yield what is wrong with the controllers, from the findings of the view.

    A controller that has the id of a broker is the same process.
    """
    for finding in view.headline.findings:
        if finding.kind in _NO_CONTROLLER:
            no_controller = CheckFinding(
                CheckKind.NO_CONTROLLER,
                Level(finding.severity),
                headline=finding.kind,
                since_ms=finding.since_ms,
            )
            if finding.kind is FindingKind.QUORUM_LOST:
                quorum = view.snapshot.quorum
                unheard = tuple(quorum.node[unheard_voters(quorum)].tolist())
                (active,), heard = finding.controllers, finding.count - len(unheard)
                no_controller = replace(no_controller, active=active, unheard=unheard, amount=heard)
            yield no_controller
        elif finding.kind is FindingKind.CONTROLLERS_LOST:
            for controller in finding.controllers:
                left = finding.count - len(finding.controllers)
                yield CheckFinding(
                    CheckKind.VOTER_LOST,
                    Level(finding.severity),
                    name=str(controller),
                    amount=left,
                    explained_by=(down[controller],) if controller in down else (),
                )


def transaction_findings(view: View) -> Iterator[tuple[CheckFinding, Longs]]:
    """Yield the transactions that the headline tells of, each with the rows of the partitions that it
    holds back."""
    for finding, rows in who_holds(view.snapshot, view.offsets):
        opened = finding.transaction
        assert opened is not None
        found = CheckFinding(
            CheckKind(finding.kind),
            Level(finding.severity),
            name=opened.transactional_id or _producer(opened.producer_id),
            since_ms=finding.since_ms,
            since_is_bound=finding.since_is_bound,
            transaction=finding,
        )
        yield found, rows


def throttle_findings(view: View) -> Iterator[CheckFinding]:
    """Yield the topics and brokers with a throttle, once the headline says that it was left behind."""
    if _tells_of_throttles(view):
        for left in throttles(view.snapshot):
            yield CheckFinding(
                CheckKind.THROTTLE_LEFT,
                Level.WEAKNESS,
                name=left.topic or str(left.broker),
                brokers=() if left.topic else (left.broker,),
                settings=left.settings,
            )


def throttles_not_judged(view: View) -> Iterator[NotJudged]:
    """Yield the throttles that may be of a move that has only just ended, or not begun."""
    snapshot = view.snapshot
    fails = any(failure.part == Part.REASSIGNMENTS for failure in snapshot.observation.failures)
    if not (_tells_of_throttles(view) or fails or len(snapshot.reassignments)):
        names = tuple(left.topic or str(left.broker) for left in throttles(snapshot))
        if names:
            yield NotJudged((CheckKind.THROTTLE_LEFT,), NotJudgedWhy.NO_HISTORY, names)


def _tells_of_throttles(view: View) -> bool:
    return any(finding.kind is FindingKind.THROTTLE_LEFT for finding in view.headline.findings)


def skew_findings(view: View, limits: Limits) -> Iterator[CheckFinding]:
    """Yield the brokers that lead, or hold, much more than the mean of the brokers that are up."""
    figures, up = view.brokers, _having(view, BrokerState.UP)
    leads = (figures.leads + figures.leads_internal).astype(np.int64)
    disk = view.snapshot.brokers.disk_bytes
    known = up & (disk != UNKNOWN)
    yield from _skewed(view, CheckKind.LEADER_SKEW, leads, up, limits.leader_skew, LEADERS_MORE)
    if (known == up).all():
        yield from _skewed(view, CheckKind.DISK_SKEW, disk, up, limits.disk_skew, DISK_MORE_BYTES)


def _skewed(
    view: View, kind: CheckKind, amounts: Longs, up: Flags, times: float, more: int
) -> Iterator[CheckFinding]:
    if int(up.sum()) < 2:
        return
    mean = float(amounts[up].astype(np.float64).mean())
    over = up & (amounts >= times * mean) & (amounts - mean >= more)
    for row in np.flatnonzero(over).tolist():
        broker = int(view.snapshot.brokers.id[row])
        amount = int(amounts[row])
        yield CheckFinding(
            kind, Level.WEAKNESS, name=str(broker), brokers=(broker,), amount=amount, mean=mean
        )


def loss_findings(view: View, accepted: Flags, may_explain: Causes) -> Iterator[CheckFinding]:
    """Yield each broker and each rack whose loss would leave partitions offline or under min ISR.

    `accepted` marks the partitions whose loss the user accepts; they do not count. A loss that would do no
    harm if every replica were in sync has a cause.
    """
    table, brokers = view.snapshot.partitions, view.snapshot.brokers
    left = standing(table, view.partitions, may_explain.stranded)
    left.eligible[accepted], left.in_sync[accepted] = False, False
    left.required[accepted] = -1
    all_in_sync = (table.replicas >= 0) & ~accepted[:, None]
    whole, missing = replace(left, eligible=all_in_sync, in_sync=all_in_sync), all_in_sync & ~left.in_sync

    def explained_losses(kind: CheckKind, domain: Longs) -> Iterator[tuple[Loss, CheckFinding]]:
        by_design = {loss.domain: loss.rows for loss in losses(whole, domain)} if may_explain else {}
        for loss in losses(left, domain):
            rows, causes = loss.rows, tuple[Key, ...]()
            if not np.isin(rows, by_design.get(loss.domain, ())).any():
                causes = may_explain.of(rows, missing[rows])
            yield loss, _loss(view, kind, loss, causes)

    for loss, finding in explained_losses(CheckKind.BROKER_LOSS, broker_domains(table, brokers)):
        broker = int(brokers.id[loss.domain])
        yield replace(finding, name=str(broker), brokers=(broker,))
    racks = rack_names(brokers)
    if len(racks) < 2:
        return
    for loss, finding in explained_losses(CheckKind.RACK_LOSS, rack_domains(table, brokers)):
        inside = np.asarray(brokers.rack == racks[loss.domain], np.bool_)
        yield replace(finding, name=racks[loss.domain], brokers=tuple(brokers.id[inside].tolist()))


def _loss(view: View, kind: CheckKind, loss: Loss, causes: tuple[Key, ...]) -> CheckFinding:
    rows = loss.rows
    return CheckFinding(
        kind,
        Level.WEAKNESS,
        partitions=names_of(view, rows),
        partition_count=len(rows),
        leaderless=len(loss.leaderless),
        under_min_isr=len(loss.under_min),
        explained_by=causes,
    )


def brokers_not_judged(view: View, watched_ms: int) -> Iterator[NotJudged]:
    """Yield what could not be judged about brokers. `watched_ms` is how long the check has lasted."""
    table = view.snapshot.brokers
    undecided = late(table) | _having(view, BrokerState.STARTING)
    if undecided.any():
        ids = _ids(view, undecided)
        yield NotJudged((CheckKind.BROKER_SILENT,), NotJudgedWhy.NO_HISTORY, _named(ids), ids)
    up = _having(view, BrokerState.UP)
    if watched_ms < SLOW_AFTER_MS and up.any():
        yield NotJudged((CheckKind.BROKER_SLOW,), NotJudgedWhy.NO_HISTORY)
    else:
        unmeasured = up & (table.latency_us == UNKNOWN)
        quiet = unmeasured | _having(view, BrokerState.SILENT)
        alike = up & (table.latency_us >= NO_LINK_TAKES_US) & (view.brokers.slow_since_ms == UNKNOWN)
        for why, mask in ((NotJudgedWhy.NOT_ANSWERED, quiet), (NotJudgedWhy.NO_COMPARISON, alike)):
            if mask.any():
                ids = _ids(view, mask)
                yield NotJudged((CheckKind.BROKER_SLOW,), why, _named(ids), ids)
    yield from _disks_not_judged(view, up)
    racks = np.array([bool(rack) for rack in table.rack.tolist()], np.bool_)
    placed = np.asarray(np.isin(table.id, view.snapshot.partitions.replicas), np.bool_)
    if len(rack_names(table)) > 1 and (placed & ~racks).any():
        ids = _ids(view, placed & ~racks)
        kinds = (CheckKind.NOT_RACK_SAFE, CheckKind.RACK_LOSS)
        yield NotJudged(kinds, NotJudgedWhy.RACK_UNKNOWN, brokers=ids)


def _disks_not_judged(view: View, up: Flags) -> Iterator[NotJudged]:
    table, seen = view.snapshot.brokers, view.snapshot.observation
    unread = up & (table.disk_bytes == UNKNOWN)
    if int(up.sum()) > 1 and unread.any():
        cause = cause_of(seen, Part.LOG_DIRS)
        yield NotJudged((CheckKind.DISK_SKEW,), why_of(cause), brokers=_ids(view, unread), cause=cause)


def controllers_not_judged(view: View, findings: Iterable[CheckFinding]) -> Iterator[NotJudged]:
    """Yield what could not be judged about the controllers. `findings` are those of the controllers."""
    seen = view.snapshot.observation
    if any(finding.kind is CheckKind.NO_CONTROLLER for finding in findings):
        yield NotJudged((CheckKind.VOTER_LOST,), NotJudgedWhy.NOT_ANSWERED)
        return
    has_quorum = "quorum" in seen.capabilities
    known = seen.quorum_received_ms != UNKNOWN if has_quorum else seen.controller_id != UNKNOWN_ID
    if known:
        return
    cause = cause_of(seen, Part.QUORUM)
    yield NotJudged(_CONTROLLER_KINDS, why_of(cause), cause=cause)


def _ids(view: View, mask: Flags) -> tuple[int, ...]:
    return tuple(view.snapshot.brokers.id[mask].tolist())


def _named(ids: tuple[int, ...]) -> tuple[str, ...]:
    return tuple(map(str, ids))


def _producer(id: int) -> str:
    return "producer-" + (str(id) if id != UNKNOWN else "unknown")
