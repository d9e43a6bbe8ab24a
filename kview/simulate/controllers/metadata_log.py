"""The controllers' metadata log, in which every decision is one atomic step."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import TypedDict, Unpack

from kview.simulate.acls import Acls
from kview.simulate.client_quotas import Quotas
from kview.simulate.controllers.quorum import Quorum
from kview.simulate.kernel import Kernel
from kview.simulate.layers import layered
from kview.simulate.metadata import (
    BrokerImage,
    MetadataImage,
    PartitionImage,
    TopicImage,
    TopicPartition,
)
from kview.simulate.scram import ScramCredential, ScramUser
from kview.simulate.tokens import DelegationToken
from kview.simulate.touched import Touched

CHANGES_KEPT = 1000
"""Entries in the list of recent changes, two per step of the metadata. A broker that is further behind checks
every partition."""


class Tables(TypedDict, total=False):
    """What a step replaces as a whole. See `MetadataImage`."""

    broker_configs: Mapping[str, Mapping[str, str]]
    group_configs: Mapping[str, Mapping[str, str]]
    scram: Mapping[ScramUser, ScramCredential]
    acls: Acls
    features: Mapping[str, int]
    client_quotas: Quotas
    client_metrics: Mapping[str, Mapping[str, str]]
    tokens: Mapping[str, DelegationToken]


class MetadataLog:
    """The metadata as the active controller knows it. Brokers fetch it when they learn of a new step."""

    def __init__(self, kernel: Kernel, quorum: Quorum, image: MetadataImage, touched: Touched) -> None:
        self.image = image
        self._kernel = kernel
        self._quorum = quorum
        self._touched = touched
        self._changes: deque[tuple[int, tuple[TopicPartition, ...]]] = deque(maxlen=CHANGES_KEPT)
        self._fetchers: list[Callable[[], None]] = []

    def on_step(self, fetch: Callable[[], None]) -> None:
        """Call `fetch` whenever a broker should fetch the metadata."""
        self._fetchers.append(fetch)

    def publish(self) -> None:
        """Let the brokers fetch the metadata."""
        for fetch in self._fetchers:
            fetch()

    def changed_since(self, offset: int) -> list[TopicPartition] | None:
        """Return the partitions that changed after metadata offset `offset`, or None if the list does not go
        back so far."""
        if self._changes and self._changes[0][0] <= offset + 1:
            newer = list(takewhile(lambda change: change[0] > offset, reversed(self._changes)))
            return list(dict.fromkeys(key for _, changes in reversed(newer) for key in changes))
        return None

    def commit(
        self,
        partitions: Mapping[TopicPartition, PartitionImage],
        brokers: Mapping[int, BrokerImage] | None = None,
        added: Sequence[TopicImage] = (),
        removed: Sequence[str] = (),
        altered: Sequence[TopicImage] = (),
        unregistered: int | None = None,
        **tables: Unpack[Tables],
    ) -> None:
        """Commit one step of the metadata, and let the brokers fetch it.

        `altered` are topics with other configurations or with more partitions, `unregistered` is a broker
        that leaves.
        """
        image = self.image
        topics, names = layered(image.topics), image.topic_names
        keys = list(partitions)
        if altered:
            topics = topics.changed({topic.name: topic for topic in altered})
            keys += [(topic.name, number) for topic in altered for number in range(len(topic.partitions))]
        if partitions:
            by_topic: dict[str, list[PartitionImage]] = {}
            for (name, number), partition in partitions.items():
                if name not in by_topic:
                    by_topic[name] = list(topics[name].partitions)
                by_topic[name][number] = partition
            topics = topics.changed(
                {name: replace(topics[name], partitions=tuple(rows)) for name, rows in by_topic.items()}
            )
        if added or removed:
            for topic in (*added, *(topics[name] for name in removed)):
                keys += [(topic.name, number) for number in range(len(topic.partitions))]
            names = layered(names).changed(
                {topic.topic_id: topic.name for topic in added}, [topics[name].topic_id for name in removed]
            )
            topics = topics.changed({topic.name: topic for topic in added}, removed)
        all_brokers = dict(sorted({**image.brokers, **brokers}.items())) if brokers else image.brokers
        if unregistered is not None:
            all_brokers = {b: each for b, each in all_brokers.items() if b != unregistered}
        records = len(partitions) + len(brokers or ()) + len(added) + len(removed) + len(altered)
        self._quorum.append(max(1, records))
        before = image.offset
        self.image = replace(
            image,
            offset=self._quorum.log_end,
            brokers=all_brokers,
            topics=topics,
            topic_names=names,
            **tables,
        )
        # Idle no-op records may lie between two steps. So the empty entry says that the list is complete from
        # the offset after the previous step on.
        self._changes.append((before + 1, ()))
        self._changes.append((self.image.offset, tuple(keys)))
        for key, partition in partitions.items():
            self._kernel.trace("partition", *key, *partition)
        self._touched.update(keys)
        self.publish()
