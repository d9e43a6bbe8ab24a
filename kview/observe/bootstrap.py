"""The first contact with a cluster, for which all bootstrap servers are asked at once.

The first answer wins. If there is none, the error says why.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from kview.config.security import Security
from kview.errors import ClusterUnreachable, ErrorKind
from kview.model.address import Address
from kview.model.failures import FailureKind
from kview.observe.apis import METADATA
from kview.observe.causes import LinkError
from kview.observe.link import Link
from kview.observe.loop import Loop
from kview.observe.settings import ObserveSettings
from kview.wire import metadata
from kview.wire.metadata import MetadataAnswer

POLL_S = 0.02
"""Pause between checks of connecting links, short because the first data should show within a second."""

NOT_KNOWN = "…"
"""Stands for mechanisms that a listener did not name."""


class Tried(NamedTuple):
    """An address that was tried, why it failed, and the SASL mechanisms that it offers, if it was asked."""

    address: Address
    kind: FailureKind
    mechanisms: tuple[str, ...] = ()


class NoContact(Exception):
    """Raised when no bootstrap server answers."""

    def __init__(self, tried: Sequence[Tried]) -> None:
        super().__init__(tried)
        self.tried = tuple(tried)

    def error(self, security: Security) -> ClusterUnreachable:
        """Return the error that the user sees, who gave these security settings."""
        kinds = {attempt.kind for attempt in self.tried}
        alike = None
        if len(kinds) == 1:
            kind, where = kinds.pop(), tuple(_reached(attempt.address, security) for attempt in self.tried)
            offered = tuple(sorted({name for attempt in self.tried for name in attempt.mechanisms}))
            alike = _of_all(kind, where) or _of_tls(kind, where, security)
            alike = alike or _of_login(kind, where, offered, security)
        tried = tuple((_reached(attempt.address, security), attempt.kind.value) for attempt in self.tried)
        return alike or ClusterUnreachable(ErrorKind.NO_BOOTSTRAP_SERVER, tried=tried)


def _reached(address: Address, security: Security) -> str:
    """Return an address as the user knows it: where kview connects instead if it is mapped."""
    route = security.route(address)
    return str(address) if route == address else f"{route} (for {address})"


def _of_all(kind: FailureKind, where: tuple[str, ...]) -> ClusterUnreachable | None:
    """Return the error for servers that all failed in this way, or None if there is no error for this way."""
    match kind:
        case FailureKind.UNRESOLVED:
            return ClusterUnreachable(ErrorKind.UNKNOWN_HOST, where=where)
        case FailureKind.REFUSED:
            return ClusterUnreachable(ErrorKind.CONNECTION_REFUSED, where=where)
        case FailureKind.UNREACHABLE:
            return ClusterUnreachable(ErrorKind.NO_CONNECTION, where=where)
        case FailureKind.SILENT:
            return ClusterUnreachable(ErrorKind.NO_ANSWER, where=where)
        case FailureKind.CLOSED:
            return ClusterUnreachable(ErrorKind.CLOSES_CONNECTIONS, where=where)
        case FailureKind.HTTP:
            return ClusterUnreachable(ErrorKind.HTTP_SERVER, where=where)
        case FailureKind.NOT_KAFKA:
            return ClusterUnreachable(ErrorKind.NOT_A_BROKER, where=where)
        case FailureKind.CONTROLLER:
            return ClusterUnreachable(ErrorKind.CONTROLLER_LISTENER, where=where)
        case _:
            return None


def _of_tls(kind: FailureKind, where: tuple[str, ...], security: Security) -> ClusterUnreachable | None:
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


def _of_login(
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


async def first_contact(
    loop: Loop, servers: Sequence[Address], settings: ObserveSettings, deadline_s: float
) -> tuple[MetadataAnswer, Address]:
    """Ask all `servers` for metadata at once, and return the first answer that lists brokers, and its server.

    Raises NoContact if all servers have failed, or at `deadline_s` (monotonic).
    """
    patience_s = max(0.1, deadline_s - loop.monotonic())
    links = [
        Link(loop, address, patience_s, settings.retry_first_s, settings.retry_most_s)
        for address in dict.fromkeys(servers)
    ]
    answers: list[tuple[MetadataAnswer, Address]] = []

    async def ask(link: Link) -> None:
        await until(loop, lambda: link.connected or link.failing, deadline_s)
        try:
            version = min(link.versions.get(METADATA, (0, 0))[1], metadata.HIGHEST)
            answer, _ = await link.ask(metadata.request(version))
        except LinkError:
            return  # the link knows why
        if answer.brokers:
            answers.append((answer, link.address))

    for link in links:
        link.open()
    asking = [loop.spawn(partial(ask, link)) for link in links]
    await until(loop, lambda: bool(answers) or all(f.is_done for f in asking), deadline_s)
    tried = list(map(outcome, links))
    for link in links:
        link.close()
    if not answers:
        raise NoContact(tried)
    return answers[0]


async def until(loop: Loop, condition: Callable[[], bool], deadline_s: float) -> None:
    """Wait until `condition` is true, or until `deadline_s` (monotonic)."""
    while not condition() and loop.monotonic() < deadline_s:
        await loop.net.sleep(POLL_S)


def outcome(link: Link) -> Tried:
    """Return why a link has no answer. A link that is still waiting counts as silent."""
    kind = link.cause.kind if link.failing else FailureKind.SILENT
    return Tried(link.address, kind, link.mechanisms)


def no_advertised(server: Address, tried: Sequence[Tried]) -> ClusterUnreachable:
    """Return the error for a cluster that answers at `server` but at none of its advertised addresses."""
    return ClusterUnreachable(
        ErrorKind.ADVERTISED_UNREACHABLE,
        server=str(server),
        tried=_named(tried),
        advertised=str(tried[0].address),
    )


def _named(tried: Sequence[Tried]) -> tuple[tuple[str, str], ...]:
    return tuple((str(attempt.address), attempt.kind.value) for attempt in tried)
