"""What losing a broker or a rack does in a twin, and what `kview check` says that it would do."""

from typing import NamedTuple

from msgspec.structs import replace

from kview.derive.brokers.log_dirs import stranded
from kview.derive.checks.impact import broker_domains, losses, rack_domains, rack_names, standing
from kview.derive.view import View
from kview.errors import BadUse, ErrorKind
from kview.lab.twin import NOT_IN_TWINS, down
from kview.model.snapshot import Longs
from kview.model.units import NO_BROKER
from kview.simulate.cluster import Cluster, build
from kview.simulate.world import World

AFTER_S = 5.0
"""How long after the end of a broker's session a loss in the twin is looked at."""

Partitions = frozenset[tuple[str, int]]


class Outage(NamedTuple):
    """Partitions that a loss leaves without a leader, and further ones under min ISR, but for those of topics
    that are not in twins."""

    leaderless: Partitions
    under_min: Partitions


def hit(world: World, lost: str) -> frozenset[int]:
    """Return the brokers of a rack, or the broker, that `lost` names. Raises BadUse if there are none."""
    rack = frozenset(spec.id for spec in world.brokers if lost and spec.rack == lost)
    brokers = rack or frozenset(spec.id for spec in world.brokers if str(spec.id) == lost)
    if not brokers:
        ids = tuple(str(spec.id) for spec in world.brokers)
        racks = tuple(sorted({spec.rack for spec in world.brokers} - {""}))
        raise BadUse(ErrorKind.NOTHING_TO_LOSE, name=lost, brokers=ids, racks=racks)
    return brokers


def forecast(view: View, world: World, lost: str) -> Outage:
    """Return what `kview check` says that losing a broker or a rack of a twin would do. Raises BadUse."""
    brokers_hit = hit(world, lost)
    table, brokers = view.snapshot.partitions, view.snapshot.brokers
    left = standing(table, view.partitions, stranded(view.snapshot))
    racks, ids = rack_names(brokers), brokers.id.tolist()
    if lost in racks:
        domains, number = rack_domains(table, brokers), racks.index(lost)
    else:
        (broker,) = brokers_hit
        # One that is not listed is lost already.
        domains, number = broker_domains(table, brokers), ids.index(broker) if broker in ids else -1

    def names(rows: Longs) -> Partitions:
        named = ((str(table.topic[row]), int(table.partition[row])) for row in rows.tolist())
        return frozenset(each for each in named if each[0] not in NOT_IN_TWINS)

    for loss in losses(left, domains):
        if loss.domain == number:
            return Outage(names(loss.leaderless), names(loss.under_min))
    return Outage(frozenset(), frozenset())


def outage(world: World, view: View, lost: str, seed: int) -> Outage:
    """Return what the same loss does in `world`, the twin of a view's cluster, without what was so before it.

    Brokers that are down in the model go down first, and are fenced.
    """
    cluster = build(replace(world, traffic=False), seed, view.snapshot.observation.ended_ms)
    after_us = round((cluster.settings.number("broker.session.timeout.ms") / 1000 * 9 / 8 + AFTER_S) * 1e6)

    def wait() -> None:
        cluster.run_until(cluster.kernel.now_us + after_us)

    for broker in down(view) & set(cluster.brokers):
        cluster.faults.crash(broker)
    wait()
    before = _outage(cluster)
    for broker in hit(world, lost):
        cluster.faults.crash(broker)
    wait()
    after = _outage(cluster)
    leaderless = after.leaderless - before.leaderless
    return Outage(leaderless, after.under_min - before.under_min - before.leaderless)


def _outage(cluster: Cluster) -> Outage:
    """Return what is without a leader and what is under min ISR now."""
    leaderless, under_min = set(), set()
    for (topic, number), image in cluster.metadata.image.all_partitions():
        if topic in NOT_IN_TWINS:
            continue
        if image.leader == NO_BROKER:
            leaderless.add((topic, number))
        elif len(image.isr) < min(cluster.configs.min_insync_replicas(topic), len(image.replicas)):
            under_min.add((topic, number))
    return Outage(frozenset(leaderless), frozenset(under_min))
