"""The first contact: asks all bootstrap servers at once. The first answer wins; without one, says why."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from kview.errors import ClusterUnreachable
from kview.observe.apis import METADATA
from kview.observe.link import Link, LinkError, Refusal
from kview.observe.loop import Loop
from kview.observe.settings import ObserveSettings
from kview.wire import metadata
from kview.wire.metadata import MetadataAnswer

POLL_S = 0.02
"""Pause between checks of connecting links. Short, as the first data should show within a second."""
MOST_NAMED = 4
"""At most this many addresses are named in an error message."""


class ConnectionRefused(ClusterUnreachable):
    """The ports of the bootstrap servers refuse connections: no process listens."""


class NoConnection(ClusterUnreachable):
    """The machines of the bootstrap servers cannot be reached."""


class NoAnswer(ClusterUnreachable):
    """The bootstrap servers accept connections, but do not answer."""


class UnknownHost(ClusterUnreachable):
    """The host names of the bootstrap servers cannot be resolved."""


class HttpServer(ClusterUnreachable):
    """The bootstrap server speaks HTTP."""


class TlsListener(ClusterUnreachable):
    """The bootstrap server speaks TLS."""


class NotKafka(ClusterUnreachable):
    """The bootstrap server closes connections, or does not speak Kafka's protocol."""


class AdvertisedUnreachable(ClusterUnreachable):
    """A bootstrap server answers, but none of the addresses that the cluster advertises does."""


_SENTENCES: Mapping[Refusal, tuple[type[ClusterUnreachable], str, str]] = {
    Refusal.REFUSED: (
        ConnectionRefused,
        "nothing listens on {where} (connection refused)",
        "check host and port, and that the broker runs; Kafka's usual port is 9092",
    ),
    Refusal.UNREACHABLE: (
        NoConnection,
        "no connection to {where}",
        "check the address, the network and firewalls between here and there",
    ),
    Refusal.SILENT: (
        NoAnswer,
        "{where} accepts connections but does not answer",
        "the broker hangs, or it is no broker's port; name more bootstrap servers, separated by commas",
    ),
    Refusal.UNRESOLVED: (
        UnknownHost,
        "the name of {where} is not known",
        "check its spelling, or give an address of numbers",
    ),
    Refusal.HTTP: (
        HttpServer,
        "{where} is the port of an HTTP server, not of a Kafka broker",
        "give a broker's listener, usually port 9092, not that of a REST proxy or of Kafka Connect",
    ),
    Refusal.TLS: (
        TlsListener,
        "{where} is a TLS listener",
        "give the address of a plaintext listener",
    ),
    Refusal.CLOSED: (
        NotKafka,
        "{where} closes connections without an answer",
        "it may be a TLS or SASL listener, or no broker's port: give a plaintext listener",
    ),
    Refusal.NOT_KAFKA: (
        NotKafka,
        "{where} does not speak Kafka's protocol",
        "give a broker's plaintext listener, usually port 9092",
    ),
}


async def first_contact(
    loop: Loop, servers: Sequence[tuple[str, int]], settings: ObserveSettings, deadline_s: float
) -> tuple[MetadataAnswer, tuple[str, int]]:
    """Ask all `servers` at once for metadata. Returns the first answer that lists brokers, and its server.

    Raises ClusterUnreachable if all have failed, or at `deadline_s` (monotonic).
    """
    patience_s = max(0.1, deadline_s - loop.monotonic())
    links = [
        Link(loop, host, port, patience_s, settings.retry_first_s, settings.retry_most_s)
        for host, port in dict.fromkeys(servers)
    ]
    answers: list[tuple[MetadataAnswer, tuple[str, int]]] = []

    async def ask(link: Link) -> None:
        await until(loop, lambda: link.connected or link.failing, deadline_s)
        try:
            version = min(link.versions.get(METADATA, (0, 0))[1], metadata.HIGHEST)
            answer, _ = await link.ask(metadata.request(version))
        except LinkError:
            return  # the link knows why
        if answer.brokers:
            answers.append((answer, (link.host, link.port)))

    for link in links:
        link.open()
    asking = [loop.spawn(partial(ask, link)) for link in links]
    await until(loop, lambda: bool(answers) or all(f.is_done for f in asking), deadline_s)
    errors = [(link, link.refusal if link.failing else Refusal.SILENT) for link in links]
    for link in links:
        link.close()
    if not answers:
        raise no_contact([(f"{link.host}:{link.port}", refusal) for link, refusal in errors])
    return answers[0]


async def until(loop: Loop, condition: Callable[[], bool], deadline_s: float) -> None:
    """Wait until `condition` is true, or until `deadline_s` (monotonic)."""
    while not condition() and loop.monotonic() < deadline_s:
        await loop.net.sleep(POLL_S)


def no_contact(tried: Sequence[tuple[str, Refusal]]) -> ClusterUnreachable:
    """Return the error for bootstrap servers that all failed to answer.

    Its kind is that of the first server; its text names all servers.
    """
    first = tried[0][1]
    kind, sentence, remedy = _SENTENCES.get(first, _SENTENCES[Refusal.SILENT])
    if all(refusal is first for _, refusal in tried):
        return kind(sentence.format(where=named([where for where, _ in tried])), remedy)
    each = "; ".join(
        _SENTENCES.get(refusal, _SENTENCES[Refusal.SILENT])[1].format(where=where)
        for where, refusal in tried[:MOST_NAMED]
    )
    return kind(f"no bootstrap server answers: {each}", remedy)


def no_advertised(server: tuple[str, int], tried: Sequence[tuple[str, str]]) -> AdvertisedUnreachable:
    """Return the error for a cluster whose bootstrap server answers while its brokers do not.

    `tried` has the addresses and why each failed.
    """
    each = "; ".join(f"{where}: {why}" for where, why in tried[:MOST_NAMED])
    more = f" and {len(tried) - MOST_NAMED} more" if len(tried) > MOST_NAMED else ""
    where = f"{server[0]}:{server[1]}"
    return AdvertisedUnreachable(
        f"{where} answers, but none of the addresses that the cluster advertises does ({each}{more})",
        "the brokers' advertised.listeners must be reachable from here: check them, and the network to them",
    )


def named(items: Sequence[str]) -> str:
    """Return names as a list in words."""
    if len(items) > MOST_NAMED:
        return f"{', '.join(items[:MOST_NAMED])} and {len(items) - MOST_NAMED} more"
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"
