"""A view as a block of text: headline, brokers, partitions, groups and events, as on the first screen."""

from collections.abc import Sequence
from datetime import tzinfo

from kview.derive.brokers import silence, still_heard
from kview.derive.view import PartitionStatus, View
from kview.language import events, failures, findings, glyphs, verdicts, words
from kview.model.states import BrokerState
from kview.model.units import NO_BROKER, UNKNOWN, UNKNOWN_ID

MAX_PARTITIONS = 20
MAX_GROUPS = 40
MAX_EVENTS = 40
"""The most rows of a block: as many as a person reads. A JSON document has all of them."""

_INDENT = "  "
_GAP = "  "


def block(view: View, name: str, zone: tzinfo | None = None) -> str:
    """Return the view of the cluster called `name` as lines of text.

    Times of day are in `zone`; None is the machine's own.
    """
    parts = [
        _head(view, name, zone),
        _brokers(view),
        _partitions(view),
        _groups(view),
        _events(view, zone),
    ]
    return "\n".join(line for part in parts for line in part) + "\n"


def _head(view: View, name: str, zone: tzinfo | None) -> list[str]:
    seen, head = view.snapshot.observation, view.headline
    controller = words.NONE
    if seen.controller_id != UNKNOWN_ID:
        controller = f"{seen.controller_id} epoch {seen.controller_epoch}"
    facts = [
        f"kview {words.clock(seen.ended_ms, zone)}",
        name,
        words.plural(len(view.snapshot.brokers), "broker"),
        words.plural(head.topics, "topic"),
        words.plural(head.partitions, "partition"),
        f"controller {controller}",
        f"{words.rate(head.requests_per_second)} req/s",
    ]
    return [
        _GAP.join(facts),
        *(
            f"{glyphs.SIGNS[finding.severity]} {findings.sentence(finding, seen.ended_ms)}"
            for finding in head.findings
        ),
    ]


def _brokers(view: View) -> list[str]:
    table, figures = view.snapshot.brokers, view.brokers
    heard = still_heard(view.snapshot, silence(table))
    now_ms = view.snapshot.observation.ended_ms
    rows = []
    for row in range(len(table)):
        state = str(table.state[row])
        if state == BrokerState.UP:
            shown = f"{glyphs.OK} {state}"
        else:
            shown = f"{glyphs.DEAD} {state} {words.age(int(table.since_ms[row]), now_ms)}"
        due = words.fencing(int(figures.fencing_due_ms[row]), now_ms)
        error = failures.of_broker(table.error[row], bool(heard[row]))
        rows.append(
            [
                str(table.rack[row]) or words.NONE,
                str(table.id[row]),
                shown,
                words.count(int(figures.leads[row])),
                words.count(int(figures.replicas[row])),
                words.rate(float(figures.in_rate[row])),
                words.rate(float(figures.out_rate[row])),
                words.size(int(table.disk_bytes[row])),
                " · ".join(note for note in (due, error) if note),
            ]
        )
    head = ["RACK", "BROKER", "STATE", "LEADS", "REPLICAS", "IN REC/S", "OUT REC/S", "DISK", ""]
    return _table(head, rows, left={0, 2, 8})


def _partitions(view: View) -> list[str]:
    table, figures = view.snapshot.partitions, view.partitions
    now_ms = view.snapshot.observation.ended_ms
    rows = []
    for row in view.worst_partitions[:MAX_PARTITIONS].tolist():
        since_ms = max(int(figures.frozen_since_ms[row]), int(figures.leader_silent_since_ms[row]))
        status = figures.status[row]
        shown = verdicts.STATUSES[status]
        if since_ms != UNKNOWN and status in (PartitionStatus.FROZEN, PartitionStatus.SILENT_LEADER):
            shown += f" {words.age(since_ms, now_ms)}"
        rows.append(
            [
                str(table.topic[row]),
                str(table.partition[row]),
                _leader(view, row),
                _replicas(view, row),
                words.count(int(table.high_watermark[row])),
                words.signed(int(figures.uncommitted[row])),
                words.rate(float(figures.in_rate[row])),
                shown,
            ]
        )
    head = ["TOPIC", "P", "LEADER·EPOCH", "REPLICAS", "HIGH WATERMARK", "UNCOMMITTED", "IN REC/S", "STATUS"]
    return _table(head, rows, left={0, 2, 3, 7}, more=len(view.worst_partitions) - len(rows))


def _leader(view: View, row: int) -> str:
    table = view.snapshot.partitions
    leader = int(table.leader[row])
    if leader == NO_BROKER:
        return f"none·{table.leader_epoch[row]}"
    silent = glyphs.DEAD if view.partitions.leader_silent_since_ms[row] != UNKNOWN else ""
    return f"{leader}{silent}·{table.leader_epoch[row]}"


def _replicas(view: View, row: int) -> str:
    table, figures = view.snapshot.partitions, view.partitions
    shown = []
    for at, broker in enumerate(table.replicas[row].tolist()):
        if broker == NO_BROKER:
            continue
        if figures.replica_silent[row, at]:
            mark = glyphs.DEAD
        elif broker == table.leader[row]:
            mark = glyphs.LEADER
        else:
            mark = glyphs.FOLLOWER if figures.in_isr[row, at] else glyphs.OUT_OF_SYNC
        shown.append(f"{broker}{mark}")
    return " ".join(shown)


def _groups(view: View) -> list[str]:
    table, figures = view.snapshot.groups, view.groups
    rows = []
    for row in range(min(len(table), MAX_GROUPS)):
        verdict, reason = verdicts.VERDICTS[figures.verdict[row]], verdicts.of_group(figures, row)
        rows.append(
            [
                str(table.group[row]),
                str(table.state[row]),
                f"{words.count(int(figures.members_active[row]))}/{words.count(int(table.members[row]))}",
                words.at_least(words.count(int(figures.lag[row])), bool(figures.lag_is_bound[row])),
                words.at_least(
                    words.duration(int(figures.behind_ms[row])), bool(figures.behind_is_bound[row])
                ),
                words.rate(float(figures.read_rate[row])),
                words.rate(float(figures.write_rate[row])),
                f"{verdict}: {reason}" if reason else verdict,
            ]
        )
    head = ["GROUP", "STATE", "MEMBERS", "LAG", "BEHIND", "READ REC/S", "WRITE REC/S", "VERDICT"]
    return _table(head, rows, left={0, 1, 7}, more=len(table) - len(rows))


def _events(view: View, zone: tzinfo | None) -> list[str]:
    shown = view.new_events[-MAX_EVENTS:]
    lines = [f"{_INDENT}{words.clock(event.at_ms, zone)}  {events.sentence(event)}" for event in shown]
    return ["EVENTS", *lines] if lines else []


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], left: set[int], more: int = 0) -> list[str]:
    """Return aligned lines under `head`, or no lines without rows. Columns in `left` are left-aligned."""
    if not rows:
        return []
    widths = [max(len(line[at]) for line in (head, *rows)) for at in range(len(head))]
    lines = [
        _GAP.join(
            cell.ljust(width) if at in left else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in (head, *rows)
    ]
    return [*(_INDENT + line for line in lines), *([f"{_INDENT}+ {more:,} more"] if more > 0 else [])]
