"""A world as an observer sees it."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import replace

from kview.model.failures import FailureKind, Part
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
from kview.model.states import BrokerState, QuorumRole
from kview.model.units import UNKNOWN, UNKNOWN_ID
from kview.school.camera.columns import matrix
from tests.worlds.parts import SESSION_TIMEOUT_MS, Consumers, Log, Node
from tests.worlds.tables import START_MS, table

if TYPE_CHECKING:
    from tests.worlds.world import World

ROUND_MS = 100
"""Time from the beginning to the end of an observation, in ms."""


class Seen:
    """Makes snapshots of a world. Columns that did not change since the last snapshot are the same
    objects."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._shared: dict[str, Any] = {}

    def snapshot(self, began: int, groups: tuple[Groups, Members, Offsets]) -> Snapshot:
        """Return a snapshot of what was read since `began`, with these tables of groups."""
        world = self._world
        if world.time_points is None:
            world.time_points = self._time_points()
        of_groups, members, offsets = groups
        return Snapshot(
            observation=self._observation(began),
            brokers=self._broker_table(),
            partitions=self._partition_table(),
            replicas=self._replica_table(),
            time_points=world.time_points,
            groups=of_groups,
            members=members,
            offsets=offsets,
            quorum=self._quorum_table(),
        )

    def _share(self, name: str, key: Any, build: Callable[[], Any]) -> Any:
        """Return the value built before for the same `key`, so that columns that did not change are the same
        objects."""
        held = self._shared.get(name)
        if held is None or held[0] != key:
            self._shared[name] = held = (key, build())
        return held[1]

    def _observation(self, began: int) -> Observation:
        silent = [node for node in self._world.nodes.values() if not node.answers]
        return Observation(
            sequence=self._world.sequence,
            began_ms=began,
            ended_ms=began + ROUND_MS,
            cluster_id="MkU3OEVBNTcwNTJENDM2Qg",
            controller_id=self._world.controller,
            controller_epoch=self._world.controller_epoch,
            quorum_received_ms=began + 30,
            asked=(Part.METADATA, Part.OFFSETS, Part.GROUPS, Part.QUORUM),
            requests=41 - 3 * len(silent),
            bytes_sent=6_000,
            bytes_received=28_000,
            failures=tuple(
                Failure(Part.OFFSETS, node.id, node.why, shown_since_ms=node.answered_ms) for node in silent
            ),
            capabilities=self._world.capabilities,
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
                    "answers": node.answers,
                    "answered_ms": node.answered_ms,
                    "last_fetch_ms": node.fetched_ms,
                    "latency_us": node.latency_us,
                    "error": node.why.value,
                    "disk_bytes": 1_100_000_000 + 1_000_000 * node.id,
                    "session_timeout_ms": SESSION_TIMEOUT_MS,
                    "apis": node.apis,
                }
                for node in sorted(self._world.nodes.values(), key=lambda node: node.id)
            ),
        )

    def _longs(self, name: str) -> tuple[Any, Any]:
        pairs = [log.seen.get(name, (UNKNOWN, UNKNOWN)) for log in self._world.logs]
        both = np.array(pairs, np.int64).reshape(len(pairs), 2)
        return both[:, 0].copy(), both[:, 1].copy()

    def _partition_table(self) -> Partitions:
        logs = self._world.logs
        keys = [(*log.key, log.topic_id, log.min_isr) for log in logs]
        fixed = self._share("partitions", keys, lambda: self._fixed_columns(logs))
        placed = [(log.leader, log.epoch, *map(tuple, (log.isr, log.replicas, log.elr))) for log in logs]
        down = frozenset(node.id for node in self._world.nodes.values() if node.fenced)
        moving = self._share("placed", (placed, down), lambda: self._placement_columns(logs, down))
        start, start_ms = self._longs("start")
        watermark, watermark_ms = self._longs("hw")
        end, end_ms = self._longs("end")
        if "debugging_replica" not in self._world.capabilities:
            end, end_ms = np.full_like(end, UNKNOWN), np.full_like(end_ms, UNKNOWN)
        return Partitions(
            **fixed,
            **moving,
            log_start=start,
            log_start_ms=start_ms,
            high_watermark=watermark,
            high_watermark_ms=watermark_ms,
            last_stable=watermark,
            last_stable_ms=watermark_ms,
            last_stable_since_ms=np.full(len(watermark), UNKNOWN),
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
            "error_code": np.zeros(len(logs), np.int32),
        }

    @staticmethod
    def _placement_columns(logs: Sequence[Log], down: frozenset[int]) -> dict[str, Any]:
        return {
            "leader": np.array([log.leader for log in logs], np.int32),
            "leader_epoch": np.array([log.epoch for log in logs], np.int32),
            "replicas": matrix([log.replicas for log in logs]),
            "isr": matrix([log.isr for log in logs]),
            "offline": matrix([[id for id in log.replicas if id in down] for log in logs]),
            "elr": matrix([log.elr for log in logs]),
        }

    def _replica_table(self) -> Replicas:
        cells = [(row, log, id) for row, log in enumerate(self._world.logs) for id in log.replicas]
        ends = np.array([log.seen.get(id, (UNKNOWN, UNKNOWN)) for _, log, id in cells], np.int64)
        ends = ends.reshape(-1, 2)
        if "debugging_replica" not in self._world.capabilities:
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
                    "timestamp_ms": self._world.now_ms - age_ms,
                    "offset": int(log.ends[log.leader] - log.rate * age_ms / 1000),
                    "received_ms": self._world.now_ms,
                }
                for log in self._world.logs
                if log.leader in log.ends
                for age_ms in (600_000, 120_000, 60_000, 10_000)
            ),
        )

    def _quorum_table(self) -> Quorum:
        now = self._world.now_ms
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
            for node in self._world.nodes.values()
        ]
        return table(Quorum, sorted(nodes + observers, key=lambda row: int(str(row["node"]))))

    def group_tables(self, now_ms: int) -> tuple[Groups, Members, Offsets]:
        """Return the tables of groups as read at `now_ms`. If a coordinator is silent, its groups have their
        last known rows."""
        groups: list[Any] = []
        members: list[Any] = []
        offsets: list[Any] = []
        for group in self._world.groups:
            if self._world.nodes[group.coordinator].answers or not group.seen:
                group.seen = self._group_rows(group, now_ms)
            row, its_members, its_offsets = group.seen
            if not self._world.nodes[group.coordinator].answers:
                row = row | {"error": FailureKind.COORDINATOR_SILENT.value}
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

    def _group_rows(self, group: Consumers, now_ms: int) -> tuple[Any, ...]:
        ids = [f"{group.name}-{number}-c0ffee" for number in range(group.members)]
        keys = sorted(group.committed)
        owners = {key: ids[at % len(ids)] if ids else "" for at, key in enumerate(keys)}
        row = {
            "group": group.name,
            "type": group.type,
            "state": group.state,
            "coordinator": group.coordinator,
            "assignment_strategy": "range" if ids else "",
            "epoch": UNKNOWN_ID,
            "assignment_epoch": UNKNOWN_ID,
            "topology_epoch": UNKNOWN_ID,
            "subtopologies": "",
            "members": len(ids),
            "received_ms": now_ms,
            "error": "",
            "error_code": 0,
            "unread": False,
        }
        its_members = [
            {
                "group": group.name,
                "member_id": id,
                "client_id": id.rsplit("-", 1)[0],
                "host": "/127.0.0.1",
                "rack": "",
                "epoch": UNKNOWN_ID,
                "target": UNKNOWN_ID,
                "to_get": UNKNOWN_ID,
                "to_give_back": UNKNOWN_ID,
                "runs": "",
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
                "received_ms": now_ms,
            }
            for key in keys
        ]
        return row, its_members, its_offsets
