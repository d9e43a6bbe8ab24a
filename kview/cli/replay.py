"""`kview replay`: a recording on the same dashboard."""

from typing import Any

import click

from kview.cli.display_options import display_of, replay_options
from kview.errors import BadUse, ErrorKind

SPEEDS = ("1", "2", "4", "8", "16", "32", "64")


@click.command()
@click.argument("recording", metavar="RECORDING")
@click.option(
    "--at", "at", default="", metavar="TIME", help="Begin there: 14:05, 14:05:30, -5m from its end, +30s."
)
@click.option(
    "--speed",
    type=click.Choice(SPEEDS),
    default="1",
    show_default=True,
    metavar="N",
    help="Recorded seconds a second: 1, 2, 4 … 64.",
)
@click.option("--once", is_flag=True, help="Print the last block, or that of --at, and end.")
@replay_options
@click.pass_context
def replay(ctx: click.Context, /, recording: str, at: str, speed: str, **flags: Any) -> None:
    """Show a recording: the folder of one, or the name that it was kept under.

    One that is still being written can be shown, too. Without a terminal its observations are printed one
    after the other, without waiting.
    """
    display = display_of(flags)
    from kview.derive.times import FORMS, moment_of
    from kview.run.replaying import open_recording
    from kview.run.replaying import replay as run

    opened = open_recording(recording)
    at_ms = None
    if at:
        first_ms, last_ms = int(opened.moments()[0]), int(opened.moments()[-1])
        at_ms = moment_of(at, minus_from_ms=last_ms, plus_from_ms=first_ms, last_ms=last_ms, zone=None)
        if at_ms is None:
            raise BadUse(ErrorKind.NOT_A_TIME, text=at, forms=FORMS)
    ctx.exit(run(opened, at_ms, int(speed), display))
