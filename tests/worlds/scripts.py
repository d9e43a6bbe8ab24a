"""Sequences of snapshots: a crash second by second, and wide clusters for benchmarks and large screens."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from msgspec.structs import replace

from kview.derive.align import partition_rows
from kview.derive.fold import State, fold_on, step
from kview.derive.view import View
from kview.model.snapshot import AnyTable, Snapshot
from tests.worlds.parts import Consumers, Node, topic
from tests.worlds.world import World, default_world


def crash_script(
    broker: int = 4, *, healthy_s: int = 60, silent_s: int = 30, after_s: int = 10, world: World | None = None
) -> Iterator[Snapshot]:
    """Yield a snapshot per second in which `broker` crashes, is fenced 9 s after its first silence, and
    returns.

    Second `healthy_s` is the first in which it is silent, and `healthy_s + 9` the first after the metadata
    step. At `healthy_s + silent_s` the broker answers again and is unfenced. One second later it is in every
    ISR.
    """
    world = world or default_world()
    for _ in range(healthy_s):
        yield world.tick()
    world.crash(broker)
    for _ in range(silent_s):
        yield world.tick()
    world.back(broker)
    for _ in range(after_s):
        yield world.tick()


def views(snapshots: Iterable[Snapshot], state: State | None = None) -> Iterator[View]:
    """Yield the views of a sequence, folded from `state` or from an empty state."""
    state = state or State()
    for snapshot in snapshots:
        state, view = step(state, snapshot)
        yield view


def views_at(snapshots: Sequence[Snapshot], *numbers: int) -> Iterator[View]:
    """Yield the views of the snapshots of these numbers, in order, without making those in between."""
    state, begin = State(), 0
    for number in numbers:
        state, view = fold_on(state, snapshots[begin : number + 1])
        begin = number + 1
        yield view


def wide_world(partitions: int, *, per_topic: int = 100, groups: int = 5, brokers: int = 6) -> World:
    """Return a cluster of `partitions` partitions with 3 replicas each, in topics of `per_topic` partitions.
    `groups` groups read half of the partitions."""
    nodes = [Node(id, "R1" if id < brokers // 2 else "R2") for id in range(brokers)]
    topics = -(-partitions // per_topic)
    logs = [
        log
        for number in range(topics)
        for log in topic(f"topic-{number:05}", per_topic, 3, 10.0 + number % 7)
    ]
    read = [log for log in logs[: partitions // 2]]
    consumers = [
        Consumers(
            f"group-{number}",
            number % brokers,
            3,
            {log.key: int(log.watermark) for log in read[number::groups]},
        )
        for number in range(groups)
    ]
    return World(nodes, logs[:partitions], consumers)


def wide_snapshots(partitions: int, seconds: int, *, groups: int = 5) -> list[Snapshot]:
    """Return `seconds` snapshots of a wide cluster in which broker 4 crashes in the last third."""
    world = wide_world(partitions, groups=groups)
    made = []
    for second in range(seconds):
        if second == seconds * 2 // 3:
            world.crash(4)
        made.append(world.tick())
    return made


def growing_snapshots(partitions: int, seconds: int) -> Iterator[Snapshot]:
    """Yield `seconds` healthy snapshots of a wide cluster in which every offset grows by a different number
    every second. They are made faster than a world ticks."""
    base = wide_world(partitions).tick()
    chance = np.random.default_rng(partitions)
    table, replicas, rows = base.partitions, base.replicas, partition_rows(base.offsets, base.partitions)
    leads = table.leader[replicas.row] == replicas.broker
    end, watermark, ends = table.log_end, table.high_watermark, replicas.log_end
    for second in range(seconds):
        ms = 1000 * second
        end = end + 1 + chance.poisson(12.0, len(end))
        watermark = np.maximum(watermark, end - chance.poisson(3.0, len(end)))
        behind = np.where(leads, 0, chance.poisson(3.0, len(ends)))
        ends = np.maximum(ends, end[replicas.row] - behind)
        yield replace(
            base,
            observation=replace(
                base.observation,
                sequence=second,
                began_ms=base.observation.began_ms + ms,
                ended_ms=base.observation.ended_ms + ms,
            ),
            brokers=_later(base.brokers, ms, "answered_ms", "last_fetch_ms"),
            partitions=replace(
                _later(table, ms, "log_start_ms", "high_watermark_ms", "last_stable_ms", "log_end_ms"),
                log_end=end,
                high_watermark=watermark,
                last_stable=watermark,
            ),
            replicas=replace(_later(replicas, ms, "log_end_ms"), log_end=ends),
            groups=_later(base.groups, ms, "received_ms"),
            offsets=replace(_later(base.offsets, ms, "received_ms"), committed=watermark[rows]),
        )


def _later(table: AnyTable, ms: int, *columns: str) -> AnyTable:
    return replace(table, **{name: getattr(table, name) + ms for name in columns})
