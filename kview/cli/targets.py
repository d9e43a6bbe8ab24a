"""The cluster that a command is about: bootstrap servers or a profile, and how to get through to it."""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem
from msgspec import Struct
from msgspec.structs import replace

from kview.cli.values import address_map, bootstrap_servers, rest_url
from kview.errors import BadUse, ErrorKind

if TYPE_CHECKING:
    from kview.config.hooks import Hook
    from kview.config.profiles import Profile
    from kview.config.security import Security
    from kview.model.address import Address
    from kview.model.notices import Notice

F = TypeVar("F", bound=Callable[..., Any])


def _completions(ctx: click.Context, param: click.Parameter, typed: str) -> list[CompletionItem]:
    """Complete the names of profiles."""
    return [CompletionItem(name) for name in profile_names() if name.startswith(typed)]


def target_options(command: F) -> F:
    """Add what names a cluster to a command: `target`, `command_config` and `maps`."""
    add = click.argument(
        "target", metavar="HOST:PORT[,…]|PROFILE", required=False, shell_complete=_completions
    )
    return _access_options(add(command))


def targets_options(command: F) -> F:
    """Add what names clusters to a command: `targets`, `all_profiles`, `command_config` and `maps`."""
    for add in (
        click.option("--all", "all_profiles", is_flag=True, help="All clusters in config.toml."),
        click.argument("targets", metavar="[HOST:PORT[,…]|PROFILE]…", nargs=-1, shell_complete=_completions),
    ):
        command = add(command)
    return _access_options(command)


def _access_options(command: F) -> F:
    for add in (
        click.option(
            "--map",
            "maps",
            multiple=True,
            metavar="FROM=TO",
            help="Connect to TO where brokers advertise FROM, such as kafka:9092=localhost:9092. May be"
            " repeated.",
        ),
        click.option(
            "--command-config",
            type=click.Path(dir_okay=False, path_type=Path),
            metavar="FILE",
            help="A Java client's properties file, as for Kafka's own tools: security.protocol, sasl.*,"
            " ssl.*.",
        ),
    ):
        command = add(command)
    return command


registry_option = click.option(
    "--schema-registry-url",
    "registry_url",
    default="",
    callback=rest_url,
    metavar="URL",
    help="A schema registry (Confluent's API), whose schemas decode keys and values. Logins go into a"
    " profile.",
)
"""A schema registry besides the profile's: `registry_url`."""


class Target(Struct, frozen=True):
    """A cluster. `unused` are the keys in `file` that kview does not use."""

    name: str
    servers: "tuple[Address, ...]"
    security: "Security"
    file: str = ""
    unused: tuple[str, ...] = ()
    profile: "Profile | None" = None
    hook: "Callable[[], Hook | None]" = lambda: None
    """Returns what is called for findings. Raises BadUse."""
    again: "Callable[[], Target] | None" = None
    """Reads the settings again."""

    @property
    def called(self) -> str:
        """The profile's name, or the first server and how many others are given."""
        if self.profile is not None:
            return self.name
        first, *others = self.servers
        return f"{first} +{len(others)}" if others else str(first)

    def security_now(self) -> "Security":
        """Return the settings as the files have them now. Raises BadUse."""
        return self.security if self.again is None else self.again().security

    def check_security(self) -> None:
        """Read the certificates and the key. Raises BadUse if one of them cannot be used."""
        from kview.observe.access import access

        access(self.security)

    def unused_properties(self) -> "tuple[Notice, ...]":
        """Return the notice about the keys that kview does not use, () if there are none."""
        from kview.model.notices import Notice, NoticeKind

        if not self.unused:
            return ()
        return (Notice(NoticeKind.PROPERTIES_UNUSED, {"file": self.file, "keys": ", ".join(self.unused)}),)


def profile_names() -> list[str]:
    """Return the names of all profiles, none if their file cannot be read."""
    from kview.config.profiles import config_path, read_config

    try:
        return sorted(read_config(config_path()).clusters)
    except BadUse:
        return []


def target_of(
    text: str,
    command_config: Path | None = None,
    maps: Sequence[str] = (),
    environment: Mapping[str, str] = os.environ,
    registry_url: str = "",
) -> Target:
    """Return the cluster that `text` names. A profile's name has no colon. Raises BadUse.

    `registry_url` counts instead of the profile's schema registry, whose login is for that one alone.
    """

    def read() -> Target:
        target = _target_of(text, command_config, maps, environment)
        if not registry_url:
            return target
        from kview.config.schema_registry import SchemaRegistry

        registry = SchemaRegistry(registry_url.rstrip("/"))
        return replace(target, security=replace(target.security, registry=registry))

    return replace(read(), again=read)


def targets_of(
    texts: Sequence[str],
    all_profiles: bool,
    command_config: Path | None = None,
    maps: Sequence[str] = (),
    environment: Mapping[str, str] = os.environ,
    registry_url: str = "",
) -> list[Target]:
    """Return the clusters that `texts` name, or those of all profiles. Raises BadUse, which names the cluster
    if there are several, and UsageError."""
    if all_profiles:
        if texts:
            raise click.UsageError("--all stands for the names of all profiles: leave it out, or the names")
        from kview.config.profiles import config_path, read_config

        path = config_path()
        texts = sorted(read_config(path).clusters)
        if not texts:
            raise BadUse(ErrorKind.NO_PROFILES, file=str(path))
    targets: list[Target] = []
    for text in texts:
        with named(text if len(texts) > 1 else ""):
            target = target_of(text, command_config, maps, environment, registry_url)
        if any(target.called == other.called for other in targets):
            raise click.UsageError(f"{text} is given twice")
        targets.append(target)
    return targets


@contextmanager
def named(cluster: str) -> Iterator[None]:
    """Let a BadUse or UsageError in this block say which cluster it is about, '' if there is only one."""
    try:
        yield
    except BadUse as error:
        if not cluster:
            raise
        raise BadUse(error.kind, **error.values, cluster=cluster) from error
    except click.UsageError as error:
        if not cluster:
            raise
        raise click.UsageError(f"{cluster}: {error.format_message()}", error.ctx) from error


def folder_name(cluster: str) -> str:
    """Return the name of a cluster's folder, which no other cluster has: its own, with all but letters,
    digits, `_`, `.` and `-` as `%` and two hexadecimal digits for each byte."""

    def encoded(found: re.Match[str]) -> str:
        return "".join(f"%{byte:02X}" for byte in found[0].encode())

    return re.sub(r"^\.|[^\w.-]", encoded, cluster)


def _target_of(
    text: str, command_config: Path | None, maps: Sequence[str], environment: Mapping[str, str]
) -> Target:
    from kview.config.profiles import config_path, read_config

    if ":" in text or not text or "," in text:
        return _of_servers(text, text, command_config, maps, environment)
    path = config_path()
    profiles = read_config(path).clusters
    if text in profiles:
        return of_profile(text, profiles[text], path, command_config, maps, environment)
    if not profiles:
        bootstrap_servers(text)  # says that there is no port
    raise BadUse(ErrorKind.PROFILE_UNKNOWN, name=text, file=str(path), known=tuple(sorted(profiles)))


def of_profile(
    name: str,
    profile: "Profile",
    path: Path,
    command_config: Path | None,
    maps: Sequence[str],
    environment: Mapping[str, str],
) -> Target:
    """Return the cluster of a profile in the file `path`. Flags override the profile. Raises BadUse."""
    from kview.config.client_properties import of_properties
    from kview.config.references import in_folder

    if command_config is None and profile.command_config:
        command_config = in_folder(profile.command_config, path.parent)
    target = _of_servers(name, profile.servers, command_config, (*profile.map, *maps), environment)
    properties = profile.client_properties()
    if properties and command_config is None:
        client_properties = of_properties(str(path), properties, environment, path.parent)
        security = replace(client_properties.security, routes=target.security.routes)
        target = replace(target, security=security, file=str(path), unused=client_properties.unused)
    security = replace(
        target.security,
        connect=profile.connect(str(path), name, environment),
        registry=profile.registry(str(path), name, environment),
        decoders=profile.decoders(str(path), name),
        masks=profile.masks(str(path), name),
    )
    hook = partial(profile.hook, str(path), name, environment)
    return replace(target, security=security, profile=profile, hook=hook)


def _of_servers(
    name: str, servers: str, command_config: Path | None, maps: Sequence[str], environment: Mapping[str, str]
) -> Target:
    from kview.config.client_properties import read_client_properties
    from kview.config.security import PLAINTEXT

    addresses, routes = bootstrap_servers(servers), address_map(maps)
    if command_config is None:
        return Target(name, addresses, replace(PLAINTEXT, routes=routes))
    read = read_client_properties(command_config, environment)
    return Target(name, addresses, replace(read.security, routes=routes), str(command_config), read.unused)
