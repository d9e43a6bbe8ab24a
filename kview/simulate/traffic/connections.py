"""What the simulated clients of a cluster reach over the network."""

from collections.abc import Mapping
from dataclasses import dataclass

from kview.simulate.brokers.broker import Broker
from kview.simulate.coordination.of_cluster import Coordinators
from kview.simulate.groups.coordinator import GroupCoordinator
from kview.simulate.kernel import Kernel
from kview.simulate.metadata import MetadataImage
from kview.simulate.nodes import Nodes
from kview.simulate.requests.records import RecordRequests
from kview.simulate.sharing.leaders import ShareLeaders
from kview.simulate.transactions.asking import Asking
from kview.simulate.transactions.coordinator import TransactionCoordinator


@dataclass(frozen=True, slots=True)
class Connections:
    """The brokers of a cluster as clients use them.

    `nodes` say whether a broker answers, `records`, `share_leaders` and the two kinds of coordinators answer
    requests. `asking` is the brokers' way to the coordinators of transactions.
    """

    kernel: Kernel
    nodes: Nodes
    brokers: Mapping[int, Broker]
    records: RecordRequests
    coordinators: Coordinators[GroupCoordinator]
    transaction_coordinators: Coordinators[TransactionCoordinator]
    asking: Asking
    share_leaders: ShareLeaders

    def image(self, b: int) -> MetadataImage:
        """Return broker b's copy of the metadata."""
        return self.brokers[b].image

    def groups(self, b: int) -> GroupCoordinator:
        """Return the group coordinator on broker b, whether or not b answers."""
        return self.coordinators.of(b)

    def transactions(self, b: int) -> TransactionCoordinator:
        """Return the transaction coordinator on broker b, whether or not b answers."""
        return self.transaction_coordinators.of(b)
