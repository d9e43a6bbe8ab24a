"""The keys that change how things are shown: the filter, and what lists leave out."""

from dataclasses import replace
from typing import TYPE_CHECKING

from kview.language.lists import GROUP_LISTS, NEXT_GROUP_LIST
from kview.tui.widgets.bottom import StatusMessage

if TYPE_CHECKING:
    from kview.tui.app import KviewApp


class Choices:
    """Carries out the actions `show('…')`."""

    def __init__(self, app: "KviewApp") -> None:
        self._app = app

    def do(self, what: str) -> None:
        """Carry out an action. Raises ValueError if there is no action of that name."""
        match what:
            case "filter":
                self._filter()
            case "internal":
                self._internal()
            case "groups":
                self._groups()
            case _:
                raise ValueError(what)

    def _filter(self) -> None:
        """Ask for the part of a name to filter by."""
        screen = self._app.shown()
        if screen is not None and screen.is_filtered:
            screen.begin_filter()
        elif screen is not None:
            back = self._app.keys.name("back")
            self._app.say(StatusMessage("nothing here is filtered", f"{back} goes to the lists that are"))

    def _internal(self) -> None:
        """Show or hide internal topics."""
        shown = not self._app.options.internal
        self._app.set_options(replace(self._app.options, internal=shown))
        if shown:
            self._app.say(
                StatusMessage("internal topics are shown", f"{self._app.keys.name('internal')} hides them")
            )
        else:
            self._app.say(
                StatusMessage("internal topics are hidden", f"{self._app.keys.name('internal')} shows them")
            )

    def _groups(self) -> None:
        """Change which groups are listed."""
        self._app.set_options(self._app.options.with_next_groups())
        listed = self._app.options.groups
        key = self._app.keys.name("ignored-groups")
        self._app.say(StatusMessage(GROUP_LISTS[listed], f"{key}: {NEXT_GROUP_LIST[listed]}"))
