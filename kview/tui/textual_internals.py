"""Everything that relies on undocumented parts of Textual, each with its reason.

Textual is pinned to its minor version, and tests/tui/test_textual_internals.py fails if any of these parts
changes.
"""

import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

from rich.terminal_theme import TerminalTheme
from textual import _ansi_sequences
from textual._ansi_theme import MONOKAI
from textual.app import App
from textual.cache import LRUCache
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet
from textual.events import Event, Key, Paste
from textual.filter import ANSIToTruecolor, LineFilter, NoColor
from textual.screen import Screen
from textual.widgets import Input

from kview.tui.key_names import key_of_character

MOST_PALETTES = 8
"""How many themes' rules are kept. Somebody who chooses a theme looks at several in turn."""

_NOT_YET = -1
"""The number of the theme of a screen that was not shown yet."""

MOST_SOURCES = 512
"""How many sources of rules are kept for each theme. Every kind of widget is a source, about 100 in all."""

Rules = LRUCache[tuple[Any, ...], list[RuleSet]]
"""The rules of each source."""

_parsed: LRUCache[frozenset[tuple[str, str]], Rules] = LRUCache(MOST_PALETTES)
"""The rules for each set of variables."""


def _rules_for(variables: Mapping[str, str]) -> Rules:
    """Return the rules that have been parsed with these variables so far."""
    key = frozenset(variables.items())
    if key not in _parsed:
        _parsed[key] = LRUCache(MOST_SOURCES)
    return _parsed[key]


class OwnStylesheet(Stylesheet):
    """A stylesheet that parses every source once per theme.

    Textual parses all sources again, twice, when a screen is shown for the first time, and has no setting to
    prevent this. It would take half of the time of such a key press.
    """

    def __init__(self, *, variables: dict[str, str] | None = None) -> None:
        super().__init__(variables=variables)
        self._parse_cache = _rules_for(self._variables)

    def set_variables(self, variables: dict[str, str]) -> None:
        """Use the rules of other variables."""
        if variables != self._variables:
            self._parse_cache = LRUCache(1)  # Textual clears it, but the rules of the last theme are kept
            super().set_variables(variables)
            self._parse_cache = _rules_for(variables)

    def reparse(self) -> None:
        """Put the rules together again."""
        self.parse()


class OwnApp(App[int], inherit_bindings=False):
    """An app that handles bugs, keys and colours itself; with `colourless` it draws without colours."""

    def __init__(self, colourless: bool) -> None:
        super().__init__(ansi_color=True if colourless else None)
        self.stylesheet = OwnStylesheet(variables=self.get_css_variables())
        self.colourless = colourless
        self.bug: Exception | None = None
        """The bug that ended the app, if one did."""
        self._themed = _NOT_YET
        """Textual's number of the theme whose rules have been applied."""

    def _handle_exception(self, error: Exception) -> None:
        """Pass a bug to the caller, which logs its traceback.

        Textual would print a traceback with all local variables, in colour, over the restored terminal, and
        has no setting to prevent this. `_exit_renderables` is what it is about to print.
        """
        super()._handle_exception(error)
        if not self.is_headless:
            self.bug = self.bug or error
            self._exit_renderables.clear()

    @property
    def ansi_theme(self) -> TerminalTheme:
        """What a terminal's sixteen colours look like. Kview draws none of them.

        Textual asks for this at every line, and would search all themes for it.
        """
        return MONOKAI

    @property
    def unseen(self) -> bool:
        """Whether nothing is drawn that a key could act on: then every key but that of `quit` is dropped."""
        return False

    def say_inert(self, key: str, character: str | None) -> None:
        """Say that a key does nothing here. `character` is what the key types, None if it types nothing."""

    def refresh_css(self, animate: bool = True) -> None:
        """Apply the rules of a theme to everything that is shown, unless they have been.

        Textual also does it twice when a screen is shown for the first time, whose widgets get their styles
        when they are mounted.
        """
        now, is_themed = self._css_update_count, self._themed == self._css_update_count
        if is_themed and self._screen_stack and self.screen._css_update_count in (_NOT_YET, now):
            self.screen._css_update_count = now
            return
        self._themed = now
        super().refresh_css(animate)

    async def mount_ahead(self, mode: str) -> None:
        """Mount the screen of a mode that has none yet, which takes longer than to draw it. It is not shown.

        Textual can only mount one and show it, and tells the screen that it is shown.
        """
        if mode not in self._screen_stacks:
            mounted = self._init_mode(mode)
            self._screen_stacks[mode][0]._css_update_count = self._css_update_count
            await mounted

    def delay_update(self, delay: float = 0.05) -> None:
        """Hold frames back until the screen shown next has drawn itself, at most for `delay` seconds.

        Textual calls this when it switches between modes, and would always wait for `delay`. The screen has
        been resumed when its queue reaches the function passed to `call_later`.
        """
        self._begin_batch()
        is_over = False

        def end() -> None:
            nonlocal is_over
            if not is_over:
                is_over = True
                self._end_batch()
                if not self._batch_count:
                    self.screen.refresh()

        self.call_later(lambda: self.screen.call_later(end))
        self.set_timer(delay, end, name="delay_update")

    async def on_event(self, event: Event) -> None:
        """Carry out a key's command before looking at the next key.

        A key of ESCAPE_WORDS is Escape and a letter, except in a line that is being typed.

        Textual forwards a key to the focused widget as a message. If several keys arrive at once, as over a
        slow line, Textual would look up all of them on the screen that was shown at the first key.
        `is_forwarded` is False for a key from the terminal, and True for a key that has bubbled up again.
        """
        if isinstance(event, Key) and not event.is_forwarded and event.key in ESCAPE_WORDS:
            letter, word = ESCAPE_WORDS[event.key]
            meant = [Key(word, None)] if isinstance(self.focused, Input) else [_ESCAPE, Key(letter, letter)]
            for key in meant:
                await self.on_event(key)
            return
        if isinstance(event, Key) and not event.is_forwarded:
            entry = self.screen.active_bindings.get(event.key)
            quits = entry is not None and entry.binding.action == "quit"
            if self.unseen and not quits:
                return
            if entry is not None and entry.enabled:
                is_typed = isinstance(self.focused, Input) and (
                    event.is_printable or entry.node is self.focused
                )
                if not is_typed or self.unseen:
                    await self.run_action(entry.binding.action, entry.node)
                    return
            elif not isinstance(self.focused, Input):
                self.say_inert(event.key, event.character)
        if isinstance(event, Paste) and self.unseen:
            return
        await super().on_event(event)

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Return a filter that removes all colours, including those of Textual's own widgets, or none.

        Textual only reads NO_COLOR from the environment, and removes it from there. No setting turns colours
        on or off. Its filter for a terminal's sixteen colours is left out: themes have none of them, and it
        would go through every line.
        """
        filters = [each for each in super().get_line_filters() if not isinstance(each, ANSIToTruecolor)]
        return [*filters, NoColor()] if self.colourless else filters


ESCAPE_WORDS = {"escape+b": ("b", "ctrl+left"), "escape+f": ("f", "ctrl+right")}
"""What terminals send for Alt-b and Alt-f, which move by a word in a line: the letter, and that key."""

_ESCAPE = Key("escape", "\x1b")
_INTRODUCERS = "[]OP_^X\\"
"""After Escape, these begin what terminals send for other keys, and answers. Escape waits 0.1 s for them."""


class _Sent(NamedTuple):
    """A key that Textual's parser makes of what the terminal sent."""

    value: str


def tell_escape_apart() -> None:
    """Make Escape and a key that follows at once two keys.

    A terminal sends the same bytes for Alt and a key. Textual takes them for that, or for a character that
    Alt types on a Mac, or drops the Escape. kview has no keys with Alt.
    """
    known: dict[str, Any] = cast("dict[str, Any]", _ansi_sequences.ANSI_SEQUENCES_KEYS)
    for character in map(chr, range(ord(" "), ord("~") + 1)):
        if character not in _INTRODUCERS:
            both = (_Sent("escape"), _Sent(key_of_character(character)))
            word = (_Sent(f"escape+{character}"),) if f"escape+{character}" in ESCAPE_WORDS else None
            known[f"\x1b{character}"] = word or both
    known["\x1b\r"] = (_Sent("escape"), _Sent("enter"))


def drawn_text(screen: Screen[Any]) -> str:
    """Return the lines of a screen as they are drawn, without the spaces at their ends.

    Textual exports only pictures.
    """
    strips = screen._compositor.render_strips()
    return "".join(f"{strip.text.rstrip()}\n" for strip in strips)


def draw_only_what_fits(ascii_only: bool) -> None:
    """Write a `?` in place of every character that the terminal cannot show.

    Textual's driver writes to `sys.__stderr__` on a thread of its own, where an encoding error would end the
    dashboard.
    """
    screen = sys.__stderr__
    if screen is not None:
        screen.reconfigure(encoding="ascii" if ascii_only else None, errors="replace")
