"""A cluster for tests: its process, its faults, its topics, and waiting for what it does."""

import asyncio
import os
import re
import threading
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from functools import wraps
from itertools import count
from pathlib import Path
from typing import Any, Concatenate, NamedTuple, ParamSpec, Self, TypedDict, TypeVar, Unpack

from kview.config.messages import encode, messages
from kview.errors import KviewError, error_of
from kview.lab.child import SimulatedCluster
from kview.lab.commands import MAX_SLOW_MS, error_code, parse, where_of
from kview.lab.messages import MAX_REQUEST_BYTES, Answer, Ask, Request, Requests, answers
from kview.language.errors import sentence
from kview.model.address import Address
from kview.model.lab import Command, CommandKind, Done, LoggedRequest, Reply, Status, Where

PATIENCE_S = 30.0
"""How long is waited for what takes a moment, unless the test says otherwise."""

POLL_S = 0.01

ANSWERED_WITHIN_S, RECORDED_WITHIN_S = 30.0, 300.0
"""A command takes microseconds and a step of `advance` less than a second: a cluster that takes longer than
this is stuck. Writing the recording of a large cluster takes longer."""

ADVANCE_STEP_MS, MOST_ADVANCE_S = 3_600_000, 30 * 86_400

T = TypeVar("T")


class ClusterError(Exception):
    """Raised for what the cluster refuses, for a wait that has lasted too long, and for a cluster that has
    ended. Its text is a sentence."""


class Partition(NamedTuple):
    """A partition as a broker knows it. A leader of −1 means that there is none."""

    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class Options(TypedDict, total=False):
    """What a cluster is like (see `Cluster`)."""

    brokers: int
    racks: int
    settings: Mapping[str, str] | None
    seed: int


class Which(TypedDict, total=False):
    """Which requests of an API are meant: the next `times`, those at a `broker`, about a `topic` or one
    `partition` of it, `percent` of them by the cluster's seed. Without any, all of them."""

    times: int
    broker: int
    topic: str
    partition: int
    percent: int


class Cluster:
    """A simulated cluster in a child process, which ends with this one.

    Brokers are 0, 1, 2 …, controllers 101, 102, 103. They have Kafka's own times and limits, but for a first
    rebalance that waits for nobody; `settings` are broker settings by Kafka's names. `racks` is how many
    racks the brokers are in. There are no topics and no clients but yours. Any thread may call the methods.

    Raises ClusterError if it cannot start.
    """

    def __init__(
        self, *, brokers: int = 3, racks: int = 1, settings: Mapping[str, str] | None = None, seed: int = 1
    ) -> None:
        given = {"group.initial.rebalance.delay.ms": "0", **(settings or {})}
        flags = ["--empty", "--brokers", str(brokers), "--racks", str(racks), "--seed", str(seed)]
        self._child = SimulatedCluster(
            [*flags, *(w for k, v in given.items() for w in ("--set", f"{k}={v}"))]
        )
        self._started_by = os.getpid()
        self._one_at_a_time = threading.Lock()
        self._numbers = count(1)
        self._made: list[str] = []
        self._groups: list[str] = []
        self._touched = False
        """Whether something may have to be healed."""
        self.ahead_s = 0.0
        """By how many seconds the cluster's clock is ahead of the machine's."""
        try:
            self._addresses = self._child.bootstrap_servers()
        except KviewError as error:
            self._child.end()
            raise ClusterError(sentence(error)) from None
        self.requests()  # They are kept from the first time that somebody asks for them.
        self.brokers = tuple(range(len(self._addresses)))
        """The ids of the brokers."""
        self.bootstrap_servers = ",".join(map(str, self._addresses))
        """What clients connect to: `HOST:PORT,HOST:PORT,…`."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the cluster. What it held is gone. A forked process leaves it to the one that started it."""
        if os.getpid() == self._started_by:
            self._child.end()

    @property
    def running(self) -> bool:
        """Whether the cluster's process runs."""
        return self._child.ended() is None

    @property
    def pid(self) -> int:
        """The id of the cluster's process."""
        return self._child.pid

    def bootstrap(self, broker: int) -> str:
        """Return the `HOST:PORT` of one broker."""
        if broker not in self.brokers:
            raise ClusterError(f"there is no broker {broker}: the brokers are 0 to {self.brokers[-1]}")
        return str(self._addresses[broker])

    # -- faults

    def crash(self, node: int) -> None:
        """Kill a node's process (kill −9)."""
        self._do(Command(CommandKind.CRASH, node))

    def stop(self, node: int) -> None:
        """Begin to shut a node down cleanly: a broker hands over its leaderships before it exits."""
        self._do(Command(CommandKind.STOP, node))

    def hang(self, node: int) -> None:
        """Freeze a node (kill −STOP): it accepts connections and does not answer."""
        self._do(Command(CommandKind.HANG, node))

    def slow(self, node: int, ms: float) -> None:
        """Let each of a node's answers and fetches take `ms` milliseconds longer."""
        if not 1 <= ms <= MAX_SLOW_MS:
            raise ClusterError(f"{ms} is not a latency: give 1 to {MAX_SLOW_MS} milliseconds")
        self._do(Command(CommandKind.SLOW, node, amount=ms))

    def start(self, node: int) -> None:
        """End a node's faults: start what is down, resume what hangs."""
        self._do(Command(CommandKind.START, node))

    def fence_now(self, broker: int) -> None:
        """End a broker's session now, instead of after broker.session.timeout.ms (9 s). A broker that lives
        comes back with its next heartbeat."""
        self._do(Command(CommandKind.FENCE_NOW, broker))

    def advance(self, seconds: float, *, with_sessions: bool = False) -> None:
        """Let time pass at once: retention, transactions, locks and the sessions of clients that are gone
        end. Members of groups that are connected keep their sessions, unless `with_sessions`. The clock of
        clients stays as it is: to a cluster that is ahead, records with a client's own time are old. A
        rebalance that is going on times out. An hour takes a tenth of a second."""
        kind = CommandKind.ADVANCE_ALL if with_sessions else CommandKind.ADVANCE
        if not 0.001 <= seconds <= MOST_ADVANCE_S:
            raise ClusterError(f"{seconds} is not a time to let pass: give 0.001 to {MOST_ADVANCE_S} seconds")
        left_ms = round(seconds * 1000)
        while left_ms:  # in steps, between which clients are served
            step_ms = min(left_ms, ADVANCE_STEP_MS)
            self._do(Command(kind, amount=step_ms))
            left_ms -= step_ms
            self.ahead_s += step_ms / 1000

    def lose_rack(self, rack: str) -> None:
        """Kill every broker of a rack, such as `R1`."""
        self._do(Command(CommandKind.LOSE_RACK, name=rack))

    def crash_controller(self) -> int:
        """Kill the active controller, and return its id."""
        return self._do(Command(CommandKind.CRASH_CONTROLLER)).nodes[0]

    def cut(self, a: int, b: int, *, one_way: bool = False) -> None:
        """Lose every packet between two nodes, or with `one_way` those that `a` sends to `b`. Clients still
        reach both.

        One way, requests of `a` do not arrive. One request of `b` does, and its answer is lost; then `b`
        cannot connect any more.
        """
        self._do(Command(CommandKind.CUT_ONE_WAY if one_way else CommandKind.CUT, a, other=b))

    def isolate(self, node: int) -> None:
        """Lose every packet between a node and all other nodes. Clients still reach it."""
        self._do(Command(CommandKind.ISOLATE, node))

    def join(self, a: int, b: int) -> None:
        """End the cuts between two nodes."""
        self._do(Command(CommandKind.JOIN, a, other=b))

    def join_all(self) -> None:
        """End all cuts."""
        self._do(Command(CommandKind.JOIN_ALL))

    def lose_disk(self, broker: int) -> None:
        """Let the last log directory of a broker that works fail. What it has is gone.

        Brokers have one directory unless `settings` has several, such as `{"log.dirs": "a,b"}`. Without its
        first one, which has the metadata log, a broker ends. With others it goes on, and the partitions whose
        replicas were there move to other brokers, or have no leader.
        """
        self._do(Command(CommandKind.LOSE_DISK, broker))

    def fill_disk(self, broker: int) -> None:
        """Leave no room in the last log directory of a broker that works. It fails with the next append, but
        keeps what it has."""
        self._do(Command(CommandKind.FILL_DISK, broker))

    def slow_disk(self, broker: int, seconds: float) -> None:
        """Let each append to a broker's disks, and each read from them, take so many seconds longer."""
        if not 1 <= seconds * 1000 <= MAX_SLOW_MS:
            raise ClusterError(f"{seconds} is not a latency: give 0.001 to {MAX_SLOW_MS / 1000:g} seconds")
        self._do(Command(CommandKind.SLOW_DISK, broker, amount=seconds * 1000))

    def repair_disk(self, broker: int) -> None:
        """End the faults of a broker's disks. A lost one is replaced by an empty one, and the broker starts
        again, as Kafka needs it, and copies what it lacks."""
        self._do(Command(CommandKind.REPAIR_DISK, broker))

    def undo(self) -> None:
        """End every fault, and take back what was changed by a line of `do`."""
        self._do(Command(CommandKind.UNDO))

    def do(self, line: str) -> None:
        """Carry out a command as `kview serve` takes it: `kafka.do("hang-transaction orders-0")`."""
        try:
            command = parse(line)
        except KviewError as error:
            raise ClusterError(sentence(error)) from None
        if command.kind in (CommandKind.ADVANCE, CommandKind.ADVANCE_ALL):
            self.advance(command.amount / 1000, with_sessions=command.kind is CommandKind.ADVANCE_ALL)
        else:
            self._do(command)

    # -- errors on demand

    def fail(self, /, api: str, error: str | int, **where: Unpack[Which]) -> None:
        """Let requests of an API, such as `Produce`, fail with one of Kafka's errors, such as
        `NOT_LEADER_OR_FOLLOWER` or 6, and not take effect.

        `where` says which (see `Which`). Where a request is about several partitions, those that are not
        meant are handled. The rule is in force until `undo` or `heal`.
        """
        self._do(Command(CommandKind.FAIL, name=api, key=_error(error), where=_where(where)))

    def delay(self, /, api: str, ms: float, **where: Unpack[Which]) -> None:
        """Let requests of an API be handled `ms` milliseconds after they came, also if the client has given
        up by then. `undo` is for requests that come later."""
        if not 1 <= ms <= MOST_ADVANCE_S * 1000:
            raise ClusterError(f"{ms} is not a time to wait: give 1 to {MOST_ADVANCE_S * 1000} milliseconds")
        self._do(Command(CommandKind.DELAY, name=api, amount=ms, where=_where(where)))

    def drop(self, /, api: str, *, after: bool = False, **where: Unpack[Which]) -> None:
        """Let requests of an API lose their connection, before or after they took effect."""
        self._do(Command(CommandKind.DROP, name=api, key="after" if after else "before", where=_where(where)))

    def requests(self, api: str = "", topic: str = "") -> list[LoggedRequest]:
        """Return the requests that clients have sent since the cluster was healed, or those of an API or
        about a topic."""
        answer = self._request(Ask.REQUESTS)
        assert isinstance(answer, Requests)
        return [
            request
            for request in answer.requests
            if api in ("", request.api)
            and (not topic or any(place.rpartition("-")[0] == topic for place in request.partitions))
        ]

    def film(self) -> None:
        """Keep what happens from now on, for `record`: ten minutes at most."""
        self._request(Command(CommandKind.FILM))

    def record(self, folder: str | Path) -> None:
        """Write what was filmed as a recording, which `kview replay FOLDER` plays."""
        command = Command(CommandKind.RECORD, name=str(Path(folder).absolute()))
        self._do(command, RECORDED_WITHIN_S)

    # -- topics and groups

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        replication_factor: int | None = None,
        *,
        assignment: Sequence[Sequence[int]] = (),
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """Create a topic, and wait until every broker that runs knows it.

        It has three replicas if there are that many brokers, or those of `assignment`, by partition.
        """
        from kview.testing import admin

        self._touched = True
        replicas = min(3, len(self.brokers)) if replication_factor is None else replication_factor
        why = self._ask_any(
            lambda address: admin.create_topic(
                address, name, partitions, replicas, assignment, settings or {}
            )
        )
        if why:
            raise ClusterError(f"topic {name!r} was not created: {why}")
        self._made.append(name)

        def known() -> bool:
            try:
                return all(admin.partitions(address, name) for address in self._up())
            except OSError:
                return False  # One of them has just died, or is starting.

        self.wait(known, f"every broker that runs knows topic {name!r}")

    def new_topic(
        self,
        name: str = "topic",
        partitions: int = 1,
        replication_factor: int | None = None,
        *,
        assignment: Sequence[Sequence[int]] = (),
        settings: Mapping[str, str] | None = None,
    ) -> str:
        """Create a topic as `create_topic` does, but with a name that no other test has, and return that."""
        unique = f"{_legal(name)}-{next(self._numbers)}"
        self.create_topic(unique, partitions, replication_factor, assignment=assignment, settings=settings)
        return unique

    def new_group(self, name: str = "group") -> str:
        """Return a name for a group that no other test has."""
        self._groups.append(f"{_legal(name)}-{next(self._numbers)}")
        return self._groups[-1]

    def partition(self, topic: str, partition: int = 0) -> Partition:
        """Return who leads a partition, its replicas and which are in sync, as a broker that runs has it."""
        from kview.testing import admin

        rows = self._ask_any(lambda address: admin.partitions(address, topic))
        if not 0 <= partition < len(rows):
            raise ClusterError(f"topic {topic!r} has no partition {partition}")
        return rows[partition]

    def leader(self, topic: str, partition: int = 0) -> int:
        """Return the broker that leads a partition, −1 if none does."""
        return self.partition(topic, partition).leader

    # -- waiting

    def wait(self, probe: Callable[[], T], what: str, within_s: float = PATIENCE_S) -> T:
        """Call `probe` until it returns something true, and return that.

        Raises ClusterError with `what` was waited for after `within_s` seconds.
        """
        until_s, cancelled = time.monotonic() + within_s, _cancelled.get()
        while not (found := probe()):
            if cancelled is not None and cancelled.is_set():
                raise ClusterError(f"no longer waited for: {what}")
            if time.monotonic() > until_s:
                raise ClusterError(f"not within {within_s:g} s: {what}")
            time.sleep(POLL_S)
        return found

    def wait_full_isr(self, within_s: float = PATIENCE_S) -> None:
        """Wait until no fault is in force, every broker is unfenced and every replica in sync."""
        self.wait(lambda: self.status().healthy, "every broker is back and every ISR full", within_s)

    def wait_leader(
        self, topic: str, partition: int = 0, *, other_than: int, within_s: float = PATIENCE_S
    ) -> int:
        """Wait until a partition has another leader, and return that."""

        def led() -> tuple[int, ...]:
            leader = self.leader(topic, partition)
            return (leader,) if leader not in (-1, other_than) else ()

        return self.wait(led, f"{topic}-{partition} has another leader than {other_than}", within_s)[0]

    def status(self) -> Status:
        """Return the cluster in a few numbers, and the faults in force."""
        answer = self._request(Ask.STATUS)
        assert isinstance(answer, Status)
        return answer

    def heal(self, within_s: float = PATIENCE_S) -> None:
        """Make the cluster as it was: no faults or rules, full ISRs, an empty log of requests, without the
        topics and groups made here. Its clock stays ahead (`ahead_s`)."""
        if self._touched:
            self.undo()
            until_s = time.monotonic() + within_s
            while not self.status().healthy:
                if time.monotonic() > until_s:
                    raise ClusterError(f"not healed within {within_s:g} s")
                self.advance(0.5)  # a broker takes seconds to start, and may have to wait for its old session
        if self._made or self._groups:
            from kview.testing import admin

            if self._made:
                self._ask_any(lambda address: admin.delete_topics(address, self._made))
            for address in self._addresses if self._groups else ():
                with suppress(OSError):
                    admin.delete_groups(address, self._groups)
        self._made, self._groups, self._touched = [], [], False
        self._request(Ask.FORGET_REQUESTS)

    # -- requests

    def _up(self) -> list[Address]:
        """Return the addresses of the brokers that answer, slow ones included."""
        down = {fault.node for fault in self.status().active if not fault.answers}
        at = zip(self.brokers, self._addresses, strict=True)
        return [address for broker, address in at if broker not in down]

    def _ask_any(self, question: Callable[[Address], T]) -> T:
        """Ask the brokers that run, one after another, until one answers."""
        failed: OSError | None = None
        for address in self._up():
            try:
                return question(address)
            except OSError as error:
                failed = error
        raise ClusterError("no broker answers" if failed is None else f"no broker answers: {failed}")

    def _do(self, command: Command, within_s: float = ANSWERED_WITHIN_S) -> Done:
        self._touched = True
        reply = self._request(command, within_s)
        assert isinstance(reply, Reply)
        if reply.done is None:
            assert reply.refused is not None
            raise ClusterError(sentence(error_of(reply.refused)))
        return reply.done

    def _request(self, request: Request, within_s: float = ANSWERED_WITHIN_S) -> Answer:
        sent = encode(request)
        if len(sent) > MAX_REQUEST_BYTES:
            raise ClusterError(f"a name in this command is too long: it has {len(sent)} bytes")
        with self._one_at_a_time:
            try:
                self._child.control.settimeout(within_s)
                self._child.control.sendall(sent)
                answer = next(messages(self._child.control, answers), None)
            except TimeoutError:
                self.close()  # or the late answer would be taken for the next one
                raise ClusterError(
                    "the cluster's process does not answer: it is stuck, or the machine"
                ) from None
            except (OSError, ValueError):
                self.close()
                answer = None
            except BaseException:  # such as a test's time limit, in the middle
                self.close()
                raise
        if answer is None:
            raise ClusterError("the cluster's process has ended")
        return answer


_cancelled: ContextVar[threading.Event | None] = ContextVar("cancelled", default=None)
"""Set once the task is cancelled that waits for a method on a thread."""

P = ParamSpec("P")


def _awaited(
    method: Callable[Concatenate[Cluster, P], T],
) -> Callable[Concatenate["AsyncCluster", P], Coroutine[Any, Any, T]]:
    """Return a method that does the same on a thread, so that the event loop goes on meanwhile."""

    @wraps(method)
    async def call(self: "AsyncCluster", /, *args: P.args, **options: P.kwargs) -> T:
        cancelled = threading.Event()
        token = _cancelled.set(cancelled)
        try:
            return await asyncio.to_thread(method, self.cluster, *args, **options)
        except asyncio.CancelledError:
            cancelled.set()
            raise
        finally:
            _cancelled.reset(token)

    return call


class AsyncCluster:
    """A cluster for asyncio: `async with AsyncCluster(brokers=3) as kafka`. Its methods are those of
    `Cluster`, to be awaited."""

    def __init__(self, cluster: Cluster | None = None, **options: Unpack[Options]) -> None:
        """Take a cluster that runs, or start one with the `options` of `Cluster`, on `async with`."""
        self._started = cluster
        self._options = options

    @property
    def cluster(self) -> Cluster:
        """The cluster itself."""
        if self._started is None:
            raise ClusterError("the cluster has not been started: async with AsyncCluster() as kafka")
        return self._started

    @property
    def bootstrap_servers(self) -> str:
        """What clients connect to."""
        return self.cluster.bootstrap_servers

    @property
    def brokers(self) -> tuple[int, ...]:
        """The ids of the brokers."""
        return self.cluster.brokers

    def bootstrap(self, broker: int) -> str:
        """Return the `HOST:PORT` of one broker."""
        return self.cluster.bootstrap(broker)

    async def __aenter__(self) -> Self:
        if self._started is None:
            self._started = await asyncio.to_thread(Cluster, **self._options)
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.cluster.close)

    crash = _awaited(Cluster.crash)
    stop = _awaited(Cluster.stop)
    hang = _awaited(Cluster.hang)
    slow = _awaited(Cluster.slow)
    start = _awaited(Cluster.start)
    fence_now = _awaited(Cluster.fence_now)
    advance = _awaited(Cluster.advance)
    lose_rack = _awaited(Cluster.lose_rack)
    crash_controller = _awaited(Cluster.crash_controller)
    cut = _awaited(Cluster.cut)
    isolate = _awaited(Cluster.isolate)
    join = _awaited(Cluster.join)
    join_all = _awaited(Cluster.join_all)
    lose_disk = _awaited(Cluster.lose_disk)
    fill_disk = _awaited(Cluster.fill_disk)
    slow_disk = _awaited(Cluster.slow_disk)
    repair_disk = _awaited(Cluster.repair_disk)
    undo = _awaited(Cluster.undo)
    fail = _awaited(Cluster.fail)
    delay = _awaited(Cluster.delay)
    drop = _awaited(Cluster.drop)
    requests = _awaited(Cluster.requests)
    film = _awaited(Cluster.film)
    record = _awaited(Cluster.record)
    do = _awaited(Cluster.do)
    create_topic = _awaited(Cluster.create_topic)
    new_topic = _awaited(Cluster.new_topic)
    new_group = _awaited(Cluster.new_group)
    partition = _awaited(Cluster.partition)
    leader = _awaited(Cluster.leader)
    wait = _awaited(Cluster.wait)
    close = _awaited(Cluster.close)
    wait_full_isr = _awaited(Cluster.wait_full_isr)
    wait_leader = _awaited(Cluster.wait_leader)
    status = _awaited(Cluster.status)
    heal = _awaited(Cluster.heal)


def _error(error: str | int) -> str:
    try:
        return str(error_code(str(error)))
    except KviewError as wrong:
        raise ClusterError(sentence(wrong)) from None


def _where(given: Mapping[str, Any]) -> Where:
    try:
        return where_of(",".join(f"{name}={value}" for name, value in given.items()) or "all")
    except KviewError as wrong:
        raise ClusterError(sentence(wrong)) from None


def _legal(name: str) -> str:
    """Return a name with what Kafka allows in names of topics, and not too long."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name)[:200] or "test"
