"""The palette's commands: the key bindings in force, the end of a recording, profiles, and the themes."""

from collections.abc import Awaitable, Callable, Iterable
from functools import partial

from textual.binding import ActiveBinding
from textual.dom import DOMNode

from kview.tui.actions import Keys
from kview.tui.colours import Colours
from kview.tui.profile_commands import ProfileCommands
from kview.tui.screens.commands import Command
from kview.tui.time_keys import LAST_HELP, TimeKeys
from kview.tui.widgets.bottom import key_name

RunAction = Callable[[str, DOMNode], Awaitable[object]]
"""Runs an action in the context of the node to which its key is bound."""


def commands(
    active: Iterable[ActiveBinding],
    run_action: RunAction,
    time: TimeKeys,
    profiles: ProfileCommands,
    colours: Colours,
    keys: Keys,
) -> list[Command]:
    """Return every command that is available while the bindings `active` are in force."""
    made: list[Command] = []
    seen: set[str] = set()
    for entry in active:
        binding = entry.binding
        if entry.enabled and not binding.system and binding.show and binding.action not in ("find", *seen):
            seen.add(binding.action)
            made.append(_bound(entry, run_action, keys))
    if time.allows("last"):
        made.append(Command("end of recording", "", LAST_HELP, partial(time.do, "last")))
    made += profiles.commands()
    for name in colours.names:
        use = partial(colours.use, name)
        made.append(Command(f"theme {name}", "", "switch to this theme (highlight to preview)", use, use))
    return made


def _bound(entry: ActiveBinding, run_action: RunAction, keys: Keys) -> Command:
    binding = entry.binding

    async def run() -> None:
        await run_action(binding.action, entry.node)

    return Command(binding.description, key_name(binding), keys.said(binding.tooltip), run)
