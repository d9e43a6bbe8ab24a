"""What a check cannot judge: it says so, says why, and does not end as healthy."""

from collections.abc import Callable

import numpy as np
import pytest
from msgspec.structs import replace

from kview.derive.checks.cluster import NO_LINK_TAKES_US
from kview.derive.checks.failed_parts import KINDS, METADATA_KINDS, TOLD_ELSEWHERE
from kview.derive.checks.judge import Watch, is_deciding, more_tells
from kview.derive.checks.judge import step as judge
from kview.derive.checks.outcome import Outcome, Rules, outcome_of
from kview.derive.checks.partitions import MIN_ISR_KINDS
from kview.language import checks
from kview.model.checks import GROUP_KINDS, CheckKind, NotJudgedWhy
from kview.model.events import SEVERITY_ORDER, Severity
from kview.model.failures import FailureKind, Part
from kview.model.snapshot import Failure, Snapshot
from kview.model.units import NO_BROKER, UNKNOWN, UNKNOWN_ID
from tests.derive.checking import rules
from tests.worlds import World, default_world, views
from tests.worlds.log_dirs import with_offline

K, Why = CheckKind, NotJudgedWhy
Change = Callable[[Snapshot], Snapshot]

BY_NAME = (
    *("min_isr_1:__*", "min_isr_1:invoice", "replication_factor_1:audit-log"),
    *("broker_loss:?", "rack_loss:R?", "group_stopped:audit-export"),
)
"""What is to say about the default world as it is set up, without ignoring a kind as a whole."""


def failing(part: Part, broker: int, kind: FailureKind, code: int = UNKNOWN_ID) -> Change:
    """A part that failed in every observation."""

    def change(snapshot: Snapshot) -> Snapshot:
        failures = (*snapshot.observation.failures, Failure(part, broker, kind, code))
        return replace(snapshot, observation=replace(snapshot.observation, failures=failures))

    return change


def without_disks(snapshot: Snapshot) -> Snapshot:
    refused = failing(Part.LOG_DIRS, 0, FailureKind.KAFKA_ERROR, 31)(snapshot)
    return replace(refused, brokers=replace(refused.brokers, disk_bytes=np.full(6, UNKNOWN, np.int64)))


def without_settings(snapshot: Snapshot) -> Snapshot:
    table = snapshot.partitions
    hidden = np.where(table.topic == "payment", UNKNOWN_ID, table.min_isr).astype(np.int32)
    refused = failing(Part.CONFIGS, NO_BROKER, FailureKind.KAFKA_ERROR, 29)(snapshot)
    return replace(refused, partitions=replace(table, min_isr=hidden))


def without_quorum(snapshot: Snapshot) -> Snapshot:
    refused = failing(Part.QUORUM, NO_BROKER, FailureKind.KAFKA_ERROR, 31)(snapshot)
    seen = replace(refused.observation, controller_id=UNKNOWN_ID, quorum_received_ms=UNKNOWN)
    return replace(refused, observation=seen)


def owing(snapshot: Snapshot) -> Snapshot:
    """Broker 3 owes an answer."""
    answers = snapshot.brokers.id != 3
    return replace(snapshot, brokers=replace(snapshot.brokers, answers=answers))


def with_latencies(*latencies_us: int) -> Change:
    def change(snapshot: Snapshot) -> Snapshot:
        column = np.array(latencies_us, np.int64)
        return replace(snapshot, brokers=replace(snapshot.brokers, latency_us=column))

    return change


def with_lost_replica(snapshot: Snapshot) -> Snapshot:
    """A replica of a broker that is up is offline, and the broker does not say why."""
    change = failing(Part.LOG_DIRS, 4, FailureKind.KAFKA_ERROR, 31)
    return change(with_offline(snapshot, 4, [("invoice", 3)]))


def without_racks(snapshot: Snapshot) -> Snapshot:
    racks = snapshot.brokers.rack.copy()
    racks[3] = ""
    return replace(snapshot, brokers=replace(snapshot.brokers, rack=racks))


def unread(snapshot: Snapshot) -> Snapshot:
    """No leader has said where its partitions end."""
    never = np.full(len(snapshot.partitions), UNKNOWN, np.int64)
    table = replace(snapshot.partitions, high_watermark=never, high_watermark_ms=never)
    return replace(snapshot, partitions=table)


def checked(change: Change, seconds: int = 8) -> Outcome:
    """A check of a healthy cluster, of which `change` takes something away in every observation."""
    world, watch = default_world(), Watch(ignore=rules(*BY_NAME))
    for view in views(change(world.tick()) for _ in range(seconds)):
        watch, found = judge(watch, view)
    return outcome_of(view, found, seconds * 1000, Rules())


SLOWEST = NO_LINK_TAKES_US + 1

CASES = {
    "metadata": (failing(Part.METADATA, 0, FailureKind.MALFORMED), METADATA_KINDS, Why.NOT_ANSWERED),
    "topics": (
        failing(Part.TOPICS, NO_BROKER, FailureKind.KAFKA_ERROR, 29),
        (*METADATA_KINDS, *GROUP_KINDS),
        Why.NOT_AUTHORIZED,
    ),
    "metadata late": (failing(Part.METADATA, 0, FailureKind.OVERDUE), METADATA_KINDS, Why.NO_HISTORY),
    "fenced": (
        failing(Part.REGISTERED_BROKERS, 0, FailureKind.KAFKA_ERROR, 31),
        (K.BROKER_FENCED,),
        Why.NOT_AUTHORIZED,
    ),
    "settings": (without_settings, MIN_ISR_KINDS, Why.NOT_AUTHORIZED),
    "offsets": (failing(Part.OFFSETS, 4, FailureKind.MALFORMED), (K.FROZEN,), Why.NOT_ANSWERED),
    "offsets never": (unread, (K.FROZEN,), Why.NO_HISTORY),
    "producers": (
        failing(Part.PRODUCERS, 4, FailureKind.CLOSED),
        (K.OPEN_TRANSACTION, K.HANGING_TRANSACTION),
        Why.NOT_ANSWERED,
    ),
    "reassignments": (
        failing(Part.REASSIGNMENTS, NO_BROKER, FailureKind.KAFKA_ERROR, 31),
        (K.THROTTLE_LEFT,),
        Why.NOT_AUTHORIZED,
    ),
    "broker settings": (
        failing(Part.SESSION_TIMEOUT, 4, FailureKind.KAFKA_ERROR, 31),
        (K.THROTTLE_LEFT,),
        Why.NOT_AUTHORIZED,
    ),
    "quorum": (without_quorum, (K.NO_CONTROLLER, K.VOTER_LOST), Why.NOT_AUTHORIZED),
    "disks": (without_disks, (K.DISK_SKEW,), Why.NOT_AUTHORIZED),
    "log dirs": (with_lost_replica, (K.LOG_DIR_OFFLINE,), Why.NOT_AUTHORIZED),
    "racks": (without_racks, (K.NOT_RACK_SAFE, K.RACK_LOSS), Why.RACK_UNKNOWN),
    "late": (owing, (K.BROKER_SILENT,), Why.NO_HISTORY),
    "slow": (with_latencies(*[SLOWEST] * 6), (K.BROKER_SLOW,), Why.NO_COMPARISON),
    "groups": (failing(Part.GROUPS, 3, FailureKind.SILENT), GROUP_KINDS, Why.NOT_ANSWERED),
    "groups late": (failing(Part.GROUPS, 3, FailureKind.OVERDUE), GROUP_KINDS, Why.NO_HISTORY),
    "groups refused": (
        failing(Part.GROUPS, NO_BROKER, FailureKind.KAFKA_ERROR, 30),
        GROUP_KINDS,
        Why.NOT_AUTHORIZED,
    ),
    "connect": (
        failing(Part.CONNECTORS, NO_BROKER, FailureKind.HTTP_STATUS, 401),
        (K.CONNECT_TASK_FAILED,),
        Why.NOT_ANSWERED,
    ),
    "commits": (failing(Part.COMMITS, 3, FailureKind.CLOSED), GROUP_KINDS, Why.NOT_ANSWERED),
}


@pytest.mark.parametrize("case", CASES)
def test_what_cannot_be_judged_is_not_healthy_and_says_why(case: str) -> None:
    """If only weaknesses were not judged, nothing can be wrong now."""
    change, kinds, why = CASES[case]
    outcome = checked(change)
    assert outcome.healthy is (case in ("disks", "racks", "reassignments", "broker settings"))
    found = [item for item in outcome.judgement.not_judged if set(item.kinds) == set(kinds)]
    assert [item.why for item in found] == [why], outcome.judgement.not_judged
    assert len(checks.not_judged(found[0])) > 20


def test_there_is_a_case_for_every_kind() -> None:
    assert {kind for _, kinds, _ in CASES.values() for kind in kinds} == set(CheckKind)


def test_every_part_of_an_observation_is_heeded_once() -> None:
    assert KINDS.keys() | TOLD_ELSEWHERE == set(Part)
    assert not KINDS.keys() & TOLD_ELSEWHERE


def test_with_everything_answered_nothing_is_open() -> None:
    outcome = checked(lambda snapshot: snapshot)
    assert (outcome.judgement.findings, outcome.judgement.not_judged, outcome.healthy) == ((), (), True)


def test_a_slow_broker_that_owes_an_answer_does_not_keep_a_check_waiting() -> None:
    slow = with_latencies(1_000, 1_000, 1_000, 800_000, 1_000, 1_000)
    found = checked(lambda snapshot: owing(slow(snapshot))).judgement
    assert [finding.key for finding in found.findings] == [(K.BROKER_SLOW, "3")]
    assert [item.kinds for item in found.not_judged] == [(K.BROKER_SILENT,)]
    assert not more_tells(found) and not is_deciding(found)
    only_late = checked(owing).judgement
    assert more_tells(only_late) and is_deciding(only_late)


def test_the_words_name_who_and_why() -> None:
    (late,) = checked(CASES["groups late"][0]).judgement.not_judged
    assert (
        checks.not_judged(late) == "still waiting for an answer from broker 3: observe for longer (--for 90s)"
    )
    (slow,) = checked(with_latencies(*[SLOWEST] * 6)).judgement.not_judged
    assert checks.not_judged(slow).startswith("6 brokers take more than a second to answer, and there is no")


@pytest.mark.quick(3)
@pytest.mark.parametrize("broker", [0, 4])
@pytest.mark.parametrize("end", ["crash", "cut", "hang"])
def test_a_check_is_never_calmer_than_the_headline(end: str, broker: int) -> None:
    """At every moment of a failover, too: if the dashboard has something to say, the check is not healthy."""
    world, watch = default_world(), Watch(ignore=rules(*BY_NAME))
    world.groups.remove(world.group("audit-export"))  # it is ignored by name, not by the headline
    calm = SEVERITY_ORDER.index(Severity.WARN)
    troubled = 0
    for second, view in enumerate(views(faulted(world, second, end, broker) for second in range(40))):
        watch, found = judge(watch, view)
        if SEVERITY_ORDER.index(view.headline.severity) <= calm:
            troubled += 1
            kinds = [finding.kind for finding in view.headline.findings]
            assert not outcome_of(view, found, second * 1000, Rules()).healthy, (second, kinds)
    assert troubled > 10


def faulted(world: World, second: int, end: str, broker: int) -> Snapshot:
    if second == 8:
        if end == "cut":
            world.cut(broker)
        else:
            world.crash(broker, FailureKind.REFUSED if end == "crash" else FailureKind.SILENT)
    if second == 25:
        world.back(broker)
    return world.tick()


def test_brokers_that_the_cluster_no_longer_lists_are_found_by_their_replicas() -> None:
    """Before Kafka 4.0, a cluster does not list a broker that was lost before the check."""

    def unlisted(snapshot: Snapshot) -> Snapshot:
        return replace(snapshot, brokers=snapshot.brokers.take(snapshot.brokers.id != 4))

    gone = [f for f in checked(unlisted).judgement.findings if f.kind is K.BROKER_GONE]
    assert [(finding.name, finding.since_ms) for finding in gone] == [("4", UNKNOWN)]
    assert checks.sentence(gone[0], 0) == (
        "broker 4 is no longer listed by the cluster, since before the check."
        " Start it again, unless it was removed on purpose"
    )
