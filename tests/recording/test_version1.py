"""Recordings made with schema version 1 are read, stepped through and played like current ones.

`version1/closed` and `version1/open` are from one run of an older kview, which observed `kview serve
--brokers 3 --racks 1 --topic invoice:2:3` with a session timeout of 3 s. Broker 1 is killed after the third
second and started again after the ninth. Broker 2 hangs from the fifteenth second on. The first recording was
closed by the end of the run, the second was copied while it was being written.
"""

from pathlib import Path
from typing import Any

import pytest

from kview.derive.fold import State, step
from kview.model.events import EventKind
from kview.model.failures import Cause, FailureKind, Part, refused
from kview.model.snapshot import Failure
from kview.model.states import BrokerState
from kview.model.units import UNKNOWN, UNKNOWN_ID
from kview.recording import version1
from kview.recording.manifest import read_manifest
from kview.recording.reader import Recording
from kview.recording.replay import Jump, Onward, Replay
from kview.recording.ring import keep, kept_folder
from tests.recording.snapshots import all_of, assert_all_equal

DATA = Path(__file__).parent / "version1"
FOLDERS = [DATA / "closed", DATA / "open"]
OBSERVATIONS = 17
CRASH_SEEN, LOADING, BACK, HANG_SEEN = 3, 6, 11, 16
"""Numbers of observations: the first with broker 1 silent, the first with a coordinator that is loading, the
first with broker 1 up again, and the first with broker 2 silent."""


@pytest.fixture(params=FOLDERS, ids=["closed", "open"])
def recording(request: pytest.FixtureRequest) -> Recording:
    folder: Path = request.param
    assert read_manifest(folder).version == version1.VERSION
    return Recording.open(folder)


def facts(failures: tuple[Failure, ...]) -> list[tuple[Any, ...]]:
    return [(f.part, f.broker, f.kind, f.code) for f in failures]


def test_why_something_failed_is_a_kind(recording: Recording) -> None:
    seen = all_of(recording)
    assert len(seen) == OBSERVATIONS
    crash = (Part.BROKER, 1, FailureKind.REFUSED, UNKNOWN_ID)
    loading = (Part.GROUPS, 2, FailureKind.KAFKA_ERROR, 14)
    assert facts(seen[CRASH_SEEN - 1].observation.failures) == []
    assert facts(seen[CRASH_SEEN].observation.failures) == [crash]
    assert facts(seen[LOADING].observation.failures) == [crash, loading]
    assert facts(seen[HANG_SEEN].observation.failures) == [(Part.BROKER, 2, FailureKind.SILENT, UNKNOWN_ID)]
    assert all(f.shown_since_ms != UNKNOWN for s in seen for f in s.observation.failures)
    errors = [s.brokers.error.tolist() for s in (seen[0], seen[CRASH_SEEN], seen[BACK], seen[HANG_SEEN])]
    assert errors == [["", "", ""], ["", "refused", ""], ["", "", ""], ["", "", "silent"]]
    group = [(str(s.groups.error[0]), int(s.groups.error_code[0])) for s in (seen[0], seen[CRASH_SEEN])]
    assert group == [("", 0), ("coordinator_silent", 0)]
    assert all(s.partitions.error_code.tolist() == [0] * len(s.partitions) for s in seen)


def test_open_and_closed_say_the_same(recording: Recording) -> None:
    assert_all_equal(all_of(recording), all_of(Recording.open(FOLDERS[0])))


def test_its_moments_can_be_read_in_any_order(recording: Recording) -> None:
    forwards = [recording.at_place(place) for place in range(OBSERVATIONS)]
    backwards = [recording.at_place(place) for place in reversed(range(OBSERVATIONS))]
    assert_all_equal(backwards[::-1], forwards)
    assert next(recording.changes(0, 1)) == CRASH_SEEN
    moment = int(recording.moments()[CRASH_SEEN])
    assert recording.place_of(moment) == CRASH_SEEN


def test_it_plays(recording: Recording) -> None:
    replay = Replay(recording)
    state, events = State(), []
    snapshots = []
    jump = replay.due(0.0)
    assert isinstance(jump, Jump)
    snapshots.append(jump.snapshot)
    for _ in range(OBSERVATIONS - 1):
        onward = replay.step(1)
        assert isinstance(onward, Onward)
        snapshots += onward.snapshots
    for snapshot in snapshots:
        state, view = step(state, snapshot)
        events += [(event.kind, event.brokers) for event in view.new_events]
    assert (EventKind.BROKER_SILENT, (1,)) in events
    assert (EventKind.BROKER_FENCED, (1,)) in events
    assert (EventKind.BROKER_BACK, (1,)) in events
    assert snapshots[-1].brokers.state.tolist() == [BrokerState.UP, BrokerState.UP, BrokerState.SILENT]


def test_what_spark_reads_of_it_is_there(recording: Recording) -> None:
    (batches,) = recording.delta_batches()
    assert batches.moments["sequence"].to_pylist() == list(range(OBSERVATIONS))
    assert batches.partitions.num_rows and batches.offsets.num_rows
    (rest,) = recording.delta_batches(HANG_SEEN - 1)
    assert rest.moments["sequence"].to_pylist() == [HANG_SEEN]


@pytest.mark.parametrize("folder", FOLDERS, ids=["closed", "open"])
def test_one_that_is_kept_stays_of_its_version(folder: Path, tmp_path: Path) -> None:
    kept = keep(folder, "old", tmp_path)
    assert kept == kept_folder(tmp_path) / "old"
    assert read_manifest(kept).version == version1.VERSION
    assert_all_equal(all_of(Recording.open(kept)), all_of(Recording.open(folder)))


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("", Cause(FailureKind.NONE)),
        ("connection refused", Cause(FailureKind.REFUSED)),
        (
            "connection refused; only kview cannot reach it: the quorum sees it fetching",
            Cause(FailureKind.REFUSED),
        ),
        ("accepts connections, no answer for 1.5 s", Cause(FailureKind.SILENT)),
        ("no answer for 3 s", Cause(FailureKind.OVERDUE)),
        ("coordinator 1 does not answer: 113 EHOSTUNREACH", Cause(FailureKind.COORDINATOR_SILENT)),
        ("coordinator 12 does not answer: it has left the cluster", Cause(FailureKind.COORDINATOR_GONE)),
        ("OFFSET_NOT_AVAILABLE", refused(78)),
        ("NOT_LEADER_FOR_PARTITION", refused(6)),
        ("UNKNOWN", refused(-1)),
        ("OSError: something nobody thought of", Cause(FailureKind.OTHER)),
    ],
)
def test_texts_of_version_1(text: str, cause: Cause) -> None:
    assert version1.cause(text) == cause
