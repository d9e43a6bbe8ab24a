"""The groups of a JSON document."""

from collections.abc import Iterator
from functools import cache

import numpy as np

from kview.derive.view import GroupFigures, OffsetFigures, Reason, Verdict, View
from kview.language import failures, verdicts
from kview.model.snapshot import Strings
from kview.model.units import NO_OFFSET, UNKNOWN
from kview.plain import schema_groups
from kview.plain.columns import Columns, Row, cause, known, optional, rows


def groups(view: View) -> list[schema_groups.Group]:
    """Return the groups of a view, each with its partitions."""
    table, figures = view.snapshot.groups, view.groups
    seen = view.snapshot
    names = table.group.tolist()
    columns: Columns = {
        "group": table.group,
        "type": table.type,
        "state": table.state,
        "coordinator": table.coordinator,
        "assignment_strategy": optional(table.assignment_strategy),
        "epoch": table.epoch,
        "assignment_epoch": table.assignment_epoch,
        "members": table.members,
        "members_active": figures.members_active,
        "severity": figures.severity,
        "verdict": [
            _verdict(figures, row, verdicts.of_group(figures, row), age_ms)
            for row, age_ms in enumerate(figures.verdict_age_ms.tolist())
        ],
        "verdict_age_ms": figures.verdict_age_ms,
        "lost_records": figures.lost,
        "lost_is_bound": figures.lost_is_bound,
        "lag_records": figures.lag,
        "lag_is_bound": figures.lag_is_bound,
        "behind_ms": figures.behind_ms,
        "behind_is_bound": figures.behind_is_bound,
        "behind_is_estimate": figures.behind_is_estimate,
        "read_records_per_second": figures.read_rate,
        "write_records_per_second": figures.write_rate,
        "age_ms": figures.age_ms,
        "ignored": figures.ignored,
        "error": [
            cause(kind, code, failures.of_group(kind, code, coordinator))
            for kind, code, coordinator in zip(
                table.error.tolist(), table.error_code.tolist(), table.coordinator.tolist(), strict=True
            )
        ],
        "member_list": _by_group(names, seen.members.group, _members(view)),
        "partitions": _by_group(names, seen.offsets.group, _group_partitions(view)),
        "share_partitions": _by_group(names, seen.share_offsets.group, _share_partitions(view)),
    }
    return rows(schema_groups.Group, columns)


def _by_group(names: list[str], groups: Strings, group_rows: list[Row]) -> list[list[Row]]:
    """Return the rows of each group. `groups` has the group of each of the rows."""
    by_group: dict[str, list[Row]] = {name: [] for name in names}
    for name, row in zip(groups.tolist(), group_rows, strict=True):
        if name in by_group:
            by_group[name].append(row)
    return list(by_group.values())


def _members(view: View) -> list[schema_groups.GroupMember]:
    table = view.snapshot.members
    columns: Columns = {
        "member_id": table.member_id,
        "client_id": table.client_id,
        "host": table.host,
        "rack": optional(table.rack),
        "epoch": table.epoch,
        "assigned": table.assigned,
        "target": table.target,
        "runs": optional(table.runs),
    }
    return rows(schema_groups.GroupMember, columns)


def _share_partitions(view: View) -> list[schema_groups.SharePartition]:
    table = view.snapshot.share_offsets
    columns: Columns = {
        "topic": table.topic,
        "partition": table.partition,
        "start_offset": table.start_offset,
        "lag_records": table.lag,
    }
    return rows(schema_groups.SharePartition, columns)


def _group_partitions(view: View) -> list[schema_groups.GroupPartition]:
    table, figures = view.snapshot.offsets, view.offsets
    columns: Columns = {
        "topic": table.topic,
        "partition": table.partition,
        "owner": optional(table.owner),
        "committed": np.where(table.committed == NO_OFFSET, UNKNOWN, table.committed),
        "log_end_offset": figures.log_end_offset,
        "log_end_offset_ms": figures.log_end_ms,
        "lag_records": figures.lag,
        "lag_is_bound": figures.lag_is_bound,
        "behind_ms": figures.behind_ms,
        "behind_is_bound": figures.behind_is_bound,
        "behind_is_estimate": figures.behind_is_estimate,
        "read_records_per_second": figures.read_rate,
        "write_records_per_second": figures.write_rate,
        "verdict": list(_offset_verdicts(figures)),
        "lost_records": figures.lost,
        "lost_is_bound": figures.lost_is_bound,
    }
    return rows(schema_groups.GroupPartition, columns)


def _offset_verdicts(figures: OffsetFigures) -> Iterator[schema_groups.GroupVerdict]:
    """Yield the verdicts. All verdicts that are ok share one struct, because there may be very many."""
    columns = figures.verdict.tolist(), figures.lost.tolist()
    for row, (verdict, lost) in enumerate(zip(*columns, strict=True)):
        if verdict == Verdict.OK and not lost:
            yield _ok()
        else:
            yield _verdict(figures, row, verdicts.of_offset(figures, row))


@cache
def _ok() -> schema_groups.GroupVerdict:
    return schema_groups.GroupVerdict(Verdict.OK, verdicts.VERDICTS[Verdict.OK], None, None, None)


def _verdict(
    figures: GroupFigures | OffsetFigures, row: int, why: str, age_ms: int = UNKNOWN
) -> schema_groups.GroupVerdict:
    kind, reason = Verdict(figures.verdict[row]), Reason(figures.reason[row])
    text = verdicts.name(kind, age_ms, int(figures.lost[row]))
    return schema_groups.GroupVerdict(
        kind=kind,
        text=f"{text}: {why}" if why else text,
        reason=None if reason is Reason.NONE else reason,
        reason_ms=known(int(figures.reason_ms[row])),
        reason_count=known(int(figures.reason_count[row])),
    )
