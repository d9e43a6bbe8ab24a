"""A real cluster whose nodes are processes that can be started, killed, paused and restarted."""

import signal
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from kview.model.address import Address
from tests.real_kafka.archive import write_logging
from tests.real_kafka.asking import (
    PartitionSeen,
    controllers_registered,
    create_topic,
    elect_preferred,
    metadata,
    partitions_in,
)
from tests.real_kafka.nodes import ClusterFailed, Java, Node, free_ports, log_tails, new_uuid
from tests.real_kafka.settings import (
    LOOPBACK,
    QUICK,
    SMALL,
    common,
    properties,
    racks_by_halves,
    second_listener,
    with_zookeeper,
    zookeeper,
)
from tests.waiting import wait_until

FIRST_CONTROLLER_ID = 101
START_TIMEOUT_S = 180.0
"""Ten JVMs take a minute to start on two busy cores."""
STOP_TIMEOUT_S = 60.0
FOLDER = "{folder}"
ZOOKEEPER = "org.apache.zookeeper.server.quorum.QuorumPeerMain"

GUARD = "trap '' HUP INT TERM; read end; kill -9 0"
"""A shell leads the nodes' process group. It waits for the end of its input and then kills the group.

Its input ends when this process ends, in whatever way. So no node outlives its test, even after SIGKILL.
"""


@dataclass
class RealKafka:
    """A cluster of `brokers` (ids from 0) and `controllers` (ids from 101) in `folder`, on loopback ports.

    In ZooKeeper mode a ZooKeeper has the place of the controllers, and one of the brokers is the controller.

    Timeouts are short (`settings.QUICK`) unless `overrides`, under Kafka's own keys, say otherwise. Use it as
    a context manager, or call `start` and `close`.
    """

    folder: Path
    java: Path
    jars: Path
    brokers: int = 3
    controllers: int = 1
    racks: Sequence[str] | None = None
    zookeeper: bool = False
    overrides: Mapping[str, str] = field(default_factory=dict)
    """A value may contain FOLDER, which stands for the node's own folder."""
    links: Sequence[int] = ()
    """Brokers that a watcher reaches through a link. With any, every broker has a second listener, WATCHED;
    these advertise `links_at` there, where a test relays to `watched_address`."""
    links_at: dict[int, int] = field(init=False, default_factory=dict)
    watched_ports: dict[int, int] = field(init=False, default_factory=dict)
    nodes: dict[int, Node] = field(init=False, default_factory=dict)
    _guard: subprocess.Popen[bytes] | None = field(init=False, default=None)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def broker_ids(self) -> range:
        """The brokers' ids."""
        return range(self.brokers)

    @property
    def controller_ids(self) -> range:
        """The controllers' ids."""
        return range(FIRST_CONTROLLER_ID, FIRST_CONTROLLER_ID + self.controllers)

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of all brokers, separated by commas."""
        return ",".join(f"{LOOPBACK}:{self.nodes[broker].port}" for broker in self.broker_ids)

    @property
    def controller(self) -> int:
        """The active controller in ZooKeeper mode, which is one of the brokers."""
        return int(metadata(self._any_address(), []).controller_id)

    def address(self, node_id: int) -> Address:
        """Return the address on which a node listens."""
        return Address(LOOPBACK, self.nodes[node_id].port)

    def watched_address(self, broker: int) -> Address:
        """Where a broker's second listener is."""
        return Address(LOOPBACK, self.watched_ports[broker])

    def start(self) -> None:
        """Format all nodes, start them and wait until every broker is registered and unfenced.

        With more than one controller, these come first: while they elect a leader, and then another, a
        broker's requests to register can come to a halt for good, and it ends after a minute.
        """
        self._write_files()
        self._guard = subprocess.Popen(["sh", "-c", GUARD], stdin=subprocess.PIPE, process_group=0)
        if not self.zookeeper:
            self._format()
        for controller in self.controller_ids:
            self.restart(controller)
        if self.controllers > 1:
            self._wait(self._controllers_registered, "the controllers have registered")
        for broker in self.broker_ids:
            self.restart(broker)
        self.wait_for_brokers(self.broker_ids)

    def close(self) -> None:
        """End all processes at once. The folder with logs and data stays."""
        if self._guard is None:
            return
        assert self._guard.stdin is not None
        self._guard.stdin.close()
        for process in [self._guard, *(node.process for node in self.nodes.values() if node.process)]:
            process.wait(STOP_TIMEOUT_S)
        self._guard = None

    def kill(self, node_id: int) -> None:
        """Crash a node with SIGKILL."""
        self._end(node_id, signal.SIGKILL)

    def stop(self, node_id: int) -> None:
        """End a node with SIGTERM, and wait until it has ended. A broker first hands over its leaderships."""
        self._end(node_id, signal.SIGTERM)

    def pause(self, node_id: int) -> None:
        """Hang a node with SIGSTOP. Its sockets still accept connections, but nothing is answered.

        On a busy machine, a process goes on for a while until all its threads have stopped.
        """
        self._running(node_id).send_signal(signal.SIGSTOP)
        self.nodes[node_id].paused = True

    def resume(self, node_id: int) -> None:
        """Let a paused node continue."""
        self._running(node_id).send_signal(signal.SIGCONT)
        self.nodes[node_id].paused = False

    def restart(self, node_id: int) -> None:
        """Start a killed or stopped node again with its port and data, without waiting until it is ready.

        A broker in ZooKeeper mode gives up if it is still registered.
        """
        node = self.nodes[node_id]
        if node.process is not None:
            raise ClusterFailed(f"node {node_id} was not killed or stopped")
        keeps = self.zookeeper and node_id in self.controller_ids
        node.process = self._java(node, ZOOKEEPER if keeps else "kafka.Kafka", str(node.config))

    def move(self, broker: int) -> None:
        """Give a killed or stopped broker another port, for when it is started again."""
        node = self.nodes[broker]
        old, node.port = node.port, free_ports(1)[0]
        node.config.write_text(node.config.read_text().replace(f":{old}\n", f":{node.port}\n"))

    def heal(self) -> None:
        """Undo every kill, stop and pause, and wait until all brokers are in every ISR and every preferred
        replica leads.

        Otherwise Kafka would move the leaderships back at some moment of the next test.
        """
        for node in self.nodes.values():
            if node.paused:
                self.resume(node.id)
        if self.zookeeper:
            self.wait_for_brokers(node for node in self.broker_ids if self.nodes[node].process is not None)
        for node in self.nodes.values():
            if node.process is None:
                self.restart(node.id)
        self.wait_for_brokers(self.broker_ids)
        self.wait_for_full_isr()
        self._wait(self._preferred_lead, "every preferred replica leads")

    def _preferred_lead(self) -> bool:
        """Return whether every preferred replica leads. If not, request an election."""
        seen = partitions_in(metadata(self._any_address(), None))
        if all(one.leader == one.replicas[0] for of_topic in seen.values() for one in of_topic.values()):
            return True
        elect_preferred(self._changes_address())
        return False

    def create_topic(
        self, name: str, assignments: Sequence[Sequence[int]], configs: Mapping[str, str] | None = None
    ) -> None:
        """Create a topic whose partition p has the replicas `assignments[p]`, and wait for a full ISR."""
        if why := create_topic(self._changes_address(), name, assignments, configs or {}):
            raise ClusterFailed(why)
        self.wait_for_full_isr(name, partitions=len(assignments))

    def partitions(self, topic: str) -> dict[int, PartitionSeen]:
        """Return the partitions of a topic according to a running broker, or nothing if the topic is
        unknown."""
        return partitions_in(metadata(self._any_address(), [topic])).get(topic, {})

    def wait_for_full_isr(self, topic: str | None = None, partitions: int = 0) -> None:
        """Wait until the topic has at least `partitions` partitions and all replicas are in sync, as each
        broker that runs says: a consumer that asks one which does not know the topic yet is assigned nothing,
        and asks again after minutes. None means all topics."""

        def full(broker: int) -> bool:
            answer = metadata(self.address(broker), None if topic is None else [topic])
            seen = [one for of_topic in partitions_in(answer).values() for one in of_topic.values()]
            return len(seen) >= partitions and all(set(one.isr) == set(one.replicas) for one in seen)

        self._wait(
            lambda: all(map(full, self._answering())), f"every ISR of {topic or 'every topic'} is full"
        )

    def wait_for_brokers(self, broker_ids: Iterable[int]) -> None:
        """Wait until exactly these brokers are registered and unfenced according to each of them."""
        expected = set(broker_ids)

        def known_everywhere() -> bool:
            return all(
                {seen.node_id for seen in metadata(self.address(broker), []).brokers} == expected
                for broker in expected
            )

        self._wait(known_everywhere, f"the brokers {sorted(expected)} know one another")

    def _controllers_registered(self) -> bool:
        return all(
            controllers_registered(self.address(controller)) == set(self.controller_ids)
            for controller in self.controller_ids
        )

    def log_tails(self) -> str:
        """Return the last lines of every node's log."""
        return log_tails(self.nodes.values())

    def _write_files(self) -> None:
        racks = self.racks or racks_by_halves(self.brokers)
        ports = free_ports(
            self.brokers + self.controllers + bool(self.links) * self.brokers + len(self.links)
        )
        self.links_at = {broker: ports.pop() for broker in self.links}
        self.watched_ports = {broker: ports.pop() for broker in self.broker_ids if self.links}
        for node_id in [*self.controller_ids, *self.broker_ids]:
            folder = self.folder / f"node-{node_id}"
            folder.mkdir(parents=True)
            self.nodes[node_id] = Node(node_id, ports.pop(), folder, self.jars)
        write_logging(self.folder)
        controller_ports = [self.nodes[controller].port for controller in self.controller_ids]
        internal_replicas = {"offsets.topic.replication.factor": str(min(3, self.brokers))}
        for node in self.nodes.values():
            role = self._role(node, controller_ports)
            if node.id in self.broker_ids:
                listener = f"PLAINTEXT://{LOOPBACK}:{node.port}"
                role |= {"listeners": listener, "broker.rack": racks[node.id]}
                if self.links:
                    watched = self.watched_ports[node.id]
                    role |= second_listener(node.port, watched, self.links_at.get(node.id, watched))
            if not (self.zookeeper and node.id in self.controller_ids):
                own = {key: value.replace(FOLDER, str(node.folder)) for key, value in self.overrides.items()}
                role = {**role, **SMALL, **QUICK, **internal_replicas, **own}
            node.config.write_text(properties(role))

    def _role(self, node: Node, controller_ports: Sequence[int]) -> dict[str, str]:
        """Return what makes a node a broker or a controller in its mode."""
        broker = node.id in self.broker_ids
        if self.zookeeper:
            if broker:
                return with_zookeeper(node.folder, node.id, *controller_ports)
            return zookeeper(node.folder, node.port)
        values = common(node.folder, node.id, controller_ports)
        if broker:
            return {**values, "process.roles": "broker"}
        listener = f"CONTROLLER://{LOOPBACK}:{node.port}"
        return {**values, "process.roles": "controller", "listeners": listener}

    def _format(self) -> None:
        """Format the data folders. A broker's has but one file, which needs no JVM to be written."""
        voters = ",".join(
            f"{controller}@{LOOPBACK}:{self.nodes[controller].port}:{new_uuid()}"
            for controller in self.controller_ids
        )
        cluster_id = new_uuid()
        running = []
        for node in self.nodes.values():
            if node.id in self.broker_ids:
                node.format(cluster_id)
                continue
            arguments = ["format", "-t", cluster_id, "-c", str(node.config), "--initial-controllers", voters]
            running.append((node, self._java(node, "kafka.tools.StorageTool", *arguments)))
        for node, process in running:
            if process.wait(START_TIMEOUT_S) != 0:
                raise ClusterFailed(f"node {node.id} could not be formatted\n{self.log_tails()}")

    def _java(self, node: Node, main: str, *arguments: str) -> subprocess.Popen[bytes]:
        assert self._guard is not None
        return Java(self.java, self.folder).run(node, self._guard.pid, main, *arguments)

    def _running(self, node_id: int) -> subprocess.Popen[bytes]:
        process = self.nodes[node_id].process
        if process is None or process.poll() is not None:
            raise ClusterFailed(f"node {node_id} is not running\n{self.log_tails()}")
        return process

    def _end(self, node_id: int, number: signal.Signals) -> None:
        process = self._running(node_id)
        process.send_signal(number)
        process.wait(STOP_TIMEOUT_S)
        self.nodes[node_id].process = None
        self.nodes[node_id].paused = False

    def _any_address(self) -> tuple[str, int]:
        """Return the address of a broker that is running and not paused."""
        for broker in self._answering():
            return self.address(broker)
        raise ClusterFailed("no broker is running")

    def _answering(self) -> list[int]:
        """Return the brokers that are running and not paused."""
        nodes = (self.nodes[broker] for broker in self.broker_ids)
        return [node.id for node in nodes if node.process is not None and not node.paused]

    def _changes_address(self) -> tuple[str, int]:
        """Return the address of a broker that takes changes: with a ZooKeeper only the controller does."""
        if not self.zookeeper:
            return self._any_address()
        return self.address(self.controller)

    def _wait(self, probe: Callable[[], bool], what: str) -> None:
        """Wait until `probe` is true. A broker that does not answer counts as False. Fails at once if a node
        has died."""

        def answered() -> bool:
            for node in self.nodes.values():
                if node.process is not None:
                    self._running(node.id)
            try:
                return probe()
            except OSError:
                return False

        try:
            wait_until(answered, what, START_TIMEOUT_S)
        except AssertionError as error:
            raise ClusterFailed(f"{error}\n{self.log_tails()}") from None
