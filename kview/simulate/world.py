"""The description of a simulated cluster as frozen values, and the default cluster."""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct, field

from kview.simulate.releases import KAFKA_4_3, Release
from kview.simulate.scram import ScramCredential, ScramUser

OFFSETS_TOPIC = "__consumer_offsets"
OFFSETS_TOPIC_CONFIGS: Mapping[str, str] = {
    "cleanup.policy": "compact",
    "compression.type": "producer",
    "segment.bytes": "104857600",
}
TRANSACTIONS_TOPIC = "__transaction_state"
TRANSACTIONS_TOPIC_CONFIGS: Mapping[str, str] = {
    "cleanup.policy": "compact",
    "compression.type": "uncompressed",
    "segment.bytes": "104857600",
    "unclean.leader.election.enable": "false",
}
SHARE_TOPIC = "__share_group_state"
SHARE_TOPIC_CONFIGS: Mapping[str, str] = {
    "cleanup.policy": "delete",
    "compression.type": "producer",
    "retention.ms": "-1",
    "segment.bytes": "104857600",
}
METADATA_TOPIC = "__cluster_metadata"
"""The name of the controllers' log, which no topic can have."""
INTERNAL_TOPICS = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC, SHARE_TOPIC})
CLIENT_BYTES_MAX = 536_870_912
"""Memory for clients' batches in a process (512 MiB). Above it, the largest logs drop their oldest half."""
CONTROLLERS = (101, 102, 103)


TRANSACTION_MS_MAX = 30_000
"""Longest time in ms in which a simulated producer commits: half of its transaction.timeout.ms, after which
its coordinator aborts."""


CLASSIC, CONSUMER, SHARE = "classic", "consumer", "share"
"""The values of group.protocol."""


class Placement(StrEnum):
    """How replicas are spread over brokers when a topic is created."""

    TEACHING = "teaching"
    STRIPED = "striped"
    RACK_AWARE = "rack-aware"
    RACK_BLIND = "rack-blind"
    """Round-robin over the brokers by id, whatever their racks, as if brokers had no `broker.rack`."""


class BrokerSpec(Struct, frozen=True):
    """A broker and its rack."""

    id: int
    rack: str


class TopicSpec(Struct, frozen=True):
    """A topic that exists from the start. `configs` are topic configurations under Kafka's keys. `replicas`
    are the replica lists of its partitions, if the world's placement is not to make them."""

    name: str
    partitions: int
    replication: int
    configs: Mapping[str, str] = field(default_factory=dict)
    replicas: tuple[tuple[int, ...], ...] = ()


class ProducerSpec(Struct, frozen=True):
    """A simulated producer.

    With `keys` 0, the producer has null keys and the sticky partitioner. Otherwise it has that many keys,
    Zipf-distributed by `skew`. With `transaction_ms`, it writes in transactions, each of which it ends after
    that time: it aborts each `abort_every`-th (0: none), and commits the others. Its past before a warm start
    is without transactions. `transactional_id` is the client id unless it is given.
    """

    client_id: str
    topic: str
    records_per_second: float
    record_bytes: int = 200
    acks: int = -1
    keys: int = 0
    skew: float = 0.0
    transaction_ms: int = 0
    abort_every: int = 0
    transactional_id: str = ""


class GroupSpec(Struct, frozen=True):
    """A simulated consumer group.

    `records_per_second` limits what one member processes (0: no limit). A group with `members` 0 has stopped:
    it is Empty, with commits `stopped_ms` old. `warm_lag_seconds` is how far the commits of a running group
    are behind the producers at a warm start. With `at_most_once`, a member commits a batch before it has
    processed it, so that a crash loses the rest of the batch. With `read_committed`, members read only what
    committed transactions have written (isolation.level). `protocol` is classic, or consumer for the protocol
    of KIP-848, or share for share groups, whose members share the partitions and acknowledge records one by
    one. The members of the last two join at the start instead of having been there, and share groups commit
    nothing.
    """

    name: str
    topics: tuple[str, ...]
    members: int
    records_per_second: float = 0.0
    commit_interval_ms: int = 5000
    assignor: str = "range"
    warm_lag_seconds: float = 1.0
    stopped_ms: int = 0
    at_most_once: bool = False
    read_committed: bool = False
    protocol: str = CLASSIC


class LinkSpec(Struct, frozen=True):
    """The network between any two nodes, and each broker's disk."""

    latency_us: int = 300
    bytes_per_second: int = 125_000_000
    disk_bytes_per_second: int = 200_000_000


QUICK_LINK = LinkSpec(bytes_per_second=1_250_000_000, disk_bytes_per_second=2_000_000_000)
"""10 Gbit/s and solid state disks: for a cluster that is there for clients, which it should not hold up."""


class World(Struct, frozen=True):
    """The description of an entire cluster.

    `settings` are broker settings under Kafka's keys. `warm_ms` is how long the cluster seems to have run
    when it starts. `scram` are the users who can log in with SCRAM from the start. An empty `cluster_id` is
    drawn with the seed.
    """

    brokers: tuple[BrokerSpec, ...]
    topics: tuple[TopicSpec, ...]
    producers: tuple[ProducerSpec, ...] = ()
    groups: tuple[GroupSpec, ...] = ()
    placement: Placement = Placement.TEACHING
    controllers: tuple[int, ...] = CONTROLLERS
    settings: Mapping[str, str] = field(default_factory=dict)
    link: LinkSpec = LinkSpec()
    traffic: bool = True
    warm_ms: int = 600_000
    client_bytes_max: int = CLIENT_BYTES_MAX
    scram: Mapping[ScramUser, ScramCredential] = field(default_factory=dict)
    release: Release = KAFKA_4_3
    cluster_id: str = ""


def racked_brokers(brokers: int, racks: int) -> tuple[BrokerSpec, ...]:
    """Return brokers 0… in racks R1…, in blocks: six in two racks are R1 = {0, 1, 2}, R2 = {3, 4, 5}."""
    size, extra = divmod(brokers, racks)
    specs: list[BrokerSpec] = []
    for rack in range(racks):
        for _ in range(size + (rack < extra)):
            specs.append(BrokerSpec(len(specs), f"R{rack + 1}"))
    return tuple(specs)


DEFAULT_TOPICS = (
    TopicSpec("invoice", 10, 3),
    TopicSpec("payment", 6, 3, {"min.insync.replicas": "2"}),
    TopicSpec("audit-log", 4, 1),
)

DEFAULT_PRODUCERS: tuple[ProducerSpec, ...] = (
    ProducerSpec("invoice-service", "invoice", 4400.0, 220),
    ProducerSpec("payment-service", "payment", 2500.0, 300, keys=5000, skew=0.6),
    ProducerSpec("audit-service", "audit-log", 1000.0, 160, acks=1),
)

DEFAULT_GROUPS: tuple[GroupSpec, ...] = (
    GroupSpec("billing", ("invoice",), 3),
    GroupSpec("reporting", ("payment",), 2, records_per_second=1180.0, warm_lag_seconds=12.0),
    GroupSpec("fraud-check", ("audit-log",), 5),
    GroupSpec("audit-export", ("audit-log",), 0, stopped_ms=420_000),
)
"""The default groups: one keeps up, one is slow, one has more members than partitions, one has stopped."""


COMPACTED_KEYS = 1_000


def is_compacted(topic: TopicSpec) -> bool:
    """Return whether a topic's own configurations say that it is compacted."""
    return "compact" in topic.configs.get("cleanup.policy", "")


def default_world(
    brokers: int = 6,
    racks: int = 2,
    placement: Placement = Placement.TEACHING,
    settings: Mapping[str, str] | None = None,
    traffic: bool = True,
    topics: tuple[TopicSpec, ...] | None = None,
) -> World:
    """Return the world that kview shows by default.

    If the caller passes `topics`, each gets a producer of 500 records/s and a group of three members. The
    records of a compacted topic have keys.
    """
    if topics is None:
        own = tuple(
            TopicSpec(t.name, t.partitions, min(t.replication, brokers), t.configs) for t in DEFAULT_TOPICS
        )
        producers, groups = DEFAULT_PRODUCERS, DEFAULT_GROUPS
    else:
        own = topics
        producers = tuple(
            ProducerSpec(f"{t.name}-producer", t.name, 500.0, keys=COMPACTED_KEYS if is_compacted(t) else 0)
            for t in topics
        )
        groups = tuple(GroupSpec(f"{t.name}-group", (t.name,), 3) for t in topics)
    return World(
        brokers=racked_brokers(brokers, racks),
        topics=own,
        producers=producers,
        groups=groups,
        placement=placement,
        settings=dict(settings or {}),
        traffic=traffic,
    )
