"""A real cluster as processes: started, killed, paused and restarted like machines of their own."""

import base64
import random
import signal
import socket
import subprocess
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from kview.model.address import Address
from tests.real_kafka.asking import PartitionSeen, create_topic, elect_preferred, metadata, partitions_in
from tests.real_kafka.settings import LOGGING, LOOPBACK, QUICK, SMALL, common, properties, racks_by_halves
from tests.waiting import wait_until

FIRST_CONTROLLER_ID = 101
PORTS = range(20000, 32000)
"""Below the range for outgoing connections, so that a stopped node's port stays free for its restart."""
HEAP = ["-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
START_TIMEOUT_S = 180.0
"""Ten JVMs on two busy cores take a minute."""
STOP_TIMEOUT_S = 60.0
LOG_TAIL_LINES = 15

GUARD = "trap '' HUP INT TERM; read end; kill -9 0"
"""The nodes' process group is led by a shell that waits for the end of its input and then kills the group.

That end comes when this process ends in whatever way: no node outlives its test, not even after SIGKILL.
"""


class ClusterFailed(Exception):
    """A node did not do what it was asked; the message ends with the tails of the logs."""


@dataclass
class Node:
    """A broker or a controller; one without a process was killed, stopped or never started."""

    id: int
    port: int
    folder: Path
    process: subprocess.Popen[bytes] | None = None
    paused: bool = False

    @property
    def config(self) -> Path:
        """Its configuration file."""
        return self.folder / "server.properties"

    @property
    def log(self) -> Path:
        """What all its runs printed."""
        return self.folder / "node.log"


@dataclass
class RealKafka:
    """A cluster of `brokers` (ids from 0) and `controllers` (ids from 101) in `folder`, on loopback ports.

    Times are quick ones (`settings.QUICK`) unless `overrides`, in Kafka's own keys, say otherwise. Use it as
    a context manager, or call `start` and `close`.
    """

    folder: Path
    java: Path
    jars: Path
    brokers: int = 3
    controllers: int = 1
    racks: Sequence[str] | None = None
    overrides: Mapping[str, str] = field(default_factory=dict)
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
        """All brokers' addresses, as clients take them."""
        return ",".join(f"{LOOPBACK}:{self.nodes[broker].port}" for broker in self.broker_ids)

    def address(self, node_id: int) -> Address:
        """Where a node listens."""
        return Address(LOOPBACK, self.nodes[node_id].port)

    def start(self) -> None:
        """Format all nodes, start them and wait until every broker is registered and unfenced."""
        self._write_files()
        self._guard = subprocess.Popen(["sh", "-c", GUARD], stdin=subprocess.PIPE, process_group=0)
        self._format()
        for node_id in self.nodes:
            self.restart(node_id)
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
        """End a node with SIGKILL: a crash."""
        self._end(node_id, signal.SIGKILL)

    def stop(self, node_id: int) -> None:
        """End a node with SIGTERM, which for a broker moves its leaderships first, and wait for it."""
        self._end(node_id, signal.SIGTERM)

    def pause(self, node_id: int) -> None:
        """Hang a node with SIGSTOP: its sockets accept and nothing answers."""
        self._running(node_id).send_signal(signal.SIGSTOP)
        self.nodes[node_id].paused = True

    def resume(self, node_id: int) -> None:
        """Let a paused node go on."""
        self._running(node_id).send_signal(signal.SIGCONT)
        self.nodes[node_id].paused = False

    def restart(self, node_id: int) -> None:
        """Start a node again that was killed or stopped, on its port and its data. Does not wait for it."""
        node = self.nodes[node_id]
        if node.process is not None:
            raise ClusterFailed(f"node {node_id} was not killed or stopped")
        node.process = self._java(node, "kafka.Kafka", str(node.config))

    def heal(self) -> None:
        """Undo every kill, stop and pause, and wait until all brokers are back in every ISR and every
        preferred replica leads: else Kafka gives the leaderships back at any moment of the next test."""
        for node in self.nodes.values():
            if node.paused:
                self.resume(node.id)
            if node.process is None:
                self.restart(node.id)
        self.wait_for_brokers(self.broker_ids)
        self.wait_for_full_isr()
        self._wait(self._preferred_lead, "every preferred replica leads")

    def _preferred_lead(self) -> bool:
        """Whether they do; where not, ask for it."""
        seen = partitions_in(metadata(self._any_address(), None))
        if all(one.leader == one.replicas[0] for of_topic in seen.values() for one in of_topic.values()):
            return True
        elect_preferred(self._any_address())
        return False

    def create_topic(
        self, name: str, assignments: Sequence[Sequence[int]], configs: Mapping[str, str] | None = None
    ) -> None:
        """Create a topic whose partition p has the replicas `assignments[p]`, and wait for a full ISR."""
        if why := create_topic(self._any_address(), name, assignments, configs or {}):
            raise ClusterFailed(why)
        self.wait_for_full_isr(name, partitions=len(assignments))

    def partitions(self, topic: str) -> dict[int, PartitionSeen]:
        """What a broker that answers says of a topic's partitions; empty for an unknown topic."""
        return partitions_in(metadata(self._any_address(), [topic])).get(topic, {})

    def wait_for_full_isr(self, topic: str | None = None, partitions: int = 0) -> None:
        """Wait until a topic has `partitions` at least and every replica is in sync; None is all topics."""

        def full() -> bool:
            answer = metadata(self._any_address(), None if topic is None else [topic])
            seen = [one for of_topic in partitions_in(answer).values() for one in of_topic.values()]
            return len(seen) >= partitions and all(set(one.isr) == set(one.replicas) for one in seen)

        self._wait(full, f"every ISR of {topic or 'every topic'} is full")

    def wait_for_brokers(self, broker_ids: Iterable[int]) -> None:
        """Wait until exactly these brokers are registered and unfenced, as each of them says itself."""
        expected = set(broker_ids)

        def known_everywhere() -> bool:
            return all(
                {seen.node_id for seen in metadata(self.address(broker), []).brokers} == expected
                for broker in expected
            )

        self._wait(known_everywhere, f"the brokers {sorted(expected)} know one another")

    def log_tails(self) -> str:
        """The last lines of every node's log."""
        tails = []
        for node in self.nodes.values():
            if node.log.exists():
                with node.log.open(errors="replace") as file:
                    tails.append(f"--- node {node.id}: {node.log}\n{''.join(deque(file, LOG_TAIL_LINES))}")
        return "\n".join(tails)

    def _write_files(self) -> None:
        racks = self.racks or racks_by_halves(self.brokers)
        ports = free_ports(self.brokers + self.controllers)
        for node_id in [*self.controller_ids, *self.broker_ids]:
            folder = self.folder / f"node-{node_id}"
            folder.mkdir(parents=True)
            self.nodes[node_id] = Node(node_id, ports.pop(), folder)
        (self.folder / "log4j2.xml").write_text(LOGGING)
        controller_ports = [self.nodes[controller].port for controller in self.controller_ids]
        internal_replicas = {"offsets.topic.replication.factor": str(min(3, self.brokers))}
        for node in self.nodes.values():
            role: dict[str, str]
            if node.id in self.broker_ids:
                listener = f"PLAINTEXT://{LOOPBACK}:{node.port}"
                role = {"process.roles": "broker", "listeners": listener, "broker.rack": racks[node.id]}
            else:
                role = {"process.roles": "controller", "listeners": f"CONTROLLER://{LOOPBACK}:{node.port}"}
            values = {**common(node.folder, node.id, controller_ports), **role, **SMALL, **QUICK}
            node.config.write_text(properties({**values, **internal_replicas, **self.overrides}))

    def _format(self) -> None:
        """Format all data folders at once: each takes a JVM's start."""
        voters = ",".join(
            f"{controller}@{LOOPBACK}:{self.nodes[controller].port}:{new_uuid()}"
            for controller in self.controller_ids
        )
        cluster_id = new_uuid()
        running = []
        for node in self.nodes.values():
            voting = node.id in self.controller_ids
            quorum = ["--initial-controllers", voters] if voting else ["--no-initial-controllers"]
            arguments = ["format", "-t", cluster_id, "-c", str(node.config), *quorum]
            running.append((node, self._java(node, "kafka.tools.StorageTool", *arguments)))
        for node, process in running:
            if process.wait(START_TIMEOUT_S) != 0:
                raise ClusterFailed(f"node {node.id} could not be formatted\n{self.log_tails()}")

    def _java(self, node: Node, main: str, *arguments: str) -> subprocess.Popen[bytes]:
        assert self._guard is not None
        logging = f"-Dlog4j2.configurationFile={self.folder / 'log4j2.xml'}"
        with node.log.open("ab") as log:
            return subprocess.Popen(
                [self.java, *HEAP, logging, "-cp", f"{self.jars}/*", main, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                process_group=self._guard.pid,
            )

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
        """A broker that runs and is not paused."""
        for broker in self.broker_ids:
            node = self.nodes[broker]
            if node.process is not None and not node.paused:
                return self.address(broker)
        raise ClusterFailed("no broker is running")

    def _wait(self, probe: Callable[[], bool], what: str) -> None:
        """Wait for `probe`; no answer from a broker is a no, a node that died by itself fails at once."""

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


def new_uuid() -> str:
    """A random id as Kafka writes it; one with a dash in front would be read as a flag."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text


def free_ports(count: int) -> list[int]:
    """Ports on which nobody listens, chosen at random so that clusters started at the same time differ."""
    ports: list[int] = []
    for port in random.sample(PORTS, len(PORTS)):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((LOOPBACK, port))
            except OSError:
                continue
        ports.append(port)
        if len(ports) == count:
            return ports
    raise ClusterFailed(f"there are no {count} free ports from {PORTS.start} to {PORTS.stop}")
