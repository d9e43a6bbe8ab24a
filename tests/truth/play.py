"""Plays a schedule on a real cluster with clients, while kview watches and the truth log is kept."""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from datetime import datetime

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from kview.model.address import Address
from kview.model.states import GroupType
from tests.real_kafka.cluster import RealKafka
from tests.real_kafka.log_dirs import TWO_DIRS, lose, repair
from tests.real_kafka.moves import move, throttle
from tests.real_kafka.settings import KAFKA_DEFAULT_TIMES
from tests.truth.actors import Transactions, members_of_other_kinds
from tests.truth.clients import QUIET, Reader, Writer, now_ms
from tests.truth.frames import Frame, watching
from tests.truth.link import Link
from tests.truth.log import NOTHING, Deed, Partition, TruthLog
from tests.truth.probes import MIN_ISR, Probes
from tests.truth.schedule import (
    ARCHIVE,
    AUDIT,
    BALANCE,
    BILLING,
    CRAWLER,
    HALTED,
    INVOICE,
    LEDGER,
    PAYMENT,
    SHIPPING,
    Do,
    Schedule,
    Step,
)
from tests.truth.server_logs import coordinators, fencings, joined
from tests.waiting import pause, wait_until

RATES: Mapping[str, float] = {INVOICE: 60.0, PAYMENT: 200.0, AUDIT: 10.0, LEDGER: 8.0}
PARTITIONS: Mapping[str, int] = {INVOICE: 3, PAYMENT: 2, AUDIT: 1, LEDGER: 1}
READERS = ((BILLING, INVOICE), (CRAWLER, PAYMENT), (HALTED, AUDIT), (BALANCE, LEDGER), (SHIPPING, INVOICE))
"""Group and topic."""
ARCHIVED, ARCHIVED_EACH, MOVED_PER_S = 24, 50_000, 50_000
"""Records, bytes of each, and bytes per second of a move: it takes half a minute at most."""
FULL_RATE, SLOW_RATE = 1_000.0, 40.0
"""The most records a second that a consumer takes."""
REWOUND, BEYOND = 400, 5_000
LINK_DELAY_S = 0.3
OVERRIDES = {
    **KAFKA_DEFAULT_TIMES,
    **TWO_DIRS,
    "replica.lag.time.max.ms": "10000",
    "group.share.session.timeout.ms": "45000",
    "offsets.topic.num.partitions": "1",
    "auto.create.topics.enable": "false",
}
"""Kafka's own session, so that its nine seconds are seen; a shorter lag time, so that a link or a hang shows
in the ISR within the schedule. A topic that is created again is not created by its clients in between."""


class Play:
    """One run. `log` and `frames` are complete when `run` has returned."""

    def __init__(self, kafka: RealKafka, schedule: Schedule, link: Link) -> None:
        self.log = TruthLog(tuple(kafka.broker_ids), tuple(kafka.controller_ids))
        self.frames: list[Frame] = []
        self._began = datetime.now()
        self._kafka = kafka
        self._schedule = schedule
        self._link = link
        self._unsteady: set[int] = set()
        self._coordinator = -1
        self._duties: list[threading.Thread] = []
        servers = kafka.bootstrap_servers
        self._admin = AdminClient({**QUIET, "bootstrap.servers": servers})
        self._readers = {
            group: Reader(
                servers,
                group,
                topic,
                PARTITIONS[topic],
                FULL_RATE,
                self.log,
                prefetch=group != CRAWLER,
                kind=GroupType.CONSUMER if group == SHIPPING else GroupType.CLASSIC,
            )
            for group, topic in READERS
        }
        self._members = members_of_other_kinds(kafka, PARTITIONS[INVOICE], self.log)
        self._transactions = Transactions(servers, self.log)
        self._writer = Writer(servers, RATES, PARTITIONS, self.log)
        addresses = {broker: kafka.address(broker) for broker in kafka.broker_ids}
        self._probes = Probes(addresses, self.log, self._answering)

    def run(self) -> None:
        """Set the scene, watch, do every step at its time, and end."""
        for topic, count in PARTITIONS.items():
            self._create(topic, count)
        self._fill_archive()
        with ExitStack() as stack:
            stack.callback(self._probes.close)
            self._probes.start()
            stack.callback(self._writer.close)
            self._writer.start()
            for reader in self._readers.values():
                stack.callback(reader.stop)
                reader.start()
            for member in self._members.values():
                stack.callback(member.stop)
                member.start()
            self._transactions.begin()  # so that somebody coordinates transactions
            self._transactions.commit()
            wait_until(self._all_committed, "every group has committed")
            with watching(self._servers()) as watched:
                self._act()
                stack.callback(self._bring_back)
                self.frames = list(watched.frames)
        self.log.fencing = fencings(self._lines(self._kafka.controller_ids), self._began)
        self.log.joined = joined(self._lines(self._kafka.controller_ids), self._began)
        self.log.coordinators = coordinators(self._lines(self._kafka.broker_ids), self._began)

    def _servers(self) -> list[Address]:
        """Where kview begins: the broker behind the link first."""
        first = [Address("127.0.0.1", port) for port in self._kafka.links_at.values()]
        others = [broker for broker in self._kafka.broker_ids if broker not in self._kafka.links_at]
        return [*first, *map(self._kafka.watched_address, others)]

    def _all_committed(self) -> bool:
        return all(
            (reader.group, one) in self.log.committed
            for reader in self._readers.values()
            for one in reader.partitions
        )

    def _create(self, topic: str, count: int) -> None:
        brokers = list(self._kafka.broker_ids)
        placed = [[brokers[(number + n) % len(brokers)] for n in range(3)] for number in range(count)]
        self._kafka.create_topic(topic, placed, {"min.insync.replicas": str(MIN_ISR)})

    def _fill_archive(self) -> None:
        self._kafka.create_topic(ARCHIVE, [[0, 1]], {"min.insync.replicas": "1"})
        producer = Producer({**QUIET, "bootstrap.servers": self._kafka.bootstrap_servers})
        for _ in range(ARCHIVED):
            producer.produce(ARCHIVE, b"x" * ARCHIVED_EACH, partition=0)
        producer.flush()

    def _answering(self) -> Address:
        """Return a broker that runs. Raises LookupError."""
        for broker in self._kafka.broker_ids:
            node = self._kafka.nodes[broker]
            if node.process is not None and not node.paused and broker not in self._unsteady:
                return self._kafka.address(broker)
        raise LookupError("no broker runs")

    def _lines(self, nodes: Iterable[int]) -> Iterator[str]:
        """Yield the lines of some nodes' logs."""
        for node in nodes:
            with self._kafka.nodes[node].log.open(errors="replace") as lines:
                yield from lines

    # -- the steps ------------------------------------------------------------------------------------------

    def _act(self) -> None:
        began_ms = now_ms()
        for step in self._schedule.steps:
            pause(step.at_s - (now_ms() - began_ms) / 1000)
            self._do(step)
        pause(self._schedule.seconds - (now_ms() - began_ms) / 1000)
        for duty in self._duties:
            duty.join()

    def _bring_back(self) -> None:
        """Let everything run, so that the clients can end."""
        self._link.mend()
        for node in self._kafka.nodes.values():
            if node.paused:
                self._kafka.resume(node.id)
            if node.process is None:
                self._kafka.restart(node.id)

    def _do(self, step: Step) -> None:
        if step.group:
            lost = self._do_to_group(step)
            self.log.deeds.append(Deed(now_ms(), step.do, group=step.group, count=lost))
            return
        node = self._at_coordinator(step) if step.at_coordinator else step.node
        if step.do is Do.DUTY:
            self._duty(node, step)
            return
        began_ms = now_ms()
        self._do_to_node(step.do, node)
        early = step.do in (Do.MOVE, Do.LOSE_DIR)  # what follows can be seen before they are done
        self.log.deeds.append(Deed(began_ms if early else now_ms(), step.do, node))

    def _do_to_node(self, do: Do, node: int) -> None:
        match do:
            case Do.KILL:
                self._kafka.kill(node)
            case Do.START:
                self._kafka.restart(node)
            case Do.HANG:
                self._kafka.pause(node)
            case Do.GO_ON:
                self._kafka.resume(node)
            case Do.CUT:
                self._link.cut()
            case Do.DELAY:
                self._link.slow(LINK_DELAY_S)
            case Do.MEND:
                self._link.mend()
            case Do.MOVE:
                self._probes.moves = True
                throttle(self._kafka, ARCHIVE, MOVED_PER_S)
                move(self._kafka, ARCHIVE, [0, node])
            case Do.UNTHROTTLE:
                throttle(self._kafka, ARCHIVE, 0)
            case Do.LOSE_DIR:
                lose(self._kafka.nodes[node])
            case Do.REPAIR_DIR:
                repair(self._kafka.nodes[node])
            case _:
                raise ValueError(f"{do} is nothing that is done to a node")

    def _do_to_group(self, step: Step) -> int:
        """Do it, and return how many records the group lost by it."""
        if step.do is Do.LEAVE and step.group in self._members:
            self._members[step.group].stop()
            return 0
        reader = self._readers[step.group]
        match step.do:
            case Do.SLOW_DOWN:
                reader.slow_down(SLOW_RATE)
            case Do.LEAVE:
                reader.stop()
            case Do.REWIND:
                self._reset(reader, lambda at, end: max(0, at - REWOUND))
            case Do.SKIP:
                self._reset(reader, lambda at, end: max(at, end - 10))
            case Do.BEYOND:
                self._reset(reader, lambda at, end: end + BEYOND)
            case Do.DELETE:
                return self._delete(reader)
            case Do.RECREATE:
                self._recreate(reader.topic)
            case Do.BEGIN:
                self._transactions.begin()
            case Do.COMMIT:
                self._transactions.commit()
            case _:
                raise ValueError(f"{step.do} is nothing that is done to a group")
        return 0

    def _at_coordinator(self, step: Step) -> int:
        if step.do is Do.HANG:
            self._coordinator = self.log.placed[-1].leaders["__consumer_offsets", 0]
        return self._coordinator

    def _duty(self, node: int, step: Step) -> None:
        stopped_ms, until_ms = round(step.stopped_s * 1000), now_ms() + round(step.for_s * 1000)
        self.log.deeds.append(Deed(now_ms(), Do.DUTY, node, until_ms=until_ms, stopped_ms=stopped_ms))
        self._unsteady.add(node)

        def turns() -> None:
            while now_ms() < until_ms:
                self._kafka.pause(node)
                pause(step.stopped_s)
                self._kafka.resume(node)
                pause(step.running_s)
            self._unsteady.discard(node)

        duty = threading.Thread(target=turns, name="duty")
        duty.start()
        self._duties.append(duty)

    # -- offsets and records --------------------------------------------------------------------------------

    def _end(self, partition: Partition) -> int:
        return self.log.ends[partition].values[-1]

    def _reset(self, reader: Reader, new: Callable[[int, int], int]) -> None:
        """Set a group's offsets; `new` takes the committed offset and the end. Its consumer leaves for it."""
        was_reading = reader.reads
        reader.stop()
        reader.set_offsets(lambda partition: new(reader.committed(partition), self._end(partition)))
        if was_reading:
            reader.start()

    def _delete(self, reader: Reader) -> int:
        """Delete half of what the group has not read yet, and return the number of those records."""
        starts = {
            one: (reader.committed(one) + self._end(one)) // 2
            for one in reader.partitions
        }  # fmt: skip
        asked = [TopicPartition(topic, number, start) for (topic, number), start in starts.items()]
        for future in self._admin.delete_records(asked).values():
            future.result(30)
        return sum(max(0, start - reader.committed(one)) for one, start in starts.items())

    def _recreate(self, topic: str) -> None:
        self._admin.delete_topics([topic])[topic].result(30)
        wait_until(lambda: not self._kafka.partitions(topic), "the topic is gone")
        for (_, (of_topic, _)), track in self.log.committed.items():
            if of_topic == topic:  # Kafka deletes the offsets with the topic
                track.add(now_ms(), NOTHING)
        self._create(topic, PARTITIONS[topic])


@contextmanager
def _linked(kafka: RealKafka, broker: int) -> Iterator[Link]:
    with Link(kafka.links_at[broker], kafka.watched_address(broker)) as link:
        yield link


def play(schedule: Schedule, start: Callable[..., RealKafka]) -> tuple[TruthLog, Sequence[Frame]]:
    """Play a schedule on a cluster of its own, and return the truth and what was shown."""
    kafka = start(
        brokers=schedule.brokers,
        controllers=schedule.controllers,
        overrides=OVERRIDES,
        links=(schedule.linked,),
    )
    with closing(kafka), _linked(kafka, schedule.linked) as link:
        run = Play(kafka, schedule, link)
        run.run()
    return run.log, run.frames
