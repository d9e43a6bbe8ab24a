"""A simulated member of a consumer group, which uses the simulated coordinator as a real client would.

On a single timer, the member joins, syncs, sends heartbeats, reads, and commits at its interval. It finds a
new coordinator with a real client's delays. Rebalancing is eager: the member commits, releases all its
partitions, and then joins.
"""

from collections.abc import Callable
from enum import Enum
from random import Random

from kview.simulate.codes import ErrorCode
from kview.simulate.groups.consumer_protocol import (
    CONSUMER,
    Subscription,
    by_topic,
    encode_subscription,
)
from kview.simulate.groups.results import (
    NO_GENERATION,
    CommitRequest,
    CommitResult,
    GroupProtocol,
    JoinRequest,
    JoinResult,
    LeavingMember,
    OffsetToCommit,
    SyncRequest,
    SyncResult,
)
from kview.simulate.metadata import TopicPartition
from kview.simulate.traffic.assignment import KnownTopics, assign, assigned
from kview.simulate.traffic.connections import Connections
from kview.simulate.traffic.coordinator_link import ANSWER_US, CoordinatorLink
from kview.simulate.traffic.metadata import ClientMetadata
from kview.simulate.traffic.reader import Progress, Reader
from kview.simulate.world import GroupSpec

STEP_US = 500_000
"""Interval at which a member acts. It need not be shorter, because other clients see only the member's
commits, which are seconds apart."""
HEARTBEAT_US = 3_000_000
"""heartbeat.interval.ms."""
SESSION_TIMEOUT_MS = 45_000
MAX_POLL_INTERVAL_MS = 300_000
"""max.poll.interval.ms, which is also the rebalance timeout."""
HOST = "/127.0.0.1"


class Phase(Enum):
    """A member's stage on the way to its assignment."""

    OUTSIDE = "outside"
    JOINING = "joining"
    SYNCING = "syncing"
    ASSIGNED = "assigned"
    LEFT = "left"


_SEARCH_AGAIN = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_SERVER_ERROR,
)
_LOST_MEMBERSHIP = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID)


class SimulatedMember:
    """One member of a group."""

    def __init__(self, cluster: Connections, spec: GroupSpec, number: int, progress: Progress) -> None:
        self.spec = spec
        self.paused = False
        """Whether it reads nothing, although it goes on sending heartbeats."""
        self.client_id = f"{spec.name}-{number}"
        self.member_id = ""
        self.generation = NO_GENERATION
        self.phase = Phase.OUTSIDE
        self.committed: dict[TopicPartition, int] = {}
        self._cluster = cluster
        self._kernel = cluster.kernel
        self._random: Random = cluster.kernel.random(f"member/{self.client_id}")
        self._metadata = ClientMetadata(cluster, spec.topics, self._random)
        self._reader = Reader(
            cluster,
            self._metadata,
            spec.records_per_second,
            progress,
            spec.at_most_once,
            spec.read_committed,
        )
        self._link = CoordinatorLink(cluster, self._metadata, cluster.groups, spec.name, self._given_up)
        self._led: KnownTopics | None = None
        """What this member knew when it made the group's assignment, or None if another member made it."""
        self._attempt = 0
        self._committing = False
        self._next_us = {"heartbeat": 0, "commit": 0}
        self._kernel.tick(self._random.randrange(STEP_US), self._step)

    @property
    def read_records(self) -> int:
        """The number of records the member has read in all."""
        return self._reader.records

    def resume(self, member_id: str, generation: int, owned: list[TopicPartition], leads: bool) -> None:
        """Start as a member that already has an assignment, for a warm start.

        The member only has to fetch its offsets. If it leads the group, it made the assignment.
        """
        now_us = self._kernel.now_us
        self.member_id, self.generation, self._reader.owned = member_id, generation, owned
        self.phase = Phase.ASSIGNED
        if leads:
            anyone = next(iter(self._cluster.brokers))  # At the start, all have the same metadata.
            self._led = KnownTopics.of(self.spec.topics, self._cluster.image(anyone), self._metadata)
        self._next_us["heartbeat"] = now_us + self._random.randrange(HEARTBEAT_US)
        self._next_us["commit"] = now_us + self._random.randrange(self.spec.commit_interval_ms * 1000)

    def leave(self) -> None:
        """Commit, leave the group, and do nothing more."""
        if self.member_id and self.phase is not Phase.LEFT and self._link.reachable():
            if self.phase is Phase.ASSIGNED:
                self._reader.finish()
                self._commit()
            self._say_goodbye()
        self.phase = Phase.LEFT

    def _say_goodbye(self) -> None:
        self._link.coordinator().leave(self.spec.name, [LeavingMember(self.member_id)])

    def die(self) -> None:
        """Do nothing more, without a word to the coordinator, which waits until the session ends.

        What was read since the last step is read, but a batch that was committed first is not.
        """
        if self.phase is Phase.ASSIGNED and not self.spec.at_most_once:
            self._read()
        self.phase = Phase.LEFT

    # --- steps

    def _step(self) -> None:
        if self.phase is Phase.LEFT:
            return
        self._kernel.tick(STEP_US, self._step)
        self._metadata.renew()
        if not self._link.reachable():
            if self.phase is Phase.ASSIGNED:
                self._read()
            return
        if self.phase is Phase.OUTSIDE:
            self._join()
        elif self.phase is Phase.ASSIGNED:
            self._work()

    def _work(self) -> None:
        now_us = self._kernel.now_us
        if now_us >= self._next_us["heartbeat"]:
            self._beat()
            if self.phase is not Phase.ASSIGNED:
                return
        if self._led is not None and self._led.outdated(self._metadata):
            self._rejoin(keep_id=True)
            return
        if self._link.broker >= 0 and self._reader.unplaced():
            self._fetch_positions()
        self._read()
        is_due = self._reader.wants_batch if self.spec.at_most_once else now_us >= self._next_us["commit"]
        if is_due and not self._committing and self._link.broker >= 0:
            self._next_us["commit"] = now_us + self.spec.commit_interval_ms * 1000
            self._commit(polls=True)

    def _beat(self) -> None:
        """Send a heartbeat, and react to the answer."""
        self._next_us["heartbeat"] = self._kernel.now_us + HEARTBEAT_US
        coordinator = self._link.coordinator()
        self._heed(coordinator.heartbeat(self.spec.name, self.generation, self.member_id))

    def _read(self) -> None:
        if self.paused:
            self._reader.rest()
        else:
            self._reader.read_on()

    def _given_up(self) -> None:
        """Give up all requests to the coordinator, because the connection has ended."""
        self._attempt += 1
        self._committing = False
        if self.phase in (Phase.JOINING, Phase.SYNCING):
            self.phase = Phase.OUTSIDE

    def _later(self, fn: Callable[..., None], *args: object) -> None:
        """Call `fn` with an answer after the network's delay, unless the member has given up that request."""
        attempt = self._attempt

        def arrived() -> None:
            if attempt == self._attempt and self.phase is not Phase.LEFT:
                fn(*args)

        self._kernel.after(ANSWER_US + self._link.slow_us(), arrived)

    # --- membership

    def _heed(self, code: ErrorCode) -> None:
        """React to a coordinator's error code."""
        if code is ErrorCode.NONE or code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            return
        if code in _SEARCH_AGAIN:
            self._link.drop()
        elif code is ErrorCode.REBALANCE_IN_PROGRESS:
            self._rejoin(keep_id=True)
        elif code in _LOST_MEMBERSHIP:
            self._rejoin(keep_id=False)
        elif code is ErrorCode.ILLEGAL_GENERATION:
            self._rejoin(keep_id=True)

    def _rejoin(self, keep_id: bool) -> None:
        """Release the partitions and join again, after a last commit if it can still succeed."""
        if keep_id and self.phase is Phase.ASSIGNED and self._link.broker >= 0:
            self._reader.finish()
            self._commit()
        if not keep_id:
            self.member_id = ""
            self.generation = NO_GENERATION
        self._attempt += 1
        self._committing = False
        self._reader.positions = {}
        self.phase = Phase.OUTSIDE
        if self._link.broker >= 0:
            self._join()

    def _join(self) -> None:
        self._attempt += 1
        self.phase = Phase.JOINING
        attempt = self._attempt
        owned = by_topic(self._reader.owned) if self.spec.assignor == "sticky" else {}
        subscription = Subscription(self.spec.topics, owned, self.generation)

        def done(result: JoinResult) -> None:
            if attempt == self._attempt:
                self._later(self._joined, result)

        self._link.coordinator().join(
            JoinRequest(
                self.spec.name,
                self.member_id,
                self.client_id,
                HOST,
                CONSUMER,
                (GroupProtocol(self.spec.assignor, encode_subscription(subscription)),),
                SESSION_TIMEOUT_MS,
                MAX_POLL_INTERVAL_MS,
            ),
            done,
        )

    def _joined(self, result: JoinResult) -> None:
        code = result.error_code
        if code is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = result.member_id
            self._join()
            return
        if code is not ErrorCode.NONE:
            if code in _SEARCH_AGAIN:
                self._link.drop()
            elif code in _LOST_MEMBERSHIP:
                self.member_id = ""
                self._reader.owned = []
            self.phase = Phase.OUTSIDE  # The next step will try again.
            return
        self.member_id = result.member_id
        self.generation = result.generation
        self.phase = Phase.SYNCING
        attempt = self._attempt

        def done(answer: SyncResult) -> None:
            if attempt == self._attempt:
                self._later(self._synced, answer)

        assignment: tuple[tuple[str, bytes], ...] = ()
        self._led = None
        if result.leader == self.member_id and not result.skip_assignment:
            image = self._cluster.image(self._link.broker)
            assignment = assign(result, result.protocol or self.spec.assignor, image)
            self._led = KnownTopics.of(self.spec.topics, image, self._metadata)
        self._link.coordinator().sync(
            SyncRequest(
                self.spec.name,
                self.generation,
                self.member_id,
                None,
                result.protocol_type,
                result.protocol,
                assignment,
            ),
            done,
        )

    def _synced(self, result: SyncResult) -> None:
        code = result.error_code
        if code is not ErrorCode.NONE:
            self.phase = Phase.OUTSIDE
            if code in _SEARCH_AGAIN:
                self._link.drop()
            elif code in _LOST_MEMBERSHIP:
                self.member_id = ""
                self._reader.owned = []
            return
        now_us = self._kernel.now_us
        self._reader.begin(assigned(result.assignment))
        self.phase = Phase.ASSIGNED
        self._next_us["heartbeat"] = now_us + HEARTBEAT_US
        self._next_us["commit"] = now_us + self.spec.commit_interval_ms * 1000
        self._fetch_positions()

    # --- offsets

    def _fetch_positions(self) -> None:
        """Set the missing positions to the committed offsets, or to 0 in partitions without a committed
        offset."""
        missing = self._reader.unplaced()
        fetched = self._link.coordinator().fetch_offsets(self.spec.name, missing)
        if fetched.error_code is not ErrorCode.NONE:
            self._heed(fetched.error_code)
            return
        for offset in fetched.offsets:
            self._reader.place((offset.topic, offset.partition), max(0, offset.offset))

    def _commit(self, polls: bool = False) -> None:
        """Commit every position, as enable.auto.commit does.

        If the member `polls` and commits first, it commits where the new batches end.
        """
        until = self._reader.polled if polls else self._reader.positions.__getitem__
        offsets = tuple(
            OffsetToCommit(*pair, until(pair), topic_id=self._reader.topic_id(pair[0]))
            for pair in sorted(self._reader.positions)
        )
        if not offsets:
            return
        self._committing = True
        attempt = self._attempt

        def done(result: CommitResult) -> None:
            if attempt == self._attempt:
                self._later(self._committed, offsets, result)

        request = CommitRequest(self.spec.name, offsets, self.generation, self.member_id)
        self._link.coordinator().commit(request, done)

    def _committed(self, offsets: tuple[OffsetToCommit, ...], result: CommitResult) -> None:
        self._committing = False
        for offset, code in zip(offsets, result.error_codes, strict=True):
            if code is ErrorCode.NONE:
                self.committed[offset.topic, offset.partition] = offset.offset
                self._reader.allow((offset.topic, offset.partition), offset.offset)
        worst = next((code for code in result.error_codes if code is not ErrorCode.NONE), ErrorCode.NONE)
        if self.phase is Phase.ASSIGNED:
            self._heed(worst)
