"""Sequences of snapshots: a crash second by second, and wide clusters for benchmarks and big screens."""

from collections.abc import Iterable, Iterator

from kview.derive.fold import State, step
from kview.derive.view import View
from kview.model.snapshot import Snapshot
from tests.worlds.world import Consumers, Node, World, default_world, topic


def crash_script(
    broker: int = 4, *, healthy_s: int = 60, silent_s: int = 30, after_s: int = 10, world: World | None = None
) -> Iterator[Snapshot]:
    """A snapshot a second: healthy, `broker` crashes, is fenced 9 s after its first silence, comes back, is
    in sync.

    Second `healthy_s` is the first silent one; `healthy_s + 9` the first after the metadata step; at
    `healthy_s + silent_s` the broker answers again, unfenced; one second later it is in every ISR.
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
    """The views of a sequence, folded from `state` or from nothing."""
    state = state or State()
    for snapshot in snapshots:
        state, view = step(state, snapshot)
        yield view


def wide_world(partitions: int, *, per_topic: int = 100, groups: int = 5, brokers: int = 6) -> World:
    """A cluster of `partitions` partitions × 3 replicas in topics of `per_topic`, half of them read by
    `groups` groups."""
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
    """`seconds` healthy snapshots of a wide cluster; a crash of broker 4 in the last third."""
    world = wide_world(partitions, groups=groups)
    made = []
    for second in range(seconds):
        if second == seconds * 2 // 3:
            world.crash(4)
        made.append(world.tick())
    return made
