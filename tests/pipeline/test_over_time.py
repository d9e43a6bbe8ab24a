"""The course of lag and traffic over hours is what the folds concluded second by second."""

import math
import shutil
import threading
import tracemalloc
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kview.model.events import Severity
from kview.model.failures import FailureKind
from kview.model.history import Course, CourseOf, Peak
from kview.model.sums import Kind, Sum
from kview.model.units import UNKNOWN
from kview.pipeline.over_time import MOST_S, Courses
from kview.pipeline.reading import next_rollups
from kview.recording.fact_schema import GROUP_LAGS
from kview.recording.manifest import Manifest, SegmentEntry, write_manifest
from kview.recording.schema import OBSERVATIONS
from tests.recording.runs_with_facts import Seen, folded, recorded, two_incidents_seen
from tests.waiting import wait_until
from tests.worlds import default_world

START_MS = 1_760_000_000_000
HOUR_S = 3_600


def course(folder: Path, until_ms: int, *groups: str, topic: str = "", span_ms: int = UNKNOWN) -> Course:
    """The course in one recording."""
    found = Courses(lambda: [folder]).read(CourseOf(topic, groups, span_ms, until_ms))
    assert found is not None
    return found


def last_ms(run: Sequence[Seen]) -> int:
    return run[-1].snapshot.observation.ended_ms


def lags_by_hand(run: Sequence[Seen], group: str, first_s: int, count: int) -> list[float]:
    """The greatest lag in each second: what an observation sees has held since the one before it."""
    lags = [math.nan] * count
    for before, now in zip([run[0], *run], run, strict=False):
        began_ms, ended_ms = (seen.snapshot.observation.ended_ms for seen in (before, now))
        row = now.snapshot.groups.group.tolist().index(group)
        lag = int(now.view.groups.lag[row])
        figures = now.view.groups
        if figures.verdict[row] in ("ok", "undecided", "unknown") and figures.severity[row] != Severity.CALM:
            continue  # it is an old one
        for second in range(began_ms // 1000, (max(ended_ms - 1, began_ms)) // 1000 + 1):
            if lag != UNKNOWN:
                lags[second - first_s] = np.fmax(lags[second - first_s], lag)
    return lags


@pytest.mark.parametrize("is_closed", [False, True])
def test_the_lag_is_that_of_the_views_until_the_last_observation(tmp_path: Path, is_closed: bool) -> None:
    run = two_incidents_seen()
    writer = recorded(tmp_path / "r", run, segment_s=20.0, small_segment_bytes=0)
    if is_closed:
        writer.close()
    for group in ("billing", "audit-export", "fraud-check"):
        found = course(tmp_path / "r", last_ms(run), group)
        first_s = found.from_ms // 1000
        assert found.step_ms == 1000 and found.since_ms == run[0].snapshot.observation.ended_ms
        by_hand = lags_by_hand(run, group, first_s, len(found.lag))
        assert found.lag == pytest.approx(tuple(by_hand), nan_ok=True)
        assert any(map(math.isnan, by_hand)) == (group != "audit-export"), "its coordinator is up"
        peak = found.peak
        assert peak is not None and peak.lag == max(value for value in found.lag if value == value)
        assert peak.at_ms == found.from_ms + 1000 * found.lag.index(peak.lag) and peak.group == group
    assert run[0].snapshot.groups.group[0] == "audit-export"
    behind_ms = [int(seen.view.groups.behind_ms[0]) for seen in run]
    assert max(course(tmp_path / "r", last_ms(run), "audit-export").behind_s) == max(behind_ms) / 1000


@pytest.mark.parametrize("is_closed", [False, True])
def test_the_lag_of_a_group_ends_where_it_is_gone(tmp_path: Path, is_closed: bool) -> None:
    world, snapshots = default_world(), []
    for second in range(30):
        if second == 25:
            world.groups = [group for group in world.groups if group.name != "audit-export"]
        snapshots.append(world.tick())
    run = folded(snapshots)
    writer = recorded(tmp_path / "r", run)
    if is_closed:
        writer.close()
    known = np.isfinite(course(tmp_path / "r", last_ms(run), "audit-export", topic="audit-log").lag)
    gone_s = run[25].snapshot.observation.ended_ms // 1000 - run[0].snapshot.observation.ended_ms // 1000
    assert known[: gone_s - 1].all() and not known[gone_s + 1 :].any() and len(known) > gone_s + 1
    stays = np.isfinite(course(tmp_path / "r", last_ms(run), "audit-export", "billing").lag)
    assert stays.all()


def test_records_are_those_of_the_figures_per_second(tmp_path: Path) -> None:
    run = two_incidents_seen()
    recorded(tmp_path / "r", run, segment_s=20.0, small_segment_bytes=0).close()
    found = course(tmp_path / "r", last_ms(run), topic="invoice")
    rolled = next_rollups(str(tmp_path / "r"), -1)
    assert rolled is not None
    rows = [row for row in rolled.to_pylist() if (row["kind"], row["name"]) == (Kind.TOPIC, "invoice")]
    assert found.until_ms == last_ms(run) // 1000 * 1000 - 1000
    for values, column in ((found.records_in, Sum.RECORDS_IN), (found.records_out, Sum.RECORDS_OUT)):
        expected = {row["second"]: row[column] for row in rows}
        known = {found.from_ms // 1000 + at: value for at, value in enumerate(values) if math.isfinite(value)}
        assert known == {second: expected.get(second, 0) for second in known}
        assert len(known) >= len(run) - 10 and max(known.values()) > 1000
    assert not any(map(math.isfinite, found.lag)), "no group was asked for"


def test_what_nobody_saw_is_a_gap(tmp_path: Path) -> None:
    world = default_world()
    seconds = [world.tick() for _ in range(20)]
    world.skip(100)
    seconds += [world.tick() for _ in range(20)]
    for broker in range(6):
        world.cut(broker, FailureKind.SILENT)
    seconds += [world.tick() for _ in range(20)]
    for broker in range(6):
        world.back(broker)
    seconds += [world.tick() for _ in range(20)]
    run = folded(seconds)
    recorded(tmp_path / "r", run)
    first_s = seconds[0].observation.ended_ms // 1000
    of_group = course(tmp_path / "r", last_ms(run), "billing")
    of_topic = course(tmp_path / "r", last_ms(run), "billing", topic="invoice")
    for found, values in (
        (of_group, of_group.lag),
        (of_topic, of_topic.records_in),
        (of_topic, of_topic.lag),
    ):
        known = {
            found.from_ms // 1000 + at - first_s for at, value in enumerate(values) if math.isfinite(value)
        }
        assert {2, 10, 17, 125, 136, 163} <= known, "while kview saw the cluster"
        assert not known & set(range(21, 120)), "while kview did not run"
        assert not known & set(range(144, 159)), "while no broker answered"


def closed(folder: Path, lags: Sequence[Sequence[dict[str, Any]]]) -> Path:
    """Write a recording of closed segments, with an observation at each moment of their rows of lags."""
    entries, sequence = [], 0
    for number, rows in enumerate(lags, 1):
        where = folder / f"seg-{number:06}"
        where.mkdir(parents=True)
        seen_ms = sorted({row["observed_ms"] for row in rows})
        numbers = range(sequence, sequence + len(seen_ms))
        seen = [{"sequence": one, "ended_ms": ms} for one, ms in zip(numbers, seen_ms, strict=True)]
        pq.write_table(pa.Table.from_pylist(seen, schema=OBSERVATIONS), where / "observations.parquet")
        pq.write_table(
            pa.Table.from_pylist([{"group": "a", "sequence": 0, **row} for row in rows], schema=GROUP_LAGS),
            where / "group_lags.parquet",
        )
        size = sum(path.stat().st_size for path in where.iterdir())
        entries.append(SegmentEntry(number=number, closed=True, last_sequence=numbers[-1], size_bytes=size))
        sequence += len(seen_ms)
    write_manifest(folder, Manifest(segments=tuple(entries)))
    return folder


def every_10_s(seconds: Iterable[int], lag: int = 5) -> list[dict[str, Any]]:
    return [
        {"observed_ms": START_MS + 1000 * at, "interval_ms": 10_000 if at else 0, "lag": lag}
        for at in seconds
    ]


def test_a_spike_of_a_second_is_seen_over_six_hours_and_a_steady_lag_is_everywhere(tmp_path: Path) -> None:
    hours = [every_10_s(range(hour * HOUR_S, (hour + 1) * HOUR_S, 10)) for hour in range(6)]
    spike_ms = START_MS + 1000 * (2 * HOUR_S + 1234)
    hours[2].append({"observed_ms": spike_ms, "interval_ms": 1000, "lag": 777, "lag_is_bound": True})
    until_ms = START_MS + 1000 * (6 * HOUR_S - 10)
    found = course(closed(tmp_path / "r", hours), until_ms, "a", span_ms=6 * HOUR_S * 1000)
    assert (found.step_ms, len(found.lag)) == (30_000, 721)
    assert sorted(set(found.lag)) == [5.0, 777.0]
    assert found.lag.index(777.0) == (spike_ms - 1000 - found.from_ms) // 30_000
    assert found.peak == Peak(777, True, "a", spike_ms - 1000)


def test_a_span_ends_at_the_moment_shown_and_begins_before_the_recording(
    tmp_path: Path,
) -> None:
    folder = closed(tmp_path / "r", [every_10_s(range(0, 900, 10))])
    found = course(folder, START_MS + 300_000, "a", span_ms=600_000)
    assert (found.step_ms, found.until_ms) == (1000, START_MS + 301_000)
    known = [at for at, value in enumerate(found.lag) if math.isfinite(value)]
    assert (known[0], known[-1], len(found.lag)) == (299, 599, 600)
    assert found.since_ms == START_MS


def test_what_a_recording_says_of_absurd_times_takes_no_memory(tmp_path: Path) -> None:
    rows = every_10_s(range(0, 100, 10))
    rows[3] |= {"interval_ms": 1 << 60}
    rows[5] |= {"interval_ms": -(1 << 60)}
    far = [{"observed_ms": START_MS + (1 << 50), "interval_ms": 1000, "lag": 1}]
    folder = closed(tmp_path / "r", [rows, far])
    found = course(folder, START_MS + 90_000, "a")
    assert 5.0 in found.lag and len(found.lag) == 91
    assert len(course(folder, START_MS + (1 << 50), "a").lag) * 1800 <= MOST_S + 1800


def test_segments_that_say_they_are_a_week_long_take_the_memory_of_the_span(tmp_path: Path) -> None:
    week_ms = MOST_S * 1000 - 1_000_000
    segments = [
        [{"observed_ms": START_MS + at + ms, "interval_ms": 0, "lag": at} for ms in (0, week_ms)]
        for at in range(10)
    ]
    courses = Courses(lambda: [closed(tmp_path / "r", segments)])
    tracemalloc.start()
    try:
        found = courses.read(CourseOf("", ("a",), 60_000, START_MS + week_ms))
        assert found is not None and found.lag[-1] == 9
        assert tracemalloc.get_traced_memory()[1] < 5_000_000, "all of one of them takes 30 MB"
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("part", ["group_lags", "observations"])
def test_a_damaged_segment_is_a_gap_and_said_once(
    tmp_path: Path, part: str, caplog: pytest.LogCaptureFixture
) -> None:
    folder = closed(tmp_path / "r", [every_10_s(range(first, first + 100, 10)) for first in (0, 100, 200)])
    path = folder / "seg-000002" / f"{part}.parquet"
    path.write_bytes(path.read_bytes()[:-40])
    courses = Courses(lambda: [folder])
    for _ in range(2):
        found = courses.read(CourseOf("", ("a",), UNKNOWN, START_MS + 290_000))
        assert found is not None
        gap = {at for at, value in enumerate(found.lag) if math.isnan(value)}
        assert set(range(91, 190)) <= gap and not gap & set(range(80)), "the others are read"
    assert len(caplog.records) == 1


def test_a_segment_that_the_ring_drops_while_it_is_read_is_a_gap(tmp_path: Path) -> None:
    folder = closed(tmp_path / "r", [every_10_s(range(first, first + 100, 10)) for first in (0, 100)])
    shutil.rmtree(folder / "seg-000001")
    found = course(folder, START_MS + 190_000, "a")
    assert found.since_ms == START_MS + 100_000 and found.lag[-1] == 5


def test_all_begins_with_the_first_moment_and_has_its_peak(tmp_path: Path) -> None:
    rows = every_10_s(range(0, 20 * HOUR_S, 10))
    rows.insert(1, {"observed_ms": START_MS + 5000, "interval_ms": 1000, "lag": 90_000})
    folder = closed(tmp_path / "r", [rows])
    for end_s in range(20 * HOUR_S - 130, 20 * HOUR_S - 10, 10):
        found = course(folder, START_MS + 1000 * end_s, "a")
        assert found.step_ms == 120_000 and found.from_ms <= START_MS < found.from_ms + found.step_ms
        assert found.peak == Peak(90_000, False, "a", START_MS + 4000)


def test_a_clock_that_was_set_back_hides_nothing(tmp_path: Path) -> None:
    folder = closed(tmp_path / "r", [every_10_s(range(1000, 2000, 10)), every_10_s(range(900, 960, 10), 9)])
    found = course(folder, START_MS + 950_000, "a")
    assert (found.since_ms, found.from_ms, found.lag[:51]) == (START_MS + 900_000,) * 2 + ((9.0,) * 51,)


def test_a_lower_bound_of_the_lag_in_time_is_said(tmp_path: Path) -> None:
    rows = [row | {"behind_ms": 5000} for row in every_10_s(range(0, 100, 10))]
    bound = [row | {"behind_is_bound": True} for row in rows]
    some, exact = (
        course(closed(tmp_path / n, [r]), START_MS + 90_000, "a") for n, r in (("b", bound), ("e", rows))
    )
    assert some.behind_s == exact.behind_s and set(some.behind_s) == {5.0}
    assert some.behind_is_bound and not exact.behind_is_bound


def test_only_the_newest_of_the_questions_that_wait_is_answered(tmp_path: Path) -> None:
    folder = closed(tmp_path / "r", [every_10_s(range(0, 100, 10))])
    first_reads, go_on = threading.Event(), threading.Event()

    def folders() -> list[Path]:
        first_reads.set()
        assert go_on.wait(10)
        return [folder]

    courses = Courses(folders)
    asked = [CourseOf("", (group,), UNKNOWN, START_MS + 90_000) for group in ("a", "b", "c")]
    with ThreadPoolExecutor(3) as pool:

        def ask(question: CourseOf) -> Future[Course | None]:
            answer = pool.submit(courses.read, question)
            wait_until(lambda: courses._newest is question, "it waits")
            return answer

        answers = [ask(asked[0])]
        assert first_reads.wait(10)
        answers += map(ask, asked[1:])
        go_on.set()
        assert [answer.result() is None for answer in answers] == [False, True, False]


def test_the_first_of_two_recordings_counts_and_the_other_one_fills_its_gaps(tmp_path: Path) -> None:
    earlier = closed(tmp_path / "earlier", [every_10_s(range(0, 310, 10), lag=7)])
    later = closed(tmp_path / "later", [every_10_s(range(200, 500, 10), lag=9)])
    courses = Courses(lambda: [later, tmp_path / "removed", earlier])
    found = courses.read(CourseOf("", ("a",), UNKNOWN, START_MS + 490_000))
    assert found is not None and found.since_ms == START_MS
    assert (found.lag[100], found.lag[250], found.lag[480]) == (7, 9, 9)


def test_what_is_added_and_what_a_ring_drops_is_followed(tmp_path: Path) -> None:
    run = two_incidents_seen()
    writer = recorded(tmp_path / "r", run[:30], segment_s=10.0, small_segment_bytes=0)
    courses = Courses(lambda: [tmp_path / "r"])

    def asked(seen: Seen) -> Course:
        ended_ms = seen.snapshot.observation.ended_ms
        found = courses.read(CourseOf("", ("billing",), UNKNOWN, ended_ms))
        assert found is not None
        return found

    assert asked(run[29]).lag == course(tmp_path / "r", last_ms(run[:30]), "billing").lag
    for seen in run[30:]:
        writer.append(seen.snapshot, None)
    assert asked(run[-1]).until_ms == last_ms(run) // 1000 * 1000 + 1000
    writer.forget(writer.segments[:1])
    assert asked(run[-1]).since_ms == writer.segments[0].began_ms
