"""The fault keys: which of them work on the screen shown, and what each of them does."""

from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from kview.derive.incidents.outcome import Led, led_by, outcome, rejoined
from kview.derive.view import View
from kview.errors import ErrorKind
from kview.language import commands as words
from kview.model.events import Severity
from kview.model.lab import ActiveFault, Command, CommandKind, Done, Lab, NodeRole
from kview.model.units import UNKNOWN_ID
from kview.tui.faults import FAULTS_BY_KEY, RESTORE, Target, command_for, rack_of, to_bring_back
from kview.tui.widgets.bottom import StatusMessage

if TYPE_CHECKING:
    from kview.tui.app import KviewApp

MOST_GIVEN = 100
"""The most nodes that are remembered in the order in which they were hit: more than a lab has."""

_FOLLOWED = (CommandKind.CRASH, CommandKind.STOP, CommandKind.HANG, CommandKind.ISOLATE)


class _Hit(NamedTuple):
    """A broker that was hit at a moment (epoch ms), and the partitions that it led then."""

    kind: CommandKind
    node: int
    led: Led
    at_ms: int


class FaultKeys:
    """Carries out the actions `fault('…')`, which exist only with a lab."""

    def __init__(self, app: "KviewApp") -> None:
        self._app = app
        self._lab = app.session.lab
        self._in_force: tuple[ActiveFault, ...] = ()
        self._given: list[int] = []
        """The nodes that were hit, the last one at the end."""
        self._hit: _Hit | None = None
        """The fault whose outcome is not known yet."""
        self._restored: tuple[Done, int] | None = None
        """What was restored last, and when (epoch ms), until it is in sync again."""
        self._undoable: tuple[StatusMessage, Command] | None = None
        """The last message about a fault that can be undone, and the command that undoes it."""
        self._asking = False
        self.is_locked = False
        """Whether no fault may be caused or seen, because a drill asks for the one in force."""
        self.is_told_above = False
        """Whether a caption says what a fault did and how to undo it, so that the status line does not."""
        self._unsure = False
        """Whether the cluster has not said what became of a command."""

    @property
    def active(self) -> tuple[str, ...]:
        """The faults in force, in words."""
        return words.in_force(self._in_force)

    @property
    def back_name(self) -> str:
        """What the key that brings a node back does now: `restore 4`, or '' if no node has a fault."""
        target = self._to_bring_back() if self._in_force else None
        return words.undoing(Command(CommandKind.START, target.broker)) if target else ""

    @property
    def labels(self) -> dict[str, str]:
        """What the keys of faults hit now, by the actions' names: `crash 4`, `restore 4`."""
        labels = {RESTORE: name} if (name := self.back_name) else {}
        screen, view = self._app.shown(), self._app.view
        target = screen.target() if self.has_lab and screen is not None and screen.has_targets else None
        if target is not None and view is not None:
            rack = rack_of(view, target.broker)
            for fault in FAULTS_BY_KEY.values():
                what = {"broker": str(target.broker), "rack": rack}.get(fault.aims, "")
                if what:
                    labels[fault.name] = f"{fault.label} {what}"
        return labels

    def with_undo(self, message: StatusMessage) -> StatusMessage:
        """Return a message with the keys that undo what it reports, for what is selected now."""
        if self._undoable is None or message is not self._undoable[0]:
            return message
        return replace(message, tail=self._undo(self._undoable[1]))

    def allows(self, key: str) -> bool:
        """Return whether the key works here.

        A key that needs a broker works only if a broker can be selected.
        """
        if not self.has_lab:
            return False
        screen = self._app.shown()
        needs_broker = FAULTS_BY_KEY[key].aims in ("broker", "rack")
        return not needs_broker or (screen is not None and screen.has_targets)

    def inert(self, key: str) -> str:
        """Return why a key does nothing here if it is a fault's key, otherwise ''."""
        faults = [fault for fault in FAULTS_BY_KEY.values() if key in self._app.keys.of(fault.name)]
        if not faults:
            return ""
        key = self._app.keys.name(faults[0].name)
        if self.is_locked:
            return f"{key} does nothing during a drill: find the fault that is there"
        if self._lab is None:
            return f"{key} does nothing here: faults need a simulated cluster (kview --simulate)"
        first, second = (self._app.keys.name(name) for name in ("overview", "placement"))
        return f"{key} needs a selected broker, and this screen has none: press {first} or {second} first"

    def do(self, key: str) -> None:
        """Apply a fault to what is selected."""
        app, fault, screen = self._app, FAULTS_BY_KEY[key], self._app.shown()
        if self._lab is None or screen is None:
            return
        if fault.aims and not app.live:
            said = f"{app.keys.name(fault.name)} works only on the live view"
            app.say(StatusMessage(said, f"press {app.keys.name('pause')} to return to it"))
            return
        target = screen.target() if fault.aims else None
        if fault.aims == "fault":
            target = self._to_bring_back()
        command = command_for(fault, app.keys.name(fault.name), target, app.view)
        if isinstance(command, str):
            app.say(StatusMessage(command))
            return
        why = f"{target.why}: " if target and target.why else ""
        app.say(StatusMessage(f"{why}{words.doing(command)}"))
        app.run_worker(self._apply(self._lab, command, why), group="faults")

    @property
    def has_lab(self) -> bool:
        """Whether faults are possible here."""
        return self._lab is not None and not self.is_locked

    def give(self, command: Command) -> None:
        """Apply a fault that names its node or rack, as if its key had been pressed there."""
        app = self._app
        if self._lab is None:
            return
        if not app.live:
            key = app.keys.name("pause")
            app.say(StatusMessage("faults work only on the live view", f"press {key} to return to it"))
            return
        app.say(StatusMessage(words.doing(command)))
        app.run_worker(self._apply(self._lab, command, ""), group="faults")

    def follow(self, view: View) -> None:
        """Ask which faults are in force, and say what the last one led to once a live view shows it."""
        if self._lab is None or not view.moment.live:
            return
        if (self._in_force or self._unsure) and not self._asking:
            self._asking = True
            self._app.run_worker(self._ask(self._lab), group="faults in force")
        if self._restored is not None and rejoined(view, *self._restored):
            self._tell(StatusMessage(words.caught_up(self._restored[0])), None)
            self._restored = None
        hit = self._hit
        result = outcome(view, hit.kind, hit.node, hit.led, hit.at_ms) if hit else None
        if result is not None:
            self._hit = None
            lost = result.records_lost or result.without_leader or result.moved_to_silent
            severity = Severity.WARN if lost else Severity.CALM
            is_over = all(result.node not in fault.nodes for fault in self._in_force)
            undone_by = None if is_over else Command(CommandKind.START, result.node)
            self._tell(StatusMessage(words.outcome(result), severity=severity), undone_by)

    def forget(self) -> None:
        """Forget all faults, because another cluster takes the place of this one."""
        self._in_force, self._given, self._hit, self._undoable, self._unsure = (), [], None, None, False
        self._restored = None

    def aims(self, command: Command) -> bool:
        """Return whether the key of a fault needs a selected broker."""
        return any(fault.aims for fault in FAULTS_BY_KEY.values() if fault.kind is command.kind)

    def would_do(self, command: Command) -> bool:
        """Return whether the key of this fault would carry out exactly this now."""
        app, screen = self._app, self._app.shown()
        fault = next(fault for fault in FAULTS_BY_KEY.values() if fault.kind is command.kind)
        target = screen.target() if screen is not None else None
        if fault.aims == "fault":
            target = self._to_bring_back()
        key_command = command_for(fault, "", target, app.view)
        if not isinstance(key_command, Command):
            return False
        return (key_command.node, key_command.name) == (command.node, command.name)

    def broker_for(self, command: Command) -> int | None:
        """Return the broker that has to be selected for a fault, None if there is none."""
        if command.node != UNKNOWN_ID:
            return command.node
        view = self._app.view
        if not command.name or view is None:
            return None
        table = view.snapshot.brokers
        return next(
            (int(id) for id, rack in zip(table.id, table.rack, strict=True) if rack == command.name), None
        )

    def _to_bring_back(self) -> Target | None:
        screen = self._app.shown()
        return to_bring_back(screen.target() if screen else None, self._given, self._in_force)

    def _tell(self, message: StatusMessage, undone_by: Command | None) -> None:
        if self.is_told_above:
            self._app.clear_message()
            return
        self._undoable = None if undone_by is None else (message, undone_by)
        self._app.say(message)

    def _undo(self, undone_by: Command) -> str:
        """Return the keys that undo a fault and what they do now: `B restore 4`, `U undo all`.

        If `B` restores another node first, both keys are named.
        """
        keys = self._app.keys
        undo_all = f"{keys.name('undo-faults')} {words.undoing(Command(CommandKind.UNDO))}"
        back = f"{keys.name('restore')} {self.back_name}" if self.back_name else ""
        if undone_by.kind is CommandKind.UNDO or not back:
            return undo_all
        target = self._to_bring_back()
        return back if target is not None and target.broker == undone_by.node else f"{back}, {undo_all}"

    async def _ask(self, lab: Lab) -> None:
        in_force = await lab.active()
        self._asking = False
        if in_force is None:
            return
        was_unsure, self._unsure = self._unsure, False
        if in_force != self._in_force:
            self._in_force = in_force
            self._app.redraw_status()
        if was_unsure:
            self._app.say(StatusMessage(words.answers_again(in_force)))

    async def _apply(self, lab: Lab, command: Command, why: str) -> None:
        before, at_ms = self._app.view, self._app.now_ms()
        reply = await lab.apply(command)
        if reply.done is not None:
            self._in_force, self._unsure = reply.active, False
            self._note(reply.done, before, at_ms)
            if reply.done.kind is CommandKind.UNDO:
                self._app.lab.undone()
            self._tell(StatusMessage(f"{why}{words.done(reply.done)}"), reply.undone_by)
            self._app.teaching.fault_done(command, reply, at_ms)
        elif reply.refused is not None:
            self._unsure |= reply.refused.kind is ErrorKind.CLUSTER_SILENT
            refusal = words.refusal(reply.refused, reply.undone_by, self._key_of)
            self._app.say(StatusMessage(f"{why}{refusal}", severity=Severity.WARN))

    def _note(self, done: Done, before: View | None, at_ms: int) -> None:
        """Remember what was hit, and what it led at that time."""
        self._hit = self._restored = None
        if done.kind in (CommandKind.START, CommandKind.UNDO):
            self._restored = (done, at_ms) if done.nodes else None
            return
        self._given = [*(node for node in self._given if node not in done.nodes), *done.nodes][-MOST_GIVEN:]
        if before is not None and done.kind in _FOLLOWED and done.role is NodeRole.BROKER:
            self._hit = _Hit(done.kind, done.nodes[0], led_by(before, done.nodes[0]), at_ms)

    def _key_of(self, command: Command) -> str:
        """Return the key of a command that ends faults."""
        return self._app.keys.name("undo-faults" if command.kind is CommandKind.UNDO else "restore")
