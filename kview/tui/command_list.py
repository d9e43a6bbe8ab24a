"""The palette's commands: the key bindings in force, the end of a recording, profiles, and the themes."""

from functools import partial
from typing import TYPE_CHECKING

from textual.binding import ActiveBinding

from kview.errors import KviewError
from kview.language.errors import message, remedy
from kview.model.events import Severity
from kview.tui.screens.commands import Command
from kview.tui.time_keys import LAST_HELP
from kview.tui.widgets.bottom import StatusMessage, key_name

if TYPE_CHECKING:
    from kview.tui.app import KviewApp


def commands(app: "KviewApp") -> list[Command]:
    """Return every command that is available on the screen shown."""
    available: list[Command] = []
    seen: set[str] = set()
    for entry in app.screen.active_bindings.values():
        binding = entry.binding
        if entry.enabled and not binding.system and binding.show and binding.action not in ("find", *seen):
            seen.add(binding.action)
            available.append(_bound(entry, app))
    if app.time.allows("last"):
        available.append(Command("end of recording", "", LAST_HELP, partial(app.time.do, "last")))
    available += _profiles(app)
    for name in app.colours.names:
        use = partial(app.colours.use, name)
        explanation = "switch to this theme (highlight to preview)"
        available.append(Command(f"theme {name}", "", explanation, use, use))
    return available


def _profiles(app: "KviewApp") -> list[Command]:
    """Return a command for each cluster that kview can switch to."""
    profiles = app.session.profiles

    def switch(name: str) -> None:
        assert profiles is not None
        try:
            profiles.choose(name)
        except KviewError as error:
            app.say(StatusMessage(message(error), remedy(error), Severity.RISK))
        else:
            app.exit()

    return [
        Command(f"connect {name}", "", "show this profile's cluster instead", partial(switch, name))
        for name in (profiles.names() if profiles is not None else ())
    ]


def _bound(entry: ActiveBinding, app: "KviewApp") -> Command:
    binding = entry.binding

    async def run() -> None:
        await app.run_action(binding.action, entry.node)

    return Command(binding.description, key_name(binding), app.keys.said(binding.tooltip), run)
