"""Groups of the kinds that a world has not, as an observer sees them."""

from typing import Any

from msgspec.structs import replace

from kview.model.snapshot import Groups, Members, ShareOffsets, Snapshot, Table, columns
from kview.model.states import GroupState, GroupType
from kview.model.units import UNKNOWN, UNKNOWN_ID
from kview.school.camera.columns import table

SHARE, STREAMS, CONNECT, CONSUMER = "share-orders", "streams-totals", "connect-cluster", "consumer-mails"
UNTOLD = (UNKNOWN_ID,) * 3
"""What nobody says that a member is to have, to get and to give back."""


def of_every_kind(seen: Snapshot, backlog: int = 40, members: int = 1) -> Snapshot:
    """Return a snapshot with a share group of that backlog, a streams group, Connect's workers and a consumer
    group that moves a partition from one member to another."""
    now_ms = seen.observation.ended_ms
    groups = [
        _group(SHARE, GroupType.SHARE, members, now_ms, "simple", 3),
        _group(STREAMS, GroupType.STREAMS, 1, now_ms, "", 5),
        _group(CONNECT, GroupType.CONNECT, 1, now_ms, "sessioned", UNKNOWN_ID),
        _group(CONSUMER, GroupType.CONSUMER, 2, now_ms, "uniform", 8, GroupState.RECONCILING),
    ]
    joined = [
        *[(SHARE, "s1", "share-app", "10.0.0.1", "", 3, 2, *UNTOLD, "orders: 0, 1")] * members,
        (STREAMS, "t1", "totals-app", "10.0.0.2", "R1", 5, 2, 2, 0, 0, "active 0_0, 0_1; standby 1_0"),
        (CONNECT, "w1", "worker-1", "10.0.0.3", "", UNKNOWN_ID, 3, *UNTOLD, "sink: connector, tasks 0, 1"),
        (CONSUMER, "m1", "mails-1", "10.0.0.4", "R1", 8, 3, 2, 0, 1, ""),
        (CONSUMER, "m2", "mails-2", "10.0.0.5", "R2", 7, 1, 2, 1, 0, ""),
    ]
    offsets = [
        (SHARE, "orders", 0, 160, backlog, now_ms),
        (SHARE, "orders", 1, UNKNOWN, UNKNOWN, now_ms) if backlog == UNKNOWN else
        (SHARE, "orders", 1, 170, 0, now_ms),
    ]  # fmt: skip
    return replace(
        seen,
        groups=_sorted(Groups, _rows(seen.groups) + groups),
        members=_sorted(Members, _rows(seen.members) + joined),
        share_offsets=table(ShareOffsets, offsets),
    )


def _group(
    name: str,
    kind: GroupType,
    members: int,
    now_ms: int,
    assignor: str,
    epoch: int,
    state: GroupState = GroupState.STABLE,
) -> tuple[Any, ...]:
    state = state if members else GroupState.EMPTY
    topology = (2, "0: orders; 1: totals-repartition") if kind == GroupType.STREAMS else (UNKNOWN_ID, "")
    return (name, kind, state, 1, assignor, epoch, epoch, *topology, members, now_ms, "", 0, False)


def _rows(of: Table) -> list[tuple[Any, ...]]:
    return list(zip(*(getattr(of, name).tolist() for name in columns(type(of))), strict=True))


def _sorted(kind: Any, rows: list[tuple[Any, ...]]) -> Any:
    return table(kind, sorted(rows))
