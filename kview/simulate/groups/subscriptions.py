"""What the members of a group subscribe to, by the topics that exist."""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b

from kview.simulate.groups.consumer_group import ConsumerGroup
from kview.simulate.groups.consumer_records import MemberMetadata
from kview.simulate.groups.server_assignors import Subscriber
from kview.simulate.metadata import BrokerImage, MetadataImage, TopicImage

Topics = Mapping[str, TopicImage]


def topics_after(
    group: ConsumerGroup, before: Sequence[MemberMetadata], after: Sequence[MemberMetadata]
) -> set[str]:
    """Return the topics that a group reads once members have said, instead of what was `before`, what is
    `after`. Who comes had said nothing before, and who goes says nothing after."""
    names, patterns = dict(group.topic_counts), dict(group.regex_counts)
    for members, by in ((before, -1), (after, 1)):
        for metadata in members:
            for topic in metadata.topics:
                names[topic] = names.get(topic, 0) + by
            if metadata.regex:
                patterns[metadata.regex] = patterns.get(metadata.regex, 0) + by
    topics = {topic for topic, count in names.items() if count > 0}
    for pattern, count in patterns.items():
        if count > 0 and pattern in group.regexes:
            topics |= group.regexes[pattern].topics
    return topics


class MetadataHashes:
    """Hashes of the topics that groups read. When one changes, its group needs a new assignment.

    As in Kafka (KIP-1101), a topic's hash changes with its id, its number of partitions and the racks of
    their replicas. Kafka's own hash is another one (XXH3), but only coordinators compare it.
    """

    def __init__(self) -> None:
        self._found: dict[str, tuple[TopicImage, bytes]] = {}

    def of(self, names: Iterable[str], metadata: MetadataImage) -> int:
        """Return a hash of those of the topics that exist, 0 if there are none."""
        topics = metadata.topics
        known = sorted(name for name in names if name in topics)
        if len(self._found) > 2 * len(topics):
            self._found.clear()  # Most of them have been deleted.
        digest = blake2b(digest_size=8)
        for name in known:
            topic, hashed = self._found.get(name, (None, b""))
            if topic is not topics[name]:
                hashed = _hash_of(topics[name], metadata.brokers)
                self._found[name] = topics[name], hashed
            digest.update(hashed)
        return int.from_bytes(digest.digest(), "big", signed=True) if known else 0


def _hash_of(topic: TopicImage, brokers: Mapping[int, BrokerImage]) -> bytes:
    """Return a hash of a topic's id and of the racks of its replicas, partition by partition."""
    digest = blake2b(topic.topic_id, digest_size=16)
    for partition in topic.partitions:
        racks = sorted(brokers[replica].rack for replica in partition.replicas if replica in brokers)
        digest.update("\0".join((*racks, "\n")).encode())
    return digest.digest()


class Subscriptions:
    """The topics of members, found once for each different subscription of a group."""

    def __init__(self, group: ConsumerGroup, topics: Topics) -> None:
        self._group = group
        self._topics = topics
        self._found: dict[tuple[tuple[str, ...], str], frozenset[bytes]] = {}

    def of(self, metadata: MemberMetadata) -> frozenset[bytes]:
        """Return the ids of the topics that a member subscribes to and that exist."""
        key = metadata.topics, metadata.regex
        if key not in self._found:
            resolved = self._group.regexes.get(metadata.regex)
            names = {*metadata.topics, *(resolved.topics if resolved is not None else ())}
            ids = (self._topics[name].topic_id for name in names if name in self._topics)
            self._found[key] = frozenset(ids)
        return self._found[key]

    def subscriber(self, metadata: MemberMetadata) -> Subscriber:
        """Return a member as assignors see it."""
        return Subscriber(metadata.instance_id, self.of(metadata))

    def partitions(self) -> dict[bytes, int]:
        """Return topic id → number of partitions, of all topics that were found."""
        known = frozenset[bytes]().union(*self._found.values())
        return {
            image.topic_id: len(image.partitions)
            for image in self._topics.values()
            if image.topic_id in known
        }
