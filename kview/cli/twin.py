"""`kview twin`: a simulated cluster that is like an observed one."""

import os
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from kview.cli.connect import of_profile
from kview.cli.display_options import display_of, display_options
from kview.cli.replay import moment
from kview.cli.targets import profile_names, target_of, target_options
from kview.cli.values import Duration, words
from kview.errors import BadUse, ErrorKind, KviewError

SAME, DIFFERENT = 0, 4
"""The exit codes of --lose."""

_NO_RECORDING = (ErrorKind.NOT_A_RECORDING, ErrorKind.NOT_A_KEPT_RECORDING)

LEAST_MS, MOST_MS, FOR_MS = 2_000, 3_600_000, 12_000
"""How long a cluster may be observed, and is: after 12 s rates and lags in time are known."""


@click.command()
@target_options
@click.option(
    "--at", metavar="TIME", help="Of a recording: the moment to copy, as for replay.  [default: its end]"
)
@click.option(
    "--for",
    "for_ms",
    type=Duration(LEAST_MS, MOST_MS),
    default=FOR_MS,
    metavar="DURATION",
    help=f"How long to observe a cluster before it is copied.  [default: {words(FOR_MS)}]",
)
@click.option(
    "--lose",
    metavar="BROKER|RACK",
    help="Print what losing this would do by `kview check` and what it does in the twin, and exit: with 0 if"
    " both are the same, else with 4.",
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the twin for `kview serve --world FILE`, and exit.",
)
@display_options
@click.pass_context
def twin(
    ctx: click.Context,
    /,
    target: str | None,
    command_config: Path | None,
    maps: tuple[str, ...],
    at: str | None,
    for_ms: int,
    lose: str | None,
    out: Path | None,
    **flags: Any,
) -> None:
    """Make a simulated cluster like an observed one, to break it instead.

    It has the brokers, racks, placement, settings, rates and groups of a cluster (HOST:PORT or a profile), or
    of a recording (its folder or name), as far as these are known. kview only reads from the cluster.
    """
    if target is None:
        raise click.UsageError("give a cluster, a profile or a recording.")
    if lose is not None and flags["format"] is not None:
        raise click.UsageError("--lose prints a table; --format is for a twin that is shown.")
    display = display_of(ctx, flags)
    from kview.lab.twin import twin_of
    from kview.run import twin as run

    if _is_recording(target):
        from kview.run.printing import note
        from kview.run.replaying import open_recording, outside

        if ctx.get_parameter_source("for_ms") is ParameterSource.COMMANDLINE:
            raise click.UsageError("--for is for clusters.")
        try:
            opened, name = open_recording(target), Path(target).name
        except KviewError as error:
            if error.kind not in _NO_RECORDING or os.path.exists(target):
                raise
            raise BadUse(ErrorKind.NO_MODEL, name=target) from error
        at_ms = None if at is None else moment(opened, at)
        if (not_there := outside(opened, at_ms)) is not None:
            note(not_there, display.ascii_only)
        view = run.recorded(opened, at_ms)
    elif at is not None:
        raise click.UsageError("--at is for recordings.")
    else:
        from kview.run.observing import ConnectedSource

        cluster = target_of(target, command_config, maps)
        name = cluster.called
        if cluster.profile is not None:
            display = display_of(ctx, flags, of_profile(ctx, cluster.profile))
        click.echo(f"observing {name} for {words(for_ms)} …", err=True)
        source = ConnectedSource(cluster.servers, 1.0, cluster.security, cluster.security_now, False)
        view = run.observed(source, for_ms / 1000)
    made = twin_of(view)
    for line in run.described(made, name, lose is not None):
        click.echo(line, err=lose is None and out is None)
    if lose is not None:
        from kview.lab.twin_loss import forecast, outage

        said = forecast(view, made.world, lose)
    if out is not None:
        run.write(made, out)
    if lose is not None:
        done = outage(made.world, view, lose, seed=1)
        for line in run.compared(lose, said, done):
            click.echo(line)
        ctx.exit(SAME if said == done else DIFFERENT)
    if out is None:
        ctx.exit(run.play(made, name, display))


def _is_recording(text: str) -> bool:
    """Return whether a text names no cluster: no profile has this name, and it has no port or is a folder."""
    return text not in profile_names() and (os.path.isdir(text) or not {":", ","} & set(text))
