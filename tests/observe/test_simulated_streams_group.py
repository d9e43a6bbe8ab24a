"""A streams group of the simulated cluster: kview tells it as one of a real cluster (`test_group_kinds`)."""

import json
from typing import Any

import pytest

from kview.derive.view import View
from kview.observe.observer import ObserveSettings
from kview.plain.documents import document
from tests.observe.observing import Watched, observing
from tests.observe.protocol_members import StreamsMember
from tests.served import QUICK_TIMES, Served

TOPIC, GROUP = "orders", "counter"


def told(view: View) -> dict[str, Any]:
    """The group, as kview's JSON tells it."""
    return next((dict(one) for one in json.loads(document(view))["groups"] if one["group"] == GROUP), {})


@pytest.mark.slow  # members join and leave, and time passes
def test_its_members_and_their_tasks_are_told() -> None:
    flags = ("--no-traffic", "--brokers", "3", "--racks", "1", "--topic", f"{TOPIC}:2:3")
    at_once = [f"group.streams.{name}.ms=0" for name in ("initial.rebalance.delay", "assignment.interval")]
    with (
        Served(*flags, settings=(*QUICK_TIMES, *at_once)) as served,
        observing(served.addresses, ObserveSettings(interval_s=0.3)) as observer,
    ):
        watched = Watched(observer)
        member = StreamsMember(served, GROUP, TOPIC)
        watched.until(lambda view: member.beat() == 2, "it has tasks")
        member.commit({0: 0, 1: 0})
        view = watched.until(lambda view: told(view).get("members") == 1, "the group is described")
        group = told(view)
        assert (group["type"], group["state"], group["epoch"], group["assignment_epoch"]) == (
            "streams", "Stable", member.epoch, member.epoch,
        )  # fmt: skip
        (row,) = group["member_list"]
        assert (row["member_id"], row["assigned"], row["runs"]) == (member.id, 2, "active 0_0, 0_1")
        view = watched.until(lambda view: len(told(view)["partitions"]) == 2, "its offsets are told")
        assert [row["owner"] for row in told(view)["partitions"]] == [member.id] * 2
        member.leave()
        watched.until(lambda view: told(view)["state"] == "Empty", "the member has left")
