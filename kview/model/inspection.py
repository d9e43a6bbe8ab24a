"""What the screen can ask of a cluster on demand: records of a partition, the time of its first
record, settings of a topic or broker, the log directories of a broker, the producers of a topic, and quotas.

A failure is part of the answer, next to what was read before it. Nothing here is part of a snapshot, so
nothing here is recorded.
"""

from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING, Generic, TypeVar

from msgspec import Struct

from kview.model.failures import NO_FAILURE, Cause
from kview.model.units import NO_BROKER, UNKNOWN

if TYPE_CHECKING:
    from kview.model.decoded import DecodeAnswer

DEFAULT_RECORDS = 50
MOST_RECORDS = 500
"""Limit of the records in an answer. It is a peek, and a person reads it."""
DEFAULT_REQUEST_BYTES = 1 << 20
"""How many bytes of records one request asks a broker for. A single larger batch comes nevertheless."""


A = TypeVar("A")


class Question(Struct, Generic[A], frozen=True):
    """A question of which A is the answer."""


class Isolation(IntEnum):
    """What a reader sees, by Kafka's numbers."""

    READ_UNCOMMITTED = 0
    """Also records of transactions that are open or were aborted."""
    READ_COMMITTED = 1


class StartKind(StrEnum):
    """From where on records are read."""

    LATEST = "latest"
    """The last records of the partition."""
    OFFSET = "offset"
    TIME = "time"


class Start(Struct, frozen=True):
    """From where on records are read. `value` is an offset or a time in epoch ms."""

    kind: StartKind = StartKind.LATEST
    value: int = UNKNOWN


class RecordsRequest(Question["RecordsAnswer"], frozen=True):
    """A request for at most `count` records of a partition. `request_bytes` limits each fetch."""

    topic: str
    partition: int
    start: Start = Start()
    count: int = DEFAULT_RECORDS
    isolation: Isolation = Isolation.READ_COMMITTED
    request_bytes: int = DEFAULT_REQUEST_BYTES


class TimeType(StrEnum):
    """What a record's timestamp says."""

    CREATE = "create"
    """When the producer made the record."""
    APPEND = "append"
    """When the leader appended the record."""
    NONE = ""
    """The record has no timestamp: it is in the oldest message format."""


@dataclass(frozen=True, slots=True)
class Payload:
    """A key, a value or a header's value. `size` is its size in bytes, of which `data` may be the beginning.

    `data` is None for null. Its bytes are not part of the repr, so that no log ever has them.
    """

    data: bytes | None = field(repr=False)
    size: int
    masked: bool = False
    """Whether a mask hides some or all of it. `data` is JSON then, or the sign alone, and `size` is that of
    `data`: it says nothing about what is hidden."""

    @property
    def cut(self) -> bool:
        """Whether `data` is only the beginning."""
        return self.data is not None and len(self.data) < self.size


NULL = Payload(None, 0)


class Header(Struct, frozen=True):
    """A header of a record."""

    name: Payload
    value: Payload


class Record(Struct, frozen=True):
    """A record. `timestamp_ms` is UNKNOWN if it has none. `headers` may be the first of `header_count`."""

    offset: int
    timestamp_ms: int
    time_type: TimeType
    key: Payload
    value: Payload
    headers: tuple[Header, ...] = ()
    header_count: int = 0
    leader_epoch: int = UNKNOWN
    """The epoch of the leader that appended the record, UNKNOWN in older message formats."""
    transactional: bool = False
    """Whether the record was written in a transaction."""
    producer_id: int = UNKNOWN
    """The id of its producer, UNKNOWN if that has none: it is neither idempotent nor transactional."""
    producer_epoch: int = UNKNOWN
    least_size: int = 0
    """With a mask: it has more bytes than this, in whole MiB. Nothing else is known of its size."""

    @property
    def size(self) -> int:
        """The bytes of its key, its value and the headers that are kept. With a mask, it has more."""
        headers = sum(header.name.size + header.value.size for header in self.headers)
        return max(self.least_size, self.key.size + self.value.size + headers)

    @property
    def masked(self) -> bool:
        """Whether a mask hides something of it."""
        parts = (
            self.key,
            self.value,
            *(part for header in self.headers for part in (header.name, header.value)),
        )
        return any(part.masked for part in parts)


class DamageKind(StrEnum):
    """Why a batch of records cannot be shown."""

    CORRUPT = "corrupt"
    """Its checksum is wrong."""
    MALFORMED = "malformed"
    """Its checksum is right, but its bytes are not records."""
    TOO_LARGE = "too_large"
    """It would take more memory than kview gives it once it is decompressed."""
    FORMAT = "format"
    """It has a format or a compression that kview does not know."""


class Damage(Struct, frozen=True):
    """A batch that cannot be shown: its first offset, its size as stored, and why."""

    offset: int
    kind: DamageKind
    size: int


class InspectionFailureKind(StrEnum):
    """Why a request on demand was not answered, or not completely. `''` means no failure."""

    NONE = ""
    SWITCHED_OFF = "switched_off"
    """The user does not want records to be read."""
    UNKNOWN_TOPIC = "unknown_topic"
    """The cluster has no such topic or partition."""
    NO_LEADER = "no_leader"
    NOT_AUTHORIZED = "not_authorized"
    OFFSET_OUT_OF_RANGE = "offset_out_of_range"
    NO_ANSWER = "no_answer"
    """The broker does not answer, or does not answer this; the cause says why."""
    TIMEOUT = "timeout"
    UNSUPPORTED = "unsupported"
    """The broker is too old, or too new."""
    TOO_LARGE = "too_large"
    """A single batch is larger than what kview takes."""
    TOO_MANY = "too_many"
    """There are more partitions than kview takes at a time."""
    NOT_CONNECTED = "not_connected"
    """There is no connection to the cluster at the moment."""
    MASKED = "masked"
    """The filter is about something that the topic's mask hides."""


class InspectionFailure(Struct, frozen=True):
    """Why a request was not answered. `broker` is the one that was asked, if it matters."""

    kind: InspectionFailureKind = InspectionFailureKind.NONE
    broker: int = NO_BROKER
    cause: Cause = NO_FAILURE
    offset: int = UNKNOWN
    """The offset asked for, if it is about one."""

    def __bool__(self) -> bool:
        return self.kind is not InspectionFailureKind.NONE


NO_INSPECTION_FAILURE = InspectionFailure()


class Cost(Struct, frozen=True):
    """What an answer cost the cluster: requests, and bytes on the wire in both directions."""

    requests: int = 0
    bytes: int = 0

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(self.requests + other.requests, self.bytes + other.bytes)


class RecordsAnswer(Struct, frozen=True):
    """The records that were read, in the order of their offsets.

    The partition had the offsets from `log_start` up to, but not including, `end` (UNKNOWN if not known).
    `end` is what a reader with that isolation sees. With read_committed, `high_watermark` is what others see.
    """

    request: RecordsRequest
    records: tuple[Record, ...] = ()
    damage: tuple[Damage, ...] = ()
    log_start: int = UNKNOWN
    end: int = UNKNOWN
    aborted: int = 0
    """The number of batches left out because their transaction was aborted."""
    control: int = 0
    """The number of batches left out because they only mark the end of a transaction."""
    over_budget: bool = False
    """Whether there are more records within what was asked for, but kview stopped at its limit of bytes."""
    failure: InspectionFailure = NO_INSPECTION_FAILURE
    leader: int = NO_BROKER
    cost: Cost = Cost()
    asked_ms: int = UNKNOWN
    high_watermark: int = UNKNOWN
    decoded: "DecodeAnswer | None" = None
    """Of a topic with a mask: what was decoded before it was hidden. Else records are decoded when that is
    asked for."""


class SettingSource(StrEnum):
    """Where a setting's value comes from."""

    TOPIC = "topic"
    BROKER = "broker"
    """Set on this broker while it runs."""
    CLUSTER = "cluster"
    """Set for all brokers while they run."""
    STATIC = "static"
    """From the broker's properties file."""
    DEFAULT = "default"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class SettingValue:
    """A value of a setting and where it comes from. Kafka hides the values of passwords, which are None."""

    value: str | None = field(repr=False)
    source: SettingSource
    name: str = ""
    """The setting's name there, such as `log.retention.ms` on a broker for a topic's `retention.ms`."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting with the value in force, and the values that it hides, in Kafka's order."""

    name: str
    value: str | None = field(repr=False)
    source: SettingSource
    sensitive: bool = False
    read_only: bool = False
    synonyms: tuple[SettingValue, ...] = ()
    """All values that are set, from the one in force to the default. () if the broker does not tell."""

    @property
    def differs(self) -> bool:
        """Whether somebody has set it."""
        return self.source is not SettingSource.DEFAULT


class SettingsRequest(Question["SettingsAnswer"], frozen=True):
    """A request for the settings of a topic, or of a broker if `topic` is ''."""

    topic: str = ""
    broker: int = NO_BROKER


class SettingsAnswer(Struct, frozen=True):
    """The settings of a topic or a broker, sorted by name."""

    request: SettingsRequest
    settings: tuple[Setting, ...] = ()
    failure: InspectionFailure = NO_INSPECTION_FAILURE
    cost: Cost = Cost()
    asked_ms: int = UNKNOWN


class DirectoriesRequest(Question["DirectoriesAnswer"], frozen=True):
    """A request for the log directories of a broker."""

    broker: int


class Directory(Struct, frozen=True):
    """A log directory. Sizes are in bytes, UNKNOWN if the broker does not tell them (before Kafka 3.3)."""

    path: str
    error: int = 0
    """Kafka's error number, such as 56 if the directory is offline."""
    replicas: int = 0
    size_bytes: int = 0
    """What the replicas in it take, including those that are still being moved there."""
    moving: int = 0
    """The number of replicas that are being moved there from another directory."""
    total_bytes: int = UNKNOWN
    """The size of its volume."""
    usable_bytes: int = UNKNOWN
    """What is free on its volume."""
    cordoned: bool = False
    """Whether the broker places no new replicas there."""


class DirectoriesAnswer(Struct, frozen=True):
    """The log directories of a broker, sorted by path."""

    request: DirectoriesRequest
    directories: tuple[Directory, ...] = ()
    failure: InspectionFailure = NO_INSPECTION_FAILURE
    cost: Cost = Cost()
    asked_ms: int = UNKNOWN


class FirstRecordRequest(Question["FirstRecordAnswer"], frozen=True):
    """A request for the offset and the timestamp of a partition's first record. It reads no record."""

    topic: str
    partition: int


class FirstRecordAnswer(Struct, frozen=True):
    """A partition's first record: its offset and its timestamp in epoch ms, UNKNOWN if there is none."""

    request: FirstRecordRequest
    offset: int = UNKNOWN
    timestamp_ms: int = UNKNOWN
    failure: InspectionFailure = NO_INSPECTION_FAILURE
    cost: Cost = Cost()
    asked_ms: int = UNKNOWN


class ProducersRequest(Question["ProducersAnswer"], frozen=True):
    """A request for the producers that write to a topic."""

    topic: str


class Producer(Struct, frozen=True):
    """A producer with an id (idempotent or transactional) that has written to a partition of late.

    `last_sequence` counts its records there, and `written_ms` is the timestamp of the last one. In a
    transaction, `start_offset` is where it begins in the partition, else UNKNOWN.
    """

    partition: int
    id: int
    epoch: int
    last_sequence: int
    written_ms: int
    start_offset: int = UNKNOWN


class ProducersAnswer(Struct, frozen=True):
    """The producers of a topic, by partition and id. `unread` are the partitions whose leaders did not tell,
    and `failure` says why the first of them did not."""

    request: ProducersRequest
    producers: tuple[Producer, ...] = ()
    failure: InspectionFailure = NO_INSPECTION_FAILURE
    cost: Cost = Cost()
    asked_ms: int = UNKNOWN
    unread: tuple[int, ...] = ()


class QuotasRequest(Question["QuotasAnswer"], frozen=True):
    """A request for all client quotas of the cluster."""


class Entity(StrEnum):
    """What a quota names, by Kafka's names."""

    USER = "user"
    CLIENT_ID = "client-id"
    IP = "ip"


class QuotaKey(StrEnum):
    """What a quota limits, by Kafka's names: for each broker, but mutations for the whole cluster."""

    PRODUCER = "producer_byte_rate"
    CONSUMER = "consumer_byte_rate"
    REQUEST = "request_percentage"
    """The share of the time of a broker's network and request threads. Each thread has 100 %."""
    MUTATIONS = "controller_mutation_rate"
    """Partitions created or deleted per second."""
    CONNECTIONS = "connection_creation_rate"


class Quota(Struct, frozen=True):
    """What an entity may use at most.

    `entity` has (type, name) pairs, sorted by type; the name is None for the default, which holds for all
    names without a quota of their own. `limits` has (key, limit) pairs.
    """

    entity: tuple[tuple[str, str | None], ...]
    limits: tuple[tuple[str, float], ...]


class QuotasAnswer(Struct, frozen=True):
    """The client quotas of the cluster, sorted by entity."""

    request: QuotasRequest
    quotas: tuple[Quota, ...] = ()
    failure: InspectionFailure = NO_INSPECTION_FAILURE
    cost: Cost = Cost()
    asked_ms: int = UNKNOWN
