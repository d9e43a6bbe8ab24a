"""How long a check observes, and what ends one without a result."""

import math
from collections.abc import Callable
from itertools import repeat
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from kview.errors import BadUse, CheckUnfinished, ClusterUnreachable, ErrorKind, KviewError
from kview.model.failures import FailureKind, Part
from kview.model.snapshot import Failure, Snapshot
from kview.run.checking import CheckOptions, check, observe
from kview.run.observing import SourceEnded
from tests.run.fakes import Clock, ScriptedSource
from tests.worlds import World, default_world
from tests.worlds.small import ends, reader, small_world


def source_of(world: World, *failures: Failure) -> ScriptedSource:
    """A source that observes the world, with these failures every time."""
    return ScriptedSource(failing(world.tick(), *failures) for _ in repeat(None))


def failing(snapshot: Snapshot, *failures: Failure) -> Snapshot:
    return replace(snapshot, observation=replace(snapshot.observation, failures=failures))


def stuck() -> World:
    """A world with a group far behind that commits nothing, which shows after half a minute."""
    group = reader("late", *(end - 65_000 for end in ends()))
    group.commit_every_ms = 600_000
    return small_world(group)


OVERDUE = Failure(Part.GROUPS, 3, FailureKind.OVERDUE)
"""A coordinator that may still list its groups, and never does."""


@pytest.mark.parametrize(
    ("world", "failures", "for_s", "watched_s"),
    [
        (default_world, (), None, 6),
        (stuck, (), None, 30),
        (default_world, (OVERDUE,), None, 75),
        (stuck, (), 3.0, 3),
        (default_world, (), 20.0, 20),
    ],
)
def test_it_observes_as_long_as_it_takes_or_as_long_as_it_is_asked(
    world: Callable[[], World], failures: tuple[Failure, ...], for_s: float | None, watched_s: int
) -> None:
    clock = Clock(math.inf)
    outcome = observe(source_of(world(), *failures), CheckOptions(for_s=for_s), clock.wait, clock)
    assert outcome.watched_ms == watched_s * 1000


def test_a_cluster_that_ends_is_unreachable() -> None:
    lost = KviewError(ErrorKind.CLUSTER_KILLED, signal="SIGKILL").facts
    source = ScriptedSource([default_world().tick(), SourceEnded(lost)])
    with pytest.raises(ClusterUnreachable) as ended:
        check(source, "here", CheckOptions())
    assert (ended.value.exit_code, ended.value.kind) == (3, ErrorKind.CLUSTER_KILLED)
    assert source.closes == 1


def test_a_bug_of_kview_is_not_a_finding() -> None:
    """It leaves as an exception, which the command line turns into exit code 70."""
    source = ScriptedSource([default_world().tick(), ValueError("a bug")])
    with pytest.raises(RuntimeError, match="ValueError: a bug"):
        check(source, "here", CheckOptions())


def test_an_error_with_exit_code_1_does_not_look_like_findings() -> None:
    source = ScriptedSource([], [KviewError(ErrorKind.CLUSTER_NOT_READY, within_s=9)])
    with pytest.raises(CheckUnfinished) as failed:
        check(source, "here", CheckOptions())
    assert failed.value.exit_code == 70


def test_a_folder_that_does_not_exist_is_known_before_it_observes(tmp_path: Path) -> None:
    source = ScriptedSource([])
    with pytest.raises(BadUse):
        check(source, "here", CheckOptions(junit=tmp_path / "no" / "report.xml"))
    assert (source.connects, source.closes) == (0, 1)


def test_a_broker_that_owes_an_answer_at_the_end_gets_a_few_seconds_more() -> None:
    """Silent or only late: that shows with the next observations."""
    world = default_world()

    def late(number: int) -> Snapshot:
        snapshot = world.tick()
        answers = (np.arange(6) != 3) | (number != 3)
        return replace(snapshot, brokers=replace(snapshot.brokers, answers=answers))

    clock = Clock(math.inf)
    source = ScriptedSource(late(number) for number in range(20))
    outcome = observe(source, CheckOptions(for_s=3.0), clock.wait, clock)
    assert outcome.watched_ms == 4_000
    assert all(item.brokers != (3,) for item in outcome.judgement.not_judged)
