"""The everyday work of an administrator, done with the admin clients of two libraries."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewPartitions
from kafka import TopicPartition as KafkaPythonPartition
from kafka.admin import ConfigResource as KafkaPythonResource
from kafka.admin import ConfigResourceType, KafkaAdminClient

from tests.serve import questions as q
from tests.serve.clients import consumer, deliver, producer, values_of
from tests.served import EARLIEST, LATEST, Served
from tests.waiting import wait_until

ANSWER_S = 10


@pytest.fixture
def librdkafka(simulated_cluster: Served) -> AdminClient:
    return AdminClient({"bootstrap.servers": simulated_cluster.bootstrap, "log_level": 2})


@pytest.fixture
def kafka_python(simulated_cluster: Served) -> Iterator[KafkaAdminClient]:
    client = KafkaAdminClient(bootstrap_servers=simulated_cluster.bootstrap.split(","))
    yield client
    client.close()


def result(futures: dict[Any, Any]) -> Any:
    """Return the only result, or raise its error."""
    (future,) = futures.values()
    return future.result(ANSWER_S)


def described(librdkafka: AdminClient, topic: str) -> dict[str, Any]:
    return dict(result(librdkafka.describe_configs([ConfigResource(ResourceType.TOPIC, topic)])))


def test_partitions_are_added(
    simulated_cluster: Served, librdkafka: AdminClient, kafka_python: KafkaAdminClient
) -> None:
    simulated_cluster.create("grows", [[0, 1], [1, 2]])
    result(librdkafka.create_partitions([NewPartitions("grows", 3)]))
    kafka_python.create_partitions({"grows": {"count": 5, "assignments": [[5, 4], [4, 0]]}})
    partitions = simulated_cluster.metadata("grows").partitions
    assert [len(p.replica_nodes) for p in partitions] == [2] * 5
    assert [list(p.replica_nodes) for p in partitions][3:] == [[5, 4], [4, 0]]
    wait_until(lambda: simulated_cluster.metadata("grows", 5).partitions[3:] != [], "broker 5 knows it")
    assert deliver(producer(simulated_cluster.bootstrap), "grows", [b"a", b"b"], 3) == [0, 1]


def test_records_are_deleted_up_to_an_offset(
    simulated_cluster: Served, librdkafka: AdminClient, kafka_python: KafkaAdminClient
) -> None:
    simulated_cluster.create("shrinks", [[0, 1, 2]])
    deliver(producer(simulated_cluster.bootstrap), "shrinks", [b"v%d" % n for n in range(10)])
    deleted = result(librdkafka.delete_records([TopicPartition("shrinks", 0, 4)]))
    assert deleted.low_watermark == 4
    assert [simulated_cluster.offset(b, "shrinks", 0, EARLIEST, -2).offset for b in (0, 1, 2)] == [4] * 3
    client = consumer(simulated_cluster.bootstrap, "shrinks-readers")
    client.assign([TopicPartition("shrinks", 0, 0)])
    read: list[bytes] = []

    def rest_is_read() -> bool:
        read.extend(values_of(client))
        return len(read) >= 6

    wait_until(rest_is_read, "the rest is read")
    client.close()
    assert read == [b"v%d" % n for n in range(4, 10)]
    kafka_python.delete_records({KafkaPythonPartition("shrinks", 0): -1})
    assert simulated_cluster.offset(0, "shrinks", 0, EARLIEST).offset == 10
    assert simulated_cluster.offset(0, "shrinks", 0, LATEST).offset == 10


def test_settings_are_altered_and_take_effect(
    simulated_cluster: Served, librdkafka: AdminClient, kafka_python: KafkaAdminClient
) -> None:
    simulated_cluster.create("tuned", [[0, 1, 2]], max_message_bytes="50000")
    entry = ConfigEntry("min.insync.replicas", "3", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, "tuned", incremental_configs=[entry])
    result(librdkafka.incremental_alter_configs([resource]))
    configs = described(librdkafka, "tuned")
    assert (configs["min.insync.replicas"].value, configs["min.insync.replicas"].source) == ("3", 1)
    assert configs["max.message.bytes"].value == "50000", "an increment leaves the others alone"
    changed = KafkaPythonResource(ConfigResourceType.TOPIC, "tuned", configs={"cleanup.policy": "compact"})
    kafka_python.alter_configs([changed])
    assert described(librdkafka, "tuned")["cleanup.policy"].value == "compact"
    rows = [("min.insync.replicas", "2"), ("retention.ms", "60000")]
    assert q.alter(simulated_cluster.addresses[0], "tuned", rows) == 0
    configs = described(librdkafka, "tuned")
    own = {name: entry.value for name, entry in configs.items() if entry.source == 1}
    assert own == {"min.insync.replicas": "2", "retention.ms": "60000"}, "and the old way replaces all"


def test_min_insync_replicas_counts_from_the_moment_it_is_altered(simulated_cluster: Served) -> None:
    simulated_cluster.create("strict", [[0, 1]])
    address = simulated_cluster.addresses[0]
    assert q.incremental_alter(address, q.TOPIC, "strict", [("min.insync.replicas", q.SET, "2")]) == 0
    simulated_cluster.do("stop 1")
    wait_until(lambda: list(simulated_cluster.partition("strict").isr_nodes) == [0], "broker 1 left the ISR")
    assert q.produce(address, "strict", q.records([b"v"])) == 19
    assert q.incremental_alter(address, q.TOPIC, "strict", [("min.insync.replicas", q.DELETE, None)]) == 0
    assert q.produce(address, "strict", q.records([b"v"])) == 0


def test_a_brokers_default_counts_for_topics_that_set_nothing(simulated_cluster: Served) -> None:
    simulated_cluster.create("small", [[0]])
    address = simulated_cluster.addresses[0]
    limit = ("message.max.bytes", q.SET, "1000")
    assert q.produce(address, "small", q.records([b"x" * 2000])) == 0
    assert q.incremental_alter(address, q.BROKER, "", [limit]) == 0
    assert q.produce(address, "small", q.records([b"x" * 2000])) == 10
    (entry,) = q.describe_configs(address, q.TOPIC, "small", ["max.message.bytes"]).configs
    assert (entry.value, entry.config_source) == ("1000", 3)
    assert q.incremental_alter(address, q.BROKER, "", [("message.max.bytes", q.DELETE, None)]) == 0
    assert q.produce(address, "small", q.records([b"x" * 2000])) == 0


def test_leaders_are_elected(simulated_cluster: Served, kafka_python: KafkaAdminClient) -> None:
    simulated_cluster.create("ruled", [[2, 3]])
    simulated_cluster.do("stop 2")
    wait_until(lambda: simulated_cluster.partition("ruled").leader_id == 3, "broker 3 leads")
    assert q.elect_leaders(simulated_cluster.addresses[0], 0, "ruled", 0) == (0, 80)
    simulated_cluster.do("start 2")
    wait_until(lambda: set(simulated_cluster.partition("ruled").isr_nodes) == {2, 3}, "broker 2 is in sync")
    kafka_python.elect_leaders(0, {"ruled": [0]})
    wait_until(lambda: simulated_cluster.partition("ruled").leader_id == 2, "broker 2 leads")


@pytest.mark.slow  # tests/simulate/test_election.py has the quick ones
def test_an_unclean_election_takes_any_replica_and_forgets_the_eligible_ones(
    simulated_cluster: Served,
) -> None:
    simulated_cluster.create("lost", [[3, 4]])
    simulated_cluster.do("crash 4")
    wait_until(lambda: list(simulated_cluster.partition("lost").isr_nodes) == [3], "broker 4 left the ISR")
    assert q.produce(simulated_cluster.addresses[3], "lost", q.records([b"only on 3"])) == 0
    simulated_cluster.do("crash 3")
    wait_until(lambda: simulated_cluster.partition("lost").leader_id == -1, "nobody leads")
    assert q.elect_leaders(simulated_cluster.addresses[0], 1, "lost", 0) == (0, 83)
    simulated_cluster.do("start 4")
    wait_until(lambda: 4 not in simulated_cluster.fenced(), "broker 4 is back")
    assert simulated_cluster.partition("lost").leader_id == -1
    assert q.elect_leaders(simulated_cluster.addresses[0], 1, "lost", 0) == (0, 0)
    wait_until(lambda: simulated_cluster.partition("lost").leader_id == 4, "broker 4 leads")
    row = q.topic_partitions(simulated_cluster.addresses[0], ["lost"]).topics[0].partitions[0]
    assert (list(row.isr_nodes), row.eligible_leader_replicas, row.last_known_elr) == ([4], [], [])


def test_replicas_move_to_other_brokers(simulated_cluster: Served) -> None:
    simulated_cluster.create("moved", [[0, 1]])
    deliver(producer(simulated_cluster.bootstrap), "moved", [b"a", b"b", b"c"])
    simulated_cluster.do("hang 3")
    wait_until(lambda: 3 in simulated_cluster.fenced(), "broker 3 is fenced")
    with closing(KafkaAdminClient(bootstrap_servers=str(simulated_cluster.addresses[1]))) as kafka_python:
        _moves(simulated_cluster, kafka_python)


def _moves(simulated_cluster: Served, kafka_python: KafkaAdminClient) -> None:
    """A client that has not heard of broker 3 moves a replica there, which takes until it is back."""
    place = KafkaPythonPartition("moved", 0)
    assert kafka_python.alter_partition_reassignments({place: [3, 1]}) == {place: None}
    expected = {"replicas": [3, 1, 0], "adding_replicas": [3], "removing_replicas": [0]}
    assert kafka_python.list_partition_reassignments() == {place: expected}
    assert q.reassignments(simulated_cluster.addresses[1]) == {("moved", 0): ([3, 1, 0], [3], [0])}
    assert list(simulated_cluster.partition("moved").replica_nodes) == [3, 1, 0]
    simulated_cluster.do("start 3")
    wait_until(lambda: list(simulated_cluster.partition("moved").replica_nodes) == [3, 1], "it has moved")
    assert kafka_python.list_partition_reassignments() == {}
    wait_until(lambda: simulated_cluster.offset(3, "moved", 0, LATEST, -2).offset == 3, "with all records")
    assert q.elect_leaders(simulated_cluster.addresses[0], 0, "moved", 0)[1] in (0, 84)
    wait_until(lambda: q.fetch(simulated_cluster.addresses[3], "moved", 0)[0] == 0, "broker 3 serves it")
    assert q.fetch(simulated_cluster.addresses[0], "moved", 0)[0] in (3, 6)


def test_groups_and_their_offsets_are_deleted(simulated_cluster: Served, librdkafka: AdminClient) -> None:
    simulated_cluster.create("read", [[0]])
    simulated_cluster.create("once-read", [[0]])
    client = consumer(simulated_cluster.bootstrap, "doomed")
    client.subscribe(["read"])
    wait_until(lambda: values_of(client) == [] and bool(client.assignment()), "assigned")
    client.commit(
        offsets=[TopicPartition("read", 0, 3), TopicPartition("once-read", 0, 5)], asynchronous=False
    )
    address = simulated_cluster.addresses[q.find_coordinator(simulated_cluster.addresses[0], "doomed")[1]]
    asked = [("read", 0), ("once-read", 0), ("read", 9), ("nobodys-topic", 0)]
    assert q.delete_offsets(address, "doomed", asked) == (
        0,
        {("read", 0): 86, ("once-read", 0): 0, ("read", 9): 3, ("nobodys-topic", 0): 3},
    )
    assert q.delete_groups(address, ["doomed"]) == [68]
    client.close()
    wanted = [ConsumerGroupTopicPartitions("doomed")]
    kept = result(librdkafka.list_consumer_group_offsets(wanted)).topic_partitions
    assert [(tp.topic, tp.offset) for tp in kept] == [("read", 3)]
    assert q.delete_offsets(address, "doomed", [("read", 0)]) == (0, {("read", 0): 0})
    result(librdkafka.delete_consumer_groups(["doomed"]))
    assert q.delete_groups(address, ["doomed"]) == [69]
    assert q.delete_offsets(address, "doomed", [("read", 0)]) == (69, {})


def test_producers_are_described(simulated_cluster: Served, kafka_python: KafkaAdminClient) -> None:
    simulated_cluster.create("written", [[0, 1]])
    client = producer(simulated_cluster.bootstrap, enable_idempotence=True)
    deliver(client, "written", [b"v%d" % n for n in range(5)])
    assert q.producers(simulated_cluster.addresses[0], "written", 0) == (0, [(0, 4)])
    place = KafkaPythonPartition("written", 0)
    assert len(kafka_python.describe_producers([place])[place].active_producers) == 1


def test_resources_with_settings_are_listed(
    simulated_cluster: Served, kafka_python: KafkaAdminClient
) -> None:
    simulated_cluster.create("listed", [[0]])
    found = {kind.upper(): names for kind, names in kafka_python.list_config_resources().items()}
    assert "listed" in found["TOPIC"] and sorted(found["BROKER"]) == ["0", "1", "2", "3", "4", "5"]
    error, everything = q.config_resources(simulated_cluster.addresses[0], [])
    assert error == 0 and {("listed", 2), ("0", 4), ("0", 8)} <= everything


def test_a_topic_placed_on_fenced_brokers_only_is_refused(simulated_cluster: Served) -> None:
    simulated_cluster.do("crash 5")
    wait_until(lambda: 5 in simulated_cluster.fenced(), "broker 5 is fenced")
    address = simulated_cluster.addresses[0]
    assert q.create_topic(address, "nowhere", -1, -1, [(0, [5])]) == 39
    simulated_cluster.create("elsewhere", [[0]])
    assert q.create_partitions(address, "elsewhere", 2, [[5]]) == 39


@pytest.mark.slow  # tests/simulate/test_topics.py has the quick one
def test_a_deleted_offsets_topic_comes_back_when_a_group_looks_for_its_coordinator(
    simulated_cluster_factory: Any,
) -> None:
    with simulated_cluster_factory("--no-traffic", "--brokers", "3", "--racks", "1") as cluster:
        cluster.create("kept", [[0]])
        client = consumer(cluster.bootstrap, "g")
        client.subscribe(["kept"])
        wait_until(lambda: values_of(client) == [] and bool(client.assignment()), "assigned")
        client.commit(offsets=[TopicPartition("kept", 0, 7)], asynchronous=False)
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 2})
        result(admin.delete_topics(["__consumer_offsets"]))

        def committed() -> bool:
            values_of(client)
            try:
                client.commit(offsets=[TopicPartition("kept", 0, 9)], asynchronous=False)
            except Exception:
                return False
            return True

        wait_until(committed, "the group commits again")
        client.close()
        wanted = [ConsumerGroupTopicPartitions("g")]
        (row,) = result(admin.list_consumer_group_offsets(wanted)).topic_partitions
        assert row.offset == 9
        assert dict(described(admin, "__consumer_offsets"))["cleanup.policy"].value == "compact"
