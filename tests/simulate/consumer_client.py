"""A member of a consumer group that a test controls heartbeat by heartbeat."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kview.simulate.codes import ErrorCode
from kview.simulate.groups.consumer_group import ConsumerGroup
from kview.simulate.groups.consumer_results import ConsumerHeartbeat, ConsumerHeartbeatResult
from kview.simulate.groups.coordinator import GroupCoordinator
from kview.simulate.groups.results import CommitRequest, CommitResult, OffsetToCommit
from tests.simulate.groups_host import Offsets

T = b"t" * 16
"""The id of the topic `t`, which has ten partitions."""


@dataclass
class ConsumerClient:
    """A member that has what it was given, once it says so. Its epoch is that of the last answer."""

    offsets: Offsets
    coordinator: GroupCoordinator
    member_id: str
    group: str = "g"
    instance: str | None = None
    epoch: int = 0
    has: Mapping[bytes, frozenset[int]] = field(default_factory=dict)
    subscription: Mapping[str, Any] = field(default_factory=dict)
    lost: bool = False
    """Whether the last answer was lost. Then a client says everything again."""
    answers: list[ConsumerHeartbeatResult] = field(default_factory=list)

    def send(self, epoch: int | None = None, **fields: Any) -> None:
        """Send a heartbeat."""
        wanted = {name: fields[name] for name in ("topics", "regex") if fields.get(name) is not None}
        self.subscription = wanted or self.subscription
        self.coordinator.consumer_heartbeat(
            ConsumerHeartbeat(
                self.group,
                self.member_id,
                self.epoch if epoch is None else epoch,
                "client",
                "/127.0.0.1",
                instance_id=self.instance,
                **fields,
            ),
            self.answers.append,
        )

    def ask(self, epoch: int | None = None, **fields: Any) -> ConsumerHeartbeatResult:
        """Send a heartbeat, wait for its answer, and take over what it gives."""
        before = len(self.answers)
        self.send(epoch, **fields)
        self.offsets.run(0.01)
        assert len(self.answers) == before + 1, "answered once"
        result = self.answers[-1]
        if result.error_code is ErrorCode.NONE:
            self.epoch = result.member_epoch
            if result.assignment is not None:
                self.has = {topic: frozenset(numbers) for topic, numbers in result.assignment.items()}
        return result

    def join(self, *topics: str, **fields: Any) -> ConsumerHeartbeatResult:
        """Join with these topics, by default `t`."""
        subscription = {} if "regex" in fields else {"topics": topics or ("t",)}
        return self.ask(0, **{"rebalance_timeout_ms": 60_000, "owned": {}, **subscription, **fields})

    def beat(self, **fields: Any) -> ConsumerHeartbeatResult:
        """Say what the member has. Nothing else has changed."""
        everything = {"rebalance_timeout_ms": 60_000, **self.subscription} if self.lost else {}
        self.lost = False
        return self.ask(**{"owned": dict(self.has), **everything, **fields})

    def leave(self, epoch: int = -1) -> ConsumerHeartbeatResult:
        """Leave, for good or (−2) for a while."""
        result = self.ask(epoch)
        self.epoch = 0
        return result

    @property
    def numbers(self) -> list[int]:
        """The partitions of `t` that the member has."""
        return sorted(self.has.get(T, ()))

    def commit(self, partition: int = 0, epoch: int | None = None, **fields: Any) -> ErrorCode:
        """Commit an offset of `t`, and return the answer."""
        answers: list[CommitResult] = []
        at = self.epoch if epoch is None else epoch
        offset = (OffsetToCommit("t", partition, 7),)
        self.coordinator.commit(
            CommitRequest(self.group, offset, at, self.member_id, **fields), answers.append
        )
        self.offsets.run(0.01)
        return answers[0].error_codes[0]


def group_of(coordinator: GroupCoordinator, name: str = "g") -> ConsumerGroup:
    """Return the group itself."""
    group = next(group for group in coordinator.groups() if group.name == name)
    assert isinstance(group, ConsumerGroup)
    return group
