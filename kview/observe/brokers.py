"""The table of brokers: which are listed, which answer, what the quorum sees of them, and since when."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from kafka.protocol.admin import DescribeClusterRequest

from kview.model.failures import FailureKind, refused
from kview.model.snapshot import Brokers, Quorum
from kview.model.states import BrokerState
from kview.model.units import UNKNOWN
from kview.observe.causes import Refused
from kview.observe.layout import strings
from kview.wire.metadata import BrokerAddress


@dataclass(frozen=True, slots=True)
class Health:
    """A link's knowledge: since when its broker is silent (or UNKNOWN), its last answer, and the reason."""

    failing_since_ms: int
    answered_ms: int
    error: FailureKind


NEVER_ASKED = Health(UNKNOWN, UNKNOWN, FailureKind.NONE)


@dataclass(slots=True)
class BrokerFacts:
    """The facts known about a broker, which stay even after it has left the cluster's answers."""

    address: BrokerAddress
    state: str
    since_ms: int
    answers: bool = False
    answered_ms: int = UNKNOWN
    error: FailureKind = FailureKind.NONE
    last_fetch_ms: int = UNKNOWN
    disk_bytes: int = UNKNOWN
    session_timeout_ms: int = UNKNOWN


@dataclass(frozen=True, slots=True)
class Registered:
    """A broker as listed by DescribeCluster."""

    address: BrokerAddress
    fenced: bool


def cluster_request() -> Any:
    """Build the request for all registered brokers, including fenced ones."""
    return DescribeClusterRequest(include_cluster_authorized_operations=False, include_fenced_brokers=True)


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
    now_ms: int,
) -> None:
    """Update `known` with the latest answers.

    `listed` are the brokers in Metadata. `cluster` is empty if the cluster does not report fenced brokers.
    """
    active = {address.id: address for address in listed}
    for broker in sorted(known.keys() | active.keys() | cluster.keys()):
        facts = known.get(broker)
        seen = health.get(broker, NEVER_ASKED)
        failing = seen.failing_since_ms != UNKNOWN
        address = active.get(broker) or (cluster[broker].address if broker in cluster else None)
        if broker in active:
            state = BrokerState.SILENT if failing else BrokerState.UP
        else:
            state = BrokerState.FENCED if broker in cluster else BrokerState.GONE
        since_ms = seen.failing_since_ms if state is BrokerState.SILENT else now_ms
        if facts is None:
            assert address is not None
            facts = known[broker] = BrokerFacts(address, state.value, since_ms)
        elif facts.state != state:
            facts.state, facts.since_ms = state.value, since_ms
        if address is not None:
            facts.address = address
        facts.answered_ms = max(facts.answered_ms, seen.answered_ms)
        facts.answers = not failing and seen.answered_ms != UNKNOWN
        facts.error = seen.error if failing else FailureKind.NONE


def saw_quorum(known: Mapping[int, BrokerFacts], nodes: Quorum) -> None:
    """Store when the quorum last saw each broker fetch metadata."""
    for node, last_fetch_ms in zip(nodes.node.tolist(), nodes.last_fetch_ms.tolist(), strict=True):
        facts = known.get(node)
        if facts is not None and last_fetch_ms > facts.last_fetch_ms:
            facts.last_fetch_ms = last_fetch_ms


def table(known: Mapping[int, BrokerFacts]) -> Brokers:
    """Return the table of brokers."""
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
        error=strings([f.error.value for f in ordered]),
        disk_bytes=np.array([f.disk_bytes for f in ordered], np.int64),
        session_timeout_ms=np.array([f.session_timeout_ms for f in ordered], np.int64),
    )
