"""`kview connect`: a dashboard for an existing cluster. This command only reads."""

from typing import Any

import click

from kview.cli.display_options import display_of, display_options
from kview.cli.values import bootstrap_servers


@click.command()
@click.argument("servers", metavar="HOST:PORT[,…]")
@display_options
@click.pass_context
def connect(ctx: click.Context, /, servers: str, **flags: Any) -> None:
    """Show the cluster with these bootstrap servers.

    One is enough if it answers. kview only reads: it sends nothing that could change the cluster.
    """
    bootstrap = bootstrap_servers(servers)
    from kview.run.connected import connect as run

    ctx.exit(run(bootstrap, display_of(flags)))
