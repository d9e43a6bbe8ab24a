"""Observations of brokers that hang, drop connections and come back."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, cast

import numpy as np
import pytest
from kafka.protocol.admin import DeleteTopicsRequest
from msgspec.structs import replace

from kview.derive.fold import State as Fold
from kview.derive.fold import step
from kview.model.events import Severity
from kview.model.failures import FailureKind, Part
from kview.model.snapshot import Snapshot
from kview.model.units import UNKNOWN, UNKNOWN_ID
from kview.observe import link as link_module
from kview.observe.apis import READ_ONLY
from kview.observe.clock import system_clock_ms
from kview.observe.groups.facts import GroupFacts
from kview.observe.groups.requests import GroupRequests
from kview.observe.link import STALE_S, Link
from kview.observe.loop import Loop
from kview.observe.observer import Observer, ObserveSettings
from kview.observe.state import State
from kview.plain.blocks import block
from kview.tui.widgets.header import SourceInfo, header_line
from kview.wire.offset_fetch import GroupCommits, OffsetFetchAnswer, TopicCommits
from tests.observe.fake_broker import VERSIONS, FakeBroker
from tests.observe.observing import Watched, broker_state, headline, until
from tests.observe.observing import observing as observing_cluster
from tests.waiting import PATIENCE_S, wait_until

QUICK = ObserveSettings(interval_s=0.2, silence_s=0.5, retry_most_s=0.4)


@contextmanager
def observing(brokers: list[FakeBroker], settings: ObserveSettings = QUICK) -> Iterator[Observer]:
    """An observer of these brokers as one cluster, of which the first leads."""
    for broker in brokers:
        broker.advertised = {one.node: one.address for one in brokers}
    with observing_cluster([brokers[0].address], settings) as observer:
        yield observer


def state(snapshot: Snapshot, broker: int) -> str:
    return str(snapshot.brokers.state[snapshot.brokers.id.tolist().index(broker)])


def test_a_broker_that_owes_an_answer_is_late_before_it_is_silent() -> None:
    settings = replace(QUICK, silence_s=PATIENCE_S)
    with FakeBroker(0) as leader, FakeBroker(1) as other, observing([leader, other], settings) as observer:
        until(observer, lambda s: bool(s.brokers.answers.all()), "both answer")
        other.hang()
        late = until(observer, lambda s: not s.brokers.answers.all(), "one is late")
        assert late.brokers.answers.tolist() == [True, False]
        assert (state(late, 1), late.brokers.error[1]) == ("up", "")
        assert late.observation.ended_ms - int(late.brokers.answered_ms[1]) >= 900
        _, view = step(Fold(), late)
        said = " ".join(headline(view))
        assert "broker 1 has not answered for " in said and "well" not in said
        assert view.headline.severity is Severity.WARN
        shown = block(view, "two")
        assert "1 of 2 brokers answer" in shown and "no reply" in shown
        other.go_on()
        until(observer, lambda s: bool(s.brokers.answers.all()), "both answer again")


def test_a_broker_may_owe_the_answer_to_a_large_request_for_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_module, "A_BYTE_S", PATIENCE_S)
    with FakeBroker(0) as leader, FakeBroker(1) as other, observing([leader, other]) as observer:
        until(observer, lambda s: bool(s.brokers.answers.all()), "both answer")
        other.hang()
        late = until(observer, lambda s: not s.brokers.answers.all(), "one is late")
        assert QUICK.silence_s < STALE_S and state(late, 1) == "up"
        monkeypatch.undo()
        other.go_on()
        until(observer, lambda s: bool(s.brokers.answers.all()), "both answer again")
        other.hang()
        until(observer, lambda s: state(s, 1) == "silent", "with small requests, it is silent sooner")


def test_a_hung_broker_changes_its_own_cells_age_and_nothing_else() -> None:
    settings = replace(QUICK, silence_s=1.0)
    with FakeBroker(0) as leader, FakeBroker(1) as other, observing([leader, other], settings) as observer:
        before = until(
            observer,
            lambda s: state(s, 1) == "up" and s.partitions.high_watermark.tolist() == [100],
            "both are up, and the log's end is known",
        )
        hung_ms = system_clock_ms()
        leader.hang()
        leader.high_watermark = 200
        after = until(observer, lambda s: state(s, 0) == "silent", "it is silent")
        row = after.brokers.id.tolist().index(0)
        assert hung_ms - 50 <= after.brokers.since_ms[row] <= hung_ms + 500
        assert after.brokers.error[row] == FailureKind.SILENT
        assert state(after, 1) == "up"
        assert after.partitions.high_watermark.tolist() == [100]
        assert after.partitions.high_watermark_ms[0] <= hung_ms + 50
        assert after.partitions.leader.tolist() == [0]
        assert [(f.part, f.broker) for f in after.observation.failures] == [(Part.BROKER, 0)]
        assert after.observation.failures[0].shown_since_ms <= hung_ms + 50
        assert before.observation.failures == ()
        leader.go_on()
        back = until(observer, lambda s: state(s, 0) == "up", "the broker is back")
        back = until(observer, lambda s: s.partitions.high_watermark.tolist() == [200], "offsets go on")
        assert back.observation.failures == ()


def test_a_broker_that_is_late_is_waited_for_once() -> None:
    settings = ObserveSettings(interval_s=1.0, silence_s=3.0)
    with FakeBroker(0) as leader, FakeBroker(1) as other, observing([leader, other], settings) as observer:
        until(observer, lambda s: state(s, 1) == "up", "both are up")
        leader.hang()
        observer.observe()
        wait_until(lambda: observation_s(observer) < settings.phase_s / 2, "an observation without a wait")
        leader.go_on()


def observation_s(observer: Observer) -> float:
    began_s = time.monotonic()
    observer.observe()
    return time.monotonic() - began_s


class AnswersAtOnce:
    """A link to a coordinator whose groups have committed 40."""

    versions: ClassVar = {9: (1, 9)}

    async def ask(self, request: Any) -> tuple[OffsetFetchAnswer, int]:
        one = np.array([0], np.int32)
        topic = TopicCommits("invoice", one, one.astype(np.int64) + 40, one.astype(np.int16))
        return OffsetFetchAnswer(0, (GroupCommits("billing", 0, (topic,)),)), 70


def test_commits_that_come_after_ends_were_asked_for_wait_for_the_next_observation() -> None:
    loop = Loop(system_clock_ms, time.monotonic)
    requests = GroupRequests(loop, State())
    known = requests.state.groups["billing"] = GroupFacts("billing", "classic", "Stable", 1)
    loop.start()
    link = cast(Link, AnswersAtOnce())
    requests.ends_asked = True
    loop.run(lambda: requests.commits(link, 1, ["billing"]))
    assert (known.commits, len(requests.late)) == (None, 1)
    requests.late[0]()
    assert known.committed_ms == 70
    requests.ends_asked = False
    known.commits = None
    loop.run(lambda: requests.commits(link, 1, ["billing"]))
    loop.stop()
    assert known.commits is not None


def test_a_dropped_connection_is_not_silence() -> None:
    patient = replace(QUICK, silence_s=PATIENCE_S)
    with FakeBroker(0) as leader, observing([leader], patient) as observer:
        for _ in range(5):
            leader.drop_connections()

            def read_again(snapshot: Snapshot) -> bool:
                assert state(snapshot, 0) == "up"
                return bool(snapshot.partitions.high_watermark_ms[0] >= snapshot.observation.began_ms)

            until(observer, read_again, "offsets go on")


def test_a_closed_broker_is_silent_and_stays_a_row() -> None:
    with FakeBroker(0) as leader, FakeBroker(1) as other, observing([leader, other]) as observer:
        until(observer, lambda s: state(s, 1) == "up", "both are up")
        other.close()
        silent = until(observer, lambda s: state(s, 1) == "silent", "it is silent")
        assert silent.brokers.error[1] == FailureKind.REFUSED
        leader.advertised = {0: leader.address}
        gone = until(observer, lambda s: state(s, 1) == "gone", "it has left the answers")
        assert gone.brokers.id.tolist() == [0, 1]
        observer.dismiss(1)
        until(observer, lambda s: s.brokers.id.tolist() == [0], "it was dismissed")
        observer.dismiss(0)
        assert observer.observe().brokers.id.tolist() == [0]


def test_idle_observations_with_dead_brokers_ask_little() -> None:
    with FakeBroker(0) as leader, FakeBroker(1) as other, observing([leader, other]) as observer:
        until(observer, lambda s: state(s, 1) == "up", "both are up")
        other.close()
        until(observer, lambda s: state(s, 1) == "silent", "it is silent")
        requests = [observer.observe().observation.requests for _ in range(10)]
        assert sum(requests) <= 60
        assert len(leader.asked) < 200


def test_equal_columns_are_the_same_arrays() -> None:
    with FakeBroker(0) as leader, observing([leader]) as observer:
        until(observer, lambda s: s.partitions.high_watermark.tolist() == [100], "the watermark is read")
        one, two = observer.observe(), observer.observe()
        assert one.partitions.topic is two.partitions.topic
        assert one.partitions.high_watermark is two.partitions.high_watermark
        leader.high_watermark = 101
        three = until(observer, lambda s: s.partitions.high_watermark[0] == 101, "the watermark moved")
        assert three.partitions.leader is one.partitions.leader
        assert one.partitions.high_watermark.tolist() == [100]


def test_what_a_cluster_cannot_answer_is_unknown_and_reported() -> None:
    with FakeBroker(0) as leader, observing([leader]) as observer:
        snapshot = observer.observe()
        assert snapshot.observation.capabilities == {"topic_ids", "debugging_replica"}
        assert snapshot.partitions.last_stable_since_ms.tolist() == [UNKNOWN], "nothing holds it"
        assert snapshot.brokers.last_fetch_ms.tolist() == [UNKNOWN]
        assert snapshot.observation.controller_id == UNKNOWN_ID, "without ZooKeeper, any broker is named"
        assert {key for key, _ in leader.asked} <= READ_ONLY


@pytest.mark.parametrize("metadata_version", [1, 5, 8, 10, 11])
@pytest.mark.parametrize("offsets_version", [1, 2, 3, 5])
def test_old_versions(metadata_version: int, offsets_version: int) -> None:
    versions = {18: (0, 2), 3: (0, metadata_version), 2: (0, offsets_version)}
    with FakeBroker(0, versions=versions) as leader, observing([leader]) as observer:
        snapshot = until(
            observer,
            lambda s: (s.partitions.log_start.tolist(), s.partitions.high_watermark.tolist()) == ([0], [100]),
            "offsets are read",
        )
        assert ("topic_ids" in snapshot.observation.capabilities) == (metadata_version >= 10)
        assert {version for key, version in leader.asked if key == 3} == {metadata_version}
        assert {version for key, version in leader.asked if key == 2} == {offsets_version}


def test_the_bootstrap_servers_refusal_is_over_when_a_broker_answers() -> None:
    with FakeBroker(0) as leader, observing([leader]) as observer:
        leader.close()

        def refused(snapshot: Snapshot) -> bool:
            return Part.BOOTSTRAP in {failure.part for failure in snapshot.observation.failures}

        until(observer, refused, "the bootstrap servers refuse connections, too")
        with FakeBroker(0, leader.advertised, port=leader.port):
            back = until(observer, lambda s: state(s, 0) == "up", "the broker is back")
            assert back.observation.failures == ()


def test_with_zookeeper_the_controller_in_metadata_is_shown() -> None:
    versions = {**VERSIONS, 6: (0, 7)}
    with (
        FakeBroker(3, versions=versions) as leader,
        FakeBroker(5) as other,
        observing([leader, other]) as observer,
    ):
        watched = Watched(observer)
        view = watched.until(lambda v: broker_state(v, 5) == "up", "both are up")
        assert view.snapshot.observation.controller_id == 3
        assert "controller 3" in block(view, "kview").splitlines()[0]
        assert "epoch" not in block(view, "kview").splitlines()[0]
        source = SourceInfo("a test")
        drawn = header_line(view, source, False, 0, view.snapshot.observation.ended_ms, None, 120)
        assert "controller 3  " in "".join(span.text for span in drawn)


def test_an_observer_may_be_closed_twice() -> None:
    with FakeBroker(0) as leader:
        observer = Observer([leader.address])
        observer.close()
        observer.connect(3.0)
        observer.close()
        observer.close()


def test_a_request_that_writes_does_not_get_out() -> None:
    with FakeBroker(0) as leader:
        loop = Loop(system_clock_ms, time.monotonic)
        loop.start()

        async def delete() -> None:
            link = Link(loop, leader.address, 1.0, 0.1, 0.1)
            link.open()
            await link.ask(DeleteTopicsRequest(topic_names=["invoice"], timeout_ms=1))

        with pytest.raises(AssertionError, match="only reads"):
            loop.run(delete)
        loop.stop()
        assert {key for key, _ in leader.asked} <= {18}


def test_the_loop_is_not_asyncios() -> None:
    """An observer may live in a process whose main thread runs asyncio."""

    async def main() -> Snapshot:
        with FakeBroker(0) as leader, observing([leader]) as observer:
            return await asyncio.to_thread(observer.observe)

    assert len(asyncio.run(main()).partitions) == 1
