"""A request on its way through the simulated cluster: what an API's handler is given, and how it answers."""

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
    """What all connections share: the engine, and the port of each broker."""

    cluster: Cluster
    ports: Mapping[int, int]

    def endpoint(self, broker: int) -> tuple[str, int]:
        """Where clients find a broker; ('', -1), as Kafka has it, for one that there is not."""
        return (HOST, self.ports[broker]) if broker in self.ports else ("", -1)


@dataclass(frozen=True, slots=True)
class Api:
    """One API of the protocol.

    `versions` are those answered; what is advertised begins at `advertised_from`. `flexible_from` is the
    first version with compact fields and tagged sections. `plain_header` is true of ApiVersions alone: its
    answer's header never has a tagged section.
    """

    key: int
    request: Any
    versions: tuple[int, int]
    handle: "Callable[[Call], None]"
    advertised_from: int | None = None
    plain_header: bool = False

    def flexible(self, version: int) -> bool:
        """Whether messages of this version are compact and tagged."""
        return bool(self.request.flexible_version_q(version))


class Call:
    """One request to broker `broker`, decoded. Answered exactly once, by one of the `answer` methods."""

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
        """The engine."""
        return self.wire.cluster

    @property
    def image(self) -> MetadataImage:
        """The metadata as this broker has them."""
        return self.wire.cluster.image(self.broker)

    @property
    def client_id(self) -> str:
        """As the client calls itself."""
        return self._header.client_id

    @property
    def client_host(self) -> str:
        """Where the client is, as DescribeGroups shows it."""
        return f"/{self._connection.host}"

    def answer(self, response: Any) -> None:
        """Answer with a message of the codec, made for this version."""
        self.answer_packed((response.encode(version=self.version),))

    def answer_packed(self, body: Sequence[bytes | bytearray]) -> None:
        """Answer with a body that is encoded already, in pieces."""
        tagged_header = self.api.flexible(self.version) and not self.api.plain_header
        self._connection.answered(pack(self._header.correlation_id, body, tagged_header))

    def answer_nothing(self) -> None:
        """The request was carried out, and its kind has no answer (Produce with acks=0)."""
        self._connection.answered(None)

    def hang_up(self) -> None:
        """End the connection: how an error is told where there is no answer."""
        self._connection.close()

    def when_client_leaves(self, cancel: Callable[[], None]) -> None:
        """Call `cancel` if the client goes away before the answer."""
        self._connection.when_closed = cancel

    def topic(self, entry: Any, name_field: str = "name", ids_from: int = 1 << 15) -> TopicImage | None:
        """The topic that an entry of the request names, by id from version `ids_from` on; None where there is
        none."""
        image = self.image
        if self.version >= ids_from:
            return image.topic_by_id(entry.topic_id.bytes) if entry.topic_id is not None else None
        return image.topics.get(getattr(entry, name_field))


def topic_uuid(topic_id: bytes) -> UUID:
    """A topic id as the codec takes it."""
    return UUID(bytes=topic_id)


def take_request(
    wire: Wire,
    apis: Mapping[int, Api],
    unsupported: Callable[[Call], None],
    broker: int,
    connection: Connection,
    frame: memoryview,
) -> None:
    """Decode `frame` and have it answered.

    `unsupported` answers an ApiVersions request of a version that is too new, undecoded. Raises Garbage where
    a broker closes the connection: an unknown API or version, or bytes that are no message.
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
    ) as error:  # the codec lets bytes that are no message raise anything: IndexError, UnicodeDecodeError …
        raise Garbage(f"no message: {error!r}") from error
    api.handle(Call(wire, broker, connection, api, header, request))
