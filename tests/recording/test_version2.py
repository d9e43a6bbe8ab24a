"""A recording made with schema version 2 is read like a current one, but without the latency of brokers.

`version2/closed` has six observations of `tests.worlds.default_world`.
"""

from pathlib import Path

from kview.derive.fold import State, step
from kview.model.findings import FindingKind
from kview.model.units import UNKNOWN
from kview.recording import version2
from kview.recording.manifest import read_manifest
from kview.recording.reader import Recording
from tests.recording.snapshots import all_of

FOLDER = Path(__file__).parent / "version2" / "closed"


def test_the_latency_of_brokers_is_unknown_and_the_rest_is_as_written() -> None:
    assert read_manifest(FOLDER).version == version2.VERSION
    seen = all_of(Recording.open(FOLDER))
    assert len(seen) == 6
    for snapshot in seen:
        assert snapshot.brokers.id.tolist() == [0, 1, 2, 3, 4, 5]
        assert snapshot.brokers.latency_us.tolist() == [UNKNOWN] * 6
        assert snapshot.brokers.disk_bytes.tolist() == [1_100_000_000 + 1_000_000 * id for id in range(6)]


def test_it_is_folded_into_a_view() -> None:
    state = State()
    for snapshot in all_of(Recording.open(FOLDER)):
        state, view = step(state, snapshot)
    assert view.headline.findings[0].kind is FindingKind.CLUSTER_WELL
    assert len(view.snapshot.partitions) == 70
