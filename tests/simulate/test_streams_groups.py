"""Streams groups at their coordinator: the assignor, time-outs, failover, and random walks."""

from collections.abc import Mapping, Sequence
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from kview.simulate.codes import ErrorCode
from kview.simulate.coordination.java_hashes import java_map_order
from kview.simulate.groups.consumer_records import MemberState
from kview.simulate.groups.records import Change, decode_key, decode_value, encode_key, encode_value
from kview.simulate.groups.results import GroupProtocol
from kview.simulate.groups.streams_assignor import TaskCount, assign_sticky
from kview.simulate.groups.streams_group import StreamsGroup
from kview.simulate.groups.streams_records import (
    Role,
    StreamsCurrentKey,
    StreamsCurrentValue,
    StreamsEpochKey,
    StreamsEpochValue,
    StreamsMemberKey,
    StreamsMemberValue,
    StreamsTargetEpochKey,
    StreamsTargetEpochValue,
    StreamsTargetKey,
    StreamsTargetValue,
    Subtopology,
    TaskKey,
    Tasks,
    TopicInfo,
    TopologyKey,
    TopologyValue,
)
from kview.simulate.groups.streams_topology import TASKS_MAX
from kview.wire.primitives import MalformedBytes
from tests.simulate.group_invariants import owned_twice
from tests.simulate.groups_host import Client, Offsets
from tests.simulate.streams_client import LOG, StreamsClient, counting, group_of

QUICK = {"streams_initial_rebalance_delay_ms": 0, "streams_assignment_interval_ms": 0}


# --- the assignor


def of_role(tasks: Tasks, role: Role) -> set[tuple[str, int]]:
    return {(key.subtopology, n) for key, numbers in tasks.items() if key.role is role for n in numbers}


@settings(max_examples=200, deadline=None)
@given(
    members=st.integers(1, 8),
    per_process=st.integers(1, 3),
    partitions=st.integers(1, 9),
    standbys=st.integers(0, 2),
    moves=st.lists(st.integers(-2, 2), max_size=5),
)
@example(members=7, per_process=2, partitions=9, standbys=0, moves=[1])
def test_the_sticky_assignor_balances(
    members: int, per_process: int, partitions: int, standbys: int, moves: Sequence[int]
) -> None:
    """Each task is active once and has its copies in other processes, and nothing moves without a reason."""
    tasks = [TaskCount("0", partitions, False), TaskCount("1", partitions, True)]
    every = {(name, n) for name in "01" for n in range(partitions)}
    before: dict[str, Tasks] = {}
    for move in (0, *moves):
        members = max(1, members + move)
        processes = {f"m{n}": f"p{n // per_process}" for n in range(members)}
        before = assign_sticky(processes, before, tasks, standbys)
        active = {name: of_role(before[name], Role.ACTIVE) for name in processes}
        copies = {name: of_role(before[name], Role.STANDBY) for name in processes}
        assert sorted(task for has in active.values() for task in has) == sorted(every)
        sizes = [len(has) for has in active.values()]
        # Processes are balanced, and within one of several members a new one may get less than the other.
        most = 1 if per_process == 1 else 2 if members % per_process == 0 else 2 * partitions
        assert max(sizes) - min(sizes) <= most
        count = len(set(processes.values()))
        for task in every:
            holders = [processes[name] for has in (active, copies) for name in processes if task in has[name]]
            assert len(holders) == len(set(holders)), "never twice in a process"
            assert len(holders) == 1 + (min(standbys, count - 1) if task[0] == "1" else 0)
    if per_process == 1 and not standbys:
        assert assign_sticky(processes, before, tasks, standbys) == before


def kafkas(
    standbys: int, tasks: tuple[int, int], given: str, before: Mapping[str, Tasks]
) -> tuple[str, dict[str, Tasks]]:
    """Assign, and return the active tasks and copies of each member, as in a line of Java's harness."""
    processes = dict(pair.split(":") for pair in given.split())
    counts = [TaskCount("0", tasks[0], False), TaskCount("1", tasks[1], True)]
    assigned = assign_sticky(processes, before, counts, standbys)
    lists = {
        name: "/".join(
            ",".join(f"{subtopology}_{n}" for subtopology, n in sorted(of_role(has, role)))
            for role in (Role.ACTIVE, Role.STANDBY)
        )
        for name, has in assigned.items()
    }
    return " ".join(f"{name}:{lists[name]}" for name in sorted(lists)), assigned


def test_the_sticky_assignor_gives_each_member_what_kafkas_gives() -> None:
    """As StickyTaskAssignor of 4.3.1 does, which was run with the same members, one after the other."""
    first = "kiwi:p0 plum:p0 pear:p1 fig:p1 lime:p2"
    said, before = kafkas(2, (2, 7), first, {})
    assert said == (
        "fig:1_2,1_6/1_3 kiwi:1_1/1_0,1_4,1_6 lime:0_1,1_5/1_0,1_1,1_2,1_3,1_4,1_6 pear:1_0,1_4/1_1,1_5 "
        "plum:0_0,1_3/1_2,1_5"
    )
    said, before = kafkas(2, (2, 7), f"{first} date:p3 nut:p3", before)
    assert said == (
        "date:1_5/1_1,1_4 fig:1_2/1_3,1_6 kiwi:1_1/1_0,1_4,1_6 lime:0_1/1_2,1_5 nut:1_6/1_0,1_3 "
        "pear:1_0,1_4/1_1 plum:0_0,1_3/1_2,1_5"
    )
    said, before = kafkas(1, (2, 7), "plum:p0 fig:p1 lime:p2 date:p3 nut:p3", before)
    assert said == ("date:1_1,1_5/1_4 fig:1_2,1_4/1_6 lime:0_1/1_0,1_1,1_5 nut:1_0,1_6/1_3 plum:0_0,1_3/1_2")


def test_copies_that_no_process_can_have_are_not_looked_for() -> None:
    assigned = assign_sticky({"a": "p", "b": "q"}, {}, [TaskCount("0", 2, True)], 2**31 - 1)
    assert [len(has) for has in assigned.values()] == [2, 2], "one active, and one copy of the other's"


def test_names_are_in_the_order_of_javas_hash_maps() -> None:
    """As `new java.util.HashMap` has them as keys, seen in Java 17."""
    assert java_map_order(["b", "a", "AaAa", "BBBB"]) == ["a", "b", "AaAa", "BBBB"]
    numbers = (6, 7, 8, 9, 0, 1, 2, 3, 10, 4, 11, 5, 12, 13)
    assert java_map_order(f"topic-{n}" for n in range(14)) == [f"topic-{n}" for n in numbers]


# --- records

G = "group-streams-7adaba8c"
SINK, TOPIC = f"{G}-by-key-repartition", "streams-7adaba8c"
COMPACT = (("cleanup.policy", "compact"),)
GROUP_HEX = "001667726f75702d73747265616d732d3761646162613863"
ACTIVE_0, ACTIVE_1 = (TaskKey(Role.ACTIVE, name) for name in "01")

OF_KAFKA: list[tuple[Change, str, str]] = [
    (
        (
            StreamsMemberKey(G, "b"),
            StreamsMemberValue(
                None, "r", "kview-tests", "/127.0.0.1", 60_000, 0, "process-b", ("here", 65_535),
                (("a", "2"), ("z", "1")),
            ),
        ),
        f"0013{GROUP_HEX}000162",
        "00000002720c6b766965772d74657374730b2f3132372e302e302e310000ea60000000000a70726f636573732d62010568657265"
        "ffff00030261023200027a02310000",
    ),
    (
        (
            TopologyKey(G),
            TopologyValue(
                0,
                (
                    Subtopology("0", (TOPIC,), (), (), (SINK,), (), ()),
                    Subtopology(
                        "1", (), (), (TopicInfo(f"{G}-counts-changelog", 0, 0, COMPACT),), (),
                        (TopicInfo(SINK, 0, 0, ()),), (),
                    ),
                ),
            ),
        ),
        f"0017{GROUP_HEX}",
        "000000000000030230021173747265616d732d37616461626138630101022a67726f75702d73747265616d732d37616461626138"
        "632d62792d6b65792d7265706172746974696f6e01010002310101022867726f75702d73747265616d732d37616461626138632d"
        "636f756e74732d6368616e67656c6f67000000000000020f636c65616e75702e706f6c69637908636f6d70616374000001022a67"
        "726f75702d73747265616d732d37616461626138632d62792d6b65792d7265706172746974696f6e0000000000000100010000",
    ),
    (
        (StreamsEpochKey(G), StreamsEpochValue(2, 0x41C467A7D7C926AC, -1, (("num.standby.replicas", "0"),))),
        f"0011{GROUP_HEX}",
        "00000000000241c467a7d7c926ac01011902156e756d2e7374616e6462792e7265706c69636173023000",
    ),
    (
        (StreamsTargetKey(G, "b"), StreamsTargetValue({ACTIVE_0: frozenset({1}), ACTIVE_1: frozenset({1})})),
        f"0015{GROUP_HEX}000162",
        "00000302300200000001000231020000000100010100",
    ),
    (
        (StreamsTargetEpochKey(G), StreamsTargetEpochValue(4, 0x1A21C3A04F1)),
        f"0014{GROUP_HEX}",
        "000000000004010008000001a21c3a04f1",
    ),
    (
        (
            StreamsCurrentKey(G, "a"),
            StreamsCurrentValue(
                3, 3, MemberState.UNREVOKED_PARTITIONS, {ACTIVE_0: {0: 3}, ACTIVE_1: {0: 3}},
                {ACTIVE_0: {1: 3}, ACTIVE_1: {1: 3}},
            ),
        ),
        f"0016{GROUP_HEX}000161",
        "0000000000030000000302030230020000000001000502000000030231020000000001000502000000030101030230020000"
        "00010100050200000003023102000000010100050200000003010100",
    ),
]  # fmt: skip
"""Records that a real cluster wrote."""


NAMES = [type(change[0]).__name__ for change, _, _ in OF_KAFKA]


@pytest.mark.parametrize(("change", "key", "value"), OF_KAFKA, ids=NAMES)
def test_records_are_kafkas(change: Change, key: str, value: str) -> None:
    ours = encode_key(change[0])
    assert change[1] is not None and (ours.hex(), encode_value(change[1]).hex()) == (key, value)
    assert (decode_key(ours), decode_value(change[0], bytes.fromhex(value))) == change


@given(st.binary(max_size=60), st.integers(17, 23))
def test_garbage_is_malformed_and_nothing_else(data: bytes, version: int) -> None:
    with suppress(MalformedBytes):
        decode_key(bytes((0, version)) + data)
    for change, _, _ in OF_KAFKA:
        with suppress(MalformedBytes):
            decode_value(change[0], data)


# --- members


@pytest.fixture
def offsets() -> Offsets:
    offsets = Offsets(partitions={"t": 4})
    for name in ("u", LOG):
        offsets.set_topic(name, 2)
    for broker in (0, 1):
        offsets.coordinator(broker, **QUICK)
    return offsets


def members(offsets: Offsets, *names: str) -> list[StreamsClient]:
    """Let members join, and settle."""
    made = [StreamsClient(offsets, offsets.coordinators[offsets.leader], name) for name in names]
    for member in made:
        member.join()
    for _ in range(6):
        for member in made:
            assert member.beat().error_code is ErrorCode.NONE
    assert group_of(offsets.coordinators[offsets.leader]).state == "Stable"
    return made


def test_a_new_coordinator_has_the_same_group_and_restarts_its_sessions(offsets: Offsets) -> None:
    a, b = members(offsets, "a", "b")
    before = group_of(a.coordinator)
    assert {len(a.has) > 0, len(b.has) > 0} == {True}
    offsets.run(30)
    offsets.move(1)
    offsets.run(1)
    after = group_of(offsets.coordinators[1])
    kept = ("epoch", "metadata_hash", "validated_epoch", "configs", "target_epoch", "members", "targets",
            "topology", "state")  # fmt: skip
    assert all(getattr(after, name) == getattr(before, name) for name in kept)
    a.coordinator = b.coordinator = offsets.coordinators[1]
    offsets.run(30)
    assert a.beat().error_code is ErrorCode.NONE and a.answers[-1].tasks is None, "no rebalance"
    offsets.run(30)
    assert list(group_of(a.coordinator).members) == ["a"], "the session of the other one has ended"
    for _ in range(3):
        a.beat()
    assert sum(len(numbers) for numbers in a.has.values()) == 6


def test_a_member_that_does_not_revoke_is_removed(offsets: Offsets) -> None:
    (a,) = members(offsets, "a")
    b = StreamsClient(offsets, a.coordinator, "b")
    b.join()
    had = dict(a.has)
    a.ask(a.epoch, owned=had)
    for _ in range(7):
        offsets.run(10)
        b.beat()
        if a.ask(a.epoch, owned=had).error_code is not ErrorCode.NONE:
            break
    assert a.answers[-1].error_code is ErrorCode.UNKNOWN_MEMBER_ID
    for _ in range(3):
        b.beat()
    assert b.has == had, "all tasks are the other one's"


def test_a_topic_that_grows_brings_more_tasks(offsets: Offsets) -> None:
    (a,) = members(offsets, "a")
    offsets.set_topic("t", 6)
    a.coordinator.topics_changed()
    a.beat()
    assert sum(len(numbers) for numbers in a.has.values()) == 8
    offsets.set_topic("t", 0)
    a.beat()
    assert group_of(a.coordinator).state == "NotReady" and a.has == {}
    (status,) = a.answers[-1].status
    assert status.detail == "Source topics t are missing."


def test_a_topology_with_too_many_tasks_is_refused() -> None:
    offsets = Offsets(partitions={"t": 1})
    offsets.set_topic("u", 10_000)
    coordinator = offsets.coordinator(0, **QUICK)
    topics = (Subtopology(f"{n}", ("u",), (), (), (), (), ()) for n in range(TASKS_MAX // 10_000 + 1))
    told = StreamsClient(offsets, coordinator, "a").join(TopologyValue(0, tuple(topics)))
    assert told.error_code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert told.message == f"A topology has more than {TASKS_MAX} tasks."
    assert coordinator.groups() == []


def test_a_refused_heartbeat_changes_nothing(offsets: Offsets) -> None:
    """An endpoint without the topics that are read behind it is refused last."""
    coordinator = offsets.coordinator(0, streams_initial_rebalance_delay_ms=3_000)
    a, b = (StreamsClient(offsets, coordinator, name) for name in "ab")
    missing, here = counting("no-such-topic"), ("here", 1)
    assert a.join(missing, endpoint=here).error_code is ErrorCode.UNKNOWN_SERVER_ERROR
    offsets.run(2)
    a.join()
    a.beat()
    offsets.run(2)
    assert group_of(coordinator).target_epoch == 1, "it waits since it is there"
    offsets.run(2)
    assert group_of(coordinator).target_epoch == 2
    offsets.set_topic("t", 0)
    assert b.join(endpoint=here, shuts_down=True).error_code is ErrorCode.UNKNOWN_SERVER_ERROR
    group = group_of(coordinator)
    assert (list(group.members), group.shutdown_by, group.endpoints_epoch) == (["a"], None, 0)


def test_endpoints_are_refused_while_a_topic_behind_one_is_missing(offsets: Offsets) -> None:
    """As Kafka's EndpointToPartitionsManager fails then. It has topics in the order of a hash set."""
    offsets.set_topic("r", 4)
    reads = Subtopology("0", ("t",), (), (), ("r",), (), ())
    joins = Subtopology("1", ("a", "BBBB"), (), (), (), (TopicInfo("r", 0, 0, ()),), ())
    for name in joins.source_topics:
        offsets.set_topic(name, 2)
    a = StreamsClient(offsets, offsets.coordinators[0], "a")
    (row,) = a.join(TopologyValue(0, (reads, joins)), endpoint=("here", 1)).endpoints or ()
    every = (0, 1, 2, 3)
    assert row.active == (("t", every), ("a", (0, 1)), ("r", every), ("BBBB", (0, 1)))
    offsets.set_topic("r", 0)
    b = StreamsClient(offsets, a.coordinator, "b")
    refused = b.join(TopologyValue(0, (reads, joins)), endpoints_epoch=7)
    assert refused.error_code is ErrorCode.UNKNOWN_SERVER_ERROR, "the other one has its tasks still"
    told = b.join(TopologyValue(0, (reads, joins)), endpoints_epoch=0)
    assert told.error_code is ErrorCode.NONE, "endpoints have not changed"


def test_an_empty_group_stays_until_it_is_deleted_or_joined_otherwise(offsets: Offsets) -> None:
    (a,) = members(offsets, "a")
    a.leave()
    group = group_of(a.coordinator)
    assert (group.state, group.topology) == ("Empty", counting("t"))
    codes: list[ErrorCode] = []
    a.coordinator.delete("g", codes.append)
    offsets.run(0.1)
    assert codes == [ErrorCode.NONE] and a.coordinator.groups() == []
    offsets.move(1)
    offsets.run(1)
    assert offsets.coordinators[1].groups() == [], "nothing of it is left in the log"
    a.coordinator = offsets.coordinators[1]
    a.join()
    a.leave()
    classic = Client(a.coordinator, name="old")
    classic.protocols = (GroupProtocol("range", b""),)
    classic.join()
    offsets.run(4)
    assert not isinstance(next(iter(a.coordinator.groups())), StreamsGroup)


# --- random walks

STEPS = st.tuples(
    st.sampled_from(("beat", "beat", "beat", "quiet", "join", "leave", "crash", "grow", "wait", "move")),
    st.sampled_from("abcd"),
    st.integers(0, 3),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(STEPS, min_size=5, max_size=40))
def test_no_walk_breaks_a_group(steps: list[tuple[str, str, int]]) -> None:
    """Whatever members do, no task is active twice, a new coordinator has the same group, and in the end all
    is given out."""
    offsets = Offsets(partitions={"t": 4})
    for name in ("u", LOG):
        offsets.set_topic(name, 2)
    for broker in (0, 1):
        offsets.coordinator(broker, streams_num_standby_replicas=1, **QUICK)
    clients = {name: StreamsClient(offsets, offsets.coordinators[0], name, f"p{n // 2}") for n, name in
               enumerate("abcd")}  # fmt: skip

    def beat(client: StreamsClient) -> None:
        if client.epoch > 0 and client.beat().error_code is not ErrorCode.NONE:
            client.join()

    for what, name, number in steps:
        client, coordinator = clients[name], offsets.coordinators[offsets.leader]
        for each in clients.values():
            each.coordinator = coordinator
        if what == "beat":
            beat(client)
        elif what == "quiet" and client.epoch > 0:
            if client.ask(client.epoch).error_code is not ErrorCode.NONE:
                client.join()
        elif what == "join":
            client.join()
        elif what == "leave" and client.epoch > 0:
            client.leave()
        elif what == "crash":
            client.epoch, client.has = 0, {}
        elif what == "grow":
            now = offsets.partitions["t"]
            offsets.set_topic("t", min(9, now + number))
            coordinator.topics_changed()
        elif what == "wait":
            offsets.run((1, 20, 46, 61)[number])
        elif what == "move":
            moved(offsets)
        check(offsets)
    for _ in range(30):
        offsets.run(2)
        for client in clients.values():
            client.coordinator = offsets.coordinators[offsets.leader]
            beat(client)
            check(offsets)
    settled(offsets, clients)


def moved(offsets: Offsets) -> None:
    """Let another broker coordinate the group, which must be the same there."""
    offsets.run(0.01)
    before = offsets.coordinators[offsets.leader].groups()
    offsets.move(1 - offsets.leader)
    offsets.run(0.1)
    after = offsets.coordinators[offsets.leader].groups()
    for old, new in zip(before, after, strict=True):
        assert isinstance(old, StreamsGroup) and isinstance(new, StreamsGroup)
        assert (old.epoch, old.members, old.targets, old.topology) == (
            new.epoch, new.members, new.targets, new.topology,
        )  # fmt: skip


def check(offsets: Offsets) -> None:
    for group in offsets.coordinators[offsets.leader].groups():
        assert owned_twice(group) is None


def settled(offsets: Offsets, clients: dict[str, StreamsClient]) -> None:
    for group in offsets.coordinators[offsets.leader].groups():
        assert group.state in ("Stable", "Empty") and isinstance(group, StreamsGroup)
        if group.members:
            has = {name: clients[name].has for name in group.members}
            active = [task for tasks in has.values() for task in of_role(tasks, Role.ACTIVE)]
            numbers = offsets.partitions["t"]
            assert sorted(active) == [("0", n) for n in range(numbers)] + [("1", 0), ("1", 1)]
            processes = {clients[name].process for name in group.members}
            copies = [task for tasks in has.values() for task in of_role(tasks, Role.STANDBY)]
            assert sorted(copies) == ([("1", 0), ("1", 1)] if len(processes) > 1 else [])
