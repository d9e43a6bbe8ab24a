"""`kview check`: judge a cluster once, print what was found, and set the exit code."""

from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kview.cli.targets import Target, targets_of, targets_options
from kview.cli.values import Duration
from kview.cli.world_options import WORLD_NAMES, given_flags, world_of, world_options

if TYPE_CHECKING:
    from kview.derive.checks.judge import Ignore
    from kview.run.checking import Checked, CheckOptions

LONGEST_MS = 3_600_000
"""An hour: a check that lasts longer is a job for `kview connect --metrics`."""

CHECK_NAMES = (
    "targets",
    "all_profiles",
    "command_config",
    "maps",
    "simulate",
    "fail_on",
    "ignore",
    "watch_ms",
    "allow_not_judged",
    "leader_skew",
    "disk_skew",
    "format",
    "junit",
    "ascii_only",
)


def _kinds() -> list[str]:
    from kview.model.checks import CheckKind

    return [kind.value for kind in CheckKind]


def _ignored(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> tuple["Ignore", ...]:
    """Return what to ignore. Fails with a usage error if a pattern matches no kind."""
    from kview.derive.checks.judge import Ignore

    rules = []
    for text in given:
        kind, colon, name = text.partition(":")
        if not any(fnmatchcase(known, kind) for known in _kinds()):
            near = get_close_matches(kind, _kinds(), 1)
            meant = f"did you mean {near[0]}? The" if near else "the"
            listed = ", ".join(_kinds())
            raise click.BadParameter(
                f"{kind!r} is not a kind of finding: {meant} kinds are {listed}", ctx, param
            )
        if colon and not name:
            raise click.BadParameter(
                f"{text!r} has no name after the colon: give one, or leave out the colon", ctx, param
            )
        rules.append(Ignore(kind, name if colon else "*"))
    return tuple(rules)


def _finite(ctx: click.Context, param: click.Parameter, given: float) -> float:
    """Return the number. Fails with a usage error for nan and inf: no broker exceeds those."""
    if not isfinite(given):
        raise click.BadParameter(f"{given} is not a valid number: give one such as 1.5", ctx, param)
    return given


@click.command(context_settings={"max_content_width": 100})
@targets_options
@click.option(
    "--simulate",
    is_flag=True,
    help="Start a simulated cluster and check that instead; see `kview --help`.",
)
@click.option(
    "--for",
    "watch_ms",
    type=Duration(1_000, LONGEST_MS),
    metavar="DURATION",
    help="How long to observe, such as 60s. It takes a minute to tell whether a slow group"
    " keeps up.  [default: 6s, up to 75s if something is undecided]",
)
@click.option(
    "--fail-on",
    type=click.Choice(["risk", "warn", "weakness"]),
    default="warn",
    show_default=True,
    help="The lowest level that makes the check fail. risk: data or availability is at risk now; warn: one"
    " step away from that; weakness: nothing is wrong now, but the loss of a broker or rack would do harm,"
    " or work is spread unevenly.",
)
@click.option(
    "--ignore",
    multiple=True,
    callback=_ignored,
    metavar="KIND[:NAME]",
    help="Ignore findings of this kind, or only those about this topic, broker, rack or group. Both may be"
    " patterns, such as 'group_*:console-*'. Ignoring replication_factor_1:NAME also leaves the topic out"
    " of broker_loss and rack_loss. May be repeated.",
)
@click.option("--allow-not-judged", is_flag=True, help="Pass even if something could not be judged.")
@click.option(
    "--leader-skew",
    type=click.FloatRange(1.0, min_open=True),
    callback=_finite,
    default=1.5,
    show_default=True,
    metavar="TIMES",
    help="Report a broker that leads at least this many times the mean, and at least 10 partitions more than"
    " it. With three brokers, losing one makes the others lead 1.5 times as much: each must be able to do"
    " that, and none should do more.",
)
@click.option(
    "--disk-skew",
    type=click.FloatRange(1.0, min_open=True),
    callback=_finite,
    default=1.5,
    show_default=True,
    metavar="TIMES",
    help="Report a broker that holds at least this many times the mean, and at least 1 GB more than it. If"
    " all disks have the same size, one at 1.5 times the mean is full when they are two thirds full on"
    " average.",
)
@click.option(
    "--format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Print one line for each finding, or one JSON document (see `kview schema`).",
)
@click.option(
    "--junit",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    metavar="FILE",
    help="Also write the result to this file as JUnit XML.",
)
@click.option("--ascii", "ascii_only", is_flag=True, help="Print ASCII characters only.")
@world_options
@click.pass_context
def check(
    ctx: click.Context,
    /,
    targets: tuple[str, ...],
    all_profiles: bool,
    command_config: Path | None,
    maps: tuple[str, ...],
    simulate: bool,
    **flags: Any,
) -> None:
    """Check the cluster with these bootstrap servers, or a profile's cluster: what is wrong now, which makes
    the check fail, and its weaknesses, such as what the loss of a broker or a rack would break. Several
    clusters are checked at the same time, each with a section or a JSON document of its own.

    It prints one line for each finding: what, where, since when, and what to do. A line begins with the
    level, then the kind and name as --ignore takes them. All that is only the consequence of a broker that is
    down, of a failed log directory or of an open transaction is folded below it; --format json lists it.
    Whatever could not be judged is listed, too, and makes the check fail as well if it may be wrong now.

    \b
    Exit codes:
      0   healthy: nothing makes the check fail
      1   something is wrong, or could not be judged
      2   usage error
      3   the cluster could not be reached
      70  no result: kview failed, or could not write a file
    The exit code for several clusters is the highest of theirs.
    """
    options = _options(flags)
    world = [name for name in given_flags(ctx, without=CHECK_NAMES) if name.startswith("--")]
    if simulate:
        if targets or all_profiles or command_config is not None or maps:
            raise click.UsageError(
                "--simulate starts a cluster of its own: leave it out, or leave out HOST:PORT or the profile,"
                " --command-config and --map"
            )
        ctx.exit(_check_simulated(ctx, flags, options))
    if not targets and not all_profiles:
        raise click.UsageError(
            "Missing argument 'HOST:PORT[,…]|PROFILE': give a bootstrap server or a profile, or --simulate"
        )
    if world:
        raise click.UsageError(f"{world[0]} is for simulated clusters: use it with --simulate")
    from kview.run.checking import check as run
    from kview.run.checking import check_all

    checked = [
        _checked(target, options) for target in targets_of(targets, all_profiles, command_config, maps)
    ]
    ctx.exit(run(*checked[0]) if len(checked) == 1 else check_all(checked))


def _checked(target: Target, options: "CheckOptions") -> "Checked":
    """Return the cluster to check, without the groups that its profile ignores."""
    from kview.derive.checks.judge import Ignore
    from kview.run.checking import INTERVAL_S, Checked
    from kview.run.observing import ConnectedSource
    from kview.run.printing import note

    for notice in target.unused_properties():
        note(notice, options.ascii_only)
    if target.profile is not None:
        ignored = tuple(Ignore("group_*", pattern) for pattern in target.profile.ignore_group)
        options = replace(options, ignore=(*options.ignore, *ignored))
    source = ConnectedSource(target.servers, INTERVAL_S, target.security, target.security_now)
    return Checked(source, target.name, options)


def _check_simulated(ctx: click.Context, flags: Mapping[str, Any], options: "CheckOptions") -> int:
    world_of(**{name: value for name, value in flags.items() if name in WORLD_NAMES})
    from kview.run.checking import INTERVAL_S
    from kview.run.checking import check as run
    from kview.run.simulated import SimulatedSource

    return run(SimulatedSource(given_flags(ctx, without=CHECK_NAMES), INTERVAL_S), "simulated", options)


def _options(flags: Mapping[str, Any]) -> "CheckOptions":
    from kview.derive.checks.cluster import Limits
    from kview.derive.checks.outcome import Rules
    from kview.model.checks import Level
    from kview.run.checking import CheckOptions
    from kview.run.settings import Format

    return CheckOptions(
        rules=Rules(Level(flags["fail_on"]), flags["allow_not_judged"]),
        limits=Limits(flags["leader_skew"], flags["disk_skew"]),
        ignore=flags["ignore"],
        for_s=None if flags["watch_ms"] is None else flags["watch_ms"] / 1000,
        format=Format(flags["format"]),
        junit=flags["junit"],
        ascii_only=flags["ascii_only"],
    )
