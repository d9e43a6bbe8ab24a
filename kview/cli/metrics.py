"""`kview metrics`: alert rules and a dashboard for the metrics that `--metrics` serves."""

import click


@click.command()
@click.option("--rules", is_flag=True, help="Print alert rules for Prometheus (YAML).")
@click.option("--dashboard", is_flag=True, help="Print a dashboard for Grafana 10 and newer (JSON).")
def metrics(rules: bool, dashboard: bool) -> None:
    """Print alert rules or a dashboard for the metrics that --metrics serves.

    For example: kview metrics --rules > kview.rules.yml, and name that file under rule_files in
    prometheus.yml. Import the dashboard in Grafana under Dashboards > New > Import.
    """
    if rules == dashboard:
        raise click.UsageError(
            "choose either --rules or --dashboard; kview connect … --metrics serves metrics"
        )
    if rules:
        from kview.plain.alert_rules import rules as rule_file

        click.echo(rule_file(), nl=False)
        return
    import msgspec

    from kview.plain.grafana import dashboard as made

    click.echo(msgspec.json.format(msgspec.json.encode(made()), indent=2).decode())
