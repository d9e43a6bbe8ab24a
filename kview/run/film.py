"""What a simulated cluster did in its last minutes, kept in memory until somebody wants it as a recording."""

from collections import deque
from pathlib import Path

from kview.derive.facts import Facts
from kview.derive.fold import State, step
from kview.model.snapshot import Snapshot
from kview.school.camera.camera import Camera
from kview.simulate.cluster import Cluster

MOST_SNAPSHOTS = 2_400
"""Ten minutes of them; the oldest go."""


class Film:
    """Snapshots of a cluster, four a second."""

    def __init__(self, cluster: Cluster) -> None:
        self._camera = Camera(cluster)
        self._taken: deque[Snapshot] = deque(maxlen=MOST_SNAPSHOTS)

    def begin(self) -> None:
        """Forget what was taken."""
        self._taken.clear()
        self.take()

    def take(self) -> None:
        """Take a snapshot."""
        self._taken.append(self._camera.snapshot())

    def write(self, folder: Path) -> None:
        """Write what was taken as a recording, for `kview replay`. Raises KviewError."""
        from kview.recording.writer import RecordingWriter  # Arrow, which a cluster needs for this alone

        self.take()
        writer, state = RecordingWriter(folder), State()
        for snapshot in self._taken:
            state, view = step(state, snapshot)
            writer.append(snapshot, Facts.of(view))
        writer.close()
