"""What a script does and sees: faults, traffic and questions, and the states that followed each other."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from kafka.protocol.admin import DeleteTopicsRequest, DescribeClusterRequest, DescribeQuorumRequest
from kafka.protocol.producer import ProduceRequest
from kafka.record import MemoryRecords

from kview.simulate.records import encode_batch
from tests.differential.lab import ANSWER_S, BROKERS, POLL_S, Answer, Lab, ask
from tests.serve import questions as q

T = TypeVar("T")

LIMIT_S = 180.0
"""A busy machine takes a minute to start a broker."""
SILENCE_S = 1.0
"""A broker that says nothing for so long counts as silent."""

PRODUCE_VERSION = 9
PRODUCE_TIMEOUT_MS = 30_000

LATEST, EARLIEST = -1, -2
ALL = -1


class Stuck(AssertionError):
    """Raised if what a script waits for does not happen."""


class Play:
    """One run of a script. `seen` has, for each subject, the words for its states in order, without
    repetitions. `watched` are the subjects that are looked at again and again."""

    def __init__(self, lab: Lab, name: str) -> None:
        self.lab = lab
        self.seen: dict[str, list[str]] = {}
        self.watched: set[str] = set()
        self._prefix = name.replace("_", "-")
        self._down: dict[int, None] = {}
        self._looks: list[Callable[[], None]] = []
        self._topics: dict[str, None] = {}

    # --- seeing

    def see(self, subject: str, words: object) -> None:
        """Remember a state of a subject, or an answer."""
        self.seen.setdefault(subject, []).append(str(words))

    def _changed(self, subject: str, words: str) -> None:
        """Remember a state, unless it is the one that was seen last."""
        self.watched.add(subject)
        if self.seen.get(subject, [""])[-1] != words:
            self.see(subject, words)

    def watch(self, topic: str, partition: int = 0) -> None:
        """See the partition's state now, and whenever it has changed while the script waits."""
        self._looks.append(partial(self._look_at, topic, partition))
        self._looks[-1]()

    def watch_brokers(self) -> None:
        """See which brokers are fenced or unknown now, and whenever that has changed."""
        self._looks.append(self._look_at_brokers)
        self._looks[-1]()

    def watch_port(self, broker: int) -> None:
        """See whether a broker's port accepts connections now, and whenever that has changed."""

        def look() -> None:
            self._changed(f"port of {broker}", "refuses" if self.lab.refuses(broker) else "accepts")

        self._looks.append(look)
        look()

    def until(self, condition: Callable[[], T], what: str, limit_s: float = LIMIT_S) -> T:
        """Let time pass, and look at what is watched, until the condition is true. Return what it returned.

        A broker that does not answer, or does not know a partition yet, makes it false.
        """
        end_ms = self.lab.now_ms() + limit_s * 1000
        while True:
            self._look()
            found: T | None = None
            with suppress(OSError, LookupError):
                found = condition()
            if found:
                self._look()
                return found
            if self.lab.now_ms() > end_ms:
                raise Stuck(f"not within {limit_s:g} s: {what}; seen so far: {self.seen}")
            self.lab.let_pass(POLL_S)

    def hold(self, seconds: float) -> None:
        """Let time pass, and look at what is watched."""
        end_ms = self.lab.now_ms() + seconds * 1000
        self.until(lambda: self.lab.now_ms() >= end_ms, "time passes", seconds + LIMIT_S)

    # --- faults

    def crash(self, *nodes: int) -> None:
        self._down.update(dict.fromkeys(nodes))
        self.lab.crash(*nodes)

    def stop(self, node: int) -> None:
        self._down[node] = None
        self.lab.stop(node)

    def hang(self, node: int) -> None:
        self._down[node] = None
        self.lab.hang(node)

    def start(self, *nodes: int) -> None:
        """Start or resume nodes. The brokers among them are asked again once they answer."""
        self.lab.start(*nodes)

    def up(self, *nodes: int) -> None:
        """Wait until these brokers, which were started, answer and are unfenced."""
        for node in nodes:
            self._down.pop(node, None)

        def all_there() -> bool:
            return all(not set(nodes) & self.fenced(of=node) for node in nodes)

        self.until(all_there, f"{nodes} are there again")

    # --- asking

    def at(self, broker: int, timeout_s: float = ANSWER_S) -> Callable[[Any, float], Any]:
        """Return what sends a broker a request, for the functions in `tests.serve.questions`."""
        return lambda request, _: ask(self.lab, broker, request, timeout_s)

    @property
    def witness(self) -> int:
        """A broker that no fault has hit."""
        return next(broker for broker in reversed(range(BROKERS)) if broker not in self._down)

    def fenced(self, of: int | None = None) -> set[int]:
        """Return the brokers that are fenced or missing, as a broker knows it."""
        request = DescribeClusterRequest(version=2, include_fenced_brokers=True)
        answer = ask(self.lab, self.witness if of is None else of, request)
        return set(range(BROKERS)) - {b.broker_id for b in answer.brokers if not b.is_fenced}

    def quorum(self) -> tuple[int, int]:
        """Return the active controller and its epoch."""
        topic = DescribeQuorumRequest.TopicData(
            version=1,
            topic_name="__cluster_metadata",
            partitions=[DescribeQuorumRequest.TopicData.PartitionData(version=1, partition_index=0)],
        )
        answer = ask(self.lab, self.witness, DescribeQuorumRequest(version=1, topics=[topic]), 2 * LIMIT_S)
        found = answer.topics[0].partitions[0]
        return found.leader_id, found.leader_epoch

    def partition(self, topic: str, partition: int = 0, of: int | None = None) -> Any:
        """Return a partition as a broker describes it (DescribeTopicPartitions), or None."""
        broker = self.witness if of is None else of
        (found,) = q.topic_partitions(self.at(broker), [topic]).topics
        return next((p for p in found.partitions if p.partition_index == partition), None)

    def leader(self, topic: str, partition: int = 0) -> int:
        """Return the leader, or −1. Raises LookupError if the partition is unknown."""
        return int(self._known(topic, partition).leader_id)

    def isr(self, topic: str, partition: int = 0) -> set[int]:
        """Return the in-sync replicas. Raises LookupError if the partition is unknown."""
        return set(self._known(topic, partition).isr_nodes)

    def _known(self, topic: str, partition: int) -> Any:
        found = self.partition(topic, partition)
        if found is None:
            raise LookupError(f"{topic}-{partition} is unknown")
        return found

    def until_isr(self, topic: str, *isr: int, partition: int = 0) -> None:
        """Wait until exactly these replicas are in sync."""
        self.until(lambda: self.isr(topic, partition) == set(isr), f"ISR {isr}")

    def until_leader(self, topic: str, leader: int, partition: int = 0) -> None:
        """Wait until this broker leads, and knows it itself."""
        self.until(lambda: self.leader(topic, partition) == leader, f"leader {leader}")
        if leader >= 0:
            self.until(
                lambda: q.list_offset(self.at(leader), topic, EARLIEST, partition=partition)[0] == 0,
                f"{leader} leads",
            )

    def prefer(self, topic: str, partition: int = 0) -> None:
        """Elect the preferred leader, and see the error number."""
        self.see("election of the preferred", q.elect_leaders(self.at(self.witness), 0, topic, partition))

    # --- topics and records

    @property
    def group(self) -> str:
        """The name of the script's group."""
        return self._prefix

    def topic(self, name: str, assignment: Sequence[Sequence[int]], **configs: str) -> str:
        """Create a topic, wait until its replicas know it and are in sync, and return its full name."""
        full = f"{self._prefix}-{name}"
        self.create(full, assignment, {key.replace("_", "."): value for key, value in configs.items()})
        return full

    def create(
        self, topic: str, assignment: Sequence[Sequence[int]], configs: Mapping[str, str] | None = None
    ) -> None:
        """Create a topic with this full name."""
        self._topics[topic] = None
        placed = list(enumerate(assignment))
        error = q.create_topic(
            self.at(self.witness), topic, -1, -1, placed, list((configs or {}).items()), validate_only=False
        )
        assert error == 0, error
        for number, replicas in placed:
            alive = [replica for replica in replicas if replica not in self._down]
            for replica in (*alive, self.witness):
                self.until(partial(self.partition, topic, number, replica), f"{replica} knows {topic}")
            if len(alive) == len(replicas):
                self.until_leader(topic, replicas[0], number)

    def delete(self, topic: str) -> int:
        """Delete a topic, and return the error number."""
        named = DeleteTopicsRequest.DeleteTopicState(version=6, name=topic, topic_id=None)
        request = DeleteTopicsRequest(version=6, topics=[named], timeout_ms=PRODUCE_TIMEOUT_MS)
        return int(ask(self.lab, self.witness, request).responses[0].error_code)

    def send(
        self,
        broker: int,
        topic: str,
        values: Iterable[str],
        acks: int = ALL,
        partition: int = 0,
        batch: bytes | None = None,
    ) -> Answer:
        """Send a batch, without waiting for the answer. Raises OSError if the port refuses."""
        if batch is None:
            batch = encode_batch([(None, value.encode(), self.lab.now_ms()) for value in values])
        per_topic = ProduceRequest.TopicProduceData
        data = per_topic.PartitionProduceData(version=PRODUCE_VERSION, index=partition, records=batch)
        request = ProduceRequest(
            version=PRODUCE_VERSION,
            transactional_id=None,
            acks=acks,
            timeout_ms=PRODUCE_TIMEOUT_MS,
            topic_data=[per_topic(version=PRODUCE_VERSION, name=topic, partition_data=[data])],
        )
        return self.lab.send(broker, request)

    def produce(
        self, broker: int, topic: str, values: Iterable[str], acks: int = ALL, partition: int = 0
    ) -> int:
        """Produce a batch, and return the error number."""
        answer = self.send(broker, topic, values, acks, partition)
        self.until(answer.arrived, "the batch is answered")
        return produced(answer)

    def ends(self, broker: int, topic: str, partition: int = 0) -> str:
        """Return words for the first offset, the high watermark and the log's end that a leader knows."""
        start = q.list_offset(self.at(broker), topic, EARLIEST, partition=partition)
        watermark = q.fetch(self.at(broker), topic, start[1], partition=partition)[1]
        return f"from {start[1]}, watermark {watermark}, end {self.end(broker, topic, partition)}"

    def end(self, broker: int, topic: str, partition: int = 0) -> int:
        """Return the end of a replica's own log."""
        return log_end(self.at(broker), topic, partition)

    def values(self, broker: int, topic: str, partition: int = 0) -> list[str]:
        """Return the values that a consumer reads from a broker, from the first offset on."""
        start = q.list_offset(self.at(self.leader(topic, partition)), topic, EARLIEST, partition=partition)[1]
        _, _, data = q.fetch(self.at(broker), topic, start, partition=partition)
        return [record.value.decode() for batch in MemoryRecords(data) for record in batch]

    def clean_up(self) -> None:
        """Delete the script's topics, so that the next script's faults do not touch them."""
        for topic in self._topics:
            self.delete(topic)

    # --- looking

    def _look(self) -> None:
        for look in self._looks:
            look()

    def _look_at(self, topic: str, partition: int) -> None:
        subject = f"{topic.removeprefix(self._prefix + '-')}-{partition}"
        found = self.partition(topic, partition)
        if found is None:
            self._changed(subject, "unknown")
            return
        self._changed(
            subject,
            f"leader {found.leader_id}, epoch {found.leader_epoch}, isr {brokers(found.isr_nodes)}, "
            f"elr {brokers(found.eligible_leader_replicas)}, last known {brokers(found.last_known_elr)}",
        )

    def _look_at_brokers(self) -> None:
        self._changed("fenced", brokers(self.fenced()))


Script = Callable[[Play], None]


def log_end(at: q.At, topic: str, partition: int = 0) -> int:
    """Return the end of the log of the replica that is asked, which need not lead."""
    return q.list_offset(at, topic, LATEST, partition=partition, replica=q.DEBUGGING)[1]


def produced(answer: Answer) -> int:
    """Return the error number of an answer to Produce."""
    return int(answer.message().responses[0].partition_responses[0].error_code)


def brokers(ids: Iterable[int] | None) -> str:
    """Return words for a set of brokers."""
    return " ".join(map(str, sorted(ids or ()))) or "–"
