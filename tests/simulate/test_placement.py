"""The three placements on six brokers in two racks, compared with the tables that Kafka's own code
produces."""

from collections.abc import MutableSequence
from random import Random
from typing import Any

import pytest

from kview.simulate.metadata import BrokerImage
from kview.simulate.placement import alternated, rack_aware, striped, teaching
from kview.simulate.world import racked_brokers

SIX = [BrokerImage(spec.id, spec.rack, False, 1) for spec in racked_brokers(6, 2)]


class FromZero(Random):
    """Randomness that starts every list at index 0 and shuffles nothing."""

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        return 0

    def shuffle(self, x: MutableSequence[Any]) -> None:
        pass


def rows(text: str) -> list[tuple[int, ...]]:
    return [tuple(map(int, row.split(","))) for row in text.split()]


def test_racks_take_turns() -> None:
    assert alternated(SIX) == [0, 3, 1, 4, 2, 5]
    assert [spec.rack for spec in racked_brokers(5, 2)] == ["R1", "R1", "R1", "R2", "R2"]


def test_teaching() -> None:
    expected = rows("0,3,1 3,1,4 1,4,2 4,2,5 2,5,0 5,0,3 0,3,1 3,1,4 1,4,2 4,2,5")
    assert list(teaching(SIX, 10, 3)) == expected


def test_rack_aware_from_start_0() -> None:
    expected = rows("0,3,1 3,1,4 1,4,2 4,2,5 2,5,0 5,0,3 0,4,2 3,2,5 1,5,0 4,0,3")
    assert list(rack_aware(SIX, 10, 3)) == expected


def test_striped_from_start_0() -> None:
    expected = rows("0,3,1 4,1,5 2,5,0 3,0,4 1,4,2 5,2,3")
    assert list(striped(SIX, 6, 3, FromZero())) == expected


@pytest.mark.parametrize("seed", range(20))
def test_striped_spreads_leaders_and_racks(seed: int) -> None:
    assignment = striped(SIX, 12, 3, Random(seed))
    leaders = [replicas[0] for replicas in assignment]
    assert all(leaders.count(broker) == 2 for broker in range(6))
    for replicas in assignment:
        assert len(set(replicas)) == 3
        assert {broker // 3 for broker in replicas} == {0, 1}


def test_striped_gives_leaderships_to_unfenced_brokers_alone() -> None:
    brokers = [b._replace(fenced=b.id in (0, 4)) for b in SIX]
    assignment = striped(brokers, 8, 6, Random(3))
    assert all(replicas[0] not in (0, 4) and len(set(replicas)) == 6 for replicas in assignment)


def test_striped_on_the_only_unfenced_broker() -> None:
    brokers = [b._replace(fenced=b.id != 4) for b in SIX]
    assert [replicas[0] for replicas in striped(brokers, 5, 2, Random(1))] == [4] * 5
    assert striped(SIX[:1], 3, 1, Random(1)) == ((0,), (0,), (0,))
