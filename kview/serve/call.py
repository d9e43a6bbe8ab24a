"""A request to the simulated cluster, as the handler of an API receives and answers it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ParamSpec, Protocol
from uuid import UUID

from kview.model.address import Address
from kview.serve.connection import Connection
from kview.serve.frames import Garbage, Header, pack, pack_token, parse_header
from kview.serve.login import Login, Stage
from kview.serve.sasl import Refused
from kview.serve.security import PLAINTEXT, ListenerSecurity
from kview.serve.throttles import Throttles
from kview.simulate.acls import CLUSTER_NAME, OPERATIONS, AclOperation, ResourceType
from kview.simulate.client_quotas import REQUESTS, Limit, limit_of
from kview.simulate.cluster import Cluster
from kview.simulate.codes import ErrorCode
from kview.simulate.kernel import Blame, Kernel
from kview.simulate.metadata import MetadataImage, TopicImage
from kview.simulate.topics import valid_topic_name
from kview.wire.kafka_requests import request_decoder
from kview.wire.kafka_responses import response_encoder
from kview.wire.primitives import INT32, skip_tagged_fields

MESSAGE_CHARACTERS = 1_000
"""Limit of an error message, which may repeat what a client sent. A string on the wire has 32,767 bytes at
most."""

REQUEST_BYTES_MAX = 16 << 20
"""Limit of a request without records, because what it is decoded into takes ten times as much. It is enough
for the commits of 200,000 partitions. Kafka only has the limit of 100 MB."""

P = ParamSpec("P")

Steps = Iterator[None]
"""Work that yields after each small step, so that it can be done in slices."""

Handler = Callable[["Call"], Steps | None]
"""What answers a request."""

REQUEST_THROTTLE_MS_MAX = 1000
"""Limit of the wait for a request's cost, which is Kafka's `quota.window.size.seconds`."""

READ_COMMITTED = 1
"""The isolation level of clients that want records of committed transactions only."""

NO_ID = bytes(16)
"""The id of no topic."""

NEVER = 1 << 15
"""A version that no API has."""

CONTROLLER = -1
"""The key of what clients have used of the controller."""

_END = object()


class OnDemand(Protocol):
    """What happens to requests that match a rule, and a log of the requests."""

    @property
    def active(self) -> bool:
        """Whether there is a rule, or somebody reads the log."""
        ...

    def handler(self, call: "Call") -> Handler | None:
        """Log a request. Return what handles it in place of its API, if a rule is about it."""
        ...


@dataclass(frozen=True, slots=True)
class Wire:
    """The objects that all connections share: the simulated cluster, the advertised address of each broker,
    the APIs by their keys, and how connections are secured."""

    cluster: Cluster
    endpoints: Mapping[int, Address]
    apis: "Mapping[int, Api]"
    security: ListenerSecurity = PLAINTEXT
    listening: Mapping[int, Address] = field(default_factory=dict)
    """Where each broker listens, if it is elsewhere than it advertises."""
    throttles: dict[int, Throttles] = field(default_factory=dict)

    on_demand: "OnDemand | None" = None
    """Rules for requests, and their log."""

    def throttles_of(self, node: int) -> Throttles:
        """Return what clients of a broker, or of the CONTROLLER, have used of their quotas."""
        return self.throttles.setdefault(node, Throttles())

    def endpoint(self, broker: int) -> tuple[str, int]:
        """Return the host and port of a broker. If there is no such broker, return ('', -1), as in Kafka."""
        return self.endpoints.get(broker, ("", -1))


@dataclass(frozen=True, slots=True)
class Api:
    """One API of Kafka's protocol.

    A handler that works through a list in the request returns `Steps`, and yields for each element or a few.
    `versions` are the first and last version that are answered. If `advertised_from` is set, ApiVersions
    advertises it as the first version. `unsupported` answers a version that is too new to be decoded. Without
    it, such a request closes its connection, as does a request of more than `max_bytes`. `plain_header` is
    True only for ApiVersions, whose response header never has tagged fields. `decode` is faster than the
    codec: (version, frame, start of body) → (request, end), or None for a version that it does not know.
    `throttle_from` is the first version whose packed response begins with the throttle time.
    """

    key: int
    request: Any
    versions: tuple[int, int]
    handle: Handler
    advertised_from: int | None = None
    unsupported: "Callable[[Call], None] | None" = None
    plain_header: bool = False
    max_bytes: int = REQUEST_BYTES_MAX
    decode: Callable[[int, memoryview, int], tuple[Any, int] | None] | None = None
    throttle_from: int = NEVER

    def flexible(self, version: int) -> bool:
        """Return whether this version uses compact fields and tagged fields."""
        return bool(self.request.flexible_version_q(version))


class Call:
    """One decoded request to broker `broker`. Its handler calls `hang_up` or one of the `answer` methods,
    once."""

    __slots__ = ("_connection", "_header", "api", "broker", "request", "size", "version", "wire")

    def __init__(
        self,
        wire: Wire,
        broker: int,
        connection: Connection,
        api: Api,
        header: Header,
        request: Any,
        size: int = 0,
    ) -> None:
        self.size = size
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

    @property
    def login(self) -> Login | None:
        """The login of the connection, or None if its listener asks for none."""
        return self._connection.login

    @property
    def principal(self) -> str:
        """Who the client is, such as `User:alice`."""
        return self._connection.principal

    def may(self, operation: AclOperation, resource: ResourceType, name: str = CLUSTER_NAME) -> bool:
        """Return whether the client may do an operation with a resource, the cluster without `name`."""
        cluster = self.wire.cluster
        authorizer = cluster.authorizer
        if authorizer is None:
            return True
        host, acls = self._connection.host, cluster.image(self.broker).acls
        return authorizer.allows(acls, self._connection.principal, host, operation, resource, name)

    def may_any(self, operation: AclOperation, resource: ResourceType) -> bool:
        """Return whether the client may do an operation with at least one resource of this kind."""
        authorizer = self.wire.cluster.authorizer
        if authorizer is None:
            return True
        return authorizer.allows_any(
            self.image.acls, self.principal, self._connection.host, operation, resource
        )

    def limit(self, key: str) -> Limit | None:
        """Return the client's quota of a kind, or None."""
        quotas = self.image.client_quotas
        if not quotas:
            return None
        return limit_of(quotas, key, self.principal.partition(":")[2], self.client_id)

    def used(self, key: str, value: float) -> int:
        """Note what the client has used of a quota. Return how long it has to wait now, in milliseconds."""
        limit = self.limit(key)
        if limit is None:
            return 0
        rate, now_ms = self.wire.throttles_of(self.broker).rate(key, limit), self.now_ms
        rate.record(value, now_ms)
        return rate.throttle_ms(limit.value, now_ms)

    def _request_throttle_ms(self) -> int:
        """Return how long the client has to wait for the cost of this request, and mute it for that time."""
        if not self.image.client_quotas:
            return 0
        throttle_ms = min(self.used(REQUESTS, self._connection.work_s() * 100), REQUEST_THROTTLE_MS_MAX)
        self.mute(throttle_ms)
        return throttle_ms

    @property
    def now_ms(self) -> float:
        """The engine's time in milliseconds."""
        return self.cluster.kernel.now_us / 1000

    def mute(self, throttle_ms: int) -> None:
        """Handle no further request of this connection for a time. The answer to this one is not delayed."""
        if throttle_ms > 0:
            _mute(self.cluster.kernel, self._connection, throttle_ms)

    def operations(self, resource: ResourceType, name: str = CLUSTER_NAME) -> frozenset[AclOperation]:
        """Return all that the client may do with a resource, which is the cluster without `name`."""
        all_of_them = OPERATIONS[resource]
        if resource is ResourceType.GROUP and not self.cluster.world.release.group_configs:
            all_of_them -= {AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS}
        if self.wire.cluster.authorizer is None:
            return all_of_them
        return frozenset(each for each in all_of_them if self.may(each, resource, name))

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
        throttle_ms = self._request_throttle_ms()
        if throttle_ms and hasattr(response, "throttle_time_ms"):
            response.throttle_time_ms = max(throttle_ms, response.throttle_time_ms or 0)
        self.run(self._encoded(response))

    def _encoded(self, response: Any) -> Steps:
        kind: Any = type(response)
        body = yield from response_encoder(kind, self.version)(response)
        self._send((body,))

    def run(self, steps: Steps) -> None:
        """Do work for this request, now or in slices."""
        self._connection.run(steps)

    def answer_packed(self, body: Sequence[bytes | bytearray]) -> None:
        """Send a response body that is already encoded and consists of these pieces."""
        throttle_ms = self._request_throttle_ms()
        if throttle_ms and self.version >= self.api.throttle_from:
            (before_ms,) = INT32.unpack_from(body[0])
            body = (INT32.pack(max(throttle_ms, before_ms)), body[0][INT32.size :], *body[1:])
        self._send(body)

    def _send(self, body: Sequence[bytes | bytearray]) -> None:
        tagged_header = self.api.flexible(self.version) and not self.api.plain_header
        self._connection.answered(pack(self._header.correlation_id, body, tagged_header))

    def last_answer(self, response: Any) -> None:
        """Encode a short `response`, send it, and close the connection."""
        body = response.encode(version=self.version)
        tagged_header = self.api.flexible(self.version) and not self.api.plain_header
        self._connection.answered_last(pack(self._header.correlation_id, (body,), tagged_header))

    def refuse_login(self, login: Login, response: Any) -> None:
        """Send a response after the delay of refused logins, and then close the connection."""
        _end_login(
            self.cluster.kernel, self._connection, login, self.later(lambda: self.last_answer(response))
        )

    def answer_nothing(self) -> None:
        """Finish a request that has no response (Produce with acks=0)."""
        self._connection.answered(None)

    def hang_up(self) -> None:
        """Close the connection, which is how Kafka reports an error of a request that has no response."""
        self._connection.close()

    def is_from_member(self, group: str, member_id: str) -> None:
        """Note who sends heartbeats on this connection."""
        self._connection.member = group, member_id

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


def take_request(wire: Wire, broker: int, connection: Connection, frame: memoryview) -> None:
    """Decode `frame` and pass the request to the handler of its API.

    Raises Garbage if a real broker would close the connection, because the API or version is unknown, or the
    bytes are not a valid request.

    A client that must log in first may send only some requests, or tokens, which have no header.

    A bug in the handler, or in an event that the request schedules, ends this connection and nothing else.
    """
    login = connection.login
    if login is not None and not login.admits(frame):
        try:
            connection.answered(pack_token(login.take(bytes(frame))))
        except Refused:
            _end_login(wire.cluster.kernel, connection, login, lambda: connection.answered_last(b""))
        return
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


def _mute(kernel: Kernel, connection: Connection, throttle_ms: int) -> None:
    """Mute a connection for a time, which may be long, so that nothing of the request is kept."""

    def unmute() -> None:
        connection.unmute(cancel)

    cancel = partial(kernel.cancel, kernel.after(throttle_ms * 1000, unmute))
    connection.mute(cancel)


def _end_login(kernel: Kernel, connection: Connection, login: Login, end: Callable[[], None]) -> None:
    """Handle nothing more of a client whose login is refused, and `end` its connection after a delay."""
    login.stage = Stage.OVER
    connection.when_closed = partial(kernel.cancel, kernel.after(login.logins.delay_us, end))


def _handled(
    wire: Wire, broker: int, connection: Connection, api: Api, header: Header, frame: memoryview, begin: int
) -> Steps:
    """Decode the body of a request, which begins at `begin`, and handle it."""
    version = header.api_version
    try:
        watched = wire.on_demand is not None and wire.on_demand.active
        decoded = api.decode(version, frame, begin) if api.decode and not watched else None
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
    call = Call(wire, broker, connection, api, header, request, len(frame) - begin)
    try:
        handle = (wire.on_demand.handler(call) if wire.on_demand and watched else None) or api.handle
        yield from _blamed(wire.cluster.kernel, connection.failed, lambda: handle(call))
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
