"""Log directories that have failed while their brokers run, and the replicas that were in them."""

from collections.abc import Iterator

import numpy as np
from msgspec import Struct

from kview.model.events import Severity
from kview.model.failures import STORAGE_ERROR
from kview.model.findings import Finding, FindingKind
from kview.model.snapshot import Flags, Snapshot
from kview.model.states import BrokerState
from kview.model.units import NO_BROKER


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
            Severity.RISK if failed.leaderless.any() else Severity.WARN,
            brokers=(failed.broker,),
            paths=failed.paths,
            partitions=int((failed.lost & ~internal).sum()),
            internal_partitions=int((failed.lost & internal).sum()),
            count=int(failed.leaderless.sum()),
        )
