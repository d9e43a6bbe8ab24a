"""A client's own view of the leaders of partitions, as old as its last refresh."""

from collections.abc import Iterable
from random import Random

from kview.simulate.cluster import Cluster
from kview.simulate.metadata import NO_LEADER
from kview.simulate.nodes import ProcessState

RETRY_BACKOFF_US = 100_000
"""Kafka's retry.backoff.ms."""
RETRY_BACKOFF_MAX_US = 1_000_000
"""Kafka's retry.backoff.max.ms."""


class ClientMetadata:
    """The leaders of some topics, refreshed on demand, after a back-off, from a broker that answers.

    Left out on purpose: a client that asks a hung broker first and waits until that request times out.
    """

    def __init__(self, cluster: Cluster, topics: Iterable[str], random: Random) -> None:
        self._cluster = cluster
        self._random = random
        self._leaders: dict[str, list[int]] = {topic: [] for topic in topics}
        self._epochs: dict[str, list[int]] = {topic: [] for topic in topics}
        self._ids: dict[str, bytes] = {}
        self._refreshing = False
        self._backoff_us = RETRY_BACKOFF_US
        self.refreshes = 0
        self._take()

    def partitions(self, topic: str) -> int:
        """Return the number of partitions of the topic."""
        return len(self._leaders[topic])

    def topic_id(self, topic: str) -> bytes | None:
        """Return the id of the topic these leaders belong to, or None if no broker has named it yet."""
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

    def _refreshed(self) -> None:
        self._refreshing = False
        self.refreshes += 1
        changed = self._take()
        self._backoff_us = RETRY_BACKOFF_US if changed else min(self._backoff_us * 2, RETRY_BACKOFF_MAX_US)

    def any_broker(self) -> int:
        """Return a random broker that answers, or −1."""
        running = [b for b in self._cluster.broker_ids() if self._cluster.process(b) is ProcessState.RUNNING]
        return self._random.choice(running) if running else -1

    def _take(self) -> bool:
        """Adopt a broker's metadata unless it is older, and return whether a leader changed."""
        broker = self.any_broker()
        if broker < 0:
            return False
        image = self._cluster.image(broker)
        changed = False
        for topic, leaders in self._leaders.items():
            found = image.topics.get(topic)
            epochs = self._epochs[topic]
            if found is not None and self._ids.get(topic) != found.topic_id:
                # This is a new topic of the same name, so its epochs and partitions start over.
                self._ids[topic] = found.topic_id
                leaders.clear()
                epochs.clear()
            for i, partition in enumerate(found.partitions if found is not None else ()):
                if i == len(leaders):
                    leaders.append(NO_LEADER)
                    epochs.append(-1)
                if partition.leader_epoch >= epochs[i]:
                    changed = changed or leaders[i] != partition.leader
                    leaders[i] = partition.leader
                    epochs[i] = partition.leader_epoch
        return changed
