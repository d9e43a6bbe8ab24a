"""A simple model of a cluster, whose brokers, partitions and groups change at constant rates."""

from collections.abc import Iterable, Sequence

from kview.model.failures import FailureKind
from kview.model.snapshot import Snapshot, TimePoints
from kview.model.states import GroupState
from kview.model.units import NO_BROKER, UNKNOWN
from tests.worlds.parts import SESSION_TIMEOUT_MS, Consumers, Log, Node, topic
from tests.worlds.seen import Seen
from tests.worlds.tables import START_MS

CAPABILITIES = frozenset({"quorum", "debugging_replica", "topic_ids", "elr", "fenced_brokers"})
LAST_FETCH_MS = 100
"""Age of each broker's last metadata fetch at the time of an observation, in ms."""
START_READ_MS, COMMIT_READ_MS, FOLLOWER_READ_MS, LEADER_READ_MS = 10, 20, 40, 60
"""Times after the beginning of an observation at which its readings are received, in ms."""
FOLLOWER_DELAY_MS = 10
ACKS_ALL_IN_FLIGHT_MS = 200
"""An acks=all producer stops once this much of its traffic waits for the watermark, in ms."""


class World:
    """Brokers, logs and groups. `tick` lets `interval_ms` pass and returns the next snapshot."""

    def __init__(self, nodes: Sequence[Node], logs: Sequence[Log], groups: Sequence[Consumers]) -> None:
        self.nodes = {node.id: node for node in nodes}
        self.logs = sorted(logs, key=lambda log: log.key)
        self._by_key = {log.key: log for log in self.logs}
        self.groups = sorted(groups, key=lambda group: group.name)
        self.interval_ms = 1000
        self.now_ms = START_MS - self.interval_ms
        self.next_ms = START_MS
        self.sequence = 0
        self.capabilities = CAPABILITIES
        self.controller = 101
        self.controller_epoch = 3
        self.time_points: TimePoints | None = None
        self._seen = Seen(self)

    # What happens to the world.

    def crash(self, broker: int, why: FailureKind = FailureKind.REFUSED) -> None:
        """End a broker's process. The cluster reacts when the broker's session ends."""
        node = self.nodes[broker]
        node.up, node.why = False, why

    def cut(self, broker: int, why: FailureKind = FailureKind.SILENT) -> None:
        """Only kview cannot reach the broker from now on."""
        node = self.nodes[broker]
        node.cut, node.why = True, why

    def back(self, broker: int) -> None:
        """Start a broker's process again. It is unfenced at the next tick, and in sync at the one after
        that."""
        node = self.nodes[broker]
        node.up, node.cut, node.why = True, False, FailureKind.NONE

    def add(self, logs: Iterable[Log]) -> None:
        """Add new partitions."""
        made = list(logs)
        self.logs = sorted([*self.logs, *made], key=lambda log: log.key)
        self._by_key.update({log.key: log for log in made})

    def log(self, topic: str, partition: int) -> Log:
        """Return the partition of that topic and number."""
        return self._by_key[topic, partition]

    def group(self, name: str) -> Consumers:
        """Return the group of that name."""
        return next(group for group in self.groups if group.name == name)

    def _leads(self, log: Log) -> bool:
        return log.leader != NO_BROKER and self.nodes[log.leader].up

    def _run_to(self, now_ms: int) -> None:
        seconds = (now_ms - self.now_ms) / 1000
        self.now_ms = now_ms
        up = frozenset(node.id for node in self.nodes.values() if node.up)
        following = frozenset(id for id in up if not self.nodes[id].fenced)
        for log in self.logs:
            if log.leader in up:
                self._write(log, log.rate * seconds, up, following)
        for group in self.groups:
            if group.reads:
                self._consume(group, seconds)

    @staticmethod
    def _write(log: Log, records: float, up: frozenset[int], following: frozenset[int]) -> None:
        """Append records to a log whose leader is up, and let the brokers that follow copy them.

        Most of a tick is spent here.
        """
        ends, leader = log.ends, log.leader
        end = ends[leader]
        enough = len(log.isr) >= min(log.min_isr, len(log.replicas))
        if log.acks_all and not (enough and up.issuperset(log.isr)):
            records = max(0.0, min(records, log.watermark + log.rate * ACKS_ALL_IN_FLIGHT_MS / 1000 - end))
            records = records if enough else 0.0
        end += records
        ends[leader] = end
        follows = end - log.rate * FOLLOWER_DELAY_MS / 1000
        for broker, had in ends.items():
            if had < follows and broker != leader and broker in following and broker not in log.stalled:
                ends[broker] = follows
        if enough:
            log.watermark = max(log.watermark, min([ends[broker] for broker in log.isr]))

    def _consume(self, group: Consumers, seconds: float) -> None:
        for key in group.committed:
            log = self.log(*key)
            if self._leads(log):
                at = group.read.get(key, float(group.committed[key]))
                limit = log.watermark if group.read_share == 1 else at + log.rate * group.read_share * seconds
                group.read[key] = max(at, min(limit, log.watermark))

    def _commit(self, group: Consumers) -> None:
        if self.next_ms % group.commit_every_ms == 0:
            group.committed.update({key: int(at) for key, at in group.read.items()})

    def _govern(self) -> None:
        """Act as the controller: fence and unfence brokers, elect leaders, and let replicas rejoin ISRs."""
        for node in self.nodes.values():
            silent = node.silent_ms != UNKNOWN and not node.up
            if silent and not node.fenced and self.next_ms - node.silent_ms >= SESSION_TIMEOUT_MS:
                self._fence(node.id)
            elif node.up and node.fenced:
                self._unfence(node.id)
            elif node.up:
                self._rejoin(node.id)

    def _fence(self, broker: int) -> None:
        self.nodes[broker].fenced = True
        for log in self.logs:
            if broker in log.isr:
                others = [id for id in log.isr if id != broker]
                log.isr = others or [broker]
                if log.leader == broker:
                    self._lead(log, next((id for id in log.replicas if id in others), NO_BROKER))

    def _unfence(self, broker: int) -> None:
        self.nodes[broker].fenced = False
        for log in self.logs:
            if log.leader == NO_BROKER and broker in log.isr:
                self._lead(log, broker)

    def _lead(self, log: Log, broker: int) -> None:
        log.leader, log.epoch = broker, log.epoch + 1
        if broker != NO_BROKER:
            for follower in log.replicas:
                if follower != broker and self.nodes[follower].up:
                    log.ends[follower] = min(log.ends[follower], log.ends[broker])

    def _rejoin(self, broker: int) -> None:
        for log in self.logs:
            out = broker in log.replicas and broker not in log.isr and broker not in log.stalled
            if out and self._leads(log):
                log.ends[broker] = log.ends[log.leader]
                log.isr = [id for id in log.replicas if id in (*log.isr, broker)]

    # What an observer sees of the world.

    def tick(self) -> Snapshot:
        """Let time pass until the next observation, and return its snapshot."""
        began = self.next_ms
        self._run_to(began)
        for node in self.nodes.values():
            if node.up or node.silent_ms == UNKNOWN:
                node.fetched_ms = began - LAST_FETCH_MS
            if node.answers:
                node.silent_ms, node.answered_ms = UNKNOWN, began
            elif node.silent_ms == UNKNOWN:
                node.silent_ms = began
        self._govern()
        for group in self.groups:
            if group.reads:
                self._commit(group)
        groups = self._seen.group_tables(began + COMMIT_READ_MS)
        answering = frozenset(node.id for node in self.nodes.values() if node.answers)
        self._run_to(began + FOLLOWER_READ_MS)
        for log in self.logs:
            for broker in log.replicas:
                if broker in answering and broker != log.leader:
                    log.seen[broker] = (int(log.ends[broker]), self.now_ms)
        self._run_to(began + LEADER_READ_MS)
        for log in self.logs:
            if log.leader in answering:
                end = int(log.ends[log.leader])
                log.seen["start"] = (log.start, began + START_READ_MS)
                log.seen["hw"] = (min(int(log.watermark), end), self.now_ms)
                log.seen["end"] = log.seen[log.leader] = (end, self.now_ms)
        snapshot = self._seen.snapshot(began, groups)
        self.sequence += 1
        self.next_ms += self.interval_ms
        return snapshot

    def skip(self, seconds: int) -> None:
        """Let time pass without an observation."""
        self.next_ms += seconds * 1000


def lean_world() -> World:
    """Return the default world with 4 of the 50 partitions of `__consumer_offsets`: the others take
    most of a tick, and tests of groups see nothing of them."""
    world = default_world()
    world.logs = [log for log in world.logs if not log.internal or log.partition < 4]
    return world


def default_world() -> World:
    """Return a world like the default simulated cluster, with 6 brokers in two racks, three topics and four
    groups.

    The racks are R1 = {0,1,2} and R2 = {3,4,5}. `invoice` is written with acks=1, `payment` with acks=all and
    min.insync.replicas 2. `billing` and `reporting` keep up, `fraud-check` has one member too many,
    `audit-export` stopped 130 s ago. Broker 4 leads invoice 3 and 9, payment 3 and audit-log 3, and
    coordinates `fraud-check`.
    """
    nodes = [Node(id, "R1" if id < 3 else "R2") for id in range(6)]
    invoice = topic("invoice", 10, 3, 440.0, size=1_200_000)
    payment = topic("payment", 6, 3, 400.0, size=410_000, acks_all=True, min_isr=2)
    audit = topic("audit-log", 4, 1, 250.0, size=300_000)
    offsets = topic("__consumer_offsets", 50, 3, 0.6, size=9_000, internal=True, acks_all=True)
    at_end = {log.key: int(log.watermark) for log in invoice + payment + audit}

    def of(*names: str) -> dict[tuple[str, int], int]:
        return {key: offset for key, offset in at_end.items() if key[0] in names}

    groups = [
        Consumers("billing", 1, 3, of("invoice")),
        Consumers("reporting", 2, 2, of("invoice", "payment"), commit_every_ms=5000),
        Consumers("fraud-check", 4, 5, of("audit-log")),
        Consumers(
            "audit-export",
            0,
            0,
            {key: offset - 130 * 250 for key, offset in of("audit-log").items()},
            state=GroupState.EMPTY,
        ),
    ]
    return World(nodes, invoice + payment + audit + offsets, groups)
