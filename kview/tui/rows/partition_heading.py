"""What a partition's screen says first: its leader, its ISR, and what is wrong with it."""

from textwrap import wrap

from kview.derive.lookup import replication
from kview.derive.partitions.log import PartitionLog
from kview.derive.partitions.retention import removal, retention
from kview.derive.transactions.findings import held_partition
from kview.derive.view import PartitionStatus, View
from kview.language import failures, findings, glyphs, reassignments, verdicts, words
from kview.language import topics as topic_words
from kview.language.partition_log import meaning
from kview.model.findings import Finding, FindingKind
from kview.model.units import UNKNOWN, UNKNOWN_ID
from kview.tui.options import Options
from kview.tui.rows.common import ROLES, STATUS_SIGNS, leader_epoch, replicas
from kview.tui.text import TITLE_MARGIN, Line, Role, Span, joined, line, line_width, middle, width

MOST_NAME = 40
"""A longer name is cut in its middle, so that what is wrong stays in sight."""


def unlisted_heading(topic: str, partition: int, cells: int) -> Line:
    """Return the line about a partition that the cluster no longer lists."""
    name = _name(topic, partition, cells)
    return line(Span(name, Role.BRIGHT), Span(" is no longer listed", Role.WARN))


def _name(topic: str, partition: int, cells: int) -> str:
    return f"{middle(topic, min(MOST_NAME, cells // 3))}-{partition}"


def partition_heading(
    view: View, log: PartitionLog, options: Options, now_ms: int, first_ms: int, cells: int
) -> list[Line]:
    """Return the lines about a partition: its name with its state, what that means, and as many of its
    figures as fit into `cells`.

    `first_ms` is the timestamp of its first record, UNKNOWN if that is not known.
    """
    table, figures, at = view.snapshot.partitions, view.partitions, log.row
    topic = str(table.topic[at])
    name = _name(topic, int(table.partition[at]), cells)
    adding, removing = int(figures.being_added[at].sum()), int(figures.being_removed[at].sum())
    facts = [f"ISR {int(figures.isr_count[at])} of {int(replication(table)[at]) - removing}"]
    facts[0] += f", {adding} being added" if adding else ""
    facts[0] += f", {removing} being removed" if removing else ""
    if table.min_isr[at] != UNKNOWN_ID:
        facts.append(f"min.insync.replicas {int(table.min_isr[at])}")
    facts.append(f"in {words.rate(float(figures.in_rate[at]))} rec/s")
    facts.append(f"uncommitted {words.signed(int(figures.uncommitted[at]))}")
    rule = retention(view.snapshot.topic_configs, topic)
    kept = topic_words.retention(rule)
    facts += [kept if kept == "compacted" else f"keeps {kept}"] if kept != words.NONE else []
    first = line(
        Span(name, Role.BRIGHT),
        "  ",
        *_state(view, at, options, now_ms),
    )
    placed = line(
        Span("  leader ", Role.DIM),
        *leader_epoch(view, at),
        Span("   replicas ", Role.DIM),
        *replicas(view, at),
    )
    if first_ms != UNKNOWN:
        size = max((each.size_bytes for each in log.replicas if each.is_leader), default=UNKNOWN)
        records = UNKNOWN if UNKNOWN in (log.log_start, log.log_end) else log.log_end - log.log_start
        found = removal(rule, first_ms, size, records, float(figures.in_rate[at]), now_ms)
        first = _with_note(first, topic_words.removal(found, now_ms), cells - TITLE_MARGIN)
    if line_width(placed) + 3 + sum(width(fact) + 3 for fact in facts) > cells:
        facts = [fact.replace("min.insync.replicas", "min ISR") for fact in facts]
    parts = [(*placed, Span(f"   {facts[0]}", Role.DIM)), *(line(Span(fact, Role.DIM)) for fact in facts[1:])]
    made = [first, joined(parts, Span(f" {glyphs.DOT} ", Role.DIM), cells)]
    status = PartitionStatus(figures.status[at])
    if moved := reassignments.sentence(view, at):
        made.insert(1, line("  ", Span(f"{glyphs.ARROW} {moved}", Role.TEXT)))
    if held := held_partition(view.snapshot, view.offsets, at):
        made[1:1] = held_back(held, now_ms, cells)
    if means := meaning(status, log, int(table.min_isr[at])):
        made.insert(1, line("  ", Span(f"{glyphs.ARROW} {means}", ROLES[figures.severity[at]])))
    return made


def held_back(held: Finding, now_ms: int, cells: int) -> list[Line]:
    """Return whose transaction holds back the last stable offset, and the command that ends a hanging one."""

    def lines(text: str, begin: str, role: Role) -> list[Line]:
        parts = wrap(text, max(MOST_NAME, cells - width(begin) - 1), break_on_hyphens=False)
        return [
            line(Span((" " * width(begin) if number else begin) + part, role))
            for number, part in enumerate(parts)
        ]

    made = lines(findings.sentence(held, now_ms), f"  {glyphs.ARROW} ", ROLES[held.severity])
    if held.transaction is not None and (holder := findings.holder(held.transaction)):
        made += lines(holder, "    ", Role.DIM)
    if held.kind is FindingKind.HANGING_TRANSACTION and held.transaction is not None:
        made += lines(findings.abort_command(held.transaction), "    ", Role.TEXT)
    return made


def _with_note(left: Line, note: str, cells: int) -> Line:
    """Return the line with a note behind it, without the note if there is no room."""
    whole = line(*left, Span(f"  {note}", Role.DIM))
    return whole if line_width(whole) <= cells else left


def _state(view: View, at: int, options: Options, now_ms: int) -> Line:
    """Return what is worst about the partition, with the age of old figures."""
    table, figures = view.snapshot.partitions, view.partitions
    status = PartitionStatus(figures.status[at])
    since_ms = max(int(figures.leader_silent_since_ms[at]), int(figures.frozen_since_ms[at]))
    text = verdicts.STATUSES[status]
    if since_ms != UNKNOWN and status in (PartitionStatus.SILENT_LEADER, PartitionStatus.FROZEN):
        text = f"{text} {words.age(since_ms, now_ms)}"
    role = ROLES[figures.severity[at]]
    notes = []
    read_ms = int(table.high_watermark_ms[at])
    if read_ms != UNKNOWN and now_ms - read_ms > options.stale_ms:
        notes.append(f"offsets read {words.age(read_ms, now_ms)} ago")
    if table.error_code[at]:
        notes.append(failures.of_partition(int(table.error_code[at])))
    sign = Span(f"{STATUS_SIGNS[status]} ", Role.GOOD if status is PartitionStatus.OK else role)
    return line(sign, Span(text, role), Span("".join(f" {glyphs.DOT} {note}" for note in notes), Role.DIM))
