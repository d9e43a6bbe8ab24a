"""Creating and deleting topics, their configurations, and the records that logs delete."""

from collections.abc import Callable

import pytest

from kview.errors import BadUse
from kview.simulate.cluster import Cluster, build
from kview.simulate.codes import ErrorCode
from kview.simulate.controllers.metadata_log import CHANGES_KEPT
from kview.simulate.faults import Faults
from kview.simulate.records import decode_batch
from kview.simulate.requests.records import Acks
from kview.simulate.requests.topics import FAILURES_MAX
from kview.simulate.results import ConfigSource, CreateTopicResult, DeleteTopicResult
from kview.simulate.stream import NewRun
from kview.simulate.topics import EXCESSIVE, PARTITIONS_MAX, CreatableTopic
from kview.simulate.world import OFFSETS_TOPIC, TopicSpec, default_world
from tests.errors import raises_saying
from tests.simulate.engine import START_MS, TOPIC, cluster_of, go, produce, replica, seconds_until


def create(
    cluster: Cluster,
    name: str,
    partitions: int = 2,
    replication: int = 2,
    assignment: list[list[int]] | None = None,
    configs: dict[str, str] | None = None,
    validate_only: bool = False,
) -> CreateTopicResult:
    answers: list[CreateTopicResult] = []
    topic = CreatableTopic(name, partitions, replication, assignment, configs or {})
    cluster.topics.create_topic(1, topic, validate_only, 5000, answers.append)
    go(cluster, 0.1)
    return answers[0]


def test_a_topic_is_there_when_its_creation_is_answered() -> None:
    cluster = cluster_of()
    result = create(cluster, "new", 3, 2, configs={"min.insync.replicas": "2"})
    assert (result.error_code, result.partitions, result.replication) == (ErrorCode.NONE, 3, 2)
    for broker in cluster.broker_ids():
        topic = cluster.image(broker).topics["new"]
        assert topic.topic_id == result.topic_id and len(set(topic.topic_id)) > 1
        assert cluster.image(broker).topic_by_id(result.topic_id) is topic
        assert all(p.leader == p.replicas[0] for p in topic.partitions)
    entries = {e.name: e for e in cluster.descriptions.topic_configs(0, "new")}
    assert entries["min.insync.replicas"][1:3] == ("2", ConfigSource.TOPIC)
    assert entries["retention.ms"][1:3] == ("604800000", ConfigSource.DEFAULT)


def test_an_own_assignment_and_a_check_without_creation() -> None:
    cluster = cluster_of()
    assert create(cluster, "x", validate_only=True).error_code is ErrorCode.NONE
    assert "x" not in cluster.image(0).topics
    create(cluster, "x", -1, -1, assignment=[[2, 1], [0, 2]])
    assert [p.replicas for p in cluster.image(0).topics["x"].partitions] == [(2, 1), (0, 2)]


@pytest.mark.parametrize(
    ("how", "error"),
    [
        ({"name": TOPIC}, ErrorCode.TOPIC_ALREADY_EXISTS),
        ({"name": "a b"}, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ({"name": "x", "partitions": 0}, ErrorCode.INVALID_PARTITIONS),
        ({"name": "x", "replication": 4}, ErrorCode.INVALID_REPLICATION_FACTOR),
        ({"name": "x", "assignment": [[0, 0]]}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ({"name": "x", "assignment": [[0], [1, 2]]}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ({"name": "x", "configs": {"retention": "1"}}, ErrorCode.INVALID_CONFIG),
        ({"name": "x", "configs": {"retention.ms": "long"}}, ErrorCode.INVALID_CONFIG),
    ],
)
def test_what_cannot_be_is_refused(how: dict, error: ErrorCode) -> None:  # type: ignore[type-arg]
    cluster = cluster_of()
    result = create(cluster, **how)
    assert result.error_code is error and result.message


def for_client(cluster: Cluster, *topics: CreatableTopic, broker: int = 0) -> dict[str, str]:
    """Let a broker create topics for a client, and return which could not be created, and why."""
    cluster.topics.create_for_client(broker, topics, 20_000)
    go(cluster, 0.1)
    return cluster.topics.create_for_client(broker, topics, 20_000)


def test_a_clients_topics_have_no_more_partitions_together_than_a_request_may_create() -> None:
    cluster = cluster_of()
    topics = [CreatableTopic(f"r{n}", PARTITIONS_MAX // 2 + n, 1) for n in range(2)]
    assert for_client(cluster, *topics) == {"r0": EXCESSIVE.message, "r1": EXCESSIVE.message}
    assert not {"r0", "r1"} & cluster.image(0).topics.keys()


def test_topics_that_could_not_be_created_do_not_keep_others_from_being_created() -> None:
    cluster = cluster_of()
    bad = [CreatableTopic(f"bad{n}", 1, 9) for n in range(FAILURES_MAX + 2)]
    failed = for_client(cluster, *bad)
    assert "Unable to replicate the partition 9 time(s)" in failed["bad2"]
    assert len(failed) == FAILURES_MAX, "the oldest ones are forgotten"
    assert for_client(cluster, CreatableTopic("good", 1, 1)) == {} and "good" in cluster.image(0).topics


def test_a_new_process_does_not_know_which_topics_could_not_be_created() -> None:
    cluster, bad = cluster_of(), CreatableTopic("bad", 1, 9)
    assert for_client(cluster, bad).keys() == for_client(cluster, bad, broker=1).keys() == {"bad"}
    cluster.faults.crash(0)
    cluster.faults.start(0)
    assert cluster.topics.create_for_client(0, [bad], 20_000) == {}
    assert cluster.topics.create_for_client(1, [bad], 20_000).keys() == {"bad"}


def test_a_deleted_topic_is_gone_and_may_come_back_empty() -> None:
    cluster = cluster_of()
    produce(cluster, 0)
    old = cluster.image(0).topics[TOPIC].topic_id
    answers: list[DeleteTopicResult] = []
    cluster.topics.delete_topic(0, TOPIC, 1000, answers.append)
    cluster.topics.delete_topic(0, "none", 1000, answers.append)
    go(cluster, 0.1)
    assert [a.error_code for a in answers] == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert TOPIC not in cluster.image(2).topics and not [
        r for found in cluster.descriptions.log_dirs(0) for r in found.rows if r.topic == TOPIC
    ]
    assert create(cluster, TOPIC, 1, 3).topic_id != old
    assert replica(cluster, 0).log.end == 0


def test_a_topic_deleted_while_a_broker_was_away_is_gone_there_too() -> None:
    cluster = cluster_of()
    go(cluster, 5)
    cluster.faults.crash(2)
    go(cluster, 12)
    cluster.topics.delete_topic(0, TOPIC, 1000, lambda result: None)
    go(cluster, 1)
    cluster.faults.start(2)
    go(cluster, 10)
    assert (TOPIC, 0) not in cluster.brokers[2].replicas


@pytest.mark.parametrize("fault", [Faults.crash, Faults.hang])
def test_a_broker_that_missed_a_deletion_drops_the_log_though_the_name_is_used_again(
    fault: Callable[[Faults, int], None],
) -> None:
    cluster = cluster_of(settings={"broker.session.timeout.ms": "3000"})
    produce(cluster, 0, [b"a"] * 5)
    go(cluster, 1)
    fault(cluster.faults, 2)
    go(cluster, 5)
    cluster.topics.delete_topic(0, TOPIC, 1000, lambda result: None)
    go(cluster, 1)
    topic_id = create(cluster, TOPIC, assignment=[[0, 1, 2]]).topic_id
    produce(cluster, 0, [b"b"] * 2)
    cluster.faults.start(2)
    seconds_until(cluster, lambda p: p.isr == (0, 1, 2))
    own = replica(cluster, 2)
    assert (own.topic_id, own.log.end, own.log.epoch_at(0)) == (topic_id, 2, 0)
    assert [value for _, value in cluster.records.client_batches(2, TOPIC, 0)] == [
        value for _, value in cluster.records.client_batches(0, TOPIC, 0)
    ]


def test_a_broker_far_behind_drops_what_it_cannot_hear_was_deleted() -> None:
    cluster = cluster_of()
    go(cluster, 1)
    cluster.faults.hang(2)
    cluster.topics.delete_topic(0, TOPIC, 1000, lambda result: None)
    go(cluster, 0.1)
    for number in range(CHANGES_KEPT):
        create(cluster, f"many-{number}", 1, assignment=[[0]])
    cluster.faults.start(2)
    go(cluster, 1)
    assert (TOPIC, 0) not in cluster.brokers[2].replicas


def test_made_records_of_a_deleted_topic_do_not_come_back() -> None:
    cluster = cluster_of()
    producer = cluster.records.register_producer("p", None)

    def first_time_ms() -> int:
        cluster.records.append_run(
            0, TOPIC, 0, NewRun(5, cluster.kernel.now_us, 1000, 100, producer), Acks(-1, 1000)
        )
        go(cluster, 1)
        return next(decode_batch(cluster.records.read(0, TOPIC, 0, 0, 1000).records)).timestamp_ms

    before_ms = first_time_ms()
    cluster.topics.delete_topic(0, TOPIC, 1000, lambda result: None)
    go(cluster, 10)
    create(cluster, TOPIC, assignment=[[0, 1, 2]])
    assert first_time_ms() - before_ms > 10_000


def test_new_partitions_are_led_by_brokers_that_are_not_fenced() -> None:
    cluster = cluster_of(brokers=4, replication=3, settings={"broker.session.timeout.ms": "3000"})
    for broker in (0, 3):
        cluster.faults.crash(broker)
    go(cluster, 5)
    for replication in (1, 2, 4):
        create(cluster, f"of-{replication}", 5, replication)
        for p in cluster.image(1).topics[f"of-{replication}"].partitions:
            assert p.leader == p.replicas[0] in (1, 2) and len(set(p.replicas)) == replication
    for validate_only in (True, False):
        result = create(cluster, "x", assignment=[[1, 2], [0, 3]], validate_only=validate_only)
        assert result.error_code is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert "x" not in cluster.image(1).topics


def test_wrong_settings_name_the_nearest_key() -> None:
    with raises_saying(BadUse, r"did you mean broker\.session\.timeout\.ms"):
        cluster_of(settings={"broker.sesion.timeout.ms": "3000"})
    with raises_saying(BadUse, "not a whole number"):
        cluster_of(settings={"broker.session.timeout.ms": "3s"})
    with raises_saying(BadUse, "not one of true, false"):
        cluster_of(settings={"unclean.leader.election.enable": "yes"})
    with raises_saying(BadUse, r"did you mean retention\.ms"):
        cluster_of(configs={"retention.m": "1"})
    with raises_saying(BadUse, "asks for 4 replicas, but --brokers is 3"):
        cluster_of(replication=4)
    with raises_saying(BadUse, "topic name"):
        build(default_world(topics=(TopicSpec("a/b", 1, 1),)), 1, START_MS)


def test_settings_are_obeyed_and_shown() -> None:
    cluster = cluster_of(
        settings={"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}
    )
    shown = {e.name: e for e in cluster.descriptions.broker_configs(1, {})}
    assert shown["broker.session.timeout.ms"][1:3] == ("3000", ConfigSource.STATIC_BROKER)
    assert shown["replica.lag.time.max.ms"][1:3] == ("30000", ConfigSource.DEFAULT)
    assert shown["broker.rack"].value == "R1"
    go(cluster, 2)
    cluster.faults.crash(0)
    go(cluster, 3.6)
    assert cluster.metadata.image.brokers[0].fenced


def test_records_go_by_age() -> None:
    cluster = cluster_of(
        configs={"retention.ms": "60000"}, settings={"log.retention.check.interval.ms": "5000"}
    )
    producer = cluster.records.register_producer("p", None)
    for _ in range(120):
        now_us = cluster.kernel.now_us
        cluster.records.append_run(0, TOPIC, 0, NewRun(10, now_us, 100_000, 100, producer), Acks(1, 1000))
        go(cluster, 1)
    starts = [replica(cluster, b).log.start for b in range(3)]
    assert all(500 <= start <= 610 for start in starts), starts
    assert cluster.records.list_offset(0, TOPIC, 0, -2).offset == starts[0]
    assert cluster.records.read(0, TOPIC, 0, 10, 100).error_code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_records_go_by_size() -> None:
    cluster = cluster_of(
        configs={"retention.bytes": "10000"}, settings={"log.retention.check.interval.ms": "1000"}
    )
    for _ in range(40):
        produce(cluster, 0, [b"v" * 900])
        go(cluster, 0.3)
    sizes = [
        row.size_bytes
        for found in cluster.descriptions.log_dirs(0)
        for row in found.rows
        if row.topic == TOPIC
    ]
    assert 8_000 <= sizes[0] <= 15_000
    assert len(replica(cluster, 0).log.spans[0].stream.batches) <= 16, "their memory is free"


def test_clients_batches_stay_below_the_limit_of_the_process() -> None:
    cluster = cluster_of(client_bytes_max=1_000_000)
    go(cluster, 5)
    cluster.faults.crash(2)
    go(cluster, 12)
    for _ in range(300):
        produce(cluster, 0, [b"v" * 10_000])
        go(cluster, 0.01)
        assert cluster.retention.client_bytes <= 1_000_000 + 11_000
    log = replica(cluster, 0).log
    assert log.start > 150 and log.end == 300
    cluster.faults.start(2)
    go(cluster, 10)
    assert [replica(cluster, b).log.end for b in range(3)] == [300] * 3
    assert replica(cluster, 2).log.start == log.start


@pytest.mark.parametrize("behind", [0, 1])
def test_a_broker_that_still_has_the_deleted_topic_exchanges_no_records_with_the_new_one(behind: int) -> None:
    cluster = cluster_of()
    go(cluster, 1)
    cluster.faults.slow(behind, 400)
    for _ in range(30):  # so that a fetch is in progress when the topic is deleted
        produce(cluster, 0, [b"old"] * 5, acks=1)
        go(cluster, 0.05)
    cluster.topics.delete_topic(2, TOPIC, 1000, lambda result: None)
    cluster.topics.create_topic(
        2, CreatableTopic(TOPIC, assignment=[[0, 1, 2]]), False, 1000, lambda result: None
    )
    for _ in range(30):
        produce(cluster, 0, acks=1)
        go(cluster, 0.05)
    go(cluster, 2)
    assert len({replica(cluster, b).topic_id for b in range(3)}) == 1
    written = [list(cluster.records.client_batches(b, TOPIC, 0)) for b in range(3)]
    assert written[0] and written[1] == written[2] == written[0]


def test_a_deleted_offsets_topic_is_created_again_when_a_coordinator_is_looked_for() -> None:
    cluster = cluster_of(settings={"offsets.topic.num.partitions": "4"})
    go(cluster, 1)
    cluster.topics.delete_topic(0, "__consumer_offsets", 1000, lambda result: None)
    go(cluster, 1)
    assert cluster.groups(0).find("g") == -1
    before = len(cluster.image(0).topics)
    for broker in (0, 1, 2):
        cluster.topics.create_internal_topic(broker, OFFSETS_TOPIC)
    go(cluster, 1)
    topic = cluster.image(0).topics["__consumer_offsets"]
    assert len(cluster.image(0).topics) == before + 1
    assert (len(topic.partitions), len(topic.partitions[0].replicas), topic.internal) == (4, 3, True)
    assert topic.configs["cleanup.policy"] == "compact"
    assert cluster.groups(0).find("g") >= 0


def test_a_consumer_of_an_empty_partition_keeps_its_place_at_an_election() -> None:
    cluster = cluster_of()
    go(cluster, 5)
    cluster.faults.stop(0)
    seconds_until(cluster, lambda p: p.leader == 1)
    assert cluster.records.epoch_end(1, TOPIC, 0, 0) == (0, 0, 0), (
        "the epoch asked for ended where epoch 1 begins"
    )
    assert cluster.records.epoch_end(1, TOPIC, 0, 1) == (0, 1, 0)
    assert cluster.records.epoch_end(1, TOPIC, 0, 7) == (0, -1, -1)
