"""Worlds from the words that describe them."""

import pytest

from kview.lab.worlds import world_of


@pytest.mark.slow  # tests/simulate/test_traffic_transactions.py guards each part
def test_with_transactions_every_producer_commits_and_every_group_reads_what_is_committed() -> None:
    words = (3, 1, ("orders:2:3", "audit:1:1"), "teaching", (), False)
    world = world_of(*words, transaction_ms=500)
    assert {(each.transaction_ms, each.acks) for each in world.producers} == {(500, -1)}
    assert all(each.read_committed for each in world.groups)
    assert not any(each.transaction_ms for each in world_of(*words).producers)
