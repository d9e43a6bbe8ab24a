"""Kafka's own command-line tools, written in Java, print about the simulated cluster what they print about a
real one.

They need a JVM, so these tests are slow. What the tools ask for is guarded by quick tests.
"""

import json
from pathlib import Path

import pytest

from tests.real_kafka.tools import CONFIGS, Tools
from tests.serve.both import Cluster
from tests.serve.clients import new_consumer, values_of
from tests.serve.test_streams_groups import Streams
from tests.served import Served
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

TOPIC = "tools"


@pytest.fixture
def tools(cluster: Cluster, kafka_runtime: tuple[Path, Path]) -> Tools:
    cluster.create(TOPIC, [[0, 1], [1, 2]])
    return Tools(kafka_runtime, cluster.bootstrap)


def lines(printed: str) -> list[list[str]]:
    """Return the words of each line, of those that are not empty."""
    return [line.split() for line in printed.splitlines() if line.strip()]


def test_topics_describe_shows_replicas_and_the_clusters_min_insync_replicas(tools: Tools) -> None:
    first, *partitions = lines(tools.tool("TopicCommand", "--describe", "--topic", TOPIC))
    assert first[4:] == [
        "PartitionCount:",
        "2",
        "ReplicationFactor:",
        "2",
        "Configs:",
        "min.insync.replicas=1",
    ]
    assert [" ".join(words) for words in partitions] == [
        f"Topic: {TOPIC} Partition: 0 Leader: 0 Replicas: 0,1 Isr: 0,1 Elr: LastKnownElr:",
        f"Topic: {TOPIC} Partition: 1 Leader: 1 Replicas: 1,2 Isr: 1,2 Elr: LastKnownElr:",
    ]


def test_what_the_console_writes_is_read_by_a_group_that_the_tools_describe(tools: Tools) -> None:
    tools.tool("ConsoleProducer", "--topic", TOPIC, "--compression-codec", "zstd", given="one\ntwo\nthree\n")
    read = tools.tool(
        "consumer.ConsoleConsumer",
        *("--topic", TOPIC, "--group", "tools-group", "--from-beginning", "--max-messages", "3"),
    )
    assert sorted(read.split()) == ["one", "three", "two"]
    described = lines(
        tools.tool("consumer.group.ConsumerGroupCommand", "--describe", "--group", "tools-group")
    )
    rows = [words for words in described if words[0] == "tools-group"]
    # The consumer may end before it has a position in a partition without records, and commits none there.
    assert {words[1] for words in rows} == {TOPIC} and {words[2] for words in rows} <= {"0", "1"}
    assert sum(int(words[3]) for words in rows) == sum(int(words[4]) for words in rows) == 3
    assert [words[5:] for words in rows] == [["0", "-", "-", "-"]] * len(rows)
    offsets = tools.tool("GetOffsetShell", "--topic", TOPIC).split()
    assert [row.split(":")[:2] for row in offsets] == [[TOPIC, "0"], [TOPIC, "1"]]
    assert sum(int(row.split(":")[2]) for row in offsets) == 3


def test_configs_of_a_topic_and_of_clients_without_quotas(tools: Tools) -> None:
    command = CONFIGS
    entity = ("--entity-type", "topics", "--entity-name", TOPIC)
    tools.run(command, "--alter", *entity, "--add-config", "retention.ms=86400000")
    assert "retention.ms=86400000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=86400000}" in (
        tools.run(command, "--describe", *entity)
    )
    tools.run(command, "--alter", *entity, "--delete-config", "retention.ms")
    assert tools.run(command, "--describe", "--entity-type", "clients").strip() == ""


def test_transactions_of_javas_producer_are_read_and_described(tools: Tools) -> None:
    """Records 0 to 299 in several transactions, all committed: the producer has a new epoch after each."""
    written = ("--topic", TOPIC, "--num-records", "300", "--record-size", "10", "--throughput", "300")
    printed = tools.tool("ProducerPerformance", *written, "--transactional-id", "perf",
                         "--transaction-duration-ms", "200")  # fmt: skip
    assert "300 records sent" in printed
    read = tools.tool(
        "consumer.ConsoleConsumer", "--topic", TOPIC, "--from-beginning", "--max-messages", "300",
        "--isolation-level", "read_committed", "--timeout-ms", "30000",
    )  # fmt: skip
    assert len(lines(read)) == 300
    (row,) = [words for words in lines(tools.tool("TransactionsCommand", "list")) if words[0] == "perf"]
    assert row[3] == "CompleteCommit"
    head, facts = lines(tools.tool("TransactionsCommand", "describe", "--transactional-id", "perf"))[:2]
    assert head[:5] == ["CoordinatorId", "TransactionalId", "ProducerId", "ProducerEpoch", "TransactionState"]
    assert facts[1] == "perf" and facts[4] == "CompleteCommit" and int(facts[3]) >= 3
    asked = ("describe-producers", "--topic", TOPIC, "--partition")
    producers = [words for n in "01" for words in lines(tools.tool("TransactionsCommand", *asked, n))]
    mine = [words for words in producers if words[0] == facts[2]]
    assert mine and {words[-1] for words in mine} == {"None"}, "no transaction is open"
    assert facts[3] in {words[1] for words in mine}, "the last marker has the last epoch"
    assert lines(tools.tool("TransactionsCommand", "find-hanging", "--broker-id", "0"))[1:] == []


def test_kafka_transactions_ends_what_hang_transaction_makes(kafka_runtime: tuple[Path, Path]) -> None:
    with Served("--brokers", "3", "--racks", "1", "--topic", "orders:1:3") as cluster:
        tools = Tools(kafka_runtime, cluster.bootstrap)
        cluster.do("hang-transaction orders-0")
        asked = ("describe-producers", "--topic", "orders", "--partition", "0")
        (start,) = [words[-1] for words in lines(tools.tool("TransactionsCommand", *asked))[1:]]
        place = ("--topic", "orders", "--partition", "0", "--start-offset", start)
        tools.tool("TransactionsCommand", "abort", *place)
        (left,) = [words[-1] for words in lines(tools.tool("TransactionsCommand", *asked))[1:]]
        assert (start.isdecimal(), left) == (True, "None")


def test_kafka_metadata_quorum_removes_a_controller(kafka_runtime: tuple[Path, Path]) -> None:
    with Served("--no-traffic", "--brokers", "1", "--racks", "1") as cluster:
        tools = Tools(kafka_runtime, cluster.bootstrap)

        def status() -> dict[str, str]:
            printed = tools.tool("MetadataQuorumCommand", "describe", "--status")
            return dict(line.split(":", 1) for line in printed.splitlines() if ":" in line)

        directories = {v["id"]: v["directoryId"] for v in json.loads(status()["CurrentVoters"])}
        assert sorted(directories) == [101, 102, 103]
        voter = ("--controller-id", "102", "--controller-directory-id", directories[102])
        assert "Removed" in tools.tool("MetadataQuorumCommand", "remove-controller", *voter)
        after = status()
        assert [v["id"] for v in json.loads(after["CurrentVoters"])] == [101, 103]
        assert 102 in [observer["id"] for observer in json.loads(after["CurrentObservers"])]


def test_a_group_of_the_consumer_protocol_is_read_and_described(tools: Tools) -> None:
    """Java's own consumer of the new protocol reads, and the tool describes its group in all its views."""
    group, command = "tools-kip848", "consumer.group.ConsumerGroupCommand"
    topic = "tools-kip848"
    tools.tool("TopicCommand", "--create", "--topic", topic, "--partitions", "2", "--replication-factor", "2")
    tools.tool("ConsoleProducer", "--topic", topic, given="one\ntwo\nthree\n")
    read = tools.tool(
        "consumer.ConsoleConsumer",
        *("--topic", topic, "--group", group, "--from-beginning", "--max-messages", "3"),
        *("--command-property", "group.protocol=consumer"),
    )
    assert len(read.split()) == 3
    asked = ("--describe", "--group", group)

    def state() -> list[str]:
        return lines(tools.tool(command, *asked, "--state", "--verbose"))[-1][3:]

    assert state() == ["uniform", "Empty", "3", "2", "0"]
    listed = lines(tools.tool(command, "--list", "--type", "consumer", "--state", "empty"))
    assert [group, "Consumer", "Empty"] in listed
    with new_consumer(tools.bootstrap, group, client_id="member") as member:
        member.subscribe([topic])
        wait_until(lambda: values_of(member) is not None and len(member.assignment()) == 2, "both partitions")
        (row,) = lines(tools.tool(command, *asked, "--members", "--verbose"))[1:]
        assert row[2:] == ["/127.0.0.1", "member", "2", "4", f"{topic}:0,1", "4", f"{topic}:0,1"]
        assert state() == ["uniform", "Stable", "4", "4", "1"]
        offsets = lines(tools.tool(command, *asked, "--offsets", "--verbose"))[1:]
        assert {tuple(words[1:3]) for words in offsets} == {(topic, "0"), (topic, "1")}
        assert {(words[6], words[-1]) for words in offsets} == {("0", "member")}
    tools.tool(command, "--delete", "--group", group)
    assert [group] not in lines(tools.tool(command, "--list"))


def test_a_share_group_is_read_described_and_reset(tools: Tools) -> None:
    """Java's own share consumer reads, and the tool describes its group, sets its offsets and deletes it."""
    group, command = "tools-share", "consumer.group.ShareGroupCommand"
    topic = "tools-share"
    tools.tool("TopicCommand", "--create", "--topic", topic, "--partitions", "1", "--replication-factor", "2")
    tools.tool("ConsoleProducer", "--topic", topic, given="one\ntwo\nthree\n")
    asked = ("--describe", "--group", group)

    def read(records: int) -> list[list[str]]:
        return lines(
            tools.tool(
                "consumer.ConsoleShareConsumer",
                *("--topic", topic, "--group", group, "--max-messages", str(records)),
                *("--formatter-property", "print.delivery=true", "--timeout-ms", "60000"),
            )
        )

    def reset() -> None:
        tools.tool(
            command, "--reset-offsets", "--group", group, "--topic", topic, "--to-earliest", "--execute"
        )

    def starts() -> list[list[str]]:
        return lines(tools.tool(command, *asked, "--offsets", "--verbose"))[1:]

    reset()
    # The coordinator asks the partition's leader for its end, which may not have told it yet.
    wait_until(lambda: starts() == [[group, topic, "0", "0", "0", "3"]], "the lag is known")
    assert read(3) == [["Delivery:1", "one"], ["Delivery:1", "two"], ["Delivery:1", "three"]]
    assert [words[4:] for words in starts()] == [["0", "0"]], "the last write has the start before it"
    assert lines(tools.tool(command, *asked, "--state"))[-1][3:] == ["Empty", "0"]
    assert [group, "Share", "share"] in lines(tools.tool("GroupsCommand", "--list"))
    tools.tool(command, "--delete-offsets", "--group", group, "--topic", topic)
    assert starts() == []
    tools.tool(command, "--delete", "--group", group)
    assert [group] not in lines(tools.tool(command, "--list"))


def test_streams_groups_are_listed_described_and_deleted(tools: Tools, cluster: Cluster) -> None:
    s = Streams(cluster)
    s.made("m")
    told = s.told("m", 3, {"0": [0, 1], "1": [0, 1]})
    assert told == (3, [], None, None)
    assert s.commit(s.topic, 1, 0, "m", 3) == 0
    group = ("--group", s.group)

    def run(*arguments: str) -> list[list[str]]:
        return lines(tools.tool("streams.StreamsGroupCommand", *arguments))

    assert [s.group] in run("--list")
    (head, *rows) = run("--describe", *group, "--offsets", "--verbose")
    assert head == [
        "GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LEADER-EPOCH", "LOG-END-OFFSET", "OFFSET-LAG",
    ]  # fmt: skip
    of_topic = [[s.group, s.topic, "0", "-", "-", "0", "0"], [s.group, s.topic, "1", "0", "-", "0", "0"]]
    of_sink = [[s.group, s.sink, partition, "-", "-", "0", "0"] for partition in "01"]
    assert sorted(rows) == sorted([*of_topic, *of_sink])
    (head, row) = run("--describe", *group, "--members", "--verbose")
    assert head == [
        "GROUP", "TARGET-ASSIGNMENT-EPOCH", "TOPOLOGY-EPOCH", "MEMBER", "MEMBER-PROTOCOL", "MEMBER-EPOCH",
        "PROCESS", "CLIENT-ID", "ASSIGNMENTS",
    ]  # fmt: skip
    assert " ".join(row) == (
        f"{s.group} 3 0 m streams 3 process-m kview-tests ACTIVE: 0:[0,1]; 1:[0,1]; "
        "TARGET-ACTIVE: 0:[0,1]; 1:[0,1];"
    )
    (head, row) = run("--describe", *group, "--state", "--verbose")
    assert head == [
        "GROUP", "COORDINATOR", "(ID)", "STATE", "GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH", "#MEMBERS",
    ]  # fmt: skip
    assert row[3:] == ["Stable", "3", "3", "1"]
    assert s.told("m", -1)[0] == -1
    assert run("--delete", *group)[0][:5] == ["Deletion", "of", "requested", "streams", "groups"]
    assert s.described().error_code == 69


def test_the_tools_of_4_3_work_with_brokers_of_3_9(kafka_runtime: tuple[Path, Path]) -> None:
    """As with a real 3.9.1, of which they print the same."""
    with Served("--release", "3.9", "--brokers", "2", "--racks", "1", "--empty") as cluster:
        cluster.create(TOPIC, [[0, 1]])
        tools = Tools(kafka_runtime, cluster.bootstrap)
        tools.tool("ConsoleProducer", "--topic", TOPIC, given="one\ntwo\n")
        asked = ("--topic", TOPIC, "--group", "old", "--from-beginning", "--max-messages", "2")
        assert tools.tool("consumer.ConsoleConsumer", *asked).split() == ["one", "two"]
        groups = tools.tool("consumer.group.ConsumerGroupCommand", "--list", "--type")
        assert lines(groups) == [["GROUP", "TYPE"], ["old", "Classic"]]
        features = {words[1]: words for words in lines(tools.tool("FeatureCommand", "describe"))}
        assert set(features) == {"kraft.version", "metadata.version"}
        assert "3.9-IV0" in features["metadata.version"]
