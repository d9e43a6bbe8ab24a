"""Which theme the dashboard is drawn with: the one asked for, the next one, or no colours at all."""

from collections.abc import Callable

from textual.theme import Theme as TextualTheme

from kview.config.themes import Themes
from kview.model.events import Severity
from kview.tui.paint import PLAIN, PLAIN_TEXTUAL, Palette, palette_of, textual_theme, theme_troubles
from kview.tui.widgets.bottom import Said

DEFAULT_THEME = "dark"


class Colours:
    """The themes that are there, of which one is used: the `wanted` one at first. `none` is for a terminal
    without colours.

    `dress` gives Textual's own widgets a theme; `say` shows a sentence in the status line.
    """

    def __init__(
        self,
        themes: Themes,
        wanted: str | None,
        none: bool,
        dress: Callable[[TextualTheme], None],
        say: Callable[[Said], None],
    ) -> None:
        self._dress = dress
        self._say = say
        self._themes = themes
        self._wanted = wanted or DEFAULT_THEME
        self.none = none
        self.palette: Palette = PLAIN

    @property
    def names(self) -> list[str]:
        """The themes that can be chosen."""
        return [] if self.none else list(self._themes.loaded)

    def begin(self) -> None:
        """Draw with the theme that is wanted, or another one; what is wrong with themes is said."""
        if names := self.names:
            self.use(next((name for name in (self._wanted, DEFAULT_THEME) if name in names), names[0]))
        else:
            self._dress(PLAIN_TEXTUAL)
        if text := theme_troubles(self._themes, "" if self.none else self._wanted):
            self._say(Said(text, severity=Severity.WARN))

    def use(self, name: str) -> None:
        """Draw with a theme from now on."""
        theme = self._themes.loaded[name]
        self.palette = palette_of(theme)
        self._dress(textual_theme(theme))

    def back_to(self, palette: Palette) -> None:
        """Draw as it was drawn with that one, which was used before."""
        if palette is not self.palette:
            self.use(palette.name)

    def use_next(self) -> None:
        """The next theme of those that are there."""
        names = self.names
        if self.none:
            self._say(Said("NO_COLOR is set: there is nothing to choose"))
        elif names:
            self.use(names[(names.index(self.palette.name) + 1) % len(names)])
            self._say(Said(f"theme {self.palette.name}", "t the next one"))
