"""The replicas that one broker has."""

from dataclasses import dataclass

import numpy as np

from kview.derive.view import View
from kview.model.snapshot import Longs


@dataclass(frozen=True, slots=True)
class BrokerReplicas:
    """A broker's replicas: rows of `snapshot.partitions`, and the broker's place in each replica list."""

    rows: Longs
    positions: Longs


def broker_replicas(view: View, broker: int, rows: Longs) -> BrokerReplicas:
    """Return the replicas that a broker has of the partitions in `rows`, in that order."""
    table = view.snapshot.partitions
    mine = table.replicas == broker
    has = mine.any(1)
    kept = rows[has[rows]]
    positions = mine[kept].argmax(1).astype(np.int64) if mine.shape[1] else np.zeros(len(kept), np.int64)
    return BrokerReplicas(kept, positions)


def broker_row(view: View, broker: int) -> int | None:
    """Return the row of a broker in `snapshot.brokers`, or None if it is not listed."""
    rows = np.flatnonzero(view.snapshot.brokers.id == broker)
    return int(rows[0]) if len(rows) else None
