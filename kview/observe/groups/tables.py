"""The tables of groups, their members and their offsets, made of the facts known about each group."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct, field

from kview.model.snapshot import Groups, Longs, Members, Offsets, ShareOffsets, empty
from kview.model.units import NO_OFFSET, UNKNOWN, UNKNOWN_ID
from kview.observe.groups.facts import CommitRows, GroupFacts, ShareRow
from kview.observe.groups.members import MemberFacts
from kview.observe.layout import strings


def rows_of(known: GroupFacts, alike: dict[object, CommitRows] | None = None) -> CommitRows:
    """Return a group's rows of the offsets table, for the partitions it has committed or owns, in order.

    The same object is returned until the rows change. `alike` has the rows of groups without members, which
    are the same for all that commit on the same partitions.
    """
    topics = known.commits.topics if known.commits else ()
    key = (tuple((t.topic, t.partition.tobytes()) for t in topics), known.members)
    if known.rows is None or known.rows.key != key:
        shared = alike.get(key[0]) if alike is not None and not known.members else None
        known.rows = shared or _new_rows(known, key)
    if alike is not None and not known.members:
        alike[key[0]] = known.rows
    return known.rows


def _new_rows(known: GroupFacts, key: object) -> CommitRows:
    topics = known.commits.topics if known.commits else ()
    places: dict[tuple[str, int], int] = {}
    at = 0
    for t in topics:
        name = sys.intern(t.topic)
        places.update({(name, p): at + i for i, p in enumerate(t.partition.tolist())})
        at += len(t.partition)
    owners = {
        (topic, p): member.id for member in known.members for topic, parts in member.owned for p in parts
    }
    keys = sorted(places.keys() | owners.keys())
    return CommitRows(
        key,
        strings([topic for topic, _ in keys]),
        np.array([p for _, p in keys], np.int32),
        strings([owners.get(k, "") for k in keys]),
        np.array([places.get(k, -1) for k in keys], np.int32),
    )


def _committed(known: GroupFacts, rows: CommitRows) -> Longs:
    out = np.full(len(rows.place), NO_OFFSET, np.int64)
    if known.commits and known.commits.topics:
        offsets = np.concatenate([np.where(t.error == 0, t.offset, NO_OFFSET) for t in known.commits.topics])
        there = rows.place >= 0
        out[there] = offsets[rows.place[there]]
    return out


class GroupTables(Struct):
    """The tables of the groups.

    Each observation rebuilds the tables, and shares the columns that are unchanged.
    """

    groups: Groups = field(default_factory=lambda: empty(Groups))
    members: Members = field(default_factory=lambda: empty(Members))
    offsets: Offsets = field(default_factory=lambda: empty(Offsets))
    share_offsets: ShareOffsets = field(default_factory=lambda: empty(ShareOffsets))
    _share: tuple[Any, ...] = ()
    _member_facts: tuple[Any, ...] = ()
    _rows: tuple[CommitRows, ...] = ()
    _made_of: tuple[tuple[Any, ...], ...] = ()
    """The names, times, commits and members of which the table of offsets was made."""

    def update(self, facts: Mapping[str, GroupFacts]) -> None:
        """Rebuild the tables from `facts`. Those of members and share offsets stay if unchanged."""
        ordered = [facts[name] for name in sorted(facts)]
        self.groups = _groups(ordered)
        members = tuple((g.group, g.members) for g in ordered)
        if members != self._member_facts:
            self._member_facts = members
            self.members = _members(members)
        share = tuple((g.group, g.share_ms, g.share) for g in ordered if g.share)
        if share != self._share:
            self._share = share
            self.share_offsets = _share_offsets(share)
        self.update_offsets(facts)

    def update_offsets(self, facts: Mapping[str, GroupFacts]) -> None:
        """Rebuild the table of offsets alone, if anything in it has changed."""
        ordered = [facts[name] for name in sorted(facts)]
        made_of = tuple((k.group, k.committed_ms, k.commits, k.members) for k in ordered)
        pairs = zip(made_of, self._made_of, strict=False)
        if len(made_of) == len(self._made_of) and all(
            a[:2] == b[:2] and a[2] is b[2] and a[3] is b[3] for a, b in pairs
        ):
            return
        same = [made[0] for made in made_of] == [made[0] for made in self._made_of]
        self._made_of = made_of
        alike: dict[object, CommitRows] = {}
        rows = tuple(rows_of(known, alike) for known in ordered)
        if not rows:
            self.offsets, self._rows = empty(Offsets), ()
            return
        counts = [len(r.topic) for r in rows]
        values = np.concatenate([_committed(k, r) for k, r in zip(ordered, rows, strict=True)])
        times = np.repeat(np.array([k.committed_ms for k in ordered], np.int64), counts)
        # Groups share rows, so those of a place may be the same although the group is another one.
        same = same and all(a is b for a, b in zip(rows, self._rows, strict=True))
        if same and len(self.offsets) == len(values):
            old = self.offsets
            self.offsets = Offsets(old.group, old.topic, old.partition, values, old.owner, times)
            return
        self._rows = rows
        self.offsets = Offsets(
            np.repeat(strings([k.group for k in ordered]), counts),
            np.concatenate([r.topic for r in rows]),
            np.concatenate([r.partition for r in rows]),
            values,
            np.concatenate([r.owner for r in rows]),
            times,
        )


def _groups(ordered: Sequence[GroupFacts]) -> Groups:
    return Groups(
        group=strings([g.group for g in ordered]),
        type=strings([g.type for g in ordered]),
        state=strings([g.state for g in ordered]),
        coordinator=np.array([g.coordinator for g in ordered], np.int32),
        assignment_strategy=strings([g.assignment_strategy for g in ordered]),
        epoch=np.array([g.epoch for g in ordered], np.int32),
        assignment_epoch=np.array([g.assignment_epoch for g in ordered], np.int32),
        topology_epoch=np.array([g.topology_epoch for g in ordered], np.int32),
        subtopologies=strings([g.subtopologies for g in ordered]),
        members=np.array(
            [len(g.members) if g.described_ms != UNKNOWN else UNKNOWN_ID for g in ordered], np.int32
        ),
        received_ms=np.array([g.received_ms for g in ordered], np.int64),
        error=strings([g.cause.kind.value for g in ordered]),
        error_code=np.array([0 if g.cause.code == UNKNOWN_ID else g.cause.code for g in ordered], np.int32),
        unread=np.array([g.unread for g in ordered], np.bool_),
    )


def _members(facts: Sequence[tuple[str, tuple[MemberFacts, ...]]]) -> Members:
    flat = [(group, member) for group, members in facts for member in members]
    return Members(
        group=strings([group for group, _ in flat]),
        member_id=strings([member.id for _, member in flat]),
        client_id=strings([member.client_id for _, member in flat]),
        host=strings([member.host for _, member in flat]),
        rack=strings([member.rack for _, member in flat]),
        epoch=np.array([member.epoch for _, member in flat], np.int32),
        assigned=np.array([member.assigned for _, member in flat], np.int32),
        target=np.array([member.target for _, member in flat], np.int32),
        to_get=np.array([member.to_get for _, member in flat], np.int32),
        to_give_back=np.array([member.to_give_back for _, member in flat], np.int32),
        runs=strings([member.runs for _, member in flat]),
    )


def _share_offsets(facts: Sequence[tuple[str, int, tuple[ShareRow, ...]]]) -> ShareOffsets:
    flat = [(group, at_ms, row) for group, at_ms, rows in facts for row in rows]
    return ShareOffsets(
        group=strings([group for group, _, _ in flat]),
        topic=strings([row.topic for _, _, row in flat]),
        partition=np.array([row.partition for _, _, row in flat], np.int32),
        start_offset=np.array([row.start_offset for _, _, row in flat], np.int64),
        lag=np.array([row.lag for _, _, row in flat], np.int64),
        received_ms=np.array([at_ms for _, at_ms, _ in flat], np.int64),
    )
