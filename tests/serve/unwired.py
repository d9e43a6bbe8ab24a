"""The simulated cluster's APIs without sockets: clients that hand over frames and keep their answers."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from kview.model.address import Address
from kview.serve.apis import all_apis
from kview.serve.call import Api, Wire, take_request
from kview.serve.connection import Connection
from kview.serve.frames import Garbage
from kview.serve.login import ANONYMOUS, Login
from kview.simulate.cluster import Cluster
from kview.simulate.nodes import ProcessState

FIRST_PORT = 9092


class UnwiredClient:
    """A client of one broker, which does for requests what a `Connection` does, with one at a time."""

    def __init__(self, broker: int) -> None:
        self.broker = broker
        self.host = "127.0.0.1"
        self.login: Login | None = None
        self.principal = ANONYMOUS
        self.member: tuple[str, str] | None = None
        self.mutes: list[Callable[[], None]] = []
        self.worked_s = 0.0
        self.when_closed: Callable[[], None] | None = None
        self.when_ended: Callable[[], None] | None = None
        self.answers: list[bytes | None] = []
        self.failures: list[Exception] = []
        self.steps = 0
        self.busy = False
        self.closed = False

    def run(self, steps: Iterator[None]) -> None:
        self.steps += sum(1 for _ in steps)

    def answered(self, frame: bytes | None) -> None:
        assert self.busy, "a second answer to one request"
        self.answers.append(frame)
        self.busy = False
        self.when_closed = None

    def work_s(self) -> float:
        return self.worked_s

    @property
    def muted(self) -> bool:
        return bool(self.mutes)

    def mute(self, cancel: Callable[[], None]) -> None:
        self.mutes.append(cancel)

    def unmute(self, cancel: Callable[[], None]) -> None:
        self.mutes.remove(cancel)

    def answered_last(self, frame: bytes) -> None:
        self.answered(frame)
        self.closed = True

    def close(self) -> None:
        self.closed = True

    def failed(self, error: Exception) -> None:
        self.failures.append(error)
        self.closed = True

    def leave(self) -> None:
        """Disconnect, whether or not there is an answer to wait for."""
        self.closed = True
        for ended in (self.when_closed, self.when_ended):
            if ended is not None:
                ended()
        self.when_closed = self.when_ended = None
        while self.mutes:
            self.mutes.pop()()


class Unwired:
    """Passes frames to the brokers of a cluster, as their connections do."""

    def __init__(self, cluster: Cluster, apis: Mapping[int, Api] | None = None) -> None:
        self.cluster = cluster
        self.event_failures: list[Exception] = []
        cluster.kernel.unblamed = self.event_failures.append
        self.apis = all_apis() if apis is None else apis
        endpoints = {broker: Address("127.0.0.1", FIRST_PORT + broker) for broker in cluster.broker_ids()}
        self._wire = Wire(cluster, endpoints, self.apis)

    def send(self, client: UnwiredClient, frame: bytes) -> None:
        """Hand over a frame without its size. Bytes that are no request close the client's connection."""
        if self.cluster.nodes.state(client.broker) is not ProcessState.RUNNING:
            client.leave()
            return
        client.busy = True
        try:
            take_request(self._wire, client.broker, cast("Connection", client), memoryview(frame))
        except Garbage:
            client.close()

    def ask(self, client: UnwiredClient, request: Any) -> None:
        """Hand over a request of kafka-python's, made with `version=`."""
        request.with_header(1, "tests")
        self.send(client, bytes(request.encode(header=True)))
