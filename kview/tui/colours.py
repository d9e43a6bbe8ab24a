"""The dashboard's current theme: the one asked for, a chosen one, or no colours at all."""

from collections.abc import Callable

from textual.theme import Theme as TextualTheme

from kview.config.themes import Themes
from kview.model.events import Severity
from kview.tui.palette import PLAIN, PLAIN_TEXTUAL, palette_of, textual_theme, theme_problems
from kview.tui.text import Palette
from kview.tui.widgets.bottom import StatusMessage

DEFAULT_THEME = "dark"


class Colours:
    """Manages the loaded themes and the current one, which at first is `wanted`.

    `none` says that the terminal has no colours, `few` that it has 16. `cluster` is the colour of the
    cluster's name. `set_theme` passes a theme to Textual's own widgets. `say` shows a message in the status
    line.
    """

    def __init__(
        self,
        themes: Themes,
        wanted: str | None,
        none: bool,
        few: bool,
        cluster: str,
        set_theme: Callable[[TextualTheme], None],
        say: Callable[[StatusMessage], None],
    ) -> None:
        self._set_theme, self._cluster = set_theme, cluster
        self._say = say
        self._themes = themes
        self._wanted = wanted or DEFAULT_THEME
        self.none, self._few = none, few
        self.palette: Palette = PLAIN
        self._first = self.palette.name
        self._of_clusters: dict[tuple[str, str], Palette] = {}

    @property
    def names(self) -> list[str]:
        """The themes that can be chosen."""
        return [] if self.none else list(self._themes.loaded)

    @property
    def chosen(self) -> str:
        """The theme that the user has chosen since, '' if it is the one of the beginning."""
        return "" if self.palette.name == self._first else self.palette.name

    def begin(self) -> None:
        """Use the theme that was asked for, or another one, and say what is wrong with the themes."""
        if names := self.names:
            self.use(next((name for name in (self._wanted, DEFAULT_THEME) if name in names), names[0]))
        else:
            self._set_theme(PLAIN_TEXTUAL)
        self._first = self.palette.name
        if text := theme_problems(self._themes, "" if self.none else self._wanted):
            self._say(StatusMessage(text, severity=Severity.WARN))

    def use(self, name: str) -> None:
        """Use a theme from now on."""
        theme = self._themes.loaded[name]
        self.palette = palette_of(theme, self._cluster, self._few)
        self._set_theme(textual_theme(theme))

    def of_cluster(self, colour: str) -> Palette:
        """Return the palette in use with the colour (`#rrggbb`) of another cluster's name, '' for the
        theme's."""
        if self.none or not self.names:
            return self.palette
        key = self.palette.name, colour
        if key not in self._of_clusters:
            self._of_clusters[key] = palette_of(self._themes.loaded[self.palette.name], colour, self._few)
        return self._of_clusters[key]

    def back_to(self, palette: Palette) -> None:
        """Return to a palette that was used before."""
        if palette is not self.palette:
            self.use(palette.name)

    def can_choose(self) -> bool:
        """Return whether there are themes to choose from, and say so if there are none."""
        if self.none:
            self._say(StatusMessage("NO_COLOR is set: there are no themes to choose from"))
        elif not self.names:
            self._say(StatusMessage("no theme file was found: there are no themes to choose from"))
        return bool(self.names)
