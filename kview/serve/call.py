"""A request to the simulated cluster, as the handler of an API receives and answers it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ParamSpec, Protocol
from uuid import UUID

from kview.serve.frames import Garbage, Header, pack, parse_header
from kview.serve.listener import HOST
from kview.simulate.cluster import Cluster
from kview.simulate.codes import ErrorCode
from kview.simulate.kernel import Blame, Kernel
from kview.simulate.metadata import MetadataImage, TopicImage
from kview.simulate.topics import valid_topic_name
from kview.wire.kafka_requests import request_decoder
from kview.wire.kafka_responses import response_encoder
from kview.wire.primitives import skip_tagged_fields

MESSAGE_CHARACTERS = 1_000
"""Limit of an error message, which may repeat what a client sent. A string on the wire has 32,767 bytes at
most."""

REQUEST_BYTES_MAX = 16 << 20
"""Limit of a request without records, because what it is decoded into takes ten times as much. It is enough
for the commits of 200,000 partitions. Kafka only has the limit of 100 MB."""

P = ParamSpec("P")

Steps = Iterator[None]
"""Work that yields after each small step, so that it can be done in slices."""

READ_COMMITTED = 1
"""The isolation level of clients that want records of committed transactions only."""

NO_ID = bytes(16)
"""The id of no topic."""

_END = object()


class Client(Protocol):
    """The methods of a connection that a call needs."""

    host: str
    when_closed: Callable[[], None] | None
    when_ended: Callable[[], None] | None

    def run(self, steps: Steps) -> None:
        """Do work, now or in slices. It ends early if the client disconnects."""
        ...

    def answered(self, frame: bytes | None) -> None:
        """Send the answer to the latest request, or None if Kafka sends no response."""
        ...

    def close(self) -> None: ...

    def failed(self, error: Exception) -> None:
        """Close the connection, because of a bug in how its requests are handled."""
        ...


@dataclass(frozen=True, slots=True)
class Wire:
    """The objects that all connections share: the simulated cluster, the port of each broker, and the APIs by
    their keys."""

    cluster: Cluster
    ports: Mapping[int, int]
    apis: "Mapping[int, Api]"

    def endpoint(self, broker: int) -> tuple[str, int]:
        """Return the host and port of a broker. If there is no such broker, return ('', -1), as in Kafka."""
        return (HOST, self.ports[broker]) if broker in self.ports else ("", -1)


@dataclass(frozen=True, slots=True)
class Api:
    """One API of Kafka's protocol.

    A handler that works through a list in the request returns `Steps`, and yields for each element or a few.
    `versions` are the first and last version that are answered. If `advertised_from` is set, ApiVersions
    advertises it as the first version. `unsupported` answers a version that is too new to be decoded. Without
    it, such a request closes its connection, as does a request of more than `max_bytes`. `plain_header` is
    True only for ApiVersions, whose response header never has tagged fields. `decode` is faster than the
    codec: (version, frame, start of body) → (request, end), or None for a version that it does not know.
    """

    key: int
    request: Any
    versions: tuple[int, int]
    handle: "Callable[[Call], Steps | None]"
    advertised_from: int | None = None
    unsupported: "Callable[[Call], None] | None" = None
    plain_header: bool = False
    max_bytes: int = REQUEST_BYTES_MAX
    decode: Callable[[int, memoryview, int], tuple[Any, int] | None] | None = None

    def flexible(self, version: int) -> bool:
        """Return whether this version uses compact fields and tagged fields."""
        return bool(self.request.flexible_version_q(version))


class Call:
    """One decoded request to broker `broker`. Its handler calls `hang_up` or one of the `answer` methods,
    once."""

    __slots__ = ("_connection", "_header", "api", "broker", "request", "version", "wire")

    def __init__(
        self, wire: Wire, broker: int, connection: Client, api: Api, header: Header, request: Any
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

    def later(self, callback: Callable[P, None]) -> Callable[P, None]:
        """Return `callback` in the form in which the engine gets it.

        The engine may call it while it serves another client, or in an event of its own. An exception in it
        ends the connection of this call, and nothing else.
        """

        def contained(*args: P.args, **kwargs: P.kwargs) -> None:
            try:
                callback(*args, **kwargs)
            except Exception as error:
                self._connection.failed(error)

        return contained

    def answer(self, response: Any) -> None:
        """Encode `response` in the version of the request and send it."""
        self.run(self._encoded(response))

    def _encoded(self, response: Any) -> Steps:
        kind: Any = type(response)
        body = yield from response_encoder(kind, self.version)(response)
        self.answer_packed((body,))

    def run(self, steps: Steps) -> None:
        """Do work for this request, now or in slices."""
        self._connection.run(steps)

    def answer_packed(self, body: Sequence[bytes | bytearray]) -> None:
        """Send a response body that is already encoded and consists of these pieces."""
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

    @property
    def connection(self) -> object:
        """What stands for the client's connection. `when_disconnected` is about it."""
        return self._connection

    def when_disconnected(self, ended: Callable[[], None]) -> None:
        """Call `ended` when the client's connection ends, instead of what was to be called then."""
        self._connection.when_ended = ended

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


def id_bytes(topic_id: UUID | None) -> bytes:
    """Return the bytes of a topic id in a request. The codec turns the id of zeros into None."""
    return NO_ID if topic_id is None else topic_id.bytes


def no_such_topic(name: str) -> ErrorCode:
    """Return the error for the name of a topic that does not exist."""
    valid = valid_topic_name(name)
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if valid else ErrorCode.INVALID_TOPIC_EXCEPTION


def fenced(code: ErrorCode, knows: bool) -> ErrorCode:
    """Return the error for a client that `knows` PRODUCER_FENCED or does not."""
    return ErrorCode.INVALID_PRODUCER_EPOCH if code is ErrorCode.PRODUCER_FENCED and not knows else code


def take_request(wire: Wire, broker: int, connection: Client, frame: memoryview) -> None:
    """Decode `frame` and pass the request to the handler of its API.

    Raises Garbage if a real broker would close the connection, because the API or version is unknown, or the
    bytes are not a valid request.

    A bug in the handler, or in an event that the request schedules, ends this connection and nothing else.
    """
    try:
        header = parse_header(frame)
        api = wire.apis.get(header.api_key)
        if api is None:
            raise Garbage(f"API {header.api_key} is not known")
        if not api.versions[0] <= header.api_version <= api.versions[1]:
            if api.unsupported is None:
                raise Garbage(f"API {header.api_key} has no version {header.api_version}")
            api.unsupported(Call(wire, broker, connection, api, header, None))
            return
        if len(frame) > api.max_bytes:
            raise Garbage(f"a request of API {header.api_key} with {len(frame)} bytes")
        begin = skip_tagged_fields(frame, header.end) if api.flexible(header.api_version) else header.end
    except Garbage:
        raise
    except Exception as error:
        raise Garbage(f"no header: {error!r}") from error
    connection.run(_handled(wire, broker, connection, api, header, frame, begin))


def _handled(
    wire: Wire, broker: int, connection: Client, api: Api, header: Header, frame: memoryview, begin: int
) -> Steps:
    """Decode the body of a request, which begins at `begin`, and handle it."""
    version = header.api_version
    try:
        decoded = api.decode(version, frame, begin) if api.decode else None
        if decoded is None:
            decode = request_decoder(api.request, version, api.flexible(version))
            decoded = yield from decode(frame, begin)
        request, end = decoded
        if end > len(frame):
            raise Garbage("a message longer than its frame")
    except Garbage:
        raise
    except (
        Exception
    ) as error:  # invalid bytes make the codec raise anything: IndexError, UnicodeDecodeError …
        raise Garbage(f"no message: {error!r}") from error
    call = Call(wire, broker, connection, api, header, request)
    try:
        yield from _blamed(wire.cluster.kernel, connection.failed, lambda: api.handle(call))
    except Garbage:
        raise
    except Exception as error:
        connection.failed(error)


def _blamed(kernel: Kernel, blame: Blame, handle: Callable[[], Steps | None]) -> Steps:
    """Handle a request. In each step, `blame` takes the exceptions of events that the step schedules."""
    steps: Steps | None = None
    while True:
        before, kernel.blame = kernel.blame, blame
        try:
            steps = steps or handle()
            if steps is None or next(steps, _END) is _END:
                return
        finally:
            kernel.blame = before
        yield


def shortened(message: str) -> str:
    """Return an error message that is short enough for the wire, whatever a client put into it."""
    if len(message) <= MESSAGE_CHARACTERS:
        return message
    return message[: MESSAGE_CHARACTERS - 1] + "…"
