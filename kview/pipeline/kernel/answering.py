"""Finds figures: what a task of Spark's does with some batches of roll-ups."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kview.pipeline.kernel import facts, tables
from kview.pipeline.kernel.columns import ALL, Counted, Names
from kview.pipeline.kernel.figures import Filters, PartitionFigures, Rows, SecondFigures


@dataclass(frozen=True, slots=True)
class Asked:
    """What a report asks about a period.

    `known_s` is the number of known seconds of each cluster, `incident_columns` what is shown of an incident.
    Of partitions, incidents and the topics of throughput, there are `most_…` each.
    """

    filters: Filters
    known_s: Mapping[str, int]
    threshold_ms: int
    step_s: int
    incident_columns: Sequence[str]
    most_partitions: int
    most_incidents: int
    most_topics: int


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a table: some batches, which have rows of it, and a range of names."""

    table: str
    batches: Sequence[Counted]
    names: Names = ALL


NAMED = {
    tables.SECONDS_TABLE: "name",
    tables.MINUTES_TABLE: "topic",
    "group_lags": "group",
    "findings": "kind",
    "incidents": "",
    "elections": "topic",
    "sizes": "topic",
}
"""Table → the column whose words are in a range of names. All incidents are in one part."""


def answer(part: Part, asked: Asked) -> dict[str, Rows]:
    """Return the figures that come from a part of a table, by their names."""
    batches, names = part.batches, part.names
    topics, groups = asked.filters.topics, asked.filters.groups
    match part.table:
        case tables.SECONDS_TABLE:
            seconds = SecondFigures(batches, asked.filters, names)
            return {
                "sums": seconds.sums(),
                "percentiles": seconds.percentiles(asked.known_s),
                "hottest": seconds.hottest(),
                "throughput": seconds.throughput(asked.most_topics, asked.step_s),
            }
        case tables.MINUTES_TABLE:
            partitions = PartitionFigures(batches, asked.filters, names)
            return {
                "partitions": partitions.partitions(asked.most_partitions),
                "traffic": partitions.traffic(),
            }
        case "group_lags":
            return {"group_lags": facts.group_lags(batches, groups, asked.threshold_ms, names)}
        case "findings":
            return {"findings": facts.findings(batches, names)}
        case "incidents":
            return {"incidents": facts.incidents(batches, asked.incident_columns, asked.most_incidents)}
        case "elections":
            return {"elections": facts.elections(batches, topics, names)}
        case "sizes":
            return {"sizes": facts.sizes(batches, topics, names)}
        case _:
            raise ValueError(part.table)
