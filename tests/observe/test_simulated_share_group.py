"""A share group of the simulated cluster, which librdkafka's member reads: kview tells it as one of a real
cluster (`test_group_kinds`)."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer, ShareConsumer

from kview.derive.view import View
from kview.observe.observer import ObserveSettings
from kview.plain.documents import document
from tests.observe.group_members import polling
from tests.observe.observing import Watched, observing
from tests.served import QUICK_TIMES, Served

TOPIC, GROUP = "orders", "pickers"
QUICK_SHARES = ("group.share.min.heartbeat.interval.ms=100", "group.share.heartbeat.interval.ms=200")


@pytest.fixture
def served() -> Iterator[Served]:
    flags = ("--no-traffic", "--brokers", "3", "--racks", "1", "--topic", f"{TOPIC}:2:3")
    with Served(*flags, settings=(*QUICK_TIMES, *QUICK_SHARES)) as served:
        yield served


def told(view: View) -> dict[str, Any]:
    """The group, as kview's JSON tells it."""
    return next((dict(one) for one in json.loads(document(view))["groups"] if one["group"] == GROUP), {})


def lags(view: View) -> list[int | None]:
    """How many records of each partition wait."""
    return [one["lag_records"] for one in told(view).get("share_partitions", [])]


@pytest.mark.slow  # clients join and leave, and time passes
def test_its_members_and_what_it_has_read_are_told(served: Served) -> None:
    settings = {"bootstrap.servers": served.bootstrap, "log_level": 0}
    member = ShareConsumer({**settings, "group.id": GROUP, "client.id": "picker"})
    member.subscribe([TOPIC])
    producer = Producer(settings)

    def write(view: View) -> bool:
        """Write a record to each partition. Whether both are read: before, a group begins at their ends."""
        for partition in range(2):
            producer.produce(TOPIC, b"x", partition=partition)
        producer.flush(10)
        return len(lags(view)) == 2 and None not in lags(view)

    with observing(served.addresses, ObserveSettings(interval_s=0.3)) as observer:
        watched = Watched(observer)
        with polling(lambda: member.poll(0.1), member.close):
            watched.until(write, "reading")
            view = watched.until(lambda view: lags(view) == [0, 0], "all is read")
        group = told(view)
        assert (group["type"], group["state"], group["members"]) == ("share", "Stable", 1)
        (row,) = group["member_list"]
        assert (row["client_id"], row["assigned"], row["runs"]) == ("picker", 2, f"{TOPIC}: 0, 1")
        assert (group["verdict"]["kind"], group["partitions"]) == ("ok", []), "it commits nothing"
        view = watched.until(lambda view: told(view)["state"] == "Empty", "the member has left")
        assert (told(view)["members"], lags(view)) == (0, [0, 0])
        write(view)
        view = watched.until(lambda view: lags(view) == [1, 1], "a record waits in each partition")
        assert told(view)["verdict"]["kind"] == "stopped"
