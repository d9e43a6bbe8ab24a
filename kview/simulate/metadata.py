"""Immutable images of the cluster's metadata, which the brokers share. A broker's image may be out of
date."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from kview.simulate.acls import Acls
from kview.simulate.client_quotas import Quotas
from kview.simulate.scram import ScramCredential, ScramUser
from kview.simulate.tokens import DelegationToken

NO_LEADER = -1
NO_ACLS = Acls()

TopicPartition = tuple[str, int]


class PartitionImage(NamedTuple):
    """A partition in the metadata.

    The leader epoch rises whenever the leader changes (even to −1), the partition epoch at every change.
    `offline` are the replicas whose log directories have failed, though their brokers live.
    While the partition is being reassigned, `replicas` holds its old and its new replicas: `adding` are those
    that have not caught up yet, `removing` those that will go.
    """

    leader: int
    leader_epoch: int
    partition_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    recovering: bool = False
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    offline: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TopicImage:
    """A topic in the metadata.

    `topic_id` is a UUID's 16 bytes. `configs` are the configurations set on the topic itself.
    """

    name: str
    topic_id: bytes
    partitions: tuple[PartitionImage, ...]
    internal: bool = False
    configs: Mapping[str, str] = field(default_factory=dict)


class BrokerImage(NamedTuple):
    """A registered broker."""

    id: int
    rack: str
    fenced: bool
    broker_epoch: int
    in_controlled_shutdown: bool = False

    @property
    def active(self) -> bool:
        """Whether the broker may lead and be in an ISR."""
        return not self.fenced and not self.in_controlled_shutdown


@dataclass(frozen=True, slots=True)
class MetadataImage:
    """The cluster's metadata as of `offset` in the metadata log.

    Brokers are sorted by id. Fenced brokers stay listed, with a flag. `broker_configs` are the brokers'
    dynamic configurations by broker id as text, with those of all brokers under the empty text.
    `group_configs` are those of groups, by group id. `scram` are the credentials of users, and
    `acls` what they may do. `features` are the levels of those that are on,
    `client_quotas` how much clients may use, `client_metrics` the configurations of subscriptions,
    `tokens` the delegation tokens by id.
    """

    cluster_id: str
    offset: int
    brokers: Mapping[int, BrokerImage]
    topics: Mapping[str, TopicImage]
    topic_names: Mapping[bytes, str]
    broker_configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    group_configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    scram: Mapping[ScramUser, ScramCredential] = field(default_factory=dict)
    acls: Acls = NO_ACLS
    features: Mapping[str, int] = field(default_factory=dict)
    client_quotas: Quotas = field(default_factory=dict)
    client_metrics: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    tokens: Mapping[str, DelegationToken] = field(default_factory=dict)

    def partition(self, topic: str, partition: int) -> PartitionImage | None:
        """Return a topic's partition by its number, or None if it does not exist."""
        topic_image = self.topics.get(topic)
        if topic_image is None or not 0 <= partition < len(topic_image.partitions):
            return None
        return topic_image.partitions[partition]

    def topic_by_id(self, topic_id: bytes) -> TopicImage | None:
        name = self.topic_names.get(topic_id)
        return self.topics[name] if name is not None else None

    def offline_replicas(self, partition: PartitionImage) -> tuple[int, ...]:
        """Return the replicas on brokers that are fenced or not registered, and those in log directories that
        have failed, as listed in Metadata answers."""
        brokers, offline = self.brokers, partition.offline
        return tuple(r for r in partition.replicas if r not in brokers or brokers[r].fenced or r in offline)

    def live_brokers(self) -> tuple[int, ...]:
        """Return the brokers that are not fenced, as listed in Metadata answers."""
        return tuple(b.id for b in self.brokers.values() if not b.fenced)

    def all_partitions(self) -> Iterator[tuple[TopicPartition, PartitionImage]]:
        """Yield ((topic, partition number), partition) for every partition."""
        for name, topic in self.topics.items():
            for index, partition in enumerate(topic.partitions):
                yield (name, index), partition
