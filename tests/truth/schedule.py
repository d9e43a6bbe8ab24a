"""What is done to a cluster while kview watches it: steps with their times, as data."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

INVOICE, PAYMENT, AUDIT = "invoice", "payment", "audit"
"""Topics: one that is always read as fast as it is written, one that is read slowly from some time on, one
whose reader goes."""

BILLING, CRAWLER, HALTED = "billing", "crawler", "halted"
"""Their groups."""

LEDGER, ARCHIVE = "ledger", "archive"
"""A topic to which transactions write, and one that is moved from broker to broker."""

SHIPPING, JOB, TASKS, ENRICHER, WORKERS = "shipping", "job", "tasks", "enricher", "workers"
"""Groups of the other kinds that read `invoice`: consumer, simple, share, streams and connect."""

BALANCE = "balance"
"""The group that reads `ledger` with read_committed."""

QUORUM_MAJORITY = 3


class Do(StrEnum):
    """What a step does."""

    KILL = "kill -9"
    START = "start"
    HANG = "hang"
    GO_ON = "go on"
    DUTY = "duty cycle"
    """Stopped and running by turns, for the rest of the step."""
    CUT = "cut off from kview"
    DELAY = "slow link to kview"
    MEND = "link mended"
    SLOW_DOWN = "reads slowly"
    LEAVE = "stops reading"
    REWIND = "offsets reset backward"
    SKIP = "offsets reset forward"
    BEYOND = "offsets set beyond the end"
    DELETE = "records deleted"
    RECREATE = "topic re-created"
    BEGIN = "transaction begun"
    COMMIT = "transaction committed"
    MOVE = "moved under a throttle"
    UNTHROTTLE = "throttle removed"
    LOSE_DIR = "log directory lost"
    REPAIR_DIR = "log directory repaired"
    """While the broker is down, which uses it again when it is started."""


@dataclass(frozen=True, slots=True)
class Step:
    """Something that is done `at_s` seconds after kview's first view.

    `node` is a broker's or controller's id (for MOVE the broker that is to have the second replica), `group`
    the group whose offsets or records are meant, or that reads what a transaction writes. A step with
    `at_coordinator` is done to the broker that leads `__consumer_offsets` at that moment; a later one with
    the same mark and GO_ON undoes it. `stopped_s` and `running_s` are the turns of a duty cycle of `for_s`.
    """

    at_s: float
    do: Do
    node: int = -1
    group: str = ""
    at_coordinator: bool = False
    stopped_s: float = 0.0
    running_s: float = 0.0
    for_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Schedule:
    """A cluster and the steps of its run, in order of time."""

    name: str
    steps: tuple[Step, ...]
    seconds: int
    brokers: int = 3
    controllers: int = 1
    linked: int = 0
    """The broker that kview reaches through a link that can be cut. It is never killed: then the link, not
    the broker, would be what kview meets."""


SHORT = Schedule(
    "short",
    (
        Step(4, Do.KILL, 2),
        Step(16, Do.START, 2),
        Step(27, Do.HANG, at_coordinator=True),
        Step(41, Do.GO_ON, at_coordinator=True),
        Step(47, Do.BEGIN, group=BALANCE),
        Step(48, Do.MOVE, 2),
        Step(49, Do.DUTY, 1, stopped_s=0.3, running_s=0.2, for_s=15),
        Step(66, Do.REWIND, group=BILLING),
        Step(68, Do.SLOW_DOWN, group=CRAWLER),
        Step(70, Do.CUT, 0),
        Step(82, Do.MEND, 0),
        Step(84, Do.UNTHROTTLE),
        Step(85, Do.LEAVE, group=HALTED),
        Step(86, Do.LEAVE, group=SHIPPING),
        Step(87, Do.DELETE, group=CRAWLER),
        Step(102, Do.BEYOND, group=HALTED),
        Step(104, Do.LOSE_DIR, 1),
        Step(114, Do.COMMIT, group=BALANCE),
    ),
    seconds=121,
)


def kill_and_return(broker: int, times: int, at_s: float, every_s: float = 50.0) -> Iterator[Step]:
    """Yield crashes of a broker, each with its return 20 s later."""
    for number in range(times):
        yield Step(at_s + number * every_s, Do.KILL, broker)
        yield Step(at_s + number * every_s + 20, Do.START, broker)


def coordinator_hung(times: int, at_s: float, for_s: float = 80.0, every_s: float = 120.0) -> Iterator[Step]:
    """Yield hangs of the groups' coordinator."""
    for number in range(times):
        yield Step(at_s + number * every_s, Do.HANG, at_coordinator=True)
        yield Step(at_s + number * every_s + for_s, Do.GO_ON, at_coordinator=True)


def lost_together(brokers: Sequence[int], at_s: float, for_s: float = 40.0) -> Iterator[Step]:
    """Yield the crash of some brokers at once, and their return."""
    for broker in brokers:
        yield Step(at_s, Do.KILL, broker)
    for broker in brokers:
        yield Step(at_s + for_s, Do.START, broker)


def open_for(seconds: float, at_s: float) -> Iterator[Step]:
    """Yield a transaction that is held and ended."""
    yield Step(at_s, Do.BEGIN, group=BALANCE)
    yield Step(at_s + seconds, Do.COMMIT, group=BALANCE)


def moved_to(broker: int, at_s: float) -> Iterator[Step]:
    """Yield a throttled move, and the end of its throttle when the move is over."""
    yield Step(at_s, Do.MOVE, broker)
    yield Step(at_s + 70, Do.UNTHROTTLE)


def directory_lost(broker: int, at_s: float) -> Iterator[Step]:
    """Yield the loss of a broker's log directory, and its repair a minute later."""
    yield Step(at_s, Do.LOSE_DIR, broker)
    yield Step(at_s + 60, Do.KILL, broker)
    yield Step(at_s + 65, Do.REPAIR_DIR, broker)
    yield Step(at_s + 75, Do.START, broker)


LONG = (
    Schedule(
        "kinds of groups, transactions, moves and disks",
        (
            *open_for(20, at_s=20),
            *moved_to(2, at_s=50),
            *open_for(90, at_s=130),
            *coordinator_hung(1, at_s=240, for_s=40),
            *moved_to(1, at_s=310),
            *open_for(110, at_s=390),
            *directory_lost(1, at_s=520),
            Step(640, Do.LEAVE, group=SHIPPING),
            Step(650, Do.LEAVE, group=JOB),
            *kill_and_return(2, 1, at_s=700),
            *moved_to(2, at_s=760),
            *open_for(130, at_s=840),
            *coordinator_hung(1, at_s=1000, for_s=30),
            *directory_lost(1, at_s=1060),
        ),
        seconds=1170,
    ),
    Schedule(
        "faults of brokers",
        (
            *kill_and_return(2, 5, at_s=30),
            Step(300, Do.HANG, 1),
            Step(340, Do.GO_ON, 1),
            *coordinator_hung(5, at_s=380),
            Step(1000, Do.DUTY, 1, stopped_s=0.3, running_s=0.2, for_s=60),
            Step(1090, Do.DUTY, 1, stopped_s=1.2, running_s=0.3, for_s=60),
            Step(1189, Do.HANG, 0),
            *lost_together((1, 2), at_s=1190),
            Step(1235, Do.GO_ON, 0),
        ),
        seconds=1310,
    ),
    Schedule(
        "faults of links, offsets and records",
        (
            Step(30, Do.CUT, 0),
            Step(90, Do.MEND, 0),
            Step(120, Do.DELAY, 0),
            Step(180, Do.MEND, 0),
            Step(210, Do.HANG, 0),  # the bootstrap server
            Step(260, Do.GO_ON, 0),
            Step(270, Do.SLOW_DOWN, group=CRAWLER),
            Step(280, Do.LEAVE, group=HALTED),
            Step(300, Do.REWIND, group=BILLING),
            Step(360, Do.SKIP, group=CRAWLER),
            Step(480, Do.DELETE, group=CRAWLER),
            Step(600, Do.BEYOND, group=HALTED),
            Step(680, Do.RECREATE, group=HALTED),
        ),
        seconds=750,
    ),
    Schedule(
        "the only controller",
        (Step(40, Do.KILL, 101), Step(100, Do.START, 101), Step(160, Do.HANG, 101), Step(200, Do.GO_ON, 101)),
        seconds=260,
    ),
    Schedule(
        "a majority of controllers",
        (
            Step(40, Do.KILL, 102),
            Step(80, Do.KILL, 103),
            Step(140, Do.START, 103),
            Step(180, Do.START, 102),
        ),
        seconds=240,
        controllers=QUORUM_MAJORITY,
    ),
)
"""Each on a cluster of its own, 62 minutes in all; with starting the clusters, about 65. The first is what 20
minutes play."""


def within(minutes: float) -> tuple[Schedule, ...]:
    """Return what can be played in `minutes`: the long schedules, in order, else the short one."""
    chosen: list[Schedule] = []
    for schedule in LONG:
        if sum(one.seconds for one in (*chosen, schedule)) <= minutes * 60:
            chosen.append(schedule)
    return tuple(chosen) or (SHORT,)
