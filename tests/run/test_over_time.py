"""The plots over time of a replay and of a live run show what their recordings have."""

from pathlib import Path
from typing import Any

from kview.model.history import Course, CourseOf
from kview.model.units import UNKNOWN
from kview.recording.names import flight_folder
from kview.recording.reader import Recording
from kview.recording.ring import FlightRecorder, of_cluster
from kview.run.history import CourseReader
from kview.run.replaying import ReplayTimeline
from kview.tui.plot import AXIS_CELLS
from tests.recording.runs_with_facts import folded, recorded
from tests.tui.harness import dashboard, press, run, running, text, until
from tests.worlds import default_world

GAP_S, SEEN_S = 120, 30


@running
async def test_a_replay_shows_the_lag_with_its_gap(tmp_path: Path) -> None:
    world = default_world()
    seconds = [world.tick() for _ in range(SEEN_S)]
    world.skip(GAP_S)
    world.group("billing").read_share = 0.5
    seconds += [world.tick() for _ in range(SEEN_S)]
    seen = folded(seconds)
    recorded(tmp_path / "r", seen, segment_s=20.0, small_segment_bytes=0).close()
    last_ms = seconds[-1].observation.ended_ms
    timeline = ReplayTimeline(Recording.open(tmp_path / "r"), last_ms, 1)
    options: dict[str, Any] = {"feed": timeline, "timeline": timeline, "clock_ms": timeline.clock_ms}
    try:
        async with dashboard(size=(120, 40), **options) as (app, pilot):
            await until(pilot, lambda: "► ×1" in text(app) or "❚❚" in text(app), "the last moment")
            await press(pilot, ["colon", *"billing", "enter"])
            shown = await until(
                pilot,
                lambda: "[all 2 m 59 s]" in text(app) and "highest" in text(app) and text(app),
                "the plots",
            )
            lag = int(seen[-1].view.groups.lag[seen[-1].snapshot.groups.group.tolist().index("billing")])
            assert lag > 50_000 and f"highest {lag:,} at" in shown
            axis = next(
                line.lstrip("│ ").partition("0 ┤")[2] for line in shown.splitlines() if " 0 ┤" in line
            )
            room = len(axis)
            cell = room / (2 * SEEN_S + GAP_S)
            begin, end = round((SEEN_S + 2) * cell), round((SEEN_S - 2 + GAP_S) * cell)
            assert axis[: begin - 3].strip() and not axis[begin:end].strip() and axis[end + 3 :].strip()
            assert room > 100 - AXIS_CELLS and axis.rstrip()[-1] == "█"
    finally:
        timeline.stop()


def test_earlier_flights_over_the_same_cluster_are_part_of_the_course(tmp_path: Path) -> None:
    world = default_world()
    for name in ("first", "second"):
        ring = FlightRecorder(tmp_path, name)
        for seen in folded(world.tick() for _ in range(30)):
            ring.append(seen.snapshot, None)
        ring.close()
        world.skip(300)
    folder = flight_folder(tmp_path) / "second"
    other = flight_folder(tmp_path) / "other"
    other.mkdir()
    assert of_cluster(folder, tmp_path) == [flight_folder(tmp_path) / "first"], (
        "what is no recording is left out"
    )


def test_what_cannot_be_read_is_none(tmp_path: Path) -> None:
    asked = CourseOf("", ("billing",), UNKNOWN, 0)
    assert run(CourseReader(lambda: []).read(asked)) == Course()
    assert run(CourseReader(lambda: [tmp_path / "gone"]).read(asked)) is None
