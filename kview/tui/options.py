"""The user's choices about how things are shown, shared by all screens."""

from dataclasses import dataclass, field, replace
from typing import Self


@dataclass(frozen=True, slots=True)
class Options:
    """What is shown, and in which order.

    `filter`: only topics and groups whose name contains this text are shown. `internal`: internal topics are
    shown too. `sorts`: the sort order of each panel. `stale_ms`: a figure older than this is dimmed, and its
    age is shown next to it.
    """

    filter: str = ""
    internal: bool = False
    racks_together: bool = False
    sorts: dict[str, int] = field(default_factory=dict)
    stale_ms: int = 3_000

    def matches(self, name: str) -> bool:
        """Return whether a topic's or group's name passes the filter."""
        return self.filter.casefold() in name.casefold()

    def sort(self, panel: str, orders: int) -> int:
        """Return the sort order of a panel that is in force, as an index into its `orders`."""
        return self.sorts.get(panel, 0) % orders

    def sorted_on(self, panel: str, orders: int) -> Self:
        """Return these options with the panel's next sort order."""
        return replace(self, sorts=self.sorts | {panel: (self.sort(panel, orders) + 1) % orders})
