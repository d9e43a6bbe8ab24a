"""Pages of metrics, healthy and in every kind of trouble that an alert is about."""

from collections.abc import Mapping

import numpy as np
from msgspec.structs import replace

from kview.derive.fold import State, step
from kview.derive.view import View
from kview.model.events import Severity
from kview.model.failures import FailureKind, Part
from kview.model.findings import Finding, FindingKind
from kview.model.snapshot import Failure, Snapshot, TopicConfigs
from kview.model.units import NO_BROKER, UNKNOWN
from kview.plain.own_series import Limits
from tests.plain.scraped import Series, page_of, read
from tests.worlds import START_MS, World, default_world
from tests.worlds.connect import FAILED, with_connectors
from tests.worlds.log_dirs import TOTAL, with_dirs
from tests.worlds.tables import table
from tests.worlds.transactions import holding

QUARTER_H_MS = 900_000


def calm_world() -> World:
    """The default world without the group that has stopped."""
    world = default_world()
    world.groups = [group for group in world.groups if group.name != "audit-export"]
    return world


def snapshot(world: World | None = None, seconds: int = 3) -> Snapshot:
    world = world or calm_world()
    *_, last = (world.tick() for _ in range(seconds))
    return last


def seen(one: Snapshot) -> View:
    return step(State(), one)[1]


def keeping(one: Snapshot, before: int, most: int = 10**9, ms: int = 604_800_000) -> Snapshot:
    """The snapshot, in which logs begin so many records before the commits of audit-export, and retention
    keeps so many bytes and so long."""
    settings = {"cleanup.policy": "delete", "retention.bytes": str(most), "retention.ms": str(ms)}
    rows = [
        {"topic": topic, "name": name, "value": value, "source": "DEFAULT_CONFIG"}
        for topic in sorted(set(one.partitions.topic.tolist()))
        for name, value in settings.items()
    ]
    start, offsets = one.partitions.log_start.copy(), one.offsets
    of_group = np.asarray(offsets.group == "audit-export", np.bool_)
    start[np.asarray(one.partitions.topic == "audit-log", np.bool_)] = offsets.committed[of_group] - before
    return replace(
        one,
        topic_configs=table(TopicConfigs, rows),
        partitions=replace(one.partitions, log_start=start),
    )


def full_in(view: View, ms: int) -> View:
    """The view, in which all log directories are full so long after the world began."""
    return replace(view, dirs_full_ms=np.full(len(view.dirs_full_ms), START_MS + ms))


def with_unclean_election(view: View) -> View:
    found = Finding(FindingKind.UNCLEAN_ELECTION, Severity.RISK, topics=("invoice",), count=7)
    return replace(view, headline=replace(view.headline, findings=(found,)))


def with_lost_records(view: View) -> View:
    return replace(view, groups=replace(view.groups, lost=np.full(len(view.groups.lost), 9)))


def with_slow_broker(view: View) -> View:
    since_ms = np.where(view.snapshot.brokers.id == 3, START_MS, UNKNOWN)
    return replace(view, brokers=replace(view.brokers, slow_since_ms=since_ms))


def with_bounds_of_time(view: View) -> View:
    """The view, in which all that is known of time behind is a bound."""
    bound = np.ones(len(view.offsets.behind_ms), np.bool_)
    return replace(view, offsets=replace(view.offsets, behind_is_bound=bound))


def with_silent_controllers(one: Snapshot) -> Snapshot:
    late_ms = one.observation.ended_ms - 20_000
    failures = (Failure(Part.QUORUM, NO_BROKER, FailureKind.OVERDUE),)
    return replace(one, observation=replace(one.observation, quorum_received_ms=late_ms, failures=failures))


def without_majority(one: Snapshot) -> Snapshot:
    fetched_ms = one.quorum.last_fetch_ms.copy()
    fetched_ms[one.quorum.node != one.observation.controller_id] -= 60_000
    return replace(one, quorum=replace(one.quorum, last_fetch_ms=fetched_ms))


def with_few_internal_in_sync(one: Snapshot) -> Snapshot:
    """The snapshot, in which of the replicas of internal topics only leaders are in sync."""
    table = one.partitions
    isr, min_isr = table.isr.copy(), table.min_isr.copy()
    isr[table.internal] = -1
    isr[table.internal, 0] = table.leader[table.internal]
    min_isr[table.internal] = 2
    return replace(one, partitions=replace(table, isr=isr, min_isr=min_isr))


def without_controller(one: Snapshot) -> Snapshot:
    return replace(one, observation=replace(one.observation, controller_id=NO_BROKER))


def denied(one: Snapshot) -> Snapshot:
    failures = (Failure(Part.GROUPS, 0, FailureKind.KAFKA_ERROR, 30),)
    return replace(one, observation=replace(one.observation, failures=failures))


def with_lost_controller(one: Snapshot) -> Snapshot:
    fetched_ms = one.quorum.last_fetch_ms.copy()
    fetched_ms[one.quorum.node == 102] = one.observation.ended_ms - 60_000
    return replace(one, quorum=replace(one.quorum, last_fetch_ms=fetched_ms))


def crashed(*brokers: int, seconds: int) -> View:
    world = calm_world()
    state = State()
    for _ in range(3):
        state, view = step(state, world.tick())
    for broker in brokers:
        world.crash(broker)
    for _ in range(seconds):
        state, view = step(state, world.tick())
    return view


def series(view: View, limits: Limits | None = None) -> Series:
    """The series of a page. Points in time are seconds since the world began, as promtool's begin at 0."""
    found = read(page_of(view, limits or Limits()))
    began_s = START_MS / 1000
    return {
        key: value - began_s if key[0].endswith("_timestamp_seconds") else value
        for key, value in found.items()
    }


def with_verdict(found: Series, verdict: str) -> Series:
    """The series, in which a group that was well has this verdict."""
    key = "kview_group_verdict"
    changed = dict(found)
    for each, is_so in (("ok", 0.0), (verdict, 1.0)):
        at = key, (("group", "billing"), ("verdict", each))
        assert at in changed
        changed[at] = is_so
    return changed


def pages() -> Mapping[str, tuple[Series, set[str]]]:
    """Pages by what is wrong, and the alerts that fire if it stays so."""
    plain = snapshot()
    calm = series(seen(plain))
    behind = snapshot(default_world(), 5)
    dirs = seen(with_dirs(plain, 4))
    stopped = {"KafkaGroupStopped"}
    return {
        "nothing": (calm, set()),
        "kview may not list groups": (series(seen(denied(plain))), {"KviewReadsFail"}),
        "a log directory has failed": (
            series(seen(with_dirs(plain, 4, failed=True))),
            {"KafkaLogDirFailed"},
        ),
        "a disk has 5% left": (
            series(seen(with_dirs(plain, 4, usable=TOTAL // 20))),
            {"KafkaLogDirNearlyFull"},
        ),
        "disks fill in 3 h": (series(full_in(dirs, 12 * QUARTER_H_MS)), {"KafkaLogDirFills"}),
        "disks fill in 10 h": (series(full_in(dirs, 40 * QUARTER_H_MS)), set()),
        "tasks have failed": (
            series(seen(with_connectors(plain, FAILED))),
            {"KafkaConnectTaskFailed", "KafkaConnectorFailed"},
        ),
        "a transaction is open": (
            series(seen(holding(plain, "invoice", 3, 5, plain.observation.ended_ms - 2 * QUARTER_H_MS))),
            {"KafkaTransactionHolds"},
        ),
        "a group is far behind": (
            series(seen(keeping(behind, 5_000))),
            {"KafkaGroupNearRetention"} | stopped,
        ),
        "a log without a limit of size begins at the commit": (series(seen(keeping(behind, 0, -1))), stopped),
        "a group is at least so far behind in time": (
            series(with_bounds_of_time(seen(keeping(behind, 50_000, -1, 100_000)))),
            {"KafkaGroupNearRetention"} | stopped,
        ),
        "records are kept for long": (series(seen(keeping(behind, 50_000))), stopped),
        "no controller": (series(seen(without_controller(plain))), {"KafkaNoController"}),
        "no controller answers": (
            series(seen(with_silent_controllers(plain))),
            {"KafkaNoController", "KviewReadsFail"},
        ),
        "no majority of the controllers": (series(seen(without_majority(plain))), {"KafkaNoController"}),
        "a controller is lost": (series(seen(with_lost_controller(plain))), {"KafkaControllerLost"}),
        "internal partitions are out of sync": (
            series(seen(with_few_internal_in_sync(plain))),
            {"KafkaPartitionsUnderMinIsr", "KafkaPartitionsUnderReplicated"},
        ),
        "an unclean election": (series(with_unclean_election(seen(plain))), {"KafkaUncleanElection"}),
        "records are lost": (series(with_lost_records(seen(plain))), {"KafkaGroupLostRecords"}),
        "a broker is slow": (series(with_slow_broker(seen(plain))), {"KafkaBrokerSlow"}),
        **{
            verdict: (with_verdict(calm, verdict), {alert})
            for verdict, alert in (
                ("stuck", "KafkaGroupStuck"),
                ("falling_behind", "KafkaGroupFallsBehind"),
                ("blocked_by_transaction", "KafkaGroupBlocked"),
                ("ahead_of_log", "KafkaGroupAheadOfLog"),
            )
        },
    }
