"""All brokers as leaders of partitions that share groups read."""

from collections.abc import Mapping

from kview.simulate.brokers.broker import Broker
from kview.simulate.nodes import Nodes, ProcessState
from kview.simulate.requests.records import RecordRequests
from kview.simulate.sharing.asking import ShareAsking
from kview.simulate.sharing.leader import ShareLeader
from kview.simulate.sharing.settings import ShareSettings


class ShareLeaders:
    """One leader per broker, which reacts to changes of its broker's metadata and process."""

    def __init__(
        self,
        nodes: Nodes,
        brokers: Mapping[int, Broker],
        records: RecordRequests,
        asking: ShareAsking,
        settings: ShareSettings,
    ) -> None:
        self._of = {b: ShareLeader(broker, records, asking.of(b), settings) for b, broker in brokers.items()}
        for broker in brokers.values():
            broker.on_metadata(lambda b: self._of[b].metadata_changed())
        nodes.on_process_change(self._process_changed)

    def of(self, broker: int) -> ShareLeader:
        return self._of[broker]

    def _process_changed(self, node: int, state: ProcessState) -> None:
        if node in self._of and state in (ProcessState.CRASHED, ProcessState.STOPPED):
            self._of[node].process_ended()
