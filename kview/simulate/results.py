"""The cluster's answers, as one frozen value per kind of request."""

from dataclasses import dataclass
from typing import NamedTuple

from kview.simulate.codes import ErrorCode


class RecordError(NamedTuple):
    """Why one record of a batch is refused, by its place in the batch."""

    batch_index: int
    message: str


class ProduceResult(NamedTuple):
    """The answer to an append. Offsets are −1 after an error, but for the log start offset if the log itself
    refused the batch."""

    error_code: ErrorCode
    base_offset: int = -1
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    message: str | None = None
    record_errors: tuple[RecordError, ...] = ()


class ReadResult(NamedTuple):
    """The answer to a fetch: record batches, as they go on the wire.

    `aborted` are the aborted transactions among them, as (producer id, first offset), if the reader is to
    leave them out. If `diverging` is set, (epoch, end offset), the reader's last epoch ended there in this
    log. If `preferred` is set, the reader should read from that replica.
    """

    error_code: ErrorCode
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    records: bytes = b""
    aborted: tuple[tuple[int, int], ...] = ()
    diverging: tuple[int, int] | None = None
    preferred: int = -1

    @property
    def sends_away(self) -> bool:
        """Whether the reader has to go on somewhere else, so that it does not wait here."""
        return self.diverging is not None or self.preferred >= 0


class TakeResult(NamedTuple):
    """A simulated consumer's read: offsets and sizes, but no bytes. The next read starts at `next_offset`.

    `records` is how many of the offsets before it have a record for the consumer: markers of transactions
    have none.
    """

    error_code: ErrorCode
    next_offset: int = -1
    high_watermark: int = -1
    log_start_offset: int = -1
    size_bytes: int = 0
    last_time_us: int = -1
    last_stable_offset: int = -1
    records: int = 0


class OffsetResult(NamedTuple):
    """The answer to ListOffsets for one partition. `timestamp_ms` is −1 unless a time was asked for."""

    error_code: ErrorCode
    timestamp_ms: int = -1
    offset: int = -1
    leader_epoch: int = -1


class EpochEndResult(NamedTuple):
    """The answer to OffsetForLeaderEpoch for one partition.

    `leader_epoch` is the largest epoch up to the requested epoch, and `end_offset` is where it ends.
    """

    error_code: ErrorCode
    leader_epoch: int = -1
    end_offset: int = -1


class ProducerIdResult(NamedTuple):
    """The answer to InitProducerId."""

    error_code: ErrorCode
    producer_id: int = -1
    producer_epoch: int = -1


@dataclass(frozen=True, slots=True)
class CreateTopicResult:
    """The answer to CreateTopics for one topic.

    `topic_id` is 16 zero bytes after an error and for validate_only.
    """

    error_code: ErrorCode
    message: str | None = None
    topic_id: bytes = bytes(16)
    partitions: int = -1
    replication: int = -1
    configs: tuple["ConfigEntry", ...] = ()


@dataclass(frozen=True, slots=True)
class DeleteTopicResult:
    """The answer to DeleteTopics for one topic."""

    error_code: ErrorCode
    message: str | None = None


class AdminResult(NamedTuple):
    """The answer to a request of administration, for one topic, partition or resource."""

    error_code: ErrorCode
    message: str | None = None


class Reassignment(NamedTuple):
    """A partition that is being reassigned. `replicas` are the old and the new ones."""

    key: tuple[str, int]
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


class DeletedRecords(NamedTuple):
    """The answer to DeleteRecords for one partition: the lowest log start of its replicas, or −1 after an
    error."""

    error_code: ErrorCode
    low_watermark: int = -1


class ActiveProducer(NamedTuple):
    """An idempotent producer as a leader remembers it. `last_time_ms` is the latest timestamp of its last
    batch, and `txn_start` the offset at which its open transaction begins, −1 without one."""

    producer_id: int
    epoch: int
    last_sequence: int
    last_time_ms: int
    coordinator_epoch: int = -1
    txn_start: int = -1


class ConfigSource:
    """The origins of a configuration value, with their numbers in DescribeConfigs."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class ConfigSynonym(NamedTuple):
    """A configuration that decides about another one's value if none before it does."""

    name: str
    value: str | None
    source: int


class ConfigEntry(NamedTuple):
    """A configuration. `value` is None if it is not set and has no default, or if it is secret. `source` is
    one of `ConfigSource`, `type` is a `ConfigType`, or 0 for one that Kafka does not know."""

    name: str
    value: str | None
    source: int
    type: int = 0
    synonyms: tuple[ConfigSynonym, ...] = ()
    read_only: bool = False
    sensitive: bool = False


class LogDirRow(NamedTuple):
    """A replica on a broker's disk. `offset_lag` is how far its log end is below its high watermark, as in
    Kafka."""

    topic: str
    partition: int
    size_bytes: int
    offset_lag: int


class LogDir(NamedTuple):
    """A log directory of a broker, with its replicas. One that has failed has none."""

    path: str
    error_code: ErrorCode
    rows: tuple[LogDirRow, ...]


class QuorumReplica(NamedTuple):
    """A voter or observer as the active controller sees it. Times are in epoch ms, −1 if unknown."""

    node: int
    log_end: int
    last_fetch_ms: int
    last_caught_up_ms: int


@dataclass(frozen=True, slots=True)
class QuorumInfo:
    """The answer to DescribeQuorum, with the error REQUEST_TIMED_OUT if there was no active controller to
    ask."""

    error_code: ErrorCode
    leader_id: int = -1
    leader_epoch: int = -1
    high_watermark: int = -1
    voters: tuple[QuorumReplica, ...] = ()
    observers: tuple[QuorumReplica, ...] = ()
