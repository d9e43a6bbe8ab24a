"""The reassignment of a partition's replicas, from its begin to its completion or its cancellation.

Meanwhile the partition has its old and its new replicas. It is completed when all new ones are in sync.
Sources: org.apache.kafka.controller.PartitionReassignmentReplicas and PartitionReassignmentRevert.
"""

from collections.abc import Sequence
from typing import NamedTuple

from kview.simulate.metadata import PartitionImage


class Reverted(NamedTuple):
    """The result of cancelling a reassignment: the partition without the replicas being added, and its ISR.

    `unclean` is True if no in-sync replica is left, so that records may be lost.
    """

    partition: PartitionImage
    isr: tuple[int, ...]
    unclean: bool


def in_progress(partition: PartitionImage) -> bool:
    """Return whether the partition is being reassigned."""
    return bool(partition.adding or partition.removing)


def begun(partition: PartitionImage, target: Sequence[int]) -> PartitionImage:
    """Return the partition on the way to the replicas `target`, which it takes in that order."""
    removing = tuple(sorted(set(partition.replicas) - set(target)))
    adding = tuple(sorted(set(target) - set(partition.replicas)))
    return partition._replace(replicas=(*target, *removing), adding=adding, removing=removing)


def completed(partition: PartitionImage, isr: tuple[int, ...]) -> tuple[PartitionImage, tuple[int, ...]]:
    """Return the partition and its ISR, without the replicas to remove if all new ones are in `isr`.

    A partition whose ISR would then be empty goes on as it is.
    """
    if not in_progress(partition) or not set(partition.adding) <= set(isr):
        return partition, isr
    left = tuple(r for r in isr if r not in partition.removing)
    if not left:
        return partition, isr
    replicas = tuple(r for r in partition.replicas if r not in partition.removing)
    return partition._replace(
        replicas=replicas,
        elr=tuple(r for r in partition.elr if r in replicas),
        last_known_elr=tuple(r for r in partition.last_known_elr if r in replicas),
        offline=tuple(r for r in partition.offline if r in replicas),
        adding=(),
        removing=(),
    ), left


def reverted(partition: PartitionImage) -> Reverted:
    """Return the partition after its reassignment is cancelled."""
    replicas = tuple(r for r in partition.replicas if r not in partition.adding)
    isr = tuple(r for r in partition.isr if r in replicas)
    back = partition._replace(
        replicas=replicas,
        elr=tuple(r for r in partition.elr if r in replicas),
        last_known_elr=tuple(r for r in partition.last_known_elr if r in replicas),
        offline=tuple(r for r in partition.offline if r in replicas),
        adding=(),
        removing=(),
    )
    return Reverted(back, isr or replicas[:1], not isr)
