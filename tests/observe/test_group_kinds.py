"""Groups of every kind on a real cluster: what kview says of them is what their members and Kafka's own tools
say."""

import subprocess
import threading
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from kview.derive.view import Verdict, View
from kview.model.states import GroupType
from kview.model.units import UNKNOWN_ID
from kview.observe.observer import ObserveSettings
from kview.plain.documents import document
from tests.observe.group_members import RUNS, consumer, polling, share_consumer, simple_job
from tests.observe.observing import Watched, observing
from tests.observe.protocol_members import StreamsMember, join_as_worker, leave_as_worker
from tests.real_kafka.cluster import RealKafka
from tests.waiting import wait_until

SETTINGS = ObserveSettings(interval_s=0.5)
GROUPS = [kind for kind in GroupType if kind is not GroupType.UNKNOWN]
REBALANCED = {
    GroupType.CONSUMER: "consumer.group.ConsumerGroupCommand",
    GroupType.STREAMS: "streams.StreamsGroupCommand",
}
"""The kinds whose state changes while their members are given what to read, with Kafka's tool for each."""


class Scene:
    """A topic with traffic, and a group of each kind that reads it."""

    def __init__(self, kafka: RealKafka, stack: ExitStack) -> None:
        self.kafka, name, self.seen = kafka, uuid.uuid4().hex[:8], ""
        self.topic = f"orders-{name}"
        self.names: dict[GroupType, str] = {kind: f"{kind}-{name}" for kind in GROUPS}
        kafka.create_topic(self.topic, [[0, 1, 2], [1, 2, 0]])
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "linger.ms": 0})

        def produce() -> None:
            for partition in range(2):
                producer.produce(self.topic, b"x" * 50, partition=partition)
            producer.flush(10)
            threading.Event().wait(0.1)  # few enough that nobody falls behind where the machine is busy

        stack.enter_context(polling(produce, producer.flush))
        for kind in (GroupType.CLASSIC, GroupType.CONSUMER):
            stack.enter_context(consumer(kafka, kind, self.names[kind], self.topic))
        stack.enter_context(simple_job(kafka, self.names[GroupType.SIMPLE], self.topic, 2))
        stack.enter_context(share_consumer(kafka, self.names[GroupType.SHARE], self.topic))
        self.streams = StreamsMember(kafka, self.names[GroupType.STREAMS], self.topic)
        self._worker = join_as_worker(kafka, self.names[GroupType.CONNECT], RUNS)

    def row(self, view: View, kind: GroupType) -> int:
        """The row of the group of that kind, −1 if it is not listed."""
        found = np.flatnonzero(view.snapshot.groups.group == self.names[kind])
        return int(found[0]) if len(found) else -1

    def coordinators(self, view: View) -> set[int]:
        """The brokers that coordinate the groups."""
        return {int(view.snapshot.groups.coordinator[self.row(view, kind)]) for kind in self.names}

    def lives_without(self, broker: int, view: View) -> bool:
        """Whether other brokers coordinate all groups."""
        return broker not in self.coordinators(view)

    def settled(self, view: View) -> bool:
        """Whether every group has the verdict that it has in health. `seen` is what they have."""
        self.streams.beat()
        rows = [self.row(view, kind) for kind in self.names]
        if min(rows) < 0:
            self.seen = f"rows {rows}"
            return False
        streams = view.snapshot.members.group == self.names[GroupType.STREAMS]
        members, assigned = view.snapshot.groups.members[rows], view.snapshot.members.assigned[streams]
        verdicts = dict(zip(self.names, view.groups.verdict[rows].tolist(), strict=True))
        told = zip(verdicts.values(), view.groups.reason[rows], view.groups.lag[rows], strict=True)
        self.seen = f"members {members}, streams' {assigned}, {[*map(str, verdicts)]}: {[*told]}"
        if (members == UNKNOWN_ID).any() or assigned.tolist() != [2]:
            return False
        of_streams = verdicts.pop(GroupType.STREAMS)  # its member commits nothing, as it reads nothing
        known = bool(self.streams.tasks) and of_streams in (Verdict.OK, Verdict.UNKNOWN)
        return (
            known
            and verdicts.pop(GroupType.CONNECT) == Verdict.NONE
            and set(verdicts.values()) == {Verdict.OK}
        )

    def wait(self, watched: Watched, what: str) -> View:
        """Wait until the groups are settled. An error says what they were last."""
        try:
            return watched.until(self.settled, what)
        except AssertionError as late:
            raise AssertionError(f"{late}; {self.seen}") from late

    def end(self) -> None:
        """Delete the groups, of which the others on this cluster must not hear."""
        self.streams.leave()
        leave_as_worker(self.kafka, self.names[GroupType.CONNECT], self._worker)
        admin = AdminClient({"bootstrap.servers": self.kafka.bootstrap_servers})
        left = set(self.names.values())

        def delete() -> bool:
            refusals = []
            for name, done in admin.delete_consumer_groups(list(left), request_timeout=10).items():
                try:
                    done.result()
                except KafkaException as refused:  # a member has not left yet
                    if refused.args[0].code() != KafkaError.GROUP_ID_NOT_FOUND:
                        refusals.append((name, refused.args[0].str()))
                        continue
                left.discard(name)
            self.seen = f"refused: {refusals}"
            return not left

        try:
            wait_until(delete, "the end of the groups")
        except AssertionError as late:
            raise AssertionError(f"{late}; {self.seen}") from late


@pytest.fixture
def scene(real_kafka: RealKafka) -> Iterator[Scene]:
    with ExitStack() as stack:
        scene = Scene(real_kafka, stack)
        yield scene
    scene.end()


def test_every_kind_is_told_by_its_members_and_judged_as_what_it_is(scene: Scene) -> None:
    kafka = scene.kafka
    with observing([kafka.address(broker) for broker in kafka.broker_ids], SETTINGS) as observer:
        view = scene.wait(Watched(observer), "a verdict on each group")
    table, members = view.snapshot.groups, view.snapshot.members

    def of(kind: GroupType) -> tuple[str, str, int, str]:
        row = scene.row(view, kind)
        verdict = view.groups.verdict[row]
        return str(table.type[row]), str(table.state[row]), int(table.members[row]), str(verdict)

    assert of(GroupType.CLASSIC) == ("classic", "Stable", 1, "ok")
    assert of(GroupType.CONSUMER) == ("consumer", "Stable", 1, "ok")
    assert of(GroupType.SIMPLE) == ("simple", "Empty", 0, "ok")
    assert of(GroupType.SHARE) == ("share", "Stable", 1, "ok")
    assert of(GroupType.CONNECT) == ("connect", "Stable", 1, "none")
    assert of(GroupType.STREAMS)[0] == "streams" and of(GroupType.STREAMS)[2] == 1
    said = {name: [] for name in scene.names.values()} | {
        str(members.group[row]): [
            members.client_id[row], members.rack[row], int(members.assigned[row]), str(members.runs[row])
        ]
        for row in range(len(members))
    }  # fmt: skip
    names = scene.names
    assert said[names[GroupType.CONSUMER]] == ["consumer-app", "R1", 2, ""]
    assert said[names[GroupType.SHARE]] == ["share-app", "", 2, f"{scene.topic}: 0, 1"]
    assert said[names[GroupType.CONNECT]][2:] == [
        4, "audit-source: task 0; orders-sink: connector, tasks 0, 1"
    ]  # fmt: skip
    assert said[names[GroupType.STREAMS]][1:] == ["R1", 2, "active 0_0, 0_1"]
    epochs = table.epoch[[scene.row(view, kind) for kind in (GroupType.CONSUMER, GroupType.STREAMS)]]
    assert (epochs > 0).all()
    assert epochs[1] == scene.streams.epoch
    share = view.snapshot.share_offsets
    mine = share.group == names[GroupType.SHARE]
    assert share.partition[mine].tolist() == [0, 1] and (share.start_offset[mine] >= 0).all()
    assert not (view.snapshot.offsets.group == names[GroupType.SHARE]).any(), "it commits nothing"
    assert document(view)


@pytest.mark.slow  # a broker dies, sleeps and starts
def test_the_end_of_a_coordinator_stops_no_group(scene: Scene) -> None:
    """Each broker in turn is killed and started, or paused and resumed, until all groups are as before."""
    kafka = scene.kafka
    with observing([kafka.address(broker) for broker in kafka.broker_ids], SETTINGS) as observer:
        watched = Watched(observer)
        before = scene.wait(watched, "a verdict on each group")
        for broker in scene.coordinators(before):
            for end, begin in ((kafka.kill, kafka.restart), (kafka.pause, kafka.resume)):
                end(broker)
                watched.until(partial(scene.lives_without, broker), "other coordinators")
                begin(broker)
                watched.until(lambda view: bool(view.snapshot.brokers.answers.all()), "every answer")
        scene.wait(watched, "the same verdicts again")
    wrong = {
        (kind, view.groups.verdict[row], view.groups.reason[row])
        for view in watched.views
        for kind in scene.names
        if (row := scene.row(view, kind)) >= 0
        and view.groups.verdict[row] in (Verdict.STOPPED, Verdict.STUCK)
    }
    assert not wrong
    assert all(scene.row(view, kind) >= 0 for view in watched.views[-20:] for kind in scene.names)


@pytest.mark.slow  # each of Kafka's tools is a JVM
def test_kafkas_tools_say_the_same(scene: Scene, kafka_runtime: tuple[Path, Path]) -> None:
    kafka, (java, jars) = scene.kafka, kafka_runtime

    def tool(name: str, *arguments: str) -> str:
        command = [str(java), "-Xmx192m", "-XX:TieredStopAtLevel=1", "-Dlog4j2.level=off", "-cp", f"{jars}/*"]
        command += [f"org.apache.kafka.tools.{name}", "--bootstrap-server", kafka.bootstrap_servers]
        return subprocess.run([*command, *arguments], capture_output=True, text=True, check=True).stdout

    with observing([kafka.address(broker) for broker in kafka.broker_ids], SETTINGS) as observer:
        watched = Watched(observer)

        def steady(view: View) -> bool:
            scene.streams.beat()
            states = [str(view.snapshot.groups.state[scene.row(view, kind)]) for kind in REBALANCED]
            return min(scene.row(view, kind) for kind in GROUPS) >= 0 and states == ["Stable"] * len(states)

        watched.until(steady, "every group")
        rows = [line.split() for line in tool("GroupsCommand", "--list").splitlines()]
        listed = {row[0]: row[1].lower() for row in rows if row}
        for kind, name in scene.names.items():
            told = listed[name]
            assert told == ("classic" if kind in (GroupType.SIMPLE, GroupType.CONNECT) else kind.value)
        share = ("--describe", "--group", scene.names[GroupType.SHARE])
        assert "share-app" in tool("consumer.group.ShareGroupCommand", *share, "--members")
        for kind, command in REBALANCED.items():
            scene.streams.beat()
            assert "Stable" in tool(command, "--describe", "--group", scene.names[kind], "--state").split()
