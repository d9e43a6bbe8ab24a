"""Twins: what they have of the observed cluster, and that a loss does in them what was forecast."""

from pathlib import Path

import pytest

from kview.derive.fold import State, step
from kview.derive.view import View
from kview.errors import BadUse, ErrorKind
from kview.lab.twin import Unlike, down, twin_of, world_in
from kview.lab.twin_loss import forecast, outage
from kview.run.connected import ConnectedSource
from kview.run.twin import observed, write
from kview.simulate.cluster import build
from tests.real_kafka.cluster import RealKafka
from tests.waiting import wait_until
from tests.worlds import crash_script, default_world, views
from tests.worlds.kinds import of_every_kind

START_MS = 1_767_265_200_000


def last(seconds: int = 20) -> View:
    world = default_world()
    return [*views(world.tick() for _ in range(seconds))][-1]


def replicas_of(view: View) -> dict[tuple[str, int], tuple[int, ...]]:
    table = view.snapshot.partitions
    return {
        (str(table.topic[row]), int(table.partition[row])): tuple(
            broker for broker in table.replicas[row].tolist() if broker >= 0
        )
        for row in range(len(table))
    }


def test_a_twin_has_the_brokers_racks_placement_rates_and_groups() -> None:
    view = last()
    world = twin_of(view).world
    seen = view.snapshot
    assert [(b.id, b.rack) for b in world.brokers] == [*zip(seen.brokers.id, seen.brokers.rack, strict=True)]
    image = build(world, 1, START_MS).metadata.image
    expected = replicas_of(view)
    assert {key: part.replicas for key, part in image.all_partitions() if key in expected} == expected
    rates = {each.topic: each.records_per_second for each in world.producers}
    assert rates == dict(zip(view.throughput.topics, view.throughput.in_rates, strict=True))
    members = dict(zip(seen.groups.group.tolist(), seen.groups.members.tolist(), strict=True))
    assert {group.name: group.members for group in world.groups} == members
    assert all(set(group.topics) <= {topic.name for topic in world.topics} for group in world.groups)


def test_what_is_not_known_is_counted_and_nothing_is_made_up() -> None:
    world = default_world()
    first = step(State(), world.tick())[1]  # no rates yet
    made = twin_of(first)
    assert made.world.producers == () and made.unlike[Unlike.TRAFFIC_UNKNOWN] == len(first.throughput.topics)
    kinds = twin_of(step(State(), of_every_kind(world.tick()))[1])
    assert Unlike.KINDS in kinds.unlike or Unlike.GROUPS_LEFT_OUT in kinds.unlike
    build(kinds.world, 1, START_MS)


@pytest.mark.parametrize("second", [70, 85, 99])
def test_a_loss_does_in_the_twin_what_was_forecast(second: int) -> None:
    """Also while broker 4 is silent, while it is fenced, and when it is back."""
    view = [*views(crash_script())][second]
    made = twin_of(view)
    assert made.unlike.get(Unlike.DOWN, 0) == len(down(view)) == (second < 90)
    said = {name: forecast(view, name) for name in ("0", "3", "5", "R1", "R2")}
    done = {name: outage(made.world, view, name, seed=1) for name in said}
    assert done == said
    assert any(each.leaderless for each in said.values()) and any(each.under_min for each in said.values())


def test_nobody_can_lose_what_is_not_there() -> None:
    view = last(3)
    for name in ("77", "R9", "", "-1", "1e3"):
        with pytest.raises(BadUse) as wrong:
            forecast(view, name)
        assert wrong.value.kind is ErrorKind.NOTHING_TO_LOSE


def test_a_twin_is_written_and_read_again(tmp_path: Path) -> None:
    made = twin_of(last())
    file = tmp_path / "world.json"
    write(made, file)
    assert world_in(file) == made.world
    for text in ("", "{}", '{"brokers": [], "topics": 3}', "\xff", "[" * 100_000):
        file.write_text(text, "latin-1")
        with pytest.raises(BadUse) as wrong:
            world_in(file)
        assert wrong.value.kind is ErrorKind.WORLD_WRONG
    with pytest.raises(BadUse) as unwritten:
        write(made, tmp_path / "no" / "world.json")
    assert unwritten.value.kind is ErrorKind.FILE_NOT_WRITTEN


@pytest.mark.slow
def test_it_fails_over_as_the_real_cluster_does(real_kafka: RealKafka) -> None:
    real_kafka.create_topic(
        "twinned", [[0, 1, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]], {"min.insync.replicas": "3"}
    )
    real_kafka.create_topic("twinned-once", [[2], [1]])
    source = ConnectedSource([real_kafka.address(0)], 0.5)
    source.connect()
    view = observed(source, 3.0)
    made = twin_of(view)
    said, done = forecast(view, "2"), outage(made.world, view, "2", seed=1)
    assert said == done and ("twinned-once", 0) in done.leaderless and ("twinned", 3) in done.under_min
    twin = build(made.world, 1, START_MS)
    twin.faults.crash(2)
    real_kafka.kill(2)
    twin.run_until(twin.kernel.now_us + 15_000_000)
    for topic in ("twinned", "twinned-once"):
        image = twin.metadata.image.topics[topic]
        after = {n: (part.leader, sorted(part.isr)) for n, part in enumerate(image.partitions)}

        def seen(topic: str = topic) -> dict[int, tuple[int, list[int]]]:
            return {n: (p.leader, sorted(p.isr)) for n, p in real_kafka.partitions(topic).items()}

        wait_until(lambda: seen() == after, "the real cluster has the leaders and ISRs of its twin")  # noqa: B023
