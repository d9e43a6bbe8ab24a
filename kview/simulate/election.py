"""Leader election: how a partition changes by Kafka's rules.

Source: org.apache.kafka.controller.PartitionChangeBuilder, KIP-966.
"""

from collections.abc import Callable

from kview.simulate.metadata import NO_LEADER, PartitionImage


def changed(
    partition: PartitionImage,
    *,
    isr: tuple[int, ...],
    active: Callable[[int], bool],
    min_insync_replicas: int,
    elr_enabled: bool,
    unclean: bool = False,
    prefer: bool = False,
    unclean_shutdown: int | None = None,
    recovered: bool = False,
) -> PartitionImage | None:
    """Return the partition with ISR `isr` and the leader that follows from it, or None if nothing changes.

    `active` says whether a broker may lead. With `prefer`, the preferred leader is tried first.
    `unclean_shutdown` is a replica that came back from a crash. `recovered` ends the state RECOVERING.
    """
    elr = _elr(partition, isr, min_insync_replicas, elr_enabled, unclean_shutdown)
    eligible = isr or elr

    def valid(replica: int) -> bool:
        return replica in eligible and active(replica)

    leader, forced = partition.leader, False
    if prefer and valid(partition.replicas[0]):
        leader = partition.replicas[0]
    elif not valid(leader):
        leader = next((r for r in partition.replicas if valid(r)), NO_LEADER)
        last_known = partition.last_known_elr
        if (
            leader == NO_LEADER
            and elr_enabled
            and not eligible
            and len(last_known) == 1
            and active(last_known[0])
        ):
            leader, forced = last_known[0], True
        if leader == NO_LEADER and unclean:
            leader = next((r for r in partition.replicas if active(r)), NO_LEADER)
            forced = leader != NO_LEADER

    if not isr and not elr_enabled and not forced:
        isr = partition.isr
    if forced or (not isr and leader != NO_LEADER):
        isr = (leader,)
        elr = _elr(partition, isr, min_insync_replicas, elr_enabled, unclean_shutdown)
    last_known_elr = partition.last_known_elr
    if elr_enabled:
        if len(isr) >= min(min_insync_replicas, len(partition.replicas)):
            last_known_elr = ()
        elif not isr and partition.leader != NO_LEADER:
            last_known_elr = (partition.leader,)
    recovering = forced or (partition.recovering and not recovered)
    new = partition._replace(
        leader=leader, isr=isr, elr=elr, last_known_elr=last_known_elr, recovering=recovering
    )
    if new == partition:
        return None
    return new._replace(
        partition_epoch=partition.partition_epoch + 1,
        leader_epoch=partition.leader_epoch + (leader != partition.leader),
    )


def _elr(
    partition: PartitionImage,
    isr: tuple[int, ...],
    min_insync_replicas: int,
    enabled: bool,
    unclean_shutdown: int | None,
) -> tuple[int, ...]:
    if not enabled or len(isr) >= min(min_insync_replicas, len(partition.replicas)):
        return ()
    known = (*partition.elr, *(r for r in partition.isr if r not in partition.elr))
    return tuple(sorted(r for r in known if r not in isr and r != unclean_shutdown))
