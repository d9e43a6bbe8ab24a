"""What the members of a group subscribe to, by the topics that exist."""

from collections.abc import Iterable, Mapping
from hashlib import blake2b

from kview.simulate.groups.consumer_group import ConsumerGroup
from kview.simulate.groups.consumer_records import MemberMetadata
from kview.simulate.groups.server_assignors import Subscriber
from kview.simulate.metadata import TopicImage

Topics = Mapping[str, TopicImage]


def topics_after(
    group: ConsumerGroup, before: MemberMetadata | None, after: MemberMetadata | None
) -> set[str]:
    """Return the topics that a group reads once one of its members has changed, come or gone."""
    names, patterns = dict(group.topic_counts), dict(group.regex_counts)
    for metadata, by in ((before, -1), (after, 1)):
        if metadata is not None:
            for topic in metadata.topics:
                names[topic] = names.get(topic, 0) + by
            if metadata.regex:
                patterns[metadata.regex] = patterns.get(metadata.regex, 0) + by
    topics = {topic for topic, count in names.items() if count > 0}
    for pattern, count in patterns.items():
        if count > 0 and pattern in group.regexes:
            topics |= group.regexes[pattern].topics
    return topics


def metadata_hash(names: Iterable[str], topics: Topics) -> int:
    """Return a hash of those of the topics that exist, which changes with their ids and numbers of
    partitions. It is 0 if there are none.

    Kafka's own hash (XXH3) also covers the racks of replicas. Only coordinators compare it.
    """
    known = sorted(name for name in names if name in topics)
    if not known:
        return 0
    digest = blake2b(digest_size=8)
    for name in known:
        digest.update(topics[name].topic_id)
        digest.update(len(topics[name].partitions).to_bytes(4, "big"))
    return int.from_bytes(digest.digest(), "big", signed=True)


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
