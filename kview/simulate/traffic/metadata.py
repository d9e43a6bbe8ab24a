"""A client's own copy of the partitions' leaders, which may be out of date until the next refresh."""

from collections.abc import Iterable
from random import Random

from kview.simulate.metadata import NO_LEADER
from kview.simulate.traffic.connections import Connections

RETRY_BACKOFF_US = 100_000
"""Kafka's retry.backoff.ms."""
RETRY_BACKOFF_MAX_US = 1_000_000
"""Kafka's retry.backoff.max.ms."""

MAX_AGE_US = 300_000_000
"""Kafka's metadata.max.age.ms."""


class ClientMetadata:
    """The partitions' leaders of some topics. A refresh asks a random running broker after a back-off.

    Without a reason to refresh, a client renews its metadata at its maximum age and so learns of new
    partitions.

    A real client may ask a hung broker first and wait until that request times out. This is left out on
    purpose.
    """

    def __init__(self, cluster: Connections, topics: Iterable[str], random: Random) -> None:
        self._cluster = cluster
        self._random = random
        self._leaders: dict[str, list[int]] = {topic: [] for topic in topics}
        self._epochs: dict[str, list[int]] = {topic: [] for topic in topics}
        self._ids: dict[str, bytes] = {}
        self._refreshing = False
        self._backoff_us = RETRY_BACKOFF_US
        self.refreshes = 0
        self._taken_us = cluster.kernel.now_us
        self._take()

    def partitions(self, topic: str) -> int:
        """Return the number of partitions of the topic."""
        return len(self._leaders[topic])

    def topic_id(self, topic: str) -> bytes | None:
        """Return the id of the topic whose leaders the client knows, or None if no broker has reported the
        topic yet."""
        return self._ids.get(topic)

    def leader(self, topic: str, partition: int) -> int:
        """Return the leader that the client believes in, or NO_LEADER if it knows none."""
        leaders = self._leaders[topic]
        return leaders[partition] if partition < len(leaders) else NO_LEADER

    def refresh(self) -> None:
        """Ask for metadata after the back-off, which grows while nothing changes."""
        if not self._refreshing:
            self._refreshing = True
            self._cluster.kernel.after(self._backoff_us, self._refreshed)

    def renew(self) -> None:
        """Ask for metadata if what the client has is too old. Clients call this all the time."""
        if self._cluster.kernel.now_us - self._taken_us >= MAX_AGE_US:
            self.refreshes += 1
            self._take()

    def _refreshed(self) -> None:
        self._refreshing = False
        self.refreshes += 1
        changed = self._take()
        self._backoff_us = RETRY_BACKOFF_US if changed else min(self._backoff_us * 2, RETRY_BACKOFF_MAX_US)

    def any_broker(self) -> int:
        """Return a random broker that answers, or −1."""
        running = [b for b in self._cluster.nodes.broker_ids if self._cluster.nodes.serves(b)]
        return self._random.choice(running) if running else -1

    def _take(self) -> bool:
        """Adopt a broker's metadata unless it is older, and return whether a leader changed."""
        broker = self.any_broker()
        if broker < 0:
            return False
        self._taken_us = self._cluster.kernel.now_us
        image = self._cluster.image(broker)
        changed = False
        for topic, leaders in self._leaders.items():
            topic_image = image.topics.get(topic)
            epochs = self._epochs[topic]
            if topic_image is not None and self._ids.get(topic) != topic_image.topic_id:
                # This is a new topic of the same name, so its epochs and partitions start over.
                self._ids[topic] = topic_image.topic_id
                leaders.clear()
                epochs.clear()
            for i, partition in enumerate(topic_image.partitions if topic_image is not None else ()):
                if i == len(leaders):
                    leaders.append(NO_LEADER)
                    epochs.append(-1)
                if partition.leader_epoch >= epochs[i]:
                    changed = changed or leaders[i] != partition.leader
                    leaders[i] = partition.leader
                    epochs[i] = partition.leader_epoch
        return changed
