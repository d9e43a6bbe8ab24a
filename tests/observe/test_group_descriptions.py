"""Groups of the new protocols, from the bytes of their descriptions to what a person reads."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
from kafka.protocol.admin import DescribeGroupsResponse
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment
from msgspec.structs import replace

from kview.derive.fold import State, step
from kview.derive.view import Verdict, View
from kview.model.states import GroupType
from kview.observe.groups import facts
from kview.observe.groups.facts import GroupFacts
from kview.observe.groups.kinds import KINDS
from kview.observe.groups.requests import GroupRequests
from kview.observe.groups.tables import GroupTables
from kview.plain.documents import document
from kview.tui.options import Options
from kview.tui.rows.columns import Column, share
from kview.tui.rows.group import MemberRows
from kview.tui.screens.group import group_lines
from kview.tui.text import content
from kview.wire.group_messages import ConsumerGroupDescribeResponse, StreamsGroupDescribeResponse
from kview.wire.offset_fetch import GroupCommits, TopicCommits
from tests.worlds import default_world
from tests.worlds.small import TOPIC, ends, reader, small_world

GROUP = "orders-app"
Numbers = Mapping[str, Sequence[int]]
"""Partitions by topic, or tasks by subtopology."""


def decoded(answer: Any) -> Any:
    """An answer, as it is read from its bytes."""
    return type(answer).decode(answer.encode(), version=answer.API_VERSION)


def view_of(kind: GroupType, answer: Any) -> View:
    """The view of a cluster that has this group alone, which is read from the bytes of `answer`."""
    (entry,) = decoded(answer).groups
    known = GroupFacts(GROUP, kind.value, "", 1)
    facts.described(known, KINDS[kind].read(entry), 5)
    tables = GroupTables()
    tables.update({GROUP: known})
    seen = replace(
        default_world().tick(), groups=tables.groups, members=tables.members, offsets=tables.offsets
    )
    return step(State(), seen)[1]


def heading(view: View) -> str:
    """What stands above the group's lists."""
    return content(group_lines(view, GROUP, 200)[0])


def listed(view: View) -> list[dict[str, str]]:
    """The group's members, as their list shows them."""
    rows = MemberRows(view, GROUP, Options())
    keys = [column.key for column in rows.columns]
    return [dict(zip(keys, map(content, rows.row(at, 0).cells), strict=True)) for at in range(len(rows))]


def told(view: View) -> dict[str, Any]:
    """The group, as JSON tells it."""
    (group,) = (row for row in json.loads(document(view))["groups"] if row["group"] == GROUP)
    return dict(group)


# -- consumer groups (KIP-848)

Consumers = ConsumerGroupDescribeResponse
Consuming = Consumers.DescribedGroup.Member


def consumer(name: str, epoch: int, has: Numbers, is_to_have: Numbers) -> Any:
    """A member that has these partitions."""

    def assignment(numbers: Numbers) -> Any:
        partitions = Consuming.Assignment.TopicPartitions
        topics = [partitions(topic_name=topic, partitions=list(parts)) for topic, parts in numbers.items()]
        return Consuming.Assignment(topic_partitions=topics)

    return Consuming(
        member_id=f"{name}-id", member_epoch=epoch, client_id=name, client_host="/10.0.0.1",
        subscribed_topic_names=["orders"], assignment=assignment(has),
        target_assignment=assignment(is_to_have),
    )  # fmt: skip


def consumers(epoch: int, assignment_epoch: int, state: str, *members: Any) -> Any:
    """The description of a group of the consumer protocol."""
    group = Consumers.DescribedGroup(
        error_code=0, group_id=GROUP, group_state=state, group_epoch=epoch, assignment_epoch=assignment_epoch,
        assignor_name="uniform", members=list(members),
    )  # fmt: skip
    return Consumers[1](groups=[group])


def test_a_member_that_owns_as_many_partitions_as_it_is_to_own_but_others_is_waited_for() -> None:
    answer = consumers(
        8, 8, "Reconciling",
        consumer("swaps", 8, {"orders": [0, 1]}, {"orders": [0, 2]}),
        consumer("gives", 8, {"orders": [3, 4, 5]}, {"orders": [4]}),
        consumer("gets", 8, {}, {"orders": [3, 5]}),
        consumer("settled", 8, {"orders": [6], "mails": [6]}, {"mails": [6], "orders": [6]}),
    )  # fmt: skip
    view = view_of(GroupType.CONSUMER, answer)
    assert "epoch 8, waits for gets, gives, swaps · " in heading(view)
    owns = {row["client"]: row["assigned"] for row in listed(view)}
    assert owns == {"gets": "0 +2", "gives": "3 −2", "settled": "2", "swaps": "2 −1 +1"}
    members = {
        row["client_id"]: (row["assigned"], row["target"], row["to_get"], row["to_give_back"])
        for row in told(view)["member_list"]
    }
    assert members == {
        "gets": (0, 2, 2, 0), "gives": (3, 1, 0, 2), "settled": (2, 2, 0, 0), "swaps": (2, 2, 1, 1)
    }  # fmt: skip


def test_a_member_is_waited_for_until_it_has_the_assignment_that_there_is() -> None:
    """A new assignment is being made, for epoch 12."""
    answer = consumers(
        12, 11, "Assigning",
        consumer("there", 11, {TOPIC: [0]}, {TOPIC: [0]}), consumer("late", 10, {TOPIC: [1]}, {TOPIC: [1]}),
    )  # fmt: skip
    view = view_of(GroupType.CONSUMER, answer)
    assert " · epoch 12, assignment of epoch 11, waits for late · " in heading(view)
    assert [(row["client"], row["epoch"]) for row in listed(view)] == [("late", "10"), ("there", "11")]
    assert " · epoch 13 · " in heading(view_of(GroupType.CONSUMER, consumers(13, 12, "Empty")))


def test_the_epochs_of_members_cost_no_other_column() -> None:
    answer = consumers(12, 12, "Stable", consumer("app", 12, {TOPIC: [0]}, {TOPIC: [0]}))
    rows = MemberRows(view_of(GroupType.CONSUMER, answer), GROUP, Options())

    def shown(columns: Sequence[Column], cells: int) -> list[str]:
        return [columns[place].title for place, _ in share(columns, cells)]

    others = [column for column in rows.columns if column.key != "epoch"]
    for cells in range(20, 120):
        assert [title for title in shown(rows.columns, cells) if title != "epoch"] == shown(others, cells)
    assert "epoch" in shown(rows.columns, 116)


# -- streams groups (KIP-1071)

Streams = StreamsGroupDescribeResponse
Processing = Streams.DescribedGroup.Member
Roles = tuple[Numbers, Numbers, Numbers]
"""Active, standby and warm-up tasks."""


def processor(name: str, has: Roles, is_to_have: Roles) -> Any:
    """A member of a streams group, whose epoch is the group's."""

    def assignment(roles: Roles) -> Any:
        active, standby, warm_up = (
            [
                Processing.Assignment.TaskIds(subtopology_id=name, partitions=list(parts))
                for name, parts in tasks.items()
            ]
            for tasks in roles
        )
        return Processing.Assignment(active_tasks=active, standby_tasks=standby, warmup_tasks=warm_up)

    return Processing(
        member_id=f"{name}-id", member_epoch=9, client_id=name, client_host="/10.0.0.1", topology_epoch=3,
        process_id="p", user_endpoint=None, client_tags=[], task_offsets=[], task_end_offsets=[],
        assignment=assignment(has), target_assignment=assignment(is_to_have), is_classic=False,
    )  # fmt: skip


def streams(state: str, *members: Any) -> Any:
    """The description of a streams group that reads `orders`, and what it writes of it by another key."""
    whole = Streams.DescribedGroup.Topology
    part = whole.Subtopology
    again = part.TopicInfo(name="app-repartition", partitions=3, replication_factor=3, topic_configs=[])
    none: dict[str, list[Any]] = {"repartition_sink_topics": [], "state_changelog_topics": []}
    topology = whole(
        epoch=3,
        subtopologies=[
            part(subtopology_id="0", source_topics=[TOPIC], repartition_source_topics=[], **none),
            part(subtopology_id="1", source_topics=[], repartition_source_topics=[again], **none),
        ],
    )
    group = Streams.DescribedGroup(
        error_code=0, group_id=GROUP, group_state=state, group_epoch=9, assignment_epoch=9,
        topology=topology, members=list(members),
    )  # fmt: skip
    return Streams[0](groups=[group])


def test_a_streams_group_has_a_topology_and_tasks_of_three_roles() -> None:
    settled = {"0": [1], "1": [2, 0]}, {"1": [1]}, {"0": [0]}
    answer = streams(
        "Reconciling",
        processor("app-1", settled, settled),
        processor("app-2", ({"0": [0]}, {}, {}), ({"0": [0]}, {"0": [1]}, {})),
        processor("app-3", ({"1": [1]}, {"0": [2]}, {}), ({"0": [2]}, {}, {"1": [1]})),
    )
    view = view_of(GroupType.STREAMS, answer)
    assert "  streams Reconciling 3/3 · epoch 9, topology epoch 3, waits for app-2, app-3 · " in heading(view)
    assert [(row["assigned"], row["partitions"]) for row in listed(view)] == [
        ("3", "──▶ active 0_1, 1_0, 1_2; standby 1_1; warm-up 0_0"),
        ("1 +1", "──▶ active 0_0"),
        ("1 −2 +2", "──▶ active 1_1; standby 0_2"),
    ]
    rows = MemberRows(view, GROUP, Options())
    assert content(rows.title) == "MEMBERS subtopologies 0: orders; 1: app-repartition"
    owners = {(row["topic"], row["partition"]): row["owner"] for row in told(view)["partitions"]}
    assert owners == {
        ("app-repartition", 0): "app-1-id", ("app-repartition", 1): "app-3-id",
        ("app-repartition", 2): "app-1-id", (TOPIC, 0): "app-2-id", (TOPIC, 1): "app-1-id",
    }  # fmt: skip
    assert (told(view)["topology_epoch"], told(view)["subtopologies"]) == (3, "0: orders; 1: app-repartition")


def test_a_streams_group_without_a_topology_has_no_epoch_of_it() -> None:
    answer = streams("NotReady", processor("app-1", ({}, {}, {}), ({}, {}, {})))
    answer.groups[0].topology = None
    view = view_of(GroupType.STREAMS, answer)
    assert "  streams NotReady 0/1 · epoch 9 · coordinator 1" in heading(view)
    assert told(view)["topology_epoch"] is None and told(view)["subtopologies"] is None
    assert [row["partitions"] for row in listed(view)] == [""]


# -- from one protocol to another, while its members run

Classic = DescribeGroupsResponse


def classic(*members: tuple[str, Sequence[int]]) -> Any:
    """The description of a group of the classic protocol, with its members' partitions of `orders`."""
    partitions = ConsumerProtocolAssignment.TopicPartition
    assignments = {
        name: ConsumerProtocolAssignment(
            version=1, assigned_partitions=[partitions(topic=TOPIC, partitions=list(numbers))], user_data=b""
        ).encode()
        for name, numbers in members
    }
    group = Classic.DescribedGroup(
        error_code=0, group_id=GROUP, group_state="Stable", protocol_type="consumer", protocol_data="range",
        members=[
            Classic.DescribedGroup.DescribedGroupMember(
                member_id=f"{name}-id", client_id=name, client_host="/10.0.0.1", member_metadata=b"",
                member_assignment=bytes(assignment),
            )
            for name, assignment in assignments.items()
        ],
    )  # fmt: skip
    return Classic[5](groups=[group])


class Watched:
    """A group that reads all there is, listed each second."""

    def __init__(self) -> None:
        self._world = small_world(reader(GROUP, *ends(2), share=1.0), partitions=2)
        self._facts: dict[str, GroupFacts] = {}
        self._tables, self._fold = GroupTables(), State()

    def look(self, kind: GroupType, *answers: tuple[GroupType, Any]) -> View:
        """The view after a list says that it is of that kind, and after these answers to what was asked about
        groups of a kind."""
        seen = self._world.tick()
        at_ms = seen.observation.ended_ms
        entry = SimpleNamespace(
            group_id=GROUP, group_type=kind.capitalize(), protocol_type="consumer", group_state="Stable"
        )
        facts.listed(self._facts, 1, SimpleNamespace(groups=[entry]), lambda _: 1, at_ms)
        state = SimpleNamespace(groups=self._facts, succeeded=lambda *_: None)
        requests = GroupRequests(cast(Any, None), cast(Any, state))
        for asked, answer in answers:

            async def ask(_: Any, answer: Any = answer) -> tuple[Any, int]:
                return decoded(answer), at_ms

            link = cast(Any, SimpleNamespace(ask=ask))
            asyncio.run(requests.describe(link, 1, KINDS[asked], [GROUP]))
        mine = seen.offsets.group == GROUP
        numbers, offsets = seen.offsets.partition[mine], seen.offsets.committed[mine]
        commits = TopicCommits(TOPIC, numbers, offsets, np.zeros(len(numbers), np.int16))
        facts.committed(self._facts[GROUP], GroupCommits(GROUP, 0, (commits,)), at_ms)
        self._tables.update(self._facts)
        tables = self._tables
        seen = replace(seen, groups=tables.groups, members=tables.members, offsets=tables.offsets)
        self._fold, view = step(self._fold, seen)
        return view


def test_what_was_known_of_members_is_void_when_a_group_changes_its_protocol() -> None:
    """Each kind has been there for half a minute, and two seconds pass until its members are read."""
    before = GroupType.CLASSIC, classic(("old", [0, 1]))
    after = (
        GroupType.CONSUMER,
        consumers(5, 5, "Stable", consumer("new-1", 5, {TOPIC: [0]}, {TOPIC: [0]}),
                  consumer("new-2", 5, {TOPIC: [1]}, {TOPIC: [1]})),
    )  # fmt: skip
    watched, shown = Watched(), list[tuple[str, list[str]]]()
    for own, other in ((before, after), (after, before), (before, after)):
        for second in range(30):
            # What was asked before the change may be answered after it.
            view = watched.look(own[0], *([own] if second >= 2 else [other]))
            assert view.groups.verdict[0] in (Verdict.OK, Verdict.UNDECIDED, Verdict.UNKNOWN)
            row = heading(view).split(f"{GROUP}  ")[1].removesuffix(" · coordinator 1")
            members = [f"{row['client']} {row['assigned']}" for row in listed(view)]
            seen = row, members or [MemberRows(view, GROUP, Options()).empty]
            if not shown or shown[-1] != seen:
                shown.append(seen)
        assert view.groups.verdict[0] == Verdict.OK
    unknown = ["its members are not known"]
    as_classic = "Stable 1/1 · assignor range", ["old 2"]
    assert shown == [
        ("Stable –/–", unknown),
        as_classic,
        ("consumer Stable –/–", unknown),
        ("consumer Stable 2/2 · epoch 5 · assignor uniform", ["new-1 1", "new-2 1"]),
        ("Stable –/–", unknown),
        as_classic,
    ]
