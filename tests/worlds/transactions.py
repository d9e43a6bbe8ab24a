"""Open transactions in a world, as an observer sees them."""

import numpy as np
from msgspec.structs import replace

from kview.model.snapshot import Snapshot, Transactions
from kview.model.states import TransactionState
from kview.model.units import NO_BROKER, UNKNOWN
from kview.school.camera.columns import table

APP, PRODUCER, TIMEOUT_MS = "payments-app", 4_711, 900_000


def holding(
    seen: Snapshot,
    topic: str,
    partition: int,
    stable: int,
    since_ms: int,
    state: str = TransactionState.ONGOING,
    error: int = 0,
) -> Snapshot:
    """Return a snapshot in which a transaction has held a partition's last stable offset since then.

    `error` is what the leader answers if it does not tell whose it is.
    """
    partitions = seen.partitions
    row = np.flatnonzero((partitions.topic == topic) & (partitions.partition == partition))
    last_stable, since = partitions.last_stable.copy(), partitions.last_stable_since_ms.copy()
    last_stable[row], since[row] = stable, since_ms
    known = state != TransactionState.HANGING
    facts = (
        PRODUCER,
        3,
        stable,
        seen.observation.ended_ms,
        APP if known else "",
        1 if known else NO_BROKER,
        state,
    )
    times = (since_ms, TIMEOUT_MS) if known else (UNKNOWN, UNKNOWN)
    if error:
        facts = (UNKNOWN, -1, UNKNOWN, UNKNOWN, "", NO_BROKER, TransactionState.UNKNOWN)
        times = (UNKNOWN, UNKNOWN)
    return replace(
        seen,
        partitions=replace(partitions, last_stable=last_stable, last_stable_since_ms=since),
        transactions=table(
            Transactions, [(topic, partition, *facts, *times, error, seen.observation.ended_ms)]
        ),
    )
