"""`kview schema`: what is in the documents of `--format json`."""

import click


@click.command()
def schema() -> None:
    """Print the JSON documents' own JSON Schema.

    It names every field of what `--format json` prints, with its meaning and its unit.
    """
    import msgspec

    from kview.plain.schema import json_schema

    click.echo(msgspec.json.format(msgspec.json.encode(json_schema()), indent=2))
