"""The clockwork: brokers, partitions and groups that move at constant rates, and snapshots of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kview.model.snapshot import (
    Brokers,
    Failure,
    Groups,
    Members,
    Observation,
    Offsets,
    Partitions,
    Quorum,
    Replicas,
    Snapshot,
    TimePoints,
)
from kview.model.states import BrokerState, GroupState, GroupType, QuorumRole
from kview.model.units import NO_BROKER, UNKNOWN
from tests.worlds.tables import START_MS, matrix, table

CAPABILITIES = frozenset({"quorum", "debugging_replica", "topic_ids", "elr", "fenced_brokers"})
PLACEMENT = (0, 3, 1, 4, 2, 5)
"""The teaching placement's list: it alternates the racks."""
SESSION_TIMEOUT_MS = 9000
LAST_FETCH_MS = 100
"""How long before an observation each broker last fetched metadata."""
COMMIT_READ_MS, FOLLOWER_READ_MS, LEADER_READ_MS, ROUND_MS = 20, 40, 60, 100
"""When, after an observation began, its readings are received."""
FOLLOWER_DELAY_MS = 10
ACKS_ALL_IN_FLIGHT_MS = 200
"""An acks=all producer stops when this much of its traffic waits for the watermark."""


@dataclass
class Node:
    """A broker: `up` is its process, `fenced` what the controller says, `silent_ms` our first unanswered
    request."""

    id: int
    rack: str
    up: bool = True
    fenced: bool = False
    silent_ms: int = UNKNOWN
    answered_ms: int = UNKNOWN
    fetched_ms: int = UNKNOWN
    why: str = ""


@dataclass
class Log:
    """A partition, with where each replica's log ends (a float: records are counted when it is read)."""

    topic: str
    partition: int
    replicas: list[int]
    isr: list[int]
    leader: int
    rate: float
    start: int
    ends: dict[int, float]
    topic_id: str
    epoch: int = 5
    internal: bool = False
    acks_all: bool = False
    min_isr: int = 1
    watermark: float = 0.0
    stalled: frozenset[int] = frozenset()
    """Living followers that copy nothing and stay out of the ISR once they are."""
    seen: dict[str, tuple[int, int]] = field(default_factory=dict)
    """What the observer last read, by 'hw', 'end', 'start' and broker id, as (value, received)."""

    @property
    def key(self) -> tuple[str, int]:
        return self.topic, self.partition


@dataclass
class Consumers:
    """A group: members own partitions in turn; a commit comes every `commit_every_ms` for all that was
    read."""

    name: str
    coordinator: int
    members: int
    committed: dict[tuple[str, int], int]
    state: str = GroupState.STABLE
    commit_every_ms: int = 1000
    read_share: float = 1.0
    """How much of the traffic it manages to read: 0.5 falls behind at half the rate, 1.5 catches up; 1
    reads all there is."""
    read: dict[tuple[str, int], float] = field(default_factory=dict)
    seen: tuple[Any, ...] = ()


class World:
    """Brokers, logs and groups; `tick` lets `interval_ms` pass and gives the next snapshot."""

    def __init__(self, nodes: Sequence[Node], logs: Sequence[Log], groups: Sequence[Consumers]) -> None:
        self.nodes = {node.id: node for node in nodes}
        self.logs = sorted(logs, key=lambda log: log.key)
        self._by_key = {log.key: log for log in self.logs}
        self.groups = sorted(groups, key=lambda group: group.name)
        self.interval_ms = 1000
        self.now_ms = START_MS - self.interval_ms
        self.next_ms = START_MS
        self.sequence = 0
        self.capabilities = CAPABILITIES
        self.controller = 101
        self.controller_epoch = 3
        self.time_points: TimePoints | None = None
        self._shared: dict[str, Any] = {}

    # What happens to it.

    def crash(self, broker: int, why: str = "connection refused") -> None:
        """The process ends now; the cluster learns of it when the session does."""
        node = self.nodes[broker]
        node.up, node.why = False, why

    def back(self, broker: int) -> None:
        """The process is there again; unfenced at the next tick, in sync at the one after."""
        node = self.nodes[broker]
        node.up, node.why = True, ""

    def log(self, topic: str, partition: int) -> Log:
        """The partition of that name."""
        return self._by_key[topic, partition]

    def group(self, name: str) -> Consumers:
        """The group of that name."""
        return next(group for group in self.groups if group.name == name)

    def _leads(self, log: Log) -> bool:
        return log.leader != NO_BROKER and self.nodes[log.leader].up

    def _run_to(self, now_ms: int) -> None:
        seconds = (now_ms - self.now_ms) / 1000
        self.now_ms = now_ms
        for log in self.logs:
            if self._leads(log):
                self._write(log, log.rate * seconds)
        for group in self.groups:
            if group.members:
                self._consume(group, seconds)

    def _write(self, log: Log, records: float) -> None:
        end = log.ends[log.leader]
        if log.acks_all and not self._watermark_may_move(log):
            records = max(0.0, min(records, log.watermark + log.rate * ACKS_ALL_IN_FLIGHT_MS / 1000 - end))
            records = records if self._enough(log) else 0.0
        log.ends[log.leader] = end + records
        for broker in log.replicas:
            copies = broker != log.leader and broker not in log.stalled
            if copies and self.nodes[broker].up and not self.nodes[broker].fenced:
                follows = log.ends[log.leader] - log.rate * FOLLOWER_DELAY_MS / 1000
                log.ends[broker] = max(log.ends[broker], follows)
        if self._enough(log):
            log.watermark = max(log.watermark, min(log.ends[broker] for broker in log.isr))

    @staticmethod
    def _enough(log: Log) -> bool:
        return len(log.isr) >= min(log.min_isr, len(log.replicas))

    def _watermark_may_move(self, log: Log) -> bool:
        return self._enough(log) and all(self.nodes[broker].up for broker in log.isr)

    def _consume(self, group: Consumers, seconds: float) -> None:
        for key in group.committed:
            log = self.log(*key)
            if self._leads(log):
                at = group.read.get(key, float(group.committed[key]))
                limit = log.watermark if group.read_share == 1 else at + log.rate * group.read_share * seconds
                group.read[key] = max(at, min(limit, log.watermark))

    def _commit(self, group: Consumers) -> None:
        if self.next_ms % group.commit_every_ms == 0:
            group.committed.update({key: int(at) for key, at in group.read.items()})

    def _govern(self) -> None:
        """What the controller does: fences, elects, unfences, lets replicas back into ISRs."""
        for node in self.nodes.values():
            silent = node.silent_ms != UNKNOWN
            if silent and not node.fenced and self.next_ms - node.silent_ms >= SESSION_TIMEOUT_MS:
                self._fence(node.id)
            elif node.up and node.fenced:
                self._unfence(node.id)
            elif node.up:
                self._rejoin(node.id)

    def _fence(self, broker: int) -> None:
        self.nodes[broker].fenced = True
        for log in self.logs:
            if broker in log.isr:
                others = [id for id in log.isr if id != broker]
                log.isr = others or [broker]
                if log.leader == broker:
                    self._lead(log, next((id for id in log.replicas if id in others), NO_BROKER))

    def _unfence(self, broker: int) -> None:
        self.nodes[broker].fenced = False
        for log in self.logs:
            if log.leader == NO_BROKER and broker in log.isr:
                self._lead(log, broker)

    def _lead(self, log: Log, broker: int) -> None:
        log.leader, log.epoch = broker, log.epoch + 1
        if broker != NO_BROKER:
            for follower in log.replicas:
                if follower != broker and self.nodes[follower].up:
                    log.ends[follower] = min(log.ends[follower], log.ends[broker])

    def _rejoin(self, broker: int) -> None:
        for log in self.logs:
            out = broker in log.replicas and broker not in log.isr and broker not in log.stalled
            if out and self._leads(log):
                log.ends[broker] = log.ends[log.leader]
                log.isr = [id for id in log.replicas if id in (*log.isr, broker)]

    # What is seen of it.

    def tick(self) -> Snapshot:
        """Let time pass to the next observation and return it."""
        began = self.next_ms
        self._run_to(began)
        for node in self.nodes.values():
            if node.up:
                node.silent_ms, node.answered_ms, node.fetched_ms = UNKNOWN, began, began - LAST_FETCH_MS
            elif node.silent_ms == UNKNOWN:
                node.silent_ms, node.fetched_ms = began, began - LAST_FETCH_MS
        self._govern()
        for group in self.groups:
            if group.members:
                self._commit(group)
        self._run_to(began + COMMIT_READ_MS)
        groups, members, offsets = self._group_tables()
        self._run_to(began + FOLLOWER_READ_MS)
        for log in self.logs:
            for broker in log.replicas:
                if self.nodes[broker].up and broker != log.leader:
                    log.seen[str(broker)] = (int(log.ends[broker]), self.now_ms)
        self._run_to(began + LEADER_READ_MS)
        for log in self.logs:
            if self._leads(log):
                end = int(log.ends[log.leader])
                log.seen |= {
                    "hw": (min(int(log.watermark), end), self.now_ms),
                    "end": (end, self.now_ms),
                    "start": (log.start, self.now_ms),
                    str(log.leader): (end, self.now_ms),
                }
        if self.time_points is None:
            self.time_points = self._time_points()
        snapshot = Snapshot(
            observation=self._observation(began),
            brokers=self._broker_table(),
            partitions=self._partition_table(),
            replicas=self._replica_table(),
            time_points=self.time_points,
            groups=groups,
            members=members,
            offsets=offsets,
            quorum=self._quorum_table(),
        )
        self.sequence += 1
        self.next_ms += self.interval_ms
        return snapshot

    def skip(self, seconds: int) -> None:
        """Time in which nobody looks."""
        self.next_ms += seconds * 1000

    def _share(self, name: str, key: Any, build: Callable[[], Any]) -> Any:
        """The value built for the same `key` before, so that columns that did not change are the same
        objects."""
        held = self._shared.get(name)
        if held is None or held[0] != key:
            self._shared[name] = held = (key, build())
        return held[1]

    def _observation(self, began: int) -> Observation:
        silent = [node for node in self.nodes.values() if not node.up]
        return Observation(
            sequence=self.sequence,
            began_ms=began,
            ended_ms=began + ROUND_MS,
            cluster_id="MkU3OEVBNTcwNTJENDM2Qg",
            controller_id=self.controller,
            controller_epoch=self.controller_epoch,
            quorum_high_watermark=4000 + 2 * self.sequence,
            quorum_received_ms=began + 30,
            asked=("metadata", "offsets", "groups", "quorum"),
            requests=41 - 3 * len(silent),
            bytes_sent=6_000,
            bytes_received=28_000,
            failures=tuple(Failure("offsets", node.id, node.why, node.answered_ms) for node in silent),
            capabilities=self.capabilities,
        )

    def _state(self, node: Node) -> str:
        if node.fenced:
            return BrokerState.FENCED
        return BrokerState.UP if node.silent_ms == UNKNOWN else BrokerState.SILENT

    def _broker_table(self) -> Brokers:
        return table(
            Brokers,
            (
                {
                    "id": node.id,
                    "host": "127.0.0.1",
                    "port": 19092 + node.id,
                    "rack": node.rack,
                    "state": self._state(node),
                    "since_ms": START_MS if node.silent_ms == UNKNOWN else node.silent_ms,
                    "answers": node.up,
                    "answered_ms": node.answered_ms,
                    "last_fetch_ms": node.fetched_ms,
                    "error": node.why,
                    "disk_bytes": 1_100_000_000 + 1_000_000 * node.id,
                    "session_timeout_ms": SESSION_TIMEOUT_MS,
                }
                for node in sorted(self.nodes.values(), key=lambda node: node.id)
            ),
        )

    def _longs(self, name: str) -> tuple[Any, Any]:
        pairs = [log.seen.get(name, (UNKNOWN, UNKNOWN)) for log in self.logs]
        both = np.array(pairs, np.int64).reshape(len(pairs), 2)
        return both[:, 0].copy(), both[:, 1].copy()

    def _partition_table(self) -> Partitions:
        logs = self.logs
        keys = [(*log.key, log.topic_id, log.min_isr) for log in logs]
        fixed = self._share("partitions", keys, lambda: self._fixed_columns(logs))
        placed = [(log.leader, log.epoch, tuple(log.isr), tuple(log.replicas)) for log in logs]
        down = frozenset(node.id for node in self.nodes.values() if node.fenced)
        moving = self._share("placed", (placed, down), lambda: self._placement_columns(logs, down))
        start, start_ms = self._longs("start")
        watermark, watermark_ms = self._longs("hw")
        end, end_ms = self._longs("end")
        if "debugging_replica" not in self.capabilities:
            end, end_ms = np.full_like(end, UNKNOWN), np.full_like(end_ms, UNKNOWN)
        return Partitions(
            **fixed,
            **moving,
            log_start=start,
            log_start_ms=start_ms,
            high_watermark=watermark,
            high_watermark_ms=watermark_ms,
            last_stable=watermark,
            log_end=end,
            log_end_ms=end_ms,
        )

    @staticmethod
    def _fixed_columns(logs: Sequence[Log]) -> dict[str, Any]:
        return {
            "topic": np.array([log.topic for log in logs], object),
            "partition": np.array([log.partition for log in logs], np.int32),
            "topic_id": np.array([log.topic_id for log in logs], object),
            "internal": np.array([log.internal for log in logs], np.bool_),
            "min_isr": np.array([log.min_isr for log in logs], np.int32),
            "error": np.array(["" for _ in logs], object),
        }

    @staticmethod
    def _placement_columns(logs: Sequence[Log], down: frozenset[int]) -> dict[str, Any]:
        return {
            "leader": np.array([log.leader for log in logs], np.int32),
            "leader_epoch": np.array([log.epoch for log in logs], np.int32),
            "replicas": matrix([log.replicas for log in logs]),
            "isr": matrix([log.isr for log in logs]),
            "offline": matrix([[id for id in log.replicas if id in down] for log in logs]),
            "elr": matrix([[] for _ in logs]),
        }

    def _replica_table(self) -> Replicas:
        cells = [(row, log, id) for row, log in enumerate(self.logs) for id in log.replicas]
        ends = np.array([log.seen.get(str(id), (UNKNOWN, UNKNOWN)) for _, log, id in cells], np.int64)
        if "debugging_replica" not in self.capabilities:
            ends[:] = UNKNOWN

        def fixed() -> dict[str, Any]:
            return {
                "row": np.array([row for row, _, _ in cells], np.int32),
                "topic": np.array([log.topic for _, log, _ in cells], object),
                "partition": np.array([log.partition for _, log, _ in cells], np.int32),
                "broker": np.array([id for _, _, id in cells], np.int32),
                "size_bytes": np.array(
                    [100 * int(log.ends[id] - log.start) for _, log, id in cells], np.int64
                ),
            }

        shared = self._share("replicas", [(log.key, id) for _, log, id in cells], fixed)
        return Replicas(**shared, log_end=ends[:, 0].copy(), log_end_ms=ends[:, 1].copy())

    def _time_points(self) -> TimePoints:
        return table(
            TimePoints,
            (
                {
                    "topic": log.topic,
                    "partition": log.partition,
                    "timestamp_ms": self.now_ms - age_ms,
                    "offset": int(log.ends[log.leader] - log.rate * age_ms / 1000),
                    "received_ms": self.now_ms,
                }
                for log in self.logs
                for age_ms in (600_000, 120_000, 60_000, 10_000)
            ),
        )

    def _quorum_table(self) -> Quorum:
        now = self.now_ms
        nodes = [
            {
                "node": id,
                "role": role,
                "log_end": 4000,
                "last_fetch_ms": now - 50,
                "last_caught_up_ms": now - 50,
            }
            for id, role in ((101, QuorumRole.LEADER), (102, QuorumRole.VOTER), (103, QuorumRole.VOTER))
        ]
        observers = [
            {
                "node": node.id,
                "role": QuorumRole.OBSERVER,
                "log_end": 4000,
                "last_fetch_ms": node.fetched_ms,
                "last_caught_up_ms": node.fetched_ms,
            }
            for node in self.nodes.values()
        ]
        return table(Quorum, sorted(nodes + observers, key=lambda row: int(str(row["node"]))))

    def _group_tables(self) -> tuple[Groups, Members, Offsets]:
        groups: list[Any] = []
        members: list[Any] = []
        offsets: list[Any] = []
        for group in self.groups:
            if self.nodes[group.coordinator].up or not group.seen:
                group.seen = self._group_rows(group)
            row, its_members, its_offsets = group.seen
            if not self.nodes[group.coordinator].up:
                row = row | {"error": f"coordinator {group.coordinator} does not answer"}
            groups.append(row)
            members.extend(its_members)
            offsets.extend(its_offsets)
        table_of_offsets = table(Offsets, offsets)
        keys = [(row["group"], row["topic"], row["partition"]) for row in offsets]
        shared = self._share("offsets", keys, lambda: table_of_offsets)
        table_of_offsets = replace(
            table_of_offsets, group=shared.group, topic=shared.topic, partition=shared.partition
        )
        return table(Groups, groups), table(Members, members), table_of_offsets

    def _group_rows(self, group: Consumers) -> tuple[Any, ...]:
        ids = [f"{group.name}-{number}-c0ffee" for number in range(group.members)]
        keys = sorted(group.committed)
        owners = {key: ids[at % len(ids)] if ids else "" for at, key in enumerate(keys)}
        row = {
            "group": group.name,
            "type": GroupType.CLASSIC,
            "state": group.state,
            "coordinator": group.coordinator,
            "assignment_strategy": "range" if ids else "",
            "members": len(ids),
            "received_ms": self.now_ms,
            "error": "",
        }
        its_members = [
            {
                "group": group.name,
                "member_id": id,
                "client_id": id.rsplit("-", 1)[0],
                "host": "/127.0.0.1",
                "assigned": sum(owner == id for owner in owners.values()),
            }
            for id in ids
        ]
        its_offsets = [
            {
                "group": group.name,
                "topic": key[0],
                "partition": key[1],
                "committed": group.committed[key],
                "owner": owners[key],
                "received_ms": self.now_ms,
            }
            for key in keys
        ]
        return row, its_members, its_offsets


def topic(
    name: str, partitions: int, replicas: int, rate: float, *, size: int = 1_000_000, **settings: Any
) -> list[Log]:
    """A topic's partitions by the teaching placement; `size` is the records that partition 0 has at the
    start."""
    logs = []
    for number in range(partitions):
        brokers = [PLACEMENT[(number + step) % len(PLACEMENT)] for step in range(replicas)]
        end = float(size + 1_013 * number)
        log = Log(
            topic=name,
            partition=number,
            replicas=brokers,
            isr=list(brokers),
            leader=brokers[0],
            rate=rate,
            start=size // 3,
            ends={broker: end for broker in brokers},
            topic_id=f"{name}-id",
            watermark=end,
            **settings,
        )
        logs.append(log)
    return logs


def default_world() -> World:
    """The default simulated world's shape: 6 brokers on racks R1 = {0,1,2} and R2 = {3,4,5}, three topics,
    four groups.

    `invoice` is written with acks=1, `payment` with acks=all and min.insync.replicas 2. `billing` and
    `reporting` keep up, `fraud-check` has a member too many, `audit-export` stopped 130 s ago. Broker 4
    leads invoice 3 and 9, payment 3 and audit-log 3, and coordinates `fraud-check`.
    """
    nodes = [Node(id, "R1" if id < 3 else "R2") for id in range(6)]
    invoice = topic("invoice", 10, 3, 440.0, size=1_200_000)
    payment = topic("payment", 6, 3, 400.0, size=410_000, acks_all=True, min_isr=2)
    audit = topic("audit-log", 4, 1, 250.0, size=300_000)
    offsets = topic("__consumer_offsets", 50, 3, 0.6, size=9_000, internal=True, acks_all=True)
    at_end = {log.key: int(log.watermark) for log in invoice + payment + audit}

    def of(*names: str) -> dict[tuple[str, int], int]:
        return {key: offset for key, offset in at_end.items() if key[0] in names}

    groups = [
        Consumers("billing", 1, 3, of("invoice")),
        Consumers("reporting", 2, 2, of("invoice", "payment"), commit_every_ms=5000),
        Consumers("fraud-check", 4, 5, of("audit-log")),
        Consumers(
            "audit-export",
            0,
            0,
            {key: offset - 130 * 250 for key, offset in of("audit-log").items()},
            state=GroupState.EMPTY,
        ),
    ]
    return World(nodes, invoice + payment + audit + offsets, groups)
