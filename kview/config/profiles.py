"""`config.toml` in the user's configuration folder: profiles, which are clusters by name, and `[display]`."""

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

import msgspec
import platformdirs

from kview.config import connect_rest, decoders, hooks, masks, schema_registry
from kview.config.connect_rest import ConnectRest
from kview.config.decoders import Decoder, Decoders
from kview.config.display import DisplayDefaults
from kview.config.hooks import Hook
from kview.config.references import read_file
from kview.config.schema_registry import SchemaRegistry
from kview.errors import BadUse, ErrorKind
from kview.model.masking import Masks
from kview.model.name_patterns import BadPattern, NamePattern

_LIKE_A_SERVER = frozenset(":,")
"""What tells bootstrap servers from the name of a profile."""
_UNKNOWN = re.compile(r"unknown field `([^`]*)`")
_WRONG = re.compile(r"`\$\.([a-z-]+)")
_EXPECTED: Mapping[str, str] = {
    "servers": 'a text, such as "host:9092,other:9092"',
    "command-config": 'a path, such as "client.properties"',
    "map": 'a list, such as ["kafka:9092=localhost:9092"]',
    "properties": 'a table, such as properties."security.protocol" = "SSL"',
    "interval": 'a text, such as "2s"',
    "theme": 'a text, such as "light"',
    "mouse": "true or false",
    "ascii": "true or false",
    "no-spark": "true or false",
    "no-records": "true or false",
    "ignore-group": 'a list, such as ["console-*"]',
    "metrics-include": 'a list, such as ["topic:orders-*", "group:billing"]',
    "metrics-exclude": 'a list, such as ["group:console-*"]',
    "production": "true or false",
    "colour": 'a colour, such as "#d08770"',
    connect_rest.URL: 'the address of the REST API, such as "https://connect:8083", without a user, password'
    " or query",
    connect_rest.USER: 'a user name without ":", such as "kview"',
    connect_rest.PASSWORD: 'the password of connect-user, such as "${env:CONNECT_PASSWORD}"',
    decoders.VALUES: 'a table by topic, such as decoder.invoice = "avro:invoice.avsc",'
    ' "protobuf:invoice.desc:com.acme.Invoice", "plain" or "registry"',
    decoders.KEYS: 'a table by topic, such as key-decoder.invoice = "plain"',
    masks.KEY: 'a table by topic, such as mask."payments.*" = "all" or mask.customers = ["key",'
    ' "value.card.*", "email"]: key, value or headers, paths that begin with one of them or with "**", and'
    " names of fields at any depth",
    schema_registry.URL: 'the address of the registry, such as "https://registry:8081", without a user,'
    " password or query",
    schema_registry.USER: 'a user name without ":", such as "kview"',
    schema_registry.PASSWORD: 'the password of schema-registry-user, such as "${env:REGISTRY_PASSWORD}"',
    schema_registry.TOKEN: 'a bearer token instead of a user, such as "${env:REGISTRY_TOKEN}"',
    hooks.CALL: 'a command with its arguments as a list, such as ["/usr/local/bin/page", "kafka"], or a URL'
    ' without a user, such as "https://hooks.example.com/kview"',
    hooks.SEVERITY: '"warn" (which includes risks) or "risk", beside on-finding',
    hooks.HOLD: 'seconds or minutes, such as "30s" or "5m", beside on-finding',
}
"""What each key of a profile, and of [display], takes."""


class Profile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, rename="kebab"):
    """A cluster: values for flags of `kview connect`, and properties of a Java client by their own names.

    `servers` are the bootstrap servers, separated by commas. `production` and `colour` (`#rrggbb`) mark the
    name of the cluster in the head of the dashboard.
    """

    servers: str
    command_config: str | None = None
    map: tuple[str, ...] = ()
    properties: dict[str, Any] = {}
    interval: str | None = None
    theme: str | None = None
    ascii: bool = False
    no_spark: bool = False
    no_records: bool = False
    ignore_group: tuple[str, ...] = ()
    metrics_include: tuple[str, ...] = ()
    metrics_exclude: tuple[str, ...] = ()
    production: bool = False
    colour: Annotated[str, msgspec.Meta(pattern="^#[0-9a-fA-F]{6}$")] | None = None
    connect_url: str | None = None
    connect_user: str | None = None
    connect_password: str | None = None
    schema_registry_url: str | None = None
    schema_registry_user: str | None = None
    schema_registry_password: str | None = None
    schema_registry_token: str | None = None
    decoder: dict[str, Any] = {}
    key_decoder: dict[str, Any] = {}
    on_finding: str | tuple[str, ...] | None = None
    on_finding_severity: str | None = None
    on_finding_hold: str | None = None
    mask: dict[str, Any] = {}

    def flags(self) -> dict[str, str]:
        """Return the flags that only say how to show the cluster, by name, and their values."""
        words = {
            "interval": self.interval,
            "theme": self.theme,
            "ignore-group": " ".join(self.ignore_group),
            "metrics-include": " ".join(self.metrics_include),
            "metrics-exclude": " ".join(self.metrics_exclude),
        }
        shown = {"ascii": self.ascii, "no-spark": self.no_spark, "no-records": self.no_records}
        return {key: word for key, word in words.items() if word} | {
            key: "yes" for key, chosen in shown.items() if chosen
        }

    def client_properties(self) -> dict[str, str]:
        """Return the properties by key. TOML turns keys with dots into tables; this joins them again."""
        return dict(_flat("", self.properties))

    def connect(self, file: str, name: str, environment: Mapping[str, str]) -> ConnectRest | None:
        """Return the REST API of Kafka Connect, None if it names none. Raises BadUse, which quotes no value.

        `file` and `name` are where this profile is. Relative paths in references start at the file's folder.
        """
        values = {
            connect_rest.URL: self.connect_url,
            connect_rest.USER: self.connect_user,
            connect_rest.PASSWORD: self.connect_password,
        }
        try:
            return connect_rest.connect_rest(values, environment, Path(file).parent)
        except connect_rest.NotUsable as error:
            raise _not_usable(file, name, error) from None

    def registry(self, file: str, name: str, environment: Mapping[str, str]) -> SchemaRegistry | None:
        """Return the schema registry, None if it names none, as `connect` does."""
        values = {
            schema_registry.URL: self.schema_registry_url,
            schema_registry.USER: self.schema_registry_user,
            schema_registry.PASSWORD: self.schema_registry_password,
            schema_registry.TOKEN: self.schema_registry_token,
        }
        try:
            return schema_registry.schema_registry(values, environment, Path(file).parent)
        except connect_rest.NotUsable as error:
            raise _not_usable(file, name, error) from None

    def hook(self, file: str, name: str, environment: Mapping[str, str]) -> Hook | None:
        """Return what is called for findings, None if it names nothing, as `connect` does."""
        called = self.on_finding, self.on_finding_severity, self.on_finding_hold
        try:
            return hooks.hook(*called, environment, Path(file).parent)
        except connect_rest.NotUsable as error:
            raise _not_usable(file, name, error) from None

    def decoders(self, file: str, name: str) -> Decoders:
        """Return the decoders by topic. Raises BadUse. Relative paths in them start at the file's folder."""

        def of(key: str, table: Mapping[str, Any]) -> dict[str, Decoder]:
            try:
                return {topic: decoders.decoder(text, Path(file).parent) for topic, text in _flat("", table)}
            except decoders.NotADecoder:
                raise _wrong(file, name, key) from None

        return Decoders(of(decoders.VALUES, self.decoder), of(decoders.KEYS, self.key_decoder))

    def masks(self, file: str, name: str) -> Masks:
        """Return what is hidden of records, by topic. Raises BadUse."""
        try:
            return masks.masks(self.mask)
        except masks.NotAMask as error:
            key = f"{masks.KEY}.{error}"
            raise BadUse(
                ErrorKind.PROFILE_WRONG, file=file, name=name, key=key, expected=_EXPECTED[masks.KEY]
            ) from None


def _not_usable(file: str, name: str, error: connect_rest.NotUsable) -> BadUse:
    return _wrong(file, name, str(error))


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    clusters: dict[str, dict[str, Any]] = {}
    display: dict[str, Any] = {}


class Config(msgspec.Struct, frozen=True):
    """What `config.toml` holds."""

    clusters: Mapping[str, Profile] = msgspec.field(default_factory=dict)
    display: DisplayDefaults = msgspec.field(default_factory=DisplayDefaults)


def config_path() -> Path:
    """Return where the profiles are."""
    return platformdirs.user_config_path("kview", appauthor=False) / "config.toml"


def read_config(path: Path) -> Config:
    """Read the profiles. Without a file, there are none. Raises BadUse, which does not quote any value."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return Config()
    except OSError as error:
        reason = error.strerror or str(error)
        raise BadUse(ErrorKind.FILE_NOT_READ, file=str(path), reason=reason) from error
    try:
        held = msgspec.toml.decode(read_file(path), type=_File)
    except msgspec.ValidationError as error:
        raise _unlike(str(path), "", str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadUse(ErrorKind.CONFIG_WRONG, file=str(path), reason=_place(error)) from None
    clusters = {name: _profile(str(path), name, values) for name, values in held.clusters.items()}
    return Config(clusters, _display(str(path), held.display))


def _display(file: str, values: Mapping[str, Any]) -> DisplayDefaults:
    try:
        return msgspec.convert(values, DisplayDefaults)
    except msgspec.ValidationError as error:
        known = tuple(field.encode_name for field in msgspec.structs.fields(DisplayDefaults))
        if unknown := _UNKNOWN.search(str(error)):
            raise BadUse(ErrorKind.CONFIG_KEY_UNKNOWN, file=file, key=unknown[1], known=known) from None
        wrong = _WRONG.search(str(error))
        key = wrong[1] if wrong else known[0]
        raise BadUse(ErrorKind.DISPLAY_WRONG, file=file, key=key, expected=_EXPECTED[key]) from None


def _profile(file: str, name: str, values: Mapping[str, Any]) -> Profile:
    if not name or not _LIKE_A_SERVER.isdisjoint(name):
        raise BadUse(ErrorKind.PROFILE_NAME_WRONG, file=file, name=name)
    try:
        profile = msgspec.convert(values, Profile)
    except msgspec.ValidationError as error:
        raise _unlike(file, name, str(error)) from None
    patterns = {"metrics-include": profile.metrics_include, "metrics-exclude": profile.metrics_exclude}
    for key, texts in patterns.items():
        try:
            for text in texts:
                NamePattern.parse(text)
        except BadPattern:
            raise _wrong(file, name, key) from None
    return profile


def _unlike(file: str, name: str, error: str) -> BadUse:
    """Return the error for values of another shape. msgspec's texts name keys and types, but no values."""
    if unknown := _UNKNOWN.search(error):
        return _unknown_key(file, name, unknown[1])
    if not name:
        return BadUse(
            ErrorKind.CONFIG_WRONG, file=file, reason="it has other things than [clusters.NAME] and [display]"
        )
    wrong = _WRONG.search(error)
    key = wrong[1] if wrong else "servers"  # the only key that must be there
    return _wrong(file, name, key)


def _wrong(file: str, name: str, key: str) -> BadUse:
    return BadUse(ErrorKind.PROFILE_WRONG, file=file, name=name, key=key, expected=_EXPECTED[key])


def _unknown_key(file: str, name: str, key: str) -> BadUse:
    """Return the error for an unknown key of a profile or, if `name` is '', of the file itself."""
    of_profiles = tuple(field.encode_name for field in msgspec.structs.fields(Profile))
    if not name and key in of_profiles:
        return BadUse(ErrorKind.CONFIG_KEY_OUTSIDE, file=file, key=key)
    known = of_profiles if name else tuple(field.encode_name for field in msgspec.structs.fields(_File))
    near = get_close_matches(key, known, 1)
    if near:
        return BadUse(ErrorKind.CONFIG_KEY_MISSPELT, file=file, key=key, nearest=near[0])
    if not name:
        return BadUse(ErrorKind.CONFIG_TABLE_UNKNOWN, file=file, key=key)
    return BadUse(ErrorKind.CONFIG_KEY_UNKNOWN, file=file, key=key, known=known)


def _place(error: Exception) -> str:
    """Return where a file stops being valid TOML.

    The parser's own message may quote the file, which may have secrets.
    """
    place = re.search(r"\(at (line \d+, column \d+|end of document)\)", str(error))
    return f"not TOML at {place[1].removeprefix('at ')}" if place else "not TOML"


def _flat(prefix: str, table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(f"{prefix}{key}.", value)
        else:
            yield f"{prefix}{key}", str(value).lower() if isinstance(value, bool) else str(value)
