"""The keys of the lab panel: they adjust the simulated cluster, and undo that one by one."""

from typing import TYPE_CHECKING

from msgspec.structs import replace

from kview.errors import ErrorKind
from kview.language import commands as words
from kview.language import lab as lab_words
from kview.language.errors import sentence
from kview.language.lab import Setting
from kview.model.events import Severity
from kview.model.lab import Command, Lab, LabSettings
from kview.model.units import UNKNOWN
from kview.tui.lab_steps import kill, pause, step
from kview.tui.widgets.bottom import StatusMessage

if TYPE_CHECKING:
    from kview.tui.app import KviewApp

MOST_UNDONE = 100
"""The most adjustments that can be undone one by one. `U` undoes all of them."""


_PASSING = (ErrorKind.CLUSTER_SILENT, ErrorKind.CLUSTER_BUSY, ErrorKind.NO_CONTROLLER_TO_CHANGE)
"""Why an adjustment is refused now, but may be possible later."""


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
            wanted, refused = pause(of), lab_words.no_pause(of)
        elif what == "kill":
            wanted, refused = kill(of), lab_words.no_members(of)
        else:
            wanted, refused = step(of, what == "more"), lab_words.at_limit(of, what == "more")
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
