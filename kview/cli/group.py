"""The command `kview` itself: `--simulate` with its flags, and the subcommands, which are loaded on first
use."""

import importlib
from typing import Any

import click
from click.core import ParameterSource

import kview as package
from kview.cli.display_options import DISPLAY_NAMES, display_of, display_options
from kview.cli.world_options import world_of, world_options
from kview.errors import BadUse

COMMANDS = {
    "connect": "Show a cluster live: its brokers, partitions and consumer groups.",
    "replay": "Play a recording on the same dashboard, or step through it.",
    "schema": "Print the JSON Schema of the documents that --format json prints.",
    "serve": "Run the simulated cluster without a dashboard.",
}
"""The subcommands and their descriptions. Each subcommand is `kview.cli.<name>:<name>`."""

EXIT_CODES = {
    "0": "success",
    "1": "any other error: the message says what to do",
    "2": "usage error: a flag, file or argument is wrong",
    "3": "no cluster could be reached",
    "70": "a bug in kview: its traceback is in kview.log",
}


class LazyGroup(click.Group):
    """A group that imports a subcommand's module only when that command runs."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names, without importing the commands."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return the command of that name, or return None if there is no such command."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(importlib.import_module(f"kview.cli.{cmd_name}"), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands in `--help`, without importing the commands."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name]) for name in self.list_commands(ctx)])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write where kview keeps its files, and what its exit codes mean."""
        from kview.config.themes import theme_folders
        from kview.recording.names import state_folder
        from kview.run.log import log_path

        with formatter.section("Files"):
            formatter.write_dl(
                [
                    ("kview.log", str(log_path())),
                    ("recordings", str(state_folder())),
                    ("themes", str(theme_folders()[-1])),
                ]
            )
        with formatter.section("Exit codes"):
            formatter.write_dl(list(EXIT_CODES.items()))


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    subcommand_metavar="[COMMAND …]",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(package.__version__, prog_name="kview")
@click.option(
    "--simulate",
    is_flag=True,
    help="Start a simulated cluster and show it. Press keys to cause faults, such as a crash.",
)
@world_options
@display_options
@click.pass_context
def kview(ctx: click.Context, /, simulate: bool, **flags: Any) -> None:
    """A terminal dashboard for Apache Kafka.

    Try it on a simulated cluster with `kview --simulate`, or point it at your own with `kview connect
    HOST:PORT`. Without a terminal, both print the same figures as text, one block per interval.
    """
    given = [
        p
        for p in ctx.command.params
        if p.name and ctx.get_parameter_source(p.name) is ParameterSource.COMMANDLINE
    ]
    if ctx.invoked_subcommand is not None:
        if given:
            raise click.UsageError(
                f"{given[0].opts[-1]} comes after {ctx.invoked_subcommand}, or goes with --simulate", ctx
            )
        return
    if not simulate:
        if given:
            raise click.UsageError(f"{given[0].opts[-1]} goes with --simulate, or after a command", ctx)
        click.echo(ctx.get_help(), err=True)
        ctx.exit(BadUse.exit_code)
    # The child process builds its own cluster from the same flags. Building one here, too, reports a wrong
    # flag before the child starts.
    world_of(**{name: value for name, value in flags.items() if name not in (*DISPLAY_NAMES, "seed", "port")})
    from kview.run.simulated import simulate as run

    ctx.exit(run(_flags(ctx, without={"simulate", *DISPLAY_NAMES}), display_of(flags)))


def _flags(ctx: click.Context, without: set[str]) -> list[str]:
    """Return the options given on the command line as arguments for the child, except those in `without`."""
    arguments = []
    for option in ctx.command.params:
        name = option.name or ""
        if name in without or ctx.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            continue
        values = ctx.params[name] if option.multiple else [ctx.params[name]]
        for value in values:
            arguments += [option.opts[0]] if value is True else [option.opts[0], str(value)]
    return arguments
