"""The impact of a loss: which partitions losing a broker, or a rack, would leave offline or under min ISR.

All broker losses, or all rack losses, are calculated in one go, over columns.
"""

from collections.abc import Iterator

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kview.derive.align import positions, take
from kview.derive.view import PartitionFigures
from kview.model.snapshot import Brokers, Longs, Partitions
from kview.model.units import UNKNOWN_ID

Flags = NDArray[np.bool_]


class Standing(Struct, frozen=True):
    """What partitions have left. Matrices have the shape of `Partitions.replicas`."""

    eligible: Flags
    """Replicas that may lead: in the ISR or the ELR, and on brokers that the cluster has not lost."""
    in_sync: Flags
    required: Longs
    """min(min.insync.replicas, replicas), −1 if the setting is not known."""


class Loss(Struct, frozen=True):
    """What the loss of one domain would do, as rows of `Partitions` in ascending order."""

    domain: int
    leaderless: Longs
    """Partitions that would be left without an eligible leader."""
    under_min: Longs
    """Further partitions that would be left with fewer replicas in sync than required."""

    @property
    def rows(self) -> Longs:
        """All of these."""
        return np.concatenate((self.leaderless, self.under_min))


def standing(table: Partitions, figures: PartitionFigures, stranded: Flags) -> Standing:
    """Return what partitions have left, without what is already lost.

    A silent broker counts as lost unless the rest of the cluster still hears from it, and so do `stranded`
    replicas, whose log directories have failed.
    """
    real = table.replicas >= 0
    lost = (figures.replica_silent & ~figures.replica_unreached) | stranded
    in_sync = figures.in_isr & ~lost
    in_elr = (table.replicas[:, :, None] == table.elr[:, None, :]).any(2) & real & ~lost
    known = table.min_isr != UNKNOWN_ID
    required = np.where(known, np.minimum(table.min_isr.astype(np.int64), real.sum(1)), -1)
    return Standing(in_sync | in_elr, in_sync, required)


def losses(left: Standing, domain: Longs) -> Iterator[Loss]:
    """Yield the loss of each domain that would take something away, in ascending order of domains.

    `domain` has the number of each replica's broker or rack (shape of `replicas`), −1 for none. What is
    already without a leader or under min ISR is not taken away by a loss.
    """
    eligible, in_sync = left.eligible.sum(1), left.in_sync.sum(1)
    enough = (left.required >= 0) & (in_sync >= left.required)
    leaderless, under = np.zeros(domain.shape, np.bool_), np.zeros(domain.shape, np.bool_)
    for column in range(domain.shape[1]):
        at = domain[:, column, None]
        together = domain == at
        first = (at[:, 0] >= 0) & ~together[:, :column].any(1)
        leaders = (together & left.eligible).sum(1)
        leaderless[:, column] = first & (leaders > 0) & (leaders == eligible)
        less = in_sync - (together & left.in_sync).sum(1)
        under[:, column] = first & enough & (less < left.required) & ~leaderless[:, column]
    by_leader, by_isr = _rows(domain, leaderless), _rows(domain, under)
    nothing = np.empty(0, np.int64)
    for number in sorted(by_leader.keys() | by_isr.keys()):
        yield Loss(number, by_leader.get(number, nothing), by_isr.get(number, nothing))


def _rows(domain: Longs, mask: Flags) -> dict[int, Longs]:
    """Return the rows that are marked, by domain."""
    rows, columns = np.nonzero(mask)
    domains = domain[rows, columns]
    order = np.argsort(domains, kind="stable")
    numbers, starts = np.unique(domains[order], return_index=True)
    return dict(zip(numbers.tolist(), np.split(rows[order].astype(np.int64), starts[1:]), strict=False))


def broker_domains(table: Partitions, brokers: Brokers) -> Longs:
    """Return the row of each replica's broker in `brokers`, −1 if the broker is not listed."""
    return np.where(table.replicas >= 0, positions(brokers.id, table.replicas), -1)


def rack_names(brokers: Brokers) -> list[str]:
    """Return the names of racks, sorted."""
    return sorted({rack for rack in brokers.rack.tolist() if rack})


def rack_domains(table: Partitions, brokers: Brokers) -> Longs:
    """Return the number of each replica's rack as an index of `rack_names`, −1 if it has none."""
    numbers = {name: number for number, name in enumerate(rack_names(brokers))}
    racks = np.array([numbers.get(rack, -1) for rack in brokers.rack.tolist()], np.int64)
    return take(racks, broker_domains(table, brokers), -1)
