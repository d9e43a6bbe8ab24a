"""What one observation reads if the budget does not allow everything."""

import pytest
from msgspec.structs import replace

from kview.observe import budget as budget_module
from kview.observe.budget import BYTES_A_READING, FIRST_LAGS_S, Budget
from kview.observe.layout import Layout, layout
from kview.observe.settings import ObserveSettings
from kview.wire.metadata import PartitionRow, TopicRow, Topics

PARTITIONS = 100
OBSERVATIONS = 12
PREFERRED = [("big", 7), ("big", 99), ("not there", 0), ("big", 1_000)]


def one_topic(in_sync: tuple[int, ...] = (0, 1)) -> Layout:
    """A topic with replicas on brokers 0 and 1, of which `in_sync` are in the ISR."""
    partitions = [PartitionRow(0, number, 0, 1, (0, 1), in_sync, ()) for number in range(PARTITIONS)]
    return layout(Topics([TopicRow("big", "id", False, 0, 0, PARTITIONS)], partitions), None)


def settings(at: Layout, slices: int) -> ObserveSettings:
    """Settings whose budget reads everything in that many observations."""
    whole = BYTES_A_READING * (2 * len(at) + len(at.replica_row))
    return replace(ObserveSettings(), bytes_per_second=whole // slices + 1)


def read(budget: Budget, at: Layout, sequence: int) -> set[int]:
    """Return the partitions that one observation reads."""
    parts, _ = budget.shares(at, sequence, [])
    return {int(at.partition[row]) for part in parts.values() for row in part.leads}


def test_preferred_partitions_are_read_in_every_observation_and_the_rest_in_turn() -> None:
    at = one_topic()
    budget = Budget(settings(at, 4))
    budget.prefer(PREFERRED)
    observations = [read(budget, at, sequence) for sequence in range(OBSERVATIONS)]
    assert all({7, 99} <= one and len(one) <= PARTITIONS / 4 + 2 for one in observations)
    assert set().union(*observations[:4]) == set(range(PARTITIONS))
    budget.prefer([("big", 50)])
    assert any(7 not in read(budget, at, sequence) for sequence in range(4)), "those before are not, now"


def test_they_are_also_read_while_much_of_the_cluster_is_under_replicated() -> None:
    at = one_topic(in_sync=(0,))
    budget = Budget(settings(at, 4))
    budget.prefer(PREFERRED)
    observations = [read(budget, at, sequence) for sequence in range(OBSERVATIONS)]
    assert all({7, 99} <= one and len(one) < PARTITIONS / 2 for one in observations)
    assert set().union(*observations[:4]) == set(range(PARTITIONS))


def test_the_first_observation_of_a_big_cluster_reads_what_lags_need(monkeypatch: pytest.MonkeyPatch) -> None:
    at = one_topic()
    budget = Budget(ObserveSettings(lags_first=True))
    assert not budget.is_brief(at)
    whole, _ = budget.shares(at, 0, [])
    monkeypatch.setattr(budget_module, "BIG_BYTES", BYTES_A_READING * 4 * PARTITIONS - 1)
    assert budget.is_brief(at) and not Budget(ObserveSettings()).is_brief(at)
    first, is_whole = budget.shares(at, 0, [])
    assert is_whole and first.keys() == whole.keys()
    for broker, share in first.items():
        assert share.briefly and share.leads is whole[broker].leads and not len(share.follows)
    budget.lags_first = False
    later, _ = budget.shares(at, 0, [])
    assert len(later[1].follows) == PARTITIONS and not any(share.briefly for share in later.values())


def test_a_first_observation_of_many_partitions_or_groups_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at, first = one_topic(), Budget(ObserveSettings(lags_first=True))
    assert [first.patience_s(at, groups, 0.5) for groups in (0, 1_000, 1_001)] == [0.5, 0.5, FIRST_LAGS_S]
    monkeypatch.setattr(budget_module, "BIG_BYTES", 0)
    assert first.patience_s(at, 0, 0.5) == FIRST_LAGS_S
    first.lags_first = False
    assert first.patience_s(at, 15_000, 0.5) == 0.5
