"""Which broker is asked for metadata, as far as the quorum tells who is cut off from the controllers."""

from collections.abc import Mapping

import numpy as np
import pytest

from kview.model.snapshot import Quorum
from kview.model.units import UNKNOWN
from kview.observe.layout import strings
from kview.observe.quorum import QuorumSeen
from kview.observe.sources import fit


def quorum(fetched_ms: Mapping[int, int]) -> QuorumSeen:
    times = np.array(list(fetched_ms.values()), np.int64)
    nodes = Quorum(
        np.array(list(fetched_ms), np.int32), strings(["observer"] * len(times)), times, times, times
    )
    return QuorumSeen(101, 1, nodes, 10_000)


@pytest.mark.parametrize(
    ("fetched_ms", "doubted", "asked"),
    [
        ({}, [], [0, 1, 2]),
        ({0: 9_900, 1: 9_800, 2: 9_700, 101: 9_999}, [], [0, 1, 2]),
        ({0: 6_800, 1: 9_800, 2: 9_700}, [], [1, 2]),
        ({0: UNKNOWN, 1: UNKNOWN, 2: UNKNOWN}, [], [0, 1, 2]),
        ({1: 9_800, 2: 9_700}, [], [1, 2]),  # forgotten by the quorum, because it was away for long
        ({0: 9_900, 1: 9_800, 2: 9_700}, [0], [1, 2]),
        ({0: 9_900, 1: 9_800, 2: 9_700}, [0, 1, 2], [0, 1, 2]),
        ({0: 6_800, 1: 9_800}, [1], [1]),  # one that is cut off is worse than one that is doubted
    ],
)
def test_a_broker_that_is_cut_off_or_doubted_is_not_asked_while_another_answers(
    fetched_ms: dict[int, int], doubted: list[int], asked: list[int]
) -> None:
    assert list(fit([0, 1, 2], quorum(fetched_ms), doubted)) == asked


def test_a_broker_that_alone_answers_is_asked_although_it_is_cut_off() -> None:
    assert list(fit([0], quorum({0: 6_800, 1: 9_800}), [])) == [0]
