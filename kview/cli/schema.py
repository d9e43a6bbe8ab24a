"""`kview schema`: the JSON Schema of the documents that `--format json` prints."""

from collections.abc import Mapping
from typing import Any

import click


@click.command()
@click.option(
    "--http", is_flag=True, help="Print what `kview serve --http` takes and answers instead, as OpenAPI 3.1."
)
def schema(http: bool) -> None:
    """Print the JSON Schema of the documents that --format json prints.

    It describes every field, with its meaning and its unit, and every table of a report.
    """
    import msgspec

    document: Mapping[str, Any]
    if http:
        from kview.testing.routes import openapi

        document = openapi()
    else:
        from kview.plain.schema import json_schema

        document = json_schema()
    click.echo(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())
