"""Which screen shows what a lesson's step is about, and what is marked there. All functions are pure."""

from collections.abc import Hashable, Sequence
from typing import NamedTuple

from kview.derive.lookup import partition_row
from kview.derive.view import View
from kview.model.units import NO_BROKER
from kview.school.look import Mark
from kview.school.moment import split
from kview.tui.looks import Look
from kview.tui.rows.log_marks import GROUP, REPLICA
from kview.tui.rows.placement import place_column

WIDE = 112
"""From this width on, the overview lists the groups."""


class Place(NamedTuple):
    """A screen: `mode` is that of a number key, above which a partition's or a group's may lie."""

    mode: str
    partition: str = ""
    group: str = ""

    @property
    def depth(self) -> int:
        """How many screens lie on each other there."""
        return 2 if self.partition or self.group else 1


_IN_LOG = frozenset({"end", "behind", "log-end", "log-start", "last-stable", "held-back", "uncommitted"})
"""Figures of a partition that only its own screen shows well."""

_IN_LIST = frozenset({"rate", "min-isr"})
"""Figures of a partition for which the overview often has no room."""

_COLUMNS = {
    "leader": "leader", "epoch": "leader", "isr": "isr", "isr-size": "isr", "replicas": "replicas",
    "watermark": "watermark", "log-start": "start", "log-end": "end", "end": "end",
    "uncommitted": "uncommitted",
    "rate": "in", "status": "why", "frozen": "state", "leads": "leads", "state": "state",
    "latency": "latency", "lag": "lag", "behind": "behind", "verdict": "verdict", "reason": "reason",
    "committed": "committed", "assigned": "assigned", "under-replicated": "health", "no-leader": "health",
    "waited": "waited", "gone": "gone",
    "under-min-isr": "health", "not-preferred": "health", "rack-safe": "health", "slow": "latency",
}  # fmt: skip
"""The columns of figures."""

_PANELS: dict[str, tuple[str, ...]] = {
    "header": ("header",),
    "headline": ("headline",),
    "brokers": ("brokers",),
    "placement": ("grid",),
    "topics": ("topic_list", "topics"),
    "partitions": ("partitions", "offsets"),
    "groups": ("groups", "groups_below", "groups_line"),
    "members": ("members",),
    "events": ("events", "events_list"),
    "incident": ("headline", "incidents"),
    "log": ("log",),
    "replicas": ("log",),
}
"""The widgets of panels."""

_ROWS: dict[str, tuple[str, ...]] = {
    "broker": ("brokers", "grid"),
    "partition": ("partitions", "placed"),
    "topic": ("topic_list", "topics"),
    "group": ("groups", "groups_below"),
}
"""The tables that have rows of a subject."""


_LOG = frozenset({"log"})


class Subjects(NamedTuple):
    """The partition and the group that a lesson has been about lately, '' if none."""

    partition: str = ""
    group: str = ""

    def after(self, marks: Sequence[Mark]) -> "Subjects":
        """Return them after a step that marks these."""
        partitions = [mark.of[0] for mark in marks if mark.subject == "partition"]
        groups = [mark.of[0] for mark in marks if mark.subject in ("group", "position")]
        partitions += [mark.of[1] for mark in marks if mark.subject == "position"]
        return Subjects((partitions or [self.partition])[0], (groups or [self.group])[0])


def first_subjects(steps: Sequence[Sequence[Mark]]) -> Subjects:
    """Return the partition and the group that a lesson names first, given the marks of its steps."""
    about = Subjects()
    for marks in reversed(steps):
        about = about.after(marks)
    return about


def place(marks: Sequence[Mark], presses: bool, about: Subjects, width: int) -> Place | None:
    """Return the screen that shows most of what is marked, None if any screen does.

    `presses` says whether the person has to press a fault's key there, for which a broker must be selected.
    """
    panels = {mark.panel for mark in marks} - {""}
    figures = {(mark.subject, mark.name) for mark in marks}
    subjects = {mark.subject for mark in marks} - {""}
    if panels | subjects <= {"header", "headline", "incident", "cluster"} and not presses:
        return None
    if not presses:
        in_log = any(subject == "partition" and name in _IN_LOG for subject, name in figures)
        if (panels & {"log", "replicas"} or in_log) and about.partition:
            return Place("overview", partition=about.partition)
        if (panels & {"members"} or subjects & {"member", "position"}) and about.group:
            return Place("overview", group=about.group)
        if "placement" in panels or ("topic", "rack-safe") in figures:
            return Place("placement")
        if "topics" in panels or subjects == {"topic"}:
            return Place("topics")
        if "events" in panels:
            return Place("events")
        is_list = len([mark for mark in marks if mark.subject]) > 2 or any(n in _IN_LIST for _, n in figures)
        if is_list and panels <= {"partitions", "header"} and subjects == {"partition"}:
            return Place("partitions")
        if subjects | panels <= {"group", "groups", "headline"}:
            return Place("groups")
        if "groups" in panels and width < WIDE and "partition" not in subjects:
            return Place("groups")
    if "placement" in panels and presses:
        return Place("placement")
    return Place("overview")


def looks(marks: Sequence[Mark], at: Place, view: View | None) -> tuple[Look, ...]:
    """Return the marks on the screen of a place."""
    on_screen = [look for mark in marks if (look := _look(mark, at, view)) is not None]
    if at.mode == "placement" and view is not None:
        on_screen += [look for mark in marks if mark.subject == "partition" for look in _placed(mark, view)]
    if any(look.ids == _LOG and look.column for look in on_screen):
        # The figure is marked, and not the panel too.
        on_screen = [look for look in on_screen if look != Look(_LOG)]
    return tuple(dict.fromkeys(on_screen))


def _placed(mark: Mark, view: View) -> list[Look]:
    """Return the marks in the table of brokers on a partition's replicas, or on its leader."""
    topic, number = split(mark.of[0])
    row = partition_row(view, topic, number)
    if row is None:
        return []
    table = view.snapshot.partitions
    return [
        Look(frozenset({"grid"}), broker, place_column(place), f"P{number}")
        for place, broker in enumerate(table.replicas[row].tolist())
        if broker != NO_BROKER and (mark.name != "leader" or broker == table.leader[row])
    ]


def _look(mark: Mark, at: Place, view: View | None) -> Look | None:
    if mark.panel:
        return Look(frozenset(_PANELS[mark.panel]))
    column = _COLUMNS.get(mark.name, "")
    match mark.subject:
        case "broker":
            if at.partition:
                return Look(_LOG, column=REPLICA, word=mark.of[0])
            return Look(frozenset(_ROWS["broker"]), int(mark.of[0]), column)
        case "partition":
            if at.partition:
                return Look(_LOG, column=column, word="" if mark.at < 0 else str(mark.at))
            return Look(frozenset(_ROWS["partition"]), split(mark.of[0]), column)
        case "topic" if mark.name == "rack-safe" and at.mode == "placement":
            return Look(frozenset({"heading"}))
        case "topic" | "group":
            if at.group:
                return Look(frozenset({"heading"}))
            if at.partition and mark.subject == "group":
                return Look(_LOG, column=GROUP, word=mark.of[0])
            return Look(frozenset(_ROWS[mark.subject]), mark.of[0], column)
        case "position":
            return Look(frozenset({"offsets"}), split(mark.of[1]), column)
        case "member":
            return Look(frozenset({"members"}), _member(mark.of[0], view), column)
        case "incident":
            if at.mode == "events" and column and view is not None and view.incidents:
                return Look(frozenset({"incidents"}), view.incidents[-1].key, column)
            return Look(frozenset({"headline"}), column=column)
        case "cluster":
            return Look(frozenset({"headline"}))
    return None


def _member(client: str, view: View | None) -> Hashable:
    """Return the member id of a client, '' if there is no such member."""
    if view is None:
        return ""
    members = view.snapshot.members
    ids = (str(id) for id, of in zip(members.member_id, members.client_id, strict=True) if of == client)
    return next(ids, "")
