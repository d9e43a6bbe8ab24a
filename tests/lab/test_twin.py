"""Twins: what they have of the observed cluster, and that a loss does in them what was forecast."""

import json
import math
import os
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from kview.derive.fold import State, step
from kview.derive.view import Verdict, View
from kview.errors import BadUse, ErrorKind
from kview.lab.twin import MOST_FILE_BYTES, STUCK_RATE, Unlike, down, twin_of, world_in
from kview.lab.twin_loss import forecast, outage
from kview.language.errors import sentence
from kview.model.failures import STORAGE_ERROR
from kview.model.snapshot import LogDirs, Quorum, TopicConfigs
from kview.model.states import BrokerState, GroupType
from kview.run.observing import ConnectedSource
from kview.run.twin import described, observed, write
from kview.simulate.cluster import build
from kview.simulate.world import OFFSETS_TOPIC, GroupSpec
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
    said = {name: forecast(view, made.world, name) for name in ("0", "3", "5", "R1", "R2")}
    done = {name: outage(made.world, view, name, seed=1) for name in said}
    assert done == said
    internal = {topic for each in said.values() for topic, _ in (*each.leaderless, *each.under_min)}
    assert (OFFSETS_TOPIC in internal) == (second < 90), "kview check counts its partitions, too"
    assert any(each.leaderless for each in said.values()) and any(each.under_min for each in said.values())


def test_nobody_can_lose_what_is_not_there() -> None:
    view = last(3)
    seen = view.snapshot.brokers
    gone = replace(
        seen,
        id=np.append(seen.id, 77).astype(seen.id.dtype),
        rack=np.append(seen.rack, "R9"),
        state=np.append(seen.state, BrokerState.GONE),
        **{
            name: np.append(getattr(seen, name), getattr(seen, name)[:1])
            for name in seen.__struct_fields__
            if name not in ("id", "rack", "state")
        },
    )
    world = twin_of(view).world
    with_gone = replace(view, snapshot=replace(view.snapshot, brokers=gone))
    for name in ("77", "R9", "", "-1", "1e3", 5_000 * "9"):
        with pytest.raises(BadUse) as wrong:
            forecast(with_gone, world, name)
        assert wrong.value.kind is ErrorKind.NOTHING_TO_LOSE


def test_what_is_not_in_the_twin_is_counted() -> None:
    """Broker 4 has been silent for 20 s: followers are out of sync. Settings of brokers are the topics'."""
    world = default_world()
    view = [*views(world.tick() for _ in range(20))][-1]
    seen = view.snapshot
    settings = [
        ("invoice", "unclean.leader.election.enable", "true", "STATIC_BROKER_CONFIG"),
        ("invoice", "retention.bytes", "-1", "STATIC_BROKER_CONFIG"),
        ("payment", "retention.ms", "604800000", "DEFAULT_CONFIG"),
        ("payment", "of.another.kafka", "1", "DYNAMIC_BROKER_CONFIG"),
    ]
    columns = (np.array(column, object) for column in zip(*settings, strict=True))
    groups = seen.groups
    verdicts = np.full(len(groups), str(Verdict.STUCK), object)
    figures = replace(
        view.groups,
        verdict=verdicts,
        read_rate=np.where(np.arange(len(groups)) % 2, 0.0, math.nan),
        behind_ms=np.full(len(groups), 3_600_000),
    )
    in_isr = view.partitions.in_isr.copy()
    in_isr[0, 0] = False
    kinds = groups.type.copy()
    kinds[0] = GroupType.CONNECT
    strategies = groups.assignment_strategy.copy()
    strategies[1:] = "cooperative-sticky"
    members = np.maximum(groups.members, 1)
    changed = replace(
        view,
        groups=figures,
        partitions=replace(view.partitions, in_isr=in_isr),
        snapshot=replace(
            seen,
            topic_configs=TopicConfigs(*columns),
            groups=replace(groups, type=kinds, assignment_strategy=strategies, members=members),
            log_dirs=LogDirs(*(np.array([value]) for value in (0, "/a", STORAGE_ERROR, -1, -1, 0))),
            quorum=Quorum(
                np.array([0, 1, 9]),
                np.array(["leader", "follower", "follower"]),
                *(np.zeros(3, np.int64) for _ in "123"),
            ),
        ),
    )
    made = twin_of(changed)
    configs = {topic.name: topic.configs for topic in made.world.topics}
    assert configs["invoice"] == {"unclean.leader.election.enable": "true"}
    others = len(groups) - 1
    assert made.unlike == {
        Unlike.OUT_OF_SYNC: 1,
        Unlike.FAILED_DIRS: 1,
        Unlike.CONFIGS: 1,
        Unlike.CONTROLLERS_TOO: 2,
        Unlike.CONNECT: 1,
        Unlike.LAGS: others,
        Unlike.ASSIGNORS: others,
    }
    assert {group.records_per_second for group in made.world.groups} == {STUCK_RATE}
    assert len(described(made, "prod", to_lose=False)) == 1 + len(made.unlike)


def test_a_group_that_nobody_uses_any_more_is_left_out() -> None:
    view = last()
    verdict = view.groups.verdict.copy()
    verdict[view.groups.place.argmin()] = Verdict.ABANDONED
    made, whole = twin_of(replace(view, groups=replace(view.groups, verdict=verdict))), twin_of(view)
    assert len(made.world.groups) == len(whole.world.groups) - 1
    assert made.unlike == {**whole.unlike, Unlike.ABANDONED: 1}


def test_what_is_down_in_the_model_goes_down_before_something_else_is_lost() -> None:
    made = twin_of([*views(crash_script())][70])
    for to_lose, verb in ((False, "are up in its twin: 1"), (True, "go down in its twin before the loss: 1")):
        assert any(line.endswith(verb) for line in described(made, "prod", to_lose))


def test_a_group_that_is_stuck_reads_nothing_in_the_twin() -> None:
    world = replace(
        twin_of(last()).world,
        groups=(GroupSpec("billing", ("invoice",), 3, records_per_second=STUCK_RATE, warm_lag_seconds=9.0),),
    )
    cluster = build(world, 1, START_MS)
    cluster.run_until(cluster.kernel.now_us + 20_000_000)
    members = cluster.traffic.members["billing"]
    assert len(members) == 3 and not any(member.read_records for member in members)


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
    os.truncate(file, MOST_FILE_BYTES + 1)
    with pytest.raises(BadUse) as large:
        world_in(file)
    assert large.value.kind is ErrorKind.FILE_NOT_READ
    with pytest.raises(BadUse) as unwritten:
        write(made, tmp_path / "no" / "world.json")
    assert unwritten.value.kind is ErrorKind.FILE_NOT_WRITTEN


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"brokers": []}, ErrorKind.NODES_MISSING),
        ({"controllers": []}, ErrorKind.NODES_MISSING),
        ({"brokers": [{"id": 0, "rack": ""}, {"id": 0, "rack": ""}]}, ErrorKind.NODE_ID_WRONG),
        ({"brokers": [{"id": -1, "rack": ""}]}, ErrorKind.NODE_ID_WRONG),
        ({"controllers": [0]}, ErrorKind.NODE_ID_WRONG),
        ({"topics": 2 * [{"name": "t", "partitions": 1, "replication": 1}]}, ErrorKind.NAME_TWICE),
        ({"groups": [{"name": "g", "topics": ["no"], "members": 1}]}, ErrorKind.CLIENT_WITHOUT_TOPIC),
        (
            {"producers": [{"client_id": "p", "topic": "no", "records_per_second": 1}]},
            ErrorKind.CLIENT_WITHOUT_TOPIC,
        ),
        ({"groups": [{"name": "g", "topics": ["t"], "members": -1}]}, ErrorKind.VALUE_IMPOSSIBLE),
        (
            {"groups": [{"name": "g", "topics": ["t"], "members": 1, "assignor": "x"}]},
            ErrorKind.VALUE_IMPOSSIBLE,
        ),
        (
            {"groups": [{"name": "g", "topics": ["t"], "members": 1, "protocol": "x"}]},
            ErrorKind.VALUE_IMPOSSIBLE,
        ),
        ({"link": {"bytes_per_second": 0}}, ErrorKind.VALUE_IMPOSSIBLE),
    ],
)
def test_a_world_that_cannot_be_is_refused(tmp_path: Path, change: object, kind: ErrorKind) -> None:
    world = {
        "brokers": [{"id": 0, "rack": ""}],
        "topics": [{"name": "t", "partitions": 1, "replication": 1}],
    }
    file = tmp_path / "world.json"
    file.write_text(json.dumps({**world, **change}))  # type: ignore[dict-item]
    with pytest.raises(BadUse) as wrong:
        build(world_in(file), 1, START_MS)
    assert wrong.value.kind is kind and sentence(wrong.value)


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
    said, done = forecast(view, made.world, "2"), outage(made.world, view, "2", seed=1)
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
