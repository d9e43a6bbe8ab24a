"""Makes palettes from themes. Roles become styles here."""

from rich.style import Style
from textual.color import Color
from textual.theme import Theme as TextualTheme

from kview.config.themes import Theme, Themes
from kview.tui.text import SHADES, Palette, Role

DARKEST = 0.68
"""The part of a colour in its darkest shade. The rest is the background."""


def _shades(colour: str, background: str) -> tuple[Style, ...]:
    """Return the shades of a colour, from one nearer to the background up to the colour itself."""
    dark, bright = Color.parse(background), Color.parse(colour)
    factors = (DARKEST + (1 - DARKEST) * shade / (SHADES - 1) for shade in range(SHADES))
    return tuple(Style(color=dark.blend(bright, factor).hex) for factor in factors)


WARNED = 0.12
"""How much of the colour of warnings is behind a tile. The rest is the background."""


def _between(one: str, other: str, part: float) -> str:
    """Return a colour between two, with that part of the other one."""
    return str(Color.parse(one).blend(Color.parse(other), part).hex)


def palette_of(theme: Theme, cluster: str = "", few: bool = False) -> Palette:
    """Make the palette of a theme. `cluster` is the colour of the cluster's name, '' for the theme's.

    With `few`, the terminal has 16 colours: no tint of them leaves red legible, and shades of a colour become
    other colours. So the selected row is bold, and a colour has one shade.
    """
    base = Style(color=theme.text, bgcolor=theme.background)
    colours = {
        Role.TEXT: Style(color=theme.text),
        Role.DIM: Style(color=theme.dim),
        Role.PREFERRED: Style(color=theme.dim, underline=True),
        Role.BRIGHT: Style(color=theme.bright, bold=True),
        Role.HEAD: Style(color=theme.head),
        Role.RULE: Style(color=theme.rule),
        Role.RISK: Style(color=theme.risk),
        Role.WARN: Style(color=theme.warn),
        Role.GOOD: Style(color=theme.good),
        Role.KEY: Style(color=theme.key),
        Role.ALERT: Style(color=theme.background, bgcolor=theme.risk),  # bold black is grey in 16 colours
        Role.CLUSTER: Style(color=cluster or theme.bright, bold=True),
        Role.MOMENT: Style(color=theme.background, bgcolor=theme.key, bold=True),
    }
    return Palette(
        name=theme.name,
        dark=theme.dark,
        styles=colours,
        series=tuple(
            (Style(color=colour),) * SHADES if few else _shades(colour, theme.background)
            for colour in theme.series
        ),
        base=base,
        selected=Style(bold=True) if few else Style(color=theme.on_accent, bgcolor=theme.accent),
        marked=Style() if few else Style(bgcolor=theme.mark),
        band=Style() if few else Style(bgcolor=_between(theme.background, theme.mark, 0.5)),
        warned=Style()
        if few
        else Style(color=theme.text, bgcolor=_between(theme.background, theme.warn, WARNED)),
        fresh=Style(bold=True),
    )


PLAIN = Palette(
    name="plain",
    dark=True,
    styles={
        Role.TEXT: Style(),
        Role.DIM: Style(dim=True),
        Role.PREFERRED: Style(dim=True, underline=True),
        Role.BRIGHT: Style(bold=True),
        Role.HEAD: Style(bold=True),
        Role.RULE: Style(dim=True),
        Role.RISK: Style(bold=True),
        Role.WARN: Style(),
        Role.GOOD: Style(),
        Role.KEY: Style(bold=True),
        Role.ALERT: Style(bold=True, reverse=True),
        Role.CLUSTER: Style(bold=True),
        Role.MOMENT: Style(bold=True, reverse=True),
    },
    series=((Style(),) * SHADES,),
    base=Style(),
    selected=Style(reverse=True),
    marked=Style(),
    band=Style(),
    warned=Style(),
    fresh=Style(bold=True),
)
"""No colours, only weight, dimness and reversal: for NO_COLOR, or if no theme file can be read."""


def textual_theme(theme: Theme) -> TextualTheme:
    """Return a theme in the form that Textual's own widgets (the palette's input line) need."""
    return TextualTheme(
        name=f"kview-{theme.name}",
        primary=theme.accent,
        secondary=theme.key,
        accent=theme.accent,
        warning=theme.warn,
        error=theme.risk,
        success=theme.good,
        foreground=theme.text,
        background=theme.background,
        surface=theme.background,
        panel=theme.mark,
        dark=theme.dark,
        text_alpha=1.0,
    )


def theme_problems(themes: Themes, wanted: str) -> str:
    """Return one sentence about everything that is wrong with the themes, or '' if nothing is.

    `wanted` is '' if the user asked for no particular theme.
    """
    parts = []
    if wanted and wanted not in themes.loaded:
        known = (
            f"available themes: {', '.join(themes.loaded)}" if themes.loaded else "no theme file was found"
        )
        parts.append(f"there is no theme named {wanted} ({known})")
    if themes.failed:
        more = f" (and {len(themes.failed) - 1} more)" if len(themes.failed) > 1 else ""
        parts.append(f"theme file {themes.failed[0]}{more}")
    return "; ".join(parts)


PLAIN_TEXTUAL = TextualTheme(
    name="kview-plain",
    primary="ansi_default",
    secondary="ansi_default",
    accent="ansi_default",
    warning="ansi_default",
    error="ansi_default",
    success="ansi_default",
    foreground="ansi_default",
    background="ansi_default",
    surface="ansi_default",
    panel="ansi_default",
    boost="ansi_default",
    ansi=True,
    variables={
        "ansi-background": "ansi_default",
        "ansi-foreground": "ansi_default",
        "input-cursor-background": "ansi_default",
        "input-cursor-foreground": "ansi_default",
        "input-cursor-text-style": "reverse",
    },
)
