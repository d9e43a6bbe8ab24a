"""A broker that only kview cannot reach: what is said of it, its partitions and their readers."""

from kview.derive.fold import State, step
from kview.derive.view import PartitionStatus, Verdict, View
from kview.language.findings import sentences
from kview.model.events import EventKind
from kview.observe.observer import Observer, ObserveSettings
from tests.observe.counting_proxy import CountingProxies
from tests.observe.observing import observing
from tests.served import Served
from tests.waiting import PATIENCE_S, wait_until

CUT = 4


class Watching:
    """Folds the observations of an observer, and keeps every view."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self._state = State()
        self.views: list[View] = []

    def until(self, holds: str) -> View:
        """Observe until the headline contains a text."""

        def probe() -> View | None:
            self._state, view = step(self._state, self._observer.observe())
            self.views.append(view)
            return view if holds in said(view) else None

        found = wait_until(probe, holds, PATIENCE_S)
        assert found is not None
        return found


def said(view: View) -> str:
    return " · ".join(sentences(view.headline.findings, view.snapshot.observation.ended_ms))


def test_nothing_is_frozen_and_nobody_blocked_by_a_network_between_kview_and_a_broker() -> None:
    with Served() as served:
        addresses = {broker: (at.host, at.port) for broker, at in enumerate(served.addresses)}
        with (
            CountingProxies(addresses) as proxies,
            observing([proxies.proxies[0].address], ObserveSettings(interval_s=0.5)) as observer,
        ):
            watching = Watching(observer)
            watching.until("cluster healthy")
            proxies.cut.add(CUT)
            view = watching.until(f"broker {CUT} has not answered kview")
            assert f"broker {CUT} silent" not in said(view)
            table = view.snapshot.partitions
            led = view.partitions.status[table.leader == CUT]
            assert len(led) and set(led) == {PartitionStatus.UNKNOWN}
            for seen in watching.views:
                assert "frozen" not in said(seen) and "blocked" not in said(seen), said(seen)
                assert Verdict.BLOCKED not in set(seen.groups.verdict)
                assert EventKind.WATERMARK_FROZEN not in {event.kind for event in seen.new_events}
            proxies.cut.clear()
            watching.until("cluster healthy")
