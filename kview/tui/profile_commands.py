"""The palette's commands that switch to another cluster."""

from collections.abc import Callable
from functools import partial

from kview.errors import KviewError
from kview.language.errors import message, remedy
from kview.model.events import Severity
from kview.model.ports import Profiles
from kview.tui.screens.commands import Command
from kview.tui.widgets.bottom import StatusMessage


class ProfileCommands:
    """Offers the other profiles. `profiles` is None if kview cannot switch, such as in a replay."""

    def __init__(
        self, profiles: Profiles | None, say: Callable[[StatusMessage], None], end: Callable[[], object]
    ) -> None:
        self._profiles = profiles
        self._say = say
        self._end = end

    def commands(self) -> list[Command]:
        """Return a command for each profile."""
        names = () if self._profiles is None else self._profiles.names()
        return [
            Command(f"connect {name}", "", "show this profile's cluster instead", partial(self._switch, name))
            for name in names
        ]

    def _switch(self, name: str) -> None:
        """End the dashboard, and begin again with another cluster, unless its settings are wrong."""
        assert self._profiles is not None
        try:
            self._profiles.choose(name)
        except KviewError as error:
            self._say(StatusMessage(message(error), remedy(error), Severity.RISK))
        else:
            self._end()
