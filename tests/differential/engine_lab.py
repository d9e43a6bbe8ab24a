"""The simulated cluster at its engine's own speed: requests are frames, and time passes as scripts ask."""

from collections.abc import Callable
from typing import Any

from kview.simulate.cluster import Cluster, build
from kview.simulate.nodes import ProcessState
from kview.simulate.world import World, racked_brokers
from tests.differential.lab import BROKERS, CONTROLLERS, POLL_S, SETTINGS
from tests.serve.unwired import Unwired, UnwiredClient
from tests.simulate.engine import START_MS, go
from tests.simulate.group_invariants import of_the_cluster
from tests.simulate.invariants import Checker

CLIENT_ID = "tests"
HEAL_LIMIT_S = 60
STOP_LIMIT_S = 30
STEP_S = 0.001


class EngineAnswer:
    """The answer to a frame that was handed to a broker."""

    def __init__(self, client: UnwiredClient, request: Any) -> None:
        self.client = client
        self._request = request

    def arrived(self) -> bool:
        return bool(self.client.answers) or self.client.closed

    def message(self) -> Any:
        if not self.client.answers:
            raise ConnectionResetError("the connection has ended")
        frame = self.client.answers[0]
        assert frame is not None
        return self._request.header.get_response_class().decode(frame[4:], header=True)


class EngineLab:
    """A simulated cluster without traffic of its own, whose invariants are checked after every event."""

    def __init__(self, seed: int = 1) -> None:
        world = World(
            brokers=racked_brokers(BROKERS, racks=2),
            topics=(),
            controllers=CONTROLLERS,
            settings=SETTINGS,
            traffic=False,
        )
        self.cluster: Cluster = build(world, seed, START_MS)
        Checker(self.cluster, others=of_the_cluster(self.cluster), every_event=True)
        self._unwired = Unwired(self.cluster)
        self._open: dict[int, list[UnwiredClient]] = {broker: [] for broker in range(BROKERS)}
        self._unread: dict[int, list[Callable[[], None]]] = {broker: [] for broker in range(BROKERS)}

    def crash(self, *nodes: int) -> None:
        for node in nodes:
            self.cluster.faults.crash(node)
            self._disconnect(node)

    def stop(self, node: int) -> None:
        self.cluster.faults.stop(node)
        self._pass_until(lambda: self.cluster.nodes.state(node) is ProcessState.STOPPED, STOP_LIMIT_S)
        self._disconnect(node)

    def hang(self, node: int) -> None:
        self.cluster.faults.hang(node)

    def start(self, *nodes: int) -> None:
        for node in nodes:
            self.cluster.faults.start(node)
            unread, self._unread[node] = self._unread.get(node, []), []
            for hand_over in unread:
                hand_over()

    def refuses(self, broker: int) -> bool:
        return self.cluster.nodes.refuses(broker)

    def send(self, broker: int, request: Any) -> EngineAnswer:
        if self.cluster.nodes.refuses(broker):
            raise ConnectionRefusedError(f"broker {broker} refuses")
        client = UnwiredClient(broker)
        self._open[broker] = [c for c in self._open[broker] if c.busy]
        self._open[broker].append(client)
        client.busy = True
        request.with_header(1, CLIENT_ID)
        frame = bytes(request.encode(header=True))
        if self.cluster.nodes.serves(broker):
            self._unwired.send(client, frame)
        else:
            self._unread[broker].append(lambda: self._unwired.send(client, frame))
        return EngineAnswer(client, request)

    def now_ms(self) -> int:
        return self.cluster.kernel.now_us // 1000

    def let_pass(self, seconds: float) -> None:
        """Let time pass, but only until some broker hears new metadata, so that no state is missed."""
        images = self._images()
        until_ms = self.now_ms() + max(1, round(seconds * 1000))
        while self.now_ms() < until_ms and self._images() == images:
            go(self.cluster, STEP_S)
        failures = [failure for clients in self._open.values() for c in clients for failure in c.failures]
        assert not failures and not self._unwired.event_failures, (failures, self._unwired.event_failures)

    def _images(self) -> list[int]:
        return [self.cluster.image(broker).offset for broker in range(BROKERS)]

    def heal(self) -> None:
        self.cluster.faults.undo()

        def healthy() -> bool:
            image = self.cluster.metadata.image
            return all(b.active for b in image.brokers.values()) and all(
                set(p.isr) == set(p.replicas) for _, p in image.all_partitions()
            )

        self._pass_until(healthy, HEAL_LIMIT_S)

    def _pass_until(self, condition: Callable[[], bool], limit_s: float) -> None:
        until_ms = self.now_ms() + limit_s * 1000
        while not condition():
            assert self.now_ms() < until_ms, self.cluster.faults.active()
            self.let_pass(POLL_S)

    def _disconnect(self, node: int) -> None:
        for client in self._open.get(node, ()):
            if client.busy:
                client.leave()
        if node in self._open:
            self._open[node], self._unread[node] = [], []
