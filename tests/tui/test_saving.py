"""Screenshots and exported tables: all rows, with names as they are, and keys that work meanwhile."""

import csv
import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from threading import Event

import numpy as np
import pytest
from msgspec.structs import replace

from kview.derive.view import View
from kview.errors import ErrorKind, KviewError
from kview.tui.save_keys import ROWS_A_WRITE
from tests.tui.harness import CRASH, dashboard, drawn_text, press, running, state, text, until
from tests.waiting import PATIENCE_S
from tests.worlds import default_world, views, wide_snapshots


@dataclass
class FakeFile:
    """A file in memory. With `fails`, nothing can be written. `gate` holds up all but the first write."""

    path: str
    done: dict[str, str]
    fails: bool
    gate: Event
    text: str = ""

    def add(self, text: str) -> None:
        """Keep the text."""
        if self.fails:
            raise KviewError(ErrorKind.FILE_NOT_WRITTEN, file=self.path, reason="no space left on device")
        if self.text:
            assert self.gate.wait(PATIENCE_S)
        self.text += text

    def finish(self) -> str:
        """Complete the file."""
        self.done[self.path] = self.text
        return self.path

    def cancel(self) -> None:
        """Forget the text."""
        self.text = ""


@dataclass
class FakeSaves:
    """A folder in memory."""

    fails: bool = False
    done: dict[str, str] = field(default_factory=dict)
    gate: Event = field(default_factory=Event)

    def __post_init__(self) -> None:
        self.gate.set()

    def begin(self, name: str, suffix: str) -> FakeFile:
        """Begin a file."""
        return FakeFile(f"/saved/{name}.{suffix}", self.done, self.fails, self.gate)

    def only(self, suffix: str) -> str:
        """The text of the only file with that suffix."""
        (found,) = (text for path, text in self.done.items() if path.endswith(suffix))
        return found


@running
async def test_a_screenshot_is_the_screen_as_a_picture_and_as_text() -> None:
    saves = FakeSaves()
    async with dashboard(state(CRASH), saves=saves) as (app, pilot):
        shown = drawn_text(app)
        await press(pilot, ["p"])
        await until(
            pilot, lambda: re.search(r"screenshot saved:\s+/saved/kview-screen-", text(app)), "the path"
        )
        assert saves.only("txt") == shown
        assert saves.only("svg").startswith("<svg")


@running
async def test_an_export_has_the_rows_as_filtered_and_sorted() -> None:
    saves = FakeSaves()
    async with dashboard(state(CRASH), saves=saves, size=(80, 24)) as (app, pilot):
        await press(pilot, ["slash", *"invoice", "enter", "tab", "ctrl+e"])
        app.clock_ms.now_ms += 5_000  # type: ignore[attr-defined]
        await press(pilot, ["enter"])
        await until(pilot, lambda: re.search(r"10 rows saved:\s+/saved/kview-", text(app)), "the path")
        rows = list(csv.DictReader(io.StringIO(saves.only("csv"))))
        assert [row["p"] for row in rows[:2]] == ["3", "9"], "worst first, as on the screen"
        assert len(rows) == 10, "and more rows than are in sight"
        assert {row["topic"] for row in rows} == {"invoice"}
        assert rows[0]["state"] == "leader silent"
        assert rows[0]["state s"] == "3.4", "ages are those at the time of the key"
        assert rows[0]["watermark"] == "1229461" and rows[0]["in rec/s"] == "", "a figure, and an unknown one"
        await press(pilot, ["ctrl+e", *"json", "enter"])
        await until(pilot, lambda: ".json" in text(app), "the second file")
        first = json.loads(saves.only("json"))[0]
        assert first["topic"] == "invoice" and first["watermark"] == 1229461 and first["in rec/s"] is None
        await press(pilot, ["ctrl+e", *"xml", "enter"])
        await until(pilot, lambda: "'xml' is not a format" in text(app), "what is wrong")


HOSTILE = ["=1+1", 'a,"b"', "two\nlines", "1,000", "–"]


@pytest.mark.parametrize("format", ["csv", "json"])
@running
async def test_names_are_exported_as_they_are(format: str) -> None:
    (view,) = views([default_world().tick()])
    groups = view.snapshot.groups
    names = np.array(HOSTILE[: len(groups)], object)
    hostile = replace(view, snapshot=replace(view.snapshot, groups=replace(groups, group=names)))
    saves = FakeSaves()
    async with dashboard(hostile, saves=saves) as (_, pilot):
        await press(pilot, ["5", "ctrl+e", *format, "enter"])
        await until(pilot, lambda: saves.done, "the file")
        made = saves.only(format)
        rows = json.loads(made) if format == "json" else list(csv.DictReader(io.StringIO(made, newline="")))
        assert {row["group"] for row in rows} == set(names)


@running
async def test_a_disk_without_space_is_one_sentence() -> None:
    async with dashboard(state(CRASH), saves=FakeSaves(fails=True)) as (app, pilot):
        for keys, said in ((["p"], "screenshot not saved"), (["ctrl+e", "enter"], "table not exported")):
            await press(pilot, keys)
            await until(pilot, lambda said=said: f"{said}: cannot write /saved" in text(app), "why")  # type: ignore[misc]
            assert "no space left on device" in text(app)


@running
async def test_a_record_that_cannot_be_written_is_one_sentence() -> None:
    def lines() -> Iterator[str]:
        yield "{}"
        raise ArithmeticError("a record")

    saves = FakeSaves()
    async with dashboard(state(CRASH), saves=saves) as (app, pilot):
        app.save_lines("records", lines())
        await until(pilot, lambda: "records not exported: a row could not be made" in text(app), "why")
        assert saves.done == {}
        app.save_lines("records", iter(["{}", "[]"]))
        await until(pilot, lambda: "2 records saved" in text(app), "the next file")
        assert saves.only("jsonl") == "{}\n[]\n"


@running
async def test_keys_work_during_a_long_export_and_escape_cancels_it() -> None:
    saves = FakeSaves()
    saves.gate.clear()
    async with dashboard(many(), saves=saves) as (app, pilot):
        await press(pilot, ["tab", "ctrl+e", "enter"])
        await until(pilot, lambda: f"exporting: {ROWS_A_WRITE:,} of 12,000 rows" in text(app), "progress")
        await press(pilot, ["2"])
        assert "leads  copies" in text(app) and not saves.done
        await press(pilot, ["escape"])
        saves.gate.set()
        await until(pilot, lambda: "export cancelled: no file was written" in text(app), "the end")
        assert saves.done == {}


def many() -> View:
    """A cluster of 12,000 partitions."""
    *_, last = views(wide_snapshots(12_000, 2))
    return last
