"""A cluster for tests: its process, its faults, its topics, and waiting for what it does."""

import asyncio
import os
import re
import secrets
import threading
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from functools import wraps
from itertools import count
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    NamedTuple,
    ParamSpec,
    Protocol,
    Self,
    TypedDict,
    TypeVar,
    Unpack,
)

from kview.config.messages import encode, messages
from kview.errors import KviewError, error_of
from kview.lab.child import END_WITHIN_S, SimulatedCluster
from kview.lab.commands import MAX_SLOW_MS, error_code, parse, where_of
from kview.lab.messages import MAX_REQUEST_BYTES, Answer, Ask, Counters, Request, Requests, answers
from kview.lab.ways import ADMIN, ALICE, WAYS, client_file
from kview.language.errors import sentence
from kview.model.address import Address
from kview.model.lab import (
    Command,
    CommandKind,
    Done,
    LabSettings,
    LoggedRequest,
    Reply,
    Status,
    Where,
)
from kview.simulate.releases import RELEASES
from kview.testing.credentials import Credentials

if TYPE_CHECKING:
    from kview.testing.admin import Broker

PATIENCE_S = 30.0
"""How long is waited for what takes a moment, unless the test says otherwise."""

POLL_S, SHARED_POLL_S = 0.01, 0.05
"""How often is looked for what is waited for. Many may wait for a cluster that is shared."""

MOST_GROUPS = 100_000
"""Limit of the names of groups that are remembered, to delete the groups."""

ANSWERED_WITHIN_S, RECORDED_WITHIN_S = 30.0, 300.0
"""A command takes microseconds and a step of `advance` less than a second: a cluster that takes longer than
this is stuck. Writing the recording of a large cluster takes longer."""

SAVED_WITHIN_S = 60.0
"""How long a cluster may take to end that is kept in a folder."""

ADVANCE_STEP_MS, MOST_ADVANCE_S = 3_600_000, 30 * 86_400

T = TypeVar("T")


class ClusterError(Exception):
    """Raised for what the cluster refuses, for a wait that has lasted too long, and for a cluster that has
    ended. Its text is a sentence."""


class NotWithin(ClusterError):
    """Raised for a wait that has lasted too long."""


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
    security: str | None
    data: str | Path | None
    release: str


class Which(TypedDict, total=False):
    """Which requests of an API are meant: the next `times`, those at a `broker`, about a `topic` or one
    `partition` of it, `percent` of them by the cluster's seed. Without any, all of them."""

    times: int
    broker: int
    topic: str
    partition: int
    percent: int


class Link(Protocol):
    """The way to the process in which a cluster runs."""

    @property
    def running(self) -> bool:
        """Whether the process runs."""

    @property
    def pid(self) -> int:
        """The id of the process."""

    def request(self, request: Request, within_s: float) -> Answer:
        """Return the answer to a request. Raises ClusterError."""

    def end(self) -> None:
        """End the process. Raises ClusterError if the cluster was to be saved and was not."""


class Reach(NamedTuple):
    """How a cluster is reached: what brokers tell clients to connect to, in order, where kview itself
    connects, and the users whom brokers know, or "" alone. The first user may do everything."""

    advertised: tuple[Address, ...]
    near: tuple[Address, ...]
    users: Mapping[str, Credentials]


class _Child:
    """A cluster in a child process, which is asked one thing at a time. Implements `Link`."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self._is_kept = "--data" in arguments
        self._child = SimulatedCluster(arguments, SAVED_WITHIN_S if self._is_kept else END_WITHIN_S)
        self._started_by = os.getpid()
        self._one_at_a_time = threading.Lock()

    def reach(self) -> Reach:
        """Wait until the cluster listens, and return how it is reached. Raises ClusterError."""
        try:
            addresses = self._child.bootstrap_servers()
        except KviewError as error:
            self._child.end()
            raise ClusterError(sentence(error)) from None
        file = self._child.client_file
        return Reach(addresses, addresses, users_of(None if file is None else file.parent, addresses))

    @property
    def running(self) -> bool:
        """Whether the process runs."""
        return self._child.ended() is None

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._child.pid

    def end(self) -> None:
        """End the process, unless this one has been forked from the one that started it. Raises ClusterError
        if the cluster is kept and its last state was not saved."""
        is_kept, self._is_kept = self._is_kept, False  # It is said once.
        if self._end() and is_kept:
            why = self._child.ended()
            assert why is not None
            raise ClusterError(f"the cluster's last state was not saved: {sentence(why)}")

    def _end(self) -> int:
        return self._child.end() if os.getpid() == self._started_by else 0

    def request(self, request: Request, within_s: float) -> Answer:
        """Return the answer to a request. Raises ClusterError."""
        sent = encode(request)
        if len(sent) > MAX_REQUEST_BYTES:
            raise ClusterError(f"a name in this command is too long: it has {len(sent)} bytes")
        with self._one_at_a_time:
            try:
                self._child.control.settimeout(within_s)
                self._child.control.sendall(sent)
                answer = next(messages(self._child.control, answers), None)
            except TimeoutError:
                self._end()  # or the late answer would be taken for the next one
                raise ClusterError(
                    "the cluster's process does not answer: it is stuck, or the machine"
                ) from None
            except (OSError, ValueError):
                self._end()
                answer = None
            except BaseException:  # such as a test's time limit, in the middle
                self._end()
                raise
        if answer is None:
            raise ClusterError("the cluster's process has ended")
        return answer


class Paused:
    """A cluster whose clock stands, until the end of the `with`."""

    def __init__(self, cluster: "Cluster") -> None:
        self._cluster = cluster

    def __enter__(self) -> "Cluster":
        return self._cluster

    def __exit__(self, *_: object) -> None:
        self._cluster.resume()

    async def __aenter__(self) -> None:
        """Do nothing: the clock stands already."""

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self._cluster.resume)


class Cluster:
    """A simulated cluster in a child process, which ends with this one.

    Brokers are 0, 1, 2 …, controllers 101, 102, 103. They have Kafka's own times and limits, but for a first
    rebalance that waits for nobody; `settings` are broker settings by Kafka's names. `racks` is how many
    racks the brokers are in. `security` is what `kview serve --security` takes: `sasl_ssl:scram-sha-512`,
    `mtls` and others. Then `librdkafka_conf`, `client_properties` and `users` are for your clients. There are
    no topics and no clients but yours. Any thread may call the methods.

    `release` is the release of Kafka that the brokers are, `4.3` or `3.9`. `kview serve --help` says what
    differs.

    `data` is a folder in which topics, records, groups, transactions, ACLs and settings are kept. The next
    cluster with that folder goes on from there, as if all brokers had been shut down cleanly. What is written
    is saved every two seconds, and when the cluster is closed. One process at a time may use a folder.

    Raises ClusterError if it cannot start.
    """

    def __init__(
        self,
        *,
        brokers: int = 3,
        racks: int = 1,
        settings: Mapping[str, str] | None = None,
        seed: int = 1,
        security: str | None = None,
        data: str | Path | None = None,
        release: str = "4.3",
    ) -> None:
        given = {"group.initial.rebalance.delay.ms": "0", **(settings or {})}
        flags = ["--empty", "--brokers", str(brokers), "--racks", str(racks), "--seed", str(seed)]
        if release not in RELEASES:
            raise ClusterError(f"release {release!r} is not one of {', '.join(map(repr, RELEASES))}")
        flags += ["--release", release]
        if security is not None:
            if security.lower() not in WAYS:
                raise ClusterError(f"security {security!r} is not one of {', '.join(WAYS)}")
            flags += ["--security", security]
        if data is not None:
            flags += ["--data", str(Path(data).absolute())]
        child = _Child([*flags, *(w for k, v in given.items() for w in ("--set", f"{k}={v}"))])
        self._take(child, child.reach(), has_past=data is not None)
        self.requests()  # They are kept from the first time that somebody asks for them.

    @classmethod
    def over(cls, link: Link, reach: Reach) -> Self:
        """Return a cluster that has been started by somebody else, who may change it, too."""
        cluster = cls.__new__(cls)
        cluster._take(link, reach, has_past=True, is_shared=True)
        return cluster

    def _take(self, link: Link, reach: Reach, *, has_past: bool, is_shared: bool = False) -> None:
        self._link = link
        self._is_shared = is_shared
        self._poll_s = SHARED_POLL_S if is_shared else POLL_S
        self._start = f"{secrets.token_hex(3)}-" if has_past else ""
        """A part of the names made here. An earlier cluster in the same folder made others."""
        self._addresses, self._near = reach.advertised, reach.near
        self.users = {name: user for name, user in reach.users.items() if name}
        """Who clients can be, by name, if the cluster is secured with logins or certificates: `admin`, who
        may do everything, and `alice`, who has no rights until an ACL gives her some."""
        self._admin = next(iter(reach.users.values()))
        self._numbers = count(1)
        self._made: list[str] = []
        self._groups: list[str] = []
        self._touched = is_shared
        """Whether something may have to be healed."""
        self.ahead_s = 0.0
        """By how many seconds the cluster's clock is ahead of the machine's, less than 0 after a pause.
        What others do to a shared cluster does not count."""
        self._stands_since_s: float | None = None
        self.brokers = tuple(range(len(self._addresses)))
        """The ids of the brokers."""
        self.bootstrap_servers = ",".join(map(str, self._addresses))
        """What clients connect to: `HOST:PORT,HOST:PORT,…`."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the cluster. What it held is gone, unless there is a folder for it. A forked process leaves it
        to the one that started it. Raises ClusterError if there is a folder and the last save has failed, or
        the process was killed before."""
        self._link.end()

    @property
    def running(self) -> bool:
        """Whether the cluster's process runs."""
        return self._link.running

    @property
    def pid(self) -> int:
        """The id of the cluster's process."""
        return self._link.pid

    def bootstrap(self, broker: int) -> str:
        """Return the `HOST:PORT` of one broker."""
        if broker not in self.brokers:
            raise ClusterError(f"there is no broker {broker}: the brokers are 0 to {self.brokers[-1]}")
        return str(self._addresses[broker])

    @property
    def librdkafka_conf(self) -> dict[str, Any]:
        """Return what clients of librdkafka are set to: `Producer(kafka.librdkafka_conf)`. In a secured
        cluster, they may do everything."""
        return dict(self._admin.librdkafka_conf)

    @property
    def client_properties(self) -> dict[str, str]:
        """Return what clients of Java are set to. In a secured cluster, they may do everything."""
        return dict(self._admin.client_properties)

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

    def pause(self) -> "Paused":
        """Let the cluster's clock stand: `with kafka.pause(): …`, or until `resume`, `undo` or `heal`.

        For asyncio it is `async with await kafka.pause()`. Requests are served meanwhile: records are
        replicated and committed, groups rebalance, topics are created, polls of half a second at most are
        answered. But no heartbeat, session, lock, transaction or retention is due, and nothing times out.
        Afterwards, each has as much time left as it had. A broker does not start, one that has crashed is not
        fenced, and a `group.initial.rebalance.delay.ms` does not end. `advance` lets time pass also then.
        """
        self._do(Command(CommandKind.PAUSE_TIME))
        return Paused(self)

    def resume(self) -> None:
        """Let the cluster's clock go on."""
        self._do(Command(CommandKind.RESUME_TIME))

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
        """Leave no room in the last log directory of a broker that works. It fails within 5 s, or with
        the next append, but keeps what it has."""
        self._do(Command(CommandKind.FILL_DISK, broker))

    def slow_disk(self, broker: int, seconds: float) -> None:
        """Let each append to a broker's disks, and each fetch of a client or follower, take so many seconds
        longer."""
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
            self.carry_out(parse(line))
        except ClusterError:
            raise
        except KviewError as error:
            raise ClusterError(sentence(error)) from None

    def carry_out(self, command: Command) -> Reply:
        """Carry out a command, and return what was done and what undoes it."""
        if command.kind in (CommandKind.ADVANCE, CommandKind.ADVANCE_ALL):
            self.advance(command.amount / 1000, with_sessions=command.kind is CommandKind.ADVANCE_ALL)
            return Reply(Done(command), active=self.status().active)
        return self._replied(command, RECORDED_WITHIN_S if command.kind is CommandKind.RECORD else None)

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

    def forget_requests(self) -> None:
        """Forget the requests that clients have sent."""
        self._request(Ask.FORGET_REQUESTS)

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
            lambda broker: admin.create_topic(broker, name, partitions, replicas, assignment, settings or {})
        )
        if why:
            raise ClusterError(f"topic {name!r} was not created: {why}")
        self._made.append(name)

        def known() -> bool:
            try:
                return all(admin.partitions(broker, name) for broker in self._up())
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
        unique = self._unique(name)
        self.create_topic(unique, partitions, replication_factor, assignment=assignment, settings=settings)
        return unique

    def new_group(self, name: str = "group") -> str:
        """Return a name for a group that no other test has."""
        if len(self._groups) == MOST_GROUPS:
            raise ClusterError(f"{MOST_GROUPS} names of groups were made since the cluster was healed")
        group = self._unique(name)
        self._groups.append(group)
        return group

    def _unique(self, name: str) -> str:
        return f"{_legal(name)}-{self._start}{next(self._numbers)}"

    def partitions(self, topic: str) -> list[Partition]:
        """Return a topic's partitions in order, as a broker that runs has them; none if there is no such
        topic."""
        from kview.testing import admin

        return self._ask_any(lambda broker: admin.partitions(broker, topic))

    def partition(self, topic: str, partition: int = 0) -> Partition:
        """Return who leads a partition, its replicas and which are in sync, as a broker that runs has it."""
        rows = self.partitions(topic)
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
        until_s = time.monotonic() + within_s
        while not (found := probe()):
            _check_waited_for(what, until_s, within_s)
            time.sleep(self._poll_s)
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

    def counters(self) -> Counters:
        """Return the numbers of records appended, acknowledged and consumed."""
        answer = self._request(Ask.COUNTERS)
        assert isinstance(answer, Counters)
        return answer

    def settings(self) -> LabSettings:
        """Return what is set and can be adjusted."""
        answer = self._request(Ask.SETTINGS)
        assert isinstance(answer, LabSettings)
        return answer

    def heal(self, within_s: float = PATIENCE_S) -> None:
        """Make the cluster as it was: no faults or rules, full ISRs, an empty log of requests, without the
        topics and groups made here. Its clock stays ahead (`ahead_s`)."""
        if self._touched:
            self.undo()
            until_s = time.monotonic() + within_s
            while not self.status().healthy:
                _check_waited_for("every broker is back and every ISR full", until_s, within_s)
                self.advance(0.5)  # a broker takes seconds to start, and may have to wait for its old session
        if self._made or self._groups:
            from kview.testing import admin

            if self._made:
                self._ask_any(lambda broker: admin.delete_topics(broker, self._made))
            for broker in self._up() if self._groups else ():
                with suppress(OSError):
                    admin.delete_groups(broker, self._groups)
        self._made, self._groups, self._touched = [], [], self._is_shared
        self.forget_requests()

    # -- requests

    def _up(self) -> "list[Broker]":
        """Return the brokers that answer, slow ones included."""
        from kview.testing.admin import Broker

        down = {fault.node for fault in self.status().active if not fault.answers}
        at = zip(self.brokers, self._near, strict=True)
        return [Broker(address, self._admin) for broker, address in at if broker not in down]

    def _ask_any(self, question: "Callable[[Broker], T]") -> T:
        """Ask the brokers that run, one after another, until one answers."""
        failed: OSError | None = None
        for broker in self._up():
            try:
                return question(broker)
            except OSError as error:
                failed = error
        raise ClusterError("no broker answers" if failed is None else f"no broker answers: {failed}")

    def _do(self, command: Command, within_s: float | None = None) -> Done:
        done = self._replied(command, within_s).done
        assert done is not None
        return done

    def _replied(self, command: Command, within_s: float | None = None) -> Reply:
        """Return the reply to a command that is done. Raises ClusterError if it is refused."""
        self._touched = True
        reply = self._request(command, within_s or ANSWERED_WITHIN_S)
        assert isinstance(reply, Reply)
        if reply.done is None:
            assert reply.refused is not None
            raise ClusterError(sentence(error_of(reply.refused)))
        since_s, now_s = self._stands_since_s, time.monotonic()
        if command.kind is CommandKind.PAUSE_TIME and since_s is None:
            self._stands_since_s = now_s
        elif command.kind in (CommandKind.RESUME_TIME, CommandKind.UNDO) and since_s is not None:
            self.ahead_s -= now_s - since_s
            self._stands_since_s = None
        return reply

    def _request(self, request: Request, within_s: float = ANSWERED_WITHIN_S) -> Answer:
        return self._link.request(request, within_s)


is_cancelled: ContextVar[Callable[[], bool] | None] = ContextVar("is_cancelled", default=None)
"""Tells whether nobody waits any more for the method that this thread calls."""


def _check_waited_for(what: str, until_s: float, within_s: float) -> None:
    """Raise ClusterError if somebody has waited long enough for something, or waits no more."""
    cancelled = is_cancelled.get()
    if cancelled is not None and cancelled():
        raise ClusterError(f"no longer waited for: {what}")
    if time.monotonic() > until_s:
        raise NotWithin(f"not within {within_s:g} s: {what}")


P = ParamSpec("P")


def _awaited(
    method: Callable[Concatenate[Cluster, P], T],
) -> Callable[Concatenate["AsyncCluster", P], Coroutine[Any, Any, T]]:
    """Return a method that does the same on a thread, so that the event loop goes on meanwhile."""

    @wraps(method)
    async def call(self: "AsyncCluster", /, *args: P.args, **options: P.kwargs) -> T:
        cancelled = threading.Event()
        token = is_cancelled.set(cancelled.is_set)
        try:
            return await asyncio.to_thread(method, self.cluster, *args, **options)
        except asyncio.CancelledError:
            cancelled.set()
            raise
        finally:
            is_cancelled.reset(token)

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

    @property
    def users(self) -> Mapping[str, Credentials]:
        """Who clients can be, by name, if the cluster is secured with logins or certificates."""
        return self.cluster.users

    @property
    def librdkafka_conf(self) -> dict[str, Any]:
        """Return what clients of librdkafka are set to."""
        return self.cluster.librdkafka_conf

    @property
    def client_properties(self) -> dict[str, str]:
        """Return what clients of Java are set to."""
        return self.cluster.client_properties

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
    pause = _awaited(Cluster.pause)
    resume = _awaited(Cluster.resume)
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
    carry_out = _awaited(Cluster.carry_out)
    forget_requests = _awaited(Cluster.forget_requests)
    partitions = _awaited(Cluster.partitions)
    counters = _awaited(Cluster.counters)
    settings = _awaited(Cluster.settings)


def users_of(folder: Path | None, addresses: Sequence[Address]) -> Mapping[str, Credentials]:
    """Return the users of a cluster that has put their files into a folder, if it is secured."""
    if folder is None:
        servers = {"bootstrap.servers": ",".join(map(str, addresses)), "security.protocol": "PLAINTEXT"}
        return {"": Credentials("", servers, dict(servers))}
    users = (ADMIN, ALICE) if (folder / client_file(ALICE)).exists() else ("",)
    return {user: Credentials.of(user, folder) for user in users}


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
