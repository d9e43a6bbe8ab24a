"""Rows of the partitions below the placement table: those of a topic, of a broker, or of both."""

from kview.derive.view import View
from kview.tui.options import Options
from kview.tui.rows.common import title
from kview.tui.rows.partitions import PartitionRows
from kview.tui.rows.topics import ALL

PANEL = "placed"


class PlacedRows(PartitionRows):
    """The partitions of a topic with a replica on `broker`; ALL: of all topics, None: on any broker."""

    def __init__(self, view: View, options: Options, topic: str, broker: int | None) -> None:
        replicas = view.snapshot.partitions.replicas
        among = None if broker is None else (replicas == broker).any(axis=1)
        super().__init__(view, options, None if topic == ALL else topic, PANEL, among)
        notes = ["" if topic == ALL else f"of {topic}", "" if broker is None else f"on broker {broker}"]
        self.title = title("PARTITIONS", f"{len(self):,}", *notes)
