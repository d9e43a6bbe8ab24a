"""The first contact: all bootstrap servers at once, the first answer wins; and which error it is when none
answers."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

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
"""How often links are looked at while they connect: a frame with data is wanted within a second."""

Tried = Sequence[tuple[Address, FailureKind]]
"""The addresses that were tried, and why each of them failed."""

_KINDS: Mapping[FailureKind, ErrorKind] = {
    FailureKind.UNRESOLVED: ErrorKind.UNKNOWN_HOST,
    FailureKind.REFUSED: ErrorKind.CONNECTION_REFUSED,
    FailureKind.UNREACHABLE: ErrorKind.NO_CONNECTION,
    FailureKind.SILENT: ErrorKind.NO_ANSWER,
    FailureKind.CLOSED: ErrorKind.CLOSES_CONNECTIONS,
    FailureKind.HTTP: ErrorKind.HTTP_SERVER,
    FailureKind.TLS: ErrorKind.TLS_LISTENER,
    FailureKind.NOT_KAFKA: ErrorKind.NOT_A_BROKER,
}
"""A kind of error for what all bootstrap servers have in common."""


class NoContact(Exception):
    """No bootstrap server answers."""

    def __init__(self, tried: Tried) -> None:
        super().__init__(tried)
        self.tried = tuple(tried)

    def error(self) -> ClusterUnreachable:
        """What the user is told."""
        kinds = {kind for _, kind in self.tried}
        if len(kinds) == 1 and (same := _KINDS.get(*kinds)) is not None:
            return ClusterUnreachable(same, where=tuple(str(address) for address, _ in self.tried))
        return ClusterUnreachable(ErrorKind.NO_BOOTSTRAP_SERVER, tried=_named(self.tried))


async def first_contact(
    loop: Loop, servers: Sequence[Address], settings: ObserveSettings, deadline_s: float
) -> tuple[MetadataAnswer, Address]:
    """Ask all `servers` at once for metadata; the first answer that names brokers, and who gave it.

    Raises NoContact when all have failed or `deadline_s` (monotonic) has come.
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
            return  # the link says why
        if answer.brokers:
            answers.append((answer, link.address))

    for link in links:
        link.open()
    asking = [loop.spawn(partial(ask, link)) for link in links]
    await until(loop, lambda: bool(answers) or all(f.is_done for f in asking), deadline_s)
    tried = [(link.address, why_not(link)) for link in links]
    for link in links:
        link.close()
    if not answers:
        raise NoContact(tried)
    return answers[0]


async def until(loop: Loop, condition: Callable[[], bool], deadline_s: float) -> None:
    """Wait until `condition`, or `deadline_s` (monotonic)."""
    while not condition() and loop.monotonic() < deadline_s:
        await loop.net.sleep(POLL_S)


def why_not(link: Link) -> FailureKind:
    """Why a link has no answer; one that still waits for it has met silence."""
    return link.cause.kind if link.failing else FailureKind.SILENT


def no_advertised(server: Address, tried: Tried) -> ClusterUnreachable:
    """The error of a cluster whose bootstrap server answers and whose brokers do not."""
    return ClusterUnreachable(ErrorKind.ADVERTISED_UNREACHABLE, server=str(server), tried=_named(tried))


def _named(tried: Tried) -> tuple[tuple[str, str], ...]:
    return tuple((str(address), kind.value) for address, kind in tried)
