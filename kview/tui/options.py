"""The user's choices about how things are shown, shared by all screens."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from msgspec import Struct

from kview.derive.filters import Filter, parse
from kview.derive.passing import Listed, concerns
from kview.derive.view import View
from kview.language.lists import GroupList
from kview.tui.actions import Keys
from kview.tui.keys import DEFAULT_KEYS

HOLD_MS = 10_000
"""A list sorted by figures keeps its order for this long while the figures change."""


class Sort(Struct, frozen=True):
    """An order of rows by a column, or the panel's own order if `column` is ''."""

    column: str = ""
    descending: bool = False


OWN_ORDER = Sort()
"""The order that a panel has until the user sorts it, such as the worst first."""


@dataclass(frozen=True, slots=True)
class Options:
    """What is shown, and in which order.

    `filter`: only what matches this text is shown, as `kview.derive.filters` reads it. `groups`: which groups
    are listed. `internal`: internal topics are shown too. `by_place`: replicas are listed by their place in
    the replica lists. `sorts`: the order of each panel that the user has sorted. `stale_ms`: a figure older
    than this is dimmed, and its age is shown next to it. `held`: the view whose figures determine the order
    of sorted lists. `keys`: the keys in force, for texts that name one.
    """

    filter: str = ""
    groups: GroupList = GroupList.NOT_IGNORED
    internal: bool = False
    by_place: bool = False
    sorts: Mapping[str, Sort] = field(default_factory=dict)
    stale_ms: int = 3_000
    held: View | None = field(default=None, compare=False)
    keys: Keys = field(default=DEFAULT_KEYS, compare=False)

    def lists(self, ignored: bool, abandoned: bool) -> bool:
        """Return whether a group is listed, given whether it is ignored and whether it is abandoned."""
        match self.groups:
            case GroupList.ALL:
                return True
            case GroupList.NOT_IGNORED:
                return not ignored
            case GroupList.LIVELY:
                return not ignored and not abandoned

    def with_next_groups(self) -> Self:
        """Return these options with the next choice of groups."""
        choices = list(GroupList)
        return replace(self, groups=choices[(choices.index(self.groups) + 1) % len(choices)])

    @property
    def wanted(self) -> Filter:
        """The filter in force. It has no terms if the text is wrong."""
        return parse(self.filter)

    @property
    def shown_filter(self) -> str:
        """The filter as it is shown, '' if nothing is filtered."""
        return f"/{self.filter}" if self.wanted else ""

    def filter_of(self, listed: Listed) -> str:
        """Return the filter as the titles of lists show it, '' if it can hide no row of that kind."""
        return self.shown_filter if concerns(self.wanted, listed) else ""

    def sort(self, panel: str) -> Sort:
        """Return the order that the user chose for a panel."""
        return self.sorts.get(panel, OWN_ORDER)

    def holding(self, view: View | None) -> Self:
        """Return these options with `view` as the one that determines the order of sorted lists."""
        return replace(self, held=view if self.sorts else None)

    def with_sort(self, panel: str, sort: Sort) -> Self:
        """Return these options with another order of a panel."""
        kept = {name: each for name, each in self.sorts.items() if name != panel}
        return replace(self, sorts=kept if sort == OWN_ORDER else kept | {panel: sort})
