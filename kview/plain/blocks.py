"""A view as a block of text: headline, brokers, partitions, groups and events, as on the first screen."""

from collections.abc import Sequence
from datetime import tzinfo

from kview.derive.brokers.silence import answering
from kview.derive.groups.alike import Fold, folded
from kview.derive.groups.unheard import unheard
from kview.derive.view import PartitionStatus, View
from kview.language import (
    brokers,
    events,
    failures,
    findings,
    glyphs,
    incidents,
    nouns,
    reassignments,
    replicas,
    verdicts,
    words,
)
from kview.language import unheard as whose
from kview.model.states import BrokerState
from kview.model.units import NO_BROKER, UNKNOWN, UNKNOWN_ID

MAX_PARTITIONS = 20
MAX_GROUPS = 40
MAX_EVENTS = 40
"""The most rows of a block: as many as a person reads. A JSON document has all of them."""

ENDED_SHOWN_MS = 120_000
"""How long an incident is still reported after its end."""

_INDENT = "  "
_GAP = "  "


def block(view: View, name: str, zone: tzinfo | None = None) -> str:
    """Return the view of the cluster called `name` as lines of text, in which every character is printable.

    Times of day are in `zone`; None is the machine's own.
    """
    parts = [
        _head(view, name, zone),
        _brokers(view),
        _partitions(view),
        _groups(view),
        _incidents(view),
        _events(view, zone),
    ]
    return "\n".join(glyphs.printable(line) for part in parts for line in part) + "\n"


def _head(view: View, name: str, zone: tzinfo | None) -> list[str]:
    seen, head = view.snapshot.observation, view.headline
    facts = [
        f"kview {words.clock(seen.ended_ms, zone)}",
        name,
        _answering(view),
        words.at_least(words.plural(head.topics, "topic"), head.topics_are_bound),
        words.at_least(words.plural(head.partitions, "partition"), head.topics_are_bound),
        nouns.active_controller(seen.controller_id, seen.controller_epoch),
        f"{words.rate(head.requests_per_second)} req/s",
    ]
    return [
        _GAP.join(facts),
        *(
            f"{glyphs.SIGNS[finding.severity]} {findings.sentence(finding, seen.ended_ms)}"
            for finding in head.findings
        ),
    ]


def _answering(view: View) -> str:
    """Return the number of brokers, and how many of them answer if not all do."""
    counts = answering(view)
    return words.answering(counts.answer, counts.all)


def _brokers(view: View) -> list[str]:
    table, figures = view.snapshot.brokers, view.brokers
    now_ms = view.snapshot.observation.ended_ms
    rows = []
    for row in range(len(table)):
        said = brokers.state(table, figures, row, now_ms)
        due = brokers.fencing(figures, row, now_ms)
        error = failures.of_broker(table.error[row], bool(figures.unreached[row]))
        rows.append(
            [
                str(table.rack[row]) or words.NONE,
                str(table.id[row]),
                f"{said.sign} {said.text}",
                words.count(int(figures.leads[row])),
                words.count(int(figures.replicas[row])),
                words.rate_at(figures.in_rate, figures.in_is_bound, row),
                words.rate_at(figures.out_rate, figures.out_is_bound, row),
                _latency(view, row),
                words.size(int(table.disk_bytes[row])),
                " · ".join(note for note in (due, error) if note),
            ]
        )
    head = ["RACK", "BROKER", "STATE", "LEADS", "REPLICAS", "IN REC/S", "OUT REC/S", "LATENCY", "DISK", ""]
    return _table(head, rows, left={0, 2, 9})


def _latency(view: View, row: int) -> str:
    """Return how long the broker takes to answer, `–` if it does not answer."""
    table = view.snapshot.brokers
    return words.latency(int(table.latency_us[row])) if table.state[row] == BrokerState.UP else words.NONE


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
        if status == PartitionStatus.REASSIGNING:
            shown = reassignments.note(view, row)
        if status == PartitionStatus.UNREAD:
            shown += f" for {words.age(int(table.high_watermark_ms[row]), now_ms)}"
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
    epoch = words.setting(int(table.leader_epoch[row]))
    leader = int(table.leader[row])
    if leader in (NO_BROKER, UNKNOWN_ID):
        return f"{'none' if leader == NO_BROKER else words.NONE}·{epoch}"
    return f"{leader}{replicas.leader_sign(view.snapshot.partitions, view.partitions, row)}·{epoch}"


def _replicas(view: View, row: int) -> str:
    table = view.snapshot.partitions
    shown = []
    for at, broker in enumerate(table.replicas[row].tolist()):
        if broker == NO_BROKER:
            continue
        shown.append(f"{broker}{replicas.sign(table, view.partitions, row, at)}")
    return " ".join(shown)


def _groups(view: View) -> list[str]:
    table, figures = view.snapshot.groups, view.groups
    rows = []
    listed = [row for row in figures.place.argsort().tolist() if not figures.ignored[row]]
    entries = folded(view, listed, MAX_GROUPS)
    for row in entries[:MAX_GROUPS]:
        if isinstance(row, Fold):
            rows.append(_fold(view, row))
            continue
        age_ms, lost = int(figures.verdict_age_ms[row]), int(figures.lost[row])
        verdict, reason = verdicts.name(figures.verdict[row], age_ms, lost), verdicts.of_group(figures, row)
        rows.append(
            [
                str(table.group[row]),
                nouns.members(
                    str(table.type[row]),
                    str(table.state[row]),
                    int(figures.members_active[row]),
                    int(table.members[row]),
                ),
                words.at_least(words.count(int(figures.lag[row])), bool(figures.lag_is_bound[row])),
                verdicts.behind(figures, row),
                words.rate_at(figures.read_rate, figures.read_is_bound, row),
                words.rate_at(figures.write_rate, figures.write_is_bound, row),
                f"{verdict}: {reason}" if reason else verdict,
            ]
        )
    missing = whose.sentence(unheard(view.snapshot.observation))
    note = [f"{_INDENT}groups: {missing}"] if missing else []
    head = ["GROUP", "STATE", "LAG", "BEHIND", "READ REC/S", "WRITE REC/S", "VERDICT"]
    lines = _table(head, rows, left={0, 1, 6}, more=len(entries) - len(rows))
    if hidden := len(table) - len(listed):
        lines.append(f"{_INDENT}{words.plural(hidden, 'group')} hidden by --ignore-group")
    return [*lines, *note]


def _fold(view: View, fold: Fold) -> list[str]:
    """Return the cells of groups that do the same: their lag together, and the worst of the rest."""
    groups = fold.together(view.groups)
    verdict = verdicts.name(fold.alike.verdict, groups.age_ms, groups.lost)
    reason = verdicts.of_alike(groups)
    return [
        verdicts.of_fold(len(fold.rows), str(view.snapshot.groups.group[fold.first])),
        words.NONE,
        words.at_least(words.count(groups.lag), groups.lag_is_bound),
        verdicts.behind(view.groups, groups.furthest),
        words.NONE,
        words.NONE,
        f"{verdict}: {reason}" if reason else verdict,
    ]


def _incidents(view: View) -> list[str]:
    """Return the incidents that go on, or have just ended, each with what followed from it."""
    now_ms = view.snapshot.observation.ended_ms
    lines = []
    for incident in view.incidents:
        if incident.is_open or now_ms - incident.ended_ms < ENDED_SHOWN_MS:
            lines.append(f"{_INDENT}{glyphs.SIGNS[incident.severity]} {incidents.sentence(incident, now_ms)}")
            lines.append(f"{_INDENT}  {f' {glyphs.DOT} '.join(incidents.consequences(incident))}")
    return ["INCIDENTS", *lines] if lines else []


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
