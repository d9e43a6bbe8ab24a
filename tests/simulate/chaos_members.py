"""Members of a consumer group for the chaos tests, which go on whatever happens to their coordinator."""

from collections.abc import Mapping
from random import Random

from kview.simulate.cluster import Cluster
from kview.simulate.codes import ErrorCode
from kview.simulate.groups.consumer_group import ConsumerGroup
from kview.simulate.groups.consumer_results import ConsumerHeartbeat, ConsumerHeartbeatResult
from kview.simulate.world import OFFSETS_TOPIC
from tests.simulate.engine import go

GROUP = "members"
OUT = (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND)
"""Errors after which a member joins again, with nothing."""

AGAIN = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
)
SETTLES_WITHIN = 60
"""Heartbeats of each member, 2 s apart: more than a session lasts."""


class ChaosMember:
    """One member. It says everything again after an error, or if there was no answer."""

    def __init__(self, name: str, cluster: Cluster, random: Random) -> None:
        self.name = name
        self.has: Mapping[bytes, frozenset[int]] = {}
        self.epoch = 0
        self.leaves_at = 0.03
        """The share of heartbeats with which it leaves."""
        self._cluster = cluster
        self._random = random
        self._asked = 0
        self._answered = 0

    def beat(self) -> None:
        """Send a heartbeat to the coordinator, as some running broker knows it. Now and then, leave."""
        cluster = self._cluster
        running = [b for b in cluster.broker_ids() if cluster.nodes.serves(b)]
        if not running:
            return
        coordinator = cluster.groups(self._random.choice(running)).find(GROUP)
        if coordinator not in running:
            return
        everything = self.epoch == 0 or self._answered < self._asked
        leaves = self.epoch > 0 and self._random.random() < self.leaves_at
        self._asked += 1
        number, epoch = self._asked, -1 if leaves else self.epoch
        request = ConsumerHeartbeat(
            GROUP,
            self.name,
            epoch,
            regex=".*" if everything else None,
            rebalance_timeout_ms=5_000 if everything else -1,
            owned=dict(self.has),
        )
        cluster.groups(coordinator).consumer_heartbeat(
            request, lambda result: self._take(number, leaves, result)
        )

    def _take(self, number: int, leaves: bool, result: ConsumerHeartbeatResult) -> None:
        if number != self._asked:
            return  # An older answer. The member has asked again in the meantime.
        if result.error_code in OUT or (leaves and result.error_code is ErrorCode.NONE):
            self.epoch, self.has, self._answered = 0, {}, number
        elif result.error_code is ErrorCode.NONE:
            self.epoch, self._answered = result.member_epoch, number
            if result.assignment is not None:
                self.has = {topic: frozenset(numbers) for topic, numbers in result.assignment.items()}
        else:
            assert result.error_code in AGAIN, result


class ChaosMembers:
    """Three members of a group that reads all topics."""

    def __init__(self, cluster: Cluster, seed: int) -> None:
        self._cluster = cluster
        self._random = Random(seed)
        self._members = [ChaosMember(name, cluster, self._random) for name in "xyz"]

    def act(self) -> None:
        """Let one member act."""
        self._random.choice(self._members).beat()

    def check(self) -> None:
        """Check in a healed cluster that everything has one owner, and that the members know it."""
        cluster = self._cluster
        for member in self._members:
            member.leaves_at = 0
        for _ in range(SETTLES_WITHIN):
            for member in self._members:
                member.beat()
            go(cluster, 2.0)
        coordinator = cluster.groups(0).find(GROUP)
        (group,) = (group for group in cluster.groups(coordinator).groups() if group.name == GROUP)
        assert isinstance(group, ConsumerGroup)
        assert group.state == "Stable", group
        image = cluster.image(coordinator)
        wanted = {(image.topics[name].topic_id, number) for (name, number), _ in image.all_partitions()}
        assert OFFSETS_TOPIC in image.topics and group.owners.keys() == wanted
        has = [
            (topic, number)
            for member in self._members
            for topic, numbers in member.has.items()
            for number in numbers
        ]
        assert len(has) == len(wanted) and set(has) == wanted
