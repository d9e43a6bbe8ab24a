"""What a topic's screen says first: its size, its settings that matter, and what is wrong with it."""

from kview.derive.lookup import topic_row
from kview.derive.retention import retention
from kview.derive.topic_health import topic_health
from kview.derive.view import PartitionStatus, RackSafety, View
from kview.language import glyphs, words
from kview.language import topics as topic_words
from kview.language.verdicts import counted
from kview.model.units import UNKNOWN_ID
from kview.tui.rows.common import ROLES, SIGNS
from kview.tui.text import Line, Role, Span, line, middle

MOST_NAME = 48
"""A longer name is cut in its middle, so that what is wrong stays in sight."""


def topic_heading(view: View, topic: str) -> Line:
    """Return one line about a topic, with its name first."""
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
    if figures.min_isr[at] != UNKNOWN_ID:
        facts.append(f"min.insync.replicas {int(figures.min_isr[at])}")
    facts.append(f"in {words.rate(float(figures.in_rate[at]))} rec/s")
    facts.append(f"size {words.size(int(figures.size_bytes[at]))}")
    kept = topic_words.retention(retention(view.snapshot.topic_configs, topic))
    facts += [f"keeps {kept}"] if kept not in (words.NONE, "compacted") else []
    facts += ["compacted"] if kept == "compacted" else []
    if figures.not_preferred[at]:
        facts.append(topic_words.not_preferred(int(figures.not_preferred[at])))
    if figures.rack_safe[at] == RackSafety.NO:
        facts.append(topic_words.not_rack_safe(int(figures.not_rack_safe[at])))
    parts = [Span(middle(topic, MOST_NAME), Role.BRIGHT), Span("  ")]
    if ROLES[severity] is not Role.DIM:
        parts += [
            Span(f"{SIGNS[severity]} {counted(status, int(health.count[at]))}", ROLES[severity]),
            Span(f" {glyphs.DOT} ", Role.DIM),
        ]
    return line(*parts, Span(f" {glyphs.DOT} ".join(facts), Role.DIM))
