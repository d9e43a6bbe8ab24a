"""`kview connect`: a dashboard for an existing cluster. This command only reads."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from kview.cli.display_options import display_of, display_options, not_given
from kview.cli.targets import OtherProfiles, Target, registry_option, target_of, target_options
from kview.errors import BadUse, ErrorKind, KviewError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kview.config.profiles import Profile
    from kview.model.notices import Notice

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
@target_options
@registry_option
@display_options
@click.pass_context
def connect(
    ctx: click.Context,
    /,
    target: str | None,
    command_config: Path | None,
    maps: tuple[str, ...],
    registry_url: str,
    **flags: Any,
) -> None:
    """Show the cluster with these bootstrap servers, or a profile's cluster.

    One server is enough if it answers. Without an argument, this lists the profiles in config.toml. kview
    only reads: it sends nothing that could change the cluster.

    A profile's masks hide fields of records: mask.TOPIC = "all", or a list of paths such as "key",
    "value.card.*" and "headers.token". "email" is that field at any depth.
    """
    if target is None:
        _list_profiles()
        return
    shown = target_of(target, command_config, maps, registry_url=registry_url)
    left: Target | None = None
    opening: tuple[Notice, ...] = ()
    while True:
        try:
            code, chosen = _show(ctx, shown, flags, opening)
        except KviewError as error:
            if left is None:
                raise
            opening = (_not_shown(shown, error),)
            shown, left = left, None
            continue
        if chosen is None:
            ctx.exit(code)
        shown, left, opening = chosen, shown, ()


def _show(
    ctx: click.Context, target: Target, flags: dict[str, Any], opening: "Sequence[Notice]"
) -> tuple[int, Target | None]:
    """Show a cluster until the user ends it. Returns the exit code, and the cluster to show next.

    `opening` are notices to begin with. Raises KviewError if there was never anything to show.
    """
    from kview.run.connected import connect as run
    from kview.run.connected import unused_properties

    name, hook = target.called, target.hook()
    if target.profile is None:
        display = display_of(ctx, flags)
    else:
        profile = target.profile
        own = {**of_profile(ctx, profile), "on_finding": hook is not None and not flags["once"]}
        display = display_of(ctx, flags, own)
        display = replace(display, production=profile.production, colour=profile.colour or "")
    # A recording is of one cluster, and the user chose its folder.
    profiles = OtherProfiles(target.name) if display.record.folder is None else None
    said = (*unused_properties(target.file, target.unused), *opening)
    code = run(target.servers, target.security, name, display, said, profiles, target.security_now, hook)
    return code, None if profiles is None or code else profiles.chosen


def _not_shown(target: Target, error: KviewError) -> "Notice":
    from kview.model.notices import Notice, NoticeKind

    return Notice(NoticeKind.PROFILE_NOT_SHOWN, {"name": target.name, "error": error.facts})


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
