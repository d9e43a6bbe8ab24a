"""Figures of partitions and topics."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from kview.derive.lookup import partition_row, topic_row
from kview.derive.view import View
from kview.model.units import NO_BROKER, UNKNOWN
from kview.school.moment import Asked, Moment, split


def _ids(ids: Any) -> tuple[int, ...]:
    return tuple(sorted(id for id in ids.tolist() if id != NO_BROKER))


def of_partition(moment: Moment, figure: Asked) -> Any:
    """Return a partition's figure, None if there is no such partition."""
    view = moment.view
    row = partition_row(view, *split(figure.of[0]))
    if row is None:
        return None
    table, figures = view.snapshot.partitions, view.partitions
    place = np.flatnonzero(table.replicas[row] == figure.at)
    match figure.name:
        case "end" | "behind":
            if not len(place):
                return None
            return (figures.replica_end if figure.name == "end" else figures.replica_lag)[row, place[0]]
        case "isr" | "elr":
            return _ids(getattr(table, figure.name)[row])
        case "replicas":
            return tuple(id for id in table.replicas[row].tolist() if id != NO_BROKER)
        case "racks":
            racks = dict(zip(view.snapshot.brokers.id.tolist(), view.snapshot.brokers.rack, strict=True))
            return len({racks.get(id) for id in table.replicas[row].tolist() if id != NO_BROKER})
        case "isr-size":
            return figures.isr_count[row]
        case "frozen":
            return bool(figures.frozen_since_ms[row] != UNKNOWN)
        case "status":
            return str(figures.status[row])
        case "rack-safe":
            return str(figures.rack_safe[row])
        case "gone":
            return _gone(moment.view, figure.of[0])
        case "uncommitted":
            return figures.uncommitted[row]
        case "rate":
            rate = figures.in_rate[row]
            return round(float(rate)) if np.isfinite(rate) else None
        case "watermark":
            return table.high_watermark[row]
        case name:
            columns: Mapping[str, Any] = {
                "epoch": table.leader_epoch,
                "leader": table.leader,
                "log-end": table.log_end,
                "log-start": table.log_start,
                "min-isr": table.min_isr,
            }
            return columns[name][row]


def _gone(view: View, name: str) -> int | None:
    """Return how many records of a partition the last incident that hit it took, a lower bound."""
    for incident in reversed(view.incidents):
        for hit in incident.hit:
            if f"{hit.topic}-{hit.partition}" == name:
                return hit.gone
    return None


def of_topic(moment: Moment, figure: Asked) -> Any:
    """Return a topic's figure, None if there is no such topic."""
    if figure.name in ("gone", "gone-committed"):
        counted = moment.counters["topics"].get(figure.of[0], {})
        return counted.get(figure.name.replace("-", "_"))
    figures = moment.view.topics
    row = topic_row(figures, figure.of[0])
    if row is None:
        return None
    if figure.name == "rate":
        rate = figures.in_rate[row]
        return round(float(rate)) if np.isfinite(rate) else None
    if figure.name == "rack-safe":
        return str(figures.rack_safe[row])
    return getattr(figures, figure.name.replace("-", "_"))[row]
