"""Groups of the streams protocol (KIP-1071)."""

import sys
from collections.abc import Iterable
from typing import Any

from kview.observe.groups.members import GroupDescription, MemberFacts, of_epochs, who


def read_streams(entry: Any) -> GroupDescription:
    """Read a streams group. A member owns the partitions that its active tasks read."""
    subtopologies = (entry.topology.subtopologies or ()) if entry.topology is not None else ()
    sources = {
        each.subtopology_id: [*each.source_topics, *(topic.name for topic in each.repartition_source_topics)]
        for each in subtopologies
    }
    members = []
    for member in entry.members:
        active, target = member.assignment.active_tasks, member.target_assignment.active_tasks
        owned = tuple(
            (sys.intern(topic), tuple(task.partitions))
            for task in active
            for topic in sources.get(task.subtopology_id, ())
        )
        words = (("active", active), ("standby", member.assignment.standby_tasks),
                 ("warm-up", member.assignment.warmup_tasks))  # fmt: skip
        members.append(
            MemberFacts(
                *who(member),
                owned,
                member.rack_id or "",
                member.member_epoch,
                _tasks(active),
                _tasks(target),
                "; ".join(f"{word} {_task_names(tasks)}" for word, tasks in words if tasks),
            )
        )
    return of_epochs(entry, members)


def _tasks(tasks: Iterable[Any]) -> int:
    return sum(len(task.partitions) for task in tasks)


def _task_names(tasks: Iterable[Any]) -> str:
    """Return tasks as Kafka Streams names them: `0_0, 0_1`."""
    task_ids = sorted((task.subtopology_id, number) for task in tasks for number in task.partitions)
    return ", ".join(f"{subtopology}_{number}" for subtopology, number in task_ids)
