"""The table of brokers: which are listed, which answer, what the quorum sees of them, and since when."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from kafka.protocol.admin.cluster import DescribeClusterRequest
from msgspec import Struct

from kview.model.failures import FailureKind, refused
from kview.model.snapshot import Brokers, Quorum
from kview.model.states import BrokerState
from kview.model.units import UNKNOWN
from kview.observe.causes import Refused
from kview.observe.layout import strings
from kview.wire.metadata import BrokerAddress

GRACE_MS = 3_000
"""How long a broker that has come back may take to answer. Kafka unfences a broker about 0.1 s before its
port accepts connections, and a busy machine takes longer."""


class Health(Struct, frozen=True):
    """A link's knowledge: since when its broker is silent (or UNKNOWN), its last answer, and the reason."""

    failing_since_ms: int = UNKNOWN
    answered_ms: int = UNKNOWN
    error: FailureKind = FailureKind.NONE
    connected: bool = False
    accepted_ms: int = UNKNOWN
    """When its port accepted a connection after it had refused them, UNKNOWN once the broker has answered."""
    latency_us: int = UNKNOWN
    late: bool = False
    """Whether the broker has owed an answer for so long that it may be silent soon."""
    apis: str = ""
    """The APIs that it offers, '' before it has told."""

    @property
    def failing(self) -> bool:
        return self.failing_since_ms != UNKNOWN


NEVER_ASKED = Health()

DESCRIBE = 8
"""Kafka's number of the operation Describe. On the cluster, it includes the list of all groups."""

Leads = Callable[[int], frozenset[tuple[str, int, int]]]
"""Returns the (topic, partition, leader epoch) of what a broker leads according to metadata."""


class BrokerFacts(Struct):
    """The facts known about a broker, which stay even when the cluster no longer lists it."""

    address: BrokerAddress
    state: str
    since_ms: int
    answers: bool = False
    answered_ms: int = UNKNOWN
    error: FailureKind = FailureKind.NONE
    last_fetch_ms: int = UNKNOWN
    latency_us: int = UNKNOWN
    disk_bytes: int = UNKNOWN
    session_timeout_ms: int = UNKNOWN
    apis: str = ""
    settings: tuple[tuple[str, str, str], ...] = ()
    """What it says of `configs.BROKER_KEYS`, nothing if it has not told."""
    returned_ms: int = UNKNOWN
    """When the broker came back to the metadata, UNKNOWN once it has answered."""
    led: frozenset[tuple[str, int, int]] = frozenset()
    """What it led when it became silent, with the leader epochs."""
    fenced_at_first: bool = False
    """Whether it has been fenced since before kview's first observation."""

    @property
    def is_away(self) -> bool:
        """Whether it does not answer, or has left the cluster: its process may have ended."""
        return self.error is not FailureKind.NONE or self.state == BrokerState.GONE


class Registered(Struct, frozen=True):
    """A broker as listed by DescribeCluster."""

    address: BrokerAddress
    fenced: bool


def cluster_request() -> Any:
    """Build the request for all registered brokers, including fenced ones, and for what kview may do."""
    return DescribeClusterRequest(include_cluster_authorized_operations=True, include_fenced_brokers=True)


def lists_all_groups(answer: Any) -> bool | None:
    """Return whether kview is authorized to list all groups of the cluster, None if that is not known."""
    operations = answer.authorized_operations
    return None if operations is None else DESCRIBE in operations


def registered(answer: Any) -> dict[int, Registered]:
    """Return the brokers of an answer, by id. Raises Refused."""
    if answer.error_code:
        raise Refused(refused(answer.error_code))
    return {
        b.broker_id: Registered(
            BrokerAddress(b.broker_id, b.host, b.port, b.rack or ""), bool(getattr(b, "is_fenced", False))
        )
        for b in answer.brokers
    }


def update(
    known: dict[int, BrokerFacts],
    listed: Sequence[BrokerAddress],
    cluster: Mapping[int, Registered],
    health: Mapping[int, Health],
    leads: Leads,
    now_ms: int,
) -> tuple[int, ...]:
    """Update `known` with the latest answers, and return the brokers that have come back but do not answer
    yet.

    `listed` are the brokers in Metadata, and `cluster` those in DescribeCluster, which is empty if the
    cluster does not report fenced brokers. A broker is active if either says so, because the two answers are
    not of the same moment.
    `leads` returns what a broker leads according to metadata.
    """
    active = {b: registered.address for b, registered in cluster.items() if not registered.fenced}
    active.update({address.id: address for address in listed})
    first = not known
    came_back = []
    for broker in sorted(known.keys() | active.keys() | cluster.keys()):
        seen = health.get(broker, NEVER_ASKED)
        address = active.get(broker) or (cluster[broker].address if broker in cluster else None)
        facts = known.get(broker)
        if facts is None:
            assert address is not None
            facts = known[broker] = BrokerFacts(address, "", UNKNOWN)
            if broker in active and not first:
                facts.returned_ms = now_ms
            facts.fenced_at_first = first and broker not in active
        if address is not None:
            facts.address = address
        if broker in active:
            if _returns(facts, seen, leads, now_ms):
                came_back.append(broker)
            state, since_ms = _listed_state(facts, seen, now_ms)
        else:
            facts.returned_ms = UNKNOWN
            state, since_ms = BrokerState.FENCED if broker in cluster else BrokerState.GONE, now_ms
        if facts.state != state:
            facts.state, facts.since_ms = state.value, since_ms
            facts.led = leads(broker) if state is BrokerState.SILENT else frozenset()
        facts.fenced_at_first &= state is BrokerState.FENCED
        if seen.answered_ms != UNKNOWN:
            facts.answered_ms = seen.answered_ms
        if facts.fenced_at_first and facts.answered_ms != UNKNOWN:
            facts.since_ms = UNKNOWN  # only of brokers that never answered does a time count as a lower bound
        facts.apis = seen.apis or facts.apis
        late = seen.late and broker in active
        facts.answers = not seen.failing and not late and seen.answered_ms != UNKNOWN
        facts.error = seen.error if seen.failing else FailureKind.NONE
        facts.latency_us = seen.latency_us if broker in active else UNKNOWN
    return tuple(came_back)


def _returns(
    facts: BrokerFacts,
    seen: Health,
    leads: Leads,
    now_ms: int,
) -> bool:
    """Return whether a listed broker has just come back without answering yet, and note when it did.

    Either it was fenced or gone; or its port refused connections and now accepts them; or everything that it
    led when it became silent was taken from it, so it was fenced and is listed again.
    """
    if seen.connected and not seen.failing:
        facts.returned_ms = UNKNOWN
        return False
    was_away = facts.state in (BrokerState.FENCED, BrokerState.GONE)
    silent = facts.state == BrokerState.SILENT and facts.returned_ms == UNKNOWN
    if was_away or (silent and facts.led and facts.led.isdisjoint(leads(facts.address.id))):
        facts.returned_ms = now_ms
        return True
    if silent and seen.accepted_ms != UNKNOWN:
        facts.returned_ms = seen.accepted_ms
        return True
    return False


def _listed_state(facts: BrokerFacts, seen: Health, now_ms: int) -> tuple[BrokerState, int]:
    """Return the state of a broker that Metadata lists, and since when it has been in this state."""
    if not seen.failing and (seen.connected or facts.state == BrokerState.UP):
        return BrokerState.UP, now_ms
    if facts.returned_ms != UNKNOWN:
        late = seen.failing and now_ms - facts.returned_ms >= GRACE_MS
        return BrokerState.SILENT if late else BrokerState.STARTING, facts.returned_ms
    return (BrokerState.SILENT, seen.failing_since_ms) if seen.failing else (BrokerState.STARTING, now_ms)


def saw_quorum(known: Mapping[int, BrokerFacts], nodes: Quorum) -> None:
    """Store when the quorum last saw each broker fetch metadata."""
    for node, last_fetch_ms in zip(nodes.node.tolist(), nodes.last_fetch_ms.tolist(), strict=True):
        facts = known.get(node)
        if facts is not None and last_fetch_ms > facts.last_fetch_ms:
            facts.last_fetch_ms = last_fetch_ms


def table(known: Mapping[int, BrokerFacts]) -> Brokers:
    """Return the facts about brokers as columns, by ascending id."""
    ordered = [known[broker] for broker in sorted(known)]
    return Brokers(
        id=np.array([f.address.id for f in ordered], np.int32),
        host=strings([f.address.host for f in ordered]),
        port=np.array([f.address.port for f in ordered], np.int32),
        rack=strings([f.address.rack for f in ordered]),
        state=strings([f.state for f in ordered]),
        since_ms=np.array([f.since_ms for f in ordered], np.int64),
        answers=np.array([f.answers for f in ordered], np.bool_),
        answered_ms=np.array([f.answered_ms for f in ordered], np.int64),
        last_fetch_ms=np.array([f.last_fetch_ms for f in ordered], np.int64),
        latency_us=np.array([f.latency_us for f in ordered], np.int64),
        error=strings([f.error.value for f in ordered]),
        disk_bytes=np.array([f.disk_bytes for f in ordered], np.int64),
        session_timeout_ms=np.array([f.session_timeout_ms for f in ordered], np.int64),
        apis=strings([f.apis for f in ordered]),
    )


def apis_differ(known: Mapping[int, BrokerFacts]) -> bool:
    """Return whether the brokers that are listed offer different APIs."""
    out = (BrokerState.FENCED, BrokerState.GONE)
    return len({facts.apis for facts in known.values() if facts.apis and facts.state not in out}) > 1
