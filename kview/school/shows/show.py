"""What a lesson, a drill and the tour have in common: a caption above the dashboard, and keys."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from kview.model.lab import Command, Reply
from kview.tui.actions import Action
from kview.tui.looks import Look
from kview.tui.widgets.caption import Caption


class Show(ABC):
    """A lesson, a drill or the tour that is shown."""

    name: str
    _from_ms = 0
    """Observations that began earlier are of another cluster."""

    @property
    def depth(self) -> int:
        """How many screens it shows on each other."""
        return 1

    @property
    def is_asking(self) -> int:
        """The number of answers to choose from, 0 if no question is asked."""
        return 0

    @property
    def asks_to_leave(self) -> bool:
        """Whether the key that leaves has to be pressed twice now."""
        return False

    @abstractmethod
    def allows(self, what: str) -> bool:
        """Return whether a key of demos does something now."""

    @abstractmethod
    def label(self, action: Action) -> str | None:
        """Return what a key does now, '' if the key line leaves it out, None if that is as always."""

    @abstractmethod
    def do(self, what: str) -> bool:
        """Carry out a key. Returns False if the next demo should begin."""

    @abstractmethod
    def caption(self, is_large: bool) -> Caption | None:
        """Return the caption, None if there is nothing to see yet."""

    def looks(self) -> Sequence[Look]:
        """Return where to look on the screen shown."""
        return ()

    def begins_at(self, from_ms: int) -> None:
        """Begin with the first observation from this time on."""
        self._from_ms = from_ms

    @abstractmethod
    def see(self) -> None:
        """Take over the view that is shown now."""

    @abstractmethod
    def tick(self) -> None:
        """Let time pass."""

    @abstractmethod
    def fault_done(self, command: Command, reply: Reply, at_ms: int) -> None:
        """Take over a fault that somebody's key has caused, asked for at `at_ms`."""
