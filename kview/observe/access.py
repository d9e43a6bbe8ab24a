"""What all links need to get through to brokers: the TLS context, the login, and mapped addresses."""

import os
import re
import ssl
import tempfile
from dataclasses import dataclass, field
from typing import Any

from kview.config.secret import Secret
from kview.config.security import PLAINTEXT, WITH_PASSWORD, Identity, Login, Mechanism, Security, Tls
from kview.errors import BadUse, ErrorKind
from kview.model.failures import Cause, FailureKind
from kview.observe.tokens import Tokens

_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
_KEY_VALUES_MISMATCH = "KEY_VALUES_MISMATCH"
"""OpenSSL's name for a key that does not belong to the certificate."""


@dataclass(frozen=True, slots=True)
class Access:
    """Security settings, ready for use. The TLS context is built once, because building one takes 20 ms."""

    security: Security = PLAINTEXT
    context: ssl.SSLContext | None = None
    tokens: Tokens | None = None
    rest: ssl.SSLContext | None = None
    """For the REST APIs of Kafka Connect and the schema registry, if one of them speaks TLS."""
    login: dict[str, Any] = field(default_factory=dict, repr=False)
    """The arguments about security of kafka-python's connections."""

    @property
    def has_principal(self) -> bool:
        """Whether brokers know kview by a name, so that ACLs may limit what it sees."""
        tls = self.security.tls
        return self.security.login is not None or (tls is not None and tls.identity is not None)

    def told(self, cause: Cause) -> Cause:
        """Return a more precise cause: a refused token or password, or a missing or refused certificate."""
        kind = cause.kind
        if kind is FailureKind.LOGIN_REFUSED and self.tokens is not None:
            return Cause(FailureKind.TOKEN_REFUSED)
        has_identity = self.security.tls is not None and self.security.tls.identity is not None
        if kind is FailureKind.CLIENT_CERTIFICATE_MISSING and has_identity:
            return Cause(FailureKind.CLIENT_CERTIFICATE_REFUSED)
        return cause


def access(security: Security) -> Access:
    """Prepare security settings for use. Raises BadUse if a certificate or key cannot be used."""
    context = tls_context(security.tls) if security.tls else None
    login, tokens = security.login, None
    if login is not None and login.oauth is not None:
        trusted = security.tls.authorities if security.tls else ""
        tokens = Tokens(login.oauth, _endpoint_context(trusted))
    apis = [api for api in (security.connect, security.registry) if api is not None]
    rest = _rest_context(security.tls or Tls()) if any(api.has_tls for api in apis) else None
    arguments: dict[str, Any] = {"security_protocol": security.protocol.value}
    return Access(security, context, tokens, rest, arguments | (_login(login, tokens) if login else {}))


def _login(login: Login, tokens: Tokens | None) -> dict[str, Any]:
    arguments: dict[str, Any] = {"sasl_mechanism": login.mechanism.value}
    if login.mechanism in WITH_PASSWORD:
        user = login.user
        if login.mechanism is not Mechanism.PLAIN:
            user = user.replace("=", "=3D").replace(",", "=2C")  # as RFC 5802 asks; the library does not
        arguments |= {"sasl_plain_username": user, "sasl_plain_password": login.password.reveal()}
    if tokens is not None:
        arguments["sasl_oauth_token_provider"] = tokens
    return arguments | {"sasl_kerberos_service_name": login.kerberos_service}


def tls_context(tls: Tls) -> ssl.SSLContext:
    """Return a context for connections to brokers. Raises BadUse.

    As in Java, a certificate in the trust store is trusted even if it is not an authority's.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.check_hostname = tls.check_host_name
    _trust(context, tls.authorities)
    if tls.identity is not None:
        _identify(context, tls.identity)
    return context


def _endpoint_context(authorities: str) -> ssl.SSLContext:
    """Return a context for the token endpoint, which trusts this machine's authorities and the brokers'."""
    context = ssl.create_default_context()
    if authorities:
        _trust(context, authorities)
    return context


def _rest_context(tls: Tls) -> ssl.SSLContext:
    """Return a context for REST APIs, which trusts this machine's authorities besides the brokers'.

    Raises BadUse.
    """
    context = tls_context(tls)
    context.load_default_certs()
    return context


def _trust(context: ssl.SSLContext, authorities: str) -> None:
    if not authorities:
        context.load_default_certs()
        return
    try:
        context.load_verify_locations(cadata=_only_certificates(authorities))
    except (ssl.SSLError, ValueError) as error:
        raise BadUse(ErrorKind.AUTHORITIES_NOT_READ) from error


def _only_certificates(text: str) -> str:
    """Return the certificates of a PEM text, without comments, which may be in any alphabet."""
    return "\n".join(_CERTIFICATE.findall(text))


def _identify(context: ssl.SSLContext, identity: Identity) -> None:
    """Load a certificate and its key, which Python reads only from a file.

    The file belongs to this user alone, and exists for some milliseconds.
    """
    password = identity.password or Secret("")
    descriptor, path = tempfile.mkstemp(prefix="kview-", suffix=".pem")
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(f"{identity.key.reveal()}\n{identity.chain}\n")
        # Without a password, OpenSSL would ask for one on the terminal.
        context.load_cert_chain(path, password=password.reveal)
    except ssl.SSLError as error:
        if error.reason == _KEY_VALUES_MISMATCH:
            raise BadUse(ErrorKind.KEY_OF_ANOTHER_CERTIFICATE, file=identity.source) from error
        raise BadUse(ErrorKind.KEY_NOT_READ, file=identity.source) from error
    finally:
        os.unlink(path)
