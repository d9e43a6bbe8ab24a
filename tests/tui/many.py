"""Clusters with many brokers, topics with long names, and controllers that are lost."""

from collections.abc import Sequence
from functools import cache

import numpy as np
from msgspec.structs import replace

from kview.derive.view import View
from kview.model.snapshot import Snapshot
from kview.model.states import QuorumRole
from tests.worlds import default_world, views
from tests.worlds.parts import Consumers, Log, Node
from tests.worlds.world import World

LONG = "customer-order-events-enriched-topic-"


@cache
def many(
    crashed: Sequence[int] = (),
    brokers: int = 30,
    racks: int = 5,
    topics: int = 12,
    partitions: int = 10,
) -> View:
    """A cluster of that size, with 40-letter names, in which `crashed` have been silent for three seconds."""
    nodes = [Node(id, f"R{id * racks // brokers + 1}" if racks else "") for id in range(brokers)]
    logs = []
    for topic in range(topics):
        for number in range(partitions):
            apart = max(1, brokers // 3)
            replicas = list(dict.fromkeys((number + topic + apart * k) % brokers for k in range(3)))
            logs.append(
                Log(
                    topic=f"{LONG}{topic:03}",
                    partition=number,
                    replicas=replicas,
                    isr=list(replicas),
                    leader=replicas[0],
                    rate=5.0 + topic,
                    start=1000,
                    ends=dict.fromkeys(replicas, 100_000.0),
                    topic_id=f"id{topic}",
                    watermark=100_000.0,
                )
            )
    groups = [
        Consumers(f"group-{g:02}", g % brokers, 2, {log.key: 100_000 - g for log in logs[g::20]})
        for g in range(20)
    ]
    world = World(nodes, logs, groups if logs else [])
    snapshots = [world.tick() for _ in range(6)]
    for broker in crashed:
        world.crash(broker)
    return list(views([*snapshots, *(world.tick() for _ in range(4))]))[-1]


@cache
def lost_controller() -> View:
    """The default cluster, whose controller 103 has not fetched for ten seconds."""
    world = default_world()
    return list(views(_without_fetches(world.tick(), number) for number in range(14)))[-1]


def _without_fetches(snapshot: Snapshot, number: int) -> Snapshot:
    quorum = snapshot.quorum
    stops_ms = snapshot.observation.ended_ms - 1000 * max(0, number - 3)
    voter = (quorum.node == 103) & (quorum.role == QuorumRole.VOTER)
    fetched = np.where(voter, np.minimum(quorum.last_fetch_ms, stops_ms), quorum.last_fetch_ms)
    return replace(snapshot, quorum=replace(quorum, last_fetch_ms=fetched, last_caught_up_ms=fetched))
