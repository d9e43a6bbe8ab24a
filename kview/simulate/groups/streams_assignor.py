"""The assignor of streams groups, `sticky`: members keep what they have as far as the load allows.

Source: StickyTaskAssignor and ProcessState of Kafka's group coordinator. Which of several equally loaded
members gets a task depends there on the order of Java's hash maps and heaps, and so it does here.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Generic, NamedTuple, TypeVar

from kview.simulate.coordination.java_hashes import java_map_order
from kview.simulate.groups.streams_records import NO_TASKS, Role, TaskKey, Tasks

T = TypeVar("T")


class Task(NamedTuple):
    """A task: its subtopology, and the partition that it reads."""

    subtopology: str
    partition: int


class TaskCount(NamedTuple):
    """How many tasks a subtopology has, and whether they have state, of which others may have copies."""

    subtopology: str
    tasks: int
    stateful: bool


class _JavaHeap(Generic[T]):
    """Java's PriorityQueue, in which the order of equal elements is that of its algorithm."""

    def __init__(self, items: Iterable[T], load: Callable[[T], float]) -> None:
        self._items: list[T] = []
        self._load = load
        for item in items:
            self.add(item)

    def __bool__(self) -> bool:
        return bool(self._items)

    def add(self, item: T) -> None:
        items, at = self._items, len(self._items)
        items.append(item)
        while at > 0:
            parent = (at - 1) // 2
            if self._load(item) >= self._load(items[parent]):
                break
            items[at] = items[parent]
            at = parent
        items[at] = item

    def poll(self) -> T:
        """Remove the least element, and return it."""
        items = self._items
        least, last, at = items[0], items.pop(), 0
        if not items:
            return least
        while (child := 2 * at + 1) < len(items):
            if child + 1 < len(items) and self._load(items[child]) > self._load(items[child + 1]):
                child += 1
            if self._load(last) <= self._load(items[child]):
                break
            items[at] = items[child]
            at = child
        items[at] = last
        return least


class _Process:
    """An instance of an application, with one or more members."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.tasks: set[Task] = set()
        self._sum = 0
        self._by_load: _JavaHeap[str] | None = None

    @property
    def load(self) -> float:
        return self._sum / len(self.counts)

    def add(self, member: str, task: Task) -> int:
        """Add a task to a member, and return how many it has now."""
        self.tasks.add(task)
        self._sum += 1
        self.counts[member] += 1
        self._by_load = None
        return self.counts[member]

    def add_to_least_loaded(self, add: Callable[[str], None]) -> None:
        """Let `add` give a task to the member with the fewest."""
        heap = self._by_load
        if heap is None:
            heap = _JavaHeap(java_map_order(self.counts), self.counts.__getitem__)
        member = heap.poll()
        add(member)
        heap.add(member)
        self._by_load = heap


class _Quota:
    """How many tasks each member may have, so that all have the same number or one more."""

    def __init__(self, tasks: int, members: int) -> None:
        self._tasks, self._members = tasks, members
        self.limit = self._next()

    def _next(self) -> int:
        return -(-self._tasks // self._members) if self._members else 0

    def note(self, count: int) -> None:
        """Note that a member has this many tasks now."""
        if count == self.limit:
            self._members -= 1
            self._tasks -= count
            self.limit = self._next()


class _Assignment:
    def __init__(
        self,
        members: Mapping[str, str],
        before: Mapping[str, Tasks],
        tasks: Sequence[TaskCount],
        standbys: int,
    ) -> None:
        active = sum(each.tasks for each in tasks)
        copies = sum(each.tasks for each in tasks if each.stateful) * standbys
        self.standbys = standbys
        self.active_quota = _Quota(active, len(members))
        self.quota = _Quota(active + copies, len(members))
        self.process_of = members
        self.processes: dict[str, _Process] = {}
        self.had_active: dict[Task, str] = {}
        self.had_standby: dict[Task, list[str]] = {}
        self.assigned: dict[str, dict[TaskKey, set[int]]] = {}
        for member in java_map_order(members):
            process = self.processes.setdefault(members[member], _Process())
            process.counts[member] = 0
            self.assigned[member] = {}
            for (role, subtopology), numbers in before.get(member, NO_TASKS).items():
                for number in numbers:
                    task = Task(subtopology, number)
                    if role is Role.ACTIVE:
                        self.had_active[task] = member
                    elif role is Role.STANDBY:
                        self.had_standby.setdefault(task, []).append(member)

    def _process(self, member: str) -> _Process:
        return self.processes[self.process_of[member]]

    def _add(self, role: Role, task: Task, member: str) -> None:
        count = self._process(member).add(member, task)
        self.assigned[member].setdefault(TaskKey(role, task.subtopology), set()).add(task.partition)
        if role is Role.ACTIVE:
            self.active_quota.note(count)
        self.quota.note(count)

    def _is_below(self, member: str, quota: _Quota) -> bool:
        return self._process(member).counts[member] < quota.limit

    def _least_loaded_standby(self, task: Task, without_task: bool) -> str | None:
        """Return who had a copy of the task, the one with the least load if there are several."""
        holders = self.had_standby.get(task, [])
        if not holders:
            return None
        first = chosen = holders[0]
        for member in holders[1:]:
            process, least = self._process(member), self._process(chosen)
            fewer = process.counts[member] < least.counts[chosen]
            if process.load < least.load and fewer and not (without_task and task in process.tasks):
                chosen = member
        return None if without_task and task in self._process(first).tasks else chosen

    def active(self, tasks: Iterable[Task]) -> None:
        """Give each task to who had it, else to who had a copy of it, else to the least loaded."""
        left = []
        for task in sorted(tasks, key=lambda task: (task.partition, task.subtopology)):
            member = self.had_active.get(task)
            if member is not None and self._is_below(member, self.active_quota):
                self._add(Role.ACTIVE, task, member)
            else:
                left.append(task)
        new = []
        for task in left:
            member = self._least_loaded_standby(task, without_task=False)
            if member is not None and self._is_below(member, self.active_quota):
                self._add(Role.ACTIVE, task, member)
            else:
                new.append(task)
        by_load = self._by_load()
        for task in sorted(new):
            process = by_load.poll()
            process.add_to_least_loaded(partial(self._add, Role.ACTIVE, task))
            by_load.add(process)

    def standby(self, tasks: Iterable[Task]) -> None:
        """Give copies of each task to other instances: to who had it or a copy, else to the least loaded."""
        new: list[tuple[Task, int]] = []
        for task in sorted(tasks, key=lambda task: (task.partition, task.subtopology), reverse=True):
            for i in range(self.standbys):
                member = self.had_active.get(task)
                if (
                    member is None
                    or task in self._process(member).tasks
                    or not self._is_below(member, self.quota)
                ):
                    member = self._least_loaded_standby(task, without_task=True)
                    if member is not None and not self._is_below(member, self.quota):
                        member = None
                if member is None:
                    new.append((task, self.standbys - i))
                    break
                self._add(Role.STANDBY, task, member)
        by_load = self._by_load()
        for task, copies in sorted(new, reverse=True):
            for _ in range(copies):
                passed: list[_Process] = []
                taken = False
                while by_load and not taken:
                    passed.append(by_load.poll())
                    taken = task not in passed[-1].tasks
                if taken:
                    passed[-1].add_to_least_loaded(partial(self._add, Role.STANDBY, task))
                for process in reversed(passed):
                    by_load.add(process)
                if not taken:
                    break

    def _by_load(self) -> _JavaHeap[_Process]:
        order = java_map_order(self.processes, len(self.process_of))
        return _JavaHeap((self.processes[name] for name in order), lambda process: process.load)


def assign_sticky(
    members: Mapping[str, str], before: Mapping[str, Tasks], tasks: Sequence[TaskCount], standbys: int
) -> dict[str, Tasks]:
    """Return member id → its tasks. `members` has the process of each, and `before` what each was to have.

    Each task has one active member, and if it has state, `standbys` more in other processes, as far as there
    are any.
    """
    assignment = _Assignment(members, before, tasks, standbys)
    assignment.active(Task(each.subtopology, number) for each in tasks for number in range(each.tasks))
    if standbys > 0:
        stateful = (each for each in tasks if each.stateful)
        assignment.standby(
            Task(each.subtopology, number) for each in stateful for number in range(each.tasks)
        )
    return {
        member: {key: frozenset(numbers) for key, numbers in of_member.items()}
        for member, of_member in assignment.assigned.items()
    }
