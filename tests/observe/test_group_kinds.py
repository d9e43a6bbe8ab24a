"""Groups of every kind on a real cluster: what kview says of them is what their members and Kafka's own tools
say."""

import json
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

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
from tests.real_kafka.tools import Tools
from tests.waiting import wait_until

SETTINGS = ObserveSettings(interval_s=0.5)
GROUPS = [kind for kind in GroupType if kind is not GroupType.UNKNOWN]
ASSIGNMENT_EPOCHS = {
    GroupType.CONSUMER: "TARGET-ASSIGNMENT-EPOCH",
    GroupType.STREAMS: "TARGET-ASSIGNMENT-EPOCH",
    GroupType.SHARE: "ASSIGNMENT-EPOCH",
}
"""The kinds that have epochs, with what Kafka's tools call that of the assignment."""
Figures = dict[tuple[str, int], tuple[int | None, ...]]
"""Figures by topic and partition."""


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

        self._producer, self._writing = producer, stack.enter_context(ExitStack())
        self._writing.enter_context(polling(produce, producer.flush))
        ends: dict[GroupType, ExitStack] = {kind: stack.enter_context(ExitStack()) for kind in GROUPS}
        self._ends = ends
        for kind in (GroupType.CLASSIC, GroupType.CONSUMER):
            ends[kind].enter_context(consumer(kafka, kind, self.names[kind], self.topic))
        job = simple_job(kafka, self.names[GroupType.SIMPLE], self.topic, 2)
        ends[GroupType.SIMPLE].enter_context(job)
        share = share_consumer(kafka, self.names[GroupType.SHARE], self.topic)
        ends[GroupType.SHARE].enter_context(share)
        self.streams = StreamsMember(kafka, self.names[GroupType.STREAMS], self.topic)
        self._worker = join_as_worker(kafka, self.names[GroupType.CONNECT], RUNS)

    def stop_writing(self, records: int, but: Sequence[GroupType]) -> None:
        """End what writes all the time, and what reads in these groups, so that so many records of each
        partition wait for them."""
        self._writing.close()
        for kind in but:
            self._ends[kind].close()
        for number in range(2 * records):
            self._producer.produce(self.topic, b"x", partition=number % 2)
        self._producer.flush(10)

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
        share = view.snapshot.share_offsets
        begun = share.start_offset[share.group == self.names[GroupType.SHARE]]
        members, assigned = view.snapshot.groups.members[rows], view.snapshot.members.assigned[streams]
        verdicts = dict(zip(self.names, view.groups.verdict[rows].tolist(), strict=True))
        told = zip(verdicts.values(), view.groups.reason[rows], view.groups.lag[rows], strict=True)
        self.seen = (
            f"members {members}, streams' {assigned}, {[*map(str, verdicts)]}: {[*told]}, share {begun}"
        )
        if (members == UNKNOWN_ID).any() or assigned.tolist() != [2] or (begun < 0).any():
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


# -- what Kafka's own tools say


class Told:
    """What Kafka's tools say of groups."""

    def __init__(self, scene: Scene, runtime: tuple[Path, Path]) -> None:
        self._scene = scene
        self._tools = Tools(runtime, scene.kafka.bootstrap_servers)

    def rows(self, tool: str, *arguments: str) -> list[dict[str, str]]:
        """Return the rows of the table that a tool prints, by the titles of its columns."""
        self._scene.streams.beat()
        printed = self._tools.tool(tool, *arguments).splitlines()
        head, *rows = [line for line in printed if line.startswith(("GROUP", *self._scene.names.values()))]
        titles = head.split()
        return [dict(zip(titles, row.split(maxsplit=len(titles) - 1), strict=False)) for row in rows]

    def of(self, kind: GroupType, *arguments: str) -> list[dict[str, str]]:
        """Return the rows of a description of the group of that kind."""
        return self.rows(TOOLS[kind], "--describe", "--group", self._scene.names[kind], *arguments)

    def offsets(self, kind: GroupType, *titles: str) -> Figures:
        """Return the figures in these columns of each partition."""
        return {
            (row["TOPIC"], int(row["PARTITION"])): tuple(number(row[title]) for title in titles)
            for row in self.of(kind, *(["--offsets", "--verbose"] if kind is GroupType.STREAMS else []))
        }

    def state(self, kind: GroupType, assignment_epoch: str) -> tuple[Any, ...]:
        """Return a group's state, its epoch, that of its assignment, and how many members it has."""
        (row,) = self.of(kind, "--state", "--verbose")
        return row["STATE"], *(int(row[name]) for name in ("GROUP-EPOCH", assignment_epoch, "#MEMBERS"))


TOOLS = {
    GroupType.CLASSIC: "consumer.group.ConsumerGroupCommand",
    GroupType.SIMPLE: "consumer.group.ConsumerGroupCommand",
    GroupType.CONSUMER: "consumer.group.ConsumerGroupCommand",
    GroupType.SHARE: "consumer.group.ShareGroupCommand",
    GroupType.STREAMS: "streams.StreamsGroupCommand",
}


def number(printed: str) -> int | None:
    """A figure of a tool, None for what it does not know."""
    return None if printed == "-" else int(printed)


def told(view: View, scene: Scene, kind: GroupType) -> dict[str, Any]:
    """The group of that kind, as kview's JSON tells it."""
    groups = json.loads(document(view))["groups"]
    (group,) = (row for row in groups if row["group"] == scene.names[kind])
    return dict(group)


def figures_told(partitions: list[dict[str, Any]], *names: str) -> Figures:
    """These figures of each partition."""
    return {(row["topic"], row["partition"]): tuple(row[name] for name in names) for row in partitions}


def state_told(group: dict[str, Any]) -> tuple[Any, ...]:
    """What `Tools.state` says, as kview tells it."""
    return tuple(group[name] for name in ("state", "epoch", "assignment_epoch", "members"))


READERS = GroupType.CLASSIC, GroupType.SIMPLE, GroupType.CONSUMER, GroupType.STREAMS
"""The kinds that commit offsets of partitions."""


def offsets_of_kview(view: View, scene: Scene) -> dict[GroupType, Figures]:
    """What each group has read of each partition, by kview."""
    names = "committed", "log_end_offset", "lag_records"
    read = {kind: figures_told(told(view, scene, kind)["partitions"], *names) for kind in READERS}
    share = told(view, scene, GroupType.SHARE)["share_partitions"]
    return read | {GroupType.SHARE: figures_told(share, "start_offset", "lag_records")}


def offsets_of_kafka(tools: Told) -> dict[GroupType, Figures]:
    """The same, by Kafka's tools."""
    read = {
        kind: tools.offsets(
            kind, "CURRENT-OFFSET", "LOG-END-OFFSET", "OFFSET-LAG" if kind is GroupType.STREAMS else "LAG"
        )
        for kind in READERS
    }
    return read | {GroupType.SHARE: tools.offsets(GroupType.SHARE, "START-OFFSET", "LAG")}


def kinds_and_members_are_told_as_by(tools: Told, scene: Scene, view: View) -> None:
    """Compare the kind of each group, and the only member of the consumer, share and streams groups."""
    listed = {row["GROUP"]: row["TYPE"].lower() for row in tools.rows("GroupsCommand", "--list")}
    of_classic = GroupType.CLASSIC, GroupType.SIMPLE, GroupType.CONNECT
    for kind, name in scene.names.items():
        assert listed[name] == (GroupType.CLASSIC if kind in of_classic else kind)
    both = f"{scene.topic}:0,1"

    (member,) = told(view, scene, GroupType.SHARE)["member_list"]
    (row,) = tools.of(GroupType.SHARE, "--members", "--verbose")
    assert row["ASSIGNMENT"].strip() == both and member["runs"] == f"{scene.topic}: 0, 1"
    assert [row["CONSUMER-ID"], row["CLIENT-ID"], row["#PARTITIONS"]] == [
        member["member_id"], member["client_id"], str(member["assigned"])
    ]  # fmt: skip

    group = told(view, scene, GroupType.CONSUMER)
    (member,) = group["member_list"]
    (row,) = tools.of(GroupType.CONSUMER, "--members", "--verbose")
    assert (row["CURRENT-ASSIGNMENT"], row["TARGET-ASSIGNMENT"].strip()) == (both, both)
    assert [row["CONSUMER-ID"], row["CLIENT-ID"], row["HOST"], row["#PARTITIONS"]] == [
        member["member_id"], member["client_id"], f"/{member['host']}", str(member["assigned"])
    ]  # fmt: skip
    assert (row["CURRENT-EPOCH"], row["TARGET-EPOCH"]) == (
        str(member["epoch"]), str(group["assignment_epoch"])
    )  # fmt: skip
    assert (member["to_get"], member["to_give_back"]) == (0, 0)
    owners = {partition["owner"] for partition in group["partitions"]}
    assert owners == {row["CONSUMER-ID"] for row in tools.of(GroupType.CONSUMER)}

    group = told(view, scene, GroupType.STREAMS)
    (member,) = group["member_list"]
    (row,) = tools.of(GroupType.STREAMS, "--members", "--verbose")
    assert row["ASSIGNMENTS"].startswith("ACTIVE: 0:[0,1];") and member["runs"] == "active 0_0, 0_1"
    assert [row["MEMBER"], row["MEMBER-EPOCH"], row["TOPOLOGY-EPOCH"]] == [
        member["member_id"], str(member["epoch"]), str(group["topology_epoch"])
    ]  # fmt: skip


@pytest.mark.slow  # each of Kafka's tools is a JVM
def test_kafkas_tools_say_the_same(scene: Scene, kafka_runtime: tuple[Path, Path]) -> None:
    """Kinds and members while all of them read; states, offsets and lags when nothing moves any more."""
    tools, kafka, waiting = Told(scene, kafka_runtime), scene.kafka, 7

    def stands_still(view: View) -> bool:
        """Whether those that go on have read what there is. The job commits after each ten records."""
        scene.streams.beat()
        lags = view.groups.lag[[scene.row(view, kind) for kind in (GroupType.CONSUMER, GroupType.SIMPLE)]]
        return bool(lags[0] == 0 and 0 <= lags[1] < 20)

    with observing([kafka.address(broker) for broker in kafka.broker_ids], SETTINGS) as observer:
        watched = Watched(observer)
        kinds_and_members_are_told_as_by(tools, scene, scene.wait(watched, "every group"))
        scene.stop_writing(waiting, (GroupType.CLASSIC, GroupType.SHARE))
        scene.streams.commit({0: 5, 1: 6})
        watched.until(stands_still, "the end of what is read")
        offsets = offsets_of_kafka(tools)
        states = {kind: tools.state(kind, epoch) for kind, epoch in ASSIGNMENT_EPOCHS.items()}
        with suppress(AssertionError):  # which would not say what differs
            watched.until(lambda view: offsets_of_kview(view, scene) == offsets, "the same figures", 20)
    view = watched.views[-1]
    assert offsets_of_kview(view, scene) == offsets
    assert {kind: state_told(told(view, scene, kind)) for kind in states} == states
    lags = {kind: [figures[-1] for figures in offsets[kind].values()] for kind in offsets}
    assert lags[GroupType.CONSUMER] == [0, 0], lags
    left = (GroupType.CLASSIC, GroupType.SHARE, GroupType.STREAMS)
    assert all(lag is not None and lag >= waiting for kind in left for lag in lags[kind]), lags
