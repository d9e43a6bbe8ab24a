"""What the palette offers: the key bindings in force, the end of a recording, and the themes."""

from functools import partial
from typing import TYPE_CHECKING

from textual.binding import ActiveBinding

from kview.tui.screens.commands import Command
from kview.tui.time_keys import LAST_HELP
from kview.tui.widgets.bottom import key_name

if TYPE_CHECKING:
    from kview.tui.app import KviewApp


def commands(app: "KviewApp") -> list[Command]:
    """Every command that can be given on the screen that is shown."""
    made = []
    for entry in app.screen.active_bindings.values():
        binding = entry.binding
        if entry.enabled and not binding.system and binding.show and binding.action != "commands":
            made.append(_bound(app, entry))
    if app.time.allows("last"):
        made.append(Command("last moment", "", LAST_HELP, partial(app.time.do, "last")))
    for name in app.colours.names:
        use = partial(app.colours.use, name)
        made.append(Command(f"theme {name}", "", "colours; shown while selected", use, use))
    return made


def _bound(app: "KviewApp", entry: ActiveBinding) -> Command:
    binding = entry.binding

    async def run() -> None:
        await app.run_action(binding.action, entry.node)

    return Command(binding.description, key_name(binding), binding.tooltip, run)
