"""The choices of a user that are kept for a cluster between runs."""

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct, field


class KeptSort(Struct, frozen=True):
    """A panel's order: the column, '' for the panel's own order, and the direction."""

    column: str
    descending: bool


class KeptChoices(Struct, frozen=True):
    """The filter, the orders by panel, and the screen shown last, by the names that the screen gives them."""

    filter: str = ""
    sorts: Mapping[str, KeptSort] = field(default_factory=dict)
    screen: str = ""


class Memory(Protocol):
    """Where choices are kept, by cluster id. All methods are called on the screen's thread."""

    def recall(self, cluster_id: str) -> KeptChoices | None:
        """Return what was kept for a cluster, None if nothing was. Raises KviewError if it is damaged."""
        ...

    def keep(self, cluster_id: str, choices: KeptChoices) -> None:
        """Keep choices for a cluster. Raises KviewError if they cannot be written."""
        ...
