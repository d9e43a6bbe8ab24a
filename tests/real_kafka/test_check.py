"""`kview check` of a real cluster: with everything up, and with a broker down."""

import json
from secrets import token_hex
from typing import Any

import pytest

from tests.cli.commands import run_kview
from tests.real_kafka.cluster import RealKafka

START_S = 180

BY_SPEED = {"broker_silent", "broker_slow"}
"""The kinds that depend on how much of the machine the brokers and kview get."""


def checked(cluster: RealKafka, topic: str) -> dict[str, Any]:
    """What a check finds about the topic, the brokers and the controllers; other tests have topics, too."""
    ignore = [word for kind in ("group_*", "*_loss", "*_skew") for word in ("--ignore", kind)]
    servers = cluster.bootstrap_servers
    done = run_kview("check", servers, "--format", "json", "--for", "8s", *ignore, timeout_s=START_S)
    assert done.returncode in (0, 1), done.stderr
    read: dict[str, Any] = json.loads(done.stdout)
    cluster_wide = ("broker_", "voter_", "no_")
    read["findings"] = {
        (row["kind"], row["name"]): row
        for row in read["findings"]
        if row["name"] == topic or row["kind"].startswith(cluster_wide)
    }
    own = {topic, *map(str, (*cluster.broker_ids, *cluster.controller_ids))}
    read["not_judged"] = [item for item in read["not_judged"] if own.issuperset(item["names"])]
    return read


@pytest.mark.slow  # tests/cli/test_check.py has the same on the simulated cluster
def test_a_real_cluster_before_and_after_a_crash(real_kafka: RealKafka) -> None:
    topic = f"checked-{token_hex(4)}"
    real_kafka.create_topic(topic, [[0, 1, 2], [1, 2, 0], [2, 0, 1]], {"min.insync.replicas": "2"})
    real_kafka.wait_for_full_isr(topic, 3)
    before = checked(real_kafka, topic)
    assert {kind for kind, _ in before["findings"]} <= BY_SPEED, before["findings"]
    assert {kind for item in before["not_judged"] for kind in item["kinds"]} <= BY_SPEED, before["not_judged"]
    real_kafka.kill(2)
    try:
        after = checked(real_kafka, topic)
    finally:
        real_kafka.restart(2)
    found = after["findings"]
    assert not after["healthy"]
    assert {("at_min_isr", topic), ("under_replicated", topic)} <= found.keys(), found
    assert found["under_replicated", topic]["brokers"] == [2]
    assert found["under_replicated", topic]["partition_count"] == 3
    assert found.keys() & {(kind, "2") for kind in ("broker_silent", "broker_fenced", "broker_gone")}, found
