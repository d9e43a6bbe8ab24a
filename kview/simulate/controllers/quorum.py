"""The KRaft quorum: the active controller, its epoch, and how far each node has read the metadata log.

The log's records and the messages of an election are not simulated. A vote takes no time, and a split vote
shows only as a later attempt.
"""

from collections.abc import Callable, Sequence

from kview.simulate.codes import ErrorCode
from kview.simulate.kernel import Kernel, Timer
from kview.simulate.network import Connection
from kview.simulate.nodes import Nodes, ProcessState
from kview.simulate.results import QuorumInfo, QuorumReplica
from kview.simulate.settings import Settings

NO_LEADER = -1
FIRST_EPOCH = 1
"""The controller epoch that a cluster starts with."""
RESIGN_FACTOR = 1.5
"""A leader resigns if a majority has not fetched for 1.5 × the fetch timeout (KafkaRaftClient)."""
FORWARD_TIMEOUT_MS = 60_000
"""Longest time a broker holds a request that it forwards while there is no active controller, whatever time
limit the request has of its own."""
NEVER = -1
"""Log end, and time of the last fetch in µs, of a node that has not fetched from the active controller."""
WAITING_MAX = 10_000
"""Limit of forwarded requests that wait at the same time."""
NOBODY = -1
"""Stands for a broker where the lab itself asks, which reaches every controller."""


class Quorum:
    """The controllers. `epoch` rises with every election, `log_end` with every record and idle no-op."""

    def __init__(
        self, kernel: Kernel, settings: Settings, nodes: Nodes, voters: Sequence[int], log_end: int
    ) -> None:
        self.kernel = kernel
        self.nodes = nodes
        self.voters = tuple(voters)
        self.leader = self.voters[0]
        self.epoch = FIRST_EPOCH
        self.log_end = log_end
        self.ends: dict[int, int] = {node: log_end for node in nodes.by_id}
        self.fetched_us: dict[int, int] = {node: self.kernel.now_us for node in nodes.by_id}
        self._logs: dict[int, int] = dict.fromkeys(voters, log_end)
        """Voter → the end of its own log."""
        self._idle_us = settings.us("metadata.max.idle.interval.ms")
        self._fetch_timeout_us = settings.us("controller.quorum.fetch.timeout.ms")
        self._election_timeout_us = settings.us("controller.quorum.election.timeout.ms")
        self._majority_us = self.kernel.now_us
        self._campaign: Timer | None = None
        self._waiting: list[tuple[int, Callable[[], None]]] = []
        """Who asked through a broker while it reached no active controller: the broker, and the question."""
        self._listeners: list[Callable[[], None]] = []
        nodes.network.on_change(self._network_changed)
        self.kernel.tick(self._idle_us, self._tick)

    def on_election(self, listener: Callable[[], None]) -> None:
        """Call `listener` whenever another controller becomes the active one."""
        self._listeners.append(listener)

    def running(self) -> list[int]:
        """Return the voters whose processes run."""
        return [v for v in self.voters if self.nodes.by_id[v].running]

    def _following(self, voters: Sequence[int] | None = None) -> list[int]:
        """Return the voters that run and fetch from the leader, and the leader if it is one of them."""
        nodes = self.nodes
        return [
            v
            for v in (self.voters if voters is None else voters)
            if nodes.by_id[v].running and nodes.network.connects(v, self.leader)
        ]

    def _is_majority(self, voters: int) -> bool:
        return voters > len(self.voters) // 2

    def has_majority(self) -> bool:
        """Return whether a controller is active, or one can be elected."""
        return self.active() or bool(self._candidates())

    def active(self) -> bool:
        """Return whether there is a controller that can answer and commit."""
        return self.leads() and self._is_majority(len(self._following()))

    def reached_by(self, broker: int) -> bool:
        """Return whether a controller is active and answers this broker."""
        return self.active() and self.nodes.network.connects(broker, self.leader)

    def send(self, broker: int, connection: Connection) -> bool:
        """Send a request of a broker to the leader, and return whether it arrives there."""
        return self.leads() and self.nodes.network.send(broker, self.leader, connection)

    def leads(self) -> bool:
        """Return whether the leader's process runs."""
        return self.leader != NO_LEADER and self.nodes.by_id[self.leader].running

    def slow_us(self) -> int:
        """Return the latency in µs that the active controller's slowness adds to an answer."""
        return self.nodes.by_id[self.leader].slow_us if self.leader != NO_LEADER else 0

    def append(self, records: int) -> None:
        """Commit records to the metadata log."""
        self.log_end += records
        self._fetched()

    def _fetched(self) -> None:
        now_us, network = self.kernel.now_us, self.nodes.network
        for number, node in self.nodes.by_id.items():
            if not node.running or node.booting:
                continue
            if network.connects(number, self.leader):
                self.ends[number] = self.log_end
                self.fetched_us[number] = now_us
                if node.is_controller:
                    self._logs[number] = self.log_end
            elif network.send(number, self.leader, Connection.METADATA):
                self.fetched_us[number] = now_us

    def _tick(self) -> None:
        self.kernel.tick(self._idle_us, self._tick)
        now_us = self.kernel.now_us
        if self.active():
            self._majority_us = now_us
            self.append(1)
        elif self.leads():
            self._check_majority()
            self._suspect()
        elif self._campaign is None or self._campaign.fn is None:
            self._lost(now_us)

    def _suspect(self) -> None:
        """Start the timer for an election if voters that run cannot reach the leader, unless it has
        started."""
        cut_off = self.leads() and not self.active() and len(self._following()) < len(self.running())
        if cut_off and (self._campaign is None or self._campaign.fn is None):
            self._lost(self.kernel.now_us)

    def _network_changed(self, a: int, b: int) -> None:
        self._suspect()
        self._ask_waiting()

    def node_changed(self, node: int, state: ProcessState) -> None:
        """React to a change of a controller's process."""
        if node == self.leader and state is not ProcessState.RUNNING:
            if state is ProcessState.STOPPED:
                self._resign(
                    self._fetch_timeout_us // 40
                )  # A controller that stops cleanly notifies the others, so they vote soon.
            else:
                if state is ProcessState.CRASHED:
                    self.leader = NO_LEADER
                self._lost(self.kernel.now_us)

    def _check_majority(self) -> None:
        if self.kernel.now_us - self._majority_us >= self._fetch_timeout_us * RESIGN_FACTOR:
            self._resign()

    def _lost(self, since_us: int) -> None:
        """Start the timer for an election, because the voters have not reached the leader since `since_us`.

        The election begins when the first voter's fetch timeout ends.
        """
        # The voters' last fetch was at most one idle interval ago.
        ago_us = self.kernel.random("quorum").randrange(self._idle_us)
        self.kernel.cancel(self._campaign)
        self._campaign = self.kernel.at(since_us + self._fetch_timeout_us - ago_us, self._elect)

    def _resign(self, wait_us: int | None = None) -> None:
        self.kernel.trace("resigned", self.leader, self.epoch)
        self.leader = NO_LEADER
        self._retry(wait_us)

    def _retry(self, wait_us: int | None = None) -> None:
        """Ask for votes after `wait_us`, or after a random time of one to two election timeouts."""
        if wait_us is None:
            longer_us = self.kernel.random("quorum").randrange(self._election_timeout_us)
            wait_us = self._election_timeout_us + longer_us
        self.kernel.cancel(self._campaign)
        self._campaign = self.kernel.after(wait_us, self._elect)

    def _elect(self) -> None:
        if self.active():
            return  # The leader resumed, or was reached again, in time.
        candidates = self._candidates()
        if not candidates:
            self._retry()
            return
        self.epoch += 1
        self.leader = candidates[self.kernel.random("quorum").randrange(len(candidates))]
        self._majority_us = self.kernel.now_us
        self.nodes.network.reconnect(self.leader)
        self.kernel.trace("controller", self.leader, self.epoch)
        for node in self.nodes.by_id:  # Those that run fetch at once, which the next record includes.
            self.ends[node] = self.fetched_us[node] = NEVER
        self.append(1)
        for listener in self._listeners:
            listener()
        self._ask_waiting()

    def _candidates(self) -> list[int]:
        """Return the voters that a majority would vote for.

        Nobody who fetches from a leader votes for another (KIP-996), nor for one whose log is shorter.
        """
        following = self._following() if self.leads() else ()
        free = [v for v in self.running() if v not in following]
        network, logs = self.nodes.network, self._logs

        def votes(candidate: int) -> int:
            return sum(network.connects(v, candidate) and logs[v] <= logs[candidate] for v in free)

        return [v for v in free if self._is_majority(votes(v))]

    def _ask_waiting(self) -> None:
        """Let those ask that reach an active controller now."""
        waiting, self._waiting = self._waiting, []
        for broker, ask in waiting:
            if self.reached_by(broker):
                ask()
            else:
                self._waiting.append((broker, ask))

    def forward(
        self, ask: Callable[[], None], late: Callable[[], None], limit_us: int, broker: int = NOBODY
    ) -> None:
        """Call `ask` once the broker reaches an active controller, or `late` after `limit_us` µs.

        `late` is called at once if WAITING_MAX calls already wait.
        """
        if self.reached_by(broker):
            ask()
            return
        if len(self._waiting) >= WAITING_MAX:
            late()
            return

        def expire() -> None:
            if waiting in self._waiting:
                self._waiting.remove(waiting)
                late()

        timer = self.kernel.tick(limit_us, expire)

        def again() -> None:
            self.kernel.cancel(timer)
            ask()

        waiting = broker, again
        self._waiting.append(waiting)

    def resumed(self) -> None:
        """React to a controller that was started or has resumed.

        A leader that hung too long resigns. If a controller is active, the waiting requests are answered.
        """
        if self.leads():
            self._check_majority()
        self._ask_waiting()

    def describe(self) -> QuorumInfo:
        """Answer DescribeQuorum as the active controller does."""
        now_ms = self.kernel.now_us // 1000

        def row(node: int) -> QuorumReplica:
            fetched_us = self.fetched_us[node]
            at_ms = now_ms if node == self.leader else NEVER if fetched_us == NEVER else fetched_us // 1000
            return QuorumReplica(node, self.ends[node], at_ms, at_ms)

        return QuorumInfo(
            ErrorCode.NONE,
            self.leader,
            self.epoch,
            self.log_end,
            tuple(row(v) for v in self.voters),
            tuple(row(n) for n in self.nodes.by_id if n not in self.voters and self.fetched_us[n] != NEVER),
        )

    def change_voters(self, voters: Sequence[int]) -> bool:
        """Let other controllers be the voters, and return whether a majority of them can commit that. If not,
        nothing changes. A leader that is not one of them does not count, and resigns (KIP-853)."""
        if len(self._following(voters)) <= len(voters) // 2:
            return False
        self.voters = tuple(voters)
        self.append(1)
        if self.leader not in self.voters:
            self._resign(self._fetch_timeout_us // 40)
        return True

    def keeps_up(self, controller: int) -> bool:
        """Return whether a controller has all of the metadata log."""
        return self.ends.get(controller) == self.log_end
