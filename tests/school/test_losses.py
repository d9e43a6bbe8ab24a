"""What the simulated cluster counts as gone is what the new leader of a partition does not have."""

import pytest

from kview.model.lab import Command, CommandKind
from kview.school.acts import act
from kview.school.checking import Stage, stage_of
from kview.school.figures import parse
from kview.school.lesson import Lesson, LessonWorld, Step
from kview.school.moment import Value


def stage(acks: str) -> Stage:
    """A cluster on which broker 0 leads the topic t, with followers 100 ms away."""
    world = LessonWorld(
        brokers=3, racks=1, topics=("t:1:3",), producers=(f"p:t:1000:acks={acks}",), groups=("g:t:1",),
        latency="100ms", set=("eligible.leader.replicas.version=0",),
    )  # fmt: skip
    return stage_of(Lesson(title="t", about="a", minutes=1, world=world, steps=(Step(caption="."),)))


def figure(at: Stage, name: str) -> Value:
    """A figure of the topic t."""
    return parse(["topic", "t", name])[0].value(at.moment)


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_a_dead_leaders_own_records_are_counted_until_it_truncates(acks: str) -> None:
    at = stage(acks)
    assert figure(at, "gone") == 0
    assert at.apply(Command(CommandKind.CRASH, 0)) is None
    at.watch(12_000)
    dead, leads = (at.cluster.brokers[node].replicas["t", 0] for node in (0, 1))
    assert leads.leading
    assert figure(at, "gone") == dead.log.end - leads.epoch_start > 0
    assert figure(at, "gone-committed") == 0
    assert at.apply(Command(CommandKind.START, 0)) is None
    at.watch(20_000)
    assert figure(at, "gone") == 0


def test_an_unclean_election_takes_committed_records() -> None:
    at = stage("all")
    for kind, node, length_ms in (
        (CommandKind.STOP, 1, 2_000), (CommandKind.STOP, 2, 8_000), (CommandKind.CRASH, 0, 12_000),
        (CommandKind.START, 1, 12_000),
    ):  # fmt: skip
        assert at.apply(Command(kind, node)) is None
        at.watch(length_ms)
    assert figure(at, "no-leader") == 1 and figure(at, "gone") == 0
    assert at.apply(act("elect t")) is None
    at.watch(2_000)
    assert int(str(figure(at, "gone-committed"))) >= 5_000
