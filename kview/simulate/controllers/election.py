"""Leader election, with the changes of a partition's ISR and ELR, by Kafka's rules.

Source: org.apache.kafka.controller.PartitionChangeBuilder, KIP-966.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from kview.simulate.controllers.effective_configs import EffectiveConfigs
from kview.simulate.controllers.metadata_log import MetadataLog
from kview.simulate.features import ELR_VERSION
from kview.simulate.metadata import NO_LEADER, BrokerImage, PartitionImage, TopicPartition
from kview.simulate.reassignment import completed


class ElectionRules(NamedTuple):
    """What the leader of a topic's partition is elected by.

    `active` says whether a broker may lead. With `unclean`, a replica outside the ISR may lead if no other
    can.
    """

    active: Callable[[int], bool]
    min_insync_replicas: int
    elr_enabled: bool
    unclean: bool = False

    def elect(
        self,
        partition: PartitionImage,
        isr: tuple[int, ...],
        *,
        prefer: bool = False,
        unclean_shutdown: int | None = None,
        recovered: bool = False,
        before: PartitionImage | None = None,
    ) -> PartitionImage | None:
        """Return the partition after its ISR becomes `isr` and a leader is elected, or None if nothing
        changes.

        With `prefer`, the preferred leader is tried first. `unclean_shutdown` is a broker that came back from
        a crash and therefore leaves the ELR. `recovered` clears the flag `recovering`. A reassignment whose
        replicas have all caught up is completed. `before` is the partition as it was, if its replicas have
        just been changed.
        """
        if before is None:
            before = partition
        partition, isr = completed(partition, isr)
        elr = self._elr(partition, isr, unclean_shutdown)
        eligible = isr or elr

        def alive(replica: int) -> bool:
            return self.active(replica) and replica not in partition.offline

        def valid(replica: int) -> bool:
            return replica in eligible and alive(replica)

        leader, forced = partition.leader, False
        if prefer and valid(partition.replicas[0]):
            leader = partition.replicas[0]
        elif not valid(leader):
            leader = next((r for r in partition.replicas if valid(r)), NO_LEADER)
            last_known = partition.last_known_elr
            if (
                leader == NO_LEADER
                and self.elr_enabled
                and not eligible
                and len(last_known) == 1
                and alive(last_known[0])
            ):
                leader, forced = last_known[0], True
            if leader == NO_LEADER and self.unclean:
                leader = next((r for r in partition.replicas if alive(r)), NO_LEADER)
                forced = leader != NO_LEADER

        if not isr and not self.elr_enabled and not forced:
            isr = partition.isr
        last_known_elr = partition.last_known_elr
        if forced:
            # Records may be lost, so nothing that is known about the other replicas counts any more.
            isr, elr, last_known_elr = (leader,), (), ()
        elif not isr and leader != NO_LEADER:
            isr = (leader,)
            elr = tuple(r for r in elr if r != leader)
            last_known_elr = ()
        if self.elr_enabled:
            if len(isr) >= min(self.min_insync_replicas, len(partition.replicas)):
                last_known_elr = ()
            elif not isr and partition.leader != NO_LEADER:
                last_known_elr = (partition.leader,)
        recovering = forced or (partition.recovering and not recovered)
        new = partition._replace(
            leader=leader, isr=isr, elr=elr, last_known_elr=last_known_elr, recovering=recovering
        )
        if new == before:
            return None
        removed = not set(before.replicas) <= set(new.replicas)
        return new._replace(
            partition_epoch=before.partition_epoch + 1,
            leader_epoch=before.leader_epoch + (leader != before.leader or removed),
        )

    def _elr(
        self, partition: PartitionImage, isr: tuple[int, ...], unclean_shutdown: int | None
    ) -> tuple[int, ...]:
        if not self.elr_enabled or len(isr) >= min(self.min_insync_replicas, len(partition.replicas)):
            return ()
        known = (*partition.elr, *(r for r in partition.isr if r not in partition.elr))
        return tuple(
            sorted(r for r in known if r in partition.replicas and r not in isr and r != unclean_shutdown)
        )


class Elections:
    """The controller's elections, from the metadata and configurations in force."""

    def __init__(self, metadata: MetadataLog, configs: EffectiveConfigs) -> None:
        self._metadata = metadata
        self._configs = configs

    @property
    def elr_enabled(self) -> bool:
        """Whether partitions have eligible leader replicas (KIP-966)."""
        return self._metadata.image.features.get(ELR_VERSION, 0) > 0

    def active(self, brokers: Mapping[int, BrokerImage], without: int = -1) -> Callable[[int], bool]:
        """Return a function that says whether a broker may lead, once `brokers` have changed."""
        every = {**self._metadata.image.brokers, **brokers}
        live = {b.id for b in every.values() if b.active and b.id != without}
        return live.__contains__

    def rules(self, topic: str, active: Callable[[int], bool], unclean: bool = False) -> ElectionRules:
        """Return a topic's rules. With `unclean`, unclean elections are allowed whatever its configuration
        says."""
        return ElectionRules(
            active,
            self._configs.min_insync_replicas(topic),
            self.elr_enabled,
            unclean or self._configs.unclean_election(topic),
        )

    def without(
        self, broker: int, unclean_shutdown: int | None = None
    ) -> dict[TopicPartition, PartitionImage]:
        """Return the partitions that change when a broker leaves all ISRs and leaderships."""
        active = self.active({}, without=broker)
        changes: dict[TopicPartition, PartitionImage] = {}
        for key, p in self._metadata.image.all_partitions():
            if p.leader == broker or broker in p.isr or (unclean_shutdown is not None and broker in p.elr):
                isr = tuple(r for r in p.isr if r != broker)
                new = self.rules(key[0], active).elect(p, isr, unclean_shutdown=unclean_shutdown)
                if new is not None:
                    changes[key] = new
        return changes
