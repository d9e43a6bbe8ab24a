"""Recordings of a real run: a kill in the middle, a full disk, and the replay of what was recorded. The other
ends are in test_ends.py."""

import json
import os
import re
import signal
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from kview.recording.names import MANIFEST
from kview.recording.reader import Recording
from kview.tui.time_keys import ASK_NAME
from tests.cli.commands import run_here
from tests.e2e.pseudo_terminal import PseudoTerminal, kview_on_a_terminal
from tests.real_kafka.cluster import RealKafka
from tests.waiting import wait_until

MOST_EVENTS = 10
SHOWN_WITHIN_S = 3.0
"""How long a drawn moment takes to be on the screen whole."""


def observations(folder: Path) -> int:
    """How many are on a recording that may be being written."""
    return len(Recording.open(folder).moments()) if (folder / MANIFEST).is_file() else 0


def watermark(terminal: PseudoTerminal) -> str:
    """What the first screen shows of a partition of `invoice`."""
    found = re.search(r"^.? *invoice +\d.*$", terminal.text(), re.MULTILINE)
    return found[0] if found else ""


def goes_on(terminal: PseudoTerminal) -> None:
    """Wait until new figures have come twice."""
    for _ in range(2):
        before = watermark(terminal)
        assert before
        terminal.wait_for(lambda before=before: watermark(terminal) not in ("", before), "news")  # type: ignore[misc]


def test_a_dashboard_records_by_itself(tmp_path: Path) -> None:
    with kview_on_a_terminal("--simulate", environment={"XDG_STATE_HOME": str(tmp_path)}) as terminal:
        (folder,) = terminal.wait_for(
            lambda: [f for f in (tmp_path / "kview" / "flight").glob("*") if observations(f) > 2],
            "a flight recording",
        )
        terminal.press("q")
        assert terminal.wait_for_end() == 0
    assert observations(folder) > 2


def test_after_a_kill_everything_that_was_seen_is_replayed(tmp_path: Path) -> None:
    folder = tmp_path / "seen"
    # With a session that outlasts the test the broker stays silent, however slow the machine is.
    session = ("--set", "broker.session.timeout.ms=120000")
    with kview_on_a_terminal("--simulate", *session, "--record", str(folder)) as terminal:
        terminal.wait_for(lambda: observations(folder) > 2, "observations on the disk")
        terminal.press("K")
        terminal.wait_for_text(r"broker 0 silent [\d.]+ s")
        enough = observations(folder) + 3
        terminal.wait_for(lambda: observations(folder) > enough, "the incident on the disk")
        os.kill(terminal.pid, signal.SIGKILL)
        wait_until(lambda: not terminal.child.isalive(), "the kill")
    moments = Recording.open(folder).moments()
    assert len(moments) > enough and np.all(np.diff(moments) > 0)

    done = run_here("replay", str(folder), "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    documents = [json.loads(line) for line in done.stdout.splitlines()]
    assert [document["at_ms"] for document in documents] == moments.tolist()
    assert [broker["state"] for broker in documents[-1]["brokers"]] == ["silent", *["up"] * 5]

    with kview_on_a_terminal("replay", str(folder), "--speed", "64") as terminal:
        terminal.wait_for_text("replay seen")
        terminal.wait_for_text("broker 0 silent")
        assert not re.search("K crash", terminal.text()), "a recording has no faults"
        terminal.press("q")
        assert terminal.wait_for_end() == 0


@pytest.mark.slow  # tests/recording has such folders without a terminal
def test_a_state_folder_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    environment = {"XDG_STATE_HOME": str(tmp_path / "file")}
    with kview_on_a_terminal("--simulate", environment=environment) as terminal:
        terminal.wait_for_text("invoice")
        terminal.wait_for_text("recording has stopped: Not a directory")
        goes_on(terminal)
        terminal.press("q")
        assert terminal.wait_for_end() == 0


@pytest.mark.slow  # tests/recording fills a disk without a terminal
def test_a_full_disk_is_a_sentence_and_what_was_recorded_stays(tmp_path: Path) -> None:
    folder = tmp_path / "seen"
    with kview_on_a_terminal(
        "--simulate", "--record", str(folder), "--interval", "200ms", limit_file_bytes=400_000
    ) as terminal:
        terminal.wait_for_text("invoice")
        terminal.wait_for_text("recording has stopped: File too large")
        goes_on(terminal)
        terminal.press("q")
        assert terminal.wait_for_end() == 0
    assert observations(folder) > 5
    assert run_here("replay", str(folder), "--once").returncode == 0


HELD = re.compile(r"❚❚ +(?:×\d+ +)?(\d\d:\d\d:\d\d)")
HELD_TENTHS = re.compile(r"❚❚ +(\d\d:\d\d:\d\d\.\d)")


def held(terminal: PseudoTerminal) -> str:
    """The time of day at which the picture is held, '' where it is not."""
    found = HELD.search(terminal.lines()[0])
    return found[1] if found else ""


def tenths(terminal: PseudoTerminal) -> str:
    """The same with its tenths of a second, from the line of time: two events may have a second in common."""
    found = HELD_TENTHS.search(terminal.lines()[1])
    return found[1] if found else ""


def wait_held(terminal: PseudoTerminal, fits: Callable[[str], bool], what: str) -> str:
    """Wait until the picture is held at a time of day that fits."""
    return terminal.wait_for(lambda: at if (at := held(terminal)) and fits(at) else None, what)


def walk_to(terminal: PseudoTerminal, key: str, shown: str) -> None:
    """Go from event to event with a key until the screen shows what is looked for."""
    for _ in range(MOST_EVENTS):
        before = tenths(terminal)
        terminal.press(key)
        terminal.wait_for(lambda: tenths(terminal) not in ("", before), "another event")  # noqa: B023
        with suppress(AssertionError):
            terminal.wait_for_text(shown, timeout_s=SHOWN_WITHIN_S)
            return
    raise AssertionError(f"no event with {shown!r}; the screen:\n{terminal.text()}")


@pytest.mark.slow  # tests/tui has the keys without a terminal
def test_pausing_stepping_and_keeping_by_key(tmp_path: Path) -> None:
    environment = {"XDG_STATE_HOME": str(tmp_path)}
    with kview_on_a_terminal("--simulate", environment=environment) as terminal:
        (folder,) = terminal.wait_for(
            lambda: [f for f in (tmp_path / "kview" / "flight").glob("*") if observations(f) > 4],
            "a flight recording",
        )
        terminal.press(" ")
        paused = wait_held(terminal, bool, "a pause")
        row, count = watermark(terminal), observations(folder)
        terminal.press("[[")
        earlier = wait_held(terminal, lambda at: at < paused, "two steps back")
        assert watermark(terminal) != row
        terminal.press("]]")
        wait_held(terminal, lambda at: at > earlier and watermark(terminal) == row, "two steps on")
        terminal.wait_for(lambda: observations(folder) > count + 2, "recording goes on")
        assert (held(terminal), watermark(terminal)) == (paused, row)
        terminal.press("\x13")
        terminal.wait_for_text(ASK_NAME)
        terminal.press("by-key\r")
        terminal.wait_for_text("kview replay by-key")
        terminal.press(" ")
        terminal.wait_for_text(r"(\d+) of \1 answer")
        goes_on(terminal)
        terminal.press("q")
        assert terminal.wait_for_end() == 0

    with kview_on_a_terminal("replay", "by-key", environment=environment) as terminal:
        terminal.wait_for_text("► .*of")
        terminal.press("[")
        wait_held(terminal, bool, "a pause")
        terminal.press("]]]]]]]]]]]]")
        last = wait_held(terminal, lambda at: at >= paused, "the last steps")
        terminal.press("[[")
        wait_held(terminal, lambda at: at < last, "two steps back")
        terminal.press("q")
        assert terminal.wait_for_end() == 0


def changes(values: list[str]) -> list[str]:
    """The values without those that are as the one before."""
    return [value for at, value in enumerate(values) if not at or value != values[at - 1]]


def test_an_incident_of_real_kafka_is_on_its_recording(real_kafka: RealKafka, tmp_path: Path) -> None:
    folder, topic = tmp_path / "incident", f"incident-{uuid.uuid4().hex[:8]}"
    real_kafka.create_topic(topic, [[0, 1, 2]], {"min.insync.replicas": "2"})
    with kview_on_a_terminal(
        "connect", real_kafka.bootstrap_servers, "--interval", "500ms", "--record", str(folder)
    ) as terminal:
        terminal.wait_for_text("3 of 3 answer")
        terminal.wait_for(lambda: observations(folder) > 3, "a healthy cluster on the disk")
        real_kafka.kill(0)
        terminal.wait_for_text("0 ✕ fenced")
        enough = observations(folder) + 2
        terminal.wait_for(lambda: observations(folder) > enough, "its fencing on the disk")
        os.kill(terminal.pid, signal.SIGKILL)
        wait_until(lambda: not terminal.child.isalive(), "the kill")

    done = run_here("replay", str(folder), "--format", "json")
    documents = [json.loads(line) for line in done.stdout.splitlines()]
    brokers = [next(row for row in document["brokers"] if row["id"] == 0) for document in documents]
    assert changes([broker["state"] for broker in brokers]) == ["up", "silent", "fenced"]
    rows = [next(row for row in document["partitions"] if row["topic"] == topic) for document in documents]
    assert changes([f"{row['leader']}·{row['leader_epoch']} {row['isr']}" for row in rows]) == [
        "0·0 [0, 1, 2]",
        "1·1 [1, 2]",
    ]
    told = [event["text"] for document in documents for event in document["events"]]
    assert any("broker 0" in text and "fenced" in text for text in told), told

    with kview_on_a_terminal("replay", str(folder)) as terminal:
        terminal.wait_for_text("replay incident")
        walk_to(terminal, "}", "0 ✕ silent")
        walk_to(terminal, "}", "0 ✕ fenced")
        walk_to(terminal, "{", "0 ✕ silent")
        terminal.press("q")
        assert terminal.wait_for_end() == 0
