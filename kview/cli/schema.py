"""`kview schema`: the JSON Schema of the documents that `--format json` prints."""

import click


@click.command()
def schema() -> None:
    """Print the JSON Schema of the documents that --format json prints.

    It describes every field, with its meaning and its unit, and every table of a report.
    """
    import msgspec

    from kview.plain.schema import json_schema

    click.echo(msgspec.json.format(msgspec.json.encode(json_schema()), indent=2))
