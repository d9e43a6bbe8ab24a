"""What coordinators answer about groups, as tables, without sockets."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment

from kview.model.failures import NO_FAILURE, Cause, FailureKind, refused
from kview.model.units import NO_OFFSET, UNKNOWN_ID
from kview.observe.groups import coordinators
from kview.observe.groups import facts as group_facts
from kview.observe.groups.facts import STEADY_MS, GroupFacts
from kview.observe.groups.kinds import CLASSIC
from kview.observe.groups.members import MemberFacts
from kview.observe.groups.requests import GroupRequests
from kview.observe.groups.tables import GroupTables
from kview.wire.offset_fetch import GroupCommits, TopicCommits


@pytest.mark.parametrize(
    ("cause", "row"),
    [
        (NO_FAILURE, ("", 0)),
        (Cause(FailureKind.COORDINATOR_SILENT), ("coordinator_silent", 0)),
        (refused(15), ("kafka_error", 15)),
        (refused(-1), ("kafka_error", -1)),
    ],
)
def test_why_a_groups_figures_are_old(cause: Cause, row: tuple[str, int]) -> None:
    tables = GroupTables()
    tables.update({"g": GroupFacts("g", "classic", "Stable", 1, cause=cause)})
    assert (tables.groups.error[0], int(tables.groups.error_code[0])) == row


def test_a_group_is_unread_until_its_commits_arrive_which_say_nothing_of_its_members() -> None:
    known = GroupFacts("g", "classic", "Stable", 1, received_ms=1_000)
    share = GroupFacts("s", "share", "Stable", 1)
    tables = GroupTables()
    tables.update({"g": known, "s": share})
    assert tables.groups.unread.tolist() == [True, False]
    group_facts.committed(known, GroupCommits("g", 0, ()), 5_000)
    tables.update({"g": known, "s": share})
    assert tables.groups.unread.tolist() == [False, False]
    assert tables.groups.received_ms[0] == 1_000


def commits(*offsets: int, topic: str = "t") -> GroupCommits:
    partitions = np.arange(len(offsets), dtype=np.int32)
    topics = (TopicCommits(topic, partitions, np.array(offsets), np.zeros(len(offsets), np.int16)),)
    return GroupCommits("g", 0, topics)


def test_groups_that_commit_on_the_same_partitions_share_their_rows_until_one_commits_on_others() -> None:
    facts = {name: GroupFacts(name, "classic", "Empty", 1) for name in "abcd"}
    for known, committed in zip(
        facts.values(), (commits(1, 2), commits(3, 4), commits(5, 6, topic="u"), commits(7)), strict=True
    ):
        group_facts.committed(known, committed, 1_000)
    facts["d"].members = (MemberFacts("m", "client", "/127.0.0.1", owned=(("t", (0, 1)),)),)
    tables = GroupTables()
    tables.update(facts)
    assert facts["a"].rows is facts["b"].rows
    assert len({id(known.rows) for known in facts.values()}) == 3
    assert tables.offsets.committed.tolist() == [1, 2, 3, 4, 5, 6, 7, NO_OFFSET]
    assert tables.offsets.topic.tolist() == [*"ttttuutt"]
    group_facts.committed(facts["b"], commits(3, 4, 5), 2_000)
    tables.update(facts)
    assert tables.offsets.group.tolist() == [*"aabbbccdd"]
    assert tables.offsets.committed.tolist() == [1, 2, 3, 4, 5, 5, 6, 7, NO_OFFSET]


def test_a_group_in_the_place_of_another_that_committed_on_the_same_partitions() -> None:
    facts = {name: GroupFacts(name, "classic", "Empty", 1) for name in "abc"}
    for known, first in zip(facts.values(), (10, 20, 30), strict=True):
        group_facts.committed(known, commits(first, first + 1), 1_000)
    tables = GroupTables()
    tables.update(facts)
    del facts["b"]
    facts["d"] = GroupFacts("d", "classic", "Empty", 1)
    group_facts.committed(facts["d"], commits(40, 41), 2_000)
    tables.update(facts)
    assert tables.offsets.group.tolist() == [*"aaccdd"]
    assert tables.offsets.committed.tolist() == [10, 11, 30, 31, 40, 41]


def assignment(*owned: tuple[str, list[int]]) -> bytes:
    topic = ConsumerProtocolAssignment.TopicPartition
    return bytes(
        ConsumerProtocolAssignment(
            version=1,
            assigned_partitions=[topic(topic=name, partitions=list(parts)) for name, parts in owned],
            user_data=b"",
        ).encode()
    )


def described(known: GroupFacts, *members: tuple[str, bytes], kind: str = "consumer") -> None:
    entry = SimpleNamespace(
        group_state="Stable",
        protocol_data="range",
        protocol_type=kind,
        members=[
            SimpleNamespace(
                member_id=m, client_id="c", client_host="/10.0.0.1", member_metadata=a, member_assignment=a
            )
            for m, a in members
        ],
    )
    group_facts.described(known, CLASSIC.read(entry), 70)


def committed(known: GroupFacts, offsets: dict[int, int]) -> None:
    commits = TopicCommits(
        "t",
        np.array(list(offsets), np.int32),
        np.array(list(offsets.values()), np.int64),
        np.zeros(len(offsets), np.int16),
    )
    group_facts.committed(known, GroupCommits(known.group, 0, (commits,)), 80)


def test_offsets_are_what_is_committed_or_owned() -> None:
    known = GroupFacts("g", "classic", "Stable", 1)
    described(known, ("m2", assignment(("t", [1, 3]))), ("m1", assignment(("t", [0]))))
    committed(known, {3: 30, 2: 20, 0: 0})
    tables = GroupTables()
    tables.update({"g": known})
    at = tables.offsets
    assert at.partition.tolist() == [0, 1, 2, 3]
    assert at.committed.tolist() == [0, NO_OFFSET, 20, 30]
    assert at.owner.tolist() == ["m1", "m2", "", "m2"]
    assert tables.members.member_id.tolist() == ["m1", "m2"]
    assert tables.members.assigned.tolist() == [1, 2]
    assert tables.members.host.tolist() == ["10.0.0.1", "10.0.0.1"]
    members = tables.members
    committed(known, {3: 31, 2: 20, 0: 0})
    tables.update({"g": known})
    assert tables.offsets.committed.tolist() == [0, NO_OFFSET, 20, 31]
    assert (tables.offsets.partition is at.partition, tables.members is members) == (True, True)
    assert at.committed.tolist() == [0, NO_OFFSET, 20, 30]
    committed(known, {3: 31})
    tables.update({"g": known})
    assert tables.offsets.partition.tolist() == [0, 1, 3]
    tables.update({})
    assert (len(tables.offsets), len(tables.members), len(tables.groups)) == (0, 0, 0)


@given(garbage=st.binary(max_size=40))
def test_an_assignment_that_is_none_owns_nothing(garbage: bytes) -> None:
    known = GroupFacts("g", "classic", "Stable", 1)
    described(known, ("m", garbage))
    described(known, ("m", assignment(("t", [0]))), kind="connect")
    assert known.members[0].owned == ()


@pytest.mark.parametrize(
    ("kind", "raw", "assigned"),
    [
        ("consumer", b"", 0),
        ("consumer", assignment(), 0),
        ("consumer", assignment(("t", [0]))[:-7], UNKNOWN_ID),
        ("connect", b"", 0),
        ("connect", b"?", UNKNOWN_ID),
        ("sr", b"{}", UNKNOWN_ID),  # the Schema Registry's members elect a leader
    ],
)
def test_what_cannot_be_read_of_an_assignment_is_unknown_and_not_none(
    kind: str, raw: bytes, assigned: int
) -> None:
    known = GroupFacts("g", "classic", "Stable", 1)
    described(known, ("m", raw), kind=kind)
    assert known.members[0].assigned == assigned


def listing(*names: str) -> Any:
    return SimpleNamespace(
        groups=[
            SimpleNamespace(group_id=n, group_state="stable", group_type="Consumer", protocol_type="consumer")
            for n in names
        ]
    )


def nobody_knows(group: str) -> None:
    """`__consumer_offsets` is not visible."""


def broker_2(group: str) -> int:
    return 2


def test_groups_move_between_coordinators_and_are_forgotten_when_nobody_lists_them() -> None:
    facts: dict[str, GroupFacts] = {}
    group_facts.listed(facts, 1, listing("a", "b"), nobody_knows, 10)
    assert (facts["a"].type, facts["a"].state, facts["a"].coordinator) == ("consumer", "Stable", 1)
    group_facts.listed(facts, 2, listing("b"), nobody_knows, 20)
    assert facts["b"].coordinator == 2
    group_facts.settle(facts, {2: frozenset({"b"})}, [1, 2], nobody_knows, 30)
    assert sorted(facts) == ["a", "b"]  # broker 1 has not answered
    group_facts.settle(facts, {1: frozenset(), 2: frozenset({"b"})}, [1, 2], nobody_knows, 40)
    assert sorted(facts) == ["b"]


def test_a_group_that_nobody_lists_stays_until_its_coordinator_has_loaded_and_says_so() -> None:
    facts: dict[str, GroupFacts] = {}
    group_facts.listed(facts, 1, listing("a"), broker_2, 10)
    nobody = {1: frozenset[str](), 2: frozenset[str]()}
    group_facts.settle(facts, nobody, [1, 2], broker_2, 20)
    assert (facts["a"].coordinator, facts["a"].missing_ms) == (2, 20)
    facts["a"].description_refused = 14
    group_facts.settle(facts, nobody, [1, 2], broker_2, 90_000)
    assert sorted(facts) == ["a"]  # broker 2 is loading
    facts["a"].description_refused, facts["a"].vouched = 0, True
    group_facts.settle(facts, {1: frozenset()}, [1, 2], broker_2, 90_100)
    assert sorted(facts) == ["a"]  # broker 2 has not listed its groups since
    group_facts.settle(facts, nobody, [1, 2], broker_2, 90_200)
    assert sorted(facts) == []


def test_a_coordinator_chosen_in_another_way_does_not_keep_a_group_for_ever() -> None:
    facts: dict[str, GroupFacts] = {}
    group_facts.listed(facts, 1, listing("a"), broker_2, 10)
    nobody = {1: frozenset[str](), 2: frozenset[str]()}
    for at_ms in (1_000, 30_000, 60_000):
        group_facts.settle(facts, nobody, [1, 2], broker_2, at_ms)
        facts["a"].description_refused = 16
    assert sorted(facts) == ["a"]
    group_facts.settle(facts, nobody, [1, 2], broker_2, 61_100)
    assert sorted(facts) == []


def test_a_broker_that_still_lists_what_it_has_lost_is_not_the_coordinator() -> None:
    facts: dict[str, GroupFacts] = {}
    group_facts.listed(facts, 2, listing("a"), broker_2, 10)
    group_facts.listed(facts, 1, listing("a"), broker_2, 20)
    assert facts["a"].coordinator == 2


@pytest.mark.parametrize(
    ("group", "partition"),
    [("my-group", 12), ("console-consumer", 40), ("test", 48), ("polygenelubricants", 0)],
)
def test_a_groups_partition_is_javas(group: str, partition: int) -> None:
    assert coordinators.partition_of(group, 50) == partition


def test_javas_hash_is_over_utf_16() -> None:
    assert coordinators.java_hash("\U0001f600") == 1772899  # a surrogate pair
    assert coordinators.java_hash("") == 0


@pytest.mark.parametrize("length", [1, coordinators.LONGEST_KEPT, coordinators.LONGEST_KEPT + 1, 32_767])
def test_long_names_are_hashed_like_short_ones_and_not_kept(length: int) -> None:
    text, value = "é" * length, 0
    for unit in map(ord, text):
        value = (31 * value + unit) % (1 << 32)
    kept = coordinators._kept_hash.cache_info().currsize
    assert coordinators.java_hash(text) == (value - (1 << 32) if value >> 31 else value)
    grew = coordinators._kept_hash.cache_info().currsize - kept
    assert grew == 0 if length > coordinators.LONGEST_KEPT else grew <= 1


@pytest.mark.parametrize("owner", [3, None])
def test_a_group_is_not_gone_while_its_restarted_coordinator_may_still_be_loading(owner: int | None) -> None:
    facts = {"g": GroupFacts("g", "classic", "Stable", 3, cause=Cause(FailureKind.COORDINATOR_SILENT))}
    lists: dict[int, frozenset[str]] = {3: frozenset(), 4: frozenset()}
    dead = SimpleNamespace(groups=[SimpleNamespace(group_id="g", error_code=0, group_state="Dead")])

    def observed(at_ms: int) -> None:
        """Broker 3 does not list the group, and says that it does not know it."""

        async def ask(_: Any) -> tuple[Any, int]:
            return dead, at_ms

        group_facts.settle(facts, lists, [3, 4], lambda _: owner, at_ms)
        state = SimpleNamespace(groups=facts, succeeded=lambda *_: None)
        requests, link = GroupRequests(cast(Any, None), cast(Any, state)), cast(Any, SimpleNamespace(ask=ask))
        if owner is not None:
            asyncio.run(requests.look_for(link, 3, ["g"]))
        for known in facts.values():
            known.cause = NO_FAILURE

    for at_ms in range(1_000, 1_000 + STEADY_MS, 1_000):
        observed(at_ms)
        assert "g" in facts, f"{at_ms - 1_000} ms after the restart"
    observed(1_000 + STEADY_MS)
    assert not facts, "it has had the time to load"
