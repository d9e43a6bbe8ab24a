"""What is said about a reassignment."""

import numpy as np
from msgspec.structs import replace

from kview.derive.view import View
from kview.language.reassignments import note, sentence
from kview.model.units import UNKNOWN
from tests.worlds.reassignments import Moving


def with_left(view: View, records: int, is_bound: bool = False, time_ms: int = UNKNOWN) -> View:
    moves = replace(
        view.moves,
        records_left=np.array([records, UNKNOWN]),
        records_left_is_bound=np.array([is_bound, False]),
        bytes_left=np.array([UNKNOWN, UNKNOWN]),
        time_left_ms=np.array([time_ms, UNKNOWN]),
    )
    return replace(view, moves=moves)


def test_from_to_records_bytes_and_time() -> None:
    view = Moving().copy(20, 1_000)
    assert note(view, 0) == "reassigning: 0 → 1 2, 160 k records left, ≈ 1 m 20 s"
    assert sentence(view, 0) == (
        "reassigning 0 → 1 2 (adds 1 2, removes 0): 160 k records left (≈ 20 MB), ≈ 1 m 20 s, throttle: –"
    )
    assert note(view, 1) == sentence(view, 1) == "", "it is not moved"


def test_what_is_not_known_is_said_so() -> None:
    view = Moving().look()
    assert note(view, 0).endswith("200 k records left"), "no time yet"
    assert note(with_left(view, UNKNOWN), 0) == "reassigning: 0 → 1 2, records left: –"
    assert note(with_left(view, 1_200_000, is_bound=True), 0).endswith("≥1.2 M records left")
    assert note(with_left(view, 1, time_ms=900), 0).endswith("1 record left, ≈ 0 s")
    assert note(with_left(view, 0, time_ms=0), 0).endswith("0 records left")


def test_replicas_that_are_only_removed_leave_nothing_to_copy() -> None:
    view = Moving().look()
    nobody = np.zeros_like(view.partitions.being_added)
    view = replace(view, partitions=replace(view.partitions, being_added=nobody))
    assert note(view, 0) == "reassigning: 1 2 0 → 1 2"
    assert sentence(view, 0) == "reassigning 1 2 0 → 1 2 (removes 0)"
