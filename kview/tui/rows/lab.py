"""Rows of the lab panel: what is set in the simulated cluster, and what that does to it now."""

from collections.abc import Hashable, Sequence

import numpy as np

from kview.derive.lookup import index_of, topic_row
from kview.derive.partitions.topic_health import topic_health
from kview.derive.passing import Passing
from kview.derive.view import View
from kview.language import lab as words
from kview.language.glyphs import DOT
from kview.language.words import NONE, age, plural, rate, si
from kview.model.lab import GroupSetting, LabSettings, LinkSetting, ProducerSetting, Setting
from kview.model.units import UNKNOWN
from kview.tui.options import Options
from kview.tui.rows.columns import Column
from kview.tui.rows.common import Keyed, broker_state, name_width, title, verdict
from kview.tui.rows.figures import Figure, finite, known, text_figure
from kview.tui.rows.row import Row
from kview.tui.rows.topic_list import worst
from kview.tui.text import Line, Role, Span, content, line

PANEL = "lab"

OLD_MS = 3_000
"""From this age on, the panel says how old the settings are."""

EFFECT = ("effect now", "effect s", "effect bound", "in rec/s", "lag")
"""What the effect of a setting is exported as: a state, its length, and a figure."""

Key = tuple[str, str]
"""A kind of setting, and the name of what is set."""


class LabRows(Keyed[Key]):
    """The rows of settings: producers, groups, topics and networks. `asked_age_ms` is the settings' age."""

    def __init__(
        self, settings: LabSettings | None, view: View, options: Options, asked_age_ms: int, failed: bool
    ) -> None:
        self._view = view
        self._health = topic_health(view)
        listed = tuple(settings or ())
        self._settings = _filtered(listed, view, options) if options.wanted else listed
        super().__init__([(words.kind(each), words.subject(each)) for each in self._settings])
        self.empty = words.NOT_ASKED if not failed else words.NO_ANSWER
        if settings is not None:
            self.empty = f"nothing matches {options.shown_filter}" if listed else words.NOTHING
        changed = words.count_changed(settings) if settings is not None else 0
        names = name_width((key[1] for key in self.keys), 10, 60)
        now = name_width(map(words.now, self._settings), 8, 28)
        self.columns: Sequence[Column] = (
            Column("kind", "", 8),
            Column("name", "name", min(names, 24), flex=3, most=names, name=True),
            Column("now", "set to", min(now, 21), flex=1, most=now, exported=("set to", "unit", "paused")),
            Column("initial", "at first", 8 if changed else 0, rank=4),
            Column("effect", "effect now", 18, flex=2, most=24, rank=2, exported=EFFECT),
            Column("details", "", 20, flex=6, most=90, rank=3),
        )
        old = settings is not None and asked_age_ms > OLD_MS
        note = Span(f" {plural(changed, 'change')}", Role.WARN) if changed else Span(" unchanged", Role.DIM)
        self.title: Line = (
            *title("LAB", options.shown_filter),
            note,
            *((Span(f" {DOT} as of {age(0, asked_age_ms)} ago", Role.WARN),) if old else ()),
        )

    def setting(self, key: Hashable) -> Setting | None:
        """Return what is set in a row, or None if there is no such row."""
        at = self.find(key)
        return None if at is None else self._settings[at]

    def row(self, index: int, now_ms: int) -> Row:
        of = self._settings[index]
        is_changed = words.changed(of)
        return Row(
            (
                line(Span(words.kind(of), Role.DIM)),
                line(words.subject(of)),
                Figure(
                    line(Span(words.now(of), Role.BRIGHT if is_changed else Role.TEXT)),
                    *words.value(of),
                    "paused" if words.paused(of) else "",
                ),
                Figure(line(Span(words.initially(of), Role.WARN)), words.initial_value(of)),
                self._effect(of, now_ms),
                line(Span(words.details(of), Role.DIM)),
            )
        )

    def _effect(self, of: Setting, now_ms: int) -> Line:
        """Return what kview observes of what is set."""
        view = self._view
        match of:
            case ProducerSetting():
                at = topic_row(view.topics, of.topic)
                return text_figure(NONE) if at is None else _rate(float(view.topics.in_rate[at]))
            case GroupSetting():
                return self._group(of.name)
            case LinkSetting():
                row = index_of(view.snapshot.brokers.id.astype(np.int64), of.broker)
                return text_figure(NONE) if row is None else broker_state(view, row, now_ms)
        at = topic_row(view.topics, of.name)
        return text_figure(NONE) if at is None else worst(view, self._health, at)

    def _group(self, name: str) -> Line:
        groups, figures = self._view.snapshot.groups.group, self._view.groups
        at = int(np.searchsorted(groups, np.array([name], object))[0])
        if at >= len(groups) or groups[at] != name:
            return text_figure(NONE)
        said = verdict(figures.verdict[at], "", figures.severity[at], int(figures.verdict_age_ms[at]))
        lag = int(figures.lag[at])
        drawn = (*said, Span(f" lag {si(float(lag))}" if lag != UNKNOWN else "", Role.DIM))
        return Figure(drawn, content(said), None, "", None, known(lag))


def _rate(per_second: float) -> Line:
    drawn = text_figure(f"{rate(per_second)} rec/s in", Role.DIM)
    return Figure(drawn, "", None, "", finite(per_second), None)


def _filtered(listed: Sequence[Setting], view: View, options: Options) -> tuple[Setting, ...]:
    """Return the settings that pass the filter. A producer passes with its topic."""
    passing = Passing(view, options.wanted)
    topics = set(view.topics.topic[passing.topics].tolist())
    groups = set(view.snapshot.groups.group[passing.groups].tolist())
    brokers = set(view.snapshot.brokers.id[passing.brokers].tolist())

    def passes(of: Setting) -> bool:
        match of:
            case ProducerSetting():
                return of.topic in topics
            case GroupSetting():
                return of.name in groups
            case LinkSetting():
                return of.broker in brokers
        return of.name in topics

    return tuple(each for each in listed if passes(each))
