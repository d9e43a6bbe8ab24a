"""What to ask which broker about groups in an observation, and what the answers mean together."""

from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any

from msgspec import Struct

from kview.model.snapshot import Failure
from kview.model.states import GroupType
from kview.model.units import UNKNOWN
from kview.observe import apis
from kview.observe.groups import facts, hearing
from kview.observe.groups.kinds import KINDS, Kind
from kview.observe.groups.requests import GroupRequests
from kview.observe.link import Link
from kview.observe.links import Links
from kview.observe.state import State

Ask = Callable[[], Coroutine[Any, Any, None]]


class GroupRounds(Struct):
    """Lists groups in every `list_rounds`-th observation, and in each one while something is unclear.

    Lists are compared only with others of the same round. So a round waits for brokers that are merely slow.
    """

    state: State
    requests: GroupRequests
    links: Links
    list_rounds: int
    interval_s: float
    unheard: tuple[Failure, ...] = ()
    """A failure for each broker that may coordinate groups and had never listed them when the tables were
    rebuilt. What is heard later is in the next tables."""
    _listing: bool = False

    def lists(self, askable: Mapping[int, Link], sequence: int, now_ms: int) -> list[tuple[Link, Ask]]:
        """Return the requests for lists of groups, of the observation with that number."""
        self.settle(askable, now_ms)
        if any(broker in askable for broker in self.requests.listing):
            return []
        self._listing = sequence % self.list_rounds == 0 or self.requests.moved or self._unclear()
        if not self._listing:
            return []
        self.requests.moved = False
        return [
            (link, partial(self.requests.list_groups, link, broker))
            for broker, link in askable.items()
            if apis.LIST_GROUPS in link.versions
        ]

    def _unclear(self) -> bool:
        known = self.state.groups.values()
        return bool(self.unheard) or any(g.cause.kind or g.missing_ms != UNKNOWN for g in known)

    def settle(self, askable: Mapping[int, Link], now_ms: int) -> None:
        """Drop the groups that are gone, once the lists of this observation have arrived."""
        if self._listing:
            lists = {
                broker: names for broker, names in self.requests.group_lists.items() if broker in askable
            }
            listed = (address.id for address in self.state.listed)
            facts.settle(self.state.groups, lists, listed, self.requests.coordinator_of, now_ms)

    def details(self, askable: Mapping[int, Link]) -> list[tuple[Link, Ask]]:
        """Return the requests for committed offsets and descriptions, to the coordinators.

        Those for share groups' offsets are the slow lane's.
        """
        asks: list[tuple[Link, Ask]] = []
        for broker, link in askable.items():
            own = [g for g in self.state.groups.values() if g.coordinator == broker]
            commit = [g.group for g in own if g.type != GroupType.SHARE]
            missing = [g.group for g in own if g.missing_ms != UNKNOWN]
            if commit:
                asks.append((link, partial(self.requests.commits, link, broker, commit)))
            if missing:
                asks.append((link, partial(self.requests.look_for, link, broker, missing)))
            by_kind: dict[Kind, list[str]] = {}
            for known in own:
                kind = KINDS.get(known.type)
                if kind is not None and kind.api in link.versions and known.missing_ms == UNKNOWN:
                    by_kind.setdefault(kind, []).append(known.group)
            for kind, names in by_kind.items():
                asks.append((link, partial(self.requests.describe, link, broker, kind, names)))
        return asks

    def update(self, now_ms: int) -> None:
        """Note why figures are old and which groups are not known, and rebuild the tables."""
        plan = hearing.Plan(self.interval_s, self.list_rounds)
        hearing.update_causes(self.state.groups.values(), self.links.fast, plan, now_ms)
        self.state.group_tables.update(self.state.groups)
        self.unheard = hearing.unheard(self.state, self.links.fast)
