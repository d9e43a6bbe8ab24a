"""The requests about groups, as coroutines that put their answer or failure into the state."""

from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import Any

from kafka.protocol.admin.groups import DescribeGroupsRequest, ListGroupsRequest
from msgspec import Struct, field

from kview.model.failures import NOT_AUTHORIZED, Part, refused
from kview.model.units import UNKNOWN
from kview.observe import apis
from kview.observe.causes import LinkError
from kview.observe.groups import coordinators, facts
from kview.observe.groups.kinds import CLASSIC, KINDS, Kind
from kview.observe.link import Link
from kview.observe.loop import Loop
from kview.observe.offsets import MOST_OFFSET
from kview.observe.state import State
from kview.wire import offset_fetch

GROUPS_A_REQUEST = 500
"""Groups per request. With ten members each, the answer is about 100 KB."""


def batches_of(names: Sequence[str]) -> list[Sequence[str]]:
    """Return names of groups in batches of a request each."""
    return [names[i : i + GROUPS_A_REQUEST] for i in range(0, len(names), GROUPS_A_REQUEST)]


class GroupRequests(Struct):
    """The requests about groups of one observation.

    Network errors are not raised but become failures.
    """

    loop: Loop
    state: State
    group_lists: dict[int, frozenset[str]] = field(default_factory=dict)
    """Broker → the groups in its last list, which is dropped when the broker does not answer."""
    listing: set[int] = field(default_factory=set)
    """The brokers that owe a list of groups."""
    moved: bool = False
    """True if a coordinator reported that it no longer is one, so that groups have to be listed again."""
    late: list[Callable[[], None]] = field(default_factory=list)
    """Commits that arrived after end offsets were requested. The next observation processes them first."""
    ends_asked: bool = False

    async def list_groups(self, link: Link, broker: int) -> None:
        """Ask which groups a broker coordinates, and whether it has loaded and listed all of those.

        The second question is only asked until the groups of all its partitions have been listed. Kafka
        leaves groups that kview may not see out of the list, but refuses to describe one.
        """
        self.group_lists.pop(broker, None)
        self.listing.add(broker)
        try:
            await self._list_groups(link, broker)
        finally:
            self.listing.discard(broker)

    async def _list_groups(self, link: Link, broker: int) -> None:
        unheard = self.state.heard.unheard(self.state.layout).get(broker, [])
        partitions = len(coordinators.leaders(self.state.layout))
        names = [coordinators.name_in(partition, partitions) for partition in unheard]
        if not partitions and broker not in self.state.heard.brokers:
            names = [coordinators.name_in(0, 1)]
        loaded = None
        if names and apis.DESCRIBE_GROUPS in link.versions:
            request = DescribeGroupsRequest(groups=names, include_authorized_operations=False)
            loaded = self.loop.begin(partial(link.ask, request))
        answer, at_ms = await self._answer(Part.GROUPS, link, broker, ListGroupsRequest())
        if answer is None:
            return
        if answer.error_code:
            self.state.failed(Part.GROUPS, broker, refused(answer.error_code))
            return
        facts.listed(self.state.groups, broker, answer, self.coordinator_of, at_ms)
        try:
            described = (await loaded)[0].groups if loaded else ()
        except LinkError:
            return  # the link broke after the list, and will be asked again
        errors = {entry.group_id: entry.error_code for entry in described}
        if self.state.lists_all_groups:
            errors = {name: code for name, code in errors.items() if code not in NOT_AUTHORIZED}
        denied = [code for code in errors.values() if code in NOT_AUTHORIZED]
        if denied and not partitions:
            self.state.heard.denied[broker] = denied[0]
            return
        codes = {p: errors[name] for p, name in zip(unheard, names, strict=False) if name in errors}
        self.state.heard.listed(broker, unheard, codes)
        self.group_lists[broker] = frozenset(entry.group_id for entry in answer.groups)

    def coordinator_of(self, group: str) -> int | None:
        """Return the coordinator of a group according to metadata, None if that is not known."""
        return coordinators.coordinator_of(self.state.layout, group)

    async def describe(self, link: Link, broker: int, kind: Kind, names: Sequence[str]) -> None:
        """Ask a coordinator for the states and members of its groups of a kind.

        A group that it does not have as that kind is listed again: it may have become one of another kind.
        """
        async for answer, at_ms in self._describe(link, broker, kind.request, names):
            for entry in answer.groups:
                known = self.state.groups.get(entry.group_id)
                if known is None or known.missing_ms != UNKNOWN or KINDS.get(known.type) is not kind:
                    continue
                if facts.is_gone(entry):
                    self.moved = True
                elif entry.error_code:
                    self._refused(known, Part.GROUPS, entry.error_code)
                else:
                    facts.described(known, kind.read(entry), at_ms)

    async def look_for(self, link: Link, broker: int, names: Sequence[str]) -> None:
        """Ask whether a coordinator still has groups that no broker lists, of whatever kind."""
        async for answer, at_ms in self._describe(link, broker, CLASSIC.request, names):
            for entry in answer.groups:
                known = self.state.groups.get(entry.group_id)
                if known is None or known.missing_ms == UNKNOWN:
                    continue
                if facts.is_gone(entry):
                    if not known.is_steady(at_ms):
                        continue
                    if KINDS.get(known.type) is CLASSIC:
                        del self.state.groups[entry.group_id]
                    known.vouched = True
                elif entry.error_code:
                    self._refused(known, Part.GROUPS, entry.error_code)
                elif KINDS.get(known.type) is CLASSIC:
                    facts.described(known, CLASSIC.read(entry), at_ms)

    async def _describe(
        self, link: Link, broker: int, request: Callable[[Sequence[str]], Any], names: Sequence[str]
    ) -> AsyncIterator[tuple[Any, int]]:
        for batch in batches_of(names):
            answer, at_ms = await self._answer(Part.GROUPS, link, broker, request(batch))
            if answer is None:
                return
            yield answer, at_ms

    async def commits(self, link: Link, broker: int, names: Sequence[str]) -> None:
        """Ask the coordinator of groups for their committed offsets."""
        version = min(apis.highest(link.versions, apis.OFFSET_FETCH), offset_fetch.HIGHEST)
        if facts.takes_many_groups(link.versions):
            batches = batches_of(names)
        else:
            batches = [[name] for name in names]
        for batch in batches:
            request = offset_fetch.request(version, batch)
            answer, at_ms = await self._answer(Part.COMMITS, link, broker, request)
            if answer is None:
                return
            take = partial(self._take_commits, answer, at_ms)
            if self.ends_asked:
                self.late.append(take)
            else:
                take()

    def _take_commits(self, answer: offset_fetch.OffsetFetchAnswer, at_ms: int) -> None:
        for commits in answer.groups:
            known = self.state.groups.get(commits.group)
            if known is None:
                continue
            if commits.error:
                self._refused(known, Part.COMMITS, commits.error)
            elif any((topic.offset > MOST_OFFSET).any() for topic in commits.topics):
                known.commits_malformed = True
            else:
                facts.committed(known, commits, at_ms)

    def _refused(self, known: facts.GroupFacts, part: Part, code: int) -> None:
        """Note with which error number a coordinator refuses a part of what is asked about a group."""
        if part is Part.GROUPS:
            known.description_refused = code
        else:
            known.commits_refused = code
        self.moved |= code == apis.NOT_COORDINATOR

    async def _answer(self, part: Part, link: Link, broker: int, request: Any) -> tuple[Any, int]:
        """Return an answer and when it was received.

        If the link fails, note the failure and return (None, 0).
        """
        try:
            answer, at_ms = await link.ask(request)
        except LinkError as error:
            self.state.failed(part, broker, error.cause)
            return None, 0
        self.state.succeeded(part, broker, at_ms)
        return answer, at_ms
