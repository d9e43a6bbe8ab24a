"""A canary for each undocumented part of kafka-python in use: it fails when the library changes that part."""

import errno
import inspect
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

import kafka.errors as kafka_errors
import pytest
from kafka.net.connection import KafkaConnection
from kafka.net.transport import KafkaTCPTransport
from kafka.protocol.admin import DescribeConfigsRequest, DescribeConfigsResponse
from kafka.protocol.consumer import HeartbeatRequest
from kafka.protocol.frame import KafkaBytes
from kafka.protocol.parser import KafkaProtocol

from kview.wire import list_offsets
from kview.wire.kafka_internals import (
    ByteMeter,
    Connection,
    ConnectTimedOut,
    Disconnected,
    Future,
    Message,
    NetworkSelector,
    QuietSelector,
    Transport,
    connect,
    network_error,
)
from kview.wire.kafka_requests import request_decoder
from kview.wire.kafka_responses import response_encoder
from kview.wire.stepwise import ELEMENTS
from tests.waiting import wait_until

WITHIN_S = 5.0
T = TypeVar("T")


@dataclass
class Heard:
    """Keeps what a transport passes to its connection."""

    data: bytes = b""
    ends: list[Exception | None] = field(default_factory=list)
    _sensors: None = None

    def data_received(self, data: bytes) -> None:
        self.data += data

    def connection_lost(self, error: Exception | None) -> None:
        self.ends.append(error)


@pytest.fixture
def net() -> Iterator[Any]:
    selector = NetworkSelector(client_id="canary", slow_task_threshold_secs=0)
    selector.start()
    yield selector
    selector.stop(timeout_ms=500)
    selector.close()


def transport(net: Any, heard: Heard) -> tuple[Transport, socket.socket, ByteMeter]:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    meter = ByteMeter()
    made = Transport(net, ours, "localhost", meter)
    made.set_protocol(heard)
    return made, theirs, meter


def test_what_comes_right_before_the_end_is_read_and_the_end_has_a_type(net: Any) -> None:
    """`_sock_recv` is what the transport reads with, and its `_sock` is the socket."""
    assert list(inspect.signature(KafkaTCPTransport._sock_recv).parameters) == ["self"]
    heard = Heard()
    made, theirs, _ = transport(net, heard)
    theirs.sendall(b"HTTP/1.1 400")
    theirs.close()
    net.call_soon_threadsafe(made.resume_reading)
    wait_until(lambda: heard.ends, "the end", WITHIN_S)
    assert heard.data == b"HTTP/1.1 400"
    assert [type(end) for end in heard.ends] == [Disconnected]


def test_an_error_of_sending_has_its_number(net: Any) -> None:
    """The transport hands on the OSError as the argument of a KafkaConnectionError."""
    heard = Heard()
    made, theirs, meter = transport(net, heard)
    theirs.close()
    net.call_soon_threadsafe(lambda: made.write(b"request"))
    wait_until(lambda: heard.ends, "the end", WITHIN_S)
    (end,) = heard.ends
    assert isinstance(end, kafka_errors.KafkaConnectionError)
    found = network_error(end)
    assert found is not None and found.errno == errno.EPIPE
    assert meter.bytes_sent == len(b"request")


def test_a_text_alone_is_not_a_network_error() -> None:
    assert network_error(kafka_errors.KafkaConnectionError("111 ECONNREFUSED")) is None
    assert network_error(None) is None
    assert network_error(Disconnected()) is not None


def connecting(net: Any, port: int, seconds: float) -> Any:
    (resolved,) = socket.getaddrinfo("127.0.0.1", port, 0, socket.SOCK_STREAM)
    return net.run(lambda: connect(net, resolved, [], time.monotonic() + seconds))


def test_connecting_says_how_it_failed_by_number(net: Any) -> None:
    """The selector's `wait_write` is awaited, and raises KafkaTimeoutError."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        connected = connecting(net, port, WITHIN_S)
        assert connected.getpeername() == ("127.0.0.1", port)
        connected.close()
    with pytest.raises(ConnectionRefusedError) as refused:
        connecting(net, port, WITHIN_S)
    assert refused.value.errno == errno.ECONNREFUSED


def test_connecting_ends_in_time(net: Any) -> None:
    """A listener whose queue is full leaves further connections without an answer."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
        port = listener.getsockname()[1]
        waiting = [socket.socket() for _ in range(4)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", port))
        with pytest.raises(ConnectTimedOut):
            connecting(net, port, 0.2)
        for one in waiting:
            one.close()


def test_a_connection_closes_on_garbage_and_remembers_how_it_began(net: Any) -> None:
    """`data_received`, `connection_made`, `initialize`, `init_future`, `close_future` and the rest that a
    link uses."""
    meter = ByteMeter()
    connection = Connection(net, meter, client_id="canary")
    assert isinstance(connection, KafkaConnection)
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    ends: list[Exception] = []
    connection.close_future.add_errback(ends.append)

    async def begin() -> None:
        connection.connection_made(Transport(net, ours, "localhost", meter))
        await connection.initialize(timeout_at=time.monotonic() + WITHIN_S)

    net.call_soon_threadsafe(lambda: net.call_soon(begin))
    theirs.settimeout(WITHIN_S)
    asked = theirs.recv(4096)
    assert int.from_bytes(asked[4:6], "big") == 18, "ApiVersions comes first"
    theirs.sendall(b"SSH-2.0-OpenSSH\r\n")
    wait_until(lambda: ends, "the end", WITHIN_S)
    theirs.close()
    assert isinstance(ends[0], kafka_errors.KafkaProtocolError)
    assert connection.first_bytes.startswith(b"SSH-2.0-")
    assert not connection.connected and connection.init_future.failed()
    assert meter.bytes_sent == len(asked)


def test_a_socket_that_is_not_registered_is_a_key_error_without_words_and_a_closed_one_too() -> None:
    with QuietSelector() as selector, socket.socket() as one:
        with pytest.raises(KeyError) as refused:
            selector.get_key(one)
        assert refused.value.args == (one.fileno(),)
        key = selector.register(one, selectors.EVENT_READ, "data")
        assert selector.get_key(one) == selector.get_key(one.fileno()) == key
        one.close()
        assert selector.get_key(one) == key, "it is closed, and registered still"
        selector.unregister(one)
        with pytest.raises((KeyError, ValueError)):
            selector.get_key(one)


def test_the_selector_has_what_the_loop_uses() -> None:
    wanted = {
        "start": [], "stop": ["timeout_ms"], "close": [], "run": ["coro"], "call_soon": ["task"],
        "call_soon_threadsafe": ["callback"], "call_at": ["when", "task"], "call_later": ["delay", "task"],
        "cancel": ["task"], "sleep": ["delay"], "wait_write": ["fileobj", "timeout_at"],
    }  # fmt: skip
    for name, parameters in wanted.items():
        found = inspect.signature(getattr(NetworkSelector, name)).parameters
        assert set(parameters) <= set(found), name
    future = Future()
    outcomes: list[Any] = []
    future.add_both(outcomes.append)
    future.success(7)
    assert (future.is_done, outcomes) == (True, [7])


def in_steps(work: Generator[None, None, T]) -> tuple[T, int]:
    """Return the result of a generator, and how often it has yielded."""
    steps = 0
    while True:
        try:
            next(work)
            steps += 1
        except StopIteration as end:
            return end.value, steps


@pytest.mark.parametrize("version", [0, 3, 4])
def test_a_request_is_decoded_and_its_end_is_known(version: int) -> None:
    """`_struct.compiled_decode_from` gives the message and the place after it."""
    flexible = HeartbeatRequest.flexible_version_q(version)
    sent = HeartbeatRequest(version=version, group_id="billing", generation_id=3, member_id="m")
    body = bytes(sent.encode())
    frame = memoryview(b"head" + body + b"rest")
    (request, end), _ = in_steps(request_decoder(HeartbeatRequest, version, flexible)(frame, 4))
    assert (request.group_id, request.generation_id, request.member_id) == ("billing", 3, "m")
    assert end == 4 + len(body)


@pytest.mark.parametrize("version", [1, 4])
def test_requests_and_responses_are_coded_in_steps_as_the_library_codes_them(version: int) -> None:
    """`emit_decode_from` and `emit_encode_into` write loops that begin with `for` and end with a colon."""
    flexible = DescribeConfigsRequest.flexible_version_q(version)
    per_resource = DescribeConfigsRequest.DescribeConfigsResource
    resources = [
        per_resource(version=version, resource_type=2, resource_name=f"é{n}", configuration_keys=["a", "b"])
        for n in range(300)
    ]
    body = bytes(DescribeConfigsRequest(version=version, resources=resources).encode())
    (request, end), steps = in_steps(
        request_decoder(DescribeConfigsRequest, version, flexible)(memoryview(body), 0)
    )
    assert (request, end) == (DescribeConfigsRequest.decode(body, version=version), len(body))
    assert steps >= 3 * 300 // ELEMENTS
    per_result = DescribeConfigsResponse.DescribeConfigsResult
    config = per_result.DescribeConfigsResourceResult(version=version, name="k", value="v" * 50, synonyms=[])
    results = [
        per_result(version=version, resource_type=2, resource_name=f"é{n}", configs=[config] * 2)
        for n in range(300)
    ]
    response = DescribeConfigsResponse(version=version, results=results)
    encoded, steps = in_steps(response_encoder(DescribeConfigsResponse, version)(response))
    assert encoded == response.encode(version=version)
    assert steps >= 3 * 300 // ELEMENTS


@pytest.mark.parametrize(("flexible", "data"), [(False, b"\0\0\0\7"), (True, b"\0\0\0\7\0")])
def test_an_answers_header_is_read_and_left_behind(flexible: bool, data: bytes) -> None:
    buffer = KafkaBytes(data + b"body")
    message = Message(3, 9, flexible, b"", bytes)
    assert message.parse_header(buffer).correlation_id == 7
    assert buffer.read() == b"body"


def test_a_request_of_our_own_stands_in_for_the_librarys() -> None:
    """KafkaProtocol sends any object of this shape, and decodes its answer by it."""
    parser = KafkaProtocol(client_id="canary", receive_message_max_bytes=1_000_000, ident="")
    number = parser.send_request(list_offsets.request(2, [], list_offsets.LATEST))
    sent = parser.send_bytes()
    assert int.from_bytes(sent[4:6], "big") == list_offsets.API_KEY
    answer = number.to_bytes(4, "big") + bytes(8)
    ((correlation_id, decoded),) = parser.receive_bytes(len(answer).to_bytes(4, "big") + answer)
    assert (correlation_id, decoded.throttle_time_ms, decoded.topics) == (number, 0, ())


ONE_BY_ONE = """
import logging, sys
from kview.wire.kafka_package import one_by_one
one_by_one()
import kview.observe.observer
print(*(type(handler).__name__ for handler in logging.getLogger("kafka").handlers))
print(*(name for name in sys.modules if name.startswith(("kafka.net.", "kafka.protocol."))))
"""


def test_module_by_module_kafka_python_says_nothing_on_the_terminal_either_and_has_what_is_named() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ONE_BY_ONE], capture_output=True, text=True, check=True, timeout=60
    )
    handlers, modules = done.stdout.splitlines()
    assert handlers == "NullHandler"
    assert set(modules.split()) >= {"kafka.protocol.admin.groups", "kafka.net.connection"}
    assert not set(modules.split()) & {"kafka.protocol.admin.acl", "kafka.net.manager"}
