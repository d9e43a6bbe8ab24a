"""Roll-ups of a world, computed second by second from its snapshots in plain Python."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from kview.model.aggregates import Block, Key, Rollups, SparkState, SparkStatus, no_rows
from kview.model.snapshot import Snapshot
from kview.model.sums import BLOCK_S, SUMS, Kind
from kview.model.units import NO_BROKER, UNKNOWN
from tests.worlds.world import default_world

RECORD_BYTES = 100
ROWS = {str(each): row for row, each in enumerate(SUMS)}
"""Of the sums in a block, by name."""

RUNNING = SparkStatus(SparkState.RUNNING, None, UNKNOWN, 800)


@dataclass
class Adding:
    """Adds up roll-ups from snapshots that are one second apart.

    Records between two snapshots count for the second in which the first snapshot ended.
    """

    keys: list[Key] = field(default_factory=lambda: [Key(Kind.CLUSTER), Key(Kind.INTERNAL)])
    partitions: list[tuple[str, int]] = field(default_factory=list)
    blocks: dict[int, Block] = field(default_factory=dict)
    before: Snapshot | None = None
    from_ms: int = UNKNOWN
    until_ms: int = UNKNOWN

    def add(self, snapshot: Snapshot) -> Rollups:
        """Add one more observation, and return the roll-ups."""
        self.until_ms = snapshot.observation.ended_ms
        if self.before is None:
            self.from_ms = self.until_ms
        else:
            self._add_partitions(self.before, snapshot)
            self._add_groups(self.before, snapshot)
        self.before = snapshot
        blocks = tuple(self.blocks[minute] for minute in sorted(self.blocks))
        return Rollups(tuple(self.keys), tuple(self.partitions), blocks, self.from_ms, self.until_ms)

    def _at(self, key: Key, second: int) -> tuple[Block, int, int]:
        minute = second // BLOCK_S
        if key not in self.keys:
            self.keys.append(key)
        held = self.blocks.get(minute) or no_rows(minute, 0)
        if len(held.topic_partitions) < len(self.keys):
            grown = no_rows(minute, len(self.keys))
            rows = len(held.topic_partitions)
            grown.sums[:, :rows] = held.sums
            grown.hottest_rate[:rows], grown.hottest[:rows] = held.hottest_rate, held.hottest
            grown.topic_partitions[:rows] = held.topic_partitions
            self.blocks[minute] = held = grown
        return held, self.keys.index(key), second % BLOCK_S

    def _count(self, key: Key, second: int, **sums: int) -> None:
        block, row, at = self._at(key, second)
        for name, value in sums.items():
            if value:
                block.sums[ROWS[name], row, at] += value

    def _heat(self, key: Key, second: int, partition: tuple[str, int], rate: int) -> None:
        block, row, at = self._at(key, second)
        if rate > block.hottest_rate[row, at]:
            if partition not in self.partitions:
                self.partitions.append(partition)
            block.hottest_rate[row, at] = rate
            block.hottest[row, at] = self.partitions.index(partition)

    def _add_partitions(self, before: Snapshot, now: Snapshot) -> None:
        second = before.observation.ended_ms // 1000
        table = now.partitions
        racks = dict(zip(now.brokers.id.tolist(), now.brokers.rack, strict=True))
        silent = set(now.brokers.id[now.brokers.state == "silent"].tolist())
        copied: dict[int, list[tuple[int, int]]] = {}
        ends = zip(before.replicas.log_end.tolist(), now.replicas.log_end.tolist(), strict=True)
        for row, broker, (old, new) in zip(
            now.replicas.row.tolist(), now.replicas.broker.tolist(), ends, strict=True
        ):
            copied.setdefault(row, []).append((broker, new - old if UNKNOWN not in (old, new) else 0))
        sizes: dict[str, int] = {}
        for topic in table.topic:
            sizes[topic] = sizes.get(topic, 0) + 1
        for row, topic in enumerate(table.topic):
            leader = int(table.leader[row])
            grown = int(table.log_end[row]) - int(before.partitions.log_end[row])
            copies = [(broker, max(0, n)) for broker, n in copied.get(row, []) if broker != leader]
            in_sync, replicas = (int((ids[row] != NO_BROKER).sum()) for ids in (table.isr, table.replicas))
            sums = {
                "records_in": max(0, grown),
                "truncated": max(0, -grown),
                "centibytes_in": max(0, grown) * RECORD_BYTES * 100,
                "replicated": sum(n for _, n in copies),
                "cross_rack": sum(n for broker, n in copies if racks.get(broker) != racks.get(leader)),
                "active_ms": 1000 if grown > 0 else 0,
                "offline_ms": 1000 if leader == NO_BROKER else 0,
                "silent_ms": 1000 if leader in silent else 0,
                "under_min_isr_ms": 1000 if in_sync < int(table.min_isr[row]) else 0,
                "under_replicated_ms": 1000 if in_sync < replicas else 0,
            }
            kinds = [Key(Kind.TOPIC, topic), Key(Kind.INTERNAL if table.internal[row] else Kind.CLUSTER)]
            if leader != NO_BROKER and not table.internal[row]:
                kinds += [Key(Kind.BROKER, str(leader)), Key(Kind.RACK, racks[leader])]
            for key in kinds:
                self._count(key, second, **sums)
                if grown > 0:
                    self._heat(key, second, (topic, int(table.partition[row])), grown)
            block, at_row, at = self._at(kinds[0], second)
            block.topic_partitions[at_row, at] = sizes[topic]

    def _add_groups(self, before: Snapshot, now: Snapshot) -> None:
        second = before.observation.ended_ms // 1000
        table, old = now.offsets, before.offsets
        leaders = {
            (topic, int(partition)): int(leader)
            for topic, partition, leader in zip(
                now.partitions.topic, now.partitions.partition, now.partitions.leader, strict=True
            )
        }
        racks = dict(zip(now.brokers.id.tolist(), now.brokers.rack, strict=True))
        for row, group in enumerate(table.group):
            read = int(table.committed[row]) - int(old.committed[row])
            if read <= 0:
                continue
            partition = (table.topic[row], int(table.partition[row]))
            leader = leaders[partition]
            keys = [Key(Kind.GROUP, group), Key(Kind.TOPIC, partition[0]), Key(Kind.CLUSTER)]
            if leader != NO_BROKER:
                keys += [Key(Kind.BROKER, str(leader)), Key(Kind.RACK, racks[leader])]
            for key in keys:
                self._count(key, second, records_out=read)
            self._heat(keys[0], second, partition, read)


def wavy_crash(*, healthy_s: int = 300, silent_s: int = 30) -> Iterator[Snapshot]:
    """Yield a snapshot per second of traffic that rises and falls. Broker 4 crashes after `healthy_s`
    seconds."""
    world = default_world()
    usual = {log.key: log.rate for log in world.logs}
    for second in range(healthy_s + silent_s):
        if second == healthy_s:
            world.crash(4)
        for log in world.logs:
            slow, quick = math.sin(second / 22 + log.partition / 9), math.sin(second / 4)
            log.rate = usual[log.key] * (1 + 0.25 * slow + 0.07 * quick)
        yield world.tick()
