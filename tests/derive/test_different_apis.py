"""Brokers that offer different APIs (a rolling upgrade): two calm events, and a finding after an hour."""

from pathlib import Path

import numpy as np
from kafka.protocol.metadata import ApiVersionsResponse
from msgspec.structs import replace

from kview.derive.facts import Facts
from kview.derive.fold import State, fold_to, step
from kview.derive.headline import APIS_DIFFER_FOR_MS
from kview.derive.view import View
from kview.language import events, findings
from kview.model.events import Severity
from kview.model.snapshot import Snapshot
from kview.model.states import BrokerState
from kview.model.units import UNKNOWN
from kview.observe.apis import Offered, newest_features, offered
from kview.observe.brokers import BrokerFacts
from kview.observe.state import State as Observed
from kview.plain.documents import document_of
from kview.recording.reader import Recording
from kview.recording.replay import Replay
from kview.recording.writer import RecordingWriter
from kview.tui.options import Options
from kview.tui.rows.brokers import BrokerRows
from kview.wire.metadata import BrokerAddress
from tests.worlds import default_world

OLD, NEW = "0:0-11,1:0-16", "0:0-13,1:4-18"


def answer(produce: int, version: int = 3, epoch: int = -1, **features: int) -> ApiVersionsResponse:
    """What a broker answers to ApiVersions."""
    key, feature = ApiVersionsResponse.ApiVersion, ApiVersionsResponse.FinalizedFeatureKey
    return ApiVersionsResponse(
        version=version,
        error_code=0,
        api_keys=[key(version=version, api_key=0, min_version=0, max_version=produce)],
        finalized_features_epoch=epoch,
        finalized_features=[
            feature(version=version, name=name, max_version_level=level, min_version_level=level)
            for name, level in features.items()
        ],
    )


def test_a_broker_tells_its_apis_and_the_finalized_features_in_one_answer() -> None:
    told = offered(answer(13, epoch=7, kraft=1, group=2), Offered())
    assert told.apis == "0:0-13" and told.features == (("group", 2), ("kraft", 1))
    assert offered(answer(13, epoch=7, kraft=1, group=2), told) is told, "nothing is made again"
    old = offered(answer(11, version=0), Offered())
    assert (old.apis, old.features, old.epoch) == ("0:0-11", (), -1)
    later = offered(answer(13, epoch=8, kraft=1, group=3), told)
    assert newest_features([told, later, old]) == later.features
    assert newest_features([]) == newest_features([old]) == ()


def test_since_when_brokers_differ_is_observed_and_a_broker_that_left_does_not_count() -> None:
    observed = Observed()
    for id, apis in enumerate((NEW, NEW, OLD)):
        address = BrokerAddress(id, "localhost", 9092 + id, "")
        observed.brokers[id] = BrokerFacts(address, BrokerState.UP.value, 0, apis=apis)
    observed.see_offered([], 1_000)
    observed.see_offered([], 5_000)
    assert observed.apis_differ_since_ms == 1_000
    observed.brokers[2].state = BrokerState.GONE.value
    observed.see_offered([], 6_000)
    assert observed.apis_differ_since_ms == UNKNOWN
    observed.brokers[2].state, observed.brokers[2].apis = BrokerState.UP.value, ""
    observed.see_offered([], 7_000)
    assert observed.apis_differ_since_ms == UNKNOWN, "what it offers now is not known"


def upgrade(minutes: int, minutes_apart: int = 1) -> list[tuple[Snapshot, View]]:
    """A run in which brokers 4 and 5 are upgraded last, after so many minutes."""
    world, state, seen = default_world(), State(), []
    world.logs, world.groups = world.logs[:1], []
    world.interval_ms = minutes_apart * 60_000
    since_ms = UNKNOWN
    for minute in range(0, minutes + 3 * minutes_apart, minutes_apart):
        if minute == minutes_apart:
            for node in world.nodes.values():
                node.apis = OLD if node.id in (4, 5) else NEW
        if minute >= minutes:
            for node in world.nodes.values():
                node.apis = NEW
        snapshot = world.tick()
        differ = len({node.apis for node in world.nodes.values()}) > 1
        since_ms = (
            UNKNOWN if not differ else since_ms if since_ms != UNKNOWN else snapshot.observation.ended_ms
        )
        observation = replace(snapshot.observation, apis_differ_since_ms=since_ms)
        snapshot = replace(snapshot, observation=observation)
        state, view = step(state, snapshot)
        seen.append((snapshot, view))
    return seen


def said(view: View) -> list[str]:
    now_ms = view.snapshot.observation.ended_ms
    return [
        text for one in view.headline.findings if "other APIs" in (text := findings.sentence(one, now_ms))
    ]


def test_an_upgrade_is_two_events_and_a_calm_finding_after_an_hour() -> None:
    run = upgrade(90)
    told = [
        events.sentence(event) for _, view in run for event in view.new_events if "API" in event.kind.upper()
    ]
    assert told == [
        "brokers 4 and 5 offer other APIs than the rest: a rolling upgrade?",
        "all brokers offer the same APIs again",
    ]
    for snapshot, view in run:
        since_ms = snapshot.observation.apis_differ_since_ms
        long = since_ms != UNKNOWN and snapshot.observation.ended_ms - since_ms >= APIS_DIFFER_FOR_MS
        assert bool(said(view)) == long
    last = next(view for _, view in reversed(run) if said(view))
    assert said(last) == [
        "brokers 4 and 5 offer other APIs than the rest for 1 h 28 m: an upgrade that is not complete?"
    ]
    assert last.headline.severity is Severity.CALM


def test_it_is_shown_on_the_brokers_rows_and_in_the_document_at_once() -> None:
    _, view = upgrade(90)[2]
    rows = BrokerRows(view, Options())
    noted = {
        rows.keys[at]: "".join(
            span.text for span in rows.row(at, view.snapshot.observation.ended_ms).cells[-1]
        )
        for at in range(len(rows.keys))
    }
    assert {id for id, note in noted.items() if "offers other APIs than the rest" in note} == {4, 5}
    document = document_of(view)
    assert [broker.id for broker in document.brokers if broker.offers_other_apis] == [4, 5]
    assert document.apis_differ_since_ms == view.snapshot.observation.apis_differ_since_ms


def test_a_replay_that_seeks_says_the_same(tmp_path: Path) -> None:
    run = upgrade(150, minutes_apart=5)
    writer = RecordingWriter(tmp_path / "r", segment_s=25, small_segment_bytes=0)
    for snapshot, view in run:
        writer.append(snapshot, Facts.of(view))
    writer.close()
    replay = Replay(Recording.open(tmp_path / "r"))
    for snapshot, view in run[::4]:
        jump = replay.seek(snapshot.observation.ended_ms, 0.0)
        folded = fold_to(jump.snapshot, jump.look_back(), lambda: False)
        assert folded is not None and said(folded[1]) == said(view)
        assert np.array_equal(folded[1].snapshot.brokers.apis, snapshot.brokers.apis)
