"""Brokers that answer and do not reach the active controller."""

from kview.derive.fold import State, step
from kview.derive.view import View
from kview.language.brokers import state as words_of
from kview.language.findings import sentence
from kview.model.events import Severity
from kview.model.findings import Finding, FindingKind
from kview.model.units import UNKNOWN
from kview.school.camera.camera import Camera
from kview.simulate.cluster import Cluster, build
from kview.simulate.world import default_world
from tests.simulate.engine import START_MS, go


class Watched:
    """A cluster, and what is seen of it each second."""

    def __init__(self) -> None:
        self.cluster: Cluster = build(default_world(), 1, START_MS)
        self._camera = Camera(self.cluster)
        self._state = State()

    def watch(self, seconds: int) -> list[View]:
        views = []
        for _ in range(seconds):
            go(self.cluster, 1)
            self._state, view = step(self._state, self._camera.snapshot())
            views.append(view)
        return views


def cut_off(view: View) -> list[Finding]:
    return [one for one in view.headline.findings if one.kind is FindingKind.BROKERS_CUT_OFF]


def test_an_isolated_broker_is_cut_off_until_it_is_fenced() -> None:
    watched = Watched()
    watched.watch(3)
    watched.cluster.faults.isolate(4)
    views = watched.watch(8)
    assert [bool(cut_off(view)) for view in views[:2]] == [False, False]
    (found,) = cut_off(views[-2])
    assert found.brokers == (4,) and found.since_ms != UNKNOWN
    seen, now_ms = views[4], views[4].snapshot.observation.ended_ms
    assert sentence(cut_off(seen)[0], now_ms) == (
        "broker 4 is cut off from the controllers for 5.0 s: clients still reach it, and its metadata are old"
    )
    assert words_of(seen.snapshot.brokers, seen.brokers, 4, now_ms).text == "cut off 5 s"
    assert seen.brokers.severity[4] is Severity.WARN
    assert (seen.brokers.cut_off_since_ms != UNKNOWN).tolist() == [False] * 4 + [True, False]
    fenced = watched.watch(5)[-1]
    assert not cut_off(fenced), "the controllers have said what they make of it"
    assert str(fenced.snapshot.brokers.state[4]) == "fenced"
    watched.cluster.faults.undo()
    assert not any(cut_off(view) for view in watched.watch(15)[3:])


def test_brokers_that_crash_hang_or_lose_each_other_are_not_cut_off() -> None:
    watched = Watched()
    watched.watch(3)
    watched.cluster.faults.crash(5)
    watched.cluster.faults.hang(4)
    watched.cluster.faults.cut(0, 1)
    watched.cluster.faults.slow(3, 200)
    assert not any(cut_off(view) for view in watched.watch(12))
    watched.cluster.faults.crash_controller()
    assert not any(cut_off(view) for view in watched.watch(8))
    watched.cluster.faults.undo()
    assert not any(cut_off(view) for view in watched.watch(20))
