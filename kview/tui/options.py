"""The user's choices about how things are shown, shared by all screens."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self, TypeAlias

from kview.derive.filters import Filter, parse
from kview.language.lists import GroupList, Order

PanelOrders: TypeAlias = Mapping[str, Sequence[Order]]
"""The sort orders of each table of a screen, by the table's id."""


@dataclass(frozen=True, slots=True)
class Options:
    """What is shown, and in which order.

    `filter`: only what matches this text is shown, as `kview.derive.filters` reads it. `groups`: which groups are
    listed. `internal`: internal topics are shown too. `sorts`: the sort order of each panel, as a number of
    steps from its first one. `stale_ms`: a figure older than this is dimmed, and its age is shown next to it.
    """

    filter: str = ""
    groups: GroupList = GroupList.NOT_IGNORED
    internal: bool = False
    racks_together: bool = False
    sorts: dict[str, int] = field(default_factory=dict)
    stale_ms: int = 3_000

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
        """The filter as the titles of panels show it, '' if nothing is filtered."""
        return f"/{self.filter}" if self.wanted else ""

    def order(self, panel: str, orders: Sequence[Order]) -> Order:
        """Return the one of a panel's `orders` that is in force."""
        return orders[self.sorts.get(panel, 0) % len(orders)]

    def with_next_order(self, panel: str, orders: Sequence[Order]) -> Self:
        """Return these options with the panel's next sort order."""
        return replace(self, sorts=self.sorts | {panel: (self.sorts.get(panel, 0) + 1) % len(orders)})
