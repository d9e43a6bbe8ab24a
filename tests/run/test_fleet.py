"""Several clusters in one run: each observed for itself, until kview ends."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from kview.errors import ClusterUnreachable
from kview.language.notices import text
from kview.model.address import Address
from kview.model.findings import FindingKind
from kview.model.notices import NoticeKind
from kview.recording.reader import Recording
from kview.run.connected import ConnectedSource
from kview.run.fleet import Fleet
from kview.run.settings import Display, Record
from kview.run.show import Shown
from kview.tui.session import Session
from kview.tui.widgets.fleet import Member
from tests.observe.fake_broker import FakeBroker
from tests.real_kafka.nodes import free_ports
from tests.run import fakes
from tests.waiting import wait_until

INTERVAL_MS = 100


def shown(name: str, address: Address, folder: Path | None = None) -> Shown:
    """What is shown of the cluster at an address."""
    display = Display(interval_ms=INTERVAL_MS, no_spark=True, record=Record(folder))
    return Shown(source=ConnectedSource([address], INTERVAL_MS / 1000), name=name, display=display)


class Others:
    """One more cluster that can be opened."""

    def __init__(self, other: Shown) -> None:
        self._other = other

    def names(self) -> Sequence[str]:
        """Its name."""
        return [self._other.name]

    def shown(self, name: str) -> Shown:
        """The cluster."""
        assert name == self._other.name
        return self._other


Begin = Callable[..., Fleet]


@pytest.fixture
def begin() -> Iterator[Begin]:
    """Begins fleets, and ends them with the test."""
    begun: list[Fleet] = []

    def make(*clusters: Shown, others: Others | None = None) -> Fleet:
        begun.append(Fleet(clusters, others))
        return begun[-1]

    yield make
    for fleet in begun:
        fleet.stop()


def of(fleet: Fleet, name: str) -> Member:
    """A cluster of a fleet as it is now."""
    session = fleet.fleet()
    assert session is not None and session.members is not None
    return next(member for member in session.members() if member.name == name)


def sequence(fleet: Fleet, name: str) -> int:
    """The number of a cluster's newest observation, −1 before the first."""
    view = of(fleet, name).view
    return -1 if view is None else view.snapshot.observation.sequence


def test_one_that_dies_says_so_and_the_other_stays_current(begin: Begin) -> None:
    with FakeBroker(0) as one, FakeBroker(0) as other:
        fleet = begin(shown("one", one.address), shown("other", other.address))
        fleet.begin()
        wait_until(lambda: min(sequence(fleet, "one"), sequence(fleet, "other")) > 1, "both are observed")
        one.close()

        def is_dead() -> bool:
            view = of(fleet, "one").view
            assert view is not None
            return any(each.kind is FindingKind.NO_BROKER_ANSWERS for each in view.headline.findings)

        wait_until(is_dead, "the one is found dead")
        before = sequence(fleet, "other")
        wait_until(lambda: sequence(fleet, "other") > before + 1, "the other goes on")
        well = of(fleet, "other").view
        assert well is not None and bool(well.snapshot.brokers.answers.all())


def test_one_that_cannot_be_reached_is_tried_again_and_the_other_does_not_wait(begin: Begin) -> None:
    (port,) = free_ports(1)
    with FakeBroker(0) as other:
        fleet = begin(shown("late", Address("127.0.0.1", port)), shown("other", other.address))
        fleet.begin()
        wait_until(lambda: sequence(fleet, "other") > 1, "the other is observed")
        notice = of(fleet, "late").notice
        assert notice is not None and notice.kind is NoticeKind.SOURCE_NOT_REACHED
        with FakeBroker(0, port=port):
            wait_until(lambda: sequence(fleet, "late") > 0, "it is reached at last")
            assert of(fleet, "late").notice is None


def test_a_cluster_that_is_left_is_observed_and_recorded_further(begin: Begin, tmp_path: Path) -> None:
    with FakeBroker(0) as one, FakeBroker(0) as other:
        fleet = begin(
            shown("one", one.address, tmp_path / "one"), others=Others(shown("other", other.address))
        )
        first = fleet.begin()
        assert first.timeline is not None
        seen = fakes.Shown()
        first.feed.start(seen.views.append, seen.notices.append)
        wait_until(lambda: len(seen.views) > 2, "it is shown")
        assert list(fleet.names()) == ["other"]
        second = fleet.open("other")
        first.feed.stop()
        assert list(fleet.names()) == ["one"]
        second.feed.start(lambda view: None, lambda notice: None)
        left_at, shown_until = seen.last.snapshot.observation.sequence, len(seen.views)
        wait_until(lambda: _recorded(tmp_path / "one") > left_at + 3, "it is recorded further")
        assert len(seen.views) == shown_until
        again = fleet.open("one")
        second.feed.stop()
        assert again.timeline is first.timeline and again.opened is first.opened
        back = fakes.Shown()
        again.feed.start(back.views.append, back.notices.append)
        assert back.views[0].snapshot.observation.sequence > left_at + 2, "shown at once"
        assert len(back.views[0].throughput.in_series) >= len(seen.last.throughput.in_series)


def _recorded(folder: Path) -> int:
    return len(Recording.open(folder).moments()) if (folder / "manifest.json").exists() else 0


def led_back(fleet: Fleet) -> Session:
    """What is shown instead of a cluster that cannot be reached."""
    found: list[Session] = []

    def is_back() -> bool:
        found.extend(session for session in [fleet.instead()] if session is not None)
        return bool(found)

    wait_until(is_back, "the way back")
    return found[0]


def test_a_cluster_that_is_opened_and_cannot_be_reached_leads_back_and_says_why(begin: Begin) -> None:
    closed = Address("127.0.0.1", free_ports(1)[0])
    with FakeBroker(0) as one:
        fleet = begin(shown("one", one.address), others=Others(shown("closed", closed)))
        first = fleet.begin()
        first.feed.start(lambda view: None, lambda notice: None)
        failing = fleet.open("closed")
        first.feed.stop()
        failing.feed.start(lambda view: None, lambda notice: None)
        back = led_back(fleet)
        failing.feed.stop()
        assert fleet.error is None
        assert back.timeline is first.timeline and back.opening is not None
        assert text(back.opening).startswith("closed cannot be shown: nothing is listening")


def test_the_error_of_the_only_cluster_ends_the_run(begin: Begin) -> None:
    fleet = begin(shown("closed", Address("127.0.0.1", free_ports(1)[0])))
    ended: list[bool] = []
    fleet.on_error(lambda: ended.append(True))
    session = fleet.begin()
    assert session.clusters is not None
    session.feed.start(lambda view: None, lambda notice: None)
    wait_until(lambda: bool(ended), "the end")
    assert isinstance(fleet.error, ClusterUnreachable)
    assert session.clusters.instead() is None


def test_every_cluster_has_a_flight_recording_of_its_own(begin: Begin) -> None:
    with FakeBroker(0) as one, FakeBroker(0) as other:
        fleet = begin(shown("one", one.address), shown("other", other.address))
        fleet.begin()
        folders = [kept.recording for kept in fleet.kept]
        wait_until(lambda: all(kept.recording for kept in fleet.kept), f"both are recorded: {folders}")
        assert len({kept.recording for kept in fleet.kept}) == 2
