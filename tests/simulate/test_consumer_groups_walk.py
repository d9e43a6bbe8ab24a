"""Random walks of a consumer group: whatever its members do, no partition has two owners, a new coordinator
has the same group, and in the end everything has an owner."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kview.simulate.codes import ErrorCode
from kview.simulate.groups.consumer_group import ConsumerGroup
from kview.simulate.groups.consumer_protocol import (
    Subscription,
    by_topic,
    decode_assignment,
    encode_subscription,
)
from kview.simulate.groups.group import Group
from kview.simulate.groups.results import GroupProtocol, LeavingMember
from tests.simulate.consumer_client import ConsumerClient
from tests.simulate.group_invariants import owned_twice
from tests.simulate.groups_host import Client, Offsets

MEMBERS = ("a", "b", "c", "d")
KINDS = (
    *("beat", "beat", "beat", "quiet", "lost", "join", "leave", "away", "crash", "topics", "regex", "range"),
    *("grow", "wait", "minute", "move", "classic", "classic beat", "classic leave"),
)
STEPS = st.tuples(st.sampled_from(KINDS), st.sampled_from(MEMBERS), st.integers(0, 3))
TOPICS = (("t",), ("u",), ("t", "u"), ("t", "later"))


class Walk:
    """The members of one group, of which `b` is static and `old` uses the classic protocol."""

    def __init__(self) -> None:
        self.offsets = Offsets()
        self.offsets.set_topic("u", 3)
        for broker in (0, 1):
            self.offsets.coordinator(broker)
        self.members = {name: self._member(name) for name in MEMBERS}
        self.old = Client(self.coordinator, name="old")
        self.old_has: list[tuple[str, int]] = []
        self.incarnation = 0

    @property
    def coordinator(self):  # type: ignore[no-untyped-def]
        return self.offsets.coordinators[self.offsets.leader]

    @property
    def group(self) -> ConsumerGroup | Group | None:
        return next(iter(self.coordinator.groups()), None)

    def _member(self, name: str) -> ConsumerClient:
        return ConsumerClient(self.offsets, self.coordinator, name, instance="one" if name == "b" else None)

    def step(self, what: str, name: str, number: int) -> None:
        member = self.members[name]
        member.coordinator = self.old.coordinator = self.coordinator
        if what in ("beat", "range"):
            self.beat(member, **({"assignor": "range"} if what == "range" else {}))
        elif what == "quiet":
            self.take(member, member.ask(None, owned=None).error_code)
        elif what == "lost" and member.epoch > 0:
            member.send(owned=dict(member.has))
            self.offsets.run(0.01)
            member.lost = True
        elif what == "join":
            self.join(member, topics=TOPICS[number])
        elif what == "regex":
            self.join(member, regex=(".*", "t|u", "l.*", "x")[number])
        elif what == "topics" and member.epoch > 0:
            self.beat(member, topics=TOPICS[number])
        elif what in ("leave", "away") and member.epoch > 0:
            member.leave(-2 if what == "away" and member.instance else -1)
            member.has = {}
        elif what == "crash":
            self.incarnation += 1
            self.members[name] = self._member(f"{name}{self.incarnation}")
        elif what == "grow":
            topic = ("u", "later", "later", "v")[number]
            now = self.offsets.partitions.get(topic, 0) if topic in self.offsets.topics else 0
            self.offsets.set_topic(topic, 0 if now > 5 else now + number + 1)
            self.coordinator.topics_changed()
        elif what == "wait":
            self.offsets.run(1.0)
        elif what == "minute":
            self.offsets.run((11, 30, 46, 61)[number])
        elif what == "move":
            self.move()
        elif what.startswith("classic"):
            self.classic(what)

    def join(self, member: ConsumerClient, **fields: object) -> None:
        """Join again. While the old session lasts, a static member cannot, and keeps what it has."""
        had, member.has = member.has, {}
        if member.join(**fields).error_code is not ErrorCode.NONE:
            member.has = had

    def beat(self, member: ConsumerClient, **fields: object) -> None:
        """A member that is told it is out joins again, as clients do."""
        if member.epoch > 0:
            self.take(member, member.beat(**fields).error_code)

    def take(self, member: ConsumerClient, code: ErrorCode) -> None:
        if code in (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND):
            member.has = {}
            member.join()
        else:
            known = (ErrorCode.NONE, ErrorCode.INVALID_REQUEST, ErrorCode.FENCED_INSTANCE_ID)
            assert code in known, code

    def classic(self, what: str) -> None:
        old = self.old
        if what == "classic leave":
            self.coordinator.leave("g", [LeavingMember(old.member_id)])
            old.member_id, self.old_has = "", []
        elif what == "classic" or (old.joined and old.heartbeat() is not ErrorCode.NONE):
            subscription = Subscription(("t",), by_topic(self.old_has))
            old.protocols = (GroupProtocol("range", encode_subscription(subscription)),)
            old.join()
            self.offsets.run(4)
            if not old.joined or old.joined[-1].error_code is not ErrorCode.NONE:
                old.member_id, self.old_has = "", []
                return
            led = old.result.leader == old.member_id
            old.sync(((old.member_id, b""),) if led else ())
            self.offsets.run(0.01)
            answer = old.synced[-1]
            self.old_has = decode_assignment(answer.assignment) if not answer.error_code else []

    def move(self) -> None:
        """A new coordinator has the same group as the old one."""
        self.offsets.run(0.01)
        before = self.group
        self.offsets.move(1 - self.offsets.leader)
        self.offsets.run(0.1)
        after = self.group
        if isinstance(before, ConsumerGroup):
            assert isinstance(after, ConsumerGroup)
            for attribute in ("epoch", "metadata_hash", "target_epoch", "target_calculated_ms", "members",
                              "static_members", "targets", "regexes", "owners", "topic_counts",
                              "regex_counts"):  # fmt: skip
                assert getattr(before, attribute) == getattr(after, attribute), attribute

    def check(self) -> None:
        group = self.group
        if group is not None:
            wrong = owned_twice(group) if isinstance(group, ConsumerGroup) else None
            assert wrong is None, wrong

    def settle(self) -> None:
        """Let everybody who is in the group go on until nothing changes, and check that all is given out."""
        for _ in range(40):
            self.offsets.run(2)
            for name in MEMBERS:
                member = self.members[name]
                member.coordinator = self.coordinator
                self.beat(member)
                self.check()
        group = self.group
        if not isinstance(group, ConsumerGroup):
            return
        assert group.state in ("Stable", "Empty")
        if group.members:
            topics = self.coordinator._host.metadata().topics
            read = [topics[name] for name in group.subscribed_topics() if name in topics]
            wanted = {(topic.topic_id, n) for topic in read for n in range(len(topic.partitions))}
            assert group.owners.keys() == wanted
            has = {(t, n) for member in self.members.values() if member.member_id in group.members
                   for t, numbers in member.has.items() for n in numbers}  # fmt: skip
            assert has == wanted, "and the members know it"


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(STEPS, min_size=5, max_size=40))
def test_no_walk_breaks_a_group(steps: list[tuple[str, str, int]]) -> None:
    walk = Walk()
    for what, name, number in steps:
        walk.step(what, name, number)
        walk.check()
    walk.settle()
