"""Requests that take long share the event loop with everybody else."""

import copy
import random
import sys
from collections.abc import Iterator
from types import FrameType

import pytest

from kview.serve.apis import all_apis
from kview.serve.connection import Connection
from tests.serve.examples import Examples
from tests.serve.fake_connections import FakeBroker, FakeClient, FakeLoop, framed
from tests.serve.unwired import Unwired, UnwiredClient
from tests.simulate.engine import START_MS, TOPIC, cluster_of, go

APIS = all_apis()
LISTS = {
    0: "topic_data", 1: "topics", 2: "topics", 3: "topics", 8: "topics", 9: "groups", 10: "coordinator_keys",
    13: "members", 15: "groups", 19: "topics", 20: "topics", 21: "topics", 23: "topics", 32: "resources",
    33: "resources", 37: "topics", 42: "groups_names", 43: "topic_partitions", 44: "resources", 45: "topics",
    46: "topics", 47: "topics", 55: "topics", 61: "topics", 75: "topics",
}  # fmt: skip
"""API → the list in its requests that a client can make as long as it likes."""

MUST_DIFFER = (15, 19, 33, 37, 44)
"""APIs that refuse a name that comes twice, or answer it once."""
VERSION_MAX = {19: 4}
"""Versions whose answers are short: a later CreateTopics returns all settings of each topic."""
ONE_KEY = ["retention.ms"]
NAMES = ("name", "group_id", "resource_name")
ENTRIES = 2_000
CALLS_MAX = 6_000
"""Limit of the function calls in one step: a few milliseconds, however long the list is."""


class Counting(UnwiredClient):
    """A client whose requests are worked on step by step, and that counts the function calls in each step."""

    def __init__(self) -> None:
        super().__init__(0)
        self.most_calls = 0
        self._calls = 0

    def run(self, steps: Iterator[None]) -> None:
        self._calls = 0
        for _ in steps:
            self._end_step()
        self._end_step()

    def send(self, wire: Unwired, frame: bytes) -> None:
        """Send a request, and take all that is done at once as one step."""
        sys.setprofile(self._count)
        try:
            wire.send(self, frame)
            self._end_step()
        finally:
            sys.setprofile(None)

    def _end_step(self) -> None:
        self.most_calls, self._calls = max(self.most_calls, self._calls), 0

    def _count(self, frame: FrameType, event: str, argument: object) -> None:
        self._calls += event == "call"


@pytest.mark.quick(8)
@pytest.mark.parametrize("key", LISTS)
def test_a_request_with_a_long_list_is_worked_on_in_small_steps(key: int) -> None:
    api = APIS[key]
    version = min(api.versions[1], VERSION_MAX.get(key, 99))
    cluster = cluster_of(settings={"group.initial.rebalance.delay.ms": "0"})
    cluster.kernel.after_event = None
    cluster.touched.keys = None
    go(cluster, 2)
    wire, client = Unwired(cluster), Counting()
    topics = [(TOPIC, cluster.metadata.image.topics[TOPIC].topic_id)]
    request = Examples(random.Random(1), START_MS, topics).request(api, version)
    (entry,) = getattr(request, LISTS[key])
    entries = [f"name-{n}" if isinstance(entry, str) else copy.copy(entry) for n in range(ENTRIES)]
    for n, each in enumerate(entries):
        if hasattr(each, "configuration_keys"):
            each.configuration_keys = ONE_KEY
        for name in NAMES:
            if key in MUST_DIFFER and hasattr(each, name):
                setattr(each, name, f"name-{n}")
    setattr(request, LISTS[key], entries)
    request.with_header(1, "tests")
    client.send(wire, bytes(request.encode(header=True)))
    go(cluster, 5)
    (answer,) = client.answers
    assert answer is not None and client.failures == [] and wire.event_failures == []
    assert client.most_calls < CALLS_MAX


def long_work(steps: int, done: list[str], name: str) -> Iterator[None]:
    for _ in range(steps):
        yield
    done.append(name)


def serving(loop: FakeLoop, done: list[str], limit_bytes: int = 1 << 30) -> FakeBroker:
    """Return a broker whose requests say how many steps they take, and are answered with `ok`."""

    def serve(connection: Connection, frame: bytes) -> None:
        steps, name = frame.decode().split()

        def work() -> Iterator[None]:
            yield from long_work(int(steps), done, name)
            connection.answered(b"ok")

        connection.run(work())

    return FakeBroker(loop, serve, limit_bytes)


def ask(client: FakeClient, steps: int, name: str) -> None:
    client.send(framed(f"{steps:8} {name}".encode()))


def test_a_short_request_is_answered_at_once_while_long_ones_take_turns() -> None:
    """A step takes 1 ms here, the first slice 2 ms, and every further slice 10 ms."""
    loop, done = FakeLoop(), list[str]()
    broker = serving(loop, done)
    one, two, short = (broker.connect() for _ in range(3))
    ask(one, 1000, "one")
    ask(two, 500, "two")
    assert done == []
    for _ in range(20):
        loop.turn()
        ask(short, 0, "short")
        loop.turn()
    assert done == ["short"] * 20, "nobody waits for the long ones"
    loop.until_idle()
    assert done[20:] == ["two", "one"], "they take turns, so the shorter one is done first"
    assert short.transport.written == b"ok" * 20
    assert one.transport.written == two.transport.written == b"ok"
    assert loop.slices >= 1500 / 11


def test_what_a_hung_broker_was_working_on_goes_on_when_it_comes_back() -> None:
    loop, done = FakeLoop(), list[str]()
    broker = serving(loop, done)
    client = broker.connect()
    ask(client, 100, "long")
    loop.turn()
    broker.frozen = True
    client.connection.freeze()
    loop.until_idle()
    assert done == [] and client.transport.written == b""
    broker.frozen = False
    client.connection.thaw()
    loop.until_idle()
    assert done == ["long"] and client.transport.written == b"ok"


@pytest.mark.parametrize("end", ["reset", "left", "left while the broker hung"])
def test_nobody_works_for_a_client_that_is_gone(end: str) -> None:
    loop, done = FakeLoop(), list[str]()
    broker = serving(loop, done)
    client = broker.connect()
    ask(client, 100, "long")
    loop.turn()
    if end == "reset":
        client.connection.abort()
    elif end == "left":
        client.connection.connection_lost(None)
    else:
        broker.frozen = True
        loop.until_idle()
        client.connection.connection_lost(None)
        broker.frozen = False
        client.connection.thaw()
    loop.until_idle()
    assert done == []


def test_a_failure_in_a_later_slice_ends_its_own_connection() -> None:
    loop, done = FakeLoop(), list[str]()

    def serve(connection: Connection, frame: bytes) -> None:
        def fail() -> Iterator[None]:
            yield from long_work(100, done, "before")
            raise OverflowError("a bug")

        connection.run(fail() if frame.startswith(b"fail") else long_work(100, done, "other"))

    broker = FakeBroker(loop, serve, 1 << 30)
    failing, other = broker.connect(), broker.connect()
    failing.send(framed(b"fail please"))
    other.send(framed(b"do something"))
    loop.until_idle()
    assert done == ["before", "other"]
    assert failing.transport.closed and not other.transport.closed


MB = 1 << 20


def test_requests_of_all_connections_have_one_limit_and_the_largest_ones_end() -> None:
    """Each client sends less than one request may have."""
    done = list[str]()
    broker = serving(FakeLoop(), done, limit_bytes=20 * MB)
    small = [broker.connect() for _ in range(10)]
    for n, client in enumerate(small):
        client.send(framed(bytes(MB))[: MB // 2])
        assert not client.transport.closed, n
    large = [broker.connect() for _ in range(30)]
    for client in large:
        client.send(framed(bytes(4 * MB))[: 2 * MB])
    assert not any(client.transport.closed for client in small)
    reset = sum(client.transport.reset for client in large)
    assert 27 <= reset < 30, "those that fit stay"
    for client in large:
        client.connection.connection_lost(None)
    others = [broker.connect() for _ in range(4)]
    for client in others:
        client.send(framed(bytes(4 * MB))[: 2 * MB])
    assert sum(client.transport.reset for client in others) == 2, "there is room again"


def test_a_request_counts_until_it_is_answered() -> None:
    loop, taken = FakeLoop(), list[Connection]()
    broker = FakeBroker(loop, lambda connection, frame: taken.append(connection), 10 * MB)
    waiting, next_one = broker.connect(), broker.connect()
    waiting.send(framed(bytes(6 * MB)))
    assert len(taken) == 1
    next_one.send(framed(bytes(5 * MB)))
    assert waiting.transport.reset and not next_one.transport.closed
    taken.pop().answered(b"ok")
    third = broker.connect()
    third.send(framed(bytes(5 * MB)))
    assert not third.transport.closed
