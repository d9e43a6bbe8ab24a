"""A member's next assignment, case by case as in Kafka's CurrentAssignmentBuilderTest.

Partitions are of two topics: 1 to 3 of the first, 4 to 6 of the second.
"""

from collections.abc import Iterable

import pytest

from kview.simulate.groups.consumer_records import CurrentValue, MemberState, OwnedPartitions, Partitions
from kview.simulate.groups.reconciliation import Target, next_assignment

ONE, TWO = b"1", b"2"
STABLE, UNREVOKED, UNRELEASED = MemberState


def part(*numbers: int) -> Partitions:
    return {t: of for t in (ONE, TWO) if (of := frozenset(n for n in numbers if (n > 3) is (t == TWO)))}


def has(epoch: int, *numbers: int) -> OwnedPartitions:
    return {topic: dict.fromkeys(of, epoch) for topic, of in part(*numbers).items()}


def plain(owned: OwnedPartitions) -> list[int]:
    return sorted(number for numbers in owned.values() for number in numbers)


def step(
    current: CurrentValue,
    epoch: int,
    wanted: Iterable[int],
    owned: Partitions | None = None,
    taken: Iterable[int] = (),
    subscribed: Iterable[bytes] = (ONE, TWO),
    changed: bool = False,
) -> tuple[int, int, MemberState, list[int], list[int]]:
    target, others = Target(epoch, part(*wanted), frozenset(subscribed)), frozenset(taken)
    after = next_assignment(current, target, owned, changed, lambda topic, number: number in others)
    return after.epoch, after.previous_epoch, after.state, plain(after.assigned), plain(after.revoking)


BEFORE = CurrentValue(10, 9, STABLE, has(9, 1, 2, 3, 4, 5, 6))
REVOKING = CurrentValue(10, 10, UNREVOKED, has(9, 2, 3, 5, 6), has(9, 1, 4))
WAITING = CurrentValue(11, 10, UNRELEASED, has(10, 2, 3, 5, 6))


@pytest.mark.parametrize(
    ("current", "fields", "expected"),
    [
        pytest.param(
            BEFORE, {"epoch": 10, "wanted": (1,)}, (10, 9, STABLE, [1, 2, 3, 4, 5, 6], []), id="same"
        ),
        pytest.param(
            BEFORE, {"epoch": 11, "wanted": range(1, 7)}, (11, 10, STABLE, [1, 2, 3, 4, 5, 6], []), id="epoch"
        ),
        pytest.param(
            BEFORE,
            {"epoch": 11, "wanted": (2, 3, 5, 6)},
            (10, 10, UNREVOKED, [2, 3, 5, 6], [1, 4]),
            id="revoke",
        ),
        pytest.param(
            BEFORE,
            {"epoch": 11, "wanted": (2, 3, 5, 6), "owned": part(2, 3)},
            (11, 10, STABLE, [2, 3, 5, 6], []),
            id="revoked already",
        ),
        pytest.param(
            CurrentValue(10, 9, STABLE, has(9, 1)),
            {"epoch": 11, "wanted": (1, 2, 4), "taken": (2,)},
            (11, 10, UNRELEASED, [1, 4], []),
            id="some are not released",
        ),
        pytest.param(
            CurrentValue(10, 9, STABLE, has(9, 1)),
            {"epoch": 11, "wanted": (1, 2), "taken": (2,)},
            (11, 10, UNRELEASED, [1], []),
            id="none are released",
        ),
        pytest.param(
            REVOKING,
            {"epoch": 12, "wanted": (2, 3, 5, 6)},
            (10, 10, UNREVOKED, [2, 3, 5, 6], [1, 4]),
            id="says nothing",
        ),
        pytest.param(
            REVOKING,
            {"epoch": 12, "wanted": (2, 3, 5, 6), "owned": part(1, 2, 3, 5, 6)},
            (10, 10, UNREVOKED, [2, 3, 5, 6], [1, 4]),
            id="still has one",
        ),
        pytest.param(
            REVOKING,
            {"epoch": 12, "wanted": (3, 6), "owned": part(2, 3, 5, 6)},
            (11, 10, UNREVOKED, [3, 6], [2, 5]),
            id="next epoch, more to revoke",
        ),
        pytest.param(
            REVOKING,
            {"epoch": 12, "wanted": (1, 2, 3, 5, 6), "owned": part(2, 3, 5, 6)},
            (12, 10, STABLE, [1, 2, 3, 5, 6], []),
            id="gets back what it revoked",
        ),
        pytest.param(
            WAITING,
            {"epoch": 11, "wanted": (2, 3, 4, 5, 6), "taken": (4,)},
            (11, 11, UNRELEASED, [2, 3, 5, 6], []),
            id="waits",
        ),
        pytest.param(
            WAITING,
            {"epoch": 11, "wanted": (2, 3, 4, 5, 6)},
            (11, 11, STABLE, [2, 3, 4, 5, 6], []),
            id="released",
        ),
        pytest.param(
            WAITING,
            {"epoch": 12, "wanted": (2, 3)},
            (11, 11, UNREVOKED, [2, 3], [5, 6]),
            id="a new target while it waits",
        ),
        pytest.param(
            BEFORE,
            {"epoch": 10, "wanted": range(1, 7), "subscribed": (ONE,), "changed": True},
            (10, 9, UNREVOKED, [1, 2, 3], [4, 5, 6]),
            id="unsubscribed",
        ),
        pytest.param(
            BEFORE,
            {"epoch": 10, "wanted": range(1, 7), "subscribed": (ONE,), "changed": True, "owned": part(1)},
            (10, 9, STABLE, [1, 2, 3], []),
            id="unsubscribed and revoked",
        ),
        pytest.param(
            REVOKING,
            {"epoch": 11, "wanted": (2, 3, 5, 6), "subscribed": (TWO,), "changed": True},
            (10, 10, UNREVOKED, [5, 6], [1, 2, 3, 4]),
            id="unsubscribed while it revokes",
        ),
        pytest.param(
            CurrentValue(10, 9, UNREVOKED, has(9, 1), has(9, 4)),
            {"epoch": 10, "wanted": (1, 4), "subscribed": (ONE,), "owned": part(1)},
            (10, 10, STABLE, [1], []),
            id="no epoch beyond the target",
        ),
    ],
)
def test_steps(
    current: CurrentValue,
    fields: dict[str, object],
    expected: tuple[int, int, MemberState, list[int], list[int]],
) -> None:
    assert step(current, **fields) == expected  # type: ignore[arg-type]


def test_a_partition_keeps_the_epoch_of_its_assignment() -> None:
    target = Target(11, part(1, 2), frozenset((ONE,)))
    after = next_assignment(CurrentValue(10, 9, STABLE, has(9, 1)), target, None, False, lambda *_: False)
    assert after.assigned == {ONE: {1: 9, 2: 11}}
