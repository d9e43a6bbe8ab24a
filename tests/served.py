"""`kview serve` as a process of the tests: its brokers, its line protocol, and what its brokers say."""

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Self

from kafka.protocol.admin import DescribeClusterRequest
from kafka.protocol.consumer import ListOffsetsRequest
from kafka.protocol.metadata import MetadataRequest

from kview.config.messages import encode
from kview.lab.commands import parse
from kview.lab.messages import Answer, Ask, Counters, Request, answers
from kview.model.address import Address
from kview.model.lab import Done, Reply, Status
from tests.real_kafka.asking import ask, create_topic
from tests.waiting import wait_until

START_TIMEOUT_S = 30.0
ANSWER_TIMEOUT_S = 10.0
LATEST, EARLIEST = -1, -2
CONSUMER, DEBUGGING = -1, -2

QUICK_TIMES = (
    "broker.heartbeat.interval.ms=250",
    "broker.session.timeout.ms=1500",
    "replica.lag.time.max.ms=4000",
    "group.consumer.min.heartbeat.interval.ms=500",
    "group.initial.rebalance.delay.ms=0",
    "group.share.min.record.lock.duration.ms=1000",
)
"""So that tests do not wait; the order of things is the same as with Kafka's own times."""


def kview_command(*arguments: str) -> list[str]:
    """The command `kview` of this checkout."""
    return [sys.executable, "-m", "kview", *arguments]


def kview_environment() -> dict[str, str]:
    """The environment in which that command finds this checkout."""
    return {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}


class Served:
    """A simulated cluster in a process of its own, which ends with this one."""

    def __init__(self, *flags: str, settings: tuple[str, ...] = QUICK_TIMES) -> None:
        self.control, theirs = socket.socketpair()
        self.control.settimeout(ANSWER_TIMEOUT_S)
        self._settled = True
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the process does)
        given = [word for setting in settings for word in ("--set", setting)]
        with theirs:
            self.process = subprocess.Popen(
                kview_command("serve", "--control-fd", str(theirs.fileno()), *given, *flags),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                pass_fds=[theirs.fileno()],
                env=kview_environment(),
            )
        self._answers = self.control.makefile("rb")
        assert self.process.stdout is not None
        first = self.process.stdout.readline().decode().strip()
        self.started = answers.decode(self._answers.readline())
        assert first.startswith("bootstrap.servers="), f"{first!r}, and said: {self.errors()}"
        self.bootstrap = first.removeprefix("bootstrap.servers=")
        self.addresses = [Address.parse(server) for server in self.bootstrap.split(",")]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """End it, by the end of its control socket."""
        self._answers.close()
        self.control.close()
        try:
            self.process.wait(ANSWER_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        finally:
            assert self.process.stdout is not None
            self.process.stdout.close()
            self._errors.close()

    def errors(self) -> str:
        """What it said on standard error."""
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace")

    def request(self, request: Request) -> Answer:
        """What is answered on the control channel."""
        self.control.sendall(encode(request))
        return answers.decode(self._answers.readline())

    def do(self, line: str) -> Done:
        """Carry out a command that must succeed."""
        self._settled = False
        answer = self.request(parse(line))
        assert isinstance(answer, Reply) and answer.done is not None, f"{line}: {answer}"
        return answer.done

    def status(self) -> Status:
        """The cluster in a few numbers."""
        answer = self.request(Ask.STATUS)
        assert isinstance(answer, Status)
        return answer

    def counters(self) -> Any:
        """What was appended, acknowledged and consumed."""
        answer = self.request(Ask.COUNTERS)
        assert isinstance(answer, Counters)
        return answer.counters

    def ask(self, broker: int, request: Any, timeout_s: float = ANSWER_TIMEOUT_S) -> Any:
        """What one broker answers on a connection of its own. Raises OSError."""
        return ask(self.addresses[broker], request, timeout_s)

    def metadata(self, topic: str, broker: int = 0) -> Any:
        """One topic as a broker has it."""
        named = MetadataRequest.MetadataRequestTopic(version=12, name=topic, topic_id=None)
        request = MetadataRequest(version=12, topics=[named], allow_auto_topic_creation=False)
        return self.ask(broker, request).topics[0]

    def partition(self, topic: str, partition: int = 0, broker: int = 0) -> Any:
        """One partition as a broker has it."""
        return next(p for p in self.metadata(topic, broker).partitions if p.partition_index == partition)

    def fenced(self, broker: int = 0) -> set[int]:
        """The brokers that are fenced, as a broker has it."""
        answer = self.ask(broker, DescribeClusterRequest(version=2, include_fenced_brokers=True))
        return {b.broker_id for b in answer.brokers if b.is_fenced}

    def offset(
        self, broker: int, topic: str, partition: int = 0, timestamp: int = LATEST, replica_id: int = CONSUMER
    ) -> Any:
        """What ListOffsets of one partition answers: error_code, offset, leader_epoch."""
        per_topic = ListOffsetsRequest.ListOffsetsTopic
        asked = per_topic.ListOffsetsPartition(version=7, partition_index=partition, timestamp=timestamp)
        request = ListOffsetsRequest(
            version=7, replica_id=replica_id, topics=[per_topic(version=7, name=topic, partitions=[asked])]
        )
        return self.ask(broker, request).topics[0].partitions[0]

    def create(self, topic: str, assignment: list[list[int]], broker: int = 0, **configs: str) -> None:
        """A topic with these replicas a partition; ready when every broker of them knows it."""
        dotted = {key.replace("_", "."): value for key, value in configs.items()}
        why = create_topic(self.addresses[broker], topic, assignment, dotted)
        assert not why, why
        for replica in sorted({r for replicas in assignment for r in replicas}):
            wait_until(partial(self._knows, replica, topic), f"{topic} known to {replica}")

    def heal(self) -> None:
        """End every fault, and wait until every broker is back and every ISR full, and brokers say so."""
        if self._settled:
            return
        self.do("undo")
        wait_until(lambda: self.status().healthy, "all brokers unfenced, all ISRs full")
        self._settled = True

    def _knows(self, broker: int, topic: str) -> bool:
        return not self.metadata(topic, broker).error_code


ServedFactory = Callable[..., Served]
