"""Which brokers know the cluster's present state, and so are fit to be asked for metadata.

A broker that is cut off from the controllers goes on answering with the metadata it had, and may be the only
one that calls the cluster healthy.
"""

from collections.abc import Iterable, Sequence

from kview.model.states import not_cut_off
from kview.model.units import UNKNOWN
from kview.observe.quorum import QuorumSeen

DOUBTED_S = 30.0
"""How long another broker is preferred after an answer that was outdated or could not be read."""
WITNESS_S = 5.0
"""How often a second broker is asked for metadata if the quorum does not tell which brokers are cut off."""


def told(quorum: QuorumSeen | None, brokers: Iterable[int]) -> dict[int, int]:
    """Return when each of `brokers` last fetched metadata, as far as the quorum tells."""
    if quorum is None:
        return {}
    nodes = quorum.nodes
    fetched = dict(zip(nodes.node.tolist(), nodes.last_fetch_ms.tolist(), strict=True))
    return {broker: fetched[broker] for broker in brokers if fetched.get(broker, UNKNOWN) != UNKNOWN}


def fit(answering: Sequence[int], quorum: QuorumSeen | None, doubted: Iterable[int]) -> Sequence[int]:
    """Return those of the `answering` brokers to prefer, which are all of them if there is no better one."""
    heard = list(not_cut_off(answering, told(quorum, answering)))
    return [broker for broker in heard if broker not in doubted] or heard
