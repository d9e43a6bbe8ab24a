"""How a list is ordered and which groups it holds, and what that is called on the screen."""

from collections.abc import Mapping
from enum import Enum, auto


class Order(Enum):
    """The order of a list's rows."""

    IN_PLACE = auto()
    """The order in which the panel arranges its rows, such as brokers by rack. It needs no name."""
    WORST_FIRST = auto()
    """The rows in trouble first, then the others by name."""


ORDERS: Mapping[Order, str] = {
    Order.IN_PLACE: "",
    Order.WORST_FIRST: "worst first",
}

BY_NAME = "by name"
"""What WORST_FIRST amounts to in a list without a row in trouble."""


def order_name(of: Order, troubled: int | None = None) -> str:
    """Return the order's name. `troubled` is the number of rows in trouble, None if the list does not put the
    other rows in the order of their names."""
    return BY_NAME if of is Order.WORST_FIRST and troubled == 0 else ORDERS[of]


class GroupList(Enum):
    """Which groups are listed. The key that changes it goes through them in this order."""

    NOT_IGNORED = auto()
    """All but those that the user ignores."""
    ALL = auto()
    LIVELY = auto()
    """All but ignored and abandoned ones."""


GROUP_LISTS: Mapping[GroupList, str] = {
    GroupList.NOT_IGNORED: "ignored groups are hidden",
    GroupList.ALL: "all groups are listed",
    GroupList.LIVELY: "ignored and abandoned groups are hidden",
}

NEXT_GROUP_LIST: Mapping[GroupList, str] = {
    GroupList.NOT_IGNORED: "show all",
    GroupList.ALL: "hide ignored and abandoned",
    GroupList.LIVELY: "hide only ignored",
}
"""What the key does next, by the groups that are listed now."""
