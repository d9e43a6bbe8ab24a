"""Errors about security settings: why bootstrap servers that answer do not let kview in."""

from kview.config.security import Security
from kview.errors import ClusterUnreachable, ErrorKind
from kview.model.failures import FailureKind

NOT_KNOWN = "…"
"""Stands for mechanisms that a listener did not name."""


def of_tls(kind: FailureKind, where: tuple[str, ...], security: Security) -> ClusterUnreachable | None:
    """Return the error for servers with which TLS failed in this way, None if `kind` is not about TLS."""
    match kind:
        case FailureKind.TLS:
            return ClusterUnreachable(ErrorKind.TLS_LISTENER, where=where)
        case FailureKind.NOT_TLS:
            return ClusterUnreachable(ErrorKind.PLAINTEXT_LISTENER, where=where)
        case FailureKind.UNTRUSTED:
            return ClusterUnreachable(ErrorKind.CERTIFICATE_UNTRUSTED, where=where)
        case FailureKind.WRONG_HOST_NAME:
            return ClusterUnreachable(ErrorKind.CERTIFICATE_FOR_ANOTHER_NAME, where=where)
        case FailureKind.CERTIFICATE_EXPIRED:
            return ClusterUnreachable(ErrorKind.CERTIFICATE_EXPIRED, where=where)
        case FailureKind.CERTIFICATE_BAD:
            return ClusterUnreachable(ErrorKind.CERTIFICATE_NOT_ACCEPTED, where=where)
        case FailureKind.CLIENT_CERTIFICATE_MISSING:
            return ClusterUnreachable(ErrorKind.CLIENT_CERTIFICATE_MISSING, where=where)
        case FailureKind.CLIENT_CERTIFICATE_REFUSED:
            identity = security.tls.identity if security.tls else None
            source = identity.source if identity else ""
            return ClusterUnreachable(ErrorKind.CLIENT_CERTIFICATE_REFUSED, where=where, file=source)
        case FailureKind.NO_COMMON_TLS:
            return ClusterUnreachable(ErrorKind.NO_COMMON_TLS, where=where)
        case _:
            return None


def of_login(
    kind: FailureKind, where: tuple[str, ...], offered: tuple[str, ...], security: Security
) -> ClusterUnreachable | None:
    """Return the error for servers at which the login failed in this way, None if `kind` is not about logins.

    `offered` are the SASL mechanisms that the servers named.
    """
    login = security.login
    mechanism = login.mechanism.value if login else ""
    url = login.oauth.shown_url if login and login.oauth else ""
    offered = offered or (NOT_KNOWN,)
    match kind:
        case FailureKind.NEEDS_SASL:
            return ClusterUnreachable(ErrorKind.SASL_LISTENER, where=where, offered=offered)
        case FailureKind.NO_SASL:
            return ClusterUnreachable(ErrorKind.LISTENER_WITHOUT_SASL, where=where)
        case FailureKind.MECHANISM:
            return ClusterUnreachable(
                ErrorKind.MECHANISM_NOT_OFFERED, where=where, mechanism=mechanism, offered=offered
            )
        case FailureKind.LOGIN_REFUSED:
            return ClusterUnreachable(ErrorKind.LOGIN_REFUSED, where=where, mechanism=mechanism)
        case FailureKind.TOKEN_REFUSED:
            return ClusterUnreachable(ErrorKind.TOKEN_REFUSED, where=where, url=url)
        case FailureKind.NO_TOKEN:
            return ClusterUnreachable(ErrorKind.NO_TOKEN, url=url)
        case FailureKind.TOKEN_CLIENT_REFUSED:
            return ClusterUnreachable(ErrorKind.TOKEN_CLIENT_REFUSED, url=url)
        case FailureKind.LOGIN_FAILED:
            return ClusterUnreachable(ErrorKind.LOGIN_FAILED, where=where, mechanism=mechanism)
        case _:
            return None
