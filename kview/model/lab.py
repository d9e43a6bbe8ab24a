"""What we do to a simulated cluster of our own: commands, their outcome, the faults in force, and what is
set in it and can be adjusted."""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from itertools import chain
from typing import Protocol

from msgspec import Struct

from kview.errors import ErrorFacts
from kview.model.units import UNKNOWN_ID


class CommandKind(StrEnum):
    """What can be done, named as people type it. START and UNDO end faults."""

    CRASH = "crash"
    STOP = "stop"
    HANG = "hang"
    SLOW = "slow"
    START = "start"
    LOSE_RACK = "lose-rack"
    CRASH_CONTROLLER = "crash-controller"
    CUT = "cut"
    """No packet arrives between two nodes. Clients still reach both."""
    CUT_ONE_WAY = "cut-one-way"
    """The packets of a node to the other do not arrive, the others do."""
    ISOLATE = "isolate"
    """No packet arrives between a node and any other. Clients still reach it."""
    JOIN = "join"
    """Ends the cuts between two nodes."""
    LOSE_DISK = "lose-disk"
    """The last log directory of a broker that works fails, and what it has is gone."""
    FILL_DISK = "fill-disk"
    """Nothing can be appended to the last log directory of a broker that works, which fails within 5 s."""
    SLOW_DISK = "slow-disk"
    """Appends to a broker's disks, and fetches over the network, take `amount` milliseconds longer."""
    REPAIR_DISK = "repair-disk"
    """A broker's disks are replaced or have room again, and it starts again if one had failed."""
    JOIN_ALL = "join-all"
    """Ends all cuts."""
    FENCE_NOW = "fence-now"
    """The controller ends a broker's session at once. A broker that lives comes back with a heartbeat."""
    ADVANCE = "advance"
    """`amount` milliseconds pass at once. Members that are connected keep their sessions."""
    ADVANCE_ALL = "advance-all"
    """The same, and sessions end, too."""
    PAUSE_TIME = "pause-time"
    """The cluster's clock stands. Requests are served, and nothing else happens."""
    RESUME_TIME = "resume-time"
    FAIL = "fail"
    """Requests of the API `name` get the error `key`."""
    DELAY = "delay"
    """Requests of the API `name` are handled `amount` milliseconds later."""
    DROP = "drop"
    """Requests of the API `name` lose their connection `before` or `after` they took effect."""
    FILM = "film"
    """From now on, what happens is kept in memory, for `record`."""
    RECORD = "record"
    """What was filmed becomes a recording in the folder `name`."""
    UNDO = "undo"
    RATE = "rate"
    """A producer creates `amount` records per second from now on."""
    PAUSE = "pause"
    """The members of a group go on sending heartbeats, but read nothing."""
    RESUME = "resume"
    PAUSE_PRODUCER = "pause-producer"
    """A producer creates no records until it is resumed, or gets another rate."""
    RESUME_PRODUCER = "resume-producer"
    ADD_MEMBER = "add-member"
    REMOVE_MEMBER = "remove-member"
    """The youngest member commits and leaves its group."""
    KILL_MEMBER = "kill-member"
    """The youngest member ends without a word: its group waits until its session ends."""
    SET = "set"
    """A topic's setting `key` has the value `value`."""
    UNSET = "unset"
    """A topic has no value of its own for the setting `key` any more."""
    BANDWIDTH = "bandwidth"
    """A broker's network carries `amount` bytes per second in each direction."""
    ELECT = "elect"
    """Partitions of a topic that have no leader get one, even if it lacks committed records."""
    TAKE_OVER = "take-over"
    """A second instance of a producer takes its transactional id over while the first still writes."""
    HANG_TRANSACTION = "hang-transaction"
    """A partition gets an open transaction that no coordinator knows of."""
    ABORT_TRANSACTION = "abort-transaction"
    """The hanging transactions of a partition are aborted by their markers, WriteTxnMarkers."""


class Argument(StrEnum):
    """A word that a command needs besides its name."""

    NODE = "NODE"
    OTHER = "OTHER"
    BROKER = "BROKER"
    RACK = "RACK"
    PRODUCER = "PRODUCER"
    GROUP = "GROUP"
    TOPIC = "TOPIC"
    PARTITION = "TOPIC-NUMBER"
    LATENCY = "LATENCY"
    TIME = "TIME"
    API = "API"
    ERROR = "ERROR"
    MOMENT = "before|after"
    WHERE = "WHERE"
    FOLDER = "FOLDER"
    RATE = "RATE"
    BANDWIDTH = "BANDWIDTH"
    KEY = "KEY"
    SETTING = "KEY=VALUE"


ARGUMENTS: Mapping[CommandKind, tuple[Argument, ...]] = {
    CommandKind.CRASH: (Argument.NODE,),
    CommandKind.STOP: (Argument.NODE,),
    CommandKind.HANG: (Argument.NODE,),
    CommandKind.SLOW: (Argument.NODE, Argument.LATENCY),
    CommandKind.START: (Argument.NODE,),
    CommandKind.LOSE_RACK: (Argument.RACK,),
    CommandKind.CRASH_CONTROLLER: (),
    CommandKind.CUT: (Argument.NODE, Argument.OTHER),
    CommandKind.CUT_ONE_WAY: (Argument.NODE, Argument.OTHER),
    CommandKind.ISOLATE: (Argument.NODE,),
    CommandKind.JOIN: (Argument.NODE, Argument.OTHER),
    CommandKind.JOIN_ALL: (),
    CommandKind.LOSE_DISK: (Argument.BROKER,),
    CommandKind.FILL_DISK: (Argument.BROKER,),
    CommandKind.SLOW_DISK: (Argument.BROKER, Argument.LATENCY),
    CommandKind.REPAIR_DISK: (Argument.BROKER,),
    CommandKind.FENCE_NOW: (Argument.BROKER,),
    CommandKind.ADVANCE: (Argument.TIME,),
    CommandKind.ADVANCE_ALL: (Argument.TIME,),
    CommandKind.PAUSE_TIME: (),
    CommandKind.RESUME_TIME: (),
    CommandKind.FAIL: (Argument.API, Argument.ERROR, Argument.WHERE),
    CommandKind.DELAY: (Argument.API, Argument.TIME, Argument.WHERE),
    CommandKind.DROP: (Argument.API, Argument.MOMENT, Argument.WHERE),
    CommandKind.FILM: (),
    CommandKind.RECORD: (Argument.FOLDER,),
    CommandKind.UNDO: (),
    CommandKind.RATE: (Argument.PRODUCER, Argument.RATE),
    CommandKind.PAUSE: (Argument.GROUP,),
    CommandKind.RESUME: (Argument.GROUP,),
    CommandKind.PAUSE_PRODUCER: (Argument.PRODUCER,),
    CommandKind.RESUME_PRODUCER: (Argument.PRODUCER,),
    CommandKind.ADD_MEMBER: (Argument.GROUP,),
    CommandKind.REMOVE_MEMBER: (Argument.GROUP,),
    CommandKind.KILL_MEMBER: (Argument.GROUP,),
    CommandKind.SET: (Argument.TOPIC, Argument.SETTING),
    CommandKind.UNSET: (Argument.TOPIC, Argument.KEY),
    CommandKind.BANDWIDTH: (Argument.BROKER, Argument.BANDWIDTH),
    CommandKind.ELECT: (Argument.TOPIC,),
    CommandKind.TAKE_OVER: (Argument.PRODUCER,),
    CommandKind.HANG_TRANSACTION: (Argument.PARTITION,),
    CommandKind.ABORT_TRANSACTION: (Argument.PARTITION,),
}
"""The words of each command, in the order in which they are typed."""


OWN_CLIENT_ID = "kview-testing"
"""The client id with which kview asks a cluster that a test uses. No rule is about it, and no log has it."""


class Where(Struct, frozen=True):
    """Which requests of an API: at a broker, about a topic or one of its partitions, the next so many, a
    share of them. −1 and "" stand for any."""

    broker: int = -1
    topic: str = ""
    partition: int = -1
    times: int = -1
    percent: float = 100.0


class Command(Struct, frozen=True):
    """Something to be done to a node, or to the rack, producer, group, topic or partition `name`.

    `other` is the second node, for the network between two. `amount` is in milliseconds for SLOW, SLOW_DISK
    and ADVANCE, records per second for RATE, bytes per second for BANDWIDTH.
    """

    kind: CommandKind
    node: int = UNKNOWN_ID
    name: str = ""
    amount: float = 0.0
    key: str = ""
    value: str = ""
    where: Where = Where()
    other: int = UNKNOWN_ID


class NodeRole(StrEnum):
    """The role of a node."""

    BROKER = "broker"
    CONTROLLER = "controller"


class FaultState(StrEnum):
    """The fault that a node has."""

    CRASHED = "crashed"
    STOPPING = "stopping"
    STOPPED = "stopped"
    HUNG = "hung"
    SLOW = "slow"
    CUT = "cut"
    CUT_ONE_WAY = "cut-one-way"
    ISOLATED = "isolated"
    DISK_LOST = "disk lost"
    DISK_FULL = "disk full"
    DISK_SLOW = "disk slow"


CUTS = frozenset({FaultState.CUT, FaultState.CUT_ONE_WAY, FaultState.ISOLATED})
"""The states of nodes whose packets to others are lost, while clients reach them."""
DISKS = frozenset({FaultState.DISK_LOST, FaultState.DISK_FULL, FaultState.DISK_SLOW})
"""Those of brokers with bad disks. Where a broker cannot go on without its disk, it has crashed, too."""
_ANSWERING = CUTS | DISKS | {FaultState.SLOW}


class ActiveFault(Struct, frozen=True):
    """A fault in force. A node that is hung and slow has two faults. `slow_ms` is for SLOW and DISK_SLOW.

    A cut is between `node` and the node `other`. The cuts of an isolated node are listed as one fault.
    """

    node: int
    state: FaultState
    slow_ms: int = 0
    role: NodeRole = NodeRole.BROKER
    other: int = UNKNOWN_ID

    @property
    def nodes(self) -> tuple[int, ...]:
        """The nodes that the fault is about."""
        return (self.node,) if self.other == UNKNOWN_ID else (self.node, self.other)

    @property
    def answers(self) -> bool:
        """Whether a node with only this fault answers its clients."""
        return self.state in _ANSWERING


class Done(Struct, frozen=True):
    """A command that was carried out, on `nodes`, which all have the role `role`, if it is about nodes.

    For UNDO, these are the nodes that had a fault, and `undone_changes` other commands were undone. `ended`
    has the faults that START ended. Without `has_quorum`, too few controllers are left to decide anything.
    With `ends_broker`, a broker cannot go on without the disk that it has lost.
    """

    command: Command
    nodes: tuple[int, ...] = ()
    role: NodeRole = NodeRole.BROKER
    ended: tuple[FaultState, ...] = ()
    undone_changes: int = 0
    has_quorum: bool = True
    ends_broker: bool = False

    @property
    def kind(self) -> CommandKind:
        """The command's kind."""
        return self.command.kind


class Reply(Struct, frozen=True, tag="reply"):
    """The outcome of a command, which was either done or refused.

    `undone_by` undoes what was done or, after a refusal, removes the obstacle. It is None if no command does,
    or if nothing has changed. `active` has the faults in force afterwards.
    """

    done: Done | None = None
    refused: ErrorFacts | None = None
    undone_by: Command | None = None
    active: tuple[ActiveFault, ...] = ()


class Status(Struct, frozen=True, tag="status"):
    """The number of nodes, how far the cluster's clock is behind the wall clock, the faults in force, and
    whether it has none and has recovered from those it had: every broker serves, and every ISR is full.
    `stands` says that time is paused."""

    brokers: int
    controllers: int
    behind_ms: int
    active: tuple[ActiveFault, ...]
    healthy: bool
    stands: bool = False


class Outcome(Struct, frozen=True):
    """What a fault on a broker led to, once the broker leads nothing any more.

    `moved` partitions got another leader and `without_leader` got none, `after_ms` milliseconds after the
    fault. `moved_to_silent` partitions got a leader that does not answer either: one of `silent_leaders`.
    `records_lost` is a lower bound of what elections lost in that time.
    """

    kind: CommandKind
    node: int
    moved: int = 0
    without_leader: int = 0
    records_lost: int = 0
    after_ms: int = 0
    moved_to_silent: int = 0
    silent_leaders: tuple[int, ...] = ()


class ProducerSetting(Struct, frozen=True):
    """A simulated producer. `rate` and `initial_rate` are in records per second, also while it is paused.

    `acks` is −1 for all. With `keys` 0 its records have null keys, otherwise that many, Zipf-distributed by
    `skew`.
    """

    name: str
    topic: str
    rate: float
    initial_rate: float
    paused: bool
    record_bytes: int
    acks: int
    keys: int
    skew: float


class GroupSetting(Struct, frozen=True):
    """A simulated consumer group. `rate` is what one member can process per second, 0 for no limit."""

    name: str
    topics: tuple[str, ...]
    members: int
    initial_members: int
    paused: bool
    rate: float
    commit_interval_ms: int


class LinkSetting(Struct, frozen=True):
    """A broker's network: bytes per second in each direction, and the latency to any other node."""

    broker: int
    bytes_per_second: int
    initial_bytes_per_second: int
    latency_us: int


class TopicSetting(Struct, frozen=True):
    """A topic's min.insync.replicas in force, and how many replicas a partition has."""

    name: str
    min_isr: int
    initial_min_isr: int
    replicas: int


Setting = ProducerSetting | GroupSetting | LinkSetting | TopicSetting


class LabSettings(Struct, frozen=True, tag="settings"):
    """Everything that can be adjusted, in the order of the cluster's description."""

    producers: tuple[ProducerSetting, ...] = ()
    groups: tuple[GroupSetting, ...] = ()
    links: tuple[LinkSetting, ...] = ()
    topics: tuple[TopicSetting, ...] = ()

    def __iter__(self) -> Iterator[Setting]:
        return chain(self.producers, self.groups, self.topics, self.links)


class Lab(Protocol):
    """Carries out commands on a simulated cluster that kview started. No method raises."""

    async def apply(self, command: Command) -> Reply:
        """Carry out `command`. Errors are part of the reply."""
        ...

    async def active(self) -> tuple[ActiveFault, ...] | None:
        """Return the faults in force, or None if the cluster does not say."""
        ...

    async def settings_now(self) -> LabSettings | None:
        """Return what is set now, or None if the cluster does not say."""
        ...


class LoggedBatch(Struct, frozen=True):
    """A batch in a Produce request. Without idempotence the producer id, epoch and sequence are −1."""

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    sequence: int
    records: int
    crc: int


class LoggedRequest(Struct, frozen=True):
    """A request that a client has sent: when the cluster had it, what it was about, and which rule it met
    (`fail`, `delay`, `drop`, or "")."""

    number: int
    at_ms: int
    api: str
    version: int
    broker: int
    client_id: str
    partitions: tuple[str, ...] = ()
    """As `TOPIC-NUMBER`, the first hundred."""
    group: str = ""
    batches: tuple[LoggedBatch, ...] = ()
    rule: str = ""
