"""A request to the simulated cluster: what the handler of an API receives, and how the handler answers."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from kview.serve.connection import Connection
from kview.serve.frames import Garbage, Header, pack, parse_header, skip_tags
from kview.serve.listener import HOST
from kview.simulate.cluster import Cluster
from kview.simulate.metadata import MetadataImage, TopicImage
from kview.wire.kafka_internals import request_decoder

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Wire:
    """The objects that all connections share: the simulated cluster, and the port of each broker."""

    cluster: Cluster
    ports: Mapping[int, int]

    def endpoint(self, broker: int) -> tuple[str, int]:
        """Return the host and port of a broker. If there is no such broker, return ('', -1), as in Kafka."""
        return (HOST, self.ports[broker]) if broker in self.ports else ("", -1)


@dataclass(frozen=True, slots=True)
class Api:
    """One API of Kafka's protocol.

    `versions` are the first and last version that are answered. If `advertised_from` is set, ApiVersions
    advertises it as the first version. `plain_header` is True only for ApiVersions, whose response header
    never has tagged fields.
    """

    key: int
    request: Any
    versions: tuple[int, int]
    handle: "Callable[[Call], None]"
    advertised_from: int | None = None
    plain_header: bool = False

    def flexible(self, version: int) -> bool:
        """Return whether this version uses compact fields and tagged fields."""
        return bool(self.request.flexible_version_q(version))


class Call:
    """One decoded request to broker `broker`. Its handler calls exactly one of the `answer` methods, once."""

    __slots__ = ("_connection", "_header", "api", "broker", "request", "version", "wire")

    def __init__(
        self, wire: Wire, broker: int, connection: Connection, api: Api, header: Header, request: Any
    ) -> None:
        self.wire = wire
        self.broker = broker
        self.api = api
        self.request = request
        self.version = header.api_version
        self._header = header
        self._connection = connection

    @property
    def cluster(self) -> Cluster:
        """The simulated cluster."""
        return self.wire.cluster

    @property
    def image(self) -> MetadataImage:
        """The cluster's metadata as this broker knows it."""
        return self.wire.cluster.image(self.broker)

    @property
    def client_id(self) -> str:
        """The client id in the request's header."""
        return self._header.client_id

    @property
    def client_host(self) -> str:
        """The client's address, in the form that DescribeGroups returns."""
        return f"/{self._connection.host}"

    def answer(self, response: Any) -> None:
        """Encode `response` in the version of the request and send it."""
        self.answer_packed((response.encode(version=self.version),))

    def answer_packed(self, body: Sequence[bytes | bytearray]) -> None:
        """Send a body that is already encoded, in pieces."""
        tagged_header = self.api.flexible(self.version) and not self.api.plain_header
        self._connection.answered(pack(self._header.correlation_id, body, tagged_header))

    def answer_nothing(self) -> None:
        """Finish a request that has no response (Produce with acks=0)."""
        self._connection.answered(None)

    def hang_up(self) -> None:
        """Close the connection, which is how Kafka reports an error of a request that has no response."""
        self._connection.close()

    def when_client_leaves(self, cancel: Callable[[], None]) -> None:
        """Register `cancel`, to be called if the client disconnects before the answer."""
        self._connection.when_closed = cancel

    def topic(self, entry: Any, name_field: str = "name", ids_from: int = 1 << 15) -> TopicImage | None:
        """Return the topic that an entry of the request names, or None if there is no such topic.

        The entry names the topic by id from version `ids_from` on, and before that by name.
        """
        image = self.image
        if self.version >= ids_from:
            return image.topic_by_id(entry.topic_id.bytes) if entry.topic_id is not None else None
        return image.topics.get(getattr(entry, name_field))


def topic_uuid(topic_id: bytes) -> UUID:
    """Return a topic id as a UUID, which is the type that the codec expects."""
    return UUID(bytes=topic_id)


def take_request(
    wire: Wire,
    apis: Mapping[int, Api],
    unsupported: Callable[[Call], None],
    broker: int,
    connection: Connection,
    frame: memoryview,
) -> None:
    """Decode `frame` and pass the request to the handler of its API.

    `unsupported` answers an ApiVersions request whose version is too new, and whose body is not decoded.
    Raises Garbage if a real broker would close the connection, because the API or version is unknown, or the
    bytes are not a valid request.
    """
    try:
        header = parse_header(frame)
        api = apis.get(header.api_key)
        if api is None:
            raise Garbage(f"API {header.api_key} is not known")
        if not api.versions[0] <= header.api_version <= api.versions[1]:
            if not api.plain_header:
                raise Garbage(f"API {header.api_key} has no version {header.api_version}")
            unsupported(Call(wire, broker, connection, api, header, None))
            return
        flexible = api.flexible(header.api_version)
        begin = skip_tags(frame, header.end) if flexible else header.end
        request, end = request_decoder(api.request, header.api_version, flexible)(frame, begin)
        if end > len(frame):
            raise Garbage("a message longer than its frame")
    except Garbage:
        raise
    except (
        Exception
    ) as error:  # invalid bytes make the codec raise anything: IndexError, UnicodeDecodeError …
        raise Garbage(f"no message: {error!r}") from error
    api.handle(Call(wire, broker, connection, api, header, request))
