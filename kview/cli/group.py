"""The command `kview` itself: `--simulate` with its flags, and the subcommands, which are loaded on first
use."""

import importlib
from typing import Any

import click
from click.core import ParameterSource

import kview as package
from kview.cli.display_options import DISPLAY_NAMES, display_of, display_options
from kview.cli.world_options import WORLD_NAMES, given_flags, world_of, world_options
from kview.errors import BadUse

COMMANDS = {
    "check": "Check a cluster once, for scripts: print what is wrong, and set the exit code.",
    "config": "Show which files kview reads, and the settings of each profile.",
    "connect": "Show a cluster live: its brokers, partitions and consumer groups.",
    "metrics": "Print alert rules or a Grafana dashboard for the metrics of --metrics.",
    "report": "Report on recordings: throughput, availability, lag, incidents and growth.",
    "demo": "Play a demo on a simulated cluster, or list the demos.",
    "records": "Print records of a topic, or look for some.",
    "replay": "Play a recording on the same dashboard, or step through it.",
    "schema": "Print the JSON Schema of the documents that --format json prints.",
    "twin": "Make a simulated cluster like an observed one, to break it instead.",
    "serve": "Run the simulated cluster without a dashboard.",
}
"""The subcommands and their descriptions. Each subcommand is `kview.cli.<name>:<name>`."""

EXIT_CODES = {
    "0": "success",
    "1": "any other error: the message says what to do; for check: the cluster is not healthy",
    "2": "usage error: a flag, file or argument is wrong",
    "3": "no cluster could be reached",
    "4": "for twin --lose: the twin does not do what was forecast",
    "70": "a bug in kview: its traceback is in kview.log; for check: there is no result",
    "128+N": "ended by signal N, such as 143 for SIGTERM",
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
        from kview.config.key_file import key_file_path
        from kview.config.log import log_path
        from kview.config.profiles import config_path
        from kview.config.themes import theme_folders
        from kview.recording.names import state_folder
        from kview.school.folders import lesson_folders

        with formatter.section("Files"):
            formatter.write_dl(
                [
                    ("config.toml", str(config_path())),
                    ("demos", str(lesson_folders()[-1])),
                    ("keys.toml", str(key_file_path())),
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
@click.option("--demo", metavar="NAME", help="With --simulate: begin with a demo; `kview demo` lists them.")
@click.option("--no-tour", is_flag=True, help="With --simulate: do not begin the first run with the tour.")
@world_options
@display_options
@click.pass_context
def kview(ctx: click.Context, /, simulate: bool, demo: str | None, **flags: Any) -> None:
    """A terminal dashboard for Apache Kafka.

    Try it on a simulated cluster with `kview --simulate`, or point it at your own with `kview connect
    HOST:PORT`. Unless stdin, stdout and stderr are all terminals, both print the same figures as text, one
    block per interval.
    """
    given = [
        p
        for p in ctx.command.params
        if p.name and ctx.get_parameter_source(p.name) is ParameterSource.COMMANDLINE
    ]
    if ctx.invoked_subcommand is not None:
        if given:
            raise click.UsageError(_misplaced(ctx, given[0], ctx.invoked_subcommand), ctx)
        return
    if not simulate:
        if given:
            raise click.UsageError(_without_command(ctx, given[0]), ctx)
        click.echo(ctx.get_help(), err=True)
        ctx.exit(BadUse.exit_code)
    if demo is not None:
        from kview.cli.demo import play

        play(ctx, demo, flags["seed"] if "seed" in {p.name for p in given} else None, display_of(ctx, flags))
    # The child process builds its own cluster from the same flags. Building one here, too, reports a wrong
    # flag before the child starts.
    world_of(**{name: value for name, value in flags.items() if name in WORLD_NAMES})
    from kview.run.simulating import simulate as run

    ctx.exit(run(given_flags(ctx, without={"simulate", "demo", *DISPLAY_NAMES}), display_of(ctx, flags)))


def _misplaced(ctx: click.Context, option: click.Parameter, command: str) -> str:
    """Return what to do with an option of `kview --simulate` that stands before a subcommand."""
    flag = option.opts[-1]
    if option.name == "simulate":
        return f"--simulate shows a cluster of its own: leave out --simulate or {command}"
    takers = _takers(ctx, option)
    if command in takers:
        return f"put {flag} after {command}"
    *others, last = ["--simulate", *takers]
    return f"{command} has no {flag}: use it with {', '.join(others)} or {last}"


def _without_command(ctx: click.Context, option: click.Parameter) -> str:
    """Return what to do with an option that stands alone."""
    takers = "".join(f", or put it after {name}" for name in _takers(ctx, option))
    return f"{option.opts[-1]} alone does nothing: use it with --simulate{takers}"


def _takers(ctx: click.Context, option: click.Parameter) -> list[str]:
    """Return the subcommands that have an option of that name."""
    assert isinstance(ctx.command, LazyGroup)
    commands = {name: ctx.command.get_command(ctx, name) for name in ctx.command.list_commands(ctx)}
    return [
        name
        for name, command in commands.items()
        if command is not None and any(option.opts[-1] in param.opts for param in command.params)
    ]
