"""Keeps a cluster in a folder over restarts: its metadata as JSON, and each partition's batches.

The batches are in files as Kafka's own segments (`orders-0/00000000000000000000.log`), one for each
partition, because replicas of a log that agree have the same bytes. `kview.json` has everything else, and how
many bytes of each file count. It is replaced at once, so that what is read again is all of one moment.
"""

import fcntl
import os
import shutil
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import msgspec
from crc32c import crc32c
from msgspec import Struct

from kview import __version__
from kview.errors import BadUse, ErrorKind, KviewError
from kview.simulate.acls import Acl, Acls
from kview.simulate.brokers.replica import Replica
from kview.simulate.client_quotas import Entity
from kview.simulate.cluster import Cluster
from kview.simulate.log import Log
from kview.simulate.metadata import MetadataImage, TopicImage, TopicPartition
from kview.simulate.records import CRC_FROM, HEADER, HEADER_BYTES, MAGIC, header, placed
from kview.simulate.saved import Saved, SavedLog, kept_batches, restored
from kview.simulate.scram import ScramCredential, ScramMechanism
from kview.simulate.tokens import DelegationToken
from kview.simulate.topics import valid_topic_name

FORMAT = 1
DOCUMENT, LOCK, SEGMENT, NEW = "kview.json", ".kview-lock", "00000000000000000000.log", ".new"

SAVE_EVERY_S = 2.0
"""The time between two saves: so much is lost at most if the process is killed, and the time of a save."""

PAUSES_PER_SAVE = 50
"""Looking for what has changed in ten thousand partitions takes 0.15 s, in which no client is served. So the
time between two saves is at least so many times as long."""

SAME_CLOCK_MS = 1000
"""The cluster's clock is read and compared with the machine's: a difference of less than this alone is not
saved."""

GARBAGE_MOST_BYTES = 1 << 20
"""A file is written again once more than this, and more than half of it, is of records that were deleted."""


class _Row(NamedTuple):
    """A partition's log: how many bytes of its file count, and whether those are of a file that may not have
    got its name yet."""

    start: int
    end: int
    high_watermark: int
    ends: Sequence[tuple[int, int]]
    size_bytes: int
    is_new: bool


class _Document(Struct, frozen=True):
    format: int
    kview: str
    brokers: tuple[int, ...]
    cluster_id: str
    offset: int
    topics: Sequence[TopicImage]
    broker_configs: Mapping[str, Mapping[str, str]]
    group_configs: Mapping[str, Mapping[str, str]]
    scram: Sequence[tuple[str, ScramMechanism, ScramCredential]]
    acls: Sequence[Acl]
    features: Mapping[str, int]
    client_quotas: Sequence[tuple[Entity, Mapping[str, str]]]
    """Their values are texts, because JSON has neither infinity nor NaN."""
    client_metrics: Mapping[str, Mapping[str, str]]
    producer_ids: int
    starts: int
    ahead_ms: int
    logs: Mapping[str, Sequence[_Row]]
    tokens: Sequence[DelegationToken] = ()
    """Without their secrets, for which the same `delegation.token.secret.key` is needed again."""
    voters: Sequence[int] = ()
    """The controllers that vote. All do if there are none."""


class _Version(Struct, frozen=True):
    format: int


class _Span(NamedTuple):
    """A part of a log: where it begins, and which batches it has."""

    start: int
    content: object


class _File(NamedTuple):
    """What a partition's file has: the batches of a log from `start` up to `end`. `shape` tells whether a log
    that goes on from there is the same one."""

    topic_id: bytes
    start: int
    end: int
    shape: Sequence[_Span]
    size_bytes: int


class _Change(NamedTuple):
    """What is to be written to a partition's file, at its end or as a new one."""

    key: TopicPartition
    pieces: Sequence[Sequence[bytes | memoryview]]
    at_byte: int
    is_new: bool


class _Batch(NamedTuple):
    """A moment of a cluster, as it is to be written."""

    document: _Document
    changes: Sequence[_Change]
    files: Mapping[TopicPartition, _File]


class DataFolder:
    """The folder of a cluster. `saved` is the cluster as it was saved, None for a new one.

    Raises BadUse if the folder cannot be used, or has what is not understood. Then nothing is changed.
    """

    def __init__(self, path: Path, brokers: Sequence[int]) -> None:
        self._path = path
        self._brokers = tuple(brokers)
        self._files: dict[TopicPartition, _File] = {}
        self._last: _Document | None = None
        self._writing: threading.Thread | None = None
        self._failed: Exception | None = None
        self._unnamed: list[Path] = []
        """Segments of which the document already says that they are new, but which have not got their names
        yet."""
        self.saved: Saved | None = None
        self.ahead_ms = 0
        """By how much the cluster's clock was ahead of the machine's."""
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            names = {each.name for each in path.iterdir()}
            if names and LOCK not in names:
                raise BadUse(ErrorKind.DATA_NOT_EMPTY, folder=str(path))
            self._lock = os.open(path / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise self._not_opened(error) from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise BadUse(ErrorKind.DATA_IN_USE, folder=str(path)) from None
        try:
            if (path / DOCUMENT).exists():
                self._read()
            elif any(path.glob(f"*/{SEGMENT}")):  # Else its first save was cut off.
                raise BadUse(ErrorKind.DATA_DAMAGED, file=str(path / DOCUMENT), reason="it is missing")
        except OSError as error:
            os.close(self._lock)
            raise self._not_opened(error) from None
        except BadUse:
            os.close(self._lock)
            raise

    def _not_opened(self, error: OSError) -> BadUse:
        reason = error.strerror or str(error)
        return BadUse(ErrorKind.DATA_NOT_OPENED, folder=str(self._path), reason=reason)

    def _not_saved(self, error: Exception) -> KviewError:
        reason = (isinstance(error, OSError) and error.strerror) or str(error)
        return KviewError(ErrorKind.DATA_NOT_SAVED, folder=str(self._path), reason=reason)

    # --- reading

    def _read(self) -> None:
        file = self._path / DOCUMENT
        data = file.read_bytes()
        try:
            version = msgspec.json.decode(data, type=_Version).format
            if version != FORMAT:
                raise BadUse(ErrorKind.DATA_FORMAT, folder=str(self._path), version=version, mine=FORMAT)
            document, image = _understood(data)
        except (ValueError, TypeError) as error:
            raise BadUse(ErrorKind.DATA_DAMAGED, file=str(file), reason=str(error)) from None
        if document.brokers != self._brokers:
            had, wanted = len(document.brokers), len(self._brokers)
            raise BadUse(ErrorKind.DATA_OF_OTHER_BROKERS, folder=str(self._path), had=had, wanted=wanted)
        logs: dict[TopicPartition, SavedLog] = {}
        for topic in document.topics:
            for number, row in enumerate(document.logs[topic.name]):
                key = topic.name, number
                segment = self._segment(key)
                new = segment.with_name(SEGMENT + NEW)
                if row.is_new and new.exists():
                    self._unnamed.append(segment)
                    segment = new
                log = restored(row.start, row.end, _batches(segment, row))
                logs[key] = SavedLog(log, row.high_watermark, dict(row.ends))
                shape = _shape(log, row.end)
                self._files[key] = _File(topic.topic_id, row.start, row.end, shape, row.size_bytes)
        self._name_segments()  # All of it is understood.
        self.ahead_ms = document.ahead_ms
        self.saved = Saved(image, logs, document.producer_ids, document.starts, document.voters)

    # --- writing

    def save(self, cluster: Cluster, wall_ms: int) -> None:
        """Begin to write what has changed, on a thread, unless one still writes. A failure is kept until the
        next save."""
        if self._writing is None or not self._writing.is_alive():
            self._begin(cluster, wall_ms)

    def _begin(self, cluster: Cluster, wall_ms: int) -> None:
        batch = self._collect(cluster, wall_ms)
        if batch is None:
            self._failed = None  # The folder has all there is.
        else:
            self._writing = threading.Thread(target=self._write, args=(batch,), name="data", daemon=True)
            self._writing.start()

    @property
    def warning(self) -> KviewError | None:
        """Why the last save has failed, if it has."""
        return None if self._failed is None else self._not_saved(self._failed)

    def close(self, cluster: Cluster, wall_ms: int) -> None:
        """Write what has changed, and wait for it. Raises KviewError if that fails."""
        if self._writing is not None:
            self._writing.join()
        self._begin(cluster, wall_ms)
        if self._writing is not None:
            self._writing.join()
        os.close(self._lock)
        if self._failed is not None:
            raise self._not_saved(self._failed)

    def _collect(self, cluster: Cluster, wall_ms: int) -> _Batch | None:
        """Return what has changed since the last save, None if nothing has."""
        image = cluster.metadata.image
        changes: list[_Change] = []
        files: dict[TopicPartition, _File] = {}
        logs: dict[str, list[_Row]] = {}
        for name, topic in image.topics.items():
            rows = logs[name] = []
            for number in range(len(topic.partitions)):
                key = name, number
                found = cluster.partitions.replicas(key, topic.topic_id)
                replicas = [one for one in found if not cluster.brokers[one.broker.id].dirs.has_lost(one)]
                source = _source(cluster, key, replicas)
                if source is None:
                    log, watermark, ends = Log(), 0, []
                else:
                    log, watermark = source.log, source.high_watermark
                    ends = [(one.broker.id, min(one.log.end, one.log.agreement(log))) for one in replicas]
                known = self._known(key, topic.topic_id, log)
                change = _change(key, known, log)
                size = 0 if known is None else known.size_bytes
                if change.pieces:
                    changes.append(change)
                    size += sum(map(len, chain.from_iterable(change.pieces)))
                start = log.start if known is None else known.start
                files[key] = _File(topic.topic_id, start, log.end, _shape(log, log.end), size)
                is_new = change.is_new and bool(change.pieces)  # Otherwise, nothing in the file counts.
                rows.append(_Row(log.start, log.end, watermark, ends, size, is_new))
        starts = 1 + (0 if self.saved is None else self.saved.starts)
        ahead_ms = cluster.kernel.now_us // 1000 - wall_ms
        counted = cluster.records.producer_ids, starts, max(0, ahead_ms)
        document = _document(image, self._brokers, *counted, logs, cluster.quorum.voters)
        last = self._last
        if (
            last is not None
            and not changes
            and abs(document.ahead_ms - last.ahead_ms) < SAME_CLOCK_MS
            and msgspec.structs.replace(document, ahead_ms=last.ahead_ms) == last
        ):
            return None
        return _Batch(document, changes, files)

    def _known(self, key: TopicPartition, topic_id: bytes, log: Log) -> _File | None:
        """Return what the file of a log has, None if that does not go on."""
        known = self._files.get(key)
        if known is None or known.topic_id != topic_id:
            return None
        if not known.start <= log.start <= known.end <= log.end:
            return None
        if not _goes_on(known.shape, _shape(log, known.end)):
            return None
        garbage = known.size_bytes - log.size_between(log.start, known.end)
        return None if garbage > max(GARBAGE_MOST_BYTES, known.size_bytes // 2) else known

    def _write(self, batch: _Batch) -> None:
        try:
            self._write_files(batch)
        except Exception as error:
            self._failed = error
        else:
            self._failed = None

    def _write_files(self, batch: _Batch) -> None:
        data = msgspec.json.encode(batch.document)
        _understood(data)  # What cannot be read again must not replace what can.
        self._name_segments()
        for change in batch.changes:
            segment = self._segment(change.key)
            segment.parent.mkdir(mode=0o700, exist_ok=True)
            file = segment.with_name(SEGMENT + NEW) if change.is_new else segment
            with open(os.open(file, os.O_RDWR | os.O_CREAT, 0o600), "r+b") as out:
                out.truncate(change.at_byte)
                out.seek(change.at_byte)
                for pieces in change.pieces:
                    out.writelines(pieces)
                out.flush()
                os.fsync(out.fileno())
            if change.at_byte == 0:
                _sync(segment.parent)
        if any(change.at_byte == 0 for change in batch.changes):
            _sync(self._path)
        file = self._path / (DOCUMENT + NEW)
        with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        file.rename(self._path / DOCUMENT)
        gone = self._files.keys() - batch.files.keys()
        self._files, self._last = dict(batch.files), batch.document
        self._unnamed = [self._segment(change.key) for change in batch.changes if change.is_new]
        _sync(self._path)
        for key in gone:
            with suppress(OSError):  # It is read no more.
                shutil.rmtree(self._segment(key).parent)
        self._name_segments()

    def _name_segments(self) -> None:
        """Give new segments their names, which the next save needs, also if an earlier one could not."""
        while self._unnamed:
            segment = self._unnamed[-1]
            new = segment.with_name(SEGMENT + NEW)
            if new.exists():
                new.rename(segment)
            _sync(segment.parent)
            self._unnamed.pop()

    def _segment(self, key: TopicPartition) -> Path:
        return self._path / f"{key[0]}-{key[1]}" / SEGMENT


def _change(key: TopicPartition, known: _File | None, log: Log) -> _Change:
    """Return what is to be written of a log, of which the file has what is known."""
    if known is None:
        pieces = [placed(batch, base, epoch) for base, batch, epoch in kept_batches(log, log.start)]
        return _Change(key, pieces, 0, True)
    pieces = [
        placed(batch, base, epoch) for base, batch, epoch in kept_batches(log, known.end) if base >= known.end
    ]
    return _Change(key, pieces, known.size_bytes, False)


def _source(cluster: Cluster, key: TopicPartition, replicas: Sequence[Replica]) -> Replica | None:
    """Return the replica whose log is the partition's: the leader, or what would be the next one."""
    leader = cluster.partitions.leader(key)
    if leader is not None or not replicas:
        return leader
    partition = cluster.metadata.image.partition(*key)
    may_lead = () if partition is None else (*partition.isr, *partition.elr)
    return max(replicas, key=lambda replica: (replica.broker.id in may_lead, replica.log.end))


def _shape(log: Log, end: int) -> tuple[_Span, ...]:
    """Return what tells whether a log has the same batches below offset `end` as another one."""
    return tuple(_Span(span.start, span.stream.content) for span in log.spans if span.start < end)


def _goes_on(before: Sequence[_Span], now: Sequence[_Span]) -> bool:
    """Whether a log has what it had, but for records at its start that were deleted."""
    if not now:
        return True
    first = next((at for at, span in enumerate(before) if span.content is now[0].content), None)
    return first is not None and before[first + 1 :] == now[1:]


def _sync(folder: Path) -> None:
    """Let the disk have the names in a folder."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _batches(file: Path, row: _Row) -> list[bytes]:
    """Read the batches that count. Raises BadUse if they are not as they were written, and OSError."""
    if row.size_bytes == 0:
        return []

    def damaged(reason: str) -> BadUse:
        return BadUse(ErrorKind.DATA_DAMAGED, file=str(file), reason=reason)

    try:
        with open(file, "rb") as segment:
            data = segment.read(row.size_bytes)
    except FileNotFoundError:
        raise damaged("it is missing") from None
    if len(data) < row.size_bytes:
        raise damaged(f"it has {len(data)} bytes, of {row.size_bytes}")
    batches: list[bytes] = []
    at, end = 0, -1
    while at < len(data):
        if at + HEADER_BYTES > len(data):
            raise damaged(f"no batch at byte {at}")
        head, crc, magic = header(data, at), *HEADER.unpack_from(data, at)[4:2:-1]
        batch = data[at : at + head.size_bytes]
        whole = head.size_bytes >= HEADER_BYTES and len(batch) == head.size_bytes and magic == MAGIC
        if not whole or crc32c(batch[CRC_FROM:]) != crc & 0xFFFFFFFF or head.base_offset < end:
            raise damaged(f"no batch at byte {at}")
        batches.append(batch)
        end = head.base_offset + head.last_offset_delta + 1
        at += head.size_bytes
    if end > row.end:
        raise damaged(f"it goes on to offset {end}, instead of {row.end}")
    return batches


def _document(
    image: MetadataImage,
    brokers: tuple[int, ...],
    producer_ids: int,
    starts: int,
    ahead_ms: int,
    logs: Mapping[str, Sequence[_Row]],
    voters: Sequence[int],
) -> _Document:
    return _Document(
        FORMAT,
        __version__,
        brokers,
        image.cluster_id,
        image.offset,
        list(image.topics.values()),
        image.broker_configs,
        image.group_configs,
        [(user, mechanism, credential) for (user, mechanism), credential in image.scram.items()],
        list(image.acls),
        image.features,
        [
            (entity, {key: repr(value) for key, value in values.items()})
            for entity, values in image.client_quotas.items()
        ],
        image.client_metrics,
        producer_ids,
        starts,
        ahead_ms,
        logs,
        list(image.tokens.values()),
        list(voters),
    )


def _image(document: _Document) -> MetadataImage:
    return MetadataImage(
        document.cluster_id,
        document.offset,
        {},
        {topic.name: topic for topic in document.topics},
        {},
        document.broker_configs,
        document.group_configs,
        {(user, mechanism): credential for user, mechanism, credential in document.scram},
        Acls(document.acls),
        document.features,
        {
            entity: {key: float(value) for key, value in values.items()}
            for entity, values in document.client_quotas
        },
        document.client_metrics,
        {token.id: token for token in document.tokens},
    )


def _understood(data: bytes) -> tuple[_Document, MetadataImage]:
    """Return a document, and the metadata it has. Raises ValueError or TypeError if that makes no sense."""
    document = msgspec.json.decode(data, type=_Document)
    _check(document)
    return document, _image(document)


def _check(document: _Document) -> None:
    """Raise ValueError if parts of a document do not fit together."""
    brokers = set(document.brokers)
    for topic in document.topics:
        if not valid_topic_name(topic.name):
            raise ValueError(f"a topic is called {topic.name!r}")
        if len(document.logs.get(topic.name, ())) != len(topic.partitions) or not topic.partitions:
            raise ValueError(f"the logs of topic {topic.name} are not all there")
        for partition, row in zip(topic.partitions, document.logs[topic.name], strict=True):
            in_sync = {*partition.isr, *partition.elr}
            if not {*partition.replicas, *in_sync} <= brokers or not partition.replicas:
                raise ValueError(f"a partition of topic {topic.name} is on unknown brokers")
            if partition.leader not in (-1, *partition.replicas) or not 0 <= row.start <= row.end:
                raise ValueError(f"a partition of topic {topic.name} makes no sense")
