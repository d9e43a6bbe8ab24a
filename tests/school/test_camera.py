"""The camera's snapshots are those of an observer over sockets, field by field.

Three things differ, and must: the times at which answers were received (the camera's are all of one
moment), what asking costs (latency, requests, bytes, ports), and what is read rarely (sizes). Everything else
is equal.
Offsets that move meanwhile lie between those of the camera's snapshots before and after the observation; the
last readings of a dead broker may be half a second apart.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from kview.model.lab import Command, CommandKind
from kview.model.snapshot import Snapshot, Table
from kview.model.states import REBALANCING, BrokerState
from kview.model.units import UNKNOWN
from kview.school.camera import Camera
from kview.simulate.groups.streams_records import Role, Subtopology, TaskKey, TopologyValue
from kview.simulate.groups.streams_results import StreamsHeartbeat, StreamsHeartbeatResult
from kview.simulate.traffic.member import Phase, SimulatedMember
from kview.simulate.world import GroupSpec, ProducerSpec, TopicSpec, default_world
from tests.school.both_ways import BothWays, both_ways, rows
from tests.simulate.engine import cluster_of, go
from tests.waiting import PATIENCE_S, wait_until

KEYS = {
    "brokers": ("id",),
    "partitions": ("topic", "partition"),
    "replicas": ("topic", "partition", "broker"),
    "groups": ("group",),
    "members": ("group", "member_id"),
    "offsets": ("group", "topic", "partition"),
    "quorum": ("node",),
    "reassignments": ("topic", "partition"),
    "topic_configs": ("topic", "name"),
    "transactions": ("topic", "partition", "producer_id"),
}
MOVES = {"log_start", "high_watermark", "last_stable", "log_end", "committed"}
"""Columns that only rise while nothing is truncated."""
OF_ASKING = {"host", "port", "latency_us", "last_stable_ms", "apis"}
RARELY = {"size_bytes", "disk_bytes"}
QUORUM_RECORDS = 6
"""The answer about the quorum, which is forwarded, may be one or two observations old. The log of its idle
metadata grows by two records a second."""
OLD_RECORDS = 120
"""What a partition's producer writes in the time between two last readings of a broker that died."""
UP = BrokerState.UP
TIMES_MS = 2_500
"""How far the times of the same thing may be apart: both look twice a second, and the observer takes up to
1.5 s to believe in a silence."""
OF_TRANSACTIONS = {"last_stable_since_ms", "received_ms"}
TRANSACTIONS_MS = 7_500
"""The same for what both ask about transactions, every five seconds."""


def differences(before: Snapshot, seen: Snapshot, after: Snapshot) -> list[str]:
    """Return what an observation has that neither of the camera's snapshots around it has."""
    found = []
    for name, keys in KEYS.items():
        tables = [getattr(one, name) for one in (before, seen, after)]
        old = QUORUM_RECORDS if name == "quorum" else 0
        found += [f"{name}.{text}" for text in _unlike(tables, keys, old, seen.observation.began_ms)]
    a, b = before.observation, seen.observation
    for name in ("cluster_id", "controller_id", "controller_epoch", "capabilities"):
        if getattr(a, name) != getattr(b, name):
            found.append(f"observation.{name}: {getattr(a, name)} is not {getattr(b, name)}")
    told = [{(one.part, one.broker, one.kind, one.code) for one in o.failures} for o in (a, b)]
    if told[0] != told[1]:
        found.append(f"failures: {told}")
    return found


def _unlike(tables: list[Table], keys: tuple[str, ...], old: int, began_ms: int) -> Iterator[str]:
    at = [rows(table, *keys) for table in tables]
    if at[1].keys() not in (at[0].keys(), at[2].keys()):
        yield f"rows: {at[1].keys() ^ at[0].keys()}"
        return
    both = [key for key in at[1] if key in at[0] and key in at[2]]
    order = [[found[key] for key in both] for found in at]
    for name in tables[1].__struct_fields__:
        if name in OF_ASKING:
            continue
        values = [getattr(table, name)[rows] for table, rows in zip(tables, order, strict=True)]
        read_ms = getattr(tables[1], f"{name}_ms", None)
        for row, (low, one, high) in enumerate(zip(*values, strict=True)):
            is_old = read_ms is not None and read_ms[order[1][row]] < began_ms
            if not _alike(name, low, one, high, OLD_RECORDS if is_old else old):
                yield f"{name} of {both[row]}: {one!r} is neither {low!r} nor {high!r}"


def _alike(name: str, low: Any, one: Any, high: Any, old: int) -> bool:
    if isinstance(one, np.ndarray):
        return _ids(one) in (_ids(low), _ids(high))
    if one in (low, high):
        return True
    if name.endswith("_ms") and UNKNOWN not in (low, one, high):
        apart_ms = TRANSACTIONS_MS if name in OF_TRANSACTIONS else TIMES_MS
        return bool(low - apart_ms <= one <= high + apart_ms)
    if name in RARELY and UNKNOWN not in (low, one, high):
        return bool(abs(one - low) < 0.2 * low + 1_000_000)
    if name in MOVES:
        return bool(low - old <= one <= high + (old if old == OLD_RECORDS else 0))
    return False


def _ids(ids: Any) -> list[int]:
    return sorted(id for id in ids.tolist() if id >= 0)


def test_a_wrong_camera_is_found_out() -> None:
    world = default_world(brokers=3, racks=1)
    with both_ways(world) as cluster:
        before, seen, after = agreed(cluster, lambda seen: True, "a healthy cluster")
        for name in ("partitions", "brokers", "offsets"):
            table = getattr(seen, name)
            for column in table.__struct_fields__:
                value = getattr(table, column)
                if column in OF_ASKING | RARELY or column in KEYS[name]:
                    continue
                if value.dtype == object:
                    wrong = np.array(["wrong"] * len(value), object)
                elif value.dtype == bool:
                    wrong = ~value
                elif column.endswith("_ms") or column in MOVES:
                    wrong = value + 10_000_000
                else:
                    wrong = value + 1
                if not value.size:
                    continue
                changed = replace(seen, **{name: replace(table, **{column: wrong})})
                assert differences(before, changed, after), f"nobody notices {name}.{column}"


def agreed(
    cluster: BothWays, holds: Callable[[Snapshot], bool], what: str, in_a_row: int = 2
) -> tuple[Snapshot, Snapshot, Snapshot]:
    """Look until both have seen that `holds`, and return what they saw once they agreed `in_a_row`."""
    last: list[str] = ["nothing was seen"]
    times = 0

    def probe() -> tuple[Snapshot, Snapshot, Snapshot] | None:
        nonlocal last, times
        snapshots = cluster.look()
        if not holds(snapshots[1]):
            times = 0
            return None
        last = differences(*snapshots)
        times = 0 if last else times + 1
        return snapshots if times == in_a_row else None

    try:
        found = wait_until(probe, what, PATIENCE_S / 4)
    except AssertionError:
        pytest.fail(f"{what}: " + "\n".join(last[:20]))
    assert found is not None
    return found


def states(snapshot: Snapshot) -> dict[int, str]:
    """Return the brokers' states."""
    return dict(zip(snapshot.brokers.id.tolist(), snapshot.brokers.state.tolist(), strict=True))


def test_a_broker_that_is_unregistered_is_gone_until_it_starts_again() -> None:
    cluster = cluster_of()
    camera = Camera(cluster)
    assert set(states(camera.snapshot()).values()) == {UP}
    cluster.controller.unregister(2)
    go(cluster, 1)
    assert states(camera.snapshot()) == {0: UP, 1: UP, 2: BrokerState.GONE}
    cluster.faults.crash(2)
    cluster.faults.start(2)
    go(cluster, 60)
    seen = [states(camera.snapshot())[2] for _ in range(2)]
    assert seen == [BrokerState.STARTING, UP], "it is asked again once it is listed again"


def leave_after_death(member: SimulatedMember) -> None:
    """Say the good-bye that a member that died owes its coordinator."""
    member.phase = Phase.JOINING
    member.leave()


@pytest.mark.slow
def test_camera_and_observer_see_the_same() -> None:
    topics = (TopicSpec("invoice", 10, 3), TopicSpec("payment", 6, 3, {"min.insync.replicas": "2"}))
    settings = {"broker.session.timeout.ms": "6000", "group.initial.rebalance.delay.ms": "0"}
    world = default_world(settings=settings, topics=(*topics, TopicSpec("audit-log", 4, 1)))
    with both_ways(world) as cluster:
        engine = cluster.cluster
        faults = engine.faults
        _, healthy, _ = agreed(cluster, lambda seen: set(states(seen).values()) == {UP}, "all are up")
        assert len(healthy.offsets) == 20 and len(healthy.time_points) == 6 * 20

        cluster.act(lambda: faults.crash(4))
        agreed(cluster, lambda seen: states(seen)[4] == BrokerState.SILENT, "a crash")
        _, seen, _ = agreed(cluster, lambda seen: states(seen)[4] == BrokerState.FENCED, "a fenced broker")
        assert (seen.partitions.leader == -1).any()
        cluster.act(lambda: engine.controller.unregister(4))
        agreed(cluster, lambda seen: states(seen)[4] == BrokerState.GONE, "a broker that is unregistered")
        cluster.act(lambda: faults.start(4))
        agreed(cluster, lambda seen: states(seen)[4] == UP, "its return")

        cluster.act(lambda: faults.hang(2))
        agreed(cluster, lambda seen: states(seen)[2] == BrokerState.SILENT, "a hang", in_a_row=1)
        agreed(cluster, lambda seen: states(seen)[2] == BrokerState.FENCED, "a fenced broker that hangs")
        cluster.act(lambda: faults.start(2))
        agreed(cluster, lambda seen: states(seen)[2] == UP, "the end of the hang")

        spec = GroupSpec("invoice-group", ("invoice",), 3)
        dead = engine.traffic.members[spec.name][0]
        cluster.act(dead.die)
        for _ in range(2):
            cluster.act(lambda: engine.traffic.add_member(spec))
        # The coordinator waits for the member that says nothing, and so the rebalance lasts until it leaves.
        agreed(cluster, lambda seen: bool(set(seen.groups.state) & REBALANCING), "a rebalance", in_a_row=1)
        cluster.act(lambda: leave_after_death(dead))
        agreed(
            cluster,
            lambda seen: (seen.groups.members == 4).any() and set(seen.groups.state) == {"Stable"},
            "four members",
        )

        cluster.act(faults.crash_controller)
        agreed(cluster, lambda seen: seen.observation.controller_epoch == 2, "another controller")


@pytest.mark.slow
def test_camera_and_observer_see_the_same_transactions() -> None:
    topics = (TopicSpec("orders", 2, 3), TopicSpec("payment", 1, 3))
    world = default_world(brokers=3, racks=1, topics=topics)
    steady = ProducerSpec("steady", "payment", 50.0, transaction_ms=600_000)
    producers = (ProducerSpec("orders-producer", "orders", 500.0), steady)
    with both_ways(replace(world, producers=producers)) as cluster:
        adjust = cluster.cluster.adjustments.apply
        cluster.act(lambda: adjust(Command(CommandKind.HANG_TRANSACTION, name="orders-0")))
        _, seen, _ = agreed(
            cluster, lambda seen: set(seen.transactions.state) == {"hanging", "Ongoing"}, "two transactions"
        )
        known = {row: str(state) for row, state in enumerate(seen.transactions.state)}
        (hanging,), (steady_row,) = (
            [row for row, state in known.items() if state == wanted] for wanted in ("hanging", "Ongoing")
        )
        assert seen.transactions.topic[hanging] == "orders"
        assert seen.transactions.transactional_id[steady_row] == "steady"
        held = seen.partitions.last_stable < seen.partitions.high_watermark
        assert list(zip(seen.partitions.topic[held], seen.partitions.partition[held], strict=True)) == [
            ("orders", 0), ("payment", 0),
        ]  # fmt: skip

        cluster.act(lambda: adjust(Command(CommandKind.ABORT_TRANSACTION, name="orders-0")))
        agreed(cluster, lambda seen: set(seen.transactions.state) == {"Ongoing"}, "one transaction")


@pytest.mark.slow
def test_camera_and_observer_see_the_same_streams_group() -> None:
    """Two members, of which the second waits for what the first has not given back."""
    at_once = {f"group.streams.{name}.ms": "0" for name in ("initial.rebalance.delay", "assignment.interval")}
    world = default_world(brokers=3, racks=1, topics=(TopicSpec("orders", 4, 3),), settings=at_once)
    reads = TopologyValue(3, (Subtopology("0", ("orders",), (), (), (), (), ()),))
    with both_ways(replace(world, groups=())) as cluster:
        engine = cluster.cluster

        def beat(member: str, epoch: int, *partitions: int) -> None:
            owned = {TaskKey(Role.ACTIVE, "0"): frozenset(partitions)} if partitions else {}
            request = StreamsHeartbeat(
                "counter", member, epoch, "client", "/127.0.0.1", rebalance_timeout_ms=60_000, owned=owned,
                topology=None if epoch else reads, process_id=member, rack_id="R1",
            )  # fmt: skip
            engine.groups(engine.groups(0).find("counter")).streams_heartbeat(request, answers.append)

        answers: list[StreamsHeartbeatResult] = []
        cluster.act(lambda: beat("a", 0))
        agreed(cluster, lambda seen: seen.groups.state.tolist() == ["Stable"], "a stable group")
        cluster.act(lambda: beat("b", 0))
        cluster.act(lambda: beat("a", 2, 0, 1, 2, 3))
        _, seen, _ = agreed(cluster, lambda seen: seen.members.to_get.sum() == 2, "tasks that move")
        assert seen.groups.topology_epoch.tolist() == [3] and set(seen.offsets.owner) == {"a"}
        cluster.act(lambda: beat("b", -1))
        agreed(cluster, lambda seen: seen.groups.members.tolist() == [1], "one member")
        assert [answer.error_code for answer in answers] == [0, 0, 0, 0]
