"""The flags of every dashboard: how often it observes, how it draws, and what it records."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from kview.cli.values import Duration, listening_address
from kview.model.address import Address
from kview.model.name_patterns import BadPattern, NamePattern
from kview.run.settings import DEFAULT_INTERVAL_MS, MAX_INTERVAL_MS, MIN_INTERVAL_MS, Display, Format, Record

Command = TypeVar("Command", bound=Callable[..., Any])

_NOTHING: Mapping[str, Any] = MappingProxyType({})

DISPLAY_NAMES = (
    "interval_ms",
    "once",
    "format",
    "theme",
    "ascii_only",
    "no_spark",
    "ignore_groups",
    "no_records",
    "record",
    "record_upload",
    "metrics",
    "metrics_include",
    "metrics_exclude",
    "quiet",
    "fresh",
    "no_tour",
    "no_mouse",
)


def _known_theme(ctx: click.Context, param: click.Parameter, name: str) -> str:
    if name:
        from kview.config.themes import load_themes, theme_folders

        themes = load_themes(theme_folders())
        if name not in themes.loaded:
            said = map(str, themes.failed)
            failed = "".join(f" {why}" if why.endswith("?") else f" {why}." for why in said)
            raise click.BadParameter(
                f"there is no theme {name!r}; available themes: {', '.join(themes.loaded)}.{failed}"
            )
    return name


def _themes(ctx: click.Context, param: click.Parameter, typed: str) -> list[CompletionItem]:
    """Complete the names of themes."""
    from kview.config.themes import load_themes, theme_folders

    names = load_themes(theme_folders()).loaded
    return [CompletionItem(name) for name in names if name.startswith(typed)]


class _Folder(click.Path):
    """The path of a folder. An empty one, such as an unset variable, is not the current folder."""

    def __init__(self) -> None:
        super().__init__(file_okay=False, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path. Fails with a usage error if `value` is empty or a file."""
        if value == "":
            self.fail("it is empty: give the folder to record to.", param, ctx)
        return super().convert(value, param, ctx)


def _metrics(ctx: click.Context, param: click.Parameter, given: str | None) -> Address | None:
    return None if given is None else listening_address(given)


def _name_patterns(
    ctx: click.Context, param: click.Parameter, given: tuple[str | NamePattern, ...]
) -> tuple[NamePattern, ...]:
    """Return the patterns. Fails with a usage error if one does not say what it is about."""
    try:
        return tuple(
            text if isinstance(text, NamePattern) else NamePattern.parse(str(text)) for text in given
        )
    except BadPattern as error:
        raise click.BadParameter(
            f"{str(error)!r} does not say of what: write 'topic:PATTERN' or 'group:PATTERN', such as"
            " 'topic:orders-*'",
            ctx,
            param,
        ) from None


_OBSERVING = (
    click.option(
        "--interval",
        "interval_ms",
        type=Duration(MIN_INTERVAL_MS, MAX_INTERVAL_MS),
        default=DEFAULT_INTERVAL_MS,
        metavar="DURATION",
        help="How often to observe the cluster, such as 500ms, 1s or 2m.  [default: 1s]",
    ),
    click.option(
        "--once",
        is_flag=True,
        help="Print one block and exit. It takes one interval: a rate needs two observations. With"
        " groups that are read in turn, it goes on until all have been read, for 5 minutes at most.",
    ),
    click.option(
        "--record",
        "record",
        type=_Folder(),
        metavar="DIR",
        help="Record the whole run to this folder, or several clusters to folders in it. Without it, a"
        " dashboard keeps the last hour of each cluster, in 512 MB at most.",
    ),
    click.option(
        "--record-upload",
        "record_upload",
        metavar="URL",
        default="",
        help="With --record: also copy the recording to an s3://, hdfs://, gs:// or file:// URL.",
    ),
    click.option(
        "--no-records",
        is_flag=True,
        help="Never read records from topics, even if someone asks for them on the screen.",
    ),
    click.option(
        "--metrics",
        metavar="[HOST:]PORT",
        callback=_metrics,
        help="Serve Prometheus metrics of the clusters given at http://HOST:PORT/metrics, and /healthz."
        "  [default HOST: 127.0.0.1]",
    ),
    click.option(
        "--metrics-include",
        multiple=True,
        callback=_name_patterns,
        metavar="KIND:PATTERN",
        help="With --metrics: topics and groups that always have metrics of their own, such as"
        " 'topic:orders-*' or 'group:billing'. May be repeated.",
    ),
    click.option(
        "--metrics-exclude",
        multiple=True,
        callback=_name_patterns,
        metavar="KIND:PATTERN",
        help="With --metrics: topics and groups that never have, such as 'group:console-*', unless they are"
        " included. May be repeated.",
    ),
    click.option(
        "--fresh",
        is_flag=True,
        help="Start without the filter, sort order and screen of your last visit to this cluster.",
    ),
    click.option(
        "--quiet",
        is_flag=True,
        help="With --metrics, --record or a profile's on-finding: do only that, without a screen or output.",
    ),
)

_DRAWING = (
    click.option(
        "--format",
        "format",
        type=click.Choice([f.value for f in Format]),
        help="Print text blocks or JSON, one document per line, even on a terminal.",
    ),
    click.option(
        "--theme",
        metavar="NAME",
        default="",
        callback=_known_theme,
        shell_complete=_themes,
        help="The colours: dark, light, high-contrast, colour-blind, or the name of a custom theme.",
    ),
    click.option(
        "--ignore-group",
        "ignore_groups",
        multiple=True,
        metavar="PATTERN",
        help="Hide consumer groups whose name matches, such as 'console-consumer-*'. May be repeated.",
    ),
    click.option("--ascii", "ascii_only", is_flag=True, help="Draw with ASCII characters only."),
    click.option(
        "--no-mouse",
        is_flag=True,
        help="Leave the mouse to the terminal, so that it selects text.",
    ),
    click.option(
        "--no-spark",
        is_flag=True,
        help="Do not start Spark in the background: kview shows direct rates, the difference between two"
        " observations.",
    ),
)


def display_options(command: Command) -> Command:
    """Add all of these flags to a command, which receives them as keywords for `display_of`."""
    return _with(command, (*_OBSERVING, *_DRAWING))


def replay_options(command: Command) -> Command:
    """Add only the flags for drawing."""
    return _with(command, _DRAWING)


def _with(command: Command, options: tuple[Callable[[Command], Command], ...]) -> Command:
    for option in reversed(options):
        command = option(command)
    return command


def not_given(ctx: click.Context, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of the values, by flag, whose flags are not on the command line, as the flags read them.
    Raises UsageError."""
    read = {}
    for param in ctx.command.params:
        name = param.name or ""
        if values.get(name) and ctx.get_parameter_source(name) is ParameterSource.DEFAULT:
            read[name] = param.process_value(ctx, values[name])
    return read


def _kept(ctx: click.Context) -> dict[str, Any]:
    """Return the values in [display] of config.toml. Raises KviewError, or UsageError."""
    from kview.config.profiles import config_path, read_config

    kept = read_config(config_path()).display
    values = {"theme": kept.theme, "interval_ms": kept.interval, "ignore_groups": kept.ignore_group}
    return not_given(ctx, {**values, "no_mouse": not kept.mouse})


def display_of(ctx: click.Context, flags: Mapping[str, Any], own: Mapping[str, Any] = _NOTHING) -> Display:
    """Return the flags of `display_options` or `replay_options` as a single value. What is not given is as in
    `own`, which a profile has by flag, or else as in config.toml. Raises UsageError."""
    flags = {**flags, **_kept(ctx), **own}
    if flags.get("record_upload") and flags["record"] is None:
        raise click.UsageError(
            "--record-upload needs --record DIR: a dashboard's own recording of the last hour is not uploaded"
        )
    for name in ("metrics_include", "metrics_exclude"):
        given = ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if given and flags["metrics"] is None:
            raise click.UsageError(f"--{name.replace('_', '-')} needs --metrics")
    works = flags.get("metrics") or flags.get("record") or flags.get("on_finding")
    if flags.get("quiet") and not works:
        raise click.UsageError(
            "--quiet needs --metrics, --record or a profile with on-finding: without one of them, kview would"
            " do nothing"
        )
    return Display(
        interval_ms=flags.get("interval_ms", DEFAULT_INTERVAL_MS),
        once=flags["once"],
        format=Format(flags["format"]) if flags["format"] else None,
        theme=flags["theme"],
        ascii_only=flags["ascii_only"],
        record=Record(flags.get("record"), flags.get("record_upload", "")),
        no_spark=flags["no_spark"],
        ignore_groups=flags["ignore_groups"],
        no_records=flags.get("no_records", False),
        metrics=flags.get("metrics"),
        metrics_include=flags.get("metrics_include", ()),
        metrics_exclude=flags.get("metrics_exclude", ()),
        quiet=flags.get("quiet", False),
        fresh=flags.get("fresh", False),
        no_tour=flags.get("no_tour", False),
        no_mouse=flags["no_mouse"],
    )
