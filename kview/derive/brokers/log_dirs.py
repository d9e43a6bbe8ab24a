"""Log directories: which have failed while their brokers run, and when the others will be full."""

from collections.abc import Iterator, Mapping

import numpy as np
from msgspec import Struct

from kview.derive.partitions.rates import LOOK_BACK_MS
from kview.derive.view import View
from kview.model.events import Severity
from kview.model.failures import STORAGE_ERROR
from kview.model.findings import Finding, FindingKind
from kview.model.snapshot import Flags, LogDirs, Longs, Snapshot
from kview.model.states import BrokerState
from kview.model.units import NO_BROKER, UNKNOWN

LEAST_MS = 120_000
"""Readings less than this apart say nothing: brokers delete segments in the meantime, too."""

MOST_AHEAD_MS = 7 * 24 * 3_600_000
"""A directory that would be full later than this has no forecast: it comes from ten minutes at most."""

MOST_READINGS = 100
"""The most readings of a directory that are kept. Brokers are asked every 30 s."""

Key = tuple[int, str]
"""A broker and a path."""


class Room(Struct, frozen=True):
    """How many bytes were usable in a directory whose volume had `total_bytes`."""

    at_ms: int
    usable_bytes: int
    total_bytes: int


Rooms = Mapping[Key, tuple[Room, ...]]
"""The readings of each directory, oldest first. Failed directories have none."""


class FailedDirs(Struct, frozen=True):
    """The failed log directories of a broker that is up. The masks have the rows of `Partitions`."""

    broker: int
    paths: tuple[str, ...]
    all: int
    """The number of the broker's directories, these included."""
    lost: Flags
    """The partitions with an offline replica on the broker."""
    leaderless: Flags
    """Those of them whose only or whose leading replica that was."""

    @property
    def severity(self) -> Severity:
        """How bad that is."""
        return Severity.RISK if self.leaderless.any() else Severity.WARN


def stranded(snapshot: Snapshot) -> Flags:
    """Return the replicas that are offline although their brokers are up, so that their log directories must
    have failed. The shape is that of `Partitions.replicas`."""
    table, brokers = snapshot.partitions, snapshot.brokers
    if not (table.offline >= 0).any():
        return np.zeros(table.replicas.shape, np.bool_)
    up = brokers.id[np.asarray((brokers.state == BrokerState.UP) & brokers.answers, np.bool_)]
    offline = (table.replicas[:, :, None] == table.offline[:, None, :]).any(2)
    return np.asarray(offline & np.isin(table.replicas, up), np.bool_)


def failed_dirs(snapshot: Snapshot) -> Iterator[FailedDirs]:
    """Yield the failed directories of each broker that is up."""
    known, brokers, table = snapshot.log_dirs, snapshot.brokers, snapshot.partitions
    failed = known.error_code == STORAGE_ERROR
    if not failed.any():
        return
    up = brokers.id[np.asarray(brokers.state == BrokerState.UP, np.bool_)]
    offline = stranded(snapshot)
    for broker in np.intersect1d(known.broker[failed], up).tolist():
        mine = known.broker == broker
        lost = np.asarray((offline & (table.replicas == broker)).any(1), np.bool_)
        yield FailedDirs(
            broker=broker,
            paths=tuple(known.path[mine & failed].tolist()),
            all=int(mine.sum()),
            lost=lost,
            leaderless=lost & ((table.leader == NO_BROKER) | (table.leader == broker)),
        )


def log_dir_findings(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield a finding for each broker that is up and has failed log directories."""
    internal = snapshot.partitions.internal
    for failed in failed_dirs(snapshot):
        yield Finding(
            FindingKind.LOG_DIR_OFFLINE,
            failed.severity,
            brokers=(failed.broker,),
            paths=failed.paths,
            partitions=int((failed.lost & ~internal).sum()),
            internal_partitions=int((failed.lost & internal).sum()),
            count=int(failed.leaderless.sum()),
        )


def follow(before: Rooms, then: LogDirs, now: LogDirs) -> Rooms:
    """Return the readings with those of `now`, which comes after `then`.

    A broker that is away has no rows. Its readings stay, because its volumes have not been emptied.
    """
    if all(getattr(then, name) is getattr(now, name) for name in now.__struct_fields__):
        return before
    names = ("broker", "path", "received_ms", "usable_bytes", "total_bytes")
    answered, newest_ms = set(now.broker.tolist()), int(now.received_ms.max(initial=UNKNOWN))
    after = {
        key: earlier
        for key, earlier in before.items()
        if key[0] not in answered and earlier[-1].at_ms > newest_ms - LOOK_BACK_MS
    }
    for broker, path, *reading in zip(*(getattr(now, name).tolist() for name in names), strict=True):
        room, earlier = Room(*reading), before.get((broker, path), ())
        if UNKNOWN in (room.usable_bytes, room.total_bytes):
            continue
        if earlier and earlier[-1].total_bytes != room.total_bytes:  # its volume was resized
            earlier = ()
        if not earlier or earlier[-1].at_ms < room.at_ms:
            recent = [
                reading_then for reading_then in earlier if reading_then.at_ms > room.at_ms - LOOK_BACK_MS
            ]
            earlier = (*recent[1 - MOST_READINGS :], room)
        after[broker, path] = earlier
    return after


def full_ms(rooms: Rooms, table: LogDirs, now_ms: int) -> Longs:
    """Return ≈ when each directory in `table` is full if it goes on as in the look-back, as epoch ms.

    UNKNOWN if its room does not shrink, or if too little is known.
    """
    keys = zip(table.broker.tolist(), table.path.tolist(), strict=True)
    return np.array([_full_ms(rooms.get(key, ()), now_ms) for key in keys], np.int64)


def _full_ms(rooms: tuple[Room, ...], now_ms: int) -> int:
    recent = [room for room in rooms if room.at_ms > now_ms - LOOK_BACK_MS]
    if not recent:
        return UNKNOWN
    first, last = recent[0], recent[-1]
    took_ms, shrank = last.at_ms - first.at_ms, first.usable_bytes - last.usable_bytes
    if took_ms < LEAST_MS or shrank <= 0:
        return UNKNOWN
    left_ms = last.usable_bytes * took_ms // shrank
    return last.at_ms + left_ms if left_ms <= MOST_AHEAD_MS else UNKNOWN


def full_by_path(view: View, broker: int) -> dict[str, int]:
    """Return ≈ when the directories of a broker are full (epoch ms), by path, as far as that is known."""
    table = view.snapshot.log_dirs
    known = (table.broker == broker) & (view.dirs_full_ms != UNKNOWN)
    return dict(zip(table.path[known].tolist(), view.dirs_full_ms[known].tolist(), strict=True))
