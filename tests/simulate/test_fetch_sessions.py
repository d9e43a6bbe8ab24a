"""A broker's cache of fetch sessions: who gets a place in it, and who has to make room."""

import pytest

from kview.simulate.brokers.fetch_sessions import (
    EVICTION_US,
    FIRST_EPOCH,
    NO_SESSION,
    PARTITIONS_MAX,
    SHARDS,
    FetchSessions,
    Wanted,
)
from kview.simulate.codes import ErrorCode
from kview.simulate.kernel import Kernel
from kview.simulate.results import ReadResult
from tests.simulate.engine import cluster_of

EMPTY = ReadResult(ErrorCode.NONE, 0, 0, 0)


def wanted(number: int) -> list[Wanted]:
    return [Wanted(("t", index), "t", 0, 1, -1, -1) for index in range(number)]


def begin(sessions: FetchSessions, partitions: int = 1) -> int:
    return sessions.begin(False, [(one, EMPTY) for one in wanted(partitions)])


def resume(sessions: FetchSessions, session: int, epoch: int = 1, more: int = 0) -> ErrorCode:
    return sessions.resume(session, epoch, False, wanted(more), ())[0]


def later(kernel: Kernel, us: int) -> None:
    kernel.run_until(kernel.now_us + us)


@pytest.fixture
def kernel() -> Kernel:
    return Kernel(7, 0)


def test_each_of_the_eight_shards_has_its_share_of_the_slots(kernel: Kernel) -> None:
    sessions = FetchSessions(0, kernel, 1000)
    ids = {begin(sessions) for _ in range(1000)}
    assert len(ids) == 1000 and min(ids) > 0
    assert begin(sessions) == NO_SESSION, "it is not larger than the others, which are in use"
    assert begin(sessions, 2) == NO_SESSION, "they are too young to make room for a larger one"
    assert FetchSessions(0, kernel, SHARDS - 1).begin(False, ()) == NO_SESSION


def test_an_idle_session_makes_room(kernel: Kernel) -> None:
    sessions = FetchSessions(0, kernel, SHARDS)
    ids = [begin(sessions) for _ in range(SHARDS)]
    later(kernel, EVICTION_US)
    assert begin(sessions) == NO_SESSION
    for _ in range(SHARDS - 1):
        assert begin(sessions) == NO_SESSION
    later(kernel, 1)
    assert begin(sessions) > 0
    assert [resume(sessions, session) for session in ids] == [70] + [0] * (SHARDS - 1)


def test_an_old_session_makes_room_for_a_larger_one(kernel: Kernel) -> None:
    sessions = FetchSessions(0, kernel, SHARDS)
    ids = [begin(sessions, 2) for _ in range(SHARDS)]
    later(kernel, EVICTION_US + 1)
    assert [resume(sessions, session) for session in ids] == [0] * SHARDS
    assert begin(sessions, 2) == NO_SESSION
    assert begin(sessions, 3) > 0
    assert [resume(sessions, session, 2) for session in ids] == [0, 70] + [0] * (SHARDS - 2)


def test_sessions_have_a_limit_of_partitions(kernel: Kernel) -> None:
    sessions = FetchSessions(0, kernel, 1000)
    large = begin(sessions, PARTITIONS_MAX)
    assert large > 0 and begin(sessions) == NO_SESSION
    assert resume(sessions, large, more=PARTITIONS_MAX + 1) == 70
    sessions.close(large)
    small = begin(sessions)
    assert resume(sessions, small, more=PARTITIONS_MAX) == 0
    assert begin(sessions) == NO_SESSION
    assert resume(sessions, small, 2, more=PARTITIONS_MAX + 1) == 70


def test_idle_sessions_do_not_keep_their_partitions(kernel: Kernel) -> None:
    sessions = FetchSessions(0, kernel, 1000)
    idle = [begin(sessions, PARTITIONS_MAX // 2) for _ in range(2)]
    later(kernel, EVICTION_US + 1)
    assert resume(sessions, idle[1]) == 0, "this one is in use"
    assert begin(sessions) > 0
    assert resume(sessions, idle[0]) == 70 and resume(sessions, idle[1], 2) == 0


@pytest.mark.parametrize("session", [0, -1, -(2**31), 2**31 - 1])
def test_a_session_that_nobody_has(kernel: Kernel, session: int) -> None:
    sessions = FetchSessions(0, kernel, 1000)
    sessions.close(session)
    assert resume(sessions, session) == 70


def test_epochs_go_round(kernel: Kernel) -> None:
    sessions = FetchSessions(0, kernel, 1000)
    session = begin(sessions)
    found = sessions.resume(session, FIRST_EPOCH + 1, False, (), ())[1]
    assert found is not None and found.epoch == 2
    found.epoch = 2**31 - 1
    assert resume(sessions, session, 2**31 - 1) == 0
    assert found.epoch == 1


def test_the_sessions_end_with_the_process() -> None:
    cluster = cluster_of()
    sessions = cluster.brokers[0].fetch_sessions
    session = begin(sessions)
    cluster.faults.hang(0)
    assert resume(sessions, session) == 0
    cluster.faults.crash(0)
    assert resume(sessions, session, 2) == 70
