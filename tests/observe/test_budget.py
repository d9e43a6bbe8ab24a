"""What is read in a round when not everything can be."""

from dataclasses import replace

from kview.observe.budget import BYTES_A_READING, Budget
from kview.observe.layout import Layout, layout
from kview.observe.settings import ObserveSettings
from kview.wire.metadata import PartitionRow, TopicRow, Topics

PARTITIONS = 100
ROUNDS = 12
PREFERRED = [("big", 7), ("big", 99), ("not there", 0), ("big", 1_000)]


def one_topic(in_sync: tuple[int, ...] = (0, 1)) -> Layout:
    """A topic with replicas on brokers 0 and 1, of which `in_sync` are in the ISR."""
    partitions = [PartitionRow(0, number, 0, 1, (0, 1), in_sync, ()) for number in range(PARTITIONS)]
    return layout(Topics([TopicRow("big", "id", False, 0, 0, PARTITIONS)], partitions), None)


def settings(at: Layout, slices: int) -> ObserveSettings:
    """Settings whose budget reads everything in that many rounds."""
    whole = BYTES_A_READING * (2 * len(at) + len(at.replica_row))
    return replace(ObserveSettings(), bytes_per_second=whole // slices + 1)


def read(budget: Budget, at: Layout, sequence: int) -> set[int]:
    """The partitions that are read in a round."""
    parts, _ = budget.shares(at, sequence, [])
    return {int(at.partition[row]) for part in parts.values() for row in part.leads}


def test_preferred_partitions_are_read_every_round_and_the_rest_in_turn() -> None:
    at = one_topic()
    budget = Budget(settings(at, 4))
    budget.prefer(PREFERRED)
    rounds = [read(budget, at, sequence) for sequence in range(ROUNDS)]
    assert all({7, 99} <= one and len(one) <= PARTITIONS / 4 + 2 for one in rounds)
    assert set().union(*rounds[:4]) == set(range(PARTITIONS))
    budget.prefer([("big", 50)])
    assert any(7 not in read(budget, at, sequence) for sequence in range(4)), "those before are not, now"


def test_they_are_read_also_while_much_of_the_cluster_is_troubled() -> None:
    at = one_topic(in_sync=(0,))
    budget = Budget(settings(at, 4))
    budget.prefer(PREFERRED)
    rounds = [read(budget, at, sequence) for sequence in range(ROUNDS)]
    assert all({7, 99} <= one and len(one) < PARTITIONS / 2 for one in rounds)
    assert set().union(*rounds[:4]) == set(range(PARTITIONS))
