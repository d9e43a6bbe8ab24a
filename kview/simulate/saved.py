"""A cluster as its disks have it while all of it is stopped, and as it starts again from there."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from kview.simulate.log import Log, Span
from kview.simulate.metadata import NO_LEADER, BrokerImage, MetadataImage, PartitionImage, TopicPartition
from kview.simulate.producer_snapshots import NO_OFFSET
from kview.simulate.records import CONTROL, TRANSACTIONAL, decode_marker, header
from kview.simulate.stream import Aborted, Stream


class SavedLog(NamedTuple):
    """A partition's log. `ends` says by broker how far each replica has it."""

    log: Log
    high_watermark: int
    ends: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Saved:
    """A cluster that was stopped. `starts` is how often it has started, `producer_ids` how many ids of
    producers were given, and `voters` are the controllers that vote, none for all."""

    image: MetadataImage
    logs: Mapping[TopicPartition, SavedLog]
    producer_ids: int
    starts: int
    voters: Sequence[int] = ()


def restored(start: int, end_offset: int, batches: Sequence[bytes]) -> Log:
    """Return the log from offset `start` to `end_offset`, with what its batches alone say: epochs, times, and
    transactions that were aborted.

    The first batch begins at or before `start`. All have their base offsets and leader epochs.
    """
    log = Log(start)
    stream: Stream | None = None
    end, has_gaps = start, False
    began: dict[int, int] = {}
    for number, batch in enumerate(batches):
        head = header(batch)
        base = head.base_offset
        if number == 0:
            end = min(start, base)
        has_gaps = has_gaps or base > end or head.records <= head.last_offset_delta
        if stream is None or stream.epoch != head.leader_epoch:
            stream = Stream(head.leader_epoch, end)
            log.spans.append(Span(head.leader_epoch, end, stream))
        end = base + head.last_offset_delta + 1
        stream.append_kept(end, batch)
        if head.attributes & CONTROL:
            marker = decode_marker(batch)
            first = began.pop(head.producer_id, NO_OFFSET)
            if marker is not None and not marker.is_commit and first != NO_OFFSET:
                stable = min([base + 1, *began.values()])
                stream.aborted.append(Aborted(head.producer_id, first, base, stable))
        elif head.attributes & TRANSACTIONAL:
            began.setdefault(head.producer_id, base)
    if stream is not None and end < end_offset:
        stream.append_kept(end_offset, b"")
        has_gaps = True
    log.end = end_offset
    log.cleaned_to = log.end if has_gaps else log.start
    return log


def started_again(saved: Saved, fresh: MetadataImage) -> MetadataImage:
    """Return the metadata of a cluster whose brokers were all stopped, and of which all have started again.

    `fresh` is that of a new cluster with the same brokers, whose topics are created if they are missing.
    """
    image = saved.image
    offset = max(image.offset, fresh.offset) + 1
    brokers = {
        b: BrokerImage(b, each.rack, False, offset + number)
        for number, (b, each) in enumerate(fresh.brokers.items())
    }
    topics = {
        name: replace(
            topic,
            partitions=tuple(
                _led_again(partition, saved.logs.get((name, number)))
                for number, partition in enumerate(topic.partitions)
            ),
        )
        for name, topic in image.topics.items()
    }
    topics = {**{name: topic for name, topic in fresh.topics.items() if name not in topics}, **topics}
    return replace(
        image,
        offset=offset + len(brokers),
        brokers=brokers,
        topics=topics,
        topic_names={topic.topic_id: name for name, topic in topics.items()},
        scram={**image.scram, **fresh.scram},
    )


def _led_again(partition: PartitionImage, log: SavedLog | None) -> PartitionImage:
    """Return a partition with a new leader epoch. Without a leader, it gets one that may lead, as it would
    when brokers come back one after another.

    Who has lost its log is not in sync if another replica is. All log directories are there again.
    """
    ends = {} if log is None else log.ends
    isr = tuple(b for b in partition.isr if b in ends) or partition.isr
    leader = partition.leader if partition.leader in isr else NO_LEADER
    if leader == NO_LEADER:
        last_known = partition.last_known_elr if len(partition.last_known_elr) == 1 else ()
        for eligible in (isr, partition.elr, last_known):
            found = [b for b in partition.replicas if b in eligible]
            if found:
                leader = found[0]
                isr = isr if leader in isr else (leader,)
                break
    last_epoch = log.log.last_epoch() if log is not None else -1
    return partition._replace(
        leader=leader,
        leader_epoch=max(partition.leader_epoch, last_epoch) + 1,
        partition_epoch=partition.partition_epoch + 1,
        isr=isr,
        elr=tuple(b for b in partition.elr if b not in isr),
        last_known_elr=() if leader != NO_LEADER else partition.last_known_elr,
        offline=(),
    )


def kept_batches(log: Log, start: int) -> Iterator[tuple[int, bytes, int]]:
    """Yield (base offset, bytes, leader epoch) of a log's batches, from the one with offset `start` on."""
    for span, at, _, _ in log.entries(start, log.end):
        batch = span.stream.batches[at]
        if batch:
            yield span.stream.batch_base(at, batch), batch, span.epoch
