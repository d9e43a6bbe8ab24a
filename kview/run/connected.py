"""`kview connect`: a cluster that is there already, and its observer."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kview.model.address import Address
from kview.model.snapshot import Snapshot
from kview.run.settings import Display
from kview.run.tape import check

if TYPE_CHECKING:
    from kview.observe.observer import Observer


class ConnectedSource:
    """A `Source` over an observer, which is imported and made when it connects: the first frame need not
    wait for it."""

    def __init__(self, bootstrap_servers: Sequence[Address], interval_s: float) -> None:
        self._bootstrap_servers = tuple(bootstrap_servers)
        self._interval_s = interval_s
        self._observer: Observer | None = None

    def connect(self) -> None:
        """Find the cluster. Raises ClusterUnreachable."""
        from kview.observe.observer import Observer, ObserveSettings

        observer = Observer(self._bootstrap_servers, ObserveSettings(interval_s=self._interval_s))
        observer.connect()
        self._observer = observer

    def observe(self) -> Snapshot:
        """Look once; what fails is in the snapshot."""
        assert self._observer is not None
        return self._observer.observe()

    def close(self) -> None:
        """End the connections."""
        observer, self._observer = self._observer, None
        if observer is not None:
            observer.close()


def connect(bootstrap_servers: Sequence[Address], display: Display) -> int:
    """Run `kview connect`. Returns the exit code. Raises KviewError where there was never anything to
    show."""
    from kview.run.showing import show

    check(display.record)
    source = ConnectedSource(bootstrap_servers, display.interval_ms / 1000)
    return show(source, None, ",".join(map(str, bootstrap_servers)), display)
