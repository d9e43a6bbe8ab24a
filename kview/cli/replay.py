"""`kview replay`: a recording on the dashboard."""

from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from kview.cli.display_options import display_of, replay_options
from kview.errors import BadUse, ErrorKind

if TYPE_CHECKING:
    from kview.recording.reader import Recording

SPEEDS = ("1", "2", "4", "8", "16", "32", "64")


def _recordings(ctx: click.Context, param: click.Parameter, typed: str) -> list[CompletionItem]:
    """Complete the names of kept recordings, and folders."""
    from kview.recording.names import kept_names, state_folder

    try:
        names = kept_names(state_folder())
    except OSError:
        names = ()
    recordings = [CompletionItem(name) for name in names if name.startswith(typed)]
    return [*recordings, CompletionItem(typed, type="dir")]


@click.command()
@click.argument("recording", metavar="RECORDING", shell_complete=_recordings)
@click.option(
    "--at",
    "at",
    metavar="TIME",
    help="Where to start: 14:05, 14:05:30, -5m (before the end), +30s (after the start) or 2026-03-01T14:05.",
)
@click.option(
    "--speed",
    type=click.Choice(SPEEDS),
    default="1",
    show_default=True,
    metavar="N",
    help="Playback speed: 1 (real time), 2, 4 … 64.",
)
@click.option("--once", is_flag=True, help="Print the last block, or the one at --at, and exit.")
@replay_options
@click.pass_context
def replay(ctx: click.Context, /, recording: str, at: str | None, speed: str, **flags: Any) -> None:
    """Show a recording. RECORDING is its folder, or the name under which it was kept.

    You can also show a recording that is still being written. Unless stdin, stdout and stderr are all
    terminals, its observations are printed one after another, without pauses.
    """
    display = display_of(ctx, flags)
    from kview.run.replaying import open_recording
    from kview.run.replaying import replay as run

    opened = open_recording(recording)
    ctx.exit(run(opened, None if at is None else moment(opened, at), int(speed), display))


def moment(recording: "Recording", text: str) -> int:
    """Return the moment in a recording that a text means, in epoch ms. Raises BadUse."""
    from kview.derive.times import FORMS, moment_of

    first_ms, last_ms = int(recording.moments()[0]), int(recording.moments()[-1])
    at_ms = moment_of(text, minus_from_ms=last_ms, plus_from_ms=first_ms, last_ms=last_ms, zone=None)
    if at_ms is None:
        raise BadUse(ErrorKind.NOT_A_TIME, text=text, forms=FORMS)
    return at_ms
