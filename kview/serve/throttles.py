"""How much clients of a broker, or of the controller, have used of their quotas."""

from collections import OrderedDict
from typing import TypeVar

from kview.simulate.client_quotas import Limit, Rate, TokenBucket

SHARERS_MAX = 10_000
"""Limit of the clients that are remembered. Those that have used nothing for longest are forgotten."""

NAME_MAX = 1_000
"""Clients share what they have used if this many characters of their names are the same."""

T = TypeVar("T", Rate, TokenBucket)


class Throttles:
    """The rates and credits of clients."""

    def __init__(self) -> None:
        self._rates: OrderedDict[tuple[str, tuple[str, str]], Rate] = OrderedDict()
        self._buckets: OrderedDict[tuple[str, tuple[str, str]], TokenBucket] = OrderedDict()

    def rate(self, key: str, limit: Limit) -> Rate:
        """Return what the sharers of a limit have used."""
        return _remembered(self._rates, (key, limit.sharers), Rate)

    def bucket(self, key: str, limit: Limit) -> TokenBucket:
        """Return the credits of the sharers of a limit."""
        return _remembered(self._buckets, (key, limit.sharers), TokenBucket)


def _remembered(
    known: OrderedDict[tuple[str, tuple[str, str]], T], key: tuple[str, tuple[str, str]], kind: type[T]
) -> T:
    what, (user, client_id) = key
    key = what, (user[:NAME_MAX], client_id[:NAME_MAX])
    if key not in known:
        known[key] = kind()
        if len(known) > SHARERS_MAX:
            known.popitem(last=False)
    known.move_to_end(key)
    return known[key]
