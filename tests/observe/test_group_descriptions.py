"""Groups of the new protocols, from the bytes of their descriptions to what a person reads."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from kview.derive.fold import State, step
from kview.derive.view import View
from kview.model.states import GroupType
from kview.observe.groups import facts
from kview.observe.groups.facts import GroupFacts
from kview.observe.groups.kinds import KINDS
from kview.observe.groups.tables import GroupTables
from kview.plain.documents import document
from kview.tui.options import Options
from kview.tui.rows.group import MemberRows
from kview.tui.screens.group import group_lines
from kview.tui.text import content
from kview.wire.group_descriptions import ConsumerGroupDescribeResponse
from tests.worlds import default_world

GROUP = "orders-app"
Numbers = Mapping[str, Sequence[int]]
"""Partitions by topic, or tasks by subtopology."""


def view_of(kind: GroupType, answer: Any) -> View:
    """The view of a cluster that has this group alone, which is read from the bytes of `answer`."""
    (entry,) = type(answer).decode(answer.encode(), version=answer.API_VERSION).groups
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


def consumers(epoch: int, assignment_epoch: int, state: str, *members: Any) -> View:
    """A group of the consumer protocol."""
    group = Consumers.DescribedGroup(
        error_code=0, group_id=GROUP, group_state=state, group_epoch=epoch, assignment_epoch=assignment_epoch,
        assignor_name="uniform", members=list(members),
    )  # fmt: skip
    return view_of(GroupType.CONSUMER, Consumers[1](groups=[group]))


def test_a_member_that_owns_as_many_partitions_as_it_is_to_own_but_others_is_waited_for() -> None:
    view = consumers(
        8, 8, "Reconciling",
        consumer("swaps", 8, {"orders": [0, 1]}, {"orders": [0, 2]}),
        consumer("gives", 8, {"orders": [3, 4, 5]}, {"orders": [4]}),
        consumer("gets", 8, {}, {"orders": [3, 5]}),
        consumer("settled", 8, {"orders": [6], "mails": [6]}, {"mails": [6], "orders": [6]}),
    )  # fmt: skip
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
