"""Groups that exist from the start, as a coordinator loads them from the log."""

from random import Random

from kview.simulate.groups.consumer_protocol import decode_assignment
from kview.simulate.traffic.warm import WarmGroup, warm_group
from kview.simulate.world import GroupSpec
from tests.simulate.groups_host import Offsets

START_MS = 1_700_000_000_000


def warm(spec: GroupSpec) -> WarmGroup:
    def offset_at(topic: str, partition: int, time_ms: int) -> tuple[int, int]:
        return (time_ms - START_MS + 1_000_000) // 100 + partition, 3

    return warm_group(spec, {"t": 10}, offset_at, START_MS, Random("1/warm"), 50, {"t": b"t" * 16})


def test_a_warm_group_is_stable_and_at_work() -> None:
    group = warm(GroupSpec("g", ("t",), 3, warm_lag_seconds=10))
    offsets = Offsets(batches=[(group.partition, group.batch)])
    coordinator = offsets.coordinator()
    described = coordinator.describe("g")
    assert (described.state, described.protocol) == ("Stable", "range")
    assert {m.member_id: tuple(decode_assignment(m.assignment)) for m in described.members} == {
        m.member_id: m.owned for m in group.members
    }
    assert sorted(len(m.owned) for m in group.members) == [3, 3, 4]
    fetched = coordinator.fetch_offsets("g", None).offsets
    assert [o.offset for o in fetched] == [9900 + i for i in range(10)]
    assert {o.leader_epoch for o in fetched} == {3}
    assert coordinator.heartbeat("g", group.generation, group.members[0].member_id) == 0


def test_a_stopped_group_is_empty_with_old_commits() -> None:
    group = warm(GroupSpec("g", ("t",), 0, stopped_ms=420_000))
    coordinator = Offsets(batches=[(group.partition, group.batch)]).coordinator()
    described = coordinator.describe("g")
    assert (described.state, described.protocol_type, described.members) == ("Empty", "consumer", ())
    assert coordinator.fetch_offsets("g", [("t", 0)]).offsets[0].offset == (1_000_000 - 420_000) // 100


def test_one_member_more_than_partitions_is_idle() -> None:
    group = warm(GroupSpec("g", ("t",), 11))
    assert [len(m.owned) for m in group.members].count(0) == 1
