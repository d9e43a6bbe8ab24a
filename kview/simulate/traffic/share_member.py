"""A simulated member of a share group, which uses the simulated brokers as a real client would.

It fetches from the leaders of the partitions that it is given, processes what it has acquired at its rate,
and accepts that with the next fetch. A member that dies says nothing, as if its machine had been lost: nobody
closes its connections, so what it has acquired stays locked until the locks end.
"""

from collections import deque
from dataclasses import dataclass, field

from kview.simulate.codes import ErrorCode
from kview.simulate.groups.consumer_records import Partitions
from kview.simulate.groups.share_group import LEFT_EPOCH
from kview.simulate.groups.share_results import ShareHeartbeat, ShareHeartbeatResult
from kview.simulate.sharing.in_flight import Acknowledgement, AcknowledgeType, Acquired, Wanted
from kview.simulate.sharing.leader import ShareFetch, ShareFetched
from kview.simulate.sharing.sessions import FINAL, NEW, Place
from kview.simulate.traffic.connections import Connections
from kview.simulate.traffic.coordinator_link import ANSWER_US, CoordinatorLink
from kview.simulate.traffic.member import HOST, Phase
from kview.simulate.traffic.metadata import ClientMetadata
from kview.simulate.traffic.reader import UNBOUNDED_RECORDS, Progress
from kview.simulate.uuids import in_base64, random_uuid
from kview.simulate.world import GroupSpec

STEP_US = 200_000
"""Interval at which a member acts."""
MAX_WAIT_MS = 500
"""fetch.max.wait.ms."""
FETCH_BYTES = 50 << 20
"""fetch.max.bytes."""
POLL_RECORDS = 500
"""max.poll.records, which is also the size of a batch of acquired records."""
_FOUND_ELSEWHERE = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_SERVER_ERROR,
)
_REJOIN = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.GROUP_ID_NOT_FOUND)


@dataclass(slots=True)
class _Session:
    """A session with the leader on one broker. `said` are the acknowledgements of the next fetch."""

    epoch: int = NEW
    is_asked: bool = False
    places: tuple[Place, ...] = ()
    said: dict[Place, list[Acknowledgement]] = field(default_factory=dict)
    held: deque[tuple[Place, Acquired]] = field(default_factory=deque)
    processed: int = 0
    """Records of the first of `held` that have been processed."""


class SimulatedShareMember:
    """One member of a share group."""

    def __init__(self, cluster: Connections, spec: GroupSpec, number: int, progress: Progress) -> None:
        self.spec = spec
        self.paused = False
        """Whether it fetches and processes nothing, although it goes on sending heartbeats."""
        self.client_id = f"{spec.name}-{number}"
        self.phase = Phase.OUTSIDE
        self.read_records = 0
        self._cluster = cluster
        self._kernel = cluster.kernel
        self._random = cluster.kernel.random(f"member/{self.client_id}")
        self.member_id = in_base64(random_uuid(self._random))
        self._metadata = ClientMetadata(cluster, spec.topics, self._random)
        self._link = CoordinatorLink(cluster, self._metadata, cluster.groups, spec.name, lambda: None)
        self._progress = progress
        self._epoch = 0
        self._is_beating = False
        self._beat_us = 0
        self._assigned: Partitions = {}
        self._sessions: dict[int, _Session] = {}
        self._until_us = self._kernel.now_us
        self._kernel.tick(self._random.randrange(STEP_US), self._step)

    def leave(self) -> None:
        """Accept what has been processed, release the rest, leave the group, and do nothing more."""
        if self.phase is not Phase.LEFT:
            for broker, session in self._sessions.items():
                if self._cluster.nodes.serves(broker) and session.epoch != NEW:
                    self._cluster.share_leaders.of(broker).fetch(
                        self._request(session, FINAL, broker), lambda result: None
                    )
            if self._epoch and self._link.reachable():
                left = ShareHeartbeat(self.spec.name, self.member_id, LEFT_EPOCH)
                self._link.coordinator().share_heartbeat(left, lambda result: None)
        self.phase = Phase.LEFT

    def die(self) -> None:
        """Do nothing more, without a word to anybody."""
        self.phase = Phase.LEFT

    # --- steps

    def _step(self) -> None:
        if self.phase is Phase.LEFT:
            return
        self._kernel.tick(STEP_US, self._step)
        self._metadata.renew()
        now_us = self._kernel.now_us
        if now_us >= self._beat_us and not self._is_beating and self._link.reachable():
            self._beat()
        elapsed_us, self._until_us = now_us - self._until_us, now_us
        if self.paused:
            return
        budget = UNBOUNDED_RECORDS
        if self.spec.records_per_second > 0:
            budget = round(self.spec.records_per_second * elapsed_us / 1_000_000)
        by_leader = self._by_leader()
        for broker in list(self._sessions):
            if not self._cluster.nodes.serves(broker):
                del self._sessions[broker]  # Its connection has ended, and with it the session.
        for broker, session in self._sessions.items():
            budget -= self._process(session, budget)
            if broker not in by_leader and not session.held and session.places:
                by_leader[broker] = ()
        for broker, places in by_leader.items():
            if self._cluster.nodes.serves(broker):
                self._fetch(broker, self._sessions.setdefault(broker, _Session()), places)
            else:
                self._metadata.refresh()

    def _by_leader(self) -> dict[int, tuple[Place, ...]]:
        """Return the member's partitions by the broker that leads them."""
        names = {self._metadata.topic_id(topic): topic for topic in self.spec.topics}
        found: dict[int, list[Place]] = {}
        for topic_id, partitions in self._assigned.items():
            topic = names.get(topic_id)
            for number in sorted(partitions) if topic is not None else ():
                leader = self._metadata.leader(topic or "", number)
                if leader >= 0:
                    found.setdefault(leader, []).append((topic_id, number))
                else:
                    self._metadata.refresh()
        return {broker: tuple(places) for broker, places in found.items()}

    # --- membership

    def _beat(self) -> None:
        self._is_beating = True
        is_new = not self._epoch
        coordinator = self._link.coordinator()
        request = ShareHeartbeat(
            self.spec.name,
            self.member_id,
            self._epoch,
            self.client_id,
            HOST,
            topics=self.spec.topics if is_new else None,
        )

        def answered(result: ShareHeartbeatResult) -> None:
            self._kernel.after(ANSWER_US + self._link.slow_us(), self._beaten, result)

        coordinator.share_heartbeat(request, answered)
        self._beat_us = self._kernel.now_us + 30_000_000  # If no answer comes.

    def _beaten(self, result: ShareHeartbeatResult) -> None:
        self._is_beating = False
        code, now_us = result.error_code, self._kernel.now_us
        self._beat_us = now_us + (result.heartbeat_interval_ms or 1_000) * 1000
        if code in _FOUND_ELSEWHERE:
            self._link.drop()
        elif code in _REJOIN:
            self._epoch, self._assigned, self.phase = 0, {}, Phase.OUTSIDE
        elif code is ErrorCode.NONE and self.phase is not Phase.LEFT:
            if not self._epoch:
                self._beat_us = now_us + 1_000_000  # It has no partitions yet.
            self._epoch, self.phase = result.member_epoch, Phase.ASSIGNED
            if result.assignment is not None:
                self._assigned = result.assignment

    # --- records

    def _process(self, session: _Session, budget: int) -> int:
        """Process up to `budget` of the records that a session has acquired, and return how many."""
        done = 0
        while session.held and done < budget:
            place, acquired = session.held[0]
            left = acquired.last - acquired.first + 1 - session.processed
            taken = min(left, budget - done)
            done += taken
            session.processed += taken
            if taken == left:
                session.held.popleft()
                session.processed = 0
                said = Acknowledgement(acquired.first, acquired.last, (AcknowledgeType.ACCEPT,))
                session.said.setdefault(place, []).append(said)
                if acquired.deliveries > 1:
                    self._progress.reread += acquired.last - acquired.first + 1
        self.read_records += done
        return done

    def _fetch(self, broker: int, session: _Session, places: tuple[Place, ...]) -> None:
        """Accept what has been processed, and fetch if nothing is left to process."""
        if session.is_asked or session.held:
            return
        session.is_asked = True
        epoch = session.epoch
        request = self._request(session, epoch, broker, places)
        session.places, session.said = places, {}

        def answered(result: ShareFetched) -> None:
            self._kernel.after(ANSWER_US, self._fetched, broker, session, result)

        self._cluster.share_leaders.of(broker).fetch(request, answered)

    def _request(
        self, session: _Session, epoch: int, broker: int, places: tuple[Place, ...] = ()
    ) -> ShareFetch:
        most = POLL_RECORDS
        if self.spec.records_per_second > 0:
            most = max(1, min(POLL_RECORDS, round(self.spec.records_per_second)))
        elif self.spec.records_per_second == 0:
            most = 10 * POLL_RECORDS  # as many fetches as fit into a step
        before = session.places if epoch != NEW else ()
        return ShareFetch(
            self.spec.name,
            self.member_id,
            epoch,
            self,
            MAX_WAIT_MS,
            1,
            FETCH_BYTES,
            Wanted(most, POLL_RECORDS),
            tuple(place for place in places if place not in before),
            tuple(place for place in before if place not in places) if epoch != FINAL else (),
            session.said if epoch != NEW else {},
            with_records=False,
        )

    def _fetched(self, broker: int, session: _Session, result: ShareFetched) -> None:
        if self.phase is Phase.LEFT or self._sessions.get(broker) is not session:
            return
        session.is_asked = False
        if result.error_code is not ErrorCode.NONE:
            del self._sessions[broker]  # The next step opens another one.
            return
        session.epoch += 1
        for row in result.partitions:
            session.held.extend((row.place, acquired) for acquired in row.acquired)
            if row.error[0] is not ErrorCode.NONE:
                self._metadata.refresh()
