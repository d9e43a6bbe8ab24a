"""Figures of consumer groups, their positions and their members."""

from typing import Any

import numpy as np

from kview.derive.view import View
from kview.school.moment import Asked, Moment, split


def of_group(moment: Moment, figure: Asked) -> Any:
    """Return a group's figure, None if there is no such group."""
    view = moment.view
    table, figures = view.snapshot.groups, view.groups
    rows = np.flatnonzero(table.group == figure.of[0])
    if figure.name in ("read", "reread", "skipped"):
        return moment.counters["groups"].get(figure.of[0], {}).get(figure.name)
    if not len(rows):
        return None
    row = int(rows[0])
    match figure.name:
        case "verdict" | "reason":
            return str(getattr(figures, figure.name)[row])
        case "state":
            return str(table.state[row])
        case "members" | "coordinator":
            return getattr(table, figure.name)[row]
        case "active-members":
            return figures.members_active[row]
        case "idle-members":
            return max(0, int(table.members[row]) - int(figures.members_active[row]))
        case "behind":
            return figures.behind_ms[row]
        case "rate":
            rate = figures.read_rate[row]
            return round(float(rate)) if np.isfinite(rate) else None
        case name:
            return getattr(figures, name)[row]


def of_position(moment: Moment, figure: Asked) -> Any:
    """Return the figure of a group's partition, None if the group does not read it."""
    view = moment.view
    table, figures = view.snapshot.offsets, view.offsets
    topic, number = split(figure.of[1])
    rows = np.flatnonzero(
        (table.group == figure.of[0]) & (table.topic == topic) & (table.partition == number)
    )
    if not len(rows):
        return None
    row = int(rows[0])
    match figure.name:
        case "committed":
            return table.committed[row]
        case "owner":
            return _client(str(table.owner[row]), view)
        case "verdict":
            return str(figures.verdict[row])
        case name:
            return getattr(figures, name)[row]


def _client(member: str, view: View) -> str:
    """Return the client id of a member, which is shorter than its member id."""
    members = view.snapshot.members
    rows = np.flatnonzero(members.member_id == member)
    return str(members.client_id[rows[0]]) if len(rows) else ""


def of_member(moment: Moment, figure: Asked) -> Any:
    """Return a member's figure, None if no member has that client id."""
    members = moment.view.snapshot.members
    rows = np.flatnonzero(members.client_id == figure.of[0])
    return members.assigned[rows[0]] if len(rows) else None
