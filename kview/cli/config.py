"""`kview config`: show which files kview reads, and the settings in force."""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kview.cli.targets import Target, of_profile, target_of
from kview.cli.values import words
from kview.errors import BadUse, ErrorKind, KviewError

if TYPE_CHECKING:
    from kview.config.connect_rest import ConnectRest
    from kview.config.decoders import Decoder
    from kview.config.display import DisplayDefaults
    from kview.config.hooks import Hook
    from kview.config.schema_registry import SchemaRegistry
    from kview.config.security import Login, Tls


ON_FINDING = """\
In config.toml, a profile may name what is called when a finding begins, gets worse or ends:

    [clusters.prod]
    servers = "kafka-1:9092"
    on-finding = ["/usr/local/bin/tell"]     # a command with its arguments; no shell runs it
    on-finding = "https://example.com/${env:TOKEN}"     # or a URL, to which the document is posted
    on-finding-severity = "risk"    # "warn" (the default) includes risks
    on-finding-hold = "2m"          # it is reported when it has lasted so long, or is gone for so long; 30s

The command gets one JSON document on its standard input (kview schema: HookDocument), such as

    {"cluster": "prod", "change": "begins", "key": "k1aB…/brokers_silent", "text": "prod: broker 4 …",
     "finding": {"kind": "brokers_silent", "severity": "risk", "brokers": [4], …}, …}

`change` is "begins", "gets worse", "ends" or "test". Brokers that fell silent are one finding, and a risk,
until they are back, also while they are fenced; its text says what they are now. More brokers, groups, log
directories or failed tasks are worse, and so are twice as many partitions. What tells of the past, such as
lost records, has no end. Nothing ends while no broker answers, or that ends while kview does not run: close
what such a finding has opened by hand.

`finding.severity` is that of the finding, `severity` that of the cluster's worst. When more than 5 groups
lose records at once, the fifth document is about all others.

Calls come one after the other; one that fails or takes more than 30 s is made again after 5 and after 30 s.
At most 100 wait. Beyond that, the least severe of them is not made, and of these the oldest.
What was sent, and what was not, is in kview.log. What a command leaves running must not write to its standard
error. kview has to run: kview connect prod --quiet. To try it: kview config prod --try-on-finding.

/usr/local/bin/tell for Slack (curl and jq):

    #!/bin/sh
    jq '{text: .text}' | curl -fsS -H 'Content-Type: application/json' -d @- "$SLACK_WEBHOOK_URL"

For PagerDuty (Events API v2):

    #!/bin/sh
    jq --arg key "$PAGERDUTY_ROUTING_KEY" '{routing_key: $key, dedup_key: .key,
      event_action: (if .change == "ends" then "resolve" else "trigger" end),
      payload: {summary: .text, source: .cluster,
                severity: (if .finding.severity == "risk" then "critical" else "warning" end)}}' |
    curl -fsS -H 'Content-Type: application/json' -d @- https://events.pagerduty.com/v2/enqueue"""


def _help_on_finding(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        click.echo(ON_FINDING)
        ctx.exit()


def _try_on_finding(name: str | None) -> None:
    """Call what a profile names with a test. Raises BadUse."""
    target = None if name is None else target_of(name)
    hook = None if target is None else target.hook()
    if target is None or hook is None:
        raise click.UsageError("give a profile that has on-finding (see --help-on-finding).")
    from kview.run.hooks import CallFailed, call, trial_document

    document = trial_document(target.name)
    try:
        call(hook, document)
    except CallFailed as failure:
        raise BadUse(ErrorKind.HOOK_FAILED, call=hook.shown, reason=str(failure)) from None
    click.echo(f"{hook.shown} was called: {document.text}")


@click.command()
@click.argument("target", metavar="HOST:PORT[,…]|PROFILE", required=False)
@click.option(
    "--command-config",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="As for connect: a Java client's properties file.",
)
@click.option("--keys", is_flag=True, help="List the actions by name, and their keys, as in keys.toml.")
@click.option("--map", "maps", multiple=True, metavar="FROM=TO", help="As for connect.")
@click.option("--try-on-finding", is_flag=True, help="Call the profile's on-finding now, with a test.")
@click.option(
    "--help-on-finding",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_help_on_finding,
    help="Show how a profile calls a command or a URL, with Slack and PagerDuty as examples.",
)
def config(
    target: str | None,
    command_config: Path | None,
    keys: bool,
    maps: tuple[str, ...],
    try_on_finding: bool,
) -> None:
    """Show which files kview reads, and the settings in force for a cluster, or for every profile.

    Passwords and other secrets are shown as ***. It connects to no broker.
    """
    if try_on_finding:
        _try_on_finding(target)
        return
    if keys:
        _echo("", _keys())
        return
    if target is not None:
        _echo("", _in_force(target_of(target, command_config, maps)))
        return
    from kview.config.profiles import config_path, read_config

    path = config_path()
    _echo("", _files(path))
    read = read_config(path)
    if shown := _shown(read.display):
        click.echo()
        _echo("", ["[display]"])
        _echo("  ", shown)
    for name, profile in sorted(read.clusters.items()):
        click.echo()
        _echo("", [f"[clusters.{name}]"])
        try:
            lines = [*_in_force(of_profile(name, profile, path, command_config, maps, os.environ))]
        except KviewError as error:
            from kview.language.errors import sentence

            lines = [sentence(error)]
        _echo("  ", lines)


def _echo(indent: str, lines: Iterable[str]) -> None:
    """Print lines, whose values come from files and may contain anything."""
    from kview.language.glyphs import printable

    for line in lines:
        click.echo(indent + printable(line))


def _shown(display: "DisplayDefaults") -> list[str]:
    """Return a line for each value that is not kview's own."""
    values = {
        "theme": display.theme,
        "interval": display.interval,
        "ignore-group": " ".join(display.ignore_group),
    }
    lines = [f"{key:{WIDTH}}{value}" for key, value in values.items() if value]
    return lines if display.mouse else [*lines, f"{'mouse':{WIDTH}}no"]


WIDTH = 22
"""Columns of the names."""


def _files(path: Path) -> Iterator[str]:
    from kview.config.key_file import key_file_path
    from kview.config.log import log_path
    from kview.config.themes import theme_folders
    from kview.recording.names import state_folder
    from kview.school.folders import lesson_folders

    read = "" if os.path.exists(path) else " (does not exist)"
    yield f"{'config.toml':{WIDTH}}{path}{read}"
    yield f"{'demos':{WIDTH}}{lesson_folders()[-1]}"
    keys = key_file_path()
    read = "" if keys.exists() else " (does not exist)"
    yield f"{'keys.toml':{WIDTH}}{keys}{read}"
    yield f"{'kview.log':{WIDTH}}{log_path()}"
    yield f"{'choices':{WIDTH}}{state_folder() / 'choices'}"
    yield f"{'recordings':{WIDTH}}{state_folder()}"
    yield f"{'themes':{WIDTH}}{theme_folders()[-1]}"


def _keys() -> Iterator[str]:
    """Yield a line for each action: its name, its keys in force, and what it does."""
    from kview.tui.key_names import key_name
    from kview.tui.keymap import read_keys

    keys = read_keys()
    said = set()
    for action in keys.actions:
        if action.name not in said and not action.fixed:
            said.add(action.name)
            shown = ", ".join(key_name(key) for key in keys.of(action.name))
            yield f"{action.name:{WIDTH}}{shown:12}{keys.said(action.help or action.label)}"


def _in_force(target: Target) -> Iterator[str]:
    """Yield a line for each setting, under the name that it has in a file. Raises BadUse."""
    from kview.config.masks import text_of

    security, masks = target.security, target.security.masks
    target.check_security()
    flags = target.profile.flags() if target.profile is not None else {}
    rows: list[tuple[str, str]] = [*flags.items(), ("servers", ",".join(map(str, target.servers)))]
    rows += [("map", f"{advertised}={reached}") for advertised, reached in security.routes.items()]
    rows += [("read from", target.file)] if target.file else []
    rows.append(("security.protocol", security.protocol.value))
    rows += _tls(security.tls) if security.tls else []
    rows += _login(security.login) if security.login else []
    rows += _connect(security.connect) if security.connect else []
    rows += _registry(security.registry) if security.registry else []
    rows += _decoders("decoder", security.decoders.values) + _decoders("key-decoder", security.decoders.keys)
    hook = target.hook()
    rows += _hook(hook) if hook else []
    rows += [(f"mask.{topics}", ", ".join(map(text_of, mask.patterns))) for topics, mask in masks.by_topic]
    rows += [("not used", ", ".join(target.unused))] if target.unused else []
    for name, value in rows:
        yield f"{name:{WIDTH - 1}} {value}"


def _tls(tls: "Tls") -> list[tuple[str, str]]:
    trusted = tls.authorities.count("-----BEGIN CERTIFICATE-----")
    certificates = "1 certificate" if trusted == 1 else f"{trusted} certificates"
    rows = [
        ("trusts", certificates if trusted else "the authorities that this machine trusts"),
        ("checks host name", "yes" if tls.check_host_name else "no"),
    ]
    if tls.identity is None:
        return [*rows, ("client certificate", "none")]
    identity = tls.identity
    rows.append(("client certificate", identity.source))
    return [*rows, *([("key password", str(identity.password))] if identity.password else [])]


def _login(login: "Login") -> list[tuple[str, str]]:
    from kview.config.security import WITH_PASSWORD

    rows = [("sasl.mechanism", login.mechanism.value)]
    if login.mechanism in WITH_PASSWORD:
        return [*rows, ("username", login.user), ("password", str(login.password))]
    if login.oauth is not None:
        oauth: Mapping[str, str] = {
            "token endpoint": login.oauth.shown_url,
            "client id": login.oauth.client_id,
            "client secret": str(login.oauth.client_secret),
            "scope": login.oauth.scope or "none",
        }
        return [*rows, *oauth.items()]
    return [*rows, ("service", login.kerberos_service)]


def _connect(rest: "ConnectRest") -> list[tuple[str, str]]:
    login = [("connect-user", rest.user), ("connect-password", str(rest.password))] if rest.user else []
    return [("connect-url", rest.url), *login]


def _hook(hook: "Hook") -> list[tuple[str, str]]:
    least = "risk" if hook.severity == "risk" else "warn and risk"
    hold = words(hook.hold_ms)
    return [("on-finding", hook.shown), ("on-finding-severity", least), ("on-finding-hold", hold)]


def _decoders(key: str, decoders: "Mapping[str, Decoder]") -> list[tuple[str, str]]:
    return [
        (f"{key}.{topic}", ":".join(filter(None, (decoder.kind.value, decoder.name))))
        for topic, decoder in decoders.items()
    ]


def _registry(registry: "SchemaRegistry") -> list[tuple[str, str]]:
    rows = [("schema-registry-url", registry.url)]
    if registry.user:
        rows += [
            ("schema-registry-user", registry.user),
            ("schema-registry-password", str(registry.password)),
        ]
    return [*rows, ("schema-registry-token", str(registry.token))] if registry.token else rows
