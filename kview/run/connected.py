"""`kview connect`: an existing cluster and its observer."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from kview.model.address import Address
from kview.model.snapshot import Snapshot
from kview.run.recorder import check_target
from kview.run.settings import Display

if TYPE_CHECKING:
    from kview.observe.observer import Observer


class ConnectedSource:
    """A `Source` that is an observer, together with its `Attention`.

    The observer is imported and created in `connect`, so that the first frame does not have to wait for it.
    """

    def __init__(self, bootstrap_servers: Sequence[Address], interval_s: float) -> None:
        self._bootstrap_servers = tuple(bootstrap_servers)
        self._interval_s = interval_s
        self._observer: Observer | None = None
        self._preferred: frozenset[tuple[str, int]] = frozenset()
        self._asked_for = self._preferred
        """The partitions that the observer should prefer."""

    def connect(self) -> None:
        """Find the cluster. Raises ClusterUnreachable."""
        from kview.observe.observer import Observer, ObserveSettings

        observer = Observer(self._bootstrap_servers, ObserveSettings(interval_s=self._interval_s))
        observer.connect()
        self._observer, self._asked_for = observer, frozenset()

    def observe(self) -> Snapshot:
        """Observe the cluster once. Failures are part of the snapshot."""
        assert self._observer is not None
        preferred = self._preferred
        if preferred is not self._asked_for:
            self._observer.prefer(preferred)
            self._asked_for = preferred
        return self._observer.observe()

    def dismiss(self, broker: int) -> None:
        """Remove the row of a broker that has left the cluster."""
        observer = self._observer
        if observer is not None:
            observer.dismiss(broker)

    def prefer(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Read these partitions in every observation, from the next one on."""
        self._preferred = frozenset(partitions)

    def close(self) -> None:
        """Close the connections."""
        observer, self._observer = self._observer, None
        if observer is not None:
            observer.close()


def connect(bootstrap_servers: Sequence[Address], display: Display) -> int:
    """Run `kview connect` and return the exit code. Raises KviewError if there was never anything to show."""
    from kview.run.show import show

    check_target(display.record)
    source = ConnectedSource(bootstrap_servers, display.interval_ms / 1000)
    return show(source, None, ",".join(map(str, bootstrap_servers)), display)
