"""A member of a streams group that a test controls heartbeat by heartbeat."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kview.simulate.codes import ErrorCode
from kview.simulate.groups.coordinator import GroupCoordinator
from kview.simulate.groups.streams_group import StreamsGroup
from kview.simulate.groups.streams_records import Subtopology, TaskKey, TopicInfo, TopologyValue
from kview.simulate.groups.streams_results import StreamsHeartbeat, StreamsHeartbeatResult
from tests.simulate.groups_host import Offsets

LOG = "g-counts-changelog"


def counting(*topics: str) -> TopologyValue:
    """A topology of two subtopologies, of which the second one has state."""
    log = TopicInfo(LOG, 0, 0, (("cleanup.policy", "compact"),))
    return TopologyValue(
        0,
        (
            Subtopology("0", topics, (), (), (), (), ()),
            Subtopology("1", ("u",), (), (log,), (), (), ()),
        ),
    )


@dataclass
class StreamsClient:
    """A member that has what it was given, once it says so. Its epoch is that of the last answer."""

    offsets: Offsets
    coordinator: GroupCoordinator
    member_id: str
    process: str = ""
    epoch: int = 0
    has: Mapping[TaskKey, frozenset[int]] = field(default_factory=dict)
    answers: list[StreamsHeartbeatResult] = field(default_factory=list)

    def send(self, epoch: int, **fields: Any) -> None:
        """Send a heartbeat."""
        request = StreamsHeartbeat("g", self.member_id, epoch, "client", "/127.0.0.1", **fields)
        self.coordinator.streams_heartbeat(request, self.answers.append)

    def ask(self, epoch: int, **fields: Any) -> StreamsHeartbeatResult:
        """Send a heartbeat, wait for its answer, and take over what it gives."""
        before = len(self.answers)
        self.send(epoch, **fields)
        self.offsets.run(0.01)
        assert len(self.answers) == before + 1, "answered once"
        result = self.answers[-1]
        if result.error_code is ErrorCode.NONE:
            self.epoch = result.member_epoch
            if result.tasks is not None:
                self.has = {key: frozenset(numbers) for key, numbers in result.tasks.items()}
        return result

    def join(self, topology: TopologyValue | None = None, **fields: Any) -> StreamsHeartbeatResult:
        """Join with a topology."""
        self.has = {}
        process = self.process or f"process-{self.member_id}"
        asked = {"rebalance_timeout_ms": 60_000, "process_id": process, **fields}
        return self.ask(0, owned={}, topology=topology or counting("t"), **asked)

    def beat(self, **fields: Any) -> StreamsHeartbeatResult:
        """Say what the member has. Nothing else has changed."""
        return self.ask(self.epoch, owned=dict(self.has), **fields)

    def leave(self) -> StreamsHeartbeatResult:
        result = self.ask(-1)
        self.epoch, self.has = 0, {}
        return result


def group_of(coordinator: GroupCoordinator) -> StreamsGroup:
    """Return the group itself."""
    group = next(group for group in coordinator.groups() if group.name == "g")
    assert isinstance(group, StreamsGroup)
    return group
