"""Kafka Connect's workers: which connectors and tasks each of them runs."""

import struct
import sys
from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby
from operator import itemgetter

from kview.model.units import CONNECTOR_TASK
from kview.observe.groups.members import MOST_ASSIGNMENTS, Owned, numbers
from kview.wire.primitives import MalformedBytes, Reader


@lru_cache(MOST_ASSIGNMENTS)
def connector_tasks(metadata: bytes, assignment: bytes) -> Owned:
    """Return a Connect worker's connectors with the numbers of their tasks, CONNECTOR_TASK for the connector
    itself. Returns () if the bytes are not valid.

    An assignment of version 1 or later (KIP-415) only says what the last rebalance gave to the worker and
    took from it. What the worker had before is in the metadata with which it joined.
    """
    try:
        version, given, revoked = _assignment(Reader(memoryview(assignment)))
        had: _Pairs = set()
        if version:
            joined = Reader(memoryview(metadata))
            joined.int16()  # version
            joined.nullable_string()  # the worker's URL
            joined.int64()  # offset of the configuration
            if (before := joined.nullable_bytes()) is not None:
                had = _assignment(Reader(memoryview(before)))[1]
    except (MalformedBytes, struct.error, UnicodeDecodeError):
        return ()
    has = sorted((had - revoked) | given)
    return tuple((name, tuple(task for _, task in tasks)) for name, tasks in groupby(has, itemgetter(0)))


_Pairs = set[tuple[str, int]]


def _assignment(reader: Reader) -> tuple[int, _Pairs, _Pairs]:
    """Return an assignment's version, and what is assigned and revoked, as pairs of connector and task."""
    version = reader.int16()
    reader.int16()  # error
    reader.nullable_string()  # leader
    reader.nullable_string()  # the leader's URL
    reader.int64()  # offset of the configuration
    return version, _pairs(reader), _pairs(reader) if version else set()


def _pairs(reader: Reader) -> _Pairs:
    pairs: _Pairs = set()
    for _ in range(reader.array_length(compact=False)):
        name = sys.intern(reader.nullable_string() or "")
        pairs.update((name, reader.int32()) for _ in range(reader.array_length(compact=False)))
    return pairs


def runs_of(tasks: Owned) -> str:
    """Return what a worker runs, connector by connector."""
    return "; ".join(_connector(name, numbers) for name, numbers in tasks)


def _connector(name: str, tasks: Sequence[int]) -> str:
    """Return what a worker runs of a connector: `jdbc-sink: connector, tasks 0, 1`."""
    own = [number for number in tasks if number != CONNECTOR_TASK]
    parts = ["connector"] if CONNECTOR_TASK in tasks else []
    parts += [f"task{'s' if len(own) > 1 else ''} {numbers(own)}"] if own else []
    return f"{name}: {', '.join(parts)}"
