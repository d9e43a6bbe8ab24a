"""The one place where somebody who teaches takes part in the dashboard."""

from collections.abc import Sequence

from kview.model.lab import Command as LabCommand
from kview.model.lab import Reply
from kview.tui.actions import Action
from kview.tui.looks import Look
from kview.tui.screens.commands import Command
from kview.tui.widgets.caption import Caption


class Teaching:
    """What is taught on the dashboard. This is nothing; the room `school` overrides it."""

    @property
    def is_on(self) -> bool:
        """Whether a demo or the tour is shown."""
        return False

    @property
    def is_demo(self) -> bool:
        """Whether a demo is shown."""
        return False

    @property
    def caption(self) -> Caption | None:
        """What the caption strip shows."""
        return None

    @property
    def looks(self) -> Sequence[Look]:
        """Where to look on the screen shown."""
        return ()

    def begin(self) -> None:
        """Begin, because the dashboard does."""

    def see(self) -> None:
        """Take over the view that is shown now."""

    def tick(self) -> None:
        """Let time pass."""

    def fault_done(self, command: LabCommand, reply: Reply, at_ms: int) -> None:
        """Take over a fault that was carried out, asked for at `at_ms` (epoch ms)."""

    def allows(self, what: str) -> bool:
        """Return whether a key of demos works now."""
        return False

    def do(self, what: str) -> None:
        """Carry out a key of demos."""

    def takes_screen(self, number: int) -> bool:
        """Return whether the key of the screen with that number, from 1, chooses an answer now."""
        return False

    def label(self, action: Action) -> str | None:
        """Return what a key does now, '' if the key line leaves it out, None if that is as always."""
        return None

    def leave(self, depth: int) -> bool:
        """Leave what is shown. Returns False if there is nothing, or if the user has opened one of the
        `depth` screens."""
        return False

    def commands(self) -> Sequence[Command]:
        """Return the commands that begin something."""
        return ()
