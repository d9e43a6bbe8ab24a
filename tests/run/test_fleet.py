"""Several clusters in one run: each observed for itself, until kview ends."""

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from kview.config.key_file import key_file_path
from kview.derive.view import View
from kview.errors import BadUse, ClusterUnreachable, ErrorKind
from kview.language.notices import text
from kview.model.address import Address
from kview.model.aggregates import SparkState
from kview.model.findings import FindingKind
from kview.model.notices import Notice, NoticeKind
from kview.model.snapshot import Snapshot
from kview.recording.names import flight_folder, state_folder
from kview.recording.reader import Recording
from kview.run.dashboard import drive
from kview.run.fleet import Fleet
from kview.run.observing import AttentiveSource, ConnectedSource
from kview.run.printing import Printed, print_all
from kview.run.settings import Display, Record
from kview.run.show import Shown
from kview.run.timeline import MOST_KEPT
from kview.tui.session import Session
from kview.tui.widgets.header import Member
from tests.observe.fake_broker import FakeBroker
from tests.real_kafka.nodes import free_ports
from tests.run import fakes
from tests.waiting import PATIENCE_S, wait_until

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
        fleet.first()
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
        fleet.first()
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
        first = fleet.first()
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
        first = fleet.first()
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
    session = fleet.first()
    assert session.clusters is not None
    session.feed.start(lambda view: None, lambda notice: None)
    wait_until(lambda: bool(ended), "the end")
    assert isinstance(fleet.error, ClusterUnreachable)
    assert session.clusters.instead() is None


def test_every_cluster_has_a_flight_recording_of_its_own(begin: Begin) -> None:
    with FakeBroker(0) as one, FakeBroker(0) as other:
        fleet = begin(shown("one", one.address), shown("other", other.address))
        fleet.first()
        folders = [kept.recording for kept in fleet.kept]
        wait_until(lambda: all(kept.recording for kept in fleet.kept), f"both are recorded: {folders}")
        assert len({kept.recording for kept in fleet.kept}) == 2


class Failing:
    """A source that raises some errors instead of connecting, one at each attempt, and then connects."""

    def __init__(self, of: Shown, *errors: Exception) -> None:
        self.shown = replace(of, source=cast(AttentiveSource, self))
        self._source, self._errors = of.source, list(errors)
        self.goes_on = threading.Event()
        """Until then it is connecting."""

    def connect(self) -> None:
        """Fail, or connect."""
        self.goes_on.wait(PATIENCE_S)
        if self._errors:
            raise self._errors.pop(0)
        self._source.connect()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)


def test_wrong_settings_and_bugs_are_tried_again(begin: Begin) -> None:
    with FakeBroker(0) as one, FakeBroker(0) as other:
        wrong = Failing(shown("late", one.address), BadUse(ErrorKind.STORE_UNKNOWN, file="half-written.pem"))
        bug = Failing(shown("bad", other.address), ZeroDivisionError("a bug"))
        wrong.goes_on.set()
        fleet = begin(wrong.shown, bug.shown)
        fleet.first()
        session = fleet.open("bad")
        seen = fakes.Shown()
        session.feed.start(seen.views.append, seen.notices.append)
        bug.goes_on.set()
        wait_until(lambda: sequence(fleet, "late") > 0 and bool(seen.views), "both are reached at last")
        assert [notice.kind for notice in seen.notices] == [
            NoticeKind.OBSERVING_FAILED,
            NoticeKind.OBSERVING_AGAIN,
        ]
        assert "a bug" in text(seen.notices[0]) and fleet.instead() is None
        assert of(fleet, "bad").notice is None


def visited(fleet: Fleet, name: str, until: Callable[[fakes.Shown], bool] = bool) -> fakes.Shown:
    """What is seen of a cluster that is opened, and left when enough was seen."""
    seen = fakes.Shown()
    session = fleet.open(name)
    session.feed.start(seen.views.append, seen.notices.append)
    wait_until(lambda: until(seen), "enough of it")
    session.feed.stop()
    return seen


def test_what_is_said_of_a_cluster_that_is_not_shown_waits_until_it_is(begin: Begin) -> None:
    with FakeBroker(0) as one, FakeBroker(0) as other:
        fleet = begin(shown("one", one.address), shown("other", other.address))
        fleet.first()
        for number in range(MOST_KEPT + 1):
            values = {"reason": f"exit code {number}", "text": "x"}
            fleet.kept[0].timeline.notify(Notice(NoticeKind.HOOK_FAILED, values))
        said = [notice.values.get("reason") for notice in visited(fleet, "one").notices]
        assert said[:MOST_KEPT] == [f"exit code {number}" for number in range(1, MOST_KEPT + 1)]


def test_spark_has_nothing_to_read_if_the_recording_has_stopped_before(
    begin: Begin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    flight_folder(state_folder()).parent.mkdir(parents=True)
    flight_folder(state_folder()).write_text("a file where a folder should be")
    with FakeBroker(0) as one, FakeBroker(0) as other:
        first = shown("one", one.address)
        first = replace(first, display=replace(first.display, no_spark=False))
        fleet = begin(first, shown("other", other.address))
        fleet.first()

        def has_stopped(seen: fakes.Shown) -> bool:
            return any(notice.kind is NoticeKind.RECORDING_STOPPED for notice in seen.notices)

        def has_failed(seen: fakes.Shown) -> bool:
            return bool(seen.views) and seen.last.aggregates.status.state is SparkState.FAILED

        visited(fleet, "one", has_stopped)
        visited(fleet, "one", has_failed)


def test_the_run_ends_if_neither_the_first_cluster_nor_the_one_opened_can_be_reached(begin: Begin) -> None:
    unreachable = ClusterUnreachable(ErrorKind.SERVER_EMPTY, text="")
    nowhere = Address("127.0.0.1", free_ports(1)[0])
    first, second = Failing(shown("a", nowhere), unreachable), Failing(shown("b", nowhere), unreachable)
    fleet = begin(first.shown, others=Others(second.shown))
    ended: list[bool] = []
    fleet.on_error(lambda: ended.append(True))
    fleet.first().feed.start(lambda view: None, lambda notice: None)
    fleet.open("b").feed.start(lambda view: None, lambda notice: None)
    first.goes_on.set()
    wait_until(lambda: fleet.kept[0].timeline.error is not None, "the first one has failed")
    assert fleet.instead() is None and not ended
    second.goes_on.set()
    wait_until(lambda: fleet.instead() is None and bool(ended), "the end")
    assert fleet.error is unreachable


def test_an_error_before_anything_is_drawn_ends_the_run_as_soon_as_it_can_end(begin: Begin) -> None:
    unreachable = ClusterUnreachable(ErrorKind.SERVER_EMPTY, text="")
    only = Failing(shown("a", Address("127.0.0.1", free_ports(1)[0])), unreachable)
    fleet = begin(only.shown)
    only.goes_on.set()
    wait_until(lambda: fleet.error is not None, "it has failed")
    ended: list[bool] = []
    fleet.on_error(lambda: ended.append(True))
    assert ended == [True]


def test_settings_are_those_of_the_beginning(
    begin: Begin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with FakeBroker(0) as one, FakeBroker(0) as other:
        first = shown("one", one.address)
        first = replace(first, display=replace(first.display, no_mouse=True))
        fleet = begin(first, shown("other", other.address))
        assert not fleet.first().mouse
        key_file_path().parent.mkdir(parents=True)
        key_file_path().write_text("not toml [[[")
        assert fleet.open("one").clusters is fleet and fleet.fleet() is not None
    with pytest.raises(BadUse):
        begin(first)


def interrupted() -> Iterator[Notice]:
    """Notices that Ctrl-C comes before."""
    raise KeyboardInterrupt
    yield


def test_what_has_begun_ends_if_the_others_cannot_begin_or_nothing_can_be_shown() -> None:
    before = set(threading.enumerate())
    with FakeBroker(0) as broker:
        one, other = shown("one", broker.address), shown("other", broker.address)
        never = replace(other, opening=cast(Sequence[Notice], interrupted()))
        with pytest.raises(KeyboardInterrupt):
            Fleet([one, never], None)
        fleet = Fleet([shown("one", broker.address)], None)

        def fails() -> Session:
            raise ZeroDivisionError("a bug")

        with pytest.raises(ZeroDivisionError):
            drive(fleet, fails, fleet.stop)
    wait_until(lambda: not {*threading.enumerate()} - before, "all threads have ended")


def test_text_of_several_ends_while_one_is_connecting(tmp_path: Path) -> None:
    ended: list[bool] = []

    def interrupt(snapshot: Snapshot, view: View | None) -> None:
        if not ended:
            ended.append(True)
            os.kill(os.getpid(), signal.SIGINT)

    with FakeBroker(0) as one:
        hung, before = Failing(shown("hung", one.address, tmp_path / "hung")), set(threading.enumerate())
        seen = shown("one", one.address, tmp_path / "one")
        printed = [
            Printed(each.source, each.name, replace(each.display, quiet=True), takers)
            for each, takers in ((hung.shown, ()), (seen, (interrupt,)))
        ]
        was = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
        with pytest.raises(KeyboardInterrupt):
            print_all(printed)
        signal.signal(signal.SIGINT, was)
        assert not hung.goes_on.is_set()
        hung.goes_on.set()
        wait_until(lambda: not {*threading.enumerate()} - before, "it ends, too")
    recording = Recording.open(tmp_path / "one")
    assert len(recording.moments()) >= 1 and not recording.grows()
