"""All simulated clients of a cluster."""

from collections.abc import Sequence
from itertools import count

from msgspec.structs import replace

from kview.simulate.traffic.connections import Connections
from kview.simulate.traffic.incremental_member import IncrementalMember
from kview.simulate.traffic.member import SimulatedMember
from kview.simulate.traffic.producer import SimulatedProducer
from kview.simulate.traffic.reader import Progress
from kview.simulate.traffic.share_member import SimulatedShareMember
from kview.simulate.traffic.warm import WarmGroup
from kview.simulate.world import CONSUMER, SHARE, GroupSpec, ProducerSpec

AnyMember = SimulatedMember | SimulatedShareMember


class Traffic:
    """All producers by client id, and the members, description and progress of groups by group name.

    `members` are those of consumer groups, `share_members` those of share groups.
    """

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self.producers: dict[str, SimulatedProducer] = {}
        self.members: dict[str, list[SimulatedMember]] = {}
        self.share_members: dict[str, list[SimulatedShareMember]] = {}
        self.groups: dict[str, GroupSpec] = {}
        self.progress: dict[str, Progress] = {}

    def start(
        self,
        producers: Sequence[ProducerSpec],
        groups: Sequence[WarmGroup],
        shares: Sequence[GroupSpec] = (),
    ) -> None:
        """Start producers and groups that appear to have been running for a while, and share groups, whose
        members join."""
        for producer in producers:
            self.add_producer(producer)
        for group in groups:
            self._group(group.spec)
            if group.spec.protocol == CONSUMER:
                for _ in range(group.spec.members):
                    self.add_member(group.spec)
            for i, warm in enumerate(group.members):
                member = self._add_consumer(group.spec)
                member.resume(warm.member_id, group.generation, list(warm.owned), leads=i == 0)
        for spec in shares:
            self._group(spec)
            for _ in range(spec.members):
                self.add_member(spec)

    def add_producer(self, spec: ProducerSpec) -> SimulatedProducer:
        """Add a producer, in place of one with the same client id."""
        producer = self.producers[spec.client_id] = SimulatedProducer(self._connections, spec)
        return producer

    def take_over(self, name: str, records_per_second: float) -> SimulatedProducer:
        """Add a second instance of a transactional producer, which takes its transactional id over.

        Its client id is that of the first, numbered: `shop-2`.
        """
        spec = self.producers[name].spec
        first = spec.transactional_id or spec.client_id
        for producer in self.producers.values():
            if producer.transactions is not None and producer.transactions.name == first:
                producer.transactions.is_replaced = True
        number = next(n for n in count(2) if f"{first}-{n}" not in self.producers)
        return self.add_producer(
            replace(
                spec,
                client_id=f"{first}-{number}",
                transactional_id=first,
                records_per_second=records_per_second,
            )
        )

    def all_members(self) -> dict[str, list[AnyMember]]:
        """Return the members of all groups by group name."""
        return {
            name: [*self.members.get(name, ()), *self.share_members.get(name, ())] for name in self.groups
        }

    def add_member(self, spec: GroupSpec) -> AnyMember:
        """Add a member to a group. The member still has to join."""
        if spec.protocol != SHARE:
            return self._add_consumer(spec)
        self._group(spec)
        members = self.share_members[spec.name]
        member = SimulatedShareMember(self._connections, spec, len(members), self.progress[spec.name])
        members.append(member)
        return member

    def _add_consumer(self, spec: GroupSpec) -> SimulatedMember:
        self._group(spec)
        members = self.members[spec.name]
        kind = IncrementalMember if spec.protocol == CONSUMER else SimulatedMember
        member = kind(self._connections, spec, len(members), self.progress[spec.name])
        members.append(member)
        return member

    def _group(self, spec: GroupSpec) -> None:
        """Make room for a group, which may be a new one."""
        self.groups.setdefault(spec.name, spec)
        self.progress.setdefault(spec.name, Progress())
        if spec.protocol == SHARE:
            self.share_members.setdefault(spec.name, [])
        else:
            self.members.setdefault(spec.name, [])
