"""A simulated cluster that is like an observed one: its brokers, placement, settings, traffic and groups."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace

from kview.config.references import read_file
from kview.derive.view import Verdict, View
from kview.errors import BadUse, ErrorKind
from kview.lab.worlds import MAX_BROKERS
from kview.model.failures import STORAGE_ERROR
from kview.model.snapshot import Snapshot
from kview.model.states import BrokerState, GroupType
from kview.model.units import UNKNOWN, UNKNOWN_ID
from kview.simulate.groups.assignors import ASSIGNORS
from kview.simulate.reading import RECORD_BYTES_MIN
from kview.simulate.releases import KAFKA_4_3, RELEASES
from kview.simulate.settings import check_topic_configs
from kview.simulate.topic_settings import TOPIC_KEYS
from kview.simulate.world import (
    CLASSIC,
    COMPACTED_KEYS,
    CONSUMER,
    CONTROLLERS,
    INTERNAL_TOPICS,
    OFFSETS_TOPIC,
    SHARE,
    BrokerSpec,
    GroupSpec,
    ProducerSpec,
    TopicSpec,
    World,
    is_compacted,
)

MOST_MEMBERS = 2_000
"""The most members of all groups. The simulated clients of more would take the processor's time."""

HEARTBEAT_MS, BEATS = 2_000, 4
"""Kafka's broker.heartbeat.interval.ms, which no client can read, and how many of them a session has at
least: with longer ones, brokers of a shorter session would be fenced."""

RECORD_BYTES, RECORD_BYTES_MAX = 200, 1_000_000
"""The size of a record where nothing tells it, and the largest one."""

STUCK_RATE = 0.001
"""Records per second of a member that reads nothing, or whose rate is not known. 0 would be no limit."""

PAST_MS = 600_000
"""How long a twin seems to have run when it starts."""

MOST_FILE_BYTES = 64 << 20
"""Limit of a file that describes a world. One with 100 brokers and 200,000 partitions takes some 20 MB."""

PROTOCOLS: Mapping[str, str] = {GroupType.CONSUMER: CONSUMER, GroupType.SHARE: SHARE}
"""The kinds of groups that are not made like classic ones."""

NOT_IN_TWINS = INTERNAL_TOPICS - {OFFSETS_TOPIC}
"""Topics that a simulated cluster makes itself, when something needs them."""

_OWN, _DEFAULT = "DYNAMIC_TOPIC_CONFIG", "DEFAULT_CONFIG"


class Unlike(StrEnum):
    """In what a twin differs from its model."""

    DOWN = "down"
    OUT_OF_SYNC = "out of sync"
    FAILED_DIRS = "failed dirs"
    CONTROLLERS_TOO = "controllers too"
    TRAFFIC_UNKNOWN = "traffic unknown"
    CONFIGS = "configs"
    MIN_ISR_UNKNOWN = "min isr unknown"
    KINDS = "kinds"
    ASSIGNORS = "assignors"
    LAGS = "lags"
    CONNECT = "connect"
    GROUPS_LEFT_OUT = "groups left out"
    MOVES = "moves"
    ABANDONED = "abandoned"
    INTERNAL = "internal"


class Twin(NamedTuple):
    """A world like an observed cluster, and how many things of each kind it has not, or not so."""

    world: World
    unlike: Mapping[Unlike, int]


def twin_of(view: View) -> Twin:
    """Return a world like the cluster of a view. Raises BadUse if nothing can be like it."""
    return _Twin(view).made()


def down(view: View) -> set[int]:
    """Return the brokers that the cluster has lost: those that hold replicas and are not listed, fenced or
    silent ones, unless the cluster still hears from them."""
    table, unheard = view.snapshot.brokers, (BrokerState.SILENT, BrokerState.FENCED, BrokerState.GONE)
    lost = {
        broker
        for broker, state, unreached in zip(
            table.id.tolist(), table.state.tolist(), view.brokers.unreached.tolist(), strict=True
        )
        if state in unheard and not unreached
    }
    return lost | set(view.snapshot.replicas.broker.tolist()) - set(table.id.tolist())


def encoded(world: World) -> bytes:
    """Return the JSON text of a world, in which its release is a name."""
    fields = {**msgspec.to_builtins(world), "release": world.release.name}
    return msgspec.json.format(msgspec.json.encode(fields), indent=1) + b"\n"


def world_in(file: Path) -> World:
    """Return the world that a file describes. Raises BadUse."""
    data = read_file(file, MOST_FILE_BYTES)
    try:
        fields = msgspec.json.decode(data, type=dict[str, Any])
        name = msgspec.convert(fields.pop("release", KAFKA_4_3.name), str)
        if name not in RELEASES:
            raise msgspec.ValidationError(f"there is no release {name!r}")
        return replace(msgspec.convert(fields, World), release=RELEASES[name])
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise BadUse(ErrorKind.WORLD_WRONG, file=str(file), reason=str(error)) from None


class _Twin:
    def __init__(self, view: View) -> None:
        self._view, self._seen = view, view.snapshot
        self._unlike: defaultdict[Unlike, int] = defaultdict(int)

    def made(self) -> Twin:
        brokers = self._brokers()
        topics = self._topics({broker.id for broker in brokers})
        world = World(
            brokers=brokers,
            topics=topics,
            producers=tuple(self._producers(topics)),
            groups=tuple(self._groups({topic.name for topic in topics})),
            controllers=self._controllers({broker.id for broker in brokers}),
            settings=self._settings(topics),
            warm_ms=PAST_MS,
        )
        return Twin(world, dict(self._unlike))

    def _brokers(self) -> tuple[BrokerSpec, ...]:
        """Return the brokers that hold replicas or are listed."""
        table = self._seen.brokers
        racks = dict(zip(table.id.tolist(), table.rack.tolist(), strict=True))
        holders = set(self._seen.replicas.broker.tolist())
        gone = set(table.id[np.asarray(table.state == BrokerState.GONE, np.bool_)].tolist())
        ids = (set(racks) - gone) | holders
        if not ids:
            raise BadUse(ErrorKind.NOTHING_TO_COPY)
        if len(ids) > MAX_BROKERS:
            raise BadUse(ErrorKind.TOO_MANY_BROKERS, brokers=len(ids), most=MAX_BROKERS)
        lost = down(self._view)
        self._note(Unlike.DOWN, len(lost & ids))
        replicas = self._seen.partitions.replicas
        behind = (replicas >= 0) & ~self._view.partitions.in_isr & ~np.isin(replicas, list(lost))
        self._note(Unlike.OUT_OF_SYNC, int(behind.sum()))
        self._note(Unlike.FAILED_DIRS, int((self._seen.log_dirs.error_code == STORAGE_ERROR).sum()))
        return tuple(BrokerSpec(broker, racks.get(broker, "")) for broker in sorted(ids))

    def _topics(self, brokers: set[int]) -> tuple[TopicSpec, ...]:
        table = self._seen.partitions
        replicas: defaultdict[str, dict[int, tuple[int, ...]]] = defaultdict(dict)
        min_isr: dict[str, int] = {}
        left_out: set[str] = set()
        for row in range(len(table)):
            topic = str(table.topic[row])
            if topic in NOT_IN_TWINS:
                left_out.add(topic)
                continue
            held = tuple(broker for broker in table.replicas[row].tolist() if broker >= 0)
            replicas[topic][int(table.partition[row])] = held
            if table.min_isr[row] > 1:
                min_isr[topic] = int(table.min_isr[row])
        configs = self._configs()
        made = []
        for topic, by_number in replicas.items():
            lists = tuple(by_number[number] for number in sorted(by_number))
            if sorted(by_number) != list(range(len(lists))) or not all(lists):
                raise BadUse(ErrorKind.TOPIC_PARTLY_KNOWN, topic=topic)
            own = {**configs.get(topic, {})}
            if topic in min_isr:
                own["min.insync.replicas"] = str(min_isr[topic])
            made.append(TopicSpec(topic, len(lists), max(map(len, lists)), own, lists))
        unknown = {str(topic) for topic in table.topic[table.min_isr == UNKNOWN_ID].tolist()}
        self._note(Unlike.MIN_ISR_UNKNOWN, len(unknown & replicas.keys()))
        self._note(Unlike.MOVES, len(self._seen.reassignments))
        self._note(Unlike.INTERNAL, len(left_out))
        return tuple(made)

    def _configs(self) -> dict[str, dict[str, str]]:
        """Return the topics' settings that are not Kafka's defaults, and that a simulated cluster has, too.

        Those that a topic has from its brokers become its own.
        """
        table = self._seen.topic_configs
        kept: defaultdict[str, dict[str, str]] = defaultdict(dict)
        rows = zip(
            *(column.tolist() for column in (table.topic, table.name, table.value, table.source)), strict=True
        )
        for topic, name, value, source in rows:
            key = TOPIC_KEYS.get(name)
            if source == _DEFAULT or (source != _OWN and key is not None and value == key.key.default):
                continue
            try:
                kept[topic] |= check_topic_configs({name: value}, KAFKA_4_3.topic_config_keys)
            except BadUse:
                self._note(Unlike.CONFIGS, 1)
        return kept

    def _settings(self, topics: tuple[TopicSpec, ...]) -> Mapping[str, str]:
        sessions = self._seen.brokers.session_timeout_ms
        known = sessions[sessions != UNKNOWN]
        settings = {}
        if len(known):
            session_ms = int(known.max())
            beat_ms = max(1, min(HEARTBEAT_MS, session_ms // BEATS))
            settings = {
                "broker.session.timeout.ms": str(session_ms),
                "broker.heartbeat.interval.ms": str(beat_ms),
            }
        for topic in topics:
            if topic.name == OFFSETS_TOPIC:
                settings["offsets.topic.num.partitions"] = str(topic.partitions)
                settings["offsets.topic.replication.factor"] = str(topic.replication)
        return settings

    def _controllers(self, brokers: set[int]) -> tuple[int, ...]:
        """Return as many controllers as the quorum has voters. In a twin no broker is one."""
        voting = self._seen.quorum.role != "observer"
        voters = int(voting.sum())
        self._note(Unlike.CONTROLLERS_TOO, len(brokers & set(self._seen.quorum.node[voting].tolist())))
        first = max(CONTROLLERS[0], max(brokers) + 1)
        return tuple(range(first, first + (voters or len(CONTROLLERS))))

    def _producers(self, topics: tuple[TopicSpec, ...]) -> Iterator[ProducerSpec]:
        throughput = self._view.throughput
        rates = dict(zip(throughput.topics, throughput.in_rates, strict=True))
        sizes = _record_bytes(self._seen)
        for topic in topics:
            rate = rates.get(topic.name, 0.0)
            if math.isnan(rate):
                self._note(Unlike.TRAFFIC_UNKNOWN, 1)
            elif rate > 0:
                keys = COMPACTED_KEYS if is_compacted(topic) else 0
                size = sizes.get(topic.name, RECORD_BYTES)
                yield ProducerSpec(f"{topic.name}-producer", topic.name, rate, size, keys=keys)

    def _groups(self, topics: set[str]) -> Iterator[GroupSpec]:
        table, figures = self._seen.groups, self._view.groups
        read: defaultdict[str, set[str]] = defaultdict(set)
        for offsets in (self._seen.offsets, self._seen.share_offsets):
            for group, topic in zip(offsets.group.tolist(), offsets.topic.tolist(), strict=True):
                if topic in topics and topic != OFFSETS_TOPIC:
                    read[group].add(topic)
        members_left = MOST_MEMBERS
        for row in figures.place.argsort().tolist():
            name, kind = str(table.group[row]), str(table.type[row])
            members = max(0, int(table.members[row]))
            if kind == GroupType.CONNECT:
                self._note(Unlike.CONNECT, 1)
                continue
            if figures.verdict[row] == Verdict.ABANDONED:
                self._note(Unlike.ABANDONED, 1)
                continue
            if not read[name] or members > members_left:
                self._note(Unlike.GROUPS_LEFT_OUT, 1)
                continue
            if members and kind not in (GroupType.CLASSIC, GroupType.CONSUMER, GroupType.SHARE):
                self._note(Unlike.KINDS, 1)
            members_left -= members
            behind_ms = max(0, int(figures.behind_ms[row]))
            if behind_ms > PAST_MS:
                self._note(Unlike.LAGS, 1)
            rate = 0.0
            if members and figures.verdict[row] in (Verdict.FALLING_BEHIND, Verdict.STUCK, Verdict.REWOUND):
                read_rate = float(figures.read_rate[row])
                rate = max(STUCK_RATE, 0.0 if math.isnan(read_rate) else read_rate / members)
            strategy = str(table.assignment_strategy[row])
            if members and kind == GroupType.CLASSIC and strategy not in ASSIGNORS:
                self._note(Unlike.ASSIGNORS, 1)
            yield GroupSpec(
                name,
                tuple(sorted(read[name])),
                members,
                records_per_second=rate,
                assignor=strategy if strategy in ASSIGNORS else "range",
                warm_lag_seconds=behind_ms / 1000 if members else 1.0,
                stopped_ms=0 if members else behind_ms,
                protocol=PROTOCOLS.get(kind, CLASSIC),
            )

    def _note(self, what: Unlike, number: int) -> None:
        if number:
            self._unlike[what] += number


def _record_bytes(seen: Snapshot) -> dict[str, int]:
    """Return the mean size of each topic's records on disk, where sizes and offsets are known."""
    table, copies = seen.partitions, seen.replicas
    size: defaultdict[str, int] = defaultdict(int)
    records: defaultdict[str, int] = defaultdict(int)
    for row, broker, stored in zip(
        copies.row.tolist(), copies.broker.tolist(), copies.size_bytes.tolist(), strict=True
    ):
        end, start = int(table.high_watermark[row]), int(table.log_start[row])
        if stored != UNKNOWN and broker == table.leader[row] and end > start >= 0:
            size[str(table.topic[row])] += stored
            records[str(table.topic[row])] += end - start
    return {
        topic: max(RECORD_BYTES_MIN, min(RECORD_BYTES_MAX, stored // records[topic]))
        for topic, stored in size.items()
    }
