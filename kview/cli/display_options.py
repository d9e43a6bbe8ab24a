"""The flags that every dashboard takes: how often it looks and how it draws."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from kview.cli.values import Duration
from kview.run.settings import DEFAULT_INTERVAL_MS, MAX_INTERVAL_MS, MIN_INTERVAL_MS, Display, Format

Command = TypeVar("Command", bound=Callable[..., Any])

DISPLAY_NAMES = ("interval_ms", "once", "format", "theme", "ascii_only")


def _known_theme(ctx: click.Context, param: click.Parameter, name: str) -> str:
    if name:
        from kview.config.themes import load_themes, theme_folders

        themes = load_themes(theme_folders())
        if name not in themes.loaded:
            failed = "".join(f" {failure}." for failure in themes.failed)
            raise click.BadParameter(
                f"there is no theme {name!r}; there is {', '.join(themes.loaded)}.{failed}"
            )
    return name


_OPTIONS = (
    click.option(
        "--interval",
        "interval_ms",
        type=Duration(MIN_INTERVAL_MS, MAX_INTERVAL_MS),
        default=DEFAULT_INTERVAL_MS,
        metavar="DURATION",
        help="How often to look: 500ms, 1s, 2m.  [default: 1s]",
    ),
    click.option(
        "--once",
        is_flag=True,
        help="Print one block and end: looks twice, one interval apart, for the rates.",
    ),
    click.option(
        "--format",
        "format",
        type=click.Choice([f.value for f in Format]),
        help="Print text blocks or one JSON document a line, also on a terminal.",
    ),
    click.option(
        "--theme",
        metavar="NAME",
        default="",
        callback=_known_theme,
        help="The colours: dark, light, or a theme file of your own.",
    ),
    click.option("--ascii", "ascii_only", is_flag=True, help="Draw with ASCII characters alone."),
)


def display_options(command: Command) -> Command:
    """Adds the flags to a command; it receives them as keywords, for `display_of`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def display_of(flags: Mapping[str, Any]) -> Display:
    """The flags that `display_options` adds, as one value."""
    return Display(
        interval_ms=flags["interval_ms"],
        once=flags["once"],
        format=Format(flags["format"]) if flags["format"] else None,
        theme=flags["theme"],
        ascii_only=flags["ascii_only"],
    )
