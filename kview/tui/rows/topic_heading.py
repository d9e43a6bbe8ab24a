"""What a topic's screen says first: its size, its settings that matter, and what is wrong with it."""

from kview.derive.lookup import topic_row
from kview.derive.partitions.retention import retention
from kview.derive.partitions.topic_health import topic_health
from kview.derive.view import PartitionStatus, RackSafety, View
from kview.language import glyphs, words
from kview.language import topics as topic_words
from kview.language.verdicts import counted
from kview.model.units import UNKNOWN_ID
from kview.tui.rows.common import ROLES, SIGNS
from kview.tui.text import Line, Role, Span, joined, line, line_width, middle, width

MOST_NAME = 48
"""A longer name is cut in its middle, so that what is wrong stays in sight."""


def topic_heading(view: View, topic: str, cells: int) -> Line:
    """Return one line about a topic, its name and what is wrong first, then as many facts as fit `cells`."""
    at = topic_row(view.topics, topic)
    if at is None:
        return line(Span(topic, Role.BRIGHT), Span(" is no longer listed", Role.WARN))
    figures = view.topics
    severity = str(figures.severity[at])
    health = topic_health(view)
    status = PartitionStatus(health.status[at])
    replication = int(figures.replication[at])
    facts = [
        f"{words.plural(int(figures.partitions[at]), 'partition')} × {words.plural(replication, 'replica')}"
    ]
    least = int(figures.min_isr[at])
    facts += [f"min.insync.replicas {least}"] if least != UNKNOWN_ID else []
    facts.append(f"in {words.rate_at(figures.in_rate, figures.in_is_bound, at)} rec/s")
    facts.append(f"size {words.size(int(figures.size_bytes[at]))}")
    kept = topic_words.retention(retention(view.snapshot.topic_configs, topic))
    facts += [f"keeps {kept}"] if kept not in (words.NONE, "compacted") else []
    facts += ["compacted"] if kept == "compacted" else []
    if figures.not_preferred[at]:
        facts.append(topic_words.not_preferred(int(figures.not_preferred[at])))
    if figures.rack_safe[at] == RackSafety.NO:
        facts.append(topic_words.not_rack_safe(int(figures.not_rack_safe[at])))
    state = ""
    if ROLES[severity] is not Role.DIM:
        state = f"{SIGNS[severity]} {counted(status, int(health.count[at]))}"
    longest = max(8, min(MOST_NAME, cells - 2 - width(state)))
    first = line(
        Span(middle(topic, longest), Role.BRIGHT), Span("  ") if state else "", Span(state, ROLES[severity])
    )
    between = Span(f" {glyphs.DOT} ", Role.DIM)
    if line_width(first) + sum(width(fact) + 3 for fact in facts) > cells:
        facts = [fact.replace("min.insync.replicas", "min ISR") for fact in facts]
    if not state:
        first, facts = line(*first, Span(f"  {facts[0]}", Role.DIM)), facts[1:]
    return joined([first, *(line(Span(fact, Role.DIM)) for fact in facts)], between, cells)
