"""The fault keys: which of them work on the screen shown, and what each of them does."""

from kview.language import faults as fault_words
from kview.language import glyphs
from kview.model.events import Severity
from kview.model.faults import FaultCommand, FaultKind, Faults
from kview.tui.aim import command_for
from kview.tui.dashboard import Dashboard
from kview.tui.keys import FAULT_KEYS, FaultKey
from kview.tui.widgets.bottom import StatusMessage


class FaultKeys:
    """Carries out the actions `fault('…')`, which exist only with a lab.

    `active` lists the faults in force, in words.
    """

    def __init__(self, app: Dashboard, faults: Faults | None) -> None:
        self._app = app
        self._faults = faults
        self.active: tuple[str, ...] = ()

    def allows(self, key: str) -> bool:
        """Return whether the key works here.

        A key that needs a broker works only if a broker can be selected.
        """
        if self._faults is None:
            return False
        screen = self._app.shown()
        return not FAULT_KEYS[key].aims or (screen is not None and screen.has_targets)

    def do(self, key: str) -> None:
        """Apply a fault to what is selected."""
        app, fault, screen = self._app, FAULT_KEYS[key], self._app.shown()
        if self._faults is None or screen is None:
            return
        if fault.aims and not app.live:
            app.say(StatusMessage(f"{key} works only on the live view", "press space to return to it"))
            return
        target = screen.target() if fault.aims else None
        command = command_for(fault, target, app.view)
        if isinstance(command, str):
            app.say(StatusMessage(command))
            return
        why = f"{target.why}: " if target and target.why else ""
        app.say(StatusMessage(f"{why}{fault_words.doing(command)} {glyphs.ELLIPSIS}"))
        app.run_worker(self._apply(self._faults, fault, command, why), group="faults")

    async def _apply(self, faults: Faults, fault: FaultKey, command: FaultCommand, why: str) -> None:
        reply = await faults.apply(command)
        if reply.done is not None:
            self.active = tuple(map(fault_words.in_force, reply.active))
            undo = f"undo: {fault.undo}" if reply.undone_by is not None else ""
            self._app.say(StatusMessage(f"{why}{fault_words.done(reply.done)}", undo))
        elif reply.refused is not None:
            refusal = fault_words.refusal(reply.refused, reply.undone_by, key_of)
            self._app.say(StatusMessage(f"{why}{refusal}", severity=Severity.WARN))


def key_of(command: FaultCommand) -> str:
    """Return the key of a command that ends faults."""
    return "U" if command.kind is FaultKind.UNDO else "B"
