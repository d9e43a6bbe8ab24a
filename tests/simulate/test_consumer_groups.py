"""Groups of the consumer protocol: epochs, assignments, revocation, time-outs and static members."""

import pytest

from kview.simulate.codes import ErrorCode
from kview.simulate.groups.consumer_records import MemberState, RegexKey
from kview.simulate.groups.records import decode_batch
from tests.simulate.consumer_client import ConsumerClient, T, group_of
from tests.simulate.group_invariants import owned_twice
from tests.simulate.groups_host import Offsets

ALL = list(range(10))


def client(offsets: Offsets, member_id: str, **fields: object) -> ConsumerClient:
    return ConsumerClient(offsets, offsets.coordinators[offsets.leader], member_id, **fields)  # type: ignore[arg-type]


def pair(offsets: Offsets) -> tuple[ConsumerClient, ConsumerClient]:
    """Two members that share the partitions."""
    offsets.coordinator()
    a, b = client(offsets, "a"), client(offsets, "b")
    a.join()
    b.join()
    offsets.run(1)
    for member in (b, a, a, b):
        member.beat()
    assert (a.numbers, b.numbers) == (ALL[:5], ALL[5:])
    assert a.epoch == b.epoch == 3
    return a, b


# --- joining and reconciling


def test_the_first_member_gets_everything_in_epoch_2(offsets: Offsets) -> None:
    """Epoch 1 is that of a new group, 2 that of its first subscription."""
    coordinator = offsets.coordinator()
    a = client(offsets, "a")
    result = a.join()
    assert (result.member_id, result.member_epoch, result.heartbeat_interval_ms) == ("a", 2, 5_000)
    assert a.numbers == ALL
    described = coordinator.describe_consumer_group("g")
    assert (described.state, described.epoch, described.target_epoch) == ("Stable", 2, 2)
    assert described.assignor == "uniform"


def test_an_assignment_is_told_once(offsets: Offsets) -> None:
    offsets.coordinator()
    a = client(offsets, "a")
    a.join()
    assert a.beat().assignment is None
    full = a.beat(topics=("t",), rebalance_timeout_ms=60_000)
    assert full.assignment is not None, "a full request, as after an error"


def test_a_member_gets_what_another_has_revoked(offsets: Offsets) -> None:
    """UNREVOKED_PARTITIONS and UNRELEASED_PARTITIONS, step by step, with a second between assignments."""
    coordinator = offsets.coordinator()
    a, b = client(offsets, "a"), client(offsets, "b")
    a.join()
    b.join()
    assert (b.epoch, b.numbers) == (2, []), "the target assignment of epoch 3 is calculated a second later"
    assert coordinator.describe_consumer_group("g").state == "Assigning"
    offsets.run(1)
    b.beat()
    assert (b.epoch, b.numbers) == (3, [])
    assert group_of(coordinator).members["b"].current.state is MemberState.UNRELEASED_PARTITIONS
    told = a.beat()
    assert (a.epoch, a.numbers) == (2, ALL[:5]), "it stays in its epoch until it has revoked"
    assert told.assignment is not None
    assert group_of(coordinator).members["a"].current.state is MemberState.UNREVOKED_PARTITIONS
    b.beat()
    assert b.numbers == [], "still with the other"
    a.ask()
    assert a.epoch == 2, "a heartbeat without partitions revokes nothing"
    a.beat()
    assert a.epoch == 3
    b.beat()
    assert b.numbers == ALL[5:]
    assert coordinator.describe_consumer_group("g").state == "Stable"


def test_a_member_that_leaves_gives_all_at_once(offsets: Offsets) -> None:
    a, b = pair(offsets)
    assert a.leave().member_epoch == -1
    offsets.run(1)
    b.beat()
    assert (b.epoch, b.numbers) == (4, ALL)
    b.leave()
    described = b.coordinator.describe_consumer_group("g")
    assert (described.state, described.epoch, described.target_epoch) == ("Empty", 5, 4)


def test_an_answer_that_was_lost_is_given_again(offsets: Offsets) -> None:
    offsets.coordinator()
    a, b = client(offsets, "a"), client(offsets, "b")
    a.join()
    b.join()
    offsets.run(1)
    b.beat()
    a.beat()
    a.beat()
    assert a.epoch == 3
    again = a.beat(epoch=2)
    assert (again.error_code, again.member_epoch) == (ErrorCode.NONE, 3)
    more_than_it_has = a.ask(2, owned={T: frozenset(ALL)})
    assert more_than_it_has.error_code is ErrorCode.FENCED_MEMBER_EPOCH


@pytest.mark.parametrize(("epoch", "word"), [(1, "smaller"), (9, "greater")])
def test_another_epoch_is_fenced(offsets: Offsets, epoch: int, word: str) -> None:
    a, _ = pair(offsets)
    result = a.beat(epoch=epoch)
    assert result.error_code is ErrorCode.FENCED_MEMBER_EPOCH
    assert result.message is not None and f"has a {word} member epoch ({epoch})" in result.message
    assert a.join().error_code is ErrorCode.NONE, "it joins again"
    assert a.numbers == ALL[:5]


def test_a_member_may_unsubscribe(offsets: Offsets) -> None:
    offsets.set_topic("u", 2)
    coordinator = offsets.coordinator()
    a = client(offsets, "a")
    a.join("t", "u")
    a.beat(topics=("u",))
    assert a.numbers == [], "at once, although the next target assignment waits for its second"
    a.beat()
    offsets.run(1)
    a.beat()
    assert a.epoch == 3 and list(a.has) == [b"u".ljust(16, b"-")]
    assert coordinator.describe_consumer_group("g").state == "Stable"


def test_a_full_group_takes_no_more_members(offsets: Offsets) -> None:
    offsets.coordinator(consumer_max_size=1)
    a, b = client(offsets, "a"), client(offsets, "b")
    a.join()
    result = b.join()
    assert result.error_code is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert result.message == "The consumer group has reached its maximum capacity of 1 members."
    assert a.beat().error_code is ErrorCode.NONE


def test_most_votes_choose_the_assignor(offsets: Offsets) -> None:
    coordinator = offsets.coordinator()
    a, b, c = (client(offsets, name) for name in "abc")
    a.join(assignor="range")
    assert coordinator.describe_consumer_group("g").assignor == "range"
    b.join(assignor="uniform")
    c.join(assignor="uniform")
    assert coordinator.describe_consumer_group("g").assignor == "uniform"
    wrong = client(offsets, "d").join(assignor="sticky")
    assert wrong.error_code is ErrorCode.UNSUPPORTED_ASSIGNOR


# --- topics


def test_topics_that_come_and_grow_are_assigned(offsets: Offsets) -> None:
    coordinator = offsets.coordinator()
    a = client(offsets, "a")
    a.join("later")
    assert (a.epoch, a.has) == (2, {})
    offsets.set_topic("later", 2)
    offsets.run(1)
    a.beat()
    assert a.epoch == 3 and {len(numbers) for numbers in a.has.values()} == {2}
    offsets.set_topic("later", 5)
    offsets.run(1)
    a.beat()
    assert a.epoch == 4 and {len(numbers) for numbers in a.has.values()} == {5}
    assert coordinator.describe_consumer_group("g").state == "Stable"


def test_a_deleted_topic_is_revoked(offsets: Offsets) -> None:
    offsets.set_topic("u", 2)
    offsets.coordinator()
    a = client(offsets, "a")
    a.join("t", "u")
    offsets.set_topic("u", 0)
    offsets.run(1)
    a.beat()
    assert list(a.has) == [T]
    a.beat()
    assert a.epoch == 3


def test_a_regular_expression_is_resolved_after_the_join(offsets: Offsets) -> None:
    offsets.set_topic("orders-eu", 1)
    offsets.set_topic("orders-us", 1)
    coordinator = offsets.coordinator()
    a = client(offsets, "a")
    a.join(regex="orders-.*")
    assert (a.epoch, a.has) == (1, {})
    a.beat()
    assert a.epoch == 2 and len(a.has) == 2
    offsets.set_topic("orders-jp", 1)
    coordinator.topics_changed()
    a.beat()
    assert len(a.has) == 2, "topics are looked for again after ten seconds at the earliest"
    offsets.run(10)
    a.beat()
    offsets.run(1)
    a.beat()
    assert len(a.has) == 3
    b = client(offsets, "b")
    b.join(regex="orders-.*")
    assert group_of(coordinator).epoch == 4, "an expression whose topics are known counts at once"
    a.beat(regex="")
    b.leave()
    assert not group_of(coordinator).regexes


def test_expressions_are_resolved_once_and_not_for_a_group_that_is_gone(offsets: Offsets) -> None:
    coordinator = offsets.coordinator()
    a, b = client(offsets, "a"), client(offsets, "b", group="gone")
    for member in (a, b):
        member.send(0, regex="t", rebalance_timeout_ms=1_000, owned={})
    a.send(1)
    b.send(-1)
    coordinator.delete("gone", lambda code: None)
    offsets.run(0.1)
    changes = [change for _, batch in offsets.batches for change in decode_batch(batch)]
    assert [key.group for key, value in changes if isinstance(key, RegexKey) and value] == ["g"]
    assert [group.name for group in coordinator.groups()] == ["g"]


def test_a_wrong_expression_is_refused(offsets: Offsets) -> None:
    coordinator = offsets.coordinator()
    result = client(offsets, "a").join(regex="a(b")
    assert result.error_code is ErrorCode.INVALID_REGULAR_EXPRESSION
    why = "missing closing )"
    assert result.message == f"SubscribedTopicRegex `a(b` is not a valid regular expression: {why}."
    assert coordinator.groups() == []


# --- time-outs


def test_a_silent_member_is_removed_after_45_seconds(offsets: Offsets) -> None:
    a, b = pair(offsets)
    for _ in range(9):
        offsets.run(4.98)
        a.beat()
    assert a.numbers == ALL[:5]
    offsets.run(0.2)
    a.beat()
    assert a.numbers == ALL
    assert b.beat().error_code is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_does_not_revoke_is_removed(offsets: Offsets) -> None:
    coordinator = offsets.coordinator()
    a, b = client(offsets, "a"), client(offsets, "b")
    a.join(rebalance_timeout_ms=20_000)
    b.join()
    offsets.run(1)
    b.beat()
    told = a.ask()
    assert told.assignment is not None
    for _ in range(4):
        offsets.run(4.9)
        assert a.ask().error_code is ErrorCode.NONE
        b.beat()
    offsets.run(0.5)
    assert a.ask().error_code is ErrorCode.UNKNOWN_MEMBER_ID
    b.beat()
    assert b.numbers == ALL
    assert owned_twice(group_of(coordinator)) is None


def test_a_hung_broker_removes_nobody(offsets: Offsets) -> None:
    a, _ = pair(offsets)
    offsets.hung.add(0)
    offsets.run(60)
    assert len(group_of(a.coordinator).members) == 2
    offsets.hung.clear()
    offsets.run(1)
    assert not group_of(a.coordinator).members


# --- static members


def test_a_static_member_comes_back_to_what_it_had(offsets: Offsets) -> None:
    coordinator = offsets.coordinator()
    a = client(offsets, "a", instance="one")
    b = client(offsets, "b", instance="two")
    a.join()
    b.join()
    offsets.run(1)
    for member in (b, a, a, b):
        member.beat()
    assert a.leave(-2).member_epoch == -2
    described = coordinator.describe_consumer_group("g")
    assert (described.epoch, [m.current.epoch for m in described.members]) == (3, [-2, 3])
    back = client(offsets, "another", instance="one")
    back.join()
    assert (back.epoch, back.numbers) == (3, ALL[:5]), "without a rebalance"
    fenced = a.ask(3)
    assert fenced.error_code is ErrorCode.FENCED_INSTANCE_ID
    assert fenced.message == "Static member a with instance id one was fenced by member another."
    assert owned_twice(group_of(coordinator)) is None


def test_an_instance_id_in_use_is_not_given_away(offsets: Offsets) -> None:
    offsets.coordinator()
    a = client(offsets, "a", instance="one")
    a.join()
    result = client(offsets, "b", instance="one").join()
    assert result.error_code is ErrorCode.UNRELEASED_INSTANCE_ID
    a.leave(-2)
    changed = client(offsets, "b", instance="one").join("t", "u")
    assert (changed.error_code, changed.member_epoch) == (ErrorCode.NONE, 2)


def test_a_static_member_that_stays_away_is_removed(offsets: Offsets) -> None:
    coordinator = offsets.coordinator()
    a = client(offsets, "a", instance="one")
    a.join()
    a.leave(-2)
    offsets.run(46)
    assert coordinator.describe_consumer_group("g").state == "Empty"


# --- requests that are wrong by themselves


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"rebalance_timeout_ms": -1}, "RebalanceTimeoutMs must be provided in first request."),
        ({"owned": None}, "TopicPartitions must be empty when (re-)joining."),
        ({"owned": {T: frozenset((1,))}}, "TopicPartitions must be empty when (re-)joining."),
        (
            {"topics": None},
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
        ),
        ({"rack_id": ""}, "RackId can't be empty."),
    ],
)
def test_a_first_request_has_all_fields(offsets: Offsets, fields: dict[str, object], message: str) -> None:
    coordinator = offsets.coordinator()
    result = client(offsets, "a").join(**fields)
    assert (result.error_code, result.message) == (ErrorCode.INVALID_REQUEST, message)
    assert coordinator.groups() == []


def test_who_is_unknown_is_told_so(offsets: Offsets) -> None:
    a, _ = pair(offsets)
    stranger = client(offsets, "x")
    assert stranger.ask(3).error_code is ErrorCode.UNKNOWN_MEMBER_ID
    assert stranger.ask(-1).error_code is ErrorCode.UNKNOWN_MEMBER_ID
    assert client(offsets, "x", instance="one").ask(-2).message == "Instance id one is unknown."
    nowhere = client(offsets, "x", group="other")
    assert nowhere.ask(3).message == "Consumer group other not found."
    assert nowhere.ask(-1).message == "Group other not found."
    assert stranger.ask(-3).message == "MemberEpoch is invalid."
    assert client(offsets, "").ask(3, makes_its_id=False).message == "MemberId can't be empty."
    assert a.beat().error_code is ErrorCode.NONE


def test_before_version_1_the_server_makes_the_id(offsets: Offsets) -> None:
    offsets.coordinator()
    result = client(offsets, "").join(makes_its_id=False)
    assert result.error_code is ErrorCode.NONE and result.member_id
