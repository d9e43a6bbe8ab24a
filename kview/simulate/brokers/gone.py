"""Counts the records that a partition's leader does not have, although an earlier leader had them."""

from collections.abc import Iterable
from typing import NamedTuple

from kview.simulate.brokers.replica import Replica


class Gone(NamedTuple):
    """Records that are gone, and how many of them were committed."""

    records: int
    committed: int


def gone(leader: Replica, replicas: Iterable[Replica]) -> Gone:
    """Return what the replicas, on whatever broker, still have on disk and will truncate when they follow the
    leader."""
    records = committed = 0
    for replica in replicas:
        log = replica.log
        if log.spans[-1:] == leader.log.spans[-1:]:
            continue  # It follows, as nearly all do.
        agreed = max(log.agreement(leader.log), log.start)
        records = max(records, log.end - agreed)
        committed = max(committed, min(log.end, replica.high_watermark) - agreed)
    return Gone(records, committed)
