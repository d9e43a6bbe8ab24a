"""The properties file of a Java client, which Kafka's own tools take as `--command-config`."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple, TypeVar

from msgspec import Struct

from kview.config import stores
from kview.config.properties import parse_properties
from kview.config.references import in_folder, read_file, resolved
from kview.config.secret import Secret
from kview.config.security import WITH_PASSWORD, Identity, Login, Mechanism, OAuth, Protocol, Security, Tls
from kview.errors import BadUse, ErrorKind

PROTOCOL = "security.protocol"
MECHANISM = "sasl.mechanism"
JAAS = "sasl.jaas.config"
SERVICE = "sasl.kerberos.service.name"
TOKEN_URL = "sasl.oauthbearer.token.endpoint.url"
CLIENT_ID = "sasl.oauthbearer.client.credentials.client.id"
CLIENT_SECRET = "sasl.oauthbearer.client.credentials.client.secret"
SCOPE = "sasl.oauthbearer.scope"
ENDPOINT_CHECK = "ssl.endpoint.identification.algorithm"
LOGIN_HANDLER = "sasl.login.callback.handler.class"

MODULES: Mapping[Mechanism, str] = {
    Mechanism.PLAIN: "PlainLoginModule",
    Mechanism.SCRAM_SHA_256: "ScramLoginModule",
    Mechanism.SCRAM_SHA_512: "ScramLoginModule",
    Mechanism.OAUTHBEARER: "OAuthBearerLoginModule",
    Mechanism.GSSAPI: "Krb5LoginModule",
    Mechanism.AWS_MSK_IAM: "IAMLoginModule",
}
"""The login module of each mechanism, without its package."""

PACKAGES: Mapping[Mechanism, str] = {Mechanism.GSSAPI: "gssapi", Mechanism.AWS_MSK_IAM: "botocore"}
"""The package that kafka-python needs for a mechanism."""

_HANDLERS = ("OAuthBearerLoginCallbackHandler", "IAMClientCallbackHandler")
"""Java's classes that do what kview does itself."""

E = TypeVar("E", Protocol, Mechanism)


class ClientProperties(Struct, frozen=True):
    """The security settings of a file, and the keys in it that kview does not use."""

    security: Security
    unused: tuple[str, ...] = ()


def read_client_properties(path: Path, environment: Mapping[str, str]) -> ClientProperties:
    """Read a properties file and its stores, whose paths start at the working folder, as in Java.

    Raises BadUse.
    """
    data = read_file(path)
    if b"\0" in data:
        raise BadUse(ErrorKind.NOT_PROPERTIES, file=str(path))
    values = parse_properties(data.decode("latin-1"))
    return of_properties(str(path), values, environment, Path())


def of_properties(
    file: str, values: Mapping[str, str], environment: Mapping[str, str], folder: Path
) -> ClientProperties:
    """Return the security settings in `values`, which are those of `file`. Raises BadUse.

    Relative paths in them start at `folder`.
    """
    known = {key: resolved(value, environment, folder) for key, value in values.items()}
    properties = _Properties(file, folder, known)
    security = properties.security()
    return ClientProperties(security, tuple(properties.unused()))


# -- `sasl.jaas.config`: a login module, a flag, and options


_FLAGS = frozenset({"required", "requisite", "sufficient", "optional"})
_TOKEN = re.compile(r"""\s*(?:"((?:\\.|[^"\\])*)"|'((?:\\.|[^'\\])*)'|([=;])|([^\s=;"']+))""", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_LETTERS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "b": "\b"}


class NotJaas(ValueError):
    """Raised for a text that is not a login module with its flag and options."""


class LoginModule(NamedTuple):
    """A login module: the last part of its class name, and its options."""

    name: str
    options: dict[str, str]


def parse_jaas(text: str) -> LoginModule:
    """Return the login module in `CLASS required KEY="VALUE" …;`. Raises NotJaas, without the text."""
    tokens = _jaas_tokens(text)
    if len(tokens) < 3 or tokens[1][0].lower() not in _FLAGS or tokens[-1] != (";", True):
        raise NotJaas
    options, rest = {}, tokens[2:-1]
    if len(rest) % 3:
        raise NotJaas
    for (key, key_is_sign), equals, (value, value_is_sign) in zip(*[iter(rest)] * 3, strict=True):
        if key_is_sign or value_is_sign or equals != ("=", True):
            raise NotJaas
        options[key] = value
    return LoginModule(tokens[0][0].rpartition(".")[2], options)


def _jaas_tokens(text: str) -> list[tuple[str, bool]]:
    """Return the words, and whether each is a symbol: `=` or `;`."""
    tokens, at, text = [], 0, text.rstrip()
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise NotJaas
        at = token.end()
        double, single, sign, bare = token.groups()
        quoted = double if double is not None else single
        if quoted is not None:
            tokens.append((_ESCAPE.sub(lambda escape: _LETTERS.get(escape[1], escape[1]), quoted), False))
        else:
            tokens.append((sign or bare, bool(sign)))
    return tokens


# -- the values of a file


@dataclass(slots=True)
class _Properties:
    """The values of a file. It remembers which of them were used."""

    file: str
    folder: Path
    _values: Mapping[str, str] = field(repr=False)
    _used: set[str] = field(default_factory=set)
    _unused_options: list[str] = field(default_factory=list)

    def security(self) -> Security:
        """Return the security settings."""
        protocol = self._choice(PROTOCOL, Protocol, Protocol.PLAINTEXT)
        tls = self._tls(protocol.has_tls)
        login = self._login() if protocol.has_login else None
        self._used |= {"bootstrap.servers"}  # where to connect is an argument
        self._used |= {MECHANISM, JAAS, SERVICE, TOKEN_URL, CLIENT_ID, CLIENT_SECRET, SCOPE}
        handlers = (LOGIN_HANDLER, "sasl.client.callback.handler.class")
        self._used |= {key for key in handlers if self._values.get(key, "").rpartition(".")[2] in _HANDLERS}
        return Security(protocol, tls, login)

    def unused(self) -> Iterator[str]:
        """Return the keys, and the options of the login module, that were not used."""
        yield from sorted(self._values.keys() - self._used)
        yield from sorted(self._unused_options)

    def _get(self, key: str) -> str:
        self._used.add(key)
        return self._values.get(key, "")

    def _secret(self, key: str) -> Secret | None:
        value = self._get(key)
        return Secret(value) if value else None

    def _choice(self, key: str, choices: type[E], default: E) -> E:
        value = self._get(key).strip()
        if not value:
            return default
        try:
            return choices(value.upper())
        except ValueError as error:
            known = tuple(map(str, choices))
            raise BadUse(ErrorKind.PROPERTY_WRONG, key=key, file=self.file, choices=known) from error

    def _tls(self, wanted: bool) -> Tls | None:
        """Return the TLS settings if they are wanted, without reading any store if they are not."""
        location, inline = self._get("ssl.truststore.location"), self._get("ssl.truststore.certificates")
        self._get("ssl.truststore.type")  # the store's contents tell what it is
        self._get("ssl.keystore.type")
        password, checks = self._secret("ssl.truststore.password"), self._get(ENDPOINT_CHECK)
        identity = self._identity(wanted)
        if not wanted:
            return None
        trusted = inline
        if location:
            trusted = stores.authorities(in_folder(location, self.folder), password)
        return Tls(trusted, identity, checks != "" or ENDPOINT_CHECK not in self._values)

    def _identity(self, wanted: bool) -> Identity | None:
        location, password = self._get("ssl.keystore.location"), self._secret("ssl.keystore.password")
        chain, key = self._get("ssl.keystore.certificate.chain"), self._get("ssl.keystore.key")
        key_password = self._secret("ssl.key.password")
        if wanted and location:
            return stores.identity(in_folder(location, self.folder), password, key_password)
        return stores.pem_identity(self.file, chain, key, key_password) if wanted and (chain or key) else None

    def _login(self) -> Login:
        mechanism = self._choice(MECHANISM, Mechanism, Mechanism.GSSAPI)
        _check_package(mechanism)
        options = self._options(mechanism)
        if mechanism in WITH_PASSWORD:
            user, password = self._option(options, "username"), self._option(options, "password")
            self._unused_options += self._other(options, "username", "password")
            return Login(mechanism, user, Secret(password))
        if mechanism is Mechanism.OAUTHBEARER:
            return Login(mechanism, oauth=self._oauth(options))
        service = self._get(SERVICE) or options.get("serviceName", "") or "kafka"
        self._unused_options += self._other(options, "serviceName")
        return Login(mechanism, kerberos_service=service)

    def _options(self, mechanism: Mechanism) -> Mapping[str, str]:
        text = self._get(JAAS)
        if not text:
            return {}
        try:
            module = parse_jaas(text)
        except NotJaas:
            raise BadUse(ErrorKind.JAAS_WRONG, file=self.file, module=MODULES[mechanism], key=JAAS) from None
        self._check_module(module, mechanism)
        return module.options

    def _check_module(self, module: LoginModule, mechanism: Mechanism) -> None:
        if module.name != MODULES[mechanism]:
            raise BadUse(
                ErrorKind.LOGIN_MODULE_WRONG,
                file=self.file,
                module=module.name,
                mechanism=mechanism.value,
                expected=MODULES[mechanism],
            )

    def _option(self, options: Mapping[str, str], name: str) -> str:
        if not options.get(name):
            raise BadUse(ErrorKind.LOGIN_INCOMPLETE, file=self.file, name=f"{name} in {JAAS}")
        return options[name]

    def _oauth(self, options: Mapping[str, str]) -> OAuth:
        url = self._get(TOKEN_URL)
        client = self._get(CLIENT_ID) or options.get("clientId", "")
        secret = self._get(CLIENT_SECRET) or options.get("clientSecret", "")
        for value, name in ((url, TOKEN_URL), (client, CLIENT_ID), (secret, CLIENT_SECRET)):
            if not value:
                raise BadUse(ErrorKind.LOGIN_INCOMPLETE, file=self.file, name=name)
        self._unused_options += self._other(options, "clientId", "clientSecret", "scope")
        return OAuth(url, client, Secret(secret), self._get(SCOPE) or options.get("scope", ""))

    @staticmethod
    def _other(options: Mapping[str, str], *known: str) -> list[str]:
        return [f"{name} in {JAAS}" for name in options if name not in known]


def _check_package(mechanism: Mechanism) -> None:
    """Raise BadUse if the mechanism needs a package that is not installed."""
    package = PACKAGES.get(mechanism)
    if package is not None and find_spec(package) is None:
        raise BadUse(ErrorKind.PACKAGE_MISSING, mechanism=mechanism.value, package=package)
