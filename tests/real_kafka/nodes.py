"""The nodes of a real cluster: their folders and logs, the programs that they run, and their ports."""

import base64
import os
import random
import re
import socket
import subprocess
import uuid
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.real_kafka.archive import HEAP, logging, options
from tests.real_kafka.settings import LOOPBACK, properties

PORTS = range(20000, 32000)
"""These are below the range of ports for outgoing connections, so that a stopped node's port stays free for
its restart."""
PORTS_OF_A_WORKER = 1000
"""Each of the workers that run tests side by side has ports of its own."""
LOG_TAIL_LINES = 15


class ClusterFailed(Exception):
    """Raised if a node did not do what it was asked to do. The message ends with the last lines of the
    logs."""


@dataclass
class Node:
    """A broker or a controller. If it has no process, it was killed, stopped or never started."""

    id: int
    port: int
    folder: Path
    jars: Path
    process: subprocess.Popen[bytes] | None = None
    paused: bool = False

    @property
    def config(self) -> Path:
        """The node's configuration file."""
        return self.folder / "server.properties"

    @property
    def log(self) -> Path:
        """The output of all runs of the node."""
        return self.folder / "node.log"

    def format(self, cluster_id: str) -> None:
        """Write the file that each of a broker's log directories begins with."""
        (folders,) = re.findall("^log.dirs=(.*)$", self.config.read_text(), re.MULTILINE)
        for folder in map(Path, folders.split(",")):
            folder.mkdir()
            of_node = {"version": "1", "cluster.id": cluster_id, "node.id": str(self.id)}
            meta = properties({**of_node, "directory.id": new_uuid()})
            (folder / "meta.properties").write_text(meta)


@dataclass(frozen=True)
class Java:
    """Starts Kafka's classes from a node's jars, with the logging that `folder` configures."""

    java: Path
    folder: Path

    def run(self, node: Node, group: int, main: str, *arguments: str) -> subprocess.Popen[bytes]:
        """Start a class for a node, whose log gets the output, in the process group `group`."""
        with node.log.open("ab") as log:
            return subprocess.Popen(
                [
                    self.java,
                    *HEAP,
                    *options(self.java, node.jars),
                    logging(self.folder, node.jars),
                    "-cp",
                    f"{node.jars}/*",
                    main,
                    *arguments,
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                process_group=group,
            )


def log_tails(nodes: Iterable[Node]) -> str:
    """Return the last lines of the nodes' logs."""
    tails = []
    for node in nodes:
        if node.log.exists():
            with node.log.open(errors="replace") as file:
                tails.append(f"--- node {node.id}: {node.log}\n{''.join(deque(file, LOG_TAIL_LINES))}")
    return "\n".join(tails)


def new_uuid() -> str:
    """Return a random id in Kafka's format, without a leading dash, which would look like a flag."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text


def free_ports(count: int) -> list[int]:
    """Return ports on which nobody listens, and which this process has not returned before: their nodes may
    be starting, or stopped."""
    ports: list[int] = []
    while len(ports) < count:
        if not _ports:
            raise ClusterFailed(f"no port from {PORTS.start} to {PORTS.stop} is free for this process")
        port = _ports.pop()
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((LOOPBACK, port))
            except OSError:
                continue
        ports.append(port)
    return ports


def _shuffled_ports() -> list[int]:
    """Return the ports of this process, in random order, so that two runs at the same time differ."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    slices = len(PORTS) // PORTS_OF_A_WORKER
    first = PORTS.start + worker % slices * PORTS_OF_A_WORKER
    return random.sample(range(first, first + PORTS_OF_A_WORKER), PORTS_OF_A_WORKER)


_ports = _shuffled_ports()
