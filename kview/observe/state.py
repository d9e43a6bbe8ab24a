"""The state of a cluster as seen so far, and the snapshot made from it."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace
from numpy.typing import NDArray

from kview.model.failures import NO_FAILURE, Cause, Part
from kview.model.snapshot import (
    AnyTable,
    Connectors,
    Failure,
    Features,
    IdMatrix,
    Ids,
    LogDirs,
    Longs,
    Observation,
    Partitions,
    Quorum,
    Reassignments,
    Replicas,
    Snapshot,
    TopicConfigs,
    empty,
)
from kview.model.units import UNKNOWN
from kview.observe import brokers, configs, elr, reassignments
from kview.observe.apis import Offered, newest_features
from kview.observe.believing import believe
from kview.observe.brokers import BrokerFacts, Registered
from kview.observe.clock import Jump
from kview.observe.configs import TopicSettings
from kview.observe.elr import Elr
from kview.observe.groups.coordinators import Heard
from kview.observe.groups.facts import GroupFacts
from kview.observe.groups.tables import GroupTables
from kview.observe.layout import (
    Layout,
    Rows,
    layout,
    old_replica_rows,
    old_rows,
    same_partitions,
    same_replicas,
    strings,
)
from kview.observe.quorum import QuorumSeen
from kview.observe.time_points import Points
from kview.observe.transactions import OpenTransactions
from kview.wire.metadata import BrokerAddress, MetadataAnswer, Topics

NO_TOPICS = layout(Topics([], []), None)


def _unknown(rows: int) -> Longs:
    return np.full(rows, UNKNOWN, np.int64)


def _no_error(rows: int) -> Ids:
    return np.zeros(rows, np.int32)


class Readings(Struct):
    """The offsets that brokers reported last: one row for each partition, and for each replica.

    Columns named `…_ms` say when the offset next to them was received. Answers change the arrays in place.
    """

    log_start: Longs
    log_start_ms: Longs
    high_watermark: Longs
    high_watermark_ms: Longs
    last_stable: Longs
    last_stable_ms: Longs
    last_stable_since_ms: Longs
    """When the last stable offset was first read with this value, UNKNOWN unless the watermark was beyond it
    when it was last read."""
    log_end: Longs
    log_end_ms: Longs
    error_code: Ids
    """Kafka's error number in the leader's last answer, or 0 if the answer had an offset."""
    replica_log_end: Longs
    replica_log_end_ms: Longs
    replica_size_bytes: Longs


def nothing_read(layout: Layout) -> Readings:
    """Return the readings of a layout before any answer."""
    rows, replicas = len(layout), len(layout.replica_row)
    return Readings(
        log_start=_unknown(rows),
        log_start_ms=_unknown(rows),
        high_watermark=_unknown(rows),
        high_watermark_ms=_unknown(rows),
        last_stable=_unknown(rows),
        last_stable_ms=_unknown(rows),
        last_stable_since_ms=_unknown(rows),
        log_end=_unknown(rows),
        log_end_ms=_unknown(rows),
        error_code=_no_error(rows),
        replica_log_end=_unknown(replicas),
        replica_log_end_ms=_unknown(replicas),
        replica_size_bytes=_unknown(replicas),
    )


def carried(readings: Readings, old: Layout, new: Layout) -> Readings:
    """Move the readings to the rows of a new layout.

    A topic recreated under its name starts without readings.
    """
    if same_replicas(old, new):
        return readings
    partition_rows = None if same_partitions(old, new) else old_rows(new, old)
    replica_rows = old_replica_rows(new, old)
    moved: dict[str, Any] = {}
    for name in readings.__struct_fields__:
        rows = replica_rows if name.startswith("replica_") else partition_rows
        values = getattr(readings, name)
        moved[name] = values if rows is None else _moved(values, rows)
    return Readings(**moved)


def _moved(values: NDArray[Any], rows: Rows) -> NDArray[Any]:
    empty: NDArray[Any] = _no_error(len(rows)) if values.dtype == np.int32 else _unknown(len(rows))
    if len(values):
        known = rows >= 0
        empty[known] = values[rows[known]]
    return empty


class State(Struct):
    """Everything answered so far, each part with its own age.

    The state is changed only on the loop's thread.
    """

    layout: Layout = NO_TOPICS
    readings: Readings = field(default_factory=lambda: nothing_read(NO_TOPICS))
    metadata: MetadataAnswer | None = None
    listed: tuple[BrokerAddress, ...] = ()
    lists_all_groups: bool | None = None
    """Whether kview is authorized to list all groups, None if that is not known."""
    cluster: dict[int, Registered] = field(default_factory=dict)
    brokers: dict[int, BrokerFacts] = field(default_factory=dict)
    groups: dict[str, GroupFacts] = field(default_factory=dict)
    group_tables: GroupTables = field(default_factory=GroupTables)
    connectors: Connectors = field(default_factory=lambda: empty(Connectors))
    quorum: QuorumSeen | None = None
    features: Features = field(default_factory=lambda: empty(Features))
    apis_differ_since_ms: int = UNKNOWN
    reassignments: Reassignments = field(default_factory=lambda: empty(Reassignments))
    settings: dict[str, TopicSettings] = field(default_factory=dict)
    elr: Elr = field(default_factory=dict)
    points: Points = field(default_factory=Points)
    transactions: OpenTransactions = field(default_factory=OpenTransactions)
    log_dirs: LogDirs = field(default_factory=lambda: empty(LogDirs))
    failures: dict[tuple[Part, int], Cause] = field(default_factory=dict)
    """(Part, broker) → why the last request failed."""
    received_ms: dict[tuple[Part, int], int] = field(default_factory=dict)
    """(Part, broker) → when the part was last answered."""
    clock_sets: int = 0
    """How often the clock was set. A request that was sent before may have an answer with a time of the old
    clock."""
    heard: Heard = field(default_factory=Heard)
    doubted_until_s: dict[int, float] = field(default_factory=dict)
    """Broker → until when (monotonic) another broker is preferred as the source of metadata."""
    _topics_cause: Cause = NO_FAILURE
    """What is wrong with the topics of `metadata`, if anything."""
    _configs_of: tuple[Any, ...] = ()
    _configs: TopicConfigs = field(default_factory=lambda: empty(TopicConfigs))
    _min_isr: Ids = field(default_factory=lambda: np.empty(0, np.int32))
    _last: Snapshot | None = None

    def succeeded(self, part: Part, broker: int, at_ms: int) -> None:
        """Note that `broker` answered for `part`, which ends the part's failure."""
        self.failures.pop((part, broker), None)
        self.received_ms[part, broker] = at_ms

    def shown_since_ms(self, part: Part, broker: int) -> int:
        """Return when the value of a part was received, which for metadata may be another broker's."""
        if part is not Part.METADATA:
            return self.received_ms.get((part, broker), UNKNOWN)
        return max((at for (of, _), at in self.received_ms.items() if of is part), default=UNKNOWN)

    def failed(self, part: Part, broker: int, cause: Cause) -> None:
        """Note that `broker` did not answer for `part`."""
        self.failures[part, broker] = cause

    def take_metadata(self, answer: MetadataAnswer, older_too: bool = False) -> Cause:
        """Store a Metadata answer, and return what is wrong with it, if anything.

        Its topics are decoded only if their bytes changed. An answer from an older state of the cluster is
        not used, unless `older_too` says so. Raises MalformedBytes.
        """
        before = self.metadata
        if before is None or before.topics_bytes != answer.topics_bytes or before.version != answer.version:
            topics = answer.topics()
            believed = believe(topics, self.layout)
            if believed.outdated:
                if not older_too:
                    return believed.cause
                believed = believe(topics, NO_TOPICS)
            new = believed.layout
            self.readings = carried(self.readings, self.layout, new)
            self.reassignments = reassignments.with_begun(self.reassignments, self.layout, new)
            self.layout = new
            self.heard.see(new)
            self._topics_cause = believed.cause
        self.metadata = answer
        self.listed = answer.brokers
        return self._topics_cause

    def clock_set(self, jump: Jump) -> None:
        """Move the times of the answers to the new clock. Time points are asked for again."""
        times = [name for name in Readings.__struct_fields__ if name.endswith("_ms")]
        self.readings = replace(self.readings)  # the arrays of earlier snapshots stay as they were
        jump.move(self.readings, *times)
        for facts in self.brokers.values():
            jump.move(facts, "since_ms", "answered_ms", "returned_ms")
        for group in self.groups.values():
            jump.move(group, "received_ms", "described_ms", "committed_ms", "listed_ms", "missing_ms")
        if self.quorum is not None:
            self.quorum = replace(self.quorum, received_ms=jump.time(self.quorum.received_ms))
        self.apis_differ_since_ms = jump.time(self.apis_differ_since_ms)
        self.received_ms = {key: jump.time(at_ms) for key, at_ms in self.received_ms.items()}
        self.settings = {
            topic: replace(known, received_ms=jump.time(known.received_ms))
            for topic, known in self.settings.items()
        }
        self.log_dirs = replace(self.log_dirs, received_ms=jump.times(self.log_dirs.received_ms))
        self.transactions.clock_set(jump)
        self.points = Points()
        self.clock_sets += 1

    def see_offered(self, offers: Iterable[Offered], now_ms: int) -> None:
        """Store what brokers offer: finalized features, and since when their APIs differ."""
        features = newest_features(offers)
        if features != tuple(zip(self.features.name.tolist(), self.features.level.tolist(), strict=True)):
            self.features = Features(
                name=strings([name for name, _ in features]),
                level=np.array([level for _, level in features], np.int32),
            )
        if not brokers.apis_differ(self.brokers):
            self.apis_differ_since_ms = UNKNOWN
        elif self.apis_differ_since_ms == UNKNOWN:
            self.apis_differ_since_ms = now_ms

    def still(self, then: Layout) -> bool:
        """Return whether an answer about the rows of `then` still applies to the current topics."""
        return same_partitions(then, self.layout)

    def min_isr(self) -> Ids:
        """Return min.insync.replicas by partition row."""
        settings = (known.settings for known in self.settings.values())
        current = (self.layout.topic, self.layout.topic_id, *settings)
        if len(current) != len(self._configs_of) or any(
            a is not b for a, b in zip(current, self._configs_of, strict=True)
        ):
            self._configs_of = current
            self._configs = configs.table(self.layout, self.settings)
            self._min_isr = configs.min_isr(self.layout, self.settings)
        return self._min_isr

    def snapshot(self, observation: Observation, log_ends: bool) -> Snapshot:
        """Return the current tables as a snapshot.

        `log_ends` says whether this cluster answers the debugging replica id.
        """
        min_isr = self.min_isr()
        last = self._last
        new = Snapshot(
            observation=observation,
            brokers=brokers.table(self.brokers),
            partitions=self._partitions(min_isr, log_ends),
            replicas=self._replicas(log_ends),
            time_points=self.points.table,
            groups=self.group_tables.groups,
            members=self.group_tables.members,
            share_offsets=self.group_tables.share_offsets,
            offsets=self.group_tables.offsets,
            transactions=self.transactions.table(self.layout),
            connectors=self.connectors,
            quorum=self.quorum.nodes if self.quorum else empty(Quorum),
            features=self.features,
            reassignments=self.reassignments,
            log_dirs=self.log_dirs,
            topic_configs=self._configs,
            broker_configs=configs.broker_table({id: known.settings for id, known in self.brokers.items()}),
        )
        if last is not None:
            new = replace(
                new,
                **{
                    name: shared(getattr(new, name), getattr(last, name))
                    for name in Snapshot.__struct_fields__
                    if name != "observation"
                },
            )
        self._last = new
        return new

    def _partitions(self, min_isr: Ids, log_ends: bool) -> Partitions:
        at, read = self.layout, self.readings
        eligible: IdMatrix = elr.column(at, elr.wanting(at, min_isr), self.elr)
        unknown = np.full(len(at), UNKNOWN, np.int64)
        held = read.last_stable_since_ms != UNKNOWN
        watermark = np.where(read.last_stable_ms == UNKNOWN, UNKNOWN, read.high_watermark)
        return Partitions(
            topic=at.topic,
            partition=at.partition,
            topic_id=at.topic_id,
            internal=at.internal,
            leader=at.leader,
            leader_epoch=at.leader_epoch,
            replicas=at.replicas,
            isr=at.isr,
            offline=at.offline,
            elr=eligible,
            log_start=read.log_start.copy(),
            log_start_ms=read.log_start_ms.copy(),
            high_watermark=read.high_watermark.copy(),
            high_watermark_ms=read.high_watermark_ms.copy(),
            last_stable=np.where(held, read.last_stable, watermark),
            last_stable_ms=read.last_stable_ms.copy(),
            last_stable_since_ms=read.last_stable_since_ms.copy(),
            log_end=read.log_end.copy() if log_ends else unknown,
            log_end_ms=read.log_end_ms.copy() if log_ends else unknown,
            min_isr=min_isr,
            error_code=np.where(read.error_code != 0, read.error_code, at.error_code),
        )

    def _replicas(self, log_ends: bool) -> Replicas:
        at, read = self.layout, self.readings
        unknown = np.full(len(at.replica_row), UNKNOWN, np.int64)
        return Replicas(
            row=at.replica_row,
            topic=at.replica_topic,
            partition=at.replica_partition,
            broker=at.replica_broker,
            log_end=read.replica_log_end.copy() if log_ends else unknown,
            log_end_ms=read.replica_log_end_ms.copy() if log_ends else unknown,
            size_bytes=read.replica_size_bytes.copy(),
        )


def shared(new: AnyTable, last: AnyTable) -> AnyTable:
    """Return `new` with the arrays of `last` wherever they are equal, so that `is` shows what changed."""
    same = {
        name: getattr(last, name)
        for name in new.__struct_fields__
        if getattr(new, name) is not getattr(last, name)
        and np.array_equal(getattr(new, name), getattr(last, name))
    }
    return replace(new, **same) if same else new


def failures(
    state: State, links: dict[int, tuple[int, Cause]], unheard: tuple[Failure, ...]
) -> tuple[Failure, ...]:
    """Return the failures: first brokers that do not answer, then parts that other brokers did not answer,
    and last the coordinators that were never heard.

    `links` has the last answer and the cause for each broker that does not answer.
    """
    never = {failure.broker for failure in unheard}
    out = [Failure(Part.BROKER, broker, *cause, at_ms) for broker, (at_ms, cause) in sorted(links.items())]
    for (part, broker), cause in sorted(state.failures.items()):
        if broker not in links and not (part == Part.GROUPS and broker in never):
            out.append(Failure(part, broker, *cause, state.shown_since_ms(part, broker)))
    return (*out, *unheard)
