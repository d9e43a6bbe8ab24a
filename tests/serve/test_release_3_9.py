"""What Kafka 3.9 does otherwise than 4.3: the simulated and a real 3.9 cluster do the same.

Read from a 3.9.1 in KRaft mode, as it is formatted by itself.
"""

import re
import time
from typing import Any

import pytest
from kafka.protocol.admin import (
    DescribeGroupsRequest,
    DescribeTransactionsRequest,
    ListGroupsRequest,
    UpdateFeaturesRequest,
)
from kafka.protocol.consumer import ListOffsetsRequest, OffsetCommitRequest, OffsetFetchRequest
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest
from kafka.protocol.producer import AddPartitionsToTxnRequest, InitProducerIdRequest

from kview.serve.apis import all_apis
from kview.simulate.alterations import INVALID_DYNAMIC, Operation
from kview.simulate.coordination.placement import partition_of
from kview.simulate.records import HEADER, decode_batch, encode_batch
from kview.simulate.releases import KAFKA_3_9
from kview.wire.group_messages import ConsumerGroupDescribeRequest
from kview.wire.member_messages import ConsumerGroupHeartbeatRequest
from kview.wire.primitives import INT16, INT32, string
from tests.real_kafka.asking import ask
from tests.serve import questions as q
from tests.serve.both import Cluster
from tests.serve.clients import KAFKA_PYTHON_POLL_MS, consumer, kafka_python_consumer, producer, values_of
from tests.serve.test_broker_settings import check_description
from tests.serve.test_nodes import remove, unregister
from tests.serve.test_topic_settings import LONG, SETTINGS
from tests.served import QUICK_TIMES, Served
from tests.waiting import wait_until

TOPIC = "of-3-9"
METRICS, GROUP, LOGGER = 16, 32, 8
UNSUPPORTED, INVALID_UPDATE = 35, 95
LOADING, NOT_COORDINATOR, CONCURRENT, FENCED = 14, 16, 51, 90
UPGRADE, SAFE, UNSAFE = 1, 2, 3
HOUR_MS = 3_600_000
FOREVER = str(2**63 - 1)

UNCHECKED = (-1, None)
"""An error that Kafka 3.9 did not expect itself."""


def api_versions(cluster: Cluster) -> Any:
    request = ApiVersionsRequest(version=4, client_software_name="kview", client_software_version="1")
    return ask(cluster.leader, request)


def test_it_offers_the_apis_and_versions_of_3_9(cluster_3_9: Cluster) -> None:
    offered = {row.api_key: (row.min_version, row.max_version) for row in api_versions(cluster_3_9).api_keys}
    assert {key: last for key, (_, last) in offered.items()} == {
        key: api.versions[1] for key, api in all_apis(KAFKA_3_9).items()
    }
    assert [offered[key][1] for key in (0, 1, 2, 3, 15, 26, 60)] == [11, 17, 9, 12, 5, 4, 1]
    assert offered[0][0] == 0 and not {76, 78, 83, 88, 91} & offered.keys()


def test_its_features_are_those_of_3_9(cluster_3_9: Cluster) -> None:
    answer = api_versions(cluster_3_9)
    supported = {f.name: (f.min_version, f.max_version) for f in answer.supported_features}
    assert supported == {"kraft.version": (0, 1), "metadata.version": (1, 21)}
    finalized = {f.name: f.max_version_level for f in answer.finalized_features}
    assert finalized == {"kraft.version": 1, "metadata.version": 21}


def test_a_version_of_4_0_closes_the_connection(cluster_3_9: Cluster) -> None:
    with pytest.raises(ConnectionResetError):
        ask(cluster_3_9.leader, DescribeGroupsRequest(version=6, groups=["g"]))


def test_a_broker_describes_all_settings_that_3_9_has(cluster_3_9: Cluster) -> None:
    check_description(cluster_3_9, KAFKA_3_9.broker_configs)


def test_a_topic_has_all_settings_of_3_9(cluster_3_9: Cluster) -> None:
    cluster_3_9.create(TOPIC, [[0, 1]])
    found = q.describe_configs(cluster_3_9.leader, q.TOPIC, TOPIC).configs
    assert {entry.name: (entry.value, entry.config_type) for entry in found} == SETTINGS | {
        "message.downconversion.enable": ("true", 1),
        "message.format.version": ("3.0-IV1", 2),
        "message.timestamp.after.max.ms": (FOREVER, LONG),
        "message.timestamp.difference.max.ms": (FOREVER, LONG),
    }


def dynamic(why: str) -> tuple[int, str]:
    return 42, INVALID_DYNAMIC.format(why)


TO_SET = [
    (q.TOPIC, TOPIC, "segment.bytes", "14", (0, None)),
    (q.TOPIC, TOPIC, "segment.bytes", "13",
     (40, "Invalid value 13 for configuration segment.bytes: Value must be at least 14")),
    (q.TOPIC, TOPIC, "message.format.version", "2.8", (0, None)),
    (q.TOPIC, TOPIC, "message.format.version", "x",
     (40, "Invalid value x for configuration message.format.version: Version x is not a valid version")),
    (q.TOPIC, TOPIC, "message.format.version", "2.8.1", (0, None)),
    (q.TOPIC, TOPIC, "message.format.version", "4.0-IV1", (0, None)),
    (q.TOPIC, TOPIC, "message.format.version", "2.9",
     (40, "Invalid value 2.9 for configuration message.format.version: Version 2.9 is not a valid version")),
    (q.BROKER, "0", "min.insync.replicas", "2", (0, None)),
    (q.BROKER, "", "log.message.downconversion.enable", "false", (0, None)),
    (q.BROKER, "", "node.id", "7", (42, "Cannot update these configs dynamically: Set(node.id)")),
    (q.BROKER, "", "listeners", "x", (42, "Cannot update these configs at default cluster level, broker id"
     " must be specified: Set(listeners)")),
    (q.BROKER, "0", "ssl.keystore.location", "x", (42, "These security configs can be dynamically updated"
     " only per-listener using the listener prefix: HashSet(ssl.keystore.location)")),
    (q.BROKER, "0", "advertised.listeners", "PLAINTEXT://127.0.0.1:1", dynamic(
        "Advertised listeners cannot be altered when using a Raft-based metadata quorum.")),
    (q.BROKER, "", "num.replica.fetchers", "0", dynamic(
        "Dynamic thread count update validation failed for num.replica.fetchers=0, value should be at"
        " least 1")),
    (LOGGER, "1", "root", "INFO", (42, "Unexpected node id. Expected 0, but received 0")),
    (GROUP, "g", "consumer.session.timeout.ms", "45000", (42, "Unknown resource type 32")),
    (METRICS, "m", "interval.ms", "x", UNCHECKED),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "name", "key", "value", "expected"), TO_SET, ids=[f"{row[2]}={row[3]}" for row in TO_SET]
)
def test_a_setting_is_checked_as_in_3_9(
    cluster_3_9: Cluster, kind: int, name: str, key: str, value: str, expected: tuple[int, str | None]
) -> None:
    cluster_3_9.create(TOPIC, [[0, 1]])
    change = (key, Operation.SET, value)
    assert q.incrementally_altered(cluster_3_9.leader, kind, name, [change], True) == expected


def test_adding_to_a_setting_that_no_broker_knows_is_an_error_that_3_9_does_not_expect(
    cluster_3_9: Cluster,
) -> None:
    change = ("kview.nobodys.setting", Operation.APPEND, "1")
    assert q.incrementally_altered(cluster_3_9.leader, q.BROKER, "", [change], True) == UNCHECKED


def test_there_are_no_settings_of_groups_and_only_those_of_metrics_that_are_set(cluster_3_9: Cluster) -> None:
    assert q.describe_configs(cluster_3_9.leader, GROUP, "g").error_code == 42
    metrics = q.describe_configs(cluster_3_9.leader, METRICS, "nobodys")
    assert (metrics.error_code, list(metrics.configs)) == (0, [])


def test_the_clusters_min_insync_replicas_is_not_set_by_itself(cluster_3_9: Cluster) -> None:
    assert list(q.describe_configs(cluster_3_9.leader, q.BROKER, "").configs) == []


def test_a_topic_needs_brokers_that_are_registered(cluster_3_9: Cluster) -> None:
    """Log directories cannot be cordoned yet."""
    answer = q.created_topic(cluster_3_9.leader, "too-many", replication=9)
    assert answer == (38, "Unable to replicate the partition 9 time(s): The target replication factor of 9"
                      " cannot be reached because only 2 broker(s) are registered.")  # fmt: skip


def test_a_record_may_be_of_any_time_until_the_topic_limits_the_difference(cluster_3_9: Cluster) -> None:
    cluster_3_9.create("times-3-9", [[0, 1]])
    now_ms = round(time.time() * 1000)
    ahead, behind = (encode_batch([(None, b"v", now_ms + hours * HOUR_MS)]) for hours in (2, -2))

    def produced() -> list[int]:
        return [q.produce(cluster_3_9.leader, "times-3-9", batch) for batch in (ahead, behind)]

    assert produced() == [0, 0]
    limit = ("message.timestamp.difference.max.ms", Operation.SET, str(HOUR_MS))
    assert q.incremental_alter(cluster_3_9.leader, q.TOPIC, "times-3-9", [limit]) == 0
    wait_until(lambda: produced() == [32, 32], "both are refused")


def asked_twice(cluster: Cluster) -> list[tuple[str, list[int]]]:
    kind = ListOffsetsRequest.ListOffsetsTopic
    row = kind.ListOffsetsPartition
    one = [row(version=7, partition_index=0, timestamp=-1)]
    asked = [(TOPIC, one), ("none", []), (TOPIC, [*one, row(version=7, partition_index=7, timestamp=-1)])]
    topics = [kind(version=7, name=name, partitions=partitions) for name, partitions in asked]
    answer = ask(cluster.leader, ListOffsetsRequest(version=7, replica_id=-1, topics=topics))
    return sorted((topic.name, [row.error_code for row in topic.partitions]) for topic in answer.topics)


def test_a_partition_that_is_looked_up_twice_is_refused_twice(cluster_3_9: Cluster) -> None:
    cluster_3_9.create(TOPIC, [[0, 1]])
    assert asked_twice(cluster_3_9) == [("none", []), (TOPIC, [42]), (TOPIC, [42, 3])]


def test_the_first_version_of_offset_fetch_does_not_say_that_another_broker_coordinates(
    cluster_3_9: Cluster,
) -> None:
    cluster_3_9.create(TOPIC, [[0, 1]])
    wait_until(lambda: q.find_coordinator(cluster_3_9.leader, "elsewhere")[0] == 0, "a coordinator")
    other = cluster_3_9.at(1 - q.find_coordinator(cluster_3_9.leader, "elsewhere")[1])
    of_topic = OffsetFetchRequest.OffsetFetchRequestTopic
    for version, error, topics in ((1, 0, 0), (2, NOT_COORDINATOR, 0)):
        asked = [of_topic(version=version, name=TOPIC, partition_indexes=[0])]
        answer = ask(other, OffsetFetchRequest(version=version, group_id="elsewhere", topics=asked))
        assert (answer.error_code or 0, len(answer.topics)) == (error, topics)


def updated(cluster: Cluster, version: int, level: int, kind: int, name: str = "metadata.version") -> Any:
    change = UpdateFeaturesRequest.FeatureUpdateKey(
        version=version, feature=name, max_version_level=level, upgrade_type=kind
    )
    request = UpdateFeaturesRequest(
        version=version, timeout_ms=5000, feature_updates=[change], validate_only=True
    )
    answer = ask(cluster.leader, request, q.ANSWER_S)
    (row,) = answer.results
    assert (answer.error_code, answer.error_message) == (0, "")
    return row.error_code, row.error_message


LEVELS = [
    ("metadata.version", 22, UPGRADE, "Local controller 101 only supports versions 1-21"),
    ("metadata.version", 18, SAFE, None),
    ("metadata.version", 15, SAFE, "Refusing to perform the requested downgrade because it might delete"
     " metadata information."),
    ("metadata.version", 15, UNSAFE, "Unsafe metadata downgrade is not supported in this version."),
    ("metadata.version", 3, SAFE, "Invalid metadata.version 3. Unable to set a metadata.version less than"
     " 3.3-IV0"),
    ("kraft.version", 0, UPGRADE, None),
    ("kraft.version", 1, SAFE, "Can't downgrade to a newer version."),
    ("group.version", 1, UPGRADE, "Local controller 101 does not support this feature."),
    ("nobodys.version", 0, SAFE, None),
]  # fmt: skip


@pytest.mark.parametrize(("name", "level", "kind", "why"), LEVELS)
def test_each_feature_has_its_own_result(
    cluster_3_9: Cluster, name: str, level: int, kind: int, why: str | None
) -> None:
    code, message = updated(cluster_3_9, 1, level, kind, name)
    assert code == (INVALID_UPDATE if why else 0)
    assert (message or "").endswith(why or "") and bool(message) is bool(why)


def test_voters_and_brokers_that_leave_are_named_as_in_3_9(cluster_3_9: Cluster) -> None:
    at, key = cluster_3_9.leader, r"ReplicaKey\(id=\d+, directoryId=Optional\[[\w-]{22}\]\)"
    assert unregister(at, 77) == (102, "")
    error, message = remove(at, 77)
    assert error == 127 and message is not None
    assert re.fullmatch(rf"Cannot remove voter {key} from the set of voters \[{key}(, {key})*\]", message)


def test_there_are_no_share_coordinators(cluster_3_9: Cluster) -> None:
    """And a client that looks for one does not create their topic."""
    for key in ("nonsense", f"g:{'A' * 22}:0"):
        assert q.find_coordinator(cluster_3_9.leader, key, q.SHARE_STATE) == (15, -1)
    assert q.metadata(cluster_3_9.leader, "__share_group_state") == 3
    wait_until(lambda: q.find_coordinator(cluster_3_9.leader, "later")[0] == 0, "another topic is created")
    assert q.metadata(cluster_3_9.leader, "__share_group_state") == 3


def test_there_are_classic_groups_only(cluster_3_9: Cluster) -> None:
    at = cluster_3_9.leader
    request = ConsumerGroupHeartbeatRequest(
        version=0, group_id="g", member_id="", member_epoch=0, rebalance_timeout_ms=1000,
        subscribed_topic_names=[TOPIC], topic_partitions=[],
    )  # fmt: skip
    assert ask(at, request).error_code == UNSUPPORTED
    (row,) = ask(at, ConsumerGroupDescribeRequest(version=0, group_ids=["g"])).groups
    assert (row.error_code, row.error_message) == (UNSUPPORTED, None)
    for kind in ("consumer", "share", "nonsense"):
        answer = ask(at, ListGroupsRequest(version=5, states_filter=[], types_filter=[kind]))
        assert (answer.error_code, list(answer.groups)) == (0, [])


def test_a_group_that_nobody_knows_is_dead_and_has_no_settings_to_see(cluster_3_9: Cluster) -> None:
    wait_until(lambda: q.find_coordinator(cluster_3_9.leader, "nobodys")[0] == 0, "a coordinator")
    at = cluster_3_9.at(q.find_coordinator(cluster_3_9.leader, "nobodys")[1])
    request = DescribeGroupsRequest(version=5, groups=["nobodys"], include_authorized_operations=True)
    wait_until(lambda: ask(at, request).groups[0].error_code == 0, "the groups are loaded")
    (group,) = ask(at, request).groups
    assert (group.group_state, group.authorized_operations) == ("Dead", {3, 6, 8})


def test_clients_write_in_transactions_and_read_in_a_group(cluster_3_9: Cluster) -> None:
    """Librdkafka and kafka-python find out by themselves what the brokers offer."""
    topic = "clients-3-9"
    cluster_3_9.create(topic, [[0, 1], [1, 0]])
    writer = producer(cluster_3_9.bootstrap, transactional_id="clients-3-9")
    writer.init_transactions(30)
    for commits in (True, False, True):
        writer.begin_transaction()
        for number in range(4):
            writer.produce(topic, str(commits).encode(), partition=number % 2)
        if commits:
            writer.commit_transaction(30)
        else:
            writer.abort_transaction(30)
    reader = consumer(cluster_3_9.bootstrap, "clients-3-9", isolation_level="read_committed")
    reader.subscribe([topic])
    read: list[bytes] = []

    def is_read() -> bool:
        read.extend(values_of(reader))
        return len(read) >= 8

    wait_until(is_read, "what was committed is read")
    assert read == [b"True"] * 8
    reader.commit(asynchronous=False)
    reader.close()
    other = kafka_python_consumer(cluster_3_9.bootstrap, "clients-3-9")
    other.subscribe([topic])
    wait_until(
        lambda: other.poll(KAFKA_PYTHON_POLL_MS) == {} and len(other.assignment()) == 2,
        "the partitions are assigned",
    )
    partitions = sorted(other.assignment())
    assert all(other.position(partition) > 0 for partition in partitions), "the group goes on"
    other.close()


class Transaction:
    """A transactional id at its coordinator, as a client without KIP-890 uses it."""

    def __init__(self, cluster: Cluster, name: str, topic: str) -> None:
        wait_until(lambda: q.find_coordinator(cluster.leader, name, 1)[0] == 0, "a coordinator")
        self._at = cluster.at(q.find_coordinator(cluster.leader, name, 1)[1])
        self._name, self._topic = name, topic

    def init(self) -> tuple[int, int]:
        """Return the producer's id and epoch."""
        request = InitProducerIdRequest(
            version=4, transactional_id=self._name, transaction_timeout_ms=60_000,
            producer_id=-1, producer_epoch=-1,
        )  # fmt: skip

        def asked() -> Any:
            answer = ask(self._at, request)
            return None if answer.error_code in (NOT_COORDINATOR, LOADING, CONCURRENT) else answer

        answer = wait_until(asked, "an id")
        assert answer is not None and answer.error_code == 0
        return answer.producer_id, answer.producer_epoch

    def add(self, producer_id: int, epoch: int) -> int:
        """Return the error number of AddPartitionsToTxn."""
        kind = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
        request = AddPartitionsToTxnRequest(
            version=3, v3_and_below_transactional_id=self._name, v3_and_below_producer_id=producer_id,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=[kind(version=3, name=self._topic, partitions=[0])],
        )  # fmt: skip
        (topic,) = ask(self._at, request).results_by_topic_v3_and_below
        return int(topic.results_by_partition[0].partition_error_code)

    def described(self) -> tuple[str, int, bool]:
        """Return its state, its epoch, and whether it has a start."""
        request = DescribeTransactionsRequest(version=0, transactional_ids=[self._name])
        (row,) = ask(self._at, request).transaction_states
        return row.transaction_state, row.producer_epoch, row.transaction_start_time_ms > 0


def fenced_once(cluster: Cluster) -> tuple[str, int, bool]:
    """Let a producer start again while its transaction is open, and describe that afterwards."""
    cluster.create(TOPIC, [[0, 1]])
    transaction = Transaction(cluster, "fenced-3-9", TOPIC)
    first = transaction.init()
    assert transaction.add(*first) == 0
    again = transaction.init()
    assert again == (first[0], first[1] + 2), "one for the abort, and one for the start"
    assert transaction.add(*first) == FENCED
    state, epoch, has_start = transaction.described()
    return state, epoch - first[1], has_start


def test_a_producer_that_starts_again_fences_itself_and_the_start_of_what_was_aborted_stays(
    cluster_3_9: Cluster,
) -> None:
    assert fenced_once(cluster_3_9) == ("Empty", 2, True)


def test_a_client_without_kip_890_fences_itself_in_the_same_way_at_4_3(cluster: Cluster) -> None:
    assert fenced_once(cluster) == ("Empty", 2, False)


def stored(cluster: Cluster, topic: str, name: str) -> set[tuple[int, int]]:
    """Return the versions of keys and values of the records of a group or transactional id."""
    at = [cluster.at(broker) for broker in (0, 1)]
    request = MetadataRequest(
        version=9, topics=[MetadataRequest.MetadataRequestTopic(version=9, name=topic)],
        allow_auto_topic_creation=False,
    )  # fmt: skip
    (found,) = ask(at[0], request).topics
    partition = partition_of(name, len(found.partitions))
    leader = next(row.leader_id for row in found.partitions if row.partition_index == partition)

    def read() -> set[tuple[int, int]]:
        _, _, data = q.fetch(at[leader], topic, 0, partition=partition)
        return {
            (INT16.unpack_from(record.key or b"")[0], INT16.unpack_from(record.value or b"")[0])
            for batch in split(data)
            for record in decode_batch(batch)
            if string(name) in bytes(record.key or b"")
        }

    versions = wait_until(read, f"what {topic} has is committed")
    assert versions is not None
    return versions


def split(data: bytes) -> list[bytes]:
    """Return the whole batches."""
    batches = []
    while len(data) >= HEADER.size and len(data) >= 12 + INT32.unpack_from(data, 8)[0]:
        size = 12 + INT32.unpack_from(data, 8)[0]
        batches.append(data[:size])
        data = data[size:]
    return batches


def test_offsets_and_transactions_are_stored_in_the_formats_of_3_9(cluster_3_9: Cluster) -> None:
    """Programs that read the internal topics know no newer ones."""
    cluster_3_9.create(TOPIC, [[0, 1]])
    name = "stored-3-9"
    wait_until(lambda: q.find_coordinator(cluster_3_9.leader, name)[0] == 0, "a coordinator")
    at = cluster_3_9.at(q.find_coordinator(cluster_3_9.leader, name)[1])
    wait_until(lambda: q.delete_groups(at, [name]) == [69], "the groups are loaded")
    of_topic = OffsetCommitRequest.OffsetCommitRequestTopic
    row = of_topic.OffsetCommitRequestPartition(version=8, partition_index=0, committed_offset=7)
    commit = OffsetCommitRequest(
        version=8, group_id=name, generation_id_or_member_epoch=-1, member_id="",
        topics=[of_topic(version=8, name=TOPIC, partitions=[row])],
    )  # fmt: skip
    assert ask(at, commit).topics[0].partitions[0].error_code == 0
    transaction = Transaction(cluster_3_9, name, TOPIC)
    assert transaction.add(*transaction.init()) == 0
    assert stored(cluster_3_9, "__consumer_offsets", name) == {(1, 3)}
    assert stored(cluster_3_9, "__transaction_state", name) == {(0, 0)}


def test_the_consumer_protocol_can_be_turned_on_as_in_3_9() -> None:
    """Its groups begin with epoch 1, and not 2, and have a new assignment with each member, as on a 3.9.1
    with that setting, which does not know the interval between two assignments."""
    protocols = "group.coordinator.rebalance.protocols=classic,consumer"
    flags = ("--release", "3.9", "--brokers", "1", "--racks", "1", "--empty")
    with Served(*flags, settings=(*QUICK_TIMES, protocols)) as served:
        served.create(TOPIC, [[0], [0]])
        at = served.addresses[0]
        wait_until(lambda: q.find_coordinator(at, "new")[0] == 0, "a coordinator")
        wait_until(lambda: q.delete_groups(at, ["new"]) == [69], "the groups are loaded")
        unknown = ("group.consumer.assignment.interval.ms", Operation.SET, "x")
        assert q.incrementally_altered(at, q.BROKER, "", [unknown]) == (0, None)

        def join() -> Any:
            return ask(at, ConsumerGroupHeartbeatRequest(
                version=0, group_id="new", member_id="", member_epoch=0, rebalance_timeout_ms=1000,
                subscribed_topic_names=[TOPIC], topic_partitions=[],
            ))  # fmt: skip

        joined = join()
        assert (joined.error_code, joined.member_epoch, len(joined.member_id)) == (0, 1, 22)
        assert [row.partitions for row in joined.assignment.topic_partitions] == [[0, 1]]
        (listed,) = ask(at, ListGroupsRequest(version=5, states_filter=[], types_filter=["consumer"])).groups
        assert (listed.group_id, listed.group_state, listed.group_type) == ("new", "Stable", "consumer")
        (group,) = ask(at, ConsumerGroupDescribeRequest(version=0, group_ids=["new"])).groups
        assert (group.error_code, group.group_epoch, group.assignor_name) == (0, 1, "uniform")
        assert [join().member_epoch for _ in range(2)] == [2, 3]
