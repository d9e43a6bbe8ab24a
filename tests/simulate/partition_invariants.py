"""The invariants on single partitions, small named classes that check what must be true after every event."""

from collections.abc import Mapping
from typing import ClassVar, NamedTuple

from kview.simulate.brokers.replica import Replica
from kview.simulate.log import Log
from kview.simulate.metadata import BrokerImage, PartitionImage, TopicPartition
from kview.simulate.records import CONTROL, TRANSACTIONAL, header


class Partition(NamedTuple):
    """A partition to check, with the data that invariants need.

    `brokers` and `image` are the controller's metadata. `leader` is the leader's replica, or None if that
    replica does not lead yet.
    """

    brokers: Mapping[int, BrokerImage]
    key: TopicPartition
    id: tuple[bytes, int]
    image: PartitionImage
    replicas: list[Replica]
    leader: Replica | None


class Invariant:
    """An invariant on one partition, whose `check` returns what is wrong, or None.

    An invariant with `of_metadata` depends on the controller's metadata alone, and is skipped while that
    metadata does not change.
    """

    of_metadata: ClassVar[bool] = False

    def check(self, partition: Partition) -> str | None:
        """Check the partition, and return what is wrong, or None."""
        raise NotImplementedError


class IsrIsAmongReplicas(Invariant):
    """An invariant: ISR and ELR members are replicas, each listed once, and no broker is in both lists."""

    of_metadata = True

    def check(self, partition: Partition) -> str | None:
        image = partition.image
        both = image.isr + image.elr
        if len(set(both)) != len(both) or not set(both) <= set(image.replicas):
            return f"ISR {image.isr}, ELR {image.elr} of replicas {image.replicas}"
        return None


class LeaderIsActive(Invariant):
    """An invariant: in the controller's metadata, a leader is active and is in the ISR."""

    of_metadata = True

    def check(self, partition: Partition) -> str | None:
        image = partition.image
        leader = image.leader
        if leader >= 0 and (leader not in image.isr or not partition.brokers[leader].active):
            return f"leader {leader} of ISR {image.isr} is not active"
        return None


class FencedBrokersAreInNoIsr(Invariant):
    """An invariant: no ISR contains a fenced broker.

    The exception is a partition without a leader, which keeps its last ISR if ELR is disabled.
    """

    of_metadata = True

    def check(self, partition: Partition) -> str | None:
        image = partition.image
        brokers = partition.brokers
        fenced = [r for r in image.isr if brokers[r].fenced]
        return f"{fenced} fenced in the ISR {image.isr}" if fenced and image.leader >= 0 else None


class EpochsNeverFall(Invariant):
    """An invariant: a partition's leader epoch and partition epoch never fall."""

    of_metadata = True

    def __init__(self) -> None:
        self._seen: dict[tuple[bytes, int], tuple[int, int]] = {}

    def check(self, partition: Partition) -> str | None:
        image = partition.image
        place = partition.id
        now, before = (image.leader_epoch, image.partition_epoch), self._seen.get(place, (-1, -1))
        self._seen[place] = now
        return f"epochs {before} became {now}" if now[0] < before[0] or now[1] < before[1] else None


class OneLeaderPerEpoch(Invariant):
    """An invariant: only one broker leads a partition in any leader epoch."""

    def __init__(self) -> None:
        self._leaders: dict[tuple[bytes, int], tuple[int, int]] = {}

    def check(self, partition: Partition) -> str | None:
        for replica in partition.replicas:
            if replica.leading:
                epoch, broker = replica.leader_epoch, replica.broker.id
                last_epoch, last = self._leaders.get(partition.id, (-1, -1))
                if epoch == last_epoch and broker != last:
                    return f"{last} led in epoch {epoch}, {broker} leads"
                if epoch > last_epoch:
                    self._leaders[partition.id] = epoch, broker
        return None


class OffsetsAreInOrder(Invariant):
    """An invariant: log start ≤ high watermark ≤ log end on a leader. On a follower, neither exceeds the log
    end."""

    def check(self, partition: Partition) -> str | None:
        for replica in partition.replicas:
            log, watermark = replica.log, replica.high_watermark
            if watermark > log.end or log.start > log.end or (replica.leading and log.start > watermark):
                return f"broker {replica.broker.id}: {log.start} ≤ {watermark} ≤ {log.end} does not hold"
        return None


class WatermarkNeverFalls(Invariant):
    """An invariant: a broker's high watermark does not fall while the broker leads in one epoch."""

    def __init__(self) -> None:
        self._seen: dict[tuple[bytes, int, int], int] = {}

    def check(self, partition: Partition) -> str | None:
        for replica in partition.replicas:
            if replica.leading:
                place = *partition.id, replica.leader_epoch
                before = self._seen.get(place, 0)
                if replica.high_watermark < before:
                    return f"broker {replica.broker.id}: {before} fell to {replica.high_watermark}"
                self._seen[place] = replica.high_watermark
        return None


class CommittedIsOnEveryIsrMember(Invariant):
    """An invariant: committed records are in the log of every ISR member, with the same epochs.

    Records count as committed once they are below a leader's high watermark. An unclean election, the return
    of a last known leader, or a reassignment that is cancelled when only new replicas are in sync, may lose
    committed records, so the check then starts over.
    """

    def __init__(self) -> None:
        self._committed: dict[tuple[bytes, int], tuple[int, Log]] = {}
        self._images: dict[tuple[bytes, int], PartitionImage] = {}

    def check(self, partition: Partition) -> str | None:
        image = partition.image
        place = partition.id
        leader = partition.leader
        before, self._images[place] = self._images.get(place, image), image
        if image.recovering or _cancelled_with_loss(before, image):
            self._committed.pop(place, None)
        elif leader is not None and leader.leader_epoch == image.leader_epoch:
            known = self._committed.get(place)
            if known is None or leader.high_watermark >= known[0]:
                self._committed[place] = leader.high_watermark, leader.log
        known = self._committed.get(place)
        if known is None or known[0] == 0:
            return None
        committed, log = known
        last = log.span_of(committed - 1)
        held = 0
        for replica in partition.replicas:
            if replica.broker.id not in image.isr:
                continue
            held += 1
            if replica.log.end < committed:
                return f"broker {replica.broker.id} ends at {replica.log.end}, committed is {committed}"
            own = replica.log.span_of(committed - 1)
            if own is not None and last is not None and own.stream.lineage is not last.stream.lineage:
                return f"broker {replica.broker.id} has record {committed - 1} from elsewhere"
        return None if held == len(image.isr) else f"{held} of ISR {image.isr} have a log"


class TransactionsAreWholeAndUnfenced(Invariant):
    """An invariant on what is committed of a partition's transactions: a producer's epochs never fall, and in
    an epoch no sequence number is missing or there twice.

    So a zombie writes nothing once its marker is there, and no retry writes a batch again. What is committed
    may be lost as in `CommittedIsOnEveryIsrMember`, and records may be deleted or cleaned. The check then
    starts over behind them.
    """

    def __init__(self) -> None:
        self._read_to: dict[tuple[bytes, int], int] = {}
        self._producers: dict[tuple[bytes, int], dict[int, tuple[int, int]]] = {}
        """Partition → producer → (its epoch, its next sequence number, −1 if any may follow)."""

    def check(self, partition: Partition) -> str | None:
        leader, place = partition.leader, partition.id
        if leader is None or leader.high_watermark <= leader.log.start:
            return None
        read_to = self._read_to.get(place, 0)
        cleaned_to = leader.log.cleaned_to
        if cleaned_to > read_to or leader.high_watermark < read_to or partition.image.recovering:
            self._producers[place] = {}
            read_to = cleaned_to
        known = self._producers.setdefault(place, {})
        self._read_to[place] = leader.high_watermark
        for base, batch, _ in leader.log.batches(read_to, leader.high_watermark):
            head = header(batch)
            if not head.attributes & TRANSACTIONAL or head.producer_id < 0:
                continue
            epoch, sequence = known.get(head.producer_id, (head.producer_epoch, -1))
            if head.producer_epoch < epoch:
                return f"record {base}: epoch {head.producer_epoch} of producer {head.producer_id} < {epoch}"
            if head.producer_epoch > epoch:
                sequence = 0
            if not head.attributes & CONTROL and head.base_sequence >= 0:
                if sequence not in (-1, head.base_sequence):
                    return f"record {base}: sequence number {head.base_sequence}, not {sequence}"
                sequence = head.base_sequence + head.records
            known[head.producer_id] = head.producer_epoch, sequence
        return None


def _cancelled_with_loss(before: PartitionImage, now: PartitionImage) -> bool:
    """Return whether a reassignment was cancelled that left no replica in sync with the previous ISR.

    Source: PartitionReassignmentRevert, which then puts the first old replica into the ISR, also if the ISR
    was empty (ELR).
    """
    was_moving = bool(before.adding or before.removing) and not (now.adding or now.removing)
    return was_moving and set(before.isr) <= set(before.adding)


def standard() -> list[Invariant]:
    """Return all invariants on single partitions."""
    return [
        IsrIsAmongReplicas(),
        LeaderIsActive(),
        FencedBrokersAreInNoIsr(),
        EpochsNeverFall(),
        OneLeaderPerEpoch(),
        OffsetsAreInOrder(),
        WatermarkNeverFalls(),
        CommittedIsOnEveryIsrMember(),
        TransactionsAreWholeAndUnfenced(),
    ]
