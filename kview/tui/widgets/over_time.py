"""The panel of a topic's or a group's plots over minutes and hours, which are read from the recording."""

from functools import partial
from typing import ClassVar

import numpy as np
from textual.binding import BindingType

from kview.derive.view import View
from kview.model.history import MOST_GROUPS, Course, CourseOf
from kview.model.units import UNKNOWN
from kview.tui.actions import Where, bindings
from kview.tui.app_of import app_of
from kview.tui.keys import ACTIONS
from kview.tui.options import Options
from kview.tui.rows.over_time import REACHES, USUAL, Reach, Shown, offered, over_time
from kview.tui.text import Line, Title
from kview.tui.widgets.drawn import Headed
from kview.tui.widgets.recorded import Recorded


class OverTime(Headed):
    """Plots of a topic with the groups that read it, or of a group if `topic` is ''."""

    DEFAULT_CSS = "OverTime { height: 1fr; }"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(ACTIONS, Where.OVER_TIME)]

    def __init__(self, topic: str = "", group: str = "") -> None:
        super().__init__(id="over_time")
        self.topic, self.group = topic, group
        self.can_focus = bool(topic)  # a group's screen has the key wherever its focus is
        self.view: View | None = None
        self._groups: list[str] = [] if topic else [group]
        """The groups that are asked for. They stay when others become the worst: so does what was read."""
        self._options = Options()
        self._reach = REACHES[USUAL]
        self._recorded: Recorded[Course] | None = None
        self._course: Course | None = None
        self._since_ms = UNKNOWN
        """Since when something is recorded, as the last course said: the next one may not be read yet."""

    def show(self, view: View, options: Options) -> None:
        """Show the plots as of this view, and read the recording if that is not recent."""
        self.view, self._options = view, options
        self.attempt(self._read)
        self.redraw()

    def _read(self) -> None:
        view, app = self.view, app_of(self)
        if view is None or app.timeline is None:
            return
        if self._recorded is None:
            self._recorded = Recorded(self.screen, self._again, "course")
        until_ms = view.snapshot.observation.ended_ms
        self._add_groups(view)
        asked = CourseOf(self.topic, tuple(self._groups), self._in_force().span_ms, until_ms)
        self._course = self._recorded.of(
            (asked.topic, asked.span_ms),
            (asked.groups, until_ms),
            partial(app.timeline.course, asked),
            app.wall_ms(),
        )
        if self._course is not None and self._course.since_ms != self._since_ms:
            self._since_ms = self._course.since_ms
            if self._in_force().span_ms != asked.span_ms:  # more is recorded than was known
                self._read()

    def _again(self) -> None:
        if self.view is not None and self.is_attached and self.is_shown:
            self.show(self.view, self._options)

    def _add_groups(self, view: View) -> None:
        """Add groups that read the topic, the worst ones first, while there is room for them."""
        if not self.topic or len(self._groups) == MOST_GROUPS:
            return
        offsets, groups = view.snapshot.offsets, view.snapshot.groups
        readers = np.flatnonzero(np.isin(groups.group, np.unique(offsets.group[offsets.topic == self.topic])))
        worst = groups.group[readers[np.argsort(view.groups.place[readers])]].tolist()
        known = set(self._groups)
        self._groups = [*self._groups, *(each for each in worst if each not in known)][:MOST_GROUPS]

    def _offered(self) -> list[Reach]:
        view = self.view
        if view is None:
            return list(REACHES)
        first_ms = view.moment.first_ms if self._since_ms == UNKNOWN else self._since_ms
        return offered(0 if first_ms == UNKNOWN else view.snapshot.observation.ended_ms - first_ms)

    def _in_force(self) -> Reach:
        """Return the chosen reach, or all of the recording if that is less."""
        choices = self._offered()
        return self._reach if self._reach in choices else choices[-1]

    def action_stretch(self) -> bool:
        """Go further back, and from the longest reach to the shortest. Returns whether it is the shortest."""
        choices = self._offered()
        at = choices.index(self._in_force()) + 1
        self._reach = choices[at % len(choices)]
        self._again()
        return at == len(choices)

    def begin(self) -> None:
        """Go back to the shortest reach."""
        self._reach = REACHES[0]

    def headed(self, width: int, height: int) -> tuple[Title, list[Line]]:
        if self.view is None:
            return Title(), []
        at, reach = app_of(self), self._in_force()
        key = self._options.keys.name("window")
        course = Course() if at.timeline is None else self._course
        has_failed = self._recorded is not None and self._recorded.has_failed
        shown = Shown(
            self.view,
            self.topic,
            tuple(self._groups),
            course,
            reach,
            self._offered(),
            key,
            at.zone,
            has_failed,
        )
        return over_time(shown, width, height)
