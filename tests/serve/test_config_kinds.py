"""Log levels and subscriptions of client metrics, which are configurations, and directories of replicas."""

from typing import Any

import pytest
from kafka.protocol.admin import AlterReplicaLogDirsRequest, DescribeLogDirsRequest

from kview.simulate.alterations import Alteration, Operation
from kview.simulate.loggers import LOGGERS
from tests.serve import questions as q
from tests.serve.both import Cluster
from tests.simulate.engine import cluster_of, go
from tests.waiting import wait_until

LOGGER, METRICS = 8, 16
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
APIS = "kafka.server.KafkaApis"
LEVELS = "Valid log levels are DEBUG, ERROR, FATAL, INFO, TRACE, WARN"
RANGE = "interval must be between 100 and 3600000 (1 hour)"
NO_LIST = "Can't APPEND to key metrics because its type is not LIST."


def described(cluster: Cluster, kind: int, name: str, *keys: str) -> Any:
    """Return the error of a resource, or (value, source, read-only) of its configurations."""
    result = q.describe_configs(cluster.leader, kind, name, keys or None)
    if result.error_code:
        return result.error_code, result.error_message
    return {c.name: (c.value, c.config_source, c.read_only) for c in result.configs}


def test_brokers_list_their_loggers(cluster: Cluster) -> None:
    found = described(cluster, LOGGER, "0")
    assert {"root", APIS, "kafka.server.ReplicaManager"} <= found.keys()
    assert found["root"] == ("INFO", 6, False)
    assert described(cluster, LOGGER, "") == (42, "Broker id must not be empty")
    assert described(cluster, LOGGER, "1") == (42, "Unexpected broker id, expected 0 but received 1")
    assert described(cluster, LOGGER, "x") == (42, "Broker id must be an integer, but it is: x")
    assert described(cluster, LOGGER, "0", "kafka.none") == {}


@pytest.mark.parametrize(
    ("name", "change", "expected"),
    [
        ("0", (APIS, SET, "debug"), (40, f"Cannot set the log level of {APIS} to debug as it is not a"
         f" supported log level. {LEVELS}")),
        ("0", ("root", DELETE, None), (42, "Removing the log level of the root logger is not allowed")),
        ("0", ("root", APPEND, "INFO"), (42, "APPEND operation is not allowed for the BROKER_LOGGER"
         " resource")),
        ("0", ("root", SET, None), (42, "Null value not supported for : root")),
        ("0", ("nobody", SET, "INFO"), (40, "Logger nobody does not exist!")),
        ("0", ("nobody", DELETE, None), (40, "Logger nobody does not exist!")),
        ("1", ("root", SET, "INFO"), (42, "Unexpected node id. Expected 0, but received 1")),
        ("", ("root", SET, "INFO"), (42, "Node id must be an integer, but it is: ")),
    ],
)  # fmt: skip
def test_wrong_log_levels_are_refused(
    cluster: Cluster, name: str, change: tuple[str, int, str | None], expected: tuple[int, str]
) -> None:
    assert q.incrementally_altered(cluster.leader, LOGGER, name, [change]) == expected


def test_log_levels_change_and_go_back_to_the_roots(cluster: Cluster) -> None:
    assert q.incremental_alter(cluster.leader, LOGGER, "0", [(APIS, SET, "DEBUG")], True) == 0
    assert described(cluster, LOGGER, "0", APIS)[APIS][0] == "INFO"
    assert q.incremental_alter(cluster.leader, LOGGER, "0", [(APIS, SET, "WARN")]) == 0
    assert described(cluster, LOGGER, "0", APIS)[APIS] == ("WARN", 6, False)
    assert q.incremental_alter(cluster.leader, LOGGER, "0", [(APIS, DELETE, None)]) == 0
    assert described(cluster, LOGGER, "0", APIS)[APIS][0] == "INFO"


def test_log_levels_are_forgotten_with_the_process() -> None:
    cluster = cluster_of()
    loggers = cluster.descriptions.loggers(0)
    loggers.alter([Alteration("root", Operation.SET, "WARN")], False)
    assert {entry.value for entry in loggers.entries()} == {"WARN"} and len(loggers.entries()) == len(LOGGERS)
    cluster.faults.crash(0)
    go(cluster, 1)
    cluster.faults.start(0)
    go(cluster, 20)
    assert {entry.value for entry in loggers.entries()} == {"INFO"}


@pytest.mark.parametrize(
    ("name", "change", "expected"),
    [
        ("wrong", ("interval.ms", SET, "99"), (42, f"Invalid value 99 for interval.ms, {RANGE}")),
        ("wrong", ("interval.ms", SET, "3600001"), (42, f"Invalid value 3600001 for interval.ms, {RANGE}")),
        ("wrong", ("interval.ms", SET, "x"), (40, "Invalid value x for configuration interval.ms: Not a"
         " number of type INT")),
        ("wrong", ("some", SET, "x"), (42, "Unknown client metrics configuration: some")),
        ("wrong", ("match", SET, "some=a.*"), (40, "Illegal client matching pattern: some=a.*")),
        ("wrong", ("match", SET, "client_id=["), (40, "Illegal client matching pattern: client_id=[")),
        ("wrong", ("match", SET, "client_id"), (40, "Illegal client matching pattern: client_id")),
        ("wrong", ("metrics", APPEND, "a.b"), (40, NO_LIST)),
        ("wrong", ("metrics", SET, None), (42, "Null value not supported for : metrics")),
        ("", ("metrics", SET, "x"), (42, "Subscription name can't be empty")),
    ],
)  # fmt: skip
def test_wrong_subscriptions_are_refused(
    cluster: Cluster, name: str, change: tuple[str, int, str | None], expected: tuple[int, str]
) -> None:
    assert q.incrementally_altered(cluster.leader, METRICS, name, [change]) == expected
    assert ("wrong", METRICS) not in q.config_resources(cluster.leader, [METRICS])[1]


def test_a_subscription_is_there_while_something_is_set(cluster: Cluster) -> None:
    nothing = {"interval.ms": ("300000", 5, False), "match": ("", 5, False), "metrics": ("", 5, False)}
    assert described(cluster, METRICS, "kinds") == nothing
    assert described(cluster, METRICS, "") == (42, "Client metrics subscription name must not be empty")
    changes = [("interval.ms", SET, "10000"), ("match", SET, "client_id=a.*"), ("metrics", SET, "a b")]
    assert q.incremental_alter(cluster.leader, METRICS, "kinds", changes) == 0
    wait_until(
        lambda: ("kinds", METRICS) in q.config_resources(cluster.leader, [METRICS])[1], "the broker knows"
    )
    assert described(cluster, METRICS, "kinds") == {
        "interval.ms": ("10000", 7, False),
        "match": ("client_id=a.*", 7, False),
        "metrics": ("a b", 7, False),
    }
    gone = [(key, DELETE, None) for key in nothing]
    assert q.incremental_alter(cluster.leader, METRICS, "kinds", gone) == 0
    wait_until(
        lambda: ("kinds", METRICS) not in q.config_resources(cluster.leader, [METRICS])[1], "the broker knows"
    )
    assert described(cluster, METRICS, "kinds") == nothing


def test_replicas_stay_in_the_one_directory_of_their_broker(cluster: Cluster) -> None:
    cluster.create("kinds", [[0], [1]])
    answer = q.ask(cluster.leader, DescribeLogDirsRequest(version=4, topics=None))
    path = answer.results[0].log_dir
    assert moved(cluster, (path, "kinds", 0)) == {("kinds", 0): 0}
    assert moved(cluster, ("/nowhere", "kinds", 0), (path, "kinds", 0)) == {("kinds", 0): 0}
    assert moved(cluster, (path + "/", "kinds", 0), (path, "kinds", 1), (path, "kinds", 7)) == {
        ("kinds", 0): 57,
        ("kinds", 1): 9,
        ("kinds", 7): 3,
    }
    assert moved(cluster, ("/nowhere", "none", 0)) == {("none", 0): 57}
    assert moved(cluster, (path, "none", 0)) == {("none", 0): 3}


def moved(cluster: Cluster, *wanted: tuple[str, str, int]) -> dict[tuple[str, int], int]:
    """Return the errors of AlterReplicaLogDirs. `wanted` has (directory, topic, partition)."""
    per_dir = AlterReplicaLogDirsRequest.AlterReplicaLogDir
    dirs = [
        per_dir(
            version=2,
            path=path,
            topics=[per_dir.AlterReplicaLogDirTopic(version=2, name=topic, partitions=[partition])],
        )
        for path, topic, partition in wanted
    ]
    answer = q.ask(cluster.leader, AlterReplicaLogDirsRequest(version=2, dirs=dirs))
    return {
        (topic.topic_name, row.partition_index): row.error_code
        for topic in answer.results
        for row in topic.partitions
    }
