"""The keys of the lab panel: they adjust the simulated cluster, and undo that one by one."""

import math
from typing import TYPE_CHECKING

from msgspec.structs import replace

from kview.errors import ErrorKind
from kview.language import commands as words
from kview.language import lab as lab_words
from kview.language.errors import sentence
from kview.language.lab import MIN_ISR
from kview.model.events import Severity
from kview.model.lab import (
    Command,
    CommandKind,
    GroupSetting,
    Lab,
    LabSettings,
    LinkSetting,
    ProducerSetting,
    Setting,
    TopicSetting,
)
from kview.model.units import UNKNOWN
from kview.tui.widgets.bottom import StatusMessage

if TYPE_CHECKING:
    from kview.tui.app import KviewApp

MOST_UNDONE = 100
"""The most adjustments that can be undone one by one. `U` undoes all of them."""


_PASSING = (ErrorKind.CLUSTER_SILENT, ErrorKind.CLUSTER_BUSY, ErrorKind.NO_CONTROLLER_TO_CHANGE)
"""Why an adjustment is refused now, but may be possible later."""

TIMES = 1.5
"""By about how much a key multiplies a rate."""

ROUND = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)
"""The round numbers of each power of ten."""

MOST_RATE = 1_000_000
MOST_BYTES, LEAST_BYTES = 10_000_000_000, 1_000
MOST_MEMBERS = 100
"""Limits of the simulated cluster, which refuses what is beyond them."""


class LabKeys:
    """Adjusts the simulated cluster, and knows what is set in it."""

    def __init__(self, app: "KviewApp") -> None:
        self._app = app
        self._lab = app.session.lab
        self._asking = False
        self._adjusting = False
        self._back: list[Command] = []
        """What undoes the adjustments made here, the last one at the end."""
        self._undoable: StatusMessage | None = None
        self.settings: LabSettings | None = None
        self.asked_ms = UNKNOWN
        self.failed = False
        self.is_locked = False

    @property
    def possible(self) -> bool:
        """Whether there is a lab that may be used now."""
        return self._lab is not None and not self.is_locked

    def with_undo(self, message: StatusMessage, is_here: bool) -> StatusMessage:
        """Return a message with the keys that undo what it reports. `is_here`: the lab panel is shown."""
        if self._undoable is None or message is not self._undoable or not self._back:
            return message
        keys = self._app.keys
        undo = keys.name("undo-change")
        way = undo if is_here else f"{keys.name('lab')} {undo}"
        return replace(message, tail=f"{way} {words.undoing(self._back[-1])}")

    def inert(self, key: str) -> str:
        """Return why a key does nothing here if it is the panel's key, otherwise ''."""
        if self.possible or key not in self._app.keys.of("lab"):
            return ""
        name = self._app.keys.name("lab")
        if self.is_locked:
            return f"{name} does nothing during a drill: it would show what was changed"
        return f"{name} does nothing here: {lab_words.NEEDS_LAB}"

    def undone(self) -> None:
        """Take note that all changes were undone, or that another cluster takes the place of this one."""
        self._back = []
        self.ask()

    def ask(self) -> None:
        """Ask the cluster what is set. The panel is drawn again with the answer."""
        if self._lab is not None and not self._asking:
            self._asking = True
            self._app.run_worker(self._ask(self._lab), group="what is set")

    def do(self, what: str, of: Setting | None) -> None:
        """Carry out a key of the panel for the selected row."""
        app = self._app
        if self._lab is None or self.is_locked:
            return
        if not app.live:
            key = app.keys.name("pause")
            app.say(StatusMessage("the lab works only on the live view", f"press {key} to return to it"))
            return
        if self._adjusting:  # The row shows the value before the change that is on its way.
            return
        if what == "undo":
            wanted, refused = (self._back[-1] if self._back else None), lab_words.NOTHING_TO_UNDO
        elif of is None:
            return
        elif what == "pause":
            wanted, refused = _pause(of), lab_words.no_pause(of)
        elif what == "kill":
            wanted, refused = _kill(of), lab_words.no_members(of)
        else:
            wanted, refused = _step(of, what == "more"), lab_words.at_limit(of, what == "more")
        if wanted is None:
            app.say(StatusMessage(refused))
            return
        self._adjusting = True
        app.say(StatusMessage(words.doing(wanted)))
        app.run_worker(self._adjust(self._lab, wanted, what == "undo"), group="lab")

    async def _ask(self, lab: Lab) -> None:
        settings = await lab.settings_now()
        self._asking = False
        self.failed = settings is None
        if settings is not None:
            self.settings, self.asked_ms = settings, self._app.wall_ms()
            if not self._adjusting and not lab_words.count_changed(settings):
                self._back = []  # Everything is back, or this is another cluster than before.
        self._app.redraw()

    async def _adjust(self, lab: Lab, wanted: Command, undoes: bool) -> None:
        reply = await lab.apply(wanted)
        self._adjusting = False
        if reply.done is None:
            assert reply.refused is not None
            if undoes and reply.refused.kind not in _PASSING:
                self._back.pop()  # It can never be undone this way, and hides those before it.
            self._app.say(StatusMessage(sentence(reply.refused), severity=Severity.WARN))
        else:
            if undoes and self._back:
                self._back.pop()
            elif reply.undone_by is not None:
                self._back = [*self._back, reply.undone_by][-MOST_UNDONE:]
            self._undoable = StatusMessage(words.done(reply.done))
            self._app.say(self._undoable)
        self.ask()


# -- how far a key changes a setting: rates in round numbers, bandwidth by half, the rest by one


def rate_step(rate: float, up: bool) -> float:
    """Return the round rate that is nearest to 1.5 times as high (or low), and not the same.

    Below 1 there is only 0.
    """
    if rate < 1:
        return 1.0 if up else 0.0
    power = 10.0 ** math.floor(math.log10(rate))
    ladder = [each * scale for scale in (power / 10, power, power * 10) for each in ROUND]
    wanted = rate * TIMES if up else rate / TIMES
    beyond = [each for each in ladder if (each > rate if up else each < rate)]
    nearest = min(beyond, key=lambda each: abs(math.log(each / wanted)))
    return min(nearest, MOST_RATE) if nearest >= 1 else 0.0


def _step(of: Setting, up: bool) -> Command | None:
    """Return the command of a step up or down, or None if the setting is at its limit."""
    match of:
        case ProducerSetting():
            rate = rate_step(of.rate, up)
            stays = of.paused or rate == of.rate
            return None if stays else Command(CommandKind.RATE, name=of.name, amount=rate)
        case GroupSetting():
            if of.members >= MOST_MEMBERS if up else not of.members:
                return None
            return Command(CommandKind.ADD_MEMBER if up else CommandKind.REMOVE_MEMBER, name=of.name)
        case LinkSetting():
            wanted = of.bytes_per_second * 2 if up else of.bytes_per_second / 2
            amount = max(LEAST_BYTES, min(MOST_BYTES, round(wanted)))
            if amount == of.bytes_per_second:
                return None
            return Command(CommandKind.BANDWIDTH, node=of.broker, amount=amount)
        case TopicSetting():
            value = of.min_isr + (1 if up else -1)
            if not 1 <= value <= (max(of.replicas, of.min_isr - 1)):
                return None
            return Command(CommandKind.SET, name=of.name, key=MIN_ISR, value=str(value))


def _pause(of: Setting) -> Command | None:
    """Return the command that pauses a producer or a group, or resumes it, or None if that is neither."""
    match of:
        case ProducerSetting():
            kind = CommandKind.RESUME_PRODUCER if of.paused else CommandKind.PAUSE_PRODUCER
            return Command(kind, name=of.name)
        case GroupSetting() if of.members:
            return Command(CommandKind.RESUME if of.paused else CommandKind.PAUSE, name=of.name)
    return None


def _kill(of: Setting) -> Command | None:
    """Return the command that kills a member of a group, or None if there is none."""
    if isinstance(of, GroupSetting) and of.members:
        return Command(CommandKind.KILL_MEMBER, name=of.name)
    return None
