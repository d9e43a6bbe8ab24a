"""An observer of a test's own, and observations and views until something holds."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from kview.config.security import PLAINTEXT, Security
from kview.derive.fold import State, step
from kview.derive.view import View
from kview.language import findings
from kview.model.address import Address
from kview.model.snapshot import Snapshot
from kview.observe.observer import Observer, ObserveSettings
from tests.waiting import PATIENCE_S, wait_until


@contextmanager
def observing(
    servers: Sequence[Address],
    settings: ObserveSettings,
    with_records: bool = True,
    security: Security = PLAINTEXT,
) -> Iterator[Observer]:
    """An observer that is connected to the cluster of these bootstrap servers."""
    observer = Observer(servers, settings, with_records=with_records, security=security)
    observer.connect()
    try:
        yield observer
    finally:
        observer.close()


def until(
    observer: Observer, holds: Callable[[Snapshot], bool], what: str, timeout_s: float = PATIENCE_S
) -> Snapshot:
    """Observe until a snapshot of which `holds` is true, and return it."""

    def probe() -> Snapshot | None:
        snapshot = observer.observe()
        return snapshot if holds(snapshot) else None

    found = wait_until(probe, what, timeout_s)
    assert found is not None
    return found


class Watched:
    """Every view of an observer's cluster, in order."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self._state = State()
        self.views: list[View] = []

    def look(self) -> View:
        """Observe once."""
        self._state, view = step(self._state, self._observer.observe())
        self.views.append(view)
        return view

    def until(self, holds: Callable[[View], bool], what: str, timeout_s: float = PATIENCE_S) -> View:
        """Observe until `holds` is true of a view, and return it."""

        def probe() -> View | None:
            view = self.look()
            return view if holds(view) else None

        found = wait_until(probe, what, timeout_s)
        assert found is not None
        return found


def broker_state(view: View, broker: int) -> str:
    """A broker's state in a view."""
    table = view.snapshot.brokers
    return str(table.state[table.id.tolist().index(broker)])


def headline(view: View) -> list[str]:
    """The headline's sentences."""
    now_ms = view.snapshot.observation.ended_ms
    return [findings.sentence(finding, now_ms) for finding in view.headline.findings]
