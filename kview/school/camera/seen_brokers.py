"""What an observer would know of each broker: whether it answers, its state, and since when."""

from collections.abc import Mapping
from dataclasses import dataclass

from kview.model.failures import FailureKind, Part
from kview.model.snapshot import Failure
from kview.model.states import BrokerState
from kview.model.units import UNKNOWN, UNKNOWN_ID
from kview.simulate.metadata import BrokerImage, MetadataImage
from kview.simulate.nodes import Nodes

LATE_MS = 900
"""A broker that owes an answer for this long is late, and does not count as answering."""
SILENT_MS = 1_500
"""A broker that owes an answer for this long is silent."""
GRACE_MS = 3_000
"""How long a broker that is listed again may take to answer."""
ROUND_TRIP_US = 1_000
"""A broker's latency without a fault."""
HOST, FIRST_PORT = "127.0.0.1", 19_092


@dataclass(slots=True)
class BrokerSeen:
    """What is known of one broker. Times are epoch ms."""

    id: int
    rack: str
    state: str = ""
    since_ms: int = UNKNOWN
    answered_ms: int = UNKNOWN
    asked_ms: int = UNKNOWN
    """When the first unanswered request was sent, UNKNOWN while the broker answers."""
    returned_ms: int = UNKNOWN
    """When the broker was listed again, UNKNOWN once it has answered."""
    error: FailureKind = FailureKind.NONE
    last_fetch_ms: int = UNKNOWN
    disk_bytes: int = UNKNOWN
    session_timeout_ms: int = UNKNOWN
    slow_us: int = 0

    @property
    def failing(self) -> bool:
        """Whether requests to it have failed."""
        return self.error is not FailureKind.NONE

    def answers(self, now_ms: int) -> bool:
        """Whether it answers, and owes no answer for long."""
        if self.answered_ms == UNKNOWN or self.failing or self.state == BrokerState.GONE:
            return False
        return self.asked_ms == UNKNOWN or now_ms - self.asked_ms < LATE_MS

    def latency_us(self, now_ms: int) -> int:
        """Return how long it takes to answer: so far, if it owes an answer, UNKNOWN if its port refuses."""
        if self.state in (BrokerState.FENCED, BrokerState.GONE, "") or self.error is FailureKind.REFUSED:
            return UNKNOWN
        waiting_us = 0 if self.asked_ms == UNKNOWN else (now_ms - self.asked_ms) * 1000
        return max(ROUND_TRIP_US + self.slow_us, waiting_us)

    def row(self, now_ms: int) -> tuple[object, ...]:
        """Return its row of `Brokers`."""
        return (
            self.id,
            HOST,
            FIRST_PORT + self.id,
            self.rack,
            self.state,
            self.since_ms,
            self.answers(now_ms),
            self.answered_ms,
            self.last_fetch_ms,
            self.latency_us(now_ms),
            self.error.value,
            self.disk_bytes,
            self.session_timeout_ms,
            "",
        )


class SeenBrokers:
    """All brokers by id, as they were last seen."""

    def __init__(self, nodes: Nodes, session_timeout_ms: int) -> None:
        self._nodes = nodes
        self._session_timeout_ms = session_timeout_ms
        self.by_id = {id: BrokerSeen(id, nodes.by_id[id].rack) for id in nodes.broker_ids}

    def ask(self, now_ms: int) -> frozenset[int]:
        """Send every broker that is not gone a request, and return the brokers that answer at once.

        A broker that is as slow as a silent one counts as silent.
        """
        answering = set()
        for id, seen in self.by_id.items():
            seen.slow_us = self._nodes.by_id[id].slow_us
            if seen.state == BrokerState.GONE:
                seen.asked_ms, seen.error = now_ms, FailureKind.NONE
                continue
            if self._nodes.serves(id) and seen.slow_us < SILENT_MS * 1000:
                answering.add(id)
                seen.answered_ms, seen.asked_ms, seen.error = now_ms, UNKNOWN, FailureKind.NONE
                seen.session_timeout_ms = self._session_timeout_ms
                continue
            if seen.asked_ms == UNKNOWN:
                seen.asked_ms = now_ms
            if self._nodes.refuses(id):
                seen.error = FailureKind.REFUSED
            elif now_ms - seen.asked_ms >= SILENT_MS or seen.failing:
                seen.error = FailureKind.SILENT
        return frozenset(answering)

    def update(self, image: MetadataImage, fetched_ms: Mapping[int, int], now_ms: int) -> None:
        """Set the states of the brokers by the metadata that was answered, and by what they answer.

        `fetched_ms` is when the quorum last saw a node fetch.
        """
        first = all(seen.state == "" for seen in self.by_id.values())
        for id, seen in self.by_id.items():
            seen.last_fetch_ms = max(seen.last_fetch_ms, fetched_ms.get(id, UNKNOWN))
            state, since_ms = self._state(seen, image.brokers.get(id), now_ms)
            if state != seen.state:
                seen.state = state
                # Nobody knows since when a broker has been fenced that was so at first and has answered.
                hidden = first and state is BrokerState.FENCED and seen.answered_ms != UNKNOWN
                seen.since_ms = UNKNOWN if hidden else since_ms

    def _state(self, seen: BrokerSeen, listed: BrokerImage | None, now_ms: int) -> tuple[BrokerState, int]:
        if listed is None or listed.fenced:
            seen.returned_ms = UNKNOWN
            return BrokerState.GONE if listed is None else BrokerState.FENCED, now_ms
        if not seen.failing and (seen.asked_ms == UNKNOWN or seen.state == BrokerState.UP):
            seen.returned_ms = UNKNOWN
            return BrokerState.UP, now_ms
        if seen.state in (BrokerState.FENCED, BrokerState.GONE):
            seen.returned_ms = now_ms
        if seen.returned_ms != UNKNOWN:
            late = seen.failing and now_ms - seen.returned_ms >= GRACE_MS
            return (BrokerState.SILENT if late else BrokerState.STARTING), seen.returned_ms
        return (BrokerState.SILENT, seen.asked_ms) if seen.failing else (BrokerState.STARTING, now_ms)

    def failures(self) -> tuple[Failure, ...]:
        """Return a failure for each broker that does not answer."""
        return tuple(
            Failure(Part.BROKER, seen.id, seen.error, UNKNOWN_ID, seen.answered_ms)
            for seen in self.by_id.values()
            if seen.failing
        )

    def rows(self, now_ms: int) -> list[tuple[object, ...]]:
        """Return the rows of `Brokers`."""
        return [seen.row(now_ms) for seen in self.by_id.values()]
