"""The words of a check: every kind says what is wrong and what to do, with its numbers."""

import pytest
from msgspec.structs import replace

from kview.derive.checks.groups import KINDS
from kview.derive.view import Reason
from kview.language import checks
from kview.model.checks import (
    GROUP_KINDS,
    WEAKNESSES,
    CheckFinding,
    CheckKind,
    Level,
    NotJudged,
    NotJudgedWhy,
)
from kview.model.events import Severity
from kview.model.failures import Cause, FailureKind
from kview.model.findings import Finding, FindingKind, OpenTransaction
from kview.model.units import UNKNOWN
from kview.plain.schema_check import AMOUNTS, CHECK_KINDS
from tests.language.said import well_said

NOW_MS = 1_760_000_000_000
VERDICTS = {kind: verdict for verdict, kind in KINDS.items()}

K = CheckKind


def finding(kind: CheckKind, **numbers: object) -> CheckFinding:
    facts = {
        "name": "4",
        "brokers": (4, 5),
        "paths": ("/data",),
        "partitions": (("orders", 3), ("orders", 9)),
        "partition_count": 2,
        "of_partitions": 10,
        "leaderless": 1,
        "under_min_isr": 1,
        "replicas": 3,
        "amount": 120_000,
        "mean": 60_000.0,
        "settings": ("leader.replication.throttled.rate",),
        "verdict": VERDICTS.get(kind, ""),
        "headline": FindingKind.NO_CONTROLLER if kind is K.NO_CONTROLLER else None,
        "behind_ms": 70_000,
        "since_ms": NOW_MS - 12_000,
    }
    if kind in (K.OPEN_TRANSACTION, K.HANGING_TRANSACTION):
        opened = OpenTransaction("payments", 3, 32, 4_711, server="10.0.0.1:9092")
        facts["transaction"] = Finding(FindingKind(kind), Severity.WARN, partitions=1, transaction=opened)
    level = Level.WEAKNESS if kind in WEAKNESSES else Level.WARN
    return CheckFinding(kind, level, **{**facts, **numbers})  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", CheckKind)
def test_every_kind_says_what_is_wrong_since_when_and_what_to_do(kind: CheckKind) -> None:
    said = checks.sentence(finding(kind), NOW_MS)
    well_said(said, [])
    assert ("for 12 s" in said) is (kind not in WEAKNESSES and kind not in GROUP_KINDS)
    todo = checks.remedy(finding(kind))
    assert said.endswith(todo[1:]) and len(todo) > 10


def test_every_kind_and_amount_is_in_the_schema() -> None:
    assert CHECK_KINDS.keys() == set(CheckKind)
    told = {
        kind
        for kind in CheckKind
        if checks.what(finding(kind, amount=7)) != checks.what(finding(kind, amount=7_000_000))
    }
    assert told <= AMOUNTS.keys()
    assert AMOUNTS.keys() - told == {K.NO_CONTROLLER}


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (
            finding(K.OFFLINE, partition_count=1, partitions=(("orders", 3),), brokers=(4,)),
            "1 of 10 partitions (3) has no leader, for 12 s. Start broker 4: no other replica may lead",
        ),
        (
            finding(K.BROKER_LOSS, brokers=(4,)),
            "losing broker 4 would leave 1 partition without an eligible leader and 1 more under min ISR"
            " (orders-3, orders-9). Add replicas on other brokers with"
            " kafka-reassign-partitions.sh",
        ),
        (
            finding(K.RACK_LOSS, name="R1", leaderless=0, partition_count=5, under_min_isr=5),
            "losing rack R1 (brokers 4 and 5) would leave 5 partitions under min ISR (orders-3, orders-9 + 3"
            " more). Spread the replicas over more racks with kafka-reassign-partitions.sh",
        ),
        (
            finding(K.GROUP_STOPPED, reason=Reason.NO_MEMBERS, is_bound=True),
            "stopped (no members, ≥ 1 m 10 s behind). Start its consumers, or delete the group if"
            " nobody needs it",
        ),
        (
            finding(K.GROUP_STOPPED, group_type="simple", reason=Reason.COMMIT_OVERDUE, reason_ms=300_000),
            "simple group: stopped (no commit for 5 m, 1 m 10 s behind). Check the job that commits under"
            " this name",
        ),
        (
            finding(K.GROUP_LOST_RECORDS, group_type="streams", amount=50),
            "streams group: 50 records deleted before being read. Raise the topic's retention, or make the"
            " consumers faster",
        ),
        (
            finding(K.GROUP_REWOUND, group_type="classic", behind_ms=UNKNOWN),
            "rewound. Check whether somebody reset its offsets: it is reading records again",
        ),
        (
            finding(K.LEADER_SKEW, amount=120, mean=50.0),
            "broker 4 leads 120 partitions, 2.4 times the mean. Run kafka-leader-election.sh"
            " --election-type preferred, or use kafka-reassign-partitions.sh",
        ),
        (
            finding(K.BROKER_SILENT, unreached=True, since_is_bound=True),
            "broker 4 does not answer kview, although the cluster still hears from it, for ≥ 12 s. Check the"
            " network between kview and the broker",
        ),
    ],
)
def test_what_a_kind_says(found: CheckFinding, said: str) -> None:
    assert checks.sentence(found, NOW_MS) == said


@pytest.mark.parametrize(
    ("lasted_ms", "said"), [(0, ""), (999, ""), (1_000, "for 1.0 s"), (150_000, "for 2 m 30 s")]
)
def test_what_was_seen_a_moment_ago_has_no_length_yet(lasted_ms: int, said: str) -> None:
    found = finding(K.OFFLINE, since_ms=NOW_MS - lasted_ms)
    assert checks.since(found, NOW_MS) == said
    assert f"no leader{said and ', '}{said}. Start" in checks.sentence(found, NOW_MS)
    assert checks.since(finding(K.GROUP_STUCK, since_ms=NOW_MS - lasted_ms), NOW_MS) == ""


def test_what_is_explained_names_its_causes_and_gives_no_advice() -> None:
    causes = tuple((K.BROKER_GONE, str(broker)) for broker in range(5))
    found = finding(K.UNDER_REPLICATED, explained_by=causes)
    assert checks.sentence(found, NOW_MS).endswith(
        "for 12 s. Explained by broker_gone:0, broker_gone:1, broker_gone:2 and 2 more findings"
    )


def down(broker: int) -> CheckFinding:
    return finding(K.BROKER_GONE, name=str(broker), brokers=(broker,))


def held_by(application: str) -> CheckFinding:
    return finding(K.OPEN_TRANSACTION, name=application, brokers=())


@pytest.mark.parametrize(
    ("causes", "found", "not_judged", "said"),
    [
        (
            [down(4)],
            [finding(K.UNDER_REPLICATED), finding(K.UNDER_REPLICATED, partition_count=46)],
            0,
            "explains 2 more: 48 under-replicated partitions",
        ),
        (
            [down(3), down(4)],
            [finding(K.OFFLINE, partition_count=7), finding(K.AT_MIN_ISR, partition_count=1)],
            1,
            "brokers 3 and 4 explain 3 more: 7 partitions without a leader (orders-3, orders-9 + 5 more),"
            " 1 partition at min ISR, 1 not judged",
        ),
        (
            [down(4)],
            [finding(K.GROUP_BLOCKED, name=name, partition_count=0) for name in "abcd"],
            0,
            "explains 4 more: 4 groups blocked (a, b, c and 1 more group)",
        ),
        (
            [down(4)],
            [finding(K.VOTER_LOST), finding(K.BROKER_LOSS), finding(K.RACK_LOSS), finding(K.RACK_LOSS)],
            0,
            "explains 4 more: 1 controller down or not fetching, 1 more broker that must stay up,"
            " 2 more racks that must stay up",
        ),
        ([down(4)], [], 2, "explains 2 more: 2 not judged"),
        (
            [held_by("pay")],
            [finding(K.GROUP_BLOCKED_BY_TRANSACTION, partition_count=0)],
            0,
            "explains 1 more: 1 group blocked by a transaction",
        ),
        (
            [held_by("pay"), down(3), down(4)],
            [finding(K.GROUP_BLOCKED_BY_TRANSACTION, partition_count=0), finding(K.UNDER_REPLICATED)],
            0,
            "brokers 3 and 4, open_transaction:pay explain 2 more: 1 group blocked by a transaction,"
            " 2 under-replicated partitions",
        ),
    ],
)
def test_what_causes_explain(
    causes: list[CheckFinding], found: list[CheckFinding], not_judged: int, said: str
) -> None:
    risks = (K.OFFLINE, K.GROUP_BLOCKED)
    found = [replace(each, level=Level.RISK) if each.kind in risks else each for each in found]
    assert checks.explains(causes, found, not_judged) == said
    well_said(said)


def test_partitions_are_listed_up_to_a_number() -> None:
    many = tuple(("orders", number) for number in range(20))
    found = finding(K.UNDER_REPLICATED, partitions=many, partition_count=300, of_partitions=400)
    assert checks.what(found).startswith(
        "300 of 400 partitions (0, 1, 2, 3, 4, 5, 6, 7 + 292 more) are under-replicated"
    )
    assert checks.what(finding(K.OFFLINE, partition_count=1, of_partitions=1)).startswith(
        "its only partition"
    )


@pytest.mark.parametrize("why", NotJudgedWhy)
def test_every_reason_for_not_judging_is_said(why: NotJudgedWhy) -> None:
    cause = Cause(FailureKind.KAFKA_ERROR, 29)
    well_said(checks.not_judged(NotJudged((K.FROZEN,), why, ("a",), (4,), cause)))


def test_not_judged_names_kinds_topics_and_the_error() -> None:
    cause = Cause(FailureKind.KAFKA_ERROR, 29)
    names = tuple(f"topic-{number}" for number in range(5))
    item = NotJudged((K.UNDER_MIN_ISR, K.AT_MIN_ISR), NotJudgedWhy.NOT_AUTHORIZED, names, cause=cause)
    assert checks.not_judged_label(item) == (
        "under_min_isr, at_min_isr:topic-0, topic-1, topic-2 and 2 more names"
    )
    assert checks.not_judged(item) == (
        "kview is not authorized to ask (TOPIC_AUTHORIZATION_FAILED): grant its user Describe"
        " and DescribeConfigs"
    )


def test_brokers_that_do_not_support_a_request_agree_with_their_verb() -> None:
    for brokers, said in (
        ((4,), "broker 4 does not support the request: newer versions of Kafka do"),
        ((4, 5), "brokers 4 and 5 do not support the request: newer versions of Kafka do"),
        ((), "the cluster does not support the request: newer versions of Kafka do"),
    ):
        item = NotJudged((K.BROKER_SLOW,), NotJudgedWhy.UNSUPPORTED, brokers=brokers)
        assert checks.not_judged(item) == said


def test_brokers_that_are_not_known_to_be_the_cause_are_not_named() -> None:
    for brokers, said in (
        ((), "check that the brokers of its replicas are up and can keep up"),
        ((4,), "check that broker 4 is up and can keep up"),
        ((4, 5), "check that brokers 4 and 5 are up and can keep up"),
    ):
        assert checks.remedy(finding(K.FROZEN, brokers=brokers)) == said


@pytest.mark.parametrize(
    ("healthy", "counts", "said"),
    [
        (False, (1, 2, 0), "not healthy: 3 findings (1 risk, 2 warn), 1 not judged, 2 ignored"),
        (False, (0, 1, 2), "not healthy: 1 finding (1 warn), 2 weaknesses, 1 not judged, 2 ignored"),
        (
            True,
            (0, 0, 1),
            "healthy: 1 weakness (--fail-on weakness makes it fail), 1 not judged, 2 ignored",
        ),
        (True, (0, 0, 0), "healthy: no findings, 1 not judged, 2 ignored"),
    ],
)
def test_the_result_in_numbers(healthy: bool, counts: tuple[int, ...], said: str) -> None:
    assert checks.result(healthy, dict(zip(Level, counts, strict=True)), 1, 2) == said
