"""`kview connect`: a dashboard for an existing cluster. This command only reads."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unicodedata import normalize

import click
from msgspec.structs import replace

from kview.cli.display_options import display_of, display_options, not_given
from kview.cli.targets import (
    Target,
    folder_name,
    named,
    profile_names,
    registry_option,
    target_of,
    targets_of,
    targets_options,
)
from kview.errors import BadUse, ErrorKind

if TYPE_CHECKING:
    from kview.config.profiles import Profile
    from kview.run.show import Shown

WORDS = {
    "interval_ms": "interval",
    "theme": "theme",
    "ascii_only": "ascii",
    "no_spark": "no_spark",
    "no_records": "no_records",
    "ignore_groups": "ignore_group",
    "metrics_include": "metrics_include",
    "metrics_exclude": "metrics_exclude",
}
"""Flag's name in Python → the key of a profile that stands for the flag."""


@click.command()
@targets_options
@registry_option
@display_options
@click.pass_context
def connect(
    ctx: click.Context,
    /,
    targets: tuple[str, ...],
    all_profiles: bool,
    command_config: Path | None,
    maps: tuple[str, ...],
    registry_url: str,
    **flags: Any,
) -> None:
    """Show the cluster with these bootstrap servers, or a profile's cluster.

    One server is enough if it answers. Several clusters, or --all, have a first screen with all of them:
    Enter shows one, Escape leads back. Without an argument, this lists the profiles in config.toml. kview
    only reads: it sends nothing that could change the cluster.

    A profile's masks hide fields of records: mask.TOPIC = "all", or a list of paths such as "key",
    "value.card.*" and "headers.token". "email" is that field at any depth.
    """
    if not targets and not all_profiles:
        _list_profiles()
        return
    from kview.run.recorder import check_target
    from kview.run.show import show

    clusters = targets_of(targets, all_profiles, command_config, maps, registry_url=registry_url)
    is_several, shown = len(clusters) > 1, []
    # Several clusters may have one that calls.
    calls = any(target.profile is not None and target.profile.on_finding for target in clusters)
    flags["on_finding"] = calls and not flags["once"]
    for target in clusters:
        with named(target.called if is_several else ""):
            shown.append(_shown(ctx, target, flags, is_several))
    _check_folders(shown)
    for each in shown:
        with named(each.name if is_several else ""):
            check_target(each.display.record)
    # A recording is of the clusters that the user named, and the user chose its folder.
    ctx.exit(show(shown, None if shown[0].display.record.folder else Others(ctx, flags)))


def _check_folders(shown: "Sequence[Shown]") -> None:
    """Check that no two clusters are recorded to one folder. Raises UsageError."""
    folders: dict[str, str] = {}
    for each in shown:
        folder = each.display.record.folder
        if folder is not None:
            other = folders.setdefault(normalize("NFC", str(folder)).casefold(), each.name)
            if other != each.name:
                raise click.UsageError(
                    f"{other} and {each.name} cannot be recorded together: many file systems would give both"
                    " the same folder"
                )


class Others:
    """The profiles besides those that are shown at first. Implements `Others` of `kview.run.show`."""

    def __init__(self, ctx: click.Context, flags: dict[str, Any]) -> None:
        self._ctx, self._flags = ctx, flags

    def names(self) -> list[str]:
        """Return the names of the profiles in the file as it is now."""
        return profile_names()

    def shown(self, name: str) -> "Shown":
        """Return what is shown of a profile. Raises BadUse if its settings are wrong."""
        from kview.config.profiles import config_path

        try:
            return _shown(self._ctx, target_of(name), self._flags)
        except click.UsageError as error:
            reason = error.format_message()
            raise BadUse(ErrorKind.CONFIG_WRONG, file=str(config_path()), reason=reason) from error


def _shown(
    ctx: click.Context, target: Target, flags: dict[str, Any], is_one_of_several: bool = False
) -> "Shown":
    """Return what is shown of a cluster, as the flags and its profile say. Raises BadUse and UsageError."""
    from kview.run.observing import ConnectedSource
    from kview.run.show import Shown

    target.check_security()
    hook = target.hook()
    if target.profile is None:
        display = display_of(ctx, flags)
    else:
        profile = target.profile
        display = display_of(ctx, flags, of_profile(ctx, profile))
        display = replace(display, production=profile.production, colour=profile.colour or "")
    if is_one_of_several and display.record.folder is not None:
        folder = display.record.folder / folder_name(target.called)
        display = replace(display, record=replace(display.record, folder=folder))
    source = ConnectedSource(
        target.servers,
        display.interval_ms / 1000,
        target.security,
        target.security_now,
        not display.no_records,
        lags_first=not display.once,
    )
    opening = target.unused_properties()
    return Shown(source=source, name=target.called, display=display, opening=opening, hook=hook)


def _list_profiles() -> None:
    from kview.config.profiles import config_path, read_config

    path = config_path()
    profiles = read_config(path).clusters
    if not profiles:
        raise BadUse(ErrorKind.NO_PROFILES, file=str(path))
    from kview.language.glyphs import printable

    width = max(map(len, profiles))
    for name, profile in sorted(profiles.items()):
        click.echo(printable(f"{name:{width}}  {profile.servers}"))


def of_profile(ctx: click.Context, profile: "Profile") -> dict[str, Any]:
    """Return the values of the flags that are not on the command line but in the profile."""
    return not_given(ctx, {flag: getattr(profile, key) for flag, key in WORDS.items()})
