"""The facts of a recording are those of folding its snapshots again, and cost little."""

import itertools
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kview.derive.facts import Facts, worst_offsets
from kview.model.incidents import Incident, PhaseKind
from kview.model.units import UNKNOWN
from kview.recording.fact_schema import FACTS
from kview.recording.reader import Recording
from kview.recording.writer import RecordingWriter
from tests.recording.runs_with_facts import (
    CRASHED,
    DOWN_S,
    HEALTHY_S,
    HUNG,
    SECONDS,
    Row,
    Seen,
    folded,
    last_of_each,
    recorded,
    rows,
    two_incidents_seen,
)
from tests.recording.snapshots import all_of
from tests.worlds.scripts import wide_world


@pytest.fixture(scope="module", params=["stream", "parquet", "both"])
def recording(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Recording:
    folder = tmp_path_factory.mktemp("facts") / "r"
    segment_s = 12 if request.param == "both" else 3600
    writer = recorded(folder, two_incidents_seen(), segment_s=segment_s, small_segment_bytes=0)
    if request.param == "parquet":
        writer.close()
    else:
        writer.abandon()
    return Recording.open(folder)


def known(number: int) -> int | None:
    return None if number == UNKNOWN else number


@pytest.fixture(scope="module")
def again(recording: Recording) -> list[Seen]:
    """What folding the recording's snapshots concludes."""
    return folded(all_of(recording))


def test_every_part_is_there_with_its_schema(recording: Recording) -> None:
    for part, schema in FACTS.items():
        tables = list(recording.facts(part))
        assert tables and all(table.schema.equals(schema) for table in tables)
        sequences = [row["sequence"] for row in rows(recording, part)]
        assert sequences == sorted(sequences) and sequences[0] >= 0 and sequences[-1] < SECONDS


def test_incidents_are_those_of_folding_again(recording: Recording, again: list[Seen]) -> None:
    written = last_of_each(rows(recording, "incidents"))
    folded_again = again[-1].view.incidents
    assert [row["brokers"] for row in written.values()] == [[CRASHED], [HUNG]]
    assert [row["id"] for row in written.values()] == [
        f"{incident.began_ms}-{incident.kind.value}" for incident in folded_again
    ]
    for row, incident in zip(written.values(), folded_again, strict=True):
        assert row["over"] and row["end"] == PhaseKind.ISR_FULL
        assert row["racks"] == ["R2" if row["brokers"] == [CRASHED] else "R1"]
        assert row["ended_ms"] == incident.ended_ms == row["observed_ms"]
        assert (row["partitions"], row["moved"], row["leaderless"]) == (
            incident.partitions,
            incident.moved,
            incident.leaderless,
        )
        assert (row["gone"], row["waited_ms"]) == (known(incident.gone), known(incident.waited_ms))
        assert (row["groups"], tuple(row["group_names"])) == (incident.groups_count, incident.groups)
        check_stopwatches(row, incident)
    crash = written[f"{folded_again[0].began_ms}-brokers"]
    assert 9_000 <= crash["fenced_ms"] <= 10_000 and crash["fenced_all_ms"] == crash["fenced_ms"]
    assert crash["elected_ms"] < crash["elected_all_ms"], "audit-log 3 has no other replica"
    assert DOWN_S * 1000 <= crash["isr_full_ms"] <= (DOWN_S + 2) * 1000
    assert crash["quorum_back_ms"] is None and crash["gone"] > 0


def check_stopwatches(row: Row, incident: Incident) -> None:
    told = {phase.kind: phase for phase in incident.phases}
    for kind in (PhaseKind.FROZEN, PhaseKind.NO_LEADER, PhaseKind.FENCED, PhaseKind.ELECTED, PhaseKind.MOVES):
        expected = told[kind].at_ms - incident.began_ms if kind in told else None
        assert row[f"{kind.value}_ms"] == expected, kind
    for kind in (PhaseKind.FENCED, PhaseKind.ELECTED, PhaseKind.MOVES, PhaseKind.BACK):
        done = kind in told and told[kind].is_complete
        assert row[f"{kind.value}_all_ms"] == (told[kind].last_ms - incident.began_ms if done else None)


def test_an_incident_has_a_row_whenever_it_changes_and_none_otherwise(recording: Recording) -> None:
    alone = [row for row in rows(recording, "incidents") if row["brokers"] == [CRASHED]]
    at = [row["sequence"] for row in alone]
    assert at[0] == HEALTHY_S and alone[-1]["over"] and not any(row["over"] for row in alone[:-1])
    begins = {int(segment.times[0][0]) for segment in recording.segments()}
    without_moment = [{**row, "sequence": 0, "observed_ms": 0} for row in alone]
    for before, row, sequence in zip(without_moment, without_moment[1:], at[1:], strict=False):
        assert before != row or sequence in begins


def test_a_segment_is_complete_without_the_ones_before_it(recording: Recording) -> None:
    topics = set(two_incidents_seen()[0].snapshot.partitions.topic.tolist())
    opened = closed = 0
    for segment in recording.segments():
        first = int(segment.times[0][0])
        incidents = two_incidents_seen()[first].view.incidents
        open_now = {incident.began_ms for incident in incidents if incident.is_open}
        told = [row for row in segment.facts("incidents").to_pylist() if row["sequence"] == first]
        assert {row["began_ms"] for row in told if not row["over"]} == open_now
        sizes = [row for row in segment.facts("sizes").to_pylist() if row["sequence"] == first]
        assert {row["topic"] for row in sizes} == topics and len(sizes) == len(topics)
        opened, closed = opened + bool(open_now), closed + 1
    assert closed == 1 or opened >= 2


def test_elections_are_the_changes_of_leaders(recording: Recording) -> None:
    expected: list[tuple[Any, ...]] = []
    last: dict[tuple[str, int], int] = {}
    for then, now in itertools.pairwise(all_of(recording)):
        leaders = []
        for table in (then.partitions, now.partitions):
            led = zip(table.leader.tolist(), table.leader_epoch.tolist(), strict=True)
            keys = zip(table.topic.tolist(), table.partition.tolist(), strict=True)
            leaders.append(dict(zip(keys, led, strict=True)))
        last |= {key: leader for key, (leader, _) in leaders[0].items() if leader >= 0}
        for key, (leader, epoch) in leaders[1].items():
            before, old_epoch = leaders[0][key]
            if leader != before:
                new = leader if leader >= 0 else None
                expected.append((now.observation.ended_ms, *key, last[key], new, old_epoch, epoch))
    names = ("observed_ms", "topic", "partition", "old_leader", "new_leader", "old_epoch", "new_epoch")
    written = rows(recording, "elections")
    assert [tuple(row[name] for name in names) for row in written] == expected and expected
    lost = [row for row in written if row["new_leader"] is None]
    assert {(row["topic"], row["unclean"]) for row in lost} == {("audit-log", None)}
    assert all(row["unclean"] is False for row in written if row["new_leader"] is not None)


def test_the_rows_of_a_group_account_for_every_moment_once(recording: Recording, again: list[Seen]) -> None:
    by_group: dict[str, list[Row]] = defaultdict(list)
    for row in rows(recording, "group_lags"):
        by_group[row["group"]].append(row)
    for at, group in enumerate(two_incidents_seen()[0].snapshot.groups.group.tolist()):
        written = by_group[group]
        first, last = (again[place].snapshot.observation.ended_ms for place in (0, -1))
        assert sum(row["interval_ms"] for row in written) == last - first
        assert max(row["interval_ms"] for row in written) <= 10_000
        place = 0
        for seen in again:
            now_ms, groups = seen.snapshot.observation.ended_ms, seen.view.groups
            while written[place]["observed_ms"] < now_ms:
                place += 1
            row = written[place]
            assert row["observed_ms"] == now_ms or row["observed_ms"] - row["interval_ms"] < now_ms
            assert (row["lag"], row["behind_ms"]) == (known(groups.lag[at]), known(groups.behind_ms[at]))
            assert (row["verdict"], row["state"]) == (groups.verdict[at], seen.snapshot.groups.state[at])


def test_findings_are_those_of_each_observation(recording: Recording, again: list[Seen]) -> None:
    by_sequence: dict[int, list[Row]] = defaultdict(list)
    for row in rows(recording, "findings"):
        by_sequence[row["sequence"]].append(row)
    for number, seen in enumerate(again):
        written, findings = by_sequence[number], seen.view.headline.findings
        assert [(row["kind"], row["severity"]) for row in written] == [(f.kind, f.severity) for f in findings]
        assert [tuple(row["brokers"]) for row in written] == [f.brokers for f in findings]
        assert {row["interval_ms"] for row in written} == {1000 if number else 0}
        for row, finding in zip(written, findings, strict=True):
            since_ms = known(finding.since_ms)
            held_ms = None if since_ms is None else row["observed_ms"] - since_ms
            assert (row["since_ms"], row["held_ms"]) == (since_ms, held_ms)
    silent = [row for row in rows(recording, "findings") if row["kind"] == "brokers_silent"]
    assert sum(row["interval_ms"] for row in silent) == 2 * 9_000


def test_sizes_are_the_sums_over_the_replicas(recording: Recording) -> None:
    first: dict[str, Row] = {}
    for row in rows(recording, "sizes"):
        first.setdefault(row["topic"], row)
    snapshot = two_incidents_seen()[0].snapshot
    assert first.keys() == set(snapshot.partitions.topic.tolist())
    for topic, row in first.items():
        of_topic = snapshot.replicas.topic == topic
        table = snapshot.partitions
        mine = table.topic == topic
        leads = of_topic & (table.leader[snapshot.replicas.row] == snapshot.replicas.broker)
        assert row["bytes"] == snapshot.replicas.size_bytes[of_topic].sum() > row["leader_bytes"] // 2
        assert row["leader_bytes"] == snapshot.replicas.size_bytes[leads].sum()
        assert (row["log_start"], row["log_end"]) == (table.log_start[mine].sum(), table.log_end[mine].sum())
        assert (row["partitions"], row["replicas"]) == (mine.sum(), of_topic.sum())


@pytest.mark.parametrize("after", [-1, 0, 11, 30, SECONDS - 1, SECONDS])
def test_what_was_written_after_a_moment(recording: Recording, after: int) -> None:
    for part in FACTS:
        whole = rows(recording, part)
        assert rows(recording, part, after) == [row for row in whole if row["sequence"] > after]


def test_an_observation_that_was_not_folded_is_unknown_time(tmp_path: Path) -> None:
    writer = RecordingWriter(tmp_path / "r")
    for number, seen in enumerate(two_incidents_seen()[:HEALTHY_S]):
        writer.append(seen.snapshot, Facts.of(seen.view) if number not in (6, 7) else None)
    writer.close()
    recording = Recording.open(tmp_path / "r")
    assert {6, 7}.isdisjoint(row["sequence"] for row in rows(recording, "findings"))
    groups = Counter[str]()
    for row in rows(recording, "group_lags"):
        groups[row["group"]] += row["interval_ms"]
    assert set(groups.values()) == {(5 + HEALTHY_S - 9) * 1000}


def test_two_hundred_groups_at_rest_cost_twenty_rows_a_second(tmp_path: Path) -> None:
    world = wide_world(400, groups=200)
    for log in world.logs:
        log.rate = 0.0
    run = folded(world.tick() for _ in range(41))
    recorded(tmp_path / "r", run).close()
    written = rows(Recording.open(tmp_path / "r"), "group_lags")
    at = Counter(row["sequence"] for row in written)
    settled = sum(count for sequence, count in at.items() if sequence > 10)
    assert settled == 3 * 200
    assert sum(row["interval_ms"] for row in written) == 40 * 1000 * 200


def test_facts_that_cannot_be_written_do_not_end_the_recording(tmp_path: Path) -> None:
    writer = RecordingWriter(tmp_path / "r")
    for number, seen in enumerate(two_incidents_seen()[:6]):
        facts = Facts.of(seen.view)
        writer.append(seen.snapshot, "broken" if number == 2 else facts)  # type: ignore[arg-type]
    writer.close()
    recording = Recording.open(tmp_path / "r")
    assert len(recording.moments()) == 6
    assert {row["sequence"] for row in rows(recording, "findings")} == {0, 1, 3, 4, 5}


def test_the_worst_partition_is_furthest_behind_in_time_then_in_records() -> None:
    index = np.array([0, 0, 0, 1, 1, 2, -1, 3, 3], np.int64)
    lag = np.array([5, 9, 9, 7, 8, UNKNOWN, 99, 4, 4], np.int64)
    behind = np.array([10, 3, 10, UNKNOWN, UNKNOWN, UNKNOWN, 9, 6, 6], np.int64)
    assert worst_offsets(index, lag, behind, 5).tolist() == [2, 4, -1, 7, -1]
